"""What the memory put into a conversation is taken out of it again, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexer.language.inserted import FOUND_HERE
from memory_service.compaction.checkpoint import Checkpoint, checkpoint_messages
from memory_service.text.frames import BLOCK_NOTE
from memory_service.text.injected import RECALLED, said_messages
from tests.growth import at_most_readings

BLOCK = (
    f'<relevant_context>\n{BLOCK_NOTE}\n<file path="memory/a.md" lines="1">\n周五不部署。\n</file>\n</relevant_context>'
)
PINS = str(checkpoint_messages(Checkpoint(pins=("- Never delete it.",)))[0]["content"])
RECORD = str(checkpoint_messages(Checkpoint(summary="We talked.", pins=("- Never.",), request="Go on."))[0]["content"])


def said(*messages: dict[str, Any]) -> list[Any]:
    return [message["content"] for message in said_messages(messages, set())]


def call(name: str, arguments: str = "{}") -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "type": "function", "function": function}]}


RESULT = {"role": "tool", "tool_call_id": "c", "content": "周五不部署。"}


@pytest.mark.parametrize("given", [BLOCK, PINS, RECORD, f"{RECORD}\n\n{BLOCK}", f"{PINS}\n\n{BLOCK}"])
@pytest.mark.parametrize(
    "frame",
    ["{}", "<system-reminder>\n{}\n</system-reminder>", "SessionStart hook additional context: {}",
     "<system-reminder>\nUserPromptSubmit hook additional context: {}\n</system-reminder>"],
)  # fmt: skip
def test_what_was_given_goes_and_what_was_said_stays(given: str, frame: str) -> None:
    injected = frame.format(given)
    assert said({"role": "user", "content": injected}) == []
    assert said({"role": "user", "content": f"When? 什么时候？\n{injected}"}) == ["When? 什么时候？"]
    assert said({"role": "user", "content": f"{injected}\n\nWhen? 什么时候？"}) == ["When? 什么时候？"]
    parts = [{"type": "text", "text": injected}, {"type": "text", "text": "When?"}, {"type": "image", "source": {}}]
    assert said({"role": "user", "content": parts}) == [parts[1:]]
    assert said({"role": "tool", "tool_call_id": "x", "content": injected}) == [RECALLED]


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("mcp__memory-service__search", "{}", RECALLED),
        ("memory_service_get", "{}", RECALLED),
        ("Bash", json.dumps({"command": "memory-service search 部署 --limit 3"}), RECALLED),
        ("shell", json.dumps({"command": ["bash", "-lc", "memory-service context deploys"]}), RECALLED),
        ("Bash", json.dumps({"command": "grep memory-service README.md"}), "周五不部署。"),
        ("search", "not json", "周五不部署。"),
    ],
)
def test_the_result_of_a_call_that_asked_the_memory_is_left_out(name: str, arguments: str, expected: str) -> None:
    assert said(call(name, arguments), RESULT) == [None, expected]


@pytest.mark.parametrize("written", [json.dumps, str])
def test_a_result_with_passages_of_an_adapter_is_left_out(written: Callable[[object], str]) -> None:
    found = [{"content": "周五不部署。", "metadata": {"source": "memory/a.md#L1", **FOUND_HERE}}]
    assert said(call("any_name"), {**RESULT, "content": written(found)}) == [None, RECALLED]
    parts = [{"type": "tool_result", "tool_use_id": "c", "content": written(found)}]
    assert said({"role": "user", "content": parts}) == [[{**parts[0], "content": RECALLED}]]


def test_a_result_may_come_later() -> None:
    asked = set[str]()
    said_messages([call("mcp__memory-service__search")], asked)
    assert [each["content"] for each in said_messages([RESULT], asked)] == [RECALLED]


def test_messages_of_no_known_shape_stay() -> None:
    odd: list[Any] = [{"role": 7}, {"role": "user", "content": 7}, {"role": "user", "content": [7, {"type": "text"}]}]
    odd += [{"role": "assistant", "tool_calls": [7, {"function": 7}], "content": ""}, {"role": "tool"}, {}]
    assert said_messages(odd, set()) == [*odd[:4], {**odd[4], "content": None}, odd[5]]


@given(st.text())
def test_other_text_stays_word_for_word(text: str) -> None:
    assert said({"role": "user", "content": text}) == [text]


def test_text_that_opens_and_never_ends_is_read_in_linear_time() -> None:
    text = BLOCK + f"<relevant_context>\n{BLOCK_NOTE}\n" * 20_000 + "x" * 1_000_000
    with at_most_readings(100):
        assert said({"role": "user", "content": text}) == [text.removeprefix(BLOCK)]
