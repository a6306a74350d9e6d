"""Owns how a preset has its summaries written by a model. Plain values; nothing is computed here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from memory_service.compaction.bounds import Chars, Count, CountFromZero, Factor, Seconds, Share, Tokens
from memory_service.compaction.calls import ATTEMPTS, BACKOFF_SECONDS
from memory_service.compaction.chunks import CHUNK_RATIO, MIN_CHUNK_RATIO, OVERHEAD_TOKENS, SAFETY
from memory_service.compaction.prompts import ANCHORED_HEADINGS
from memory_service.compaction.transcript import TOOL_OUTPUT_CHARS

Style = Literal["anchored", "rolling", "parts", "sections", "plain"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryRules:
    """How a preset summarises.

    Attributes:
        style: `anchored`: chunk after chunk, each bringing the summary up to date. `rolling`: the same, but what
            takes several chunks is first divided into parts, whose summaries are merged. `parts`: as many parts as
            the window asks for, at once, merged. `sections` and `plain`: one call, which fails if all does not fit.
        headings: What a summary has to hold, in order, see `prompts.Brief`; empty for free text.
        tool_output_chars: The longest tool result shown; a CJK character counts for four.
        chunk_ratio: The share of the window that a chunk takes, where messages are small.
        min_chunk_ratio: The same where they are large.
        safety: By what estimates are multiplied.
        overhead_tokens: Taken off a chunk for prompt and answer.
        single_pass: Whether one call reads everything if it fits, however large a share it takes.
        parts: Into how many parts `rolling` divides.
        min_messages_for_parts: With fewer messages, nothing is divided.
        concurrent: Whether parts are summarised at once.
        merge_by_model: Whether the model merges the parts' summaries; else they are put together while they fit.
        without_oversized: Whether a message that is too large gives way to a note; else it is a failure.
        condense: Whether a summary over its target is summarised again, instead of being cut or refused.
        retries: Further answers asked for after one that was refused, with the reasons.
        attempts: Tries for an answer whose provider failed in a way that may pass.
        backoff_seconds: The wait before the second of them; it doubles each time.
        max_calls: The most requests for one summary.
        keep_partial: Whether the summary of the first chunks is kept, marked, when a later one fails.
    """

    style: Style = "anchored"
    headings: tuple[str, ...] = ANCHORED_HEADINGS
    tool_output_chars: Chars = TOOL_OUTPUT_CHARS
    chunk_ratio: Share = CHUNK_RATIO
    min_chunk_ratio: Share = MIN_CHUNK_RATIO
    safety: Factor = SAFETY
    overhead_tokens: Tokens = OVERHEAD_TOKENS
    single_pass: bool = False
    parts: Count = 2
    min_messages_for_parts: Count = 4
    concurrent: bool = False
    merge_by_model: bool = True
    without_oversized: bool = True
    condense: bool = False
    retries: CountFromZero = 1
    attempts: Count = ATTEMPTS
    backoff_seconds: Seconds = BACKOFF_SECONDS
    max_calls: Count = 24
    keep_partial: bool = False

    @property
    def one_call(self) -> bool:
        """Whether everything has to be read by one call."""
        return self.style in ("sections", "plain")
