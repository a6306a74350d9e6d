from __future__ import annotations

from typing import cast

import pytest
from hypothesis import given, settings

from memory_service.messages.repair import repair_messages
from memory_service.messages.shapes import Message, is_tool_result, tool_calls_of
from memory_service.messages.units import Unit, units_of
from tests.memory_service.messages.test_repair import calls, result, says, sequences, system, user

CASES: dict[str, tuple[list[Message], list[tuple[str, int, int, bool]]]] = {
    "nothing": ([], []),
    "messages of their own": (
        [system("s"), user("u"), says("a")],
        [("system", 0, 0, False), ("user", 1, 1, False), ("assistant", 2, 2, False)],
    ),
    "a call and its result": ([user("u"), calls("a"), result("a")], [("user", 0, 0, False), ("calls", 1, 2, False)]),
    "parallel calls": (
        [calls("a", "b"), result("b"), result("a"), user("u")],
        [("calls", 0, 2, False), ("user", 3, 3, False)],
    ),
    "the last one waits": ([user("u"), calls("a")], [("user", 0, 0, False), ("calls", 1, 1, True)]),
    "the last one waits for the rest": ([calls("a", "b"), result("a")], [("calls", 0, 1, True)]),
    "what is not last does not wait": ([calls("a"), user("u")], [("calls", 0, 0, False), ("user", 1, 1, False)]),
    "a loop is a unit for each round": (
        [calls("a"), result("a"), calls("b"), result("b"), calls("c")],
        [("calls", 0, 1, False), ("calls", 2, 3, False), ("calls", 4, 4, True)],
    ),
    "results without a call": (
        [result("a"), says("x"), result("b"), result("c")],
        [("result", 0, 0, False), ("assistant", 1, 1, False), ("result", 2, 2, False), ("result", 3, 3, False)],
    ),
    "an empty list of calls": ([cast(Message, {**says("x"), "tool_calls": []})], [("assistant", 0, 0, False)]),
    "developers instruct too": ([cast(Message, {"role": "developer", "content": "s"})], [("system", 0, 0, False)]),
}


@pytest.mark.parametrize("case", CASES)
def test_case(case: str) -> None:
    messages, expected = CASES[case]
    assert [(unit.kind, unit.first, unit.last, unit.open) for unit in units_of(messages)] == expected


@settings(max_examples=100)
@given(sequences)
def test_units_cover_every_position_once_and_in_order(messages: list[Message]) -> None:
    units = units_of(messages)
    assert [at for unit in units for at in range(unit.first, unit.last + 1)] == [*range(len(messages))]
    assert sum(map(len, units)) == len(messages)
    assert not any(unit.open for unit in units[:-1])


@settings(max_examples=100)
@given(sequences)
def test_in_a_repaired_list_no_unit_needs_another(messages: list[Message]) -> None:
    view = repair_messages(messages).messages
    for unit in units_of(view):
        held = view[unit.first : unit.last + 1]
        asked = [call["id"] for call in tool_calls_of(held[0])]
        got = [message.get("tool_call_id") for message in held if is_tool_result(message)]
        assert got == asked if not unit.open else set(got) < set(asked)
        assert unit.kind != "result"


def test_a_unit_is_a_value() -> None:
    assert Unit(kind="user", first=0, last=0) == Unit(kind="user", first=0, last=0, open=False)
