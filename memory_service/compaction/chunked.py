"""Chunked summary: chunk after chunk into one text, or parts merged afterwards; one accepted answer for each call.

Invariants: every message is read once and in order, whole units at a time, or is noted as omitted; what was read stays
read, so that a last answer that is refused later costs one call and not all of them; no prompt is sent that does not
fit the window by estimate; nothing is returned that was not accepted, but for what can be saved of a last answer; what
was written before a call failed is kept where the rules say so, and what is missing is marked by code.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from memory_service.compaction.mending import without_content
from memory_service.compaction.prompts import SummarySpec, condense_prompt, merge_prompt, with_reasons
from memory_service.errors import CallCancelled, ContextOverflow, ModelUnavailable, SummaryFailed, UpstreamFailed
from memory_service.llm.base import ChatMessage
from memory_service.llm.calls import ModelCalls, call_failure, estimate_prompt
from memory_service.llm.chunks import (
    adaptive_ratio,
    chunk_tokens,
    first_chunk,
    group_by_unit,
    group_tokens,
    is_oversized,
)
from memory_service.llm.transcript import TranscriptEntry, omit_text, omitted_note, transcript
from memory_service.llm.validation import AnswerValidation, clip_sections, clip_to_sentence, validate_answer
from memory_service.messages.sizes import count_tokens
from memory_service.text.placeholders import handle
from memory_service.text.texts import ENGLISH, Texts

if TYPE_CHECKING:
    from memory_service.compaction.presets import SummaryRules

# Source: Hermes wants a fifth of what is summarised; less than this is too little for any conversation.
WANTED_SHARE = 0.2
LEAST_WANTED_TOKENS = 500
CONDENSE_TRIES = 2
_CLIPPED = "Lines of the summary were left out for its length."
_ANSWER_MARGIN = 1.5
_SAYINGS = {
    "empty": "it wrote nothing",
    "truncated": "its answer was cut off",
    "tool_call": "it called a tool",
    "content_filter": "its answer was withheld by a content filter",
    "headings": "its answer lacks sections that were asked for",
    "too_long": "its answer is too long",
    "refusal": "it refused to",
    "ungrounded": "its answer says what its source does not, or leaves out what must stay",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryTask:
    """One summary to be written from messages.

    Attributes:
        prompt: Makes the prompt from a conversation, a brief and what was written before.
        spec: How it is to be written; its target is the longest that is taken.
    """

    prompt: Callable[[str, SummarySpec, str], list[ChatMessage]]
    spec: SummarySpec


class SummaryCalls:
    """Writes texts within the bounds of one summary.

    Args:
        calls: What may be spent.
        rules: How the preset summarises.
        texts: Words of the talk's language.
        useful_part: What may stand of an answer without the headings that were asked for; empty for nothing.

    Attributes:
        omissions: The notes for messages that were too large, in order, each with the number of its message.
        notes: What went differently than asked.
        missing: The marks for messages that were not read, in order, each with the numbers of the first and last.
        sparse: Whether an answer without headings was taken.
    """

    def __init__(
        self,
        calls: ModelCalls,
        rules: SummaryRules,
        texts: Texts = ENGLISH,
        useful_part: Callable[[str], str] = str,
    ) -> None:
        self.calls, self.rules, self.texts = calls, rules, texts
        self._useful_part = useful_part
        self.omissions: dict[str, int] = {}
        self.notes: list[str] = []
        self.missing: dict[str, tuple[int, int]] = {}
        self.sparse = False

    def room(self, task: SummaryTask, previous: str, reasons: Sequence[str] = ()) -> int:
        """Tokens, with their safety margin, that a conversation may take in one call; may be negative."""
        prompt = with_reasons(task.prompt("", task.spec, previous), reasons)
        return self.calls.window_tokens - self._answer_tokens(task.spec) - estimate_prompt(prompt)

    def read(
        self, task: SummaryTask, entries: Sequence[TranscriptEntry], previous: str, reasons: Sequence[str] = ()
    ) -> str:
        """Summary of a chunk and of the text written before it."""
        size = sum(entry.tokens for entry in entries)
        least_wanted_token = max(LEAST_WANTED_TOKENS, int(size * WANTED_SHARE) + count_tokens(previous))
        spec = replace(task.spec, target_tokens=min(task.spec.target_tokens, least_wanted_token))
        return self._write(task.prompt(transcript(entries), spec, previous), task.spec, reasons)

    def merge(self, partials: Sequence[str], spec: SummarySpec, previous: str = "", reasons: Sequence[str] = ()) -> str:
        """One text for several; halves are merged first where all do not fit the window."""
        prompt = with_reasons(merge_prompt(partials, spec, previous=previous), reasons)
        if self._fits(prompt, spec) or len(partials) < 3:
            return self._write(prompt, spec, ())
        middle = len(partials) // 2
        halves = [self.merge(half, spec) for half in (partials[:middle], partials[middle:])]
        return self.merge(halves, spec, previous, reasons)

    def condense(self, text: str, spec: SummarySpec) -> str:
        """A text within its target: summarised again where the rules say so, and cut where it stays too long."""
        for _ in range(CONDENSE_TRIES if self.rules.condense else 0):
            if count_tokens(text) <= spec.target_tokens:
                break
            prompt = condense_prompt(text, spec)
            if not self._fits(prompt, spec):
                break
            shorter = self._write(prompt, spec, ())
            if count_tokens(shorter) >= count_tokens(text):
                break
            text = shorter
        return self.clip(text, spec.target_tokens)

    def clip(self, text: str, cap_tokens: int) -> str:
        """A text without the lines that are over a size."""
        if count_tokens(text) <= cap_tokens:
            return text
        self.notes.append(_CLIPPED)
        return clip_sections(text, cap_tokens, self.texts) or clip_to_sentence(text, cap_tokens)

    def omit(self, entry: TranscriptEntry) -> TranscriptEntry:
        """A note in the place of a message that is too large."""
        self.omissions[omitted_note(entry, self.texts)] = entry.seq
        return omit_text(entry, self.texts)

    def _write(self, prompt: list[ChatMessage], spec: SummarySpec, reasons: Sequence[str]) -> str:
        told_reasons = tuple(reasons)
        validations: list[AnswerValidation] = []
        for _ in range(self.rules.retries + 1):
            messages = with_reasons(prompt, told_reasons)
            try:
                if not self._fits(messages, spec):
                    raise _too_large(estimate_prompt(messages), self.calls.window_tokens)
                answer = self.calls.ask(messages)
            except UpstreamFailed:
                # A second answer that fails does not cost what the first one said.
                if (saved_text := self._save_refused(validations, spec)) is None:
                    raise
                return saved_text
            cap = None if self.rules.condense else spec.target_tokens
            verdict = validate_answer(answer, headings=spec.headings, cap_tokens=cap, texts=self.texts)
            if not verdict.kind and (kind := without_content(verdict.text)):
                verdict = AnswerValidation(kind=kind, reason="It had nothing of the conversation. Write the record.")
            if not verdict.kind:
                self.notes += verdict.mended_texts
                if verdict.is_clipped:
                    self.notes.append(_CLIPPED)
                return verdict.text
            validations.append(verdict)
            if verdict.kind == "content_filter":
                break
            told_reasons = (*reasons, verdict.reason)
        saved_text = self._save_refused(validations, spec)
        if saved_text is None:
            raise refused_answer(validations[-1].kind)
        return saved_text

    def _save_refused(self, validations: Sequence[AnswerValidation], spec: SummarySpec) -> str | None:
        """The best of what the answers say that were refused for their length or headings; None where nothing is."""
        for verdict in reversed(validations):
            if verdict.too_long:
                # The history is not lost for the length of what stands for it.
                return self.clip(verdict.too_long, spec.target_tokens)
        useful = [(text, verdict) for verdict in validations if (text := self._useful_part(verdict.saved_text))]
        if not useful:
            return None
        text, verdict = max(useful, key=lambda pair: len(pair[0]))
        self.sparse = self.sparse or verdict.sparse
        self.notes += verdict.mended_texts
        return self.clip(text, spec.target_tokens)

    def mark_missing(self, first: int, last: int, error: UpstreamFailed) -> None:
        """Mark messages that were not read, since a call failed."""
        mark = self.texts.omitted["partial"].format(first=handle(first), last=handle(last))
        self.missing[mark] = (first, last)
        self.notes.append(
            f"The summary is partial: the messages {handle(first)} to {handle(last)} are not in it, since a call "
            f"failed ({error.why})."
        )

    def _fits(self, prompt: Sequence[ChatMessage], spec: SummarySpec) -> bool:
        return estimate_prompt(prompt) + self._answer_tokens(spec) // 2 <= self.calls.window_tokens

    def _answer_tokens(self, spec: SummarySpec) -> int:
        """Room for the answer. No limit is sent: a model that thinks would spend it on thoughts."""
        least_wanted_token = max(LEAST_WANTED_TOKENS, int(spec.target_tokens * _ANSWER_MARGIN))
        return min(least_wanted_token, self.calls.window_tokens // 4)


def refused_answer(kind: str) -> SummaryFailed:
    """The error for an answer that was refused as often as one was asked for."""
    return SummaryFailed(call_failure(_SAYINGS[kind], "try again, or set another llm_model"), kind=kind)


def _too_large(tokens: int, window_tokens: int) -> SummaryFailed:
    """The error for what does not fit the summariser's window."""
    text = f"a request of about {tokens:,} tokens is more than its window of {window_tokens:,} takes"
    return SummaryFailed(
        call_failure(text, "set a model with a larger window, or another preset"), kind="token_overflow"
    )


_PARALLEL = 4
_LEAST_PART_TOKENS = 200

Group = tuple[TranscriptEntry, ...]


class ChunkedSummary:
    """Messages read chunk by chunk, each chunk bringing the text so far up to date.

    Args:
        summary_calls: Who writes.
        entries: What is to be read, each with a text.
        task: What is to be written.
        previous: What was written before.
    """

    def __init__(
        self, summary_calls: SummaryCalls, entries: Sequence[TranscriptEntry], task: SummaryTask, previous: str = ""
    ) -> None:
        self._summary_calls, self._task, self._text = summary_calls, task, previous
        self._rules, self._calls = summary_calls.rules, summary_calls.calls
        self._groups: list[Group] = group_by_unit(entries)
        self._entries = entries
        self._at = self._chunks_read = 0
        self.failure: UpstreamFailed | None = None
        self._ratio: dict[int, float] = {}

    def finish(self, reasons: Sequence[str] = ()) -> str:
        """Read what is left and return the text; asked again, read the last chunk anew.

        Args:
            reasons: Why the text was refused; they go with the last chunk.

        Raises:
            UpstreamFailed: A chunk could not be read, see `Calls.ask` and `SummaryCalls`.
        """
        try:
            return self._read(reasons)
        except UpstreamFailed as error:
            # Asked again, the answer of before is still at hand.
            if not (self._rules.keep_partial and self._chunks_read) or reasons:
                raise
            self.failure = error
            self.mark_missing(error)
            return self._summary_calls.clip(self._text, self._task.spec.target_tokens)

    def fits_one_chunk(self) -> bool:
        """True if one call reads everything."""
        return self._size(0) <= self._limit(self._summary_calls.room(self._task, self._text))

    def _read(self, reasons: Sequence[str]) -> str:
        while True:
            window_tokens = self._calls.window_tokens
            end = self._next_end(reasons)
            last = end == len(self._groups)
            entries = [entry for group in self._groups[self._at : end] for entry in group]
            try:
                text = self._summary_calls.read(self._task, entries, self._text, reasons if last else ())
            except ContextOverflow as error:
                self._calls.learn(error, window_tokens)
                continue
            except ModelUnavailable:
                raise
            except UpstreamFailed:
                # Where something huge was read, it may be at fault.
                if not self._omit_oversized(self._at, end):
                    raise
                continue
            if last:
                return text
            self._text, self._at = text, end
            self._chunks_read += 1

    def _next_end(self, reasons: Sequence[str]) -> int:
        """Where the next chunk ends; what it begins with is made to fit."""
        room = self._summary_calls.room(self._task, self._text, reasons)
        if self._group_size(self._at) > room:
            self._fit(self._at, room)
        left = self._size(self._at)
        if left > room * self._calls.left:
            raise _too_large(left, self._calls.window_tokens)
        end = first_chunk(self._groups, self._at, self._limit(room), safety=self._rules.safety)
        if end < len(self._groups) and self._rules.one_call:
            if not self._omit_oversized(self._at, len(self._groups)):
                raise _too_large(left, self._calls.window_tokens)
            return self._next_end(reasons)
        return end

    def _limit(self, room: int) -> int:
        """How much one chunk takes, with the safety margin."""
        left = self._size(self._at)
        # A part is already as small as it should be. Source: seed 003, 3.2: a call for each part.
        at_once = self._rules.single_pass or self._rules.style == "parts"
        if self._rules.one_call or (at_once and left <= room):
            return room
        window_tokens = self._calls.window_tokens
        if window_tokens not in self._ratio:
            rules = self._rules
            self._ratio[window_tokens] = adaptive_ratio(
                self._entries, window_tokens, base=rules.chunk_ratio, least=rules.min_chunk_ratio, safety=rules.safety
            )
        limit = chunk_tokens(window_tokens, self._ratio[window_tokens], overhead_tokens=self._rules.overhead_tokens)
        # With few calls left, chunks have to be larger than they should be.
        return room if left > limit * (self._calls.left - 1) else min(limit, room)

    def _size(self, start: int) -> int:
        """Size of what is left to be read, with the safety margin."""
        return math.ceil(sum(map(group_tokens, self._groups[start:])) * self._rules.safety)

    def _group_size(self, at: int) -> float:
        return group_tokens(self._groups[at]) * self._rules.safety

    def _fit(self, at: int, room: int) -> None:
        """Put notes in the place of the largest messages of a unit until it fits."""
        if not self._rules.without_oversized:
            raise _too_large(group_tokens(self._groups[at]), self._calls.window_tokens)
        group = list(self._groups[at])
        size = self._group_size(at)
        for place in sorted(range(len(group)), key=lambda place: -group[place].tokens):
            if size <= room:
                break
            note = self._summary_calls.omit(group[place])
            size -= (group[place].tokens - note.tokens) * self._rules.safety
            group[place] = note
        if size > room:
            raise _too_large(group_tokens(self._groups[at]), self._calls.window_tokens)
        self._groups[at] = tuple(group)

    def _omit_oversized(self, start: int, end: int) -> bool:
        """Put notes in the place of messages over half the window; whether there were any."""
        if not self._rules.without_oversized:
            return False
        is_found = False
        window_tokens, safety = self._calls.window_tokens, self._rules.safety
        for at in range(start, end):
            if any(is_oversized(entry, window_tokens, safety=safety) for entry in self._groups[at]):
                is_found = True
                self._groups[at] = tuple(
                    self._summary_calls.omit(entry) if is_oversized(entry, window_tokens, safety=safety) else entry
                    for entry in self._groups[at]
                )
        return is_found

    def mark_missing(self, error: UpstreamFailed) -> None:
        """Mark the messages that were not read; the receipt tells of them, too."""
        self._summary_calls.mark_missing(self._groups[self._at][0].seq, self._groups[-1][-1].seq, error)


class MapReduceSummary:
    """Messages read in parts, whose texts are merged.

    Args:
        summary_calls: Who writes.
        shares: What is to be read, part by part.
        task: What is to be written.
        previous: What was written before; it is merged too.
    """

    def __init__(
        self,
        summary_calls: SummaryCalls,
        shares: Sequence[Sequence[TranscriptEntry]],
        task: SummaryTask,
        previous: str = "",
    ) -> None:
        self._summary_calls, self._task, self._previous = summary_calls, task, previous
        target = task.spec.target_tokens
        if not summary_calls.rules.merge_by_model:
            target = max(_LEAST_PART_TOKENS, target // len(shares))
        part_task = replace(task, spec=replace(task.spec, target_tokens=target))
        self._rolls = [ChunkedSummary(summary_calls, share, part_task) for share in shares]
        self._partials: list[str] = []

    def finish(self, reasons: Sequence[str] = ()) -> str:
        """See `ChunkedSummary.finish`; asked again, only the merge is done anew."""
        self._partials = self._partials or [text for text in self._read() if text]
        joined_text = "\n\n".join(filter(None, [self._previous, *self._partials]))
        spec = self._task.spec
        fits = count_tokens(joined_text) <= spec.target_tokens
        if not reasons and (joined_text in self._partials or (fits and not self._summary_calls.rules.merge_by_model)):
            return joined_text
        try:
            return self._merge_partials(spec, reasons)
        except UpstreamFailed as error:
            if not self._summary_calls.rules.keep_partial or reasons:
                raise
            self._summary_calls.notes.append(
                f"The parts of the summary were put together by code; a call failed ({error.why})."
            )
            return joined_text

    def _merge_partials(self, spec: SummarySpec, reasons: Sequence[str]) -> str:
        window_tokens = self._summary_calls.calls.window_tokens
        while True:
            try:
                return self._summary_calls.merge(self._partials, spec, self._previous, reasons)
            except ContextOverflow as error:
                self._summary_calls.calls.learn(error, window_tokens)
                window_tokens = self._summary_calls.calls.window_tokens

    def mark_missing(self, error: UpstreamFailed) -> None:
        """See `ChunkedSummary.mark_missing`."""
        for roll in self._rolls:
            roll.mark_missing(error)

    def _read_in_turn(self) -> list[str]:
        """The parts one after the other; once one fails, those before it are kept where the rules say so."""
        texts: list[str] = []
        call_failure: UpstreamFailed | None = None
        for roll in self._rolls:
            if call_failure is not None:
                roll.mark_missing(call_failure)
                continue
            try:
                texts.append(roll.finish())
                call_failure = roll.failure
            except UpstreamFailed as error:
                if not (self._summary_calls.rules.keep_partial and texts):
                    raise
                call_failure = error
                roll.mark_missing(error)
        return texts

    def _read(self) -> list[str]:
        if not self._summary_calls.rules.concurrent:
            return self._read_in_turn()
        with ThreadPoolExecutor(max_workers=min(len(self._rolls), _PARALLEL), thread_name_prefix="summary") as pool:
            futures = [pool.submit(roll.finish) for roll in self._rolls]
            failures = list[UpstreamFailed]()
            try:
                for done_future in as_completed(futures):
                    if not (self._summary_calls.rules.keep_partial and _may_be_missed(done_future.exception())):
                        done_future.result()
                    elif isinstance(failure := done_future.exception(), UpstreamFailed):
                        failures.append(failure)
            except (UpstreamFailed, CallCancelled):
                self._summary_calls.calls.stop()
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        if len(failures) == len(futures):
            # Of all that failed the first one tells why; the others may have waited for what it was refused.
            raise failures[0]
        for roll, future in zip(self._rolls, futures, strict=True):
            if isinstance(failure := future.exception(), UpstreamFailed):
                roll.mark_missing(failure)
        return [future.result() for future in futures if future.exception() is None]


def _may_be_missed(failure: BaseException | None) -> bool:
    """True if the other parts may be read where one could not be: another call may do."""
    return isinstance(failure, UpstreamFailed) and not isinstance(failure, ModelUnavailable)
