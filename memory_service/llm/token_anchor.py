"""Counts of a provider, and the scale of estimates that is learned from them. Pure.

Invariants: what was counted before the view changed, or of another model, is not used; the same pairs always give the
same scale, read at once or again; a scale is within 0.6 to 2.5.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memory_service.llm.token_counter import _usage_tokens, same_model
from memory_service.messages.sizes import Usage

if TYPE_CHECKING:
    from memory_service.schemas.messages import ReadingSource, UsageReport


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


def usage_of(report: UsageReport | None, model: str | None = None, finish_reason: str | None = None) -> Usage | None:
    """The counts of a provider, whatever its names for them; None if it counted nothing and told nothing.

    Source: OpenAI API reference, "Chat completions", `usage`: `prompt_tokens` hold the cached ones, and so do the
    `input_tokens` of "Responses", which come with `input_tokens_details`. Anthropic API, "Messages": `input_tokens`
    do not hold those that were read from or written to the cache. litellm sends `prompt_tokens` that hold both.
    """
    if report is None or (report.prompt_tokens is None and report.input_tokens is None):
        return Usage(input_tokens=0, model=model, finish_reason=finish_reason) if finish_reason else None
    details = report.prompt_tokens_details or report.input_tokens_details
    count = (details.cached_tokens if details else None) or report.cache_read_input_tokens
    read = count or report.cache_read_tokens or 0
    write = report.cache_creation_input_tokens or report.cache_write_tokens or 0
    whole = report.prompt_tokens if report.prompt_tokens is not None else report.input_tokens or 0
    cached_count = read + write if report.prompt_tokens is not None else read if report.input_tokens_details else 0
    output = report.completion_tokens if report.completion_tokens is not None else report.output_tokens
    return Usage(
        input_tokens=max(whole - cached_count, 0),
        output_tokens=output or 0,
        cache_read_tokens=read,
        cache_write_tokens=write,
        model=model,
        finish_reason=finish_reason,
    )


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
