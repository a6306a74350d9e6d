"""The cut of a compaction, before the messages that stay word for word. Pure.

Invariants: a cut never parts a call from its results, nor what one message of the log was read as; what waits for a
result is never cut off; at least one unit stays.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import accumulate

from memory_service.compaction.budget import Count, Share, Tokens
from memory_service.messages.shapes import is_system, is_tool_result, tool_calls_of
from memory_service.messages.sizes import Numbered
from memory_service.messages.units import Unit, units_of

# A cut before a user's message reads better than one in the middle of a turn: it may cost this share of the tail.
_TOWARDS_USER = 0.3


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepRules:
    """How much stays word for word; where several are set, the least counts.

    Attributes:
        share: Of the usable window.
        least_tokens: At least this, whatever the share comes to.
        most_tokens: At most this; None where tokens are not counted.
        turns: The last turns, each from a user's message on; None for any number.
        messages: The last messages; None for as many as `messages_by_window` says.
        messages_by_window: The same by the size of the window: (window, count), smallest first; empty for any.
        emergency_messages: The last messages after an overflow; None for the same as else.
    """

    share: Share = 0.25
    least_tokens: Tokens = 2_000
    most_tokens: Tokens | None = 20_000
    turns: Count | None = None
    messages: Count | None = None
    messages_by_window: tuple[tuple[int, int], ...] = ()
    emergency_messages: Count | None = None

    @property
    def counts(self) -> bool:
        """True if turns or messages are counted instead of tokens."""
        is_counted = self.turns is not None or self.messages is not None or bool(self.messages_by_window)
        return is_counted and self.most_tokens is None

    def tokens(self, usable_tokens: int) -> int:
        """Tokens that stay, for a window of which this many can be used."""
        if self.most_tokens is None:
            return usable_tokens
        return min(usable_tokens, max(self.least_tokens, min(self.most_tokens, int(usable_tokens * self.share))))

    def last_messages(self, window_tokens: int, *, emergency: bool) -> int | None:
        """Messages that stay; None for any number."""
        if emergency and self.emergency_messages is not None:
            return self.emergency_messages
        if self.messages is not None:
            return self.messages
        counts = [count for window, count in self.messages_by_window if window <= window_tokens]
        return counts[-1] if counts else self.messages_by_window[0][1] if self.messages_by_window else None


def turns_of(messages: Sequence[Numbered]) -> list[int]:
    """Where turns begin: at each message of the user that follows none of its own."""
    return [
        at
        for at, message in enumerate(messages)
        if message.message["role"] == "user" and (at == 0 or messages[at - 1].message["role"] != "user")
    ]


def cut_by_tokens(messages: Sequence[Numbered], keep_tokens: int, *, live: Collection[str] = ()) -> int:
    """The first of the messages that stay, when about `keep_tokens` do.

    Args:
        messages: Those after the last cut, without system messages of the beginning.
        keep_tokens: Tokens that may stay; one unit does anyhow.
        live: Ids of calls that still run.
    """
    units = units_of([message.message for message in messages])
    if not units:
        return 0
    summed_numbers = [0, *accumulate(message.tokens for message in messages)]
    total, at = summed_numbers[-1], len(units) - 1
    while at > 0 and total - summed_numbers[units[at - 1].first] <= keep_tokens:
        at -= 1
    spare = _TOWARDS_USER * keep_tokens
    for later in range(at, len(units)):
        if summed_numbers[units[later].first] - summed_numbers[units[at].first] > spare:
            break
        if units[later].kind == "user":
            at = later
            break
    return _border_before(messages, units, units[at].first, live)


def cut_by_turns(messages: Sequence[Numbered], turns: int, *, live: Collection[str] = ()) -> int:
    """The first of the messages that stay, when the last turns do; 0 if there are no more than those."""
    begins = turns_of(messages)
    if len(begins) <= turns:
        return 0
    return _border_before(messages, units_of([message.message for message in messages]), begins[-turns], live)


def cut_by_count(messages: Sequence[Numbered], count: int, *, live: Collection[str] = ()) -> int:
    """The first of the messages that stay, when the last `count` do, and those they must not be parted from."""
    at = max(0, len(messages) - count)
    return _border_before(messages, units_of([message.message for message in messages]), at, live)


def largest_counted_cut(
    messages: Sequence[Numbered], least_at: int, room_tokens: int, *, by_turns: bool, live: Collection[str] = ()
) -> int | None:
    """The first place behind `least_at` where no more stays than there is room for; None where one thing alone is more.

    Args:
        messages: Those after the last cut.
        least_at: The first of the messages that the whole count would keep.
        room_tokens: What may stay.
        by_turns: Whether turns are counted, so that a cut stands where one begins.
        live: Ids of calls that still run.
    """
    units = units_of([message.message for message in messages])
    summed_numbers = [0, *accumulate(message.tokens for message in messages)]
    places = turns_of(messages) if by_turns else [unit.first for unit in units]
    for at in places:
        if at > least_at and summed_numbers[-1] - summed_numbers[at] <= room_tokens:
            border = _border_before(messages, units, at, live)
            return border if border > least_at and summed_numbers[-1] - summed_numbers[border] <= room_tokens else None
    return None


def halving_cut(messages: Sequence[Numbered], most_tokens: int) -> int:
    """How many of the oldest messages go for the rest to take no more: the older half of what is left, each time."""
    units = units_of([message.message for message in messages])
    summed_numbers = [0, *accumulate(message.tokens for message in messages)]
    total, at = summed_numbers[-1], 0
    while total - summed_numbers[at] > most_tokens:
        half = (summed_numbers[at] + total) / 2
        later = next((unit.first for unit in units if unit.first > at and summed_numbers[unit.first] >= half), None)
        if later is None:
            break
        at = later
    return at


def _border_before(messages: Sequence[Numbered], units: Sequence[Unit], at: int, live: Collection[str]) -> int:
    """The last place at or before `at` where a cut may be."""
    running = next((unit.first for unit in units if _is_live(messages, unit, live)), len(messages))
    at = min(at, running)
    begins = {unit.first for unit in units}
    while at > 0 and (at not in begins or messages[at - 1].seq == messages[at].seq):
        at -= 1
    return at


def has_running_call(messages: Sequence[Numbered], live: Collection[str]) -> bool:
    """True if a call among the messages still runs, so that not all of them can be covered."""
    return any(_is_live(messages, unit, live) for unit in units_of([message.message for message in messages]))


def covered_by(messages: Sequence[Numbered], at: int) -> tuple[tuple[Numbered, ...], tuple[Numbered, ...]]:
    """Messages that a cut covers: whole turns, and the first half of the turn that it splits; no system messages."""
    begins = turns_of(messages)
    splits = at < len(messages) and messages[at].message["role"] != "user"
    last = max((begin for begin in begins if begin < at), default=None)
    border = last if splits and last is not None and not any(at <= begin for begin in begins) else at
    whole, prefix = messages[:border], messages[border:at]
    return (
        tuple(message for message in whole if not is_system(message.message)),
        tuple(message for message in prefix if not is_system(message.message)),
    )


def _is_live(messages: Sequence[Numbered], unit: Unit, live: Collection[str]) -> bool:
    # Of the last unit, nobody else has spoken since: its tools may still answer, also those that said so.
    last = unit.last == len(messages) - 1
    waiting = {call["id"] for call in tool_calls_of(messages[unit.first].message) if last or call["id"] in live}
    if not waiting:
        return False
    tool_call_ids = {
        message.message.get("tool_call_id")
        for message in messages[unit.first + 1 :]
        if is_tool_result(message.message) and not message.message.get("interim")
    }
    return not waiting <= tool_call_ids
