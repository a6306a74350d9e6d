"""Chunks of a conversation, each read by one call, by a share of the window. Pure.

Invariants: of the chunks, every message is in one, in order; a call and its results are never parted; none is empty.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TypeVar

from memory_service.messages.sizes import Numbered
from memory_service.messages.units import units_of

# Source: OpenClaw, compaction; seeds 000, 002 and 003 tell the same numbers.
CHUNK_RATIO = 0.4
MIN_CHUNK_RATIO = 0.15
SAFETY = 1.2
OVERHEAD_TOKENS = 4_096
LARGE_SHARE = 0.1
OVERSIZED_SHARE = 0.5
_N = TypeVar("_N", bound=Numbered)


def adaptive_ratio(
    messages: Sequence[Numbered],
    window_tokens: int,
    *,
    base: float = CHUNK_RATIO,
    least: float = MIN_CHUNK_RATIO,
    safety: float = SAFETY,
) -> float:
    """The share of the window that a chunk may take: less where the messages are large.

    It is `base` until the mean message, with its safety margin, is over a tenth of the window; from there on twice
    that share is taken off, down to `least`. Source: seed 003, 3.2, as in OpenClaw's code; seed 002 leaves out the
    threshold.
    """
    if not messages or window_tokens <= 0:
        return base
    mean_share = sum(message.tokens for message in messages) / len(messages) * safety / window_tokens
    if mean_share <= LARGE_SHARE:
        return base
    return max(least, base - min(2 * mean_share, base - least))


def chunk_tokens(window_tokens: int, ratio: float, *, overhead_tokens: int = OVERHEAD_TOKENS) -> int:
    """The largest chunk, in tokens with their safety margin.

    The overhead of prompt and answer is taken off, though never more than half: a small window would have no chunk.
    """
    share = int(window_tokens * ratio)
    return max(1, share - overhead_tokens, share // 2)


def is_oversized(message: Numbered, window_tokens: int, *, safety: float = SAFETY) -> bool:
    """True if a message alone takes more than half the window, so that no chunk can hold it."""
    return message.tokens * safety > window_tokens * OVERSIZED_SHARE


def group_by_unit(messages: Sequence[_N]) -> list[tuple[_N, ...]]:
    """The messages by units."""
    units = units_of([message.message for message in messages])
    return [tuple(messages[unit.first : unit.last + 1]) for unit in units]


def group_tokens(group: Sequence[Numbered]) -> int:
    """Tokens of a unit."""
    return sum(message.tokens for message in group)


def first_chunk(groups: Sequence[Sequence[Numbered]], start: int, max_tokens: int, *, safety: float = SAFETY) -> int:
    """End of the chunk that begins with the unit `start`; at least one unit, however large."""
    end, used_value = start, 0.0
    while end < len(groups):
        used_value += group_tokens(groups[end]) * safety
        if used_value > max_tokens and end > start:
            break
        end += 1
    return end


def chunks(messages: Sequence[_N], max_tokens: int, *, safety: float = SAFETY) -> list[tuple[_N, ...]]:
    """The messages in chunks, each as large as it may be.

    Args:
        messages: In order.
        max_tokens: The most that a chunk takes with the safety margin; a larger unit is a chunk of its own.
        safety: By what the estimates are multiplied.
    """
    groups = group_by_unit(messages)
    borders = [0]
    while borders[-1] < len(groups):
        borders.append(first_chunk(groups, borders[-1], max_tokens, safety=safety))
    return [_flatten(groups[start:end]) for start, end in pairwise(borders)]


def parts(messages: Sequence[_N], count: int) -> list[tuple[_N, ...]]:
    """The messages in equal shares of tokens.

    Args:
        messages: In order.
        count: How many shares; fewer come back where there are fewer units, or some are too large.
    """
    groups = group_by_unit(messages)
    total = sum(map(group_tokens, groups)) or 1
    shares: dict[int, list[tuple[_N, ...]]] = {}
    for group, middle in _with_middles(groups):
        # A unit belongs where its middle lies.
        shares.setdefault(min(int(middle / total * count), count - 1), []).append(group)
    return [_flatten(share) for share in shares.values()]


def _with_middles(groups: Sequence[tuple[_N, ...]]) -> Iterator[tuple[tuple[_N, ...], float]]:
    before = 0
    for group in groups:
        size = group_tokens(group)
        yield group, before + size / 2
        before += size


def _flatten(groups: Sequence[tuple[_N, ...]]) -> tuple[_N, ...]:
    return tuple(value for group in groups for value in group)
