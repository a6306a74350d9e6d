"""Scale of estimates, learned from what a provider counted. Pure.

Invariants: what was counted before the view changed, or of another model, is not used; the same pairs always give the
same scale, read at once or again; a scale is within 0.6 to 2.5.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memory_service.messages.sizes import Usage

if TYPE_CHECKING:
    from memory_service.schemas.sessions import ReadingSource
from memory_service.llm.token_counter import _usage_tokens, same_model


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchor:
    """A provider's count of a prompt, for calibration.

    Attributes:
        tokens: The whole prompt and the answer to it.
        covered_count: How many messages of the view these are, from the first on.
    """

    tokens: int
    covered_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Size of a view in the model's tokens.

    Attributes:
        source: What it rests on: the provider's count, a tokenizer, or characters.
        scale: What estimates were multiplied with.
    """

    tokens: int
    source: ReadingSource
    scale: float


def measure_view(estimates: Sequence[int], *, anchor: Anchor | None = None, scale: float = 1.0) -> Reading:
    """Measure a view in the model's tokens.

    Args:
        estimates: Size of each message of the view, in tokens.
        anchor: See `anchor_of`.
        scale: See `learned_scale`.
    """
    if anchor is None:
        return Reading(tokens=scale_tokens(sum(estimates), scale), source="estimate", scale=scale)
    after = scale_tokens(sum(estimates[anchor.covered_count :]), scale)
    return Reading(tokens=anchor.tokens + after, source="usage", scale=scale)


def scale_tokens(tokens: int, scale: float) -> int:
    """Tokens as a model counts them, rounded up, of so many estimated."""
    # Rounded first: 10 * 1.1 is 11.000000000000002.
    return math.ceil(round(tokens * scale, 6))


def anchor_of(
    counted_pairs: Iterable[tuple[int, Usage]], *, seqs: Sequence[int], changed_seq: int = 0, model: str | None = None
) -> Anchor | None:
    """The last count that still holds for a view.

    Args:
        counted_pairs: What providers counted, each with the number of the last record before that, in order.
        seqs: The number of each message of the view, never falling; 0 for those that no record holds.
        changed_seq: The last record that changed what was said before it: a compaction, or the undo of one, after
            which the counts of the compacted view would be far too low.
        model: The model that the view is for; None is any.
    """
    for seq, usage in reversed(list(counted_pairs)):
        if seq <= changed_seq:
            return None
        if _usage_tokens(usage) > 0 and same_model(usage.model, model):
            return Anchor(tokens=_usage_tokens(usage) + usage.output_tokens, covered_count=bisect_right(seqs, seq))
    return None
