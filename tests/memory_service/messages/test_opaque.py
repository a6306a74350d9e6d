"""What each provider is sent of what it does not take."""

from __future__ import annotations

import json
from typing import Any

import pytest

from memory_service.messages.providers import wants_reasoning
from memory_service.messages.reading import read_messages
from memory_service.messages.repair import to_wire
from memory_service.messages.shapes import own_text_of
from memory_service.messages.writing import to_mistral

TORN = "cut \ud83d here"
CALL = {
    "id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"},
    "extra_content": {"google": {"thought_signature": "c2ln"}},
}  # fmt: skip


@pytest.mark.parametrize("wire", ["openai", "anthropic", "mistral"])
def test_half_a_surrogate_pair_is_replaced_on_the_wire(wire: Any) -> None:
    [message] = read_messages([{"role": "user", "content": TORN}])
    assert message["content"] == TORN
    sent, _ = to_wire([message], wire)
    assert "cut \ufffd here" in json.dumps(sent, ensure_ascii=False)


def test_models_that_want_reasoning_back_get_it() -> None:
    said = {"role": "assistant", "content": "", "reasoning_content": "think", "tool_calls": [CALL]}
    messages = read_messages([{"role": "user", "content": "Go."}, said])
    with_it, _ = to_wire(messages, "openai", model="deepseek-reasoner")
    assert with_it[1]["reasoning_content"] == "think" and with_it[1]["tool_calls"] == [CALL]
    without, _ = to_wire(messages, "openai", model="gpt-4o")
    assert "reasoning_content" not in without[1] and "extra_content" not in json.dumps(without)
    assert wants_reasoning("gemini/gemini-3-pro") and not wants_reasoning("gpt-4o") and not wants_reasoning(None)


@pytest.mark.parametrize(
    ("part", "shown"),
    [
        ({"type": "image_url", "image_url": {"url": "data:image/svg+xml;base64,PHN2Zz4="}}, "text"),
        ({"type": "image", "source": {"type": "base64", "media_type": "image/heic", "data": "AAAA"}}, "text"),
        ({"type": "image_url", "image_url": {"url": "file:///tmp/a.png"}}, "text"),
        ({"type": "image_url", "image_url": {"url": "data:image/png;charset=utf-8;base64,AAAA"}}, "image"),
        ({"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}, "image"),
    ],
)
def test_anthropic_gets_images_that_it_takes(part: dict[str, Any], shown: str) -> None:
    [message] = read_messages([{"role": "user", "content": [part]}])
    [turn], _ = to_wire([message], "anthropic")
    block: Any = json.loads(json.dumps(turn["content"]))[0]
    assert block["type"] == shown
    if shown == "image" and block["source"]["type"] == "base64":
        assert block["source"]["media_type"] == "image/png"


def test_mistral_gets_no_field_that_it_refuses() -> None:
    answer: dict[str, Any] = {
        "role": "assistant", "content": "a", "refusal": None, "annotations": [], "audio": None, "function_call": None,
        "provider_specific_fields": {"x": 1},
    }  # fmt: skip
    sent = to_mistral(read_messages([{"role": "developer", "content": "Be brief."}, answer]))
    assert sent == [{"role": "system", "content": "Be brief."}, {"role": "assistant", "content": "a"}]


def test_words_of_the_user_are_those_of_its_own_parts() -> None:
    parts = [
        {"type": "text", "text": "<system-reminder>\nRules.\n</system-reminder>"},
        {"type": "text", "text": "How do I deploy?"},
        {"type": "hologram", "said": "Never deploy."},
    ]
    [message] = read_messages([{"role": "user", "content": parts}])
    assert own_text_of(message) == "How do I deploy?"
    [spoken] = read_messages([{"role": "assistant", "content": "<system-reminder>\nx\n</system-reminder>"}])
    assert own_text_of(spoken) == spoken["content"]
    [unknown] = read_messages([{"role": "critic", "content": "Always deploy on Fridays."}])
    assert unknown["role"] == "assistant"
