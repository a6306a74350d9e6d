from __future__ import annotations

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_service.errors import InvalidRequest, TooLarge
from memory_service.messages.reading import _MAX_CALLS, MAX_MESSAGES, MAX_PARTS, read_messages
from memory_service.messages.shapes import is_tool_result, text_of, tool_calls_of
from memory_service.messages.writing import to_mistral, to_openai
from memory_service.messages.writing_anthropic import to_anthropic
from tests.memory_service.messages.shared import IMAGE_URL, PNG, REDACTED, THINKING, USE, read, text, tool_call
from tests.wire import to_litellm


def test_an_anthropic_answer_becomes_content_calls_and_thinking() -> None:
    raw = {"role": "assistant", "content": [THINKING, REDACTED, text("Let me see."), USE]}
    (message,) = read(raw)
    assert message["content"] == [text("Let me see.")]
    assert message["thinking_blocks"] == [THINKING, REDACTED]
    (call,) = tool_calls_of(message)
    assert (call["id"], call["function"]["name"]) == ("toolu_1", "read")
    assert json.loads(call["function"]["arguments"]) == USE["input"]
    assert json.dumps(to_anthropic([message])[1]) == json.dumps([raw])


def test_results_of_tools_become_messages_of_their_own() -> None:
    first = {"type": "tool_result", "tool_use_id": "a", "content": "1"}
    second = {"type": "tool_result", "tool_use_id": "b", "content": [text("2")], "is_error": True}
    inner = read({"role": "user", "content": [first, second, text("And now?"), {"type": "image", "source": PNG}]})
    assert inner == [
        {"role": "tool", "tool_call_id": "a", "content": "1"},
        {"role": "tool", "tool_call_id": "b", "content": [text("2")], "is_error": True},
        {"role": "user", "content": [text("And now?"), {"type": "image", "source": PNG}]},
    ]
    assert [*map(is_tool_result, inner)] == [True, True, False]
    assert to_openai(inner) == [
        {"role": "tool", "tool_call_id": "a", "content": "1"},
        {"role": "tool", "tool_call_id": "b", "content": [text("2")]},
        {"role": "user", "content": [text("And now?"), IMAGE_URL]},
    ]


def test_an_answer_may_come_with_its_envelope() -> None:
    raw = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "usage": {}, "stop_reason": "end_turn"}
    assert read({**raw, "content": [text("Hi")]}) == [{"role": "assistant", "content": [text("Hi")]}]


def test_clients_that_write_calls_their_own_way_are_understood() -> None:
    loose = {"id": "c1", "function": {"name": "read", "arguments": {"path": "ä"}}}
    (message,) = read({"role": "assistant", "content": "", "tool_calls": [loose]})
    assert tool_calls_of(message) == [tool_call(arguments='{"path": "ä"}')]
    assert read({"role": "assistant", "content": "Hi", "tool_calls": None}) == [{"role": "assistant", "content": "Hi"}]


REFUSED: dict[str, tuple[object, str]] = {
    "no object": ("hi", "messages[0]"),
    "no role": ({"content": "hi"}, "messages[0].role"),
    "a role that is no text": ({"role": ["user"], "content": "hi"}, "messages[0].role"),
    "no content": ({"role": "user"}, "messages[0].content"),
    "content of another kind": ({"role": "user", "content": 7}, "messages[0].content"),
    "a part that is no object": ({"role": "user", "content": ["hi"]}, "messages[0].content[0]"),
    "a part of no type": ({"role": "user", "content": [{"text": "hi"}]}, "messages[0].content[0].type"),
    "a text without text": ({"role": "user", "content": [{"type": "text"}]}, "messages[0].content[0].text"),
    "a user who thinks": ({"role": "user", "content": [THINKING]}, "messages[0].content[0].type"),
    "a user who calls": ({"role": "user", "content": [USE]}, "messages[0].content[0].type"),
    "a user with calls": ({"role": "user", "content": "x", "tool_calls": [tool_call()]}, "messages[0].tool_calls"),
    "a call without function": (
        {"role": "assistant", "tool_calls": [{"id": "a", "type": "function"}]},
        "messages[0].tool_calls[0].function",
    ),
    "a call without name": (
        {"role": "assistant", "tool_calls": [tool_call(name=None)]},
        "messages[0].tool_calls[0].function.name",
    ),
    "arguments of another kind": (
        {"role": "assistant", "tool_calls": [tool_call(arguments=7)]},
        "messages[0].tool_calls[0].function.arguments",
    ),
    "a result whose id is a number": ({"role": "tool", "content": "x", "tool_call_id": 7}, "messages[0].tool_call_id"),
    "a result in a result": (
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "a", "content": [{"type": "tool_result"}]}],
        },
        "messages[0].content[0].content[0].type",
    ),
    "input that is no object": (
        {"role": "assistant", "content": [{**USE, "input": "x"}]},
        "messages[0].content[0].input",
    ),
    "thinking that is none": (
        {"role": "assistant", "thinking_blocks": [text("x")]},
        "messages[0].thinking_blocks[0].type",
    ),
    "an error that is no truth value": (
        {"role": "tool", "tool_call_id": "a", "is_error": "no"},
        "messages[0].is_error",
    ),
    "a name that is no text": ({"role": "user", "content": "x", "name": 7}, "messages[0].name"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_neither_shape_is_refused_by_its_place(case: str) -> None:
    raw, at = REFUSED[case]
    with pytest.raises(InvalidRequest, match=rf"^{re.escape(at)} cannot be used"):
        read(raw)
    with pytest.raises(InvalidRequest, match=r"^messages\[1\]"):
        read({"role": "user", "content": "fine"}, raw)


def test_forms_of_other_providers_are_taken_and_carried_as_they_came() -> None:
    parts: list[dict[str, object]] = [
        {"type": "image_url", "image_url": "https://example.org/a.png"},
        {"type": "input_audio", "input_audio": "AAAA"},
        {"type": "file", "file_id": "file_1"},
    ]
    (message,) = read({"role": "user", "content": parts})
    assert to_openai([message])[0]["content"] == [
        {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
        parts[1],
        {"type": "file", "file": {"file_id": "file_1"}},
    ]
    assert to_mistral([message])[0]["content"] == [
        {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
        *parts[1:],
    ]
    calls = [{"function": {"name": "read", "arguments": None}}]
    asked, answered = read({"role": "assistant", "content": "", "tool_calls": calls}, {"role": "tool", "content": "x"})
    assert tool_calls_of(asked) == [tool_call(arguments="") | {"id": ""}]
    assert is_tool_result(answered)


def test_arguments_that_nest_too_deep_are_refused() -> None:
    deep: dict[str, object] = {}
    for _ in range(20_000):
        deep = {"a": deep}
    with pytest.raises(InvalidRequest, match=r"^messages\[0\].content holds arguments"):
        read({"role": "assistant", "content": [{**USE, "input": deep}]})


def test_errors_do_not_hold_what_was_said() -> None:
    with pytest.raises(InvalidRequest) as caught:
        read({"role": "user", "content": [{"type": "text", "text": {"secret": "hunter2"}}]})
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    "raw",
    [
        [{"role": "user", "content": "x"}] * (MAX_MESSAGES + 1),
        [{"role": "user", "content": [text("x")] * (MAX_PARTS + 1)}],
        [{"role": "assistant", "content": None, "tool_calls": [tool_call()] * (_MAX_CALLS + 1)}],
    ],
    ids=["messages", "parts", "calls"],
)
def test_bounds(raw: list[object]) -> None:
    with pytest.raises(TooLarge):
        read_messages(raw)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["role", "content", "type", "text", "tool_calls", "id", "function", "source"]), inner
        )
    ),
)
almost = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "tool", "system"]) | json_values},
    optional=dict.fromkeys(("content", "tool_calls", "tool_call_id", "thinking_blocks", "block_order"), json_values),
)


@settings(max_examples=120)
@given(st.lists(almost | json_values, max_size=3))
def test_whatever_comes_is_read_or_refused(raw: list[object]) -> None:
    try:
        inner = read_messages(raw)
    except InvalidRequest:
        return
    for written in (to_openai(inner), to_mistral(inner), to_litellm(inner), to_anthropic(inner)):
        json.dumps(written)
    for message in inner:
        assert isinstance(text_of(message), str)
