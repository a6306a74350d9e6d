from __future__ import annotations

import base64
import copy
import json
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_service.messages.cache_marks import with_marks_taken
from memory_service.messages.providers import PROVIDERS, provider_rules
from memory_service.messages.reading import read_messages
from memory_service.messages.repair import close_calls, repair_messages, to_wire
from memory_service.messages.units import REPAIR_TEXTS
from memory_service.messages.writing_anthropic import to_anthropic
from tests.memory_service.messages.shared import PNG, THINKING, text
from tests.wire import Provider, problems
from tests.wire_content import ASKED, CONTENT_RULES, refusals

REAL_PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(20)).decode()
REAL_WEBP = base64.b64encode(b"RIFF" + bytes(4) + b"WEBPVP8 ").decode()
TORN = json.loads('"cut \\ud83d here"')
NOTES = base64.b64encode("näh".encode()).decode()


def asked(provider: str, *raw: object) -> tuple[list[dict[str, Any]], Any]:
    shape, model = ASKED[provider]
    messages = repair_messages(read_messages(raw)).messages
    sent, system = to_wire(close_calls(messages), shape, model=model)
    return [*sent], system


def image(kind: str, data: str = "AAAA") -> dict[str, Any]:
    return {"type": "image", "source": {"type": "base64", "media_type": kind, "data": data}}


def by_url(url: str, **more: Any) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url, **more}}


def file(url: str) -> dict[str, Any]:
    return {"type": "file", "file": {"filename": "notes", "file_data": url}}


def marked(mark: object, words: str = "hi") -> dict[str, Any]:
    return {**text(words), "cache_control": mark}


SHORT, LONG = {"type": "ephemeral"}, {"type": "ephemeral", "ttl": "1h"}
PARTS: list[dict[str, Any]] = [
    *(
        image(f"image/{kind}")
        for kind in ("png", "jpeg", "jpg", "gif", "webp", "svg+xml", "heic", "heif", "bmp", "tiff")
    ),
    *(image(kind) for kind in ("application/pdf", "video/mp4", "", "IMAGE/PNG")),
    image("image/jpeg", REAL_PNG),
    image("image/png", REAL_WEBP),
    {"type": "image", "source": {"type": "file", "file_id": "file_1"}},
    {**image("image/png"), "detail": "low", "index": 0},
    *(by_url(f"data:image/{kind};base64,AAAA") for kind in ("png", "jpg", "svg+xml", "x-icon")),
    by_url("data:image/png;charset=utf-8;name=a.png;base64,AAAA", detail="low", format="image/png"),
    by_url("data:image/svg+xml;utf8,<svg/>"),
    *(
        by_url(f"{scheme}a/b.png")
        for scheme in ("https://", "http://", "file:///", "gs://", "s3://", "blob:", "ms://", "")
    ),
    {"type": "image_url", "image_url": "https://example.org/a.png"},
    *(
        file(f"data:{kind};base64,{NOTES}")
        for kind in ("text/plain", "text/csv", "application/json", "application/pdf")
    ),
    *(file(url) for url in (f"data:text/html;charset=utf-8;base64,{NOTES}", "data:application/msword;base64,AAAA")),
    file(f"data:application/pdf;name=a.pdf;base64,{NOTES}"),
    {"type": "file", "file": {"file_id": "file_1"}},
    {"type": "file", "file_id": "file_1"},
    {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "words", "id": 1}, "x": 1},
    {"type": "document", "source": {"type": "base64", "media_type": "text/markdown", "data": NOTES}, "title": "n"},
    {"type": "document", "source": {"type": "url", "url": "https://example.org/a.pdf"}},
    {"type": "document", "source": {"type": "url", "url": "file:///a.pdf"}},
    {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
    {"type": "input_audio", "input_audio": "AAAA"},
    marked(SHORT),
    marked(LONG),
    marked({"type": "forever"}),
    marked(None),
    {**text("hi"), "annotations": [], "parsed": None, "index": 0},
    text(TORN),
]


def answer(**more: Any) -> dict[str, Any]:
    call = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    return {"role": "assistant", "content": None, "tool_calls": [call], **more}


ANSWERS: list[dict[str, Any]] = [
    answer(),
    answer(reasoning_content="hm"),
    answer(provider_specific_fields={"reasoning_content": "hm"}, reasoning_details=[{"type": "x"}], annotations=[]),
    answer(audio=None, function_call=None, refusal=None),
    answer(tool_calls=[{"id": None, "function": {"name": "look", "arguments": None}}]),
    answer(tool_calls=[{"id": "c", "type": "custom", "custom": {"name": "run", "input": "ls"}}]),
    {"role": "assistant", "content": "Yes.", "audio": {"id": "audio_1", "data": "AAAA", "transcript": "Yes."}},
    {"role": "assistant", "content": [{"type": "thinking", "thinking": [text("hm")]}, text("Yes.")]},
    {"role": "assistant", "content": [THINKING, {"type": "tool_use", "id": "toolu_1", "name": "look"}]},
]


def results_of(said: dict[str, Any], parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    if not said.get("tool_calls"):
        used = any(part["type"] == "tool_use" for part in said["content"] if isinstance(part, dict))
        given = [part for part in parts if part["type"] in ("text", "image", "document")]
        return [
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": given}]}
        ] * used
    return [{"role": "tool", "tool_call_id": said["tool_calls"][0]["id"], "content": parts}]


@pytest.mark.parametrize("provider", ASKED)
@settings(max_examples=30)
@given(
    turns=st.lists(
        st.tuples(
            st.lists(st.sampled_from(PARTS), min_size=1, max_size=3),
            st.sampled_from(ANSWERS),
            st.lists(st.sampled_from(PARTS), min_size=1, max_size=2),
            st.booleans(),
        ),
        min_size=1,
        max_size=5,
    )
)
def test_no_provider_refuses_what_any_host_said(provider: str, turns: list[Any]) -> None:
    raw: list[dict[str, Any]] = [{"role": "system", "content": [marked(SHORT, "Be kind.")]}]
    for parts, said, given_back, is_answered in turns:
        raw += [{"role": "user", "content": parts}, said, *(results_of(said, given_back) if is_answered else [])]
    before = copy.deepcopy(raw)
    sent, system = asked(provider, *raw, {"role": "user", "content": "On."})
    assert not refusals(sent, system, provider)
    if provider in ("anthropic", "mistral"):
        assert not problems(sent, cast(Provider, provider))
    assert raw == before


def test_the_table_and_the_validators_have_the_same_providers() -> None:
    assert PROVIDERS.keys() == ASKED.keys() == CONTENT_RULES.keys()
    assert all(provider_rules(*ASKED[name]) == PROVIDERS[name] for name in PROVIDERS)


REFUSED: dict[str, tuple[str, dict[str, Any]]] = {
    "words_are_unicode": ("openai", {"role": "user", "content": TORN}),
    "image_is_taken": ("openai", {"role": "user", "content": [by_url("data:image/svg+xml;base64,AAAA")]}),
    "no_marks": ("openai", {"role": "user", "content": [marked(SHORT)]}),
    "keys_are_openais": ("openai", answer(reasoning_content="hm")),
    "parts_are_mistrals": ("mistral", {"role": "user", "content": [{"type": "file", "file": {}}]}),
    "blocks_are_anthropics": ("anthropic", {"role": "user", "content": [{**text("hi"), "annotations": []}]}),
    "sources_are_anthropics": ("anthropic", {"role": "user", "content": [image("image/heic")]}),
    "marks_are_few_and_in_order": ("anthropic", {"role": "user", "content": [marked(SHORT), marked(LONG)]}),
    "calls_have_reasoning": ("deepseek", answer()),
    "first_calls_are_signed": ("gemini", answer()),
}


@pytest.mark.parametrize("rule", REFUSED)
def test_the_validator_finds(rule: str) -> None:
    provider, message = REFUSED[rule]
    assert [found for found in refusals([message], None, provider) if found.startswith(f"{rule}:")]


def test_every_rule_finds_something() -> None:
    assert {rule.__name__ for rules in CONTENT_RULES.values() for rule in rules} == REFUSED.keys()


def test_an_image_is_what_its_bytes_say() -> None:
    sent, _ = asked("anthropic", {"role": "user", "content": [image("image/jpeg", REAL_PNG), image("image/jpg")]})
    sources = [block["source"]["media_type"] for block in sent[0]["content"]]
    assert sources == ["image/png", "image/jpeg"]


def test_a_text_file_reaches_everybody_as_words() -> None:
    said = {"role": "user", "content": [file(f"data:text/csv;base64,{NOTES}")]}
    assert asked("anthropic", said)[0][0]["content"][0]["source"]["data"] == "näh"
    assert asked("mistral", said)[0][0]["content"] == [text("näh")]


def test_the_newest_marks_stay_and_that_of_the_system_prompt() -> None:
    turns: list[dict[str, Any]] = [{"role": "user", "content": [marked(SHORT, str(n))]} for n in range(9)]
    _, sent = with_marks_taken([], turns, 4)
    assert ["cache_control" in json.dumps(turn) for turn in sent] == [False] * 5 + [True] * 4
    ahead, sent = with_marks_taken([marked(LONG, "a"), marked(LONG, "b")], turns, 4)
    assert ["cache_control" in part for part in ahead] == [False, True]
    assert ["cache_control" in json.dumps(turn) for turn in sent] == [False] * 6 + [True] * 3


def test_a_mark_of_an_hour_stands_before_those_of_minutes() -> None:
    inner: dict[str, Any] = {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": "a", "content": [marked(SHORT)]}],
    }
    _, sent = with_marks_taken([], [inner, {"role": "user", "content": [marked(LONG)]}], 4)
    assert sent[0] == inner and sent[1]["content"] == [marked(SHORT)]
    _, kept = with_marks_taken([], [{"role": "user", "content": [marked(LONG), marked(SHORT)]}], 4)
    assert kept == [{"role": "user", "content": [marked(LONG), marked(SHORT)]}]


def test_a_signature_goes_back_wherever_it_stands() -> None:
    long_id = "call_1__thought__" + "c2ln" * 30
    for call in (
        {"id": "c", "extra_content": {"google": {"thought_signature": "c2ln"}}},
        {"id": "c", "provider_specific_fields": {"thought_signature": "c2ln"}},
        {"id": long_id},
    ):
        given = {**call, "type": "function", "function": {"name": "look", "arguments": "{}"}}
        [_, said, result] = asked(
            "gemini",
            {"role": "user", "content": "Go."},
            answer(tool_calls=[given]),
            {"role": "tool", "tool_call_id": call["id"], "content": "done"},
        )[0]
        assert said["tool_calls"] == [given] and result["tool_call_id"] == call["id"]
    inside = {"name": "look", "arguments": "{}", "provider_specific_fields": {"thought_signature": "c2ln"}}
    given = {"id": "c", "type": "function", "function": inside}
    assert asked("gemini", {"role": "user", "content": "Go."}, answer(tool_calls=[given]))[0][1]["tool_calls"] == [
        given
    ]


def test_reasoning_that_a_library_put_aside_goes_back() -> None:
    said = answer(provider_specific_fields={"reasoning_content": "hm"})
    assert asked("deepseek", {"role": "user", "content": "Go."}, said)[0][1]["reasoning_content"] == "hm"


def test_a_call_without_a_result_is_closed_when_a_model_is_asked() -> None:
    both = answer(tool_calls=[*answer()["tool_calls"], {**answer()["tool_calls"][0], "id": "call_2"}])
    result = {"role": "tool", "tool_call_id": "call_2", "content": "done"}
    messages = read_messages([{"role": "user", "content": "Go."}, both, result])
    [_, _, first, second] = close_calls(messages)
    assert first == {"role": "tool", "tool_call_id": "call_1", "content": REPAIR_TEXTS["en"].missing}
    assert second is messages[-1]
    assert close_calls(messages, pending={"call_1"}, language="zh")[2].get("content") == REPAIR_TEXTS["zh"].running
    assert close_calls(messages[:1]) == messages[:1] and close_calls([]) == []


def test_thinking_of_another_provider_is_nobodys_words() -> None:
    thought = {"role": "assistant", "content": [{"type": "thinking", "thinking": [text("hm")]}, text("Yes.")]}
    raw = [{"role": "user", "content": "Go."}, thought]
    for provider in ("openai", "gemini", "deepseek"):
        assert asked(provider, *raw)[0][1]["content"] == [text("Yes.")]
    assert asked("mistral", *raw)[0][1]["content"] == thought["content"]
    assert to_anthropic(read_messages(raw))[1][1]["content"] == [text("Yes.")]


def test_a_part_that_its_provider_takes_is_the_same_object() -> None:
    part = {"type": "image", "source": PNG}
    [message] = read_messages([{"role": "user", "content": [part]}])
    assert to_anthropic([message])[1][0]["content"][0] is message["content"][0]  # type: ignore[index]
