"""Units that must stay together: an assistant message with tool calls, and the results of each. Pure.

Invariants: linear; units cover every position once, in order; any sequence is taken, valid on a wire or not. A chain of
calls and results with thinking in between is a unit for each of its rounds: an agent's work is often a single such
chain, and a tail that begins with a round keeps that round's thinking. A result belongs to the latest call before it
that has its id; of several such calls in one message, the first that has none yet. Of several results of one call, the
first real one counts; of a tool that said it still runs, the last. What was decided for a list stays decided when
messages come behind it, except that a late real result replaces a stand-in, and a final one an interim one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from memory_service.messages.shapes import Message, is_empty, is_system, is_tool_result, text_of, tool_calls_of

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
        """Number of messages in the unit."""
        return self.last - self.first + 1


def units_of(messages: Sequence[Message]) -> list[Unit]:
    """Groups messages into units."""
    units: list[Unit] = []
    at = 0
    while at < len(messages):
        end = _end_of_unit(messages, at)
        waits = end == len(messages) and bool(_unanswered_ids(messages[at:end]))
        units.append(Unit(kind=_kind_of(messages[at]), first=at, last=end - 1, open=waits))
        at = end
    return units


def _unanswered_ids(unit: Sequence[Message]) -> list[str]:
    """The ids of the calls of a unit's messages that have no result, in their order."""
    if not unit:
        return []
    tool_call_ids = {message.get("tool_call_id") for message in unit[1:]}
    return [call["id"] for call in tool_calls_of(unit[0]) if call["id"] not in tool_call_ids]


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


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairTexts:
    """Texts of one language that make a sequence valid.

    Attributes:
        missing: Stands in for a result that is not there.
        running: Stands in for one that will come.
        first_user: Stands before what the assistant began.
        after_result: Stands between a result and the user.
        orphan: Stands above a result without its call.
        late: Stands above a result that came after another one.
        system: Stands above a system message that became the user's text.
    """

    missing: str
    running: str
    first_user: str
    after_result: str
    orphan: str
    late: str
    system: str


# Below the table of all other texts, which knows messages; by the code of the language, as there.
REPAIR_TEXTS: Mapping[str, RepairTexts] = MappingProxyType(
    {
        "en": RepairTexts(
            missing="[The result of this tool call is missing: it was interrupted, or its result was never recorded.]",
            running="[This tool call still runs. Its result will follow.]",
            first_user="[The conversation goes on.]",
            after_result="[No answer to the result above.]",
            orphan="[Result of a tool call that is not shown any more]",
            late="[Late result of an earlier tool call]",
            system="[System message]",
        ),
        "zh": RepairTexts(
            missing="[没有这次工具调用的结果：调用被中断，或者结果没有记下来。]",
            running="[这次工具调用还在运行，结果随后就到。]",
            first_user="[对话继续。]",
            after_result="[上面的结果没有得到回答。]",
            orphan="[一次已不显示的工具调用的结果]",
            late="[较早的工具调用迟到的结果]",
            system="[系统消息]",
        ),
    }
)
_STAND_INS = frozenset(text for texts in REPAIR_TEXTS.values() for text in (texts.missing, texts.running))

UnitCall = tuple[int, int]  # position of the message, position of the call in it


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitReply:
    """A result of a call; `late` when other messages stand between the two."""

    at: int
    message: Message
    late: bool


def replies_of(messages: Sequence[Message]) -> dict[UnitCall, list[UnitReply]]:
    """Finds the results of every call; what is in none of the lists has no call."""
    replies: dict[UnitCall, list[UnitReply]] = {}
    latest: dict[str, list[UnitCall]] = {}
    holder = -1
    for at, message in enumerate(messages):
        if is_tool_result(message):
            waiting = latest.get(message.get("tool_call_id", ""))
            if waiting:
                # The last of them stays, for results that come twice.
                call = waiting.pop() if len(waiting) > 1 else waiting[0]
                replies[call].append(UnitReply(at=at, message=message, late=call[0] != holder))
        else:
            holder = at
            calls = _calls_by_id(at, message)
            latest |= calls
            replies |= {call: [] for same in calls.values() for call in same}
    return replies


def _calls_by_id(at: int, message: Message) -> dict[str, list[UnitCall]]:
    """The calls of a message, the first of an id at the end."""
    calls: dict[str, list[UnitCall]] = {}
    for position, call in reversed([*enumerate(tool_calls_of(message))]):
        calls.setdefault(call["id"], []).append((at, position))
    return calls


def winner_of(replies: Sequence[UnitReply], *, runs: bool) -> UnitReply | None:
    """The result that counts; `runs` when the call is known to answer more than once."""
    real = [reply for reply in replies if not _is_stand_in(reply.message) and not is_empty(reply.message)] or replies
    if runs or any(reply.message.get("interim") for reply in real):
        final = [reply for reply in real if not reply.message.get("interim")] or real
        return final[-1] if final else None
    return real[0] if real else None


def says_more(reply: UnitReply, winner: UnitReply) -> bool:
    """True if a result that does not count says something that has to be kept: it came later and is another one."""
    new = reply.late and reply.at > winner.at and reply.message.get("content") != winner.message.get("content")
    return new and not is_empty(reply.message) and not _is_stand_in(reply.message)


def _is_stand_in(message: Message) -> bool:
    """True if a result was put in by us; views come back to us from callers that store them."""
    return text_of(message) in _STAND_INS


def new_ids(messages: Sequence[Message]) -> dict[UnitCall, str]:
    """Ids for the calls that have none or one that an earlier call has; the same whatever comes behind them."""
    seen_keys: set[str] = set()
    counts: dict[str, int] = {}
    renamed_values: dict[UnitCall, str] = {}
    for at, message in enumerate(messages):
        for position, call in enumerate(tool_calls_of(message)):
            call_id = call["id"]
            if not call_id or call_id in seen_keys:
                call_id = renamed_values[at, position] = _free_id(call_id or "call", seen_keys, counts)
            seen_keys.add(call_id)
    return renamed_values


def _free_id(base: str, seen_keys: set[str], counts: dict[str, int]) -> str:
    count = counts.get(base, 1) + 1
    while f"{base}_{count}" in seen_keys:
        count += 1
    counts[base] = count
    return f"{base}_{count}"
