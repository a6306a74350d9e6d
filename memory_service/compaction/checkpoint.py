"""Checkpoint message: summary, ledger, pins and the current request, with labels for identifiers where asked for. Pure.

Invariants: the same log gives the same bytes, so that a provider's cache is hit; pins and the request stand word for
word, but for what would open or close a frame of ours; the message says of itself that it is a record and gives no
instructions. Labels such as `[email 1]`: the same for the same identifier each time; a text that went through once does
not change again; handles, dates, times, versions and amounts stay.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from indexer.common import lazy_regex
from memory_service.compaction.ledger import merge_ledger
from memory_service.messages.shapes import Message, with_texts
from memory_service.messages.sizes import Numbered, estimate_tokens, quarters
from memory_service.schemas.compaction import LedgerEntry
from memory_service.text.frames import COMPACTED_CONTEXT, escape_frames
from memory_service.text.identifiers import find_identifiers
from memory_service.text.statements import names_of
from memory_service.text.texts import ENGLISH, TEXTS, Texts

_BEGINNINGS = tuple(
    begin
    for texts in TEXTS.values()
    for opening in (f"{texts.checkpoint_begin}{texts.checkpoint}",)
    for begin in (opening, f"{texts.pins_begin}{texts.pins}", f"{COMPACTED_CONTEXT}\n{opening}")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """Parts of a checkpoint.

    Attributes:
        summary: Markdown; empty before the first compaction.
        ledger: Exact things, as `ledger_text.rendered` writes them: escaped, within tags of their own.
        pins: Each word for word, oldest first.
        request: The last thing the user asked, if it is not below the checkpoint any more.
        request_seq: Its number.
        toolless_upto: The last message below the checkpoint that is shown without its tools; 0 for none.
        texts: Its words about itself, in the language of the talk.
    """

    summary: str = ""
    ledger: str = ""
    pins: tuple[str, ...] = ()
    request: str = ""
    request_seq: int = 0
    toolless_upto: int = 0
    role: Literal["user", "assistant"] = "user"
    texts: Texts = ENGLISH


def _checkpoint_text(checkpoint: Checkpoint) -> str:
    """The text of a checkpoint; empty if there is nothing to say."""
    texts, pins = checkpoint.texts, _block("pinned", escape_frames("\n".join(checkpoint.pins)))
    if not (checkpoint.summary or checkpoint.ledger or checkpoint.request):
        return f"{texts.pins_begin}{texts.pins}\n{pins}" if pins else ""
    pieces = [
        f"{texts.checkpoint_begin}{texts.checkpoint}",
        _block("summary", escape_frames(checkpoint.summary.strip())),
        _block("ledger", checkpoint.ledger.strip()),
        pins,
        _block("current-request", escape_frames(checkpoint.request), f' handle="log:{checkpoint.request_seq}"'),
        texts.toolless.format(upto=checkpoint.toolless_upto) if checkpoint.toolless_upto else "",
        texts.checkpoint_end,
    ]
    text = "\n\n".join(piece for piece in pieces if piece)
    return f"{COMPACTED_CONTEXT}\n{text}" if checkpoint.role == "assistant" else text


def checkpoint_messages(checkpoint: Checkpoint) -> list[Message]:
    """The checkpoint as messages: none, or one."""
    text = _checkpoint_text(checkpoint)
    return [{"role": checkpoint.role, "content": text}] if text else []


def shorten_text(text: str, limit_chars: int, handle: str, texts: Texts = ENGLISH) -> str:
    """A text that is too long for a checkpoint: its head and its tail, with what is missing between them.

    A CJK character, which costs a token, counts for four.
    """
    if quarters(text) <= limit_chars:
        return text
    head = _fitting(text, limit_chars * 2 // 3)
    tail = _fitting(text[:-limit_chars:-1], limit_chars // 3)[::-1]
    missing = len(text) - len(head) - len(tail)
    return f"{head}\n{texts.left_out.format(count=missing, handle=handle)}\n{tail}"


def _fitting(text: str, chars: int) -> str:
    """The beginning of a text that counts for at most so many characters."""
    at = 0
    while chars >= 4 and at < len(text):
        # A quarter of the room always fits, whatever the characters are.
        piece = text[at : at + (chars if text.isascii() else chars // 4)]
        chars -= quarters(piece)
        at += len(piece)
    return text[:at]


def frame_tokens(*, toolless: bool = False) -> int:
    """Size of a checkpoint without its parts: its words about itself, in no language longer, and the tags."""
    upto = 10**6 if toolless else 0
    parts = Checkpoint(summary="-", ledger="-", request="-", request_seq=10**6, toolless_upto=upto)
    return estimate_tokens(_checkpoint_text(parts))


def is_checkpoint(text: str) -> bool:
    """True if a text is a checkpoint or a list of pins that the service put into a view."""
    return text.startswith(_BEGINNINGS)


def _block(name: str, text: str, attributes: str = "") -> str:
    return f"<{name}{attributes}>\n{text}\n</{name}>" if text else ""


def pinned_texts(pins: Sequence[tuple[str, int | None]]) -> tuple[str, ...]:
    """Pins as they stand in a checkpoint: what was said, with its handle where it is a message."""
    return tuple(f"- (log:{seq}) {text}" if seq is not None else f"- {text}" for text, seq in pins)


_NOUNS = {
    "path": "file", "url": "url", "email": "email", "uuid": "id", "hash": "id", "id": "id", "address": "host",
}  # fmt: skip
_LABEL = lazy_regex(r"\[(file|url|email|id|host|number|person) (\d{1,9})\]")
_HANDLE = lazy_regex(r"log:\d+(?:[-–#]\d+)*")
# Phones, cards and papers: seven digits and more, with the signs that people group them by.
_DIGITS = lazy_regex(r"(?<![\w.,/-])\+?\(?\d[\d ()\-]{5,40}\d[Xx]?(?![\w-])|(?<![\d.,])\d{7,40}[Xx]?(?!\d)", re.ASCII)
_LEAST_DIGITS = 7
_GROUPED = lazy_regex(r"\d{1,3}(?: \d{3})+", re.ASCII)
_DATE = lazy_regex(r"(?:19|20)\d\d-?\d\d-?\d\d", re.ASCII)

_Span = tuple[int, int, str]


class Labels:
    """The labels of one session.

    Args:
        known: Originals and their labels, as earlier compactions gave them.

    Attributes:
        corrected: How many originals `known_text` replaced.
    """

    def __init__(self, known_fields: Mapping[str, str]) -> None:
        self._labels = dict(known_fields)
        self._counts: dict[str, int] = {}
        self.corrected = 0
        for label in known_fields.values():
            self._note(label)

    def text(self, text: str) -> str:
        """A text with a label for each identifier."""
        # What was written before may hold labels of which the original is not known any more.
        for match in _LABEL.finditer(text):
            self._note(match[0])
        # Beside a label, what is left may read as another identifier. What is no label shrinks, so this ends.
        while spans := _spans(text):
            text = self._replace_spans(text, spans)
        return text

    def known_text(self, text: str) -> str:
        """A text with the labels of those originals alone that have one; others stay, and are for an audit to find."""
        spans = [span for span in _spans(text) if text[span[0] : span[1]] in self._labels]
        self.corrected += len(spans)
        return self._replace_spans(text, spans)

    def message(self, message: Numbered) -> Numbered:
        """A message whose texts, and arguments of calls, have labels."""
        return replace(message, message=with_texts(message.message, self.text))

    def entries(self, entries: Iterable[LedgerEntry]) -> tuple[LedgerEntry, ...]:
        """Entries of a ledger with labels, each thing once; what says a person's name is nothing but one."""
        return merge_ledger((entry.model_copy(update={"text": self._entry_text(entry)}) for entry in entries), ())

    def used_in(self, texts: Sequence[str]) -> dict[str, str]:
        """The originals whose labels stand in the texts."""
        standing = {match[0] for text in texts for match in _LABEL.finditer(text)}
        return {original: label for original, label in self._labels.items() if label in standing}

    def _entry_text(self, entry: LedgerEntry) -> str:
        if entry.kind == "name":
            return entry.text if _LABEL.fullmatch(entry.text) else self._label("person", entry.text)
        if entry.kind in ("path", "file_read", "file_modified") and not _LABEL.search(entry.text):
            return self._label("file", entry.text)
        return self.text(entry.text)

    def _replace_spans(self, text: str, spans: Iterable[_Span]) -> str:
        pieces, at = list[str](), 0
        for start, end, noun in spans:
            pieces += [text[at:start], self._label(noun, text[start:end])]
            at = end
        return "".join([*pieces, text[at:]])

    def _label(self, noun: str, original: str) -> str:
        if original not in self._labels:
            self._counts[noun] = self._counts.get(noun, 0) + 1
            self._labels[original] = f"[{noun} {self._counts[noun]}]"
        return self._labels[original]

    def _note(self, label: str) -> None:
        match = _LABEL.fullmatch(label)
        if match:
            self._counts[match[1]] = max(self._counts.get(match[1], 0), int(match[2]))


def _spans(text: str) -> list[_Span]:
    """Spans to be replaced, in order; none within a handle or a label, none twice."""
    spans = [match.span() for pattern in (_HANDLE, _LABEL) for match in pattern.finditer(text)]
    kept_spans, end = list[_Span](), 0
    for span in sorted([*_identifiers(text), *_numbers(text), *_names(text)], key=lambda span: (span[0], -span[1])):
        if span[0] >= end and not any(span[0] < last and first < span[1] for first, last in spans):
            kept_spans.append(span)
            end = span[1]
    return kept_spans


def _identifiers(text: str) -> Iterator[_Span]:
    for identifier in find_identifiers(text):
        if identifier.kind in _NOUNS:
            yield identifier.start, identifier.end, _NOUNS[identifier.kind]


def _names(text: str) -> Iterator[_Span]:
    """Where somebody says what they are called; their names alone are not to be told from other words."""
    for name in names_of(text):
        if (at := text.find(name)) >= 0:
            yield at, at + len(name), "person"


def _numbers(text: str) -> Iterator[_Span]:
    for match in _DIGITS.finditer(text):
        number = match[0].strip()
        digits = sum(map(str.isdigit, number))
        if digits >= _LEAST_DIGITS and not _GROUPED.fullmatch(number) and not _DATE.match(number):
            yield match.start(), match.start() + len(match[0].rstrip()), "number"
