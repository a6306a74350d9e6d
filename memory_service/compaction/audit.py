"""Audit of a summary against its source, in both directions. Pure.

Forward: headings, the most important identifiers and the user's rules are there, or in the ledger beside it. Backward:
what the summary names, measures or quotes stands in its source, and so does each consent that it reports.

Invariants: linear in the source for each thing looked up; a consent holds only if a user said yes, or decided, where
the same matter was spoken of; a summary is never repaired by rewording, only by leaving out whole sentences, and doing
that twice changes nothing more; what the service itself wrote into a summary is never a finding.
"""

from __future__ import annotations

import datetime as dt
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate

from indexer.common import lazy_regex
from indexer.language import is_assent, is_estimate, typed_text
from memory_service.compaction.summary import PromptReading, SummaryRequest
from memory_service.messages.shapes import Json, arguments_of, text_of, tool_calls_of
from memory_service.messages.sizes import Numbered
from memory_service.text.frames import escape_frames, visible
from memory_service.text.grounding import SourceText, claims_of, topics_of
from memory_service.text.identifiers import Identifier, find_identifiers
from memory_service.text.secrets import without_secrets
from memory_service.text.sentences import split_sentences
from memory_service.text.statements import decisions_of, is_yes, rules_of
from memory_service.text.texts import ENGLISH, TEXTS, Texts, heading_forms, heading_in, pattern_of


def is_granted(claim: str, request: SummaryRequest) -> bool:
    """True if the source of a summary has the consent that a line of it claims."""
    subject = topics_of(claim)
    return any(not subject or subject & topics_of(consent) for consent in _consents(request))


def _consents(request: SummaryRequest) -> Iterator[str]:
    """Texts around each yes or decision of the user."""
    yield from claims_of(request.previous)
    yield from (
        entry.text for entry in request.ledger if entry.kind in ("confirmation", "answer") and _ends_in_yes(entry.text)
    )
    yield from (entry.text for entry in request.ledger if entry.kind == "decision" and entry.text.startswith("user:"))
    before = ""
    for message in (*request.messages, *request.prefix):
        text, role = text_of(message.message), message.message["role"]
        text = typed_text(text) if role == "user" else text
        if role == "user" and _agrees(text):
            yield f"{before[-3_000:]}\n{text[:2_000]}"
        elif role == "user":
            yield from decisions_of(text[:12_000])
        if role == "assistant" and text:
            before = text


def _ends_in_yes(confirmation: str) -> bool:
    return _agrees(confirmation.rpartition("→ “")[2].rstrip("”"))


def _agrees(reply: str) -> bool:
    """True if a user says yes, or that what was said before is good."""
    return is_yes(reply) or is_assent(reply)


_HEADING = lazy_regex(r"^(#{1,6})[ \t]+(\S[^\n]*)$", re.MULTILINE)
_HANDLE = lazy_regex(r"log:\d+(?:[-–#]\d+)*")
# What the summary cannot do without; numbers, times and quotes are many, and the ledger has the first.
_CARRIED = frozenset({"path", "url", "email", "uuid", "hash", "id", "version", "address", "variable"})
_MAX_RULES = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """Findings about a summary.

    Attributes:
        missing: Important identifiers of the source that neither the summary nor the ledger has.
        ungrounded_texts: Identifiers, numbers and quotes of the summary that its source lacks.
        missing_headings: Headings that are not there, or not in their place.
        empty_headings: Headings with nothing under them.
        flagged_texts: Lines that report a consent which the source lacks.
        unquoted: Rules of the user that neither the summary nor the ledger quotes.
        unpinned_texts: Pins that the summary does not repeat; no fault, since the view keeps them itself.
    """

    missing: tuple[str, ...] = ()
    ungrounded_texts: tuple[str, ...] = ()
    missing_headings: tuple[str, ...] = ()
    empty_headings: tuple[str, ...] = ()
    flagged_texts: tuple[str, ...] = ()
    unquoted: tuple[str, ...] = ()
    unpinned_texts: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """True if the summary may be used as it is."""
        faults = (
            self.missing,
            self.ungrounded_texts,
            self.missing_headings,
            self.empty_headings,
            self.flagged_texts,
            self.unquoted,
        )
        return not any(faults)


def audit_summary(
    summary_text: str,
    *,
    request: SummaryRequest,
    headings: Sequence[str] = (),
    pins: Sequence[str] = (),
    reading: PromptReading | None = None,
    top: int = 12,
) -> Audit:
    """Checks a summary.

    Args:
        summary_text: Markdown.
        request: What it was asked with; nothing else is its source but the pins and what `reading` says.
        headings: Those it must have, in order, with or without their `#`, by their English names; in any language.
        pins: What the view keeps word for word.
        reading: What the service wrote into the prompts is no finding, nor is what a model never saw.
        top: How many identifiers of the source have to be carried.
    """
    reading = reading or PromptReading()
    messages = without_secrets((*request.messages, *request.prefix))
    read = [message for message in messages if message.seq not in reading.unread_seqs]
    # The numbers of messages ground no number of the summary.
    texts = [_HANDLE.sub("", text) for text in reading.inserted_texts]
    beside = [entry.text for entry in request.ledger]
    # Whoever wrote the summary read the messages without what nobody sees, and quotes frames of ours as entities.
    source_text = SourceText(*map(escape_frames, (summary_text, *beside)))
    source = SourceText(*map(visible, _source_texts(messages, request)), *pins, *texts, days=_days(messages))
    missing_headings, empty_headings = _checked_headings(summary_text, headings)
    return Audit(
        missing=tuple(identifier.text for identifier in _important(read, top) if not source_text.holds(identifier)),
        ungrounded_texts=tuple(
            dict.fromkeys(
                found_identifier.text
                for found_identifier in _own(summary_text)
                if not _is_held(found_identifier, summary_text, source)
            )
        ),
        missing_headings=missing_headings,
        empty_headings=empty_headings,
        flagged_texts=tuple(claim for claim in claims_of(summary_text) if not is_granted(claim, request)),
        unquoted=tuple(rule for rule in _rules(read) if not source_text.holds(_as_quote(escape_frames(rule)))),
        unpinned_texts=tuple(pin for pin in pins if pin.strip() not in summary_text),
    )


def drop_ungrounded(text: str, audit: Audit, no_text: str = ENGLISH.nothing) -> str:
    """The summary without the sentences that hold something ungrounded or flagged.

    Of a line of one sentence nothing stays. Headings stay; one that has nothing left under it says so.
    """
    return faultless(text, audit, no_text)[0]


def faultless(text: str, audit: Audit, no_text: str = ENGLISH.nothing, *, mark: str = "") -> tuple[str, int, int]:
    """The summary without the sentences that hold something ungrounded or flagged, and how many were left out.

    Args:
        text: The summary.
        audit: Its findings.
        no_text: What stands under a heading that has nothing left.
        mark: What is put behind a line with something ungrounded that stays; empty for none that does. A consent that
            nobody gave never stays.

    Returns:
        The text, the number of sentences that were left out, and that of lines with a mark.
    """
    bad, keys = set(audit.ungrounded_texts), set(audit.flagged_texts)
    lines = text.split("\n")
    ends = list(accumulate(len(line) + 1 for line in lines))
    faults: dict[int, list[Identifier]] = {}
    for identifier in _own(text) if bad else ():
        if identifier.text in bad:
            faults.setdefault(bisect_right(ends, identifier.start), []).append(identifier)
    texts: list[str] = []
    number = marked_count = 0
    for at, line in enumerate(lines):
        claims = line.strip() in keys
        if not (claims or at in faults) or _HEADING.match(line) or line.lstrip().startswith("```"):
            texts.append(line)
            continue
        if mark and not claims:
            texts.append(line if line.endswith(mark) else f"{line.rstrip()} {mark}")
            marked_count += 1
            continue
        rest, gone_count = _without_sentences(
            line, {found_identifier.text for found_identifier in faults.get(at, ())}, claims=claims
        )
        number += gone_count
        texts += [rest] if rest else []
    if not (number or marked_count):
        return text, 0, 0
    return _fill_empty_headings(texts, no_text), number, marked_count


def _without_sentences(line: str, bad: set[str], *, claims: bool) -> tuple[str, int]:
    """A line without the sentences that have something bad, and how many those were; empty if little is left."""
    sentences = list(split_sentences(line))
    faulty = {
        at
        for at, sentence in enumerate(sentences)
        if any(text in sentence for text in bad) or (claims and any(claims_of(sentence)))
    }
    held_text = "".join(sentences[at] for at in faulty)
    whole = len(sentences) < 2 or not faulty or not all(text in held_text for text in bad)
    rest = [sentence for at, sentence in enumerate(sentences) if at not in faulty]
    if whole or not any(_SAYS.search(sentence) for sentence in rest):
        return "", len(sentences) or 1
    begins = _BULLET.match(line)
    kept_text = " ".join(rest)
    return kept_text if not begins or kept_text.startswith(begins[0].strip()) else f"{begins[0]}{kept_text}", len(
        faulty
    )


_BULLET = lazy_regex(r"[ \t]*(?:[-*+•]|\d{1,3}[.)])[ \t]+")
_SAYS = lazy_regex(r"[^\W\d_]{2,}.*[^\W\d_]{2,}|[^\W\d_\x00-\x7f]{2}")


def audit_problems(audit: Audit, texts: Texts = ENGLISH) -> tuple[str, ...]:
    """Findings as sentences, for the model that is to write the summary again, with the headings in its language."""
    missing, empty = (
        [heading_in(heading, texts) for heading in headings]
        for headings in (
            audit.missing_headings,
            audit.empty_headings,
        )
    )
    parts = (
        ("These headings are missing or out of order: {}.", missing),
        (f"These headings have nothing under them; write {texts.nothing} if there is nothing: {{}}.", empty),
        ("These identifiers of the conversation are missing; carry them over exactly: {}.", audit.missing),
        ("These rules of the user are not quoted word for word: {}.", audit.unquoted),
        ("These do not occur in the conversation; leave them out or correct them: {}.", audit.ungrounded_texts),
        ("The user never said so; do not report a consent that was not given: {}.", audit.flagged_texts),
    )
    return tuple(sentence.format("; ".join(items)) for sentence, items in parts if items)


def audit_record(audit: Audit) -> dict[str, Json]:
    """The audit as the log keeps it; what was fine is left out."""
    fields = {
        "missing": audit.missing,
        "ungrounded": audit.ungrounded_texts,
        "missing_headings": audit.missing_headings,
        "empty_headings": audit.empty_headings,
        "flagged": audit.flagged_texts,
        "unquoted": audit.unquoted,
        "unpinned": audit.unpinned_texts,
    }
    return {"ok": audit.ok, **{name: list(items) for name, items in fields.items() if items}}


def _source_texts(messages: Iterable[Numbered], request: SummaryRequest) -> Iterator[str]:
    yield from (request.previous, request.instructions, request.identifier_instructions)
    yield from (entry.text for entry in request.ledger)
    for message in messages:
        yield text_of(message.message)
        yield message.at
        for call in tool_calls_of(message.message):
            yield call["function"]["name"]
            # Strings as they are meant: JSON writes a line break and a backslash otherwise.
            yield from _strings(arguments_of(call))


def _strings(value: object) -> Iterator[str]:
    waiting = [("", value)]
    while waiting:
        key, item = waiting.pop()
        if isinstance(item, dict):
            waiting += [(str(inner), deeper) for inner, deeper in item.items()]
        elif isinstance(item, list):
            waiting += [(key, deeper) for deeper in item]
        else:
            yield f"{key}: {item}"


def _days(messages: Iterable[Numbered]) -> Iterator[dt.date]:
    for at in {message.at[:10] for message in messages if message.at}:
        try:
            yield dt.date.fromisoformat(at)
        except ValueError:
            continue


def _own(summary: str) -> list[Identifier]:
    """The identifiers of a summary, without handles such as `log:12#1`, and without those of lines of our own."""
    handles = sorted((*(match.span() for match in _HANDLE.finditer(summary)), *_own_lines(summary)))
    handles = [span for at, span in enumerate(handles) if not at or span[1] > handles[at - 1][1]]
    starts = [start for start, _ in handles]

    def within_handle(identifier: Identifier) -> bool:
        at = bisect_right(starts, identifier.start) - 1
        return at >= 0 and identifier.end <= handles[at][1]

    return [found_identifier for found_identifier in find_identifiers(summary) if not within_handle(found_identifier)]


def _is_held(identifier: Identifier, summary: str, source: SourceText) -> bool:
    estimate = is_estimate(summary, identifier.start, identifier.end)
    return source.holds(identifier) or (estimate and source.holds_nearly(identifier))


@cache
def _templates() -> tuple[re.Pattern[str], ...]:
    """Patterns of the lines that the service itself writes into summaries, in every language."""
    count, words, anything_text = r"\d{1,18}", r"[^\n\[\]]{0,80}", r"[^\n]{0,60}"
    day = r"\d{4}-\d\d-\d\d(?: \d\d:\d\d)?"
    groups = {
        **dict.fromkeys(("first", "last", "user", "assistant", "tool", "media", "count"), count),
        "what": words,
        "size": r"[\d.,KMk]{1,12}",
        "handle": r"log:\d{1,18}",
        "large": anything_text,
        "since": day,
        "until": day,
    }
    fields = groups | {"first": r"(?:log:)?\d{1,18}", "last": r"(?:log:)?\d{1,18}"}
    ours = []
    for texts in TEXTS.values():
        told_texts = [texts.coverage, texts.coverage + texts.coverage_times, texts.note, texts.left_out]
        told_texts += [
            texts.coverage + texts.coverage_media,
            texts.coverage + texts.coverage_media + texts.coverage_times,
        ]
        told_texts += [texts.omitted[name] for name in ("message", "more", "partial")]
        ours += [pattern_of(text, **fields) for text in told_texts]
    return tuple(ours)


def is_own_line(line: str) -> bool:
    """True if a line of a summary is one that the service itself writes."""
    return any(template.fullmatch(line.strip().removeprefix("- ")) for template in _templates())


def _own_lines(summary: str) -> Iterator[tuple[int, int]]:
    """Spans of what the service itself wrote into a summary."""
    if "log:" in summary or "[" in summary:
        for template in _templates():
            yield from (match.span() for match in template.finditer(summary))


def _important(messages: Sequence[Numbered], top: int) -> list[Identifier]:
    """The identifiers that matter most: the user's, the recent, the often used."""
    scores: dict[str, float] = {}
    first: dict[str, Identifier] = {}
    for at, message in enumerate(messages, 1):
        weight = {"user": 3.0, "assistant": 1.0}.get(message.message["role"], 0.25)
        for identifier in _distinct(visible(text_of(message.message)[:12_000])):
            scores[identifier.text] = scores.get(identifier.text, 0.0) + weight * (1 + at / len(messages))
            first.setdefault(identifier.text, identifier)
    best = sorted(scores, key=lambda text: -scores[text])[: max(top, 0)]
    return [first[text] for text in best]


def _distinct(text: str) -> Iterable[Identifier]:
    return {
        identifier.text: identifier for identifier in find_identifiers(text) if identifier.kind in _CARRIED
    }.values()


def _rules(messages: Sequence[Numbered]) -> list[str]:
    told_messages = [message for message in messages if message.message["role"] == "user"]
    rules = [rule for message in told_messages for rule in rules_of(text_of(message.message)[:12_000])]
    return list(dict.fromkeys(rules))[-_MAX_RULES:]


def _as_quote(text: str) -> Identifier:
    return Identifier(kind="quote", text=text, start=0, end=len(text))


def _checked_headings(text: str, headings: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    parts = [(_bare(match[2]), len(match[1]), match.end()) for match in _HEADING.finditer(_without_code(text))]
    missing, empty, at = [], [], 0
    for heading in headings:
        forms = {_bare(form) for form in heading_forms(heading)}
        place = next((place for place in range(at, len(parts)) if parts[place][0] in forms), None)
        if place is None:
            missing.append(heading)
            continue
        at = place + 1
        end = text.find("\n#", parts[place][2])
        deeper = at < len(parts) and parts[at][1] > parts[place][1]
        if not deeper and not text[parts[place][2] : end if end >= 0 else len(text)].strip():
            empty.append(heading)
    return tuple(missing), tuple(empty)


def _without_code(text: str) -> str:
    """A text with the lines of its code blocks made blank: a comment there is no heading."""
    inside, lines = False, []
    for line in text.split("\n"):
        fence = line.lstrip().startswith("```")
        lines.append(" " * len(line) if inside or fence else line)
        inside ^= fence
    return "\n".join(lines)


def _bare(heading: str) -> str:
    return heading.strip().lstrip("#").strip(" \t*:：#").lower()


def _fill_empty_headings(lines: list[str], text: str) -> str:
    """Lines with a word under each heading that has none."""
    filled_texts: list[str] = []
    below = ""
    for line in reversed(lines):
        heading, next_heading = _HEADING.match(line), _HEADING.match(below)
        if heading and (not below or (next_heading and len(next_heading[1]) <= len(heading[1]))):
            filled_texts.append(text)
        filled_texts.append(line)
        below = line if line.strip() else below
    return "\n".join(reversed(filled_texts))
