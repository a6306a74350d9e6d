"""Mending of a model's summary: what is left out of it, what is put back, and whether the rest is of use. Pure.

Invariants: nothing is reworded, and nothing is added but sentences of the source and lines that rules wrote; a consent
that nobody gave never stays, nor does what is to be done on the strength of it; a rest that tells nothing of its source
(a refusal, an error, a summary of something else) is none; each thing that was done is told in a sentence; the result
is never longer than was asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from indexer.common import lazy_regex
from indexer.language import asked_terms, is_refusal, next_subjects, section_subject, stored_terms
from memory_service.compaction.audit import Audit, faultless, is_own_line
from memory_service.compaction.summary import SummaryRequest
from memory_service.llm.answer_shape import is_opening, sections_of
from memory_service.messages.shapes import arguments_of, text_of, tool_calls_of
from memory_service.messages.sizes import Numbered, count_tokens
from memory_service.text.grounding import topics_of
from memory_service.text.phrases import is_nothing
from memory_service.text.sentences import single_line, split_sentences
from memory_service.text.texts import Texts, heading_in, texts_in

_HEADING = lazy_regex(r"(#{1,6})[ \t]+(\S[^\n]*)")
_MARK = lazy_regex(r"\W+")
# So many terms of its source a text has, or such a share of its own, or one with a digit, if it tells of that.
_LEAST_TERMS, _LEAST_SHARE = 2, 0.25
_TERM_CHARS = 4
_SOURCE_CHARS = 400_000
_PUT_BACK_CHARS = 240
# Sections that say what comes of a consent.
_FOLLOWING = frozenset({"next", "in progress", "todos", "decisions", "done", "progress"})
_LEAST_TOPICS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class MendedSummary:
    """A summary after its faults were mended.

    Attributes:
        text: Empty where nothing of use is left.
        notes: What was done, each a sentence.
    """

    text: str
    notes: tuple[str, ...] = ()


class SourceTerms:
    """Terms of what a summary was asked of, by which a text that tells of it is known.

    Args:
        request: What was asked.
    """

    def __init__(self, request: SummaryRequest) -> None:
        self._request = request

    def useful_part(self, text: str) -> str:
        """A text that was not as asked, without refusals and talk around it; empty if the rest is of no use."""
        lines = [line for line in text.split("\n") if not is_refusal(line)]
        while lines and is_opening(lines[0]) and not _HEADING.match(lines[0]):
            lines.pop(0)
        rest = "\n".join(lines)
        return rest if self.tells(rest) else ""

    def tells(self, text: str) -> bool:
        """True if a text tells of the source: it has terms of it, in what stands below its headings."""
        terms = {term for line in _content(text) for term in asked_terms(line)}
        shared_keys = terms & self._terms
        return len(shared_keys) >= min(_LEAST_TERMS, _LEAST_SHARE * len(terms)) > 0 or any(map(_has_digit, shared_keys))

    @cached_property
    def _terms(self) -> frozenset[str]:
        request = self._request
        texts = [request.previous, *(entry.text for entry in request.ledger)]
        for message in (*request.messages, *request.prefix):
            texts.append(text_of(message.message))
            texts += [str(arguments_of(call)) for call in tool_calls_of(message.message)]
        return frozenset(
            term
            for text in texts
            for term in stored_terms(text[:_SOURCE_CHARS])
            if len(term) >= (_TERM_CHARS if term.isascii() else 2) or _has_digit(term)
        )


def _has_digit(term: str) -> bool:
    return len(term) > 2 and any(map(str.isdigit, term))


def without_content(text: str) -> str:
    """Why a text of the right form is no summary, see `SummaryFailed`: `empty` or `refusal`; empty if it is one."""
    lines = list(_content(text))
    return "empty" if not lines else "refusal" if all(map(is_refusal, lines)) else ""


def _content(text: str) -> Iterator[str]:
    """The lines of a summary that say something."""
    for line in text.split("\n"):
        if _HEADING.match(line.strip()) or is_nothing(line) or not _MARK.sub("", line):
            continue
        if not is_own_line(line):
            yield line


def mend_summary(text: str, audit: Audit, request: SummaryRequest, *, source: SourceTerms, keep: bool) -> MendedSummary:
    """The usable part of a summary with faults.

    Args:
        text: The summary.
        audit: Its findings.
        request: What it was asked with.
        source: Terms of the same.
        keep: Whether a line with something ungrounded stays, with a mark.
    """
    texts = texts_in(request.language)
    rest, number, marked_count = faultless(text, audit, texts.nothing, mark=texts.omitted["unverified"] if keep else "")
    notes = []
    rest, followed_count = _without_consequences(rest, audit.flagged_texts, texts)
    if number + followed_count:
        notes.append(
            f"Statements of the model's summary that its source does not hold were left out: {number + followed_count}."
        )
    if marked_count:
        notes.append(f"Lines of the model's summary that its source does not hold were marked: {marked_count}.")
    if not source.tells(rest) or not any(_content(rest)):
        return MendedSummary(text="")
    rest, put_back = _with_sentences(rest, audit, request, texts)
    if put_back:
        notes.append(f"Rules of the user and sentences with important identifiers were put back by code: {put_back}.")
    return MendedSummary(text=rest, notes=tuple(notes))


def _without_consequences(text: str, claims: Sequence[str], texts: Texts) -> tuple[str, int]:
    """A summary without the lines on work that rests on a consent which nobody gave, and how many those were."""
    if not claims:
        return text, 0
    matters = [topics_of(claim) for claim in claims]
    kept_texts: list[str] = []
    subject, dropped_count = "", 0
    for line in text.split("\n"):
        heading = _HEADING.match(line)
        subject = section_subject(heading[2]) if heading else subject
        topics = set() if heading else topics_of(line)
        follows = subject in _FOLLOWING and any(len(topics & matter) >= _LEAST_TOPICS for matter in matters)
        if not follows:
            if heading and kept_texts and _HEADING.match(kept_texts[-1]) and not heading[0].startswith("###"):
                kept_texts.append(f"- {texts.nothing}")
            kept_texts.append(line)
        dropped_count += follows
    if kept_texts and _HEADING.match(kept_texts[-1]):
        kept_texts.append(f"- {texts.nothing}")
    return ("\n".join(kept_texts), dropped_count) if dropped_count else (text, 0)


def _with_sentences(text: str, audit: Audit, request: SummaryRequest, texts: Texts) -> tuple[str, int]:
    """A summary with the rules and identifiers that it lacks, as they were said; and how many were put back."""
    messages = (*request.messages, *request.prefix)
    count = 0
    for wanted_text, subject in (
        *((rule, "constraints") for rule in audit.unquoted),
        *((i, "context") for i in audit.missing),
    ):
        pair = _sentence_with(wanted_text, messages)
        line = _quotation_of(pair[0], pair[1], texts) if pair else f"- {wanted_text}"
        if line in text or (longer := _with_lines_below(text, [line], subject)) is None:
            continue
        if count_tokens(longer) > request.target_tokens:
            break
        text, count = longer, count + 1
    return text, count


def _sentence_with(wanted_text: str, messages: Sequence[Numbered]) -> tuple[str, Numbered] | None:
    """The newest sentence that has some words, of the user's before all others."""
    for roles in (("user",), ("assistant", "tool")):
        for message in reversed(messages):
            text = text_of(message.message) if message.message["role"] in roles else ""
            at = text.find(wanted_text)
            if at >= 0:
                line = text[text.rfind("\n", 0, at) + 1 :].split("\n", 1)[0]
                sentence = next((piece for piece in split_sentences(line) if wanted_text in piece), wanted_text)
                return (sentence if len(sentence) <= _PUT_BACK_CHARS else wanted_text), message
    return None


def _quotation_of(sentence: str, message: Numbered, texts: Texts) -> str:
    speakers = {"user": "User", "assistant": "Assistant", "tool": "Tool"}
    speaker = texts.speakers[speakers.get(message.message["role"], "Tool")]
    return f"- {speaker}{texts.said}{single_line(sentence.strip(' -*>•'))} (log:{message.seq})"


def _with_lines_below(text: str, lines: Iterable[str], subject: str) -> str | None:
    """A summary with lines at the end of the section of a subject, or at its own end; None for no lines."""
    texts = list(lines)
    if not texts:
        return None
    written_parts = text.rstrip().split("\n")
    heads = {
        section_subject(match[2]): at
        for at, line in reversed([*enumerate(written_parts)])
        if (match := _HEADING.match(line)) is not None
    }
    at = next((heads[each_subject] for each_subject in next_subjects(subject) if each_subject in heads), None)
    if at is None:
        return "\n".join([*written_parts, *texts])
    end = next(
        (later for later in range(at + 1, len(written_parts)) if _HEADING.match(written_parts[later])),
        len(written_parts),
    )
    while end > at + 1 and not written_parts[end - 1].strip():
        end -= 1
    body = [line for line in written_parts[at + 1 : end] if not is_nothing(line)]
    return "\n".join([*written_parts[: at + 1], *body, *texts, *written_parts[end:]])


def with_lines_of_rules(
    text: str, by_rules: str, headings: Sequence[str], request: SummaryRequest, *, only_empty: bool
) -> tuple[str, int]:
    """A model's summary with lines of one that rules wrote, as far as they fit; and how many.

    Args:
        text: The model's.
        by_rules: That of rules.
        headings: Of the model's, by their English names.
        request: What both were asked with.
        only_empty: Whether lines go only below headings that have nothing.
    """
    texts = texts_in(request.language)
    empty = {
        section_subject(heading_in(headings[section.heading], texts).lstrip("# "))
        for section in sections_of(text, headings)
        if section.heading is not None and section.is_empty
    }
    count, subject = 0, ""
    for line in by_rules.split("\n"):
        heading = _HEADING.match(line)
        if heading:
            subject = section_subject(heading[2]) or "context"
            continue
        wanted_text = next(
            (each_subject for each_subject in next_subjects(subject) if not only_empty or each_subject in empty), ""
        )
        if not line.strip() or not wanted_text or line in text:
            continue
        longer = _with_lines_below(text, [line], wanted_text)
        if longer is not None and count_tokens(longer) <= request.target_tokens:
            text, count = longer, count + 1
    return text, count
