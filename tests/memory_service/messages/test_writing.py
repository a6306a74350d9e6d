from __future__ import annotations

import json
import re
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_service.messages.shapes import (
    Message,
    anthropic_id,
    arguments_object,
    is_empty,
    mistral_id,
    openai_id,
    text_of,
    tool_calls_of,
    wire_arguments,
    wire_name,
    with_text,
    without_thinking,
)
from memory_service.messages.writing import to_mistral, to_openai
from memory_service.messages.writing_anthropic import to_anthropic
from tests.memory_service.messages.shared import IMAGE_URL, PDF, PNG, REDACTED, THINKING, USE, read, text, tool_call
from tests.wire import to_litellm


def test_no_key_of_ours_reaches_openai() -> None:
    inner = read(
        {
            "role": "assistant",
            "content": [THINKING, text("hi"), USE],
            "reasoning_content": "hm",
            "_seq": 7,
            "created_at": "2026-01-02T10:00:00Z",
        },
        {"role": "tool", "tool_call_id": "toolu_1", "content": None, "is_error": True, "interim": True},
    )
    (answer, result) = to_openai(inner)
    assert answer.keys() == {"role", "content", "tool_calls"}
    assert result == {"role": "tool", "tool_call_id": "toolu_1", "content": ""}
    (answer, _) = to_litellm(inner)
    assert answer["thinking_blocks"] == [THINKING]
    assert answer["reasoning_content"] == "hm"
    assert "_seq" not in answer


OPENAI_FORMS: dict[str, tuple[str, dict[str, Any], dict[str, Any] | None]] = {
    "image by address": (
        "user",
        {"type": "image", "source": {"type": "url", "url": "https://a"}},
        {"type": "image_url", "image_url": {"url": "https://a"}},
    ),
    "image in a store": (
        "user",
        {"type": "image", "source": {"type": "file", "file_id": "f"}},
        text("[image not shown]"),
    ),
    "document": (
        "user",
        {"type": "document", "source": PDF, "title": "Plan"},
        {"type": "file", "file": {"filename": "Plan", "file_data": "data:application/pdf;base64,JVBERg=="}},
    ),
    "document of text": ("user", {"type": "document", "source": {"type": "text", "data": "words"}}, text("words")),
    "document of parts": (
        "user",
        {"type": "document", "source": {"type": "content", "content": [text("words")]}},
        text("words"),
    ),
    "search result": ("user", {"type": "search_result", "source": "a", "content": [text("found"), 7]}, text("found")),
    "image from a tool": ("tool", {"type": "image", "source": PNG}, text("[image not shown]")),
    "a step at the provider": (
        "assistant",
        {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}},
        None,
    ),
    "cache mark": ("user", {**text("hi"), "cache_control": {"type": "ephemeral"}}, text("hi")),
}


@pytest.mark.parametrize("case", OPENAI_FORMS)
def test_what_openai_does_not_know_is_translated(case: str) -> None:
    role, part, expected = OPENAI_FORMS[case]
    (message,) = to_openai([cast(Message, {"role": role, "tool_call_id": "a", "content": [part]})])
    assert message["content"] == ([expected] if expected else None)


ANTHROPIC_FORMS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "image in the message": (IMAGE_URL, {"type": "image", "source": PNG}),
    "image with a cache mark": (
        {**IMAGE_URL, "cache_control": {"type": "ephemeral"}},
        {"type": "image", "source": PNG, "cache_control": {"type": "ephemeral"}},
    ),
    "image by address": (
        {"type": "image_url", "image_url": {"url": "https://a", "detail": "low"}},
        {"type": "image", "source": {"type": "url", "url": "https://a"}},
    ),
    "file": (
        {"type": "file", "file": {"filename": "Plan", "file_data": "data:application/pdf;base64,JVBERg=="}},
        {"type": "document", "title": "Plan", "source": PDF},
    ),
    "file in a store": ({"type": "file", "file": {"file_id": "f"}}, text("[file not shown]")),
    "sound": ({"type": "input_audio", "input_audio": {}}, text("[audio not shown]")),
}


@pytest.mark.parametrize("case", ANTHROPIC_FORMS)
def test_what_anthropic_does_not_know_is_translated(case: str) -> None:
    part, expected = ANTHROPIC_FORMS[case]
    assert to_anthropic(read({"role": "user", "content": [part]}))[1] == [{"role": "user", "content": [expected]}]


def test_neighbours_share_an_anthropic_message() -> None:
    results = [{"role": "tool", "tool_call_id": call_id, "content": ""} for call_id in "ab"]
    _, (turn,) = to_anthropic(read(*results, {"role": "user", "content": "next"}, {"role": "user", "content": " "}))
    assert turn == {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "a"},
            {"type": "tool_result", "tool_use_id": "b"},
            text("next"),
        ],
    }


def test_system_prompts_stand_apart_in_anthropics_shape() -> None:
    rule, marked = (
        {"role": "system", "content": "Be kind."},
        {**text("Be brief."), "cache_control": {"type": "ephemeral"}},
    )
    assert to_anthropic(read(rule)) == ("Be kind.", [])
    assert to_anthropic(read(rule, {"role": "developer", "content": [marked]}))[0] == [text("Be kind."), marked]


def test_thinking_between_contents_keeps_its_place() -> None:
    content = [THINKING, text("one"), REDACTED, text("two"), USE]
    (message,) = read({"role": "assistant", "content": content})
    assert to_anthropic([message])[1][0]["content"] == content
    assert to_anthropic([with_text(message, "cut")])[1][0]["content"] == [THINKING, REDACTED, text("cut"), USE]
    assert to_anthropic([without_thinking(message)])[1][0]["content"] == [text("one"), text("two"), USE]


def test_thinking_that_nobody_signed_does_not_reach_anthropic() -> None:
    (message,) = read({"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}, text("one")]})
    assert to_anthropic([message])[1][0]["content"] == [text("one")]


def test_a_refusal_reaches_everybody() -> None:
    (message,) = read({"role": "assistant", "content": None, "refusal": "No."})
    assert text_of(message) == "No."
    assert not is_empty(message)
    assert to_mistral([message]) == to_litellm([message]) == [{"role": "assistant", "content": "No."}]
    assert to_anthropic([message])[1] == [{"role": "assistant", "content": [text("No.")]}]


ARGUMENTS = {
    '{"a": 1}': '{"a": 1}',
    '{"a":1}': '{"a":1}',
    "": "{}",
    " \n": "{}",
    '{"cut": "of': '{"_raw": "{\\"cut\\": \\"of"}',
    "[1]": '{"_raw": "[1]"}',
    "null": '{"_raw": "null"}',
    '{"a": NaN}': '{"_raw": "{\\"a\\": NaN}"}',
    "[" * 100_000: json.dumps({"_raw": "[" * 100_000}),
}


@pytest.mark.parametrize("arguments", ARGUMENTS, ids=range(len(ARGUMENTS)))
def test_arguments_go_out_as_a_json_object(arguments: str) -> None:
    assert wire_arguments(arguments) == ARGUMENTS[arguments]
    assert arguments_object(arguments) == json.loads(ARGUMENTS[arguments])
    (message,) = read({"role": "assistant", "content": None, "tool_calls": [tool_call(arguments=arguments)]})
    assert tool_calls_of(message)[0]["function"]["arguments"] == arguments


@given(st.text(min_size=1), st.text(min_size=1))
def test_ids_go_out_in_the_alphabet_of_each_provider(one: str, other: str) -> None:
    for id_of, form in (
        (openai_id, r".{1,40}"),
        (anthropic_id, r"[a-zA-Z0-9_-]+"),
        (mistral_id, r"[a-zA-Z0-9]{9}"),
    ):
        assert re.fullmatch(form, id_of(one), re.DOTALL)
        assert (id_of(one) == id_of(other)) == (one == other)
        assert id_of(id_of(one)) == id_of(one)
    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", wire_name(one))


def test_a_call_and_its_result_keep_the_same_id() -> None:
    inner = read(
        {"role": "assistant", "content": None, "tool_calls": [{**tool_call(), "id": "functions.run:0" + "x" * 60}]},
        {"role": "tool", "tool_call_id": "functions.run:0" + "x" * 60, "content": "done"},
    )
    for write in (to_openai, to_mistral, to_litellm):
        asked, answered = cast("list[Any]", write(inner))
        assert asked["tool_calls"][0]["id"] == answered["tool_call_id"]
    _, (use, result) = cast("tuple[Any, list[Any]]", to_anthropic(inner))
    assert use["content"][0]["id"] == result["content"][0]["tool_use_id"]
