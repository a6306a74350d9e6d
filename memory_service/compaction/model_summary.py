"""Summaries written by a language model: what is asked, in what order, and what is made of the answers.

```
transcript  ->  chunks, parts  ->  prompts  ->  calls  ->  verdict  ->  Summary
```
Invariants: a summary is made of answers alone, never of an error's text, of half an answer or of what a model thought;
an answer with faults is asked for again, and after the last try what can be mended of it is taken; what was written
before a call failed is kept, and the summary says what is missing; where nothing is of use, there is one typed error.
Calls, time and length have their bounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

from memory_service.compaction.chunked import (
    ChunkedSummary,
    MapReduceSummary,
    SummaryCalls,
    SummaryTask,
    refused_answer,
)
from memory_service.compaction.mending import MendedSummary, SourceTerms
from memory_service.compaction.presets import Style, SummaryRules
from memory_service.compaction.prompts import PROMPT_VERSION, SummarySpec, prefix_prompt, summary_prompt
from memory_service.compaction.summary import PromptReading, Summary, SummaryRequest
from memory_service.errors import ContextOverflow, SummaryFailed, UpstreamFailed
from memory_service.llm.base import SAFETY_TIMEOUT_SECONDS, ChatMessage, ChatModel, not_cancelled
from memory_service.llm.calls import ModelCalls, Spent, call_failure
from memory_service.llm.chunks import adaptive_ratio, parts
from memory_service.llm.transcript import TranscriptEntry, inserted_markers, transcript_entries
from memory_service.text.placeholders import handle
from memory_service.text.secrets import redact
from memory_service.text.texts import texts_in

__all__ = ["Style", "SummaryCheck", "SummaryRules", "summarize"]

# How much of the summary a split turn takes, and of the window what was written before. Our choice.
_PREFIX_SHARE = 1 / 3
_PREVIOUS_SHARE = 0.3
_SHOWN_OMISSIONS = 8


SummaryCheck = Callable[[str, PromptReading], tuple[str, ...]]
SummaryMend = Callable[[str, PromptReading], MendedSummary]


def _accept_any(text: str, reading: PromptReading) -> tuple[str, ...]:
    """The check that finds nothing wrong with any text."""
    return ()


def _mend_nothing(text: str, reading: PromptReading) -> MendedSummary:
    """The mending that finds nothing of use in a text with faults."""
    return MendedSummary(text="")


def summarize(
    request: SummaryRequest,
    rules: SummaryRules,
    model: ChatModel,
    *,
    window_tokens: int,
    check: SummaryCheck = _accept_any,
    mend: SummaryMend = _mend_nothing,
    amend: Callable[[str], str] = str,
    fallbacks: Sequence[ChatModel] = (),
    timeout_seconds: float = SAFETY_TIMEOUT_SECONDS,
    cancelled: Callable[[], bool] = not_cancelled,
    spending: Spent | None = None,
) -> Summary:
    """Has a model write a summary.

    Args:
        request: What is to be summarised, and how long the result may be.
        rules: How.
        model: Who writes; it is trusted to keep to the time it is given.
        window_tokens: What the model takes, prompt and answer together.
        check: Says what is wrong with the whole text, a sentence each; empty for nothing. What it says goes into the
            prompt of the next try. It is also given how the prompts differed from the messages.
        mend: Makes of a text that the check refused to the last what can be used of it.
        amend: Changes the whole text before it is checked.
        fallbacks: Who writes if the model, and those before, cannot be used at all.
        timeout_seconds: For all calls together.
        cancelled: See `ChatModel.complete`.
        spending: Counted on, see `ModelCalls`.

    Raises:
        SummaryFailed: No answer could be accepted, or the history fits no call; `kind` tells.
        UpstreamFailed: The provider failed; `kind` tells.
        CallCancelled: `cancelled` became true.
    """
    calls = ModelCalls(
        model,
        window_tokens=window_tokens,
        fallbacks=fallbacks,
        max_calls=rules.max_calls,
        attempts=rules.attempts,
        backoff_seconds=rules.backoff_seconds,
        timeout_seconds=timeout_seconds,
        cancelled=cancelled,
        spending=spending,
    )
    useful_part = SourceTerms(request).useful_part
    run = _Run(request, rules, SummaryCalls(calls, rules, texts_in(request.language), useful_part), amend)
    try:
        return run.summary(run.text(check, mend))
    except ContextOverflow as error:
        text, remedy = "it does not fit the model's window", "set a model with a larger window"
        raise SummaryFailed(call_failure(text, remedy), kind=error.kind, reason=error.reason) from error


class _Run:
    """State of one model-written summary."""

    def __init__(
        self, request: SummaryRequest, rules: SummaryRules, summary_calls: SummaryCalls, amend: Callable[[str], str]
    ) -> None:
        self._request, self._rules, self._summary_calls, self._amend = request, rules, summary_calls, amend
        self._dropped_text = ""
        self._chunk_ratio, self._parts = rules.chunk_ratio, 1
        read = partial(transcript_entries, tool_output_chars=rules.tool_output_chars, texts=texts_in(request.language))
        self._dropped_entries = _entries_with_text(read(request.messages[: request.dropped]))
        self._entries = _entries_with_text(read(request.messages[request.dropped :]))
        self._prefix = _entries_with_text(read(request.prefix))
        # Summaries of other presets, and what people wrote into a log, were never redacted.
        self._previous = redact(request.previous).strip()

    def text(self, check: SummaryCheck, mend: SummaryMend) -> str:
        """The whole text, accepted by the check, or mended after the last try.

        Raises:
            SummaryFailed: Nothing of it is of use; or see `ChunkedSummary.finish`.
        """
        body, prefix = self._body(), self._prefix_roll()
        reasons: tuple[str, ...] = ()
        drafts: list[str] = []
        try:
            for _ in range(self._rules.retries + 1):
                text = self._whole(self._body_text(body, reasons), prefix, reasons)
                if not text:
                    raise refused_answer("empty")
                reasons = check(text, self._reading())
                if not reasons:
                    return text
                drafts.append(text)
                # Who cannot keep to headings does not get better by being asked for more.
                if not (body or prefix) or self._summary_calls.sparse:
                    break
        except UpstreamFailed as error:
            if not drafts:
                raise
            self._summary_calls.notes.append(f"A second answer failed ({error.why}); the first one was mended.")
        summary = max((mend(text, self._reading()) for text in drafts), key=lambda each_summary: len(each_summary.text))
        if not summary.text:
            raise refused_answer("ungrounded")
        self._summary_calls.notes += summary.notes
        return summary.text

    def summary(self, text: str) -> Summary:
        """The text with all that its receipt wants to know."""
        calls = self._summary_calls.calls
        omissions = [f"Left out of the summary for their size: {note}" for note in self._summary_calls.omissions]
        return Summary(
            text=text,
            method="model",
            prompt_version="hook" if self._request.prompt else PROMPT_VERSION,
            model=calls.model_name,
            calls=calls.spending.requests,
            input_tokens=calls.spending.input_tokens,
            output_tokens=calls.spending.output_tokens,
            notes=tuple(dict.fromkeys((*calls.notes, *self._summary_calls.notes, *omissions))),
            unread=tuple(self._summary_calls.missing.values()),
            sparse=self._summary_calls.sparse,
            chunk_ratio=self._chunk_ratio,
            parts=self._parts,
        )

    def _reading(self) -> PromptReading:
        notes = self._summary_calls.omissions
        markers = inserted_markers([*self._dropped_entries, *self._entries, *self._prefix])
        return PromptReading(
            inserted_texts=(*notes, *self._summary_calls.missing, *markers), unread_seqs=self._unread_seqs()
        )

    def _unread_seqs(self) -> frozenset[int]:
        """Messages that no prompt held: too large ones, and those that a call failed for."""
        missing = self._summary_calls.missing.values()
        read = (*self._dropped_entries, *self._entries, *self._prefix)
        failed_seqs = (entry.seq for entry in read if any(first <= entry.seq <= last for first, last in missing))
        return frozenset((*self._summary_calls.omissions.values(), *failed_seqs))

    def _body(self) -> ChunkedSummary | MapReduceSummary | None:
        """Reader of the messages, in the preset's style; what was dropped from them is summarised first."""
        if self._dropped_entries and self._entries:
            count, last = self._request.dropped, self._dropped_entries[-1].seq
            self._previous = self._dropped_text = self._reader(self._dropped_entries).finish()
            self._summary_calls.notes.append(
                f"The {count} oldest messages, up to {handle(last)}, were summarised first, and the others on top of "
                "that: together they are over max_history_share of the window."
            )
        entries = self._entries or self._dropped_entries
        return self._reader(entries) if entries else None

    def _reader(self, entries: Sequence[TranscriptEntry]) -> ChunkedSummary | MapReduceSummary:
        previous = self._summary_calls.clip(
            self._previous, int(self._summary_calls.calls.window_tokens * _PREVIOUS_SHARE)
        )
        task = SummaryTask(prompt=_summary_prompt, spec=self._spec(self._body_tokens(), self._rules.headings))
        roll = ChunkedSummary(self._summary_calls, entries, task, previous)
        self._chunk_ratio = self._ratio_of(entries)
        count = self._part_count(roll, entries)
        shares = parts(entries, count) if count > 1 else []
        self._parts = max(len(shares), 1)
        return MapReduceSummary(self._summary_calls, shares, task, previous) if len(shares) > 1 else roll

    def _body_text(self, body: ChunkedSummary | MapReduceSummary | None, reasons: Sequence[str]) -> str:
        # Nothing new was said: what was written before stays as it is.
        if body is None:
            return self._summary_calls.clip(self._previous, self._body_tokens())
        try:
            text = body.finish(reasons)
        except UpstreamFailed as error:
            if not (self._rules.keep_partial and self._dropped_text) or reasons:
                raise
            # What was summarised first is kept.
            body.mark_missing(error)
            text = self._dropped_text
        return self._summary_calls.condense(text, self._spec(self._body_tokens(), self._rules.headings))

    def _part_count(self, roll: ChunkedSummary, entries: Sequence[TranscriptEntry]) -> int:
        rules = self._rules
        if len(entries) < rules.min_messages_for_parts:
            return 1
        if rules.style == "rolling":
            return 1 if roll.fits_one_chunk() else rules.parts
        if rules.style != "parts":
            return 1
        # Source: seed 003, 3.2.
        return max(2, math.ceil(1 / self._ratio_of(entries)))

    def _ratio_of(self, entries: Sequence[TranscriptEntry]) -> float:
        """The share of the summariser's window that a chunk of some messages takes."""
        rules = self._rules
        return adaptive_ratio(
            entries,
            self._summary_calls.calls.window_tokens,
            base=rules.chunk_ratio,
            least=rules.min_chunk_ratio,
            safety=rules.safety,
        )

    def _prefix_roll(self) -> ChunkedSummary | None:
        if not self._prefix:
            return None
        spec = self._spec(self._prefix_tokens(), ())
        return ChunkedSummary(self._summary_calls, self._prefix, SummaryTask(prompt=_prefix_prompt, spec=spec))

    def _prefix_tokens(self) -> int:
        return int(self._request.target_tokens * _PREFIX_SHARE) if self._prefix else 0

    def _body_tokens(self) -> int:
        return self._request.target_tokens - self._prefix_tokens()

    def _spec(self, target_tokens: int, headings: tuple[str, ...]) -> SummarySpec:
        return SummarySpec(
            headings=headings,
            target_tokens=target_tokens,
            instructions=self._request.instructions,
            identifier_policy=self._request.identifier_policy,
            identifier_instructions=self._request.identifier_instructions,
            prompt=self._request.prompt,
            texts=texts_in(self._request.language),
        )

    def _whole(self, body: str, prefix: ChunkedSummary | None, reasons: Sequence[str]) -> str:
        """The pieces put together, within the length that was asked for."""
        pieces = [body] if body else []
        if prefix:
            pieces += self._prefix_pieces(prefix, reasons, alone=not pieces)
        notes = [*self._summary_calls.omissions]
        if len(notes) > _SHOWN_OMISSIONS:
            more = self._summary_calls.texts.omitted["more"].format(count=len(notes) - _SHOWN_OMISSIONS)
            notes = [*notes[:_SHOWN_OMISSIONS], more]
        notes += self._summary_calls.missing
        if notes and pieces:
            pieces.append("\n".join(notes))
        return self._summary_calls.clip(self._amend("\n\n".join(pieces)), self._request.target_tokens)

    def _prefix_pieces(self, prefix: ChunkedSummary, reasons: Sequence[str], *, alone: bool) -> list[str]:
        """The report on the first half of a turn; nothing where it failed and the rest can be kept."""
        try:
            report = self._summary_calls.condense(prefix.finish(reasons), self._spec(self._prefix_tokens(), ()))
        except UpstreamFailed as error:
            if alone or reasons or not self._rules.keep_partial:
                raise
            prefix.mark_missing(error)
            return []
        return [self._summary_calls.texts.turn_context, report]


def _entries_with_text(entries: Sequence[TranscriptEntry]) -> tuple[TranscriptEntry, ...]:
    return tuple(entry for entry in entries if entry.text)


def _summary_prompt(conversation: str, spec: SummarySpec, previous: str) -> list[ChatMessage]:
    return summary_prompt(conversation, spec, previous=previous)


def _prefix_prompt(conversation: str, spec: SummarySpec, previous: str) -> list[ChatMessage]:
    return prefix_prompt(conversation, spec, previous=previous)
