"""Owns what must not be torn apart: an assistant message with tool calls and the results that follow it.

Invariants: pure; linear; units cover every position once, in order; any sequence is taken, valid on a wire or not.
A chain of calls and results with thinking in between is a unit for each of its rounds, not one as a whole: an
agent's work is often a single such chain, and a tail that begins with a round keeps that round's thinking.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from memory_service.messages import Message, is_system, is_tool_result, tool_calls_of

UnitKind = Literal["system", "user", "assistant", "calls", "result"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """Neighbouring messages that stand or go together.

    Attributes:
        kind: `calls` is an assistant message with calls and its results; `result` is one without its call.
        first: Position of its first message, from 0.
        last: Position of its last message.
        open: Whether it is the last unit and waits for results; what is open is never compacted.
    """

    kind: UnitKind
    first: int
    last: int
    open: bool = False

    def __len__(self) -> int:
        """How many messages it has."""
        return self.last - self.first + 1


def units_of(messages: Sequence[Message]) -> list[Unit]:
    """Groups messages into units."""
    units: list[Unit] = []
    at = 0
    while at < len(messages):
        end = _end_of_unit(messages, at)
        waits = end == len(messages) and bool(unanswered(messages[at:end]))
        units.append(Unit(kind=_kind_of(messages[at]), first=at, last=end - 1, open=waits))
        at = end
    return units


def unanswered(unit: Sequence[Message]) -> list[str]:
    """The ids of the calls of a unit's messages that have no result, in their order."""
    if not unit:
        return []
    answered = {message.get("tool_call_id") for message in unit[1:]}
    return [call["id"] for call in tool_calls_of(unit[0]) if call["id"] not in answered]


def _end_of_unit(messages: Sequence[Message], at: int) -> int:
    end = at + 1
    while tool_calls_of(messages[at]) and end < len(messages) and is_tool_result(messages[end]):
        end += 1
    return end


def _kind_of(message: Message) -> UnitKind:
    if is_tool_result(message):
        return "result"
    if is_system(message):
        return "system"
    if tool_calls_of(message):
        return "calls"
    return "assistant" if message["role"] == "assistant" else "user"
