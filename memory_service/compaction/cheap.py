"""Owns the order of the cheap steps: each in turn, measured behind it, until the view is small enough. Pure.

Invariants: what a step takes out, no later step counts again; nothing that is pinned or still runs is touched.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from memory_service.compaction import pruning
from memory_service.compaction.duplicates import duplicates
from memory_service.compaction.media import media
from memory_service.compaction.steps import Given, Pruned, PruningRules, pruned_view
from memory_service.compaction.stubs import guarded, placeholder_text
from memory_service.messages import Numbered, is_tool_result, numbered, text_of

PruningMode = Literal["to_target", "cache_ttl", "budget", "off"]
_SQUEEZE_TRIES = 12
_TOO_LARGE = "[Results of tools left out: they are too large for the window]"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheapStep:
    """A step that took something out."""

    name: str
    tokens_before: int
    tokens_after: int
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Cheap:
    """What the cheap steps came to.

    Attributes:
        tail: The messages behind them.
        cleared: The text that stands for a result, by message.
        stripped: Messages whose media give way to labels.
        gain: Tokens saved.
    """

    tail: tuple[Numbered, ...]
    cleared: Mapping[int, str] = field(default_factory=dict)
    stripped: tuple[int, ...] = ()
    gain: int = 0
    steps: tuple[CheapStep, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CheapWish:
    """What the steps work towards; tokens by estimate.

    Attributes:
        tokens: What the whole view takes.
        target_tokens: Enough is done below this.
        hard: The view was refused, or does not fit: any gain counts.
    """

    mode: PruningMode
    tokens: int
    target_tokens: int
    usable_tokens: int
    window_tokens: int
    now: dt.datetime
    last_used_at: dt.datetime | None = None
    hard: bool = False


def cheapened(tail: Sequence[Numbered], rules: PruningRules, wish: CheapWish, given: Given) -> Cheap:
    """Take out what is old, double, or media, as the mode wants it."""
    work = _Work(tail, wish, given, _sharing(tail))
    if wish.mode == "off":
        return work.done()
    if wish.mode == "cache_ttl":
        work.take(
            "cache_ttl",
            pruning.cache_ttl(
                tail,
                rules,
                window_tokens=wish.window_tokens,
                tokens=wish.tokens,
                now=wish.now,
                last_used_at=wish.last_used_at,
                given=work.of_results(),
            ),
        )
    elif wish.mode == "budget":
        work.take("budget", pruning.budget(tail, rules, given=work.of_results()))
    else:
        work.take("duplicates", duplicates(tail, rules, given=work.of_results()))
        work.take(
            "old_results",
            pruning.to_target(
                tail,
                rules,
                tokens=work.tokens,
                target_tokens=wish.target_tokens,
                window_tokens=wish.window_tokens,
                usable_tokens=wish.usable_tokens,
                force=wish.hard,
                given=work.of_results(),
            ),
        )
    if work.tokens > wish.target_tokens:
        work.take("media", media(tail, hard=wish.hard, given=work.given))
    return work.done()


def squeezed(tail: Sequence[Numbered], room_tokens: int, *, protected: Sequence[int] = ()) -> Cheap:
    """Cut every result to the largest size at which the messages fit; to a few words if none does.

    Results that share a number can only be cut to one text for all of them: that is done where the rest is not enough.
    """
    sharing = _sharing(tail) - {*protected}
    done = _squeezed(tail, room_tokens, {*protected, *sharing})
    if not sharing or sum(each.tokens for each in done.tail) <= room_tokens:
        return done
    placed = {seq: placeholder_text(_TOO_LARGE, seq) for seq in sharing}
    done = _squeezed(pruned_view(tail, placed), room_tokens, {*protected, *sharing})
    return replace(done, cleared={**placed, **done.cleared})


def _squeezed(tail: Sequence[Numbered], room_tokens: int, protected: Collection[int]) -> Cheap:
    results = [each for each in tail if is_tool_result(each.message) and each.seq not in protected]
    fixed = sum(each.tokens for each in tail) - sum(each.tokens for each in results)
    low, high = 200, max((len(text_of(each.message)) * 4 for each in results), default=200)
    for _ in range(_SQUEEZE_TRIES):
        middle = (low + high) // 2
        if fixed + sum(_cut(each, middle).tokens for each in results) <= room_tokens:
            low = middle
        else:
            high = middle
    cleared = {each.seq: text_of(_cut(each, low).message) for each in results if _cut(each, low) is not each}
    return Cheap(tail=tuple(pruned_view(tail, cleared)), cleared=cleared)


def _cut(each: Numbered, limit_chars: int) -> Numbered:
    message = guarded(each.message, limit_chars, each.seq)
    return each if message is each.message else numbered(message, each.seq, each.at)


def _sharing(tail: Sequence[Numbered]) -> frozenset[int]:
    """The numbers that several results have: one message of Anthropic's holds all results of a turn.

    A text stands for a number, so one that is made for one of these results would stand for the others too.
    """
    counts = Counter(each.seq for each in tail if is_tool_result(each.message))
    return frozenset(seq for seq, count in counts.items() if count > 1)


class _Work:
    def __init__(self, tail: Sequence[Numbered], wish: CheapWish, given: Given, sharing: frozenset[int]) -> None:
        self._tail, self._before, self._sharing = tail, wish.tokens, sharing
        self._steps = list[CheapStep]()
        self._cleared = dict[int, str]()
        self._stripped = list[int]()
        self.tokens, self.given = wish.tokens, given

    def of_results(self) -> Given:
        """What is settled for steps that put a text for a result."""
        return replace(self.given, protected=self._sharing.union(self.given.protected))

    def take(self, name: str, step: Pruned) -> None:
        if not (step.cleared or step.stripped):
            return
        after = self.tokens - step.gain_tokens
        count = len({*step.cleared, *step.stripped})
        self._steps.append(CheapStep(name=name, tokens_before=self.tokens, tokens_after=after, count=count))
        self.tokens, self.given = after, self.given.after(step)
        self._cleared.update(step.cleared)
        self._stripped += step.stripped

    def done(self) -> Cheap:
        stripped = tuple(sorted(set(self._stripped)))
        tail = pruned_view(self._tail, self._cleared, stripped) if self._steps else self._tail
        return Cheap(
            tail=tuple(tail),
            cleared=self._cleared,
            stripped=stripped,
            gain=self._before - self.tokens,
            steps=tuple(self._steps),
        )
