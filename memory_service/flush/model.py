"""Memory extraction by a model: what it reads, and which of its answers are accepted.

```
stretch -> entries -> chunks -> one call each -> judged -> facts -> grounded in the chunk -> each once
```
Invariants: no prompt is sent that does not fit the model's window by estimate; a fact names no identifier, number or
consent that its chunk lacks; a checkpoint or memory block of the service is never read; all chunks are read, or none
counts; nothing is written here.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from indexer.language import days_of, ornament, typed_text
from memory_service.compaction.audit import is_granted
from memory_service.compaction.prompts import with_reasons
from memory_service.compaction.summary import SummaryRequest
from memory_service.errors import CallCancelled, ContextOverflow, SummaryFailed
from memory_service.flush.candidates import deduplicate
from memory_service.flush.notes import Candidate
from memory_service.flush.replies import extraction_prompt, facts_of_reply, is_failure
from memory_service.llm.base import ChatMessage, ChatModel, Completion, not_cancelled
from memory_service.llm.calls import ModelCalls, Spent, estimate_prompt
from memory_service.llm.chunks import SAFETY, first_chunk, group_by_unit
from memory_service.llm.transcript import TranscriptEntry, transcript, transcript_entries
from memory_service.llm.validation import validate_answer
from memory_service.messages.shapes import is_system, own_text_of, text_of, tool_calls_of, with_text
from memory_service.messages.sizes import Numbered, quarters
from memory_service.text.grounding import (
    SourceText,
    begun_words,
    capitalised_names,
    claims_of,
    names_user,
    topics_of,
)
from memory_service.text.identifiers import Identifier, find_identifiers, is_year
from memory_service.text.phrases import is_relative
from memory_service.text.placeholders import trim_middle
from memory_service.text.secrets import redact, without_secrets
from memory_service.text.speech import without_inserted
from memory_service.text.statements import is_yes, reports_will, rules_of
from memory_service.text.talk_language import language_of
from memory_service.text.texts import texts_in

# What a model is taken to read if nothing is known of it.
_DEFAULT_WINDOW_TOKENS = 32_000
# A larger window is read in pieces all the same: an answer of a few dozen lines holds no more than such a piece says,
# and models overlook what stands in the middle of long texts. Source: "Lost in the Middle", TACL 2024.
MAX_CHUNK_TOKENS = 48_000
# What is kept free for an answer of the most lines that are taken.
ANSWER_TOKENS = 4_000
TRIES = 2
_MAX_CALLS = 64
_TAIL_SHARE = 0.3
_LEAST_ROOM_TOKENS = 256
# What "a year ago" may mean, and "ten years ago".
_NEAR_DAYS = dt.timedelta(days=400)
_NEAR_YEARS = 20
# So much of a rule or a permission has to be in words that the user typed.
_USERS_SHARE = 0.5
# A name may have an ending of its own.
_NAME_START = 4
_SAYINGS = {
    "empty": "it wrote nothing that can be used",
    "truncated": "its answer was cut off",
    "tool_call": "it called a tool",
    "content_filter": "its answer was withheld by a content filter",
    "timeout": "there is no time left",
    "token_overflow": "the messages do not fit its window",
}
_NO_FACTS = "It held no list of facts. Answer with the list, or with NO_REPLY."


def extract_facts(
    stretch: Sequence[Numbered],
    model: ChatModel,
    *,
    instructions: str = "",
    fallbacks: Sequence[ChatModel] = (),
    timeout_seconds: float = 300.0,
    cancelled: Callable[[], bool] = not_cancelled,
    spending: Spent | None = None,
    candidates: list[Candidate] | None = None,
) -> list[Candidate]:
    """The facts that a model finds worth keeping.

    Args:
        stretch: Messages of a session, in order.
        model: Who reads them.
        instructions: What to look at in particular.
        fallbacks: Who reads from then on if `model`, and those before, cannot be used at all.
        timeout_seconds: For all calls together.
        cancelled: See `ChatModel.complete`.
        spending: Counted on, see `ModelCalls`.
        candidates: Gets the facts that their messages do not hold.

    Raises:
        CallCancelled: `cancelled` became true.
        SummaryFailed: An answer was refused as often as one was asked for; `kind` tells why.
        ModelUnavailable: No model can be used.
        UpstreamFailed: The provider failed.
    """
    read = list(_read(without_secrets(stretch)))
    texts = texts_in(language_of(read))
    entries = [entry for entry in transcript_entries(read, texts=texts) if entry.text]
    if not entries:
        return []
    calls = ModelCalls(
        model,
        window_tokens=model.context_window() or _DEFAULT_WINDOW_TOKENS,
        fallbacks=fallbacks,
        max_calls=_MAX_CALLS,
        timeout_seconds=timeout_seconds,
        cancelled=cancelled,
        spending=spending,
    )
    reader = _Reader(
        calls=calls,
        instructions=instructions,
        messages={message.seq: message for message in read},
        dropped_candidates=[] if candidates is None else candidates,
    )
    return deduplicate(_all_found(reader, entries))


def _read(stretch: Sequence[Numbered]) -> Iterator[Numbered]:
    """The messages without what the service itself put into them."""
    for message in stretch:
        if is_system(message.message):
            continue
        text = text_of(message.message)
        own = own_text_of(message.message)
        said_text = ornament("speech", own, without_inserted, own)
        yield message if said_text == text else replace(message, message=with_text(message.message, said_text))


def _all_found(reader: _Reader, entries: Sequence[TranscriptEntry]) -> Iterator[Candidate]:
    """Facts of the chunks in turn; a chunk that does not fit is divided again."""
    groups = group_by_unit(entries)
    start = 0
    while start < len(groups):
        window_tokens = reader.calls.window_tokens
        end = first_chunk(groups, start, reader.room())
        try:
            candidates = reader.facts_of([entry for group in groups[start:end] for entry in group])
        except ContextOverflow as error:
            reader.calls.learn(error, window_tokens)
            continue
        yield from candidates
        start = end


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reader:
    """Has a model read chunks, and believes of its answers what the chunks say.

    Attributes:
        messages: The stretch by number.
        dropped_candidates: Facts that are not believed.
    """

    calls: ModelCalls
    instructions: str
    messages: Mapping[int, Numbered]
    dropped_candidates: list[Candidate]

    def room(self) -> int:
        """Tokens that a chunk may take, with their safety margin.

        Raises:
            SummaryFailed: The window is too small for any.
        """
        window_tokens = self.calls.window_tokens
        prompt = self._prompt("")
        room = window_tokens - min(ANSWER_TOKENS, window_tokens // 4) - estimate_prompt(prompt)
        if room < _LEAST_ROOM_TOKENS:
            raise _refusal("token_overflow")
        return min(room, MAX_CHUNK_TOKENS)

    def facts_of(self, chunk: Sequence[TranscriptEntry]) -> list[Candidate]:
        """The facts of a chunk."""
        # A single unit may be larger than the window; most of such a one is what a tool printed.
        limit = int(self.room() * 4 / SAFETY)
        text = transcript(chunk)
        if quarters(text) > limit:
            tail = int(limit * _TAIL_SHARE)
            text = trim_middle(text, head_chars=limit - tail, tail_chars=tail, seq=chunk[0].seq)
        messages = [self.messages[entry.seq] for entry in chunk]
        answer = self._answer(self._prompt(text))
        source = _Source(messages)
        # What cannot be checked against the chunk is not believed.
        candidates = ornament("statements", [], facts_of_reply, answer, messages)
        believed_candidates = [
            candidate
            for candidate in candidates
            if ornament("grounding", False, source.says, candidate.text, candidate.seqs)
        ]
        self.dropped_candidates.extend(
            each_candidate for each_candidate in candidates if each_candidate not in believed_candidates
        )
        return believed_candidates

    def _prompt(self, text: str) -> list[ChatMessage]:
        return extraction_prompt(text, instructions=redact(self.instructions))

    def _answer(self, prompt: Sequence[ChatMessage]) -> str:
        """An answer that is one.

        Raises:
            SummaryFailed: None was, as often as it was asked for.
        """
        kind, reasons = "", tuple[str, ...]()
        for _ in range(TRIES):
            completion = self._completion(with_reasons(prompt, reasons))
            kind, reason = _fault(completion)
            if not kind:
                return completion.text
            if kind == "content_filter":
                break
            reasons = (reason,)
        raise _refusal(kind)

    def _completion(self, prompt: Sequence[ChatMessage]) -> Completion:
        try:
            return self.calls.ask(prompt)
        except CallCancelled:
            raise CallCancelled("The flush was cancelled. Nothing was written.") from None
        except SummaryFailed as error:
            raise _refusal(error.kind) from error


class _Source:
    """Text of a chunk, for checking facts against it."""

    def __init__(self, messages: Sequence[Numbered]) -> None:
        self._messages = tuple(messages)
        texts = [text for message in messages for text in _texts(message)]
        self._days = sorted({day for message in messages if (day := _day_of(message.at))})
        self._text = SourceText(*texts, days=self._days)
        self._is_relative = any(map(is_relative, texts))
        self._request = SummaryRequest(messages=tuple(messages))
        self._users = topics_of("\n".join(_users_words(messages)))

    def says(self, fact: str, seqs: Sequence[int] = ()) -> bool:
        """True if the chunk supports a fact: its identifiers, numbers, days, quotes and consents.

        Args:
            fact: The fact.
            seqs: The messages that it names; names, numbers and days have to stand in them, or in the one before.
        """
        numbers = frozenset(seqs)
        if numbers and len(numbers) < len(self._messages) and not self._is_cited(fact, numbers):
            return False
        is_held = all(
            self._text.holds(identifier) or self._resolves(identifier) for identifier in find_identifiers(fact)
        )
        claims = claims_of(fact) if names_user(fact) else ()
        return is_held and all(is_granted(claim, self._request) for claim in claims) and self._is_users(fact)

    def _is_cited(self, fact: str, named_numbers: frozenset[int]) -> bool:
        messages = [
            message for message, after in zip(self._messages, [*self._messages[1:], None], strict=True)
            if message.seq in named_numbers or (after is not None and after.seq in named_numbers)
        ]  # fmt: skip
        near = _Source(messages)
        is_held = all(
            near._text.holds(identifier) or near._resolves(identifier) for identifier in find_identifiers(fact)
        )
        names = capitalised_names(fact)
        # Whom it is about may have been named long before.
        keys = begun_words("\n".join(text for each_message in self._messages for text in _texts(each_message)))
        words = begun_words("\n".join(text for message in messages for text in _texts(message)))
        begins = [name[:_NAME_START].lower() for name in names]
        texts = begins[1:] or begins
        return is_held and all(name in keys for name in begins) and all(name in words for name in texts)

    def _is_users(self, fact: str) -> bool:
        """True if a fact tells of no permission, decision or rule, or the user's own words have what it is about."""
        if not (names_user(fact) and reports_will(fact)) and not rules_of(fact):
            return True
        topics = topics_of(fact)
        return not topics or len(topics & self._users) >= _USERS_SHARE * len(topics)

    def _resolves(self, identifier: Identifier) -> bool:
        """True if a day or a year may be what "two weeks ago" or "last year" means, or when it was said."""
        if identifier.kind == "number" and is_year(identifier.text):
            near = _NEAR_YEARS if self._is_relative else 0
            return any(abs(int(identifier.text[:4]) - written_day.year) <= near for written_day in self._days)
        if identifier.kind != "date" or not self._is_relative:
            return False
        days = [_date(*day) for day in days_of(identifier.text)]
        return bool(days) and all(
            day is not None and any(abs(day - written_day) <= _NEAR_DAYS for written_day in self._days) for day in days
        )


def _users_words(messages: Sequence[Numbered]) -> Iterator[str]:
    """Texts that users typed, and those of the assistant before a yes."""
    before = ""
    for message in messages:
        text, role = own_text_of(message.message), message.message["role"]
        if role == "user":
            typed = typed_text(text)
            yield typed
            if is_yes(typed):
                yield before
        elif role == "assistant" and text:
            before = text


def _refusal(kind: str) -> SummaryFailed:
    """The error for a stretch that a model could not be brought to read."""
    saying = _SAYINGS.get(kind, "it gave no answer that can be used")
    return SummaryFailed(
        f"The model found no memories: {saying}. Nothing was written; try again, or set flush.mode = extractive.",
        kind=kind,
    )


def _fault(completion: Completion) -> tuple[str, str]:
    """Reason to refuse an answer, as a kind and as a sentence for the model; empty if it is accepted."""
    verdict = validate_answer(completion)
    if verdict.kind:
        return verdict.kind, verdict.reason
    # Some gateways answer with the text of an error. It must not become a memory.
    return ("empty", _NO_FACTS) if is_failure(completion.text) else ("", "")


def _texts(message: Numbered) -> Iterator[str]:
    yield text_of(message.message)
    for call in tool_calls_of(message.message):
        yield call["function"]["name"]
        # Line breaks as they are meant: behind `\\n` a path would begin with an n.
        yield call["function"]["arguments"].replace("\\n", "\n").replace('\\"', '"')


def _day_of(at: str) -> dt.date | None:
    try:
        return dt.date.fromisoformat(at[:10])
    except ValueError:
        return None


def _date(year: int, month: int, day: int) -> dt.date | None:
    try:
        return dt.date(year, month, day)
    except ValueError:
        return None
