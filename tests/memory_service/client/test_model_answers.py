"""Answers in the shapes of all packages, and what is none."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from memory_service import InvalidRequest, Reply, UpstreamFailed
from memory_service.client._messages import (
    _message_of,
    _text_of,
    prompt_tokens,
    read_answer,
    usage_report,
    wire_messages,
)


class Function(BaseModel):
    name: str
    arguments: str


class ToolCall(BaseModel):
    id: str
    type: str = "function"
    function: Function


class Message(BaseModel):
    role: str = "assistant"
    content: str | None = None
    tool_calls: list[ToolCall] | None = None
    refusal: str | None = None


@dataclass
class Block:
    type: str
    text: str


CALL = ToolCall(id="call_1", function=Function(name="look", arguments='{"城市": "柏林"}'))
PLAIN_CALL = CALL.model_dump()


def test_an_object_is_read_as_a_mapping_is() -> None:
    made = SimpleNamespace(
        choices=[SimpleNamespace(message=Message(tool_calls=[CALL]), finish_reason="tool_calls")],
        usage=SimpleNamespace(prompt_tokens=7, completion_tokens=2, prompt_tokens_details=None),
    )
    mapping = {
        "choices": [{"message": {"content": None, "tool_calls": [PLAIN_CALL]}, "finish_reason": "tool_calls"}],
        "usage": {"prompt_tokens": 7, "completion_tokens": 2},
    }
    one, other = read_answer(made), read_answer(mapping)
    assert one.message == other.message == {"role": "assistant", "content": None, "tool_calls": [PLAIN_CALL]}
    assert (one.finish_reason, one.empty, prompt_tokens(one.usage)) == ("tool_calls", False, 7)


def test_anthropics_answer() -> None:
    usage = {"input_tokens": 3, "output_tokens": 2, "cache_read_input_tokens": 40, "cache_creation_input_tokens": 5}
    blocks = [Block(type="text", text="你好"), {"type": "tool_use", "id": "t", "name": "look", "input": {}}]
    answer = read_answer({"type": "message", "id": "m", "content": blocks, "stop_reason": "max_tokens", "usage": usage})
    assert answer.message["content"][0] == {"type": "text", "text": "你好"}
    assert (answer.text, answer.is_cut, prompt_tokens(answer.usage)) == ("你好", True, 48)


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        (None, 0),
        ({"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 8}}, 9),
        ({"input_tokens": 9, "input_tokens_details": {"cached_tokens": 8}}, 9),
        ({"input_tokens": 9, "cache_read_tokens": 8, "cache_write_tokens": 2}, 19),
        ({"total_tokens": 9}, 0),
    ],
)
def test_the_whole_prompt_is_counted(usage: object, tokens: int) -> None:
    assert prompt_tokens(usage_report(usage)) == tokens


@pytest.mark.parametrize("usage", [7, "many", [1], {"prompt_tokens": -1}, {"prompt_tokens": "x"}])
def test_usage_of_no_shape_counts_nothing(usage: object) -> None:
    answer = read_answer({"choices": [{"message": {"content": "x"}}], "usage": usage})
    assert (answer.text, answer.usage) == ("x", None)


@pytest.mark.parametrize(
    ("message", "empty"),
    [
        ({"content": " \n"}, True),
        ({"content": []}, True),
        ({"content": [{"type": "text", "text": ""}, {"type": "thinking", "thinking": "…"}]}, True),
        ({"content": None, "tool_calls": []}, True),
        ({"content": None, "tool_calls": [PLAIN_CALL]}, False),
        ({"content": None, "refusal": "No."}, False),
        ({"content": None, "function_call": {"name": "x"}}, False),
        ({"content": [{"type": "image_url", "image_url": {"url": "x"}}]}, False),
        ({"content": "。"}, False),
    ],
)
def test_what_an_empty_answer_is(message: dict[str, Any], empty: bool) -> None:
    assert read_answer({"choices": [{"message": message}]}).empty is empty
    assert Reply(message=message).text == _text_of(message)


@pytest.mark.parametrize("value", [None, 7, b"x", [], {}, object(), iter("x"), {"message": "x"}, (x for x in "ab")])
def test_what_is_no_answer_is_named(value: object) -> None:
    with pytest.raises(InvalidRequest, match=rf"type {type(value).__name__}, no answer.*without streaming"):
        read_answer(value)


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ({"error": {"message": "余额不足", "code": 402}}, "余额不足"),
        ({"choices": [], "error": "busy"}, "busy"),
        ({"choices": []}, "no choices"),
        ({"choices": [{"delta": {}}]}, "no choices"),
    ],
)
def test_a_report_of_an_error_is_no_answer(value: object, told: str) -> None:
    with pytest.raises(UpstreamFailed, match=told):
        read_answer(value)


def test_messages_come_one_by_one_or_in_a_list() -> None:
    one = Message(role="user", content="甲")
    assert (
        wire_messages(one) == wire_messages([one]) == wire_messages(iter([one])) == [{"role": "user", "content": "甲"}]
    )
    assert _message_of({"role": "tool", "content": None, "name": None}) == {"role": "tool", "content": None}
    deep: object = "x"
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(InvalidRequest, match="deeply"):
        _message_of({"role": "user", "content": deep})


JSON = st.recursive(st.none() | st.booleans() | st.text() | st.integers(), lambda one: st.lists(one, max_size=3))


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(["choices", "content", "error", "type", "usage", "tool_calls"]), JSON))
def test_any_mapping_is_an_answer_or_our_error(value: dict[str, Any]) -> None:
    try:
        answer = read_answer(value)
    except (InvalidRequest, UpstreamFailed):
        return
    assert isinstance(answer.text, str)
    assert isinstance(answer.empty, bool)
