"""Owns how many tokens a view takes: what the provider counted last, and a corrected estimate of what came after.

Invariants: pure; what was counted before the view changed, or of another model, is not used; the same pairs always
give the same scale, read at once or again; a scale is within 0.6 to 2.5.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from memory_service.sessions.records import Usage

ReadingSource = Literal["usage", "tokenizer", "estimate"]

# Source: measured with the tokenizers of GPT-4 and GPT-4o against our estimate: English 0.9 to 1.0, code 1.0, Chinese
# 0.8 to 1.1, Russian 1.2 to 1.9, short JSON 2.1, digests 2.6. Only GPT-4 itself goes beyond, to 3.8 in Hindi and Thai.
LEAST_SCALE, MOST_SCALE = 0.6, 2.5
# What a call weighs against the one after it.
_FADING = 0.7

# "gpt-4o" is asked for and "gpt-4o-2024-08-06" answers.
_RELEASE = re.compile(r"[-@:](?:latest|\d{8}|\d{4}-\d{2}-\d{2})\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchor:
    """What a provider counted.

    Attributes:
        tokens: The whole prompt and the answer to it.
        covered: How many messages of the view these are, from the first on.
    """

    tokens: int
    covered: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a view takes, in tokens as the model counts them.

    Attributes:
        source: What it rests on: the provider's count, a tokenizer, or characters.
        scale: What estimates were multiplied with.
    """

    tokens: int
    source: ReadingSource
    scale: float


def measured(estimates: Sequence[int], *, anchor: Anchor | None = None, scale: float = 1.0) -> Reading:
    """What a view takes.

    Args:
        estimates: Size of each message of the view, in tokens.
        anchor: See `anchor_of`.
        scale: See `learned_scale`.
    """
    if anchor is None:
        return Reading(tokens=scaled(sum(estimates), scale), source="estimate", scale=scale)
    after = scaled(sum(estimates[anchor.covered :]), scale)
    return Reading(tokens=anchor.tokens + after, source="usage", scale=scale)


def scaled(tokens: int, scale: float) -> int:
    """Tokens as a model counts them, rounded up, of so many estimated."""
    # Rounded first: 10 * 1.1 is 11.000000000000002.
    return math.ceil(round(tokens * scale, 6))


# --- what providers counted ----------------------------------------------------------------------------------------


def anchor_of(
    counted: Iterable[tuple[int, Usage]], *, seqs: Sequence[int], changed_seq: int = 0, model: str | None = None
) -> Anchor | None:
    """The last count that still holds for a view.

    Args:
        counted: What providers counted, each with the number of the last record before that, in order.
        seqs: The number of each message of the view, never falling; 0 for those that no record holds.
        changed_seq: The last record that changed what was said before it: a compaction, or the undo of one, after
            which the counts of the compacted view would be far too low.
        model: The model that the view is for; None is any.
    """
    for seq, usage in reversed(list(counted)):
        if seq <= changed_seq:
            return None
        if prompt_tokens(usage) > 0 and same_model(usage.model, model):
            return Anchor(tokens=prompt_tokens(usage) + usage.output_tokens, covered=bisect_right(seqs, seq))
    return None


def prompt_tokens(usage: Usage) -> int:
    """The whole prompt of a call; 0 if it failed before anything was counted."""
    return usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens


def pairs_of(counted: Iterable[tuple[int, Usage]], model: str | None = None) -> list[tuple[int, int]]:
    """What the prompts of a model were taken for, and what they were; calls where either is not known are left out."""
    return [
        (usage.estimated_tokens, prompt_tokens(usage))
        for _, usage in counted
        if usage.estimated_tokens and prompt_tokens(usage) > 0 and same_model(usage.model, model)
    ]


def same_model(one: str | None, other: str | None) -> bool:
    """Whether two names may be of one model: provider and date of release aside; no name may be any."""
    return not one or not other or _plain(one) == _plain(other)


def _plain(model: str) -> str:
    return _RELEASE.sub("", model.rpartition("/")[2].lower())


# --- what is learned from it ---------------------------------------------------------------------------------------


def learned_scale(pairs: Iterable[tuple[int, int]]) -> float:
    """How many tokens a model counts for each one estimated.

    A mean over calls, weighted by size, in which older ones fade.

    Args:
        pairs: What each prompt was taken for, and what it was; see `pairs_of`.

    Returns:
        1.0 where the pairs tell nothing.
    """
    taken, counted = 0.0, 0.0
    for estimate, real in pairs:
        # One that counted something else, such as a prompt without its cached part, must not decide.
        sane = min(max(real, LEAST_SCALE * estimate), MOST_SCALE * estimate)
        taken, counted = _FADING * taken + estimate, _FADING * counted + sane
    return min(max(counted / taken, LEAST_SCALE), MOST_SCALE) if taken else 1.0
