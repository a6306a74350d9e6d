"""Identifiers replaced by labels such as `[email 1]`, the same label for the same identifier each time.

Invariants: a text that went through once does not change again; handles such as `log:12` stay, and lead to the
originals in the log; dates, times, versions and amounts are no identifiers of anybody and stay.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from memory_service.compaction.identifiers import find_identifiers
from memory_service.compaction.ledger import merged
from memory_service.compaction.statements import names_of
from memory_service.messages import Numbered, with_texts
from memory_service.sessions.records import LedgerEntry

_NOUNS = {
    "path": "file", "url": "url", "email": "email", "uuid": "id", "hash": "id", "id": "id", "address": "host",
}  # fmt: skip
_LABEL = re.compile(r"\[(file|url|email|id|host|number|person) (\d{1,9})\]")
_HANDLE = re.compile(r"log:\d+(?:[-–#]\d+)*")
# Phones, cards and papers: seven digits and more, with the signs that people group them by.
_DIGITS = re.compile(r"(?<![\w.,/-])\+?\(?\d[\d ()\-]{5,40}\d[Xx]?(?![\w-])|(?<![\d.,])\d{7,40}[Xx]?(?!\d)", re.ASCII)
_LEAST_DIGITS = 7
_GROUPED = re.compile(r"\d{1,3}(?: \d{3})+", re.ASCII)
_DATE = re.compile(r"(?:19|20)\d\d-?\d\d-?\d\d", re.ASCII)

Span = tuple[int, int, str]


class Labels:
    """The labels of one session.

    Args:
        known: Originals and their labels, as earlier compactions gave them.

    Attributes:
        corrected: How many originals `known_text` replaced.
    """

    def __init__(self, known: Mapping[str, str]) -> None:
        self._labels = dict(known)
        self._counts: dict[str, int] = {}
        self.corrected = 0
        for label in known.values():
            self._note(label)

    def text(self, text: str) -> str:
        """A text with a label for each identifier."""
        # What was written before may hold labels of which the original is not known any more.
        for found in _LABEL.finditer(text):
            self._note(found[0])
        # Beside a label, what is left may read as another identifier. What is no label shrinks, so this ends.
        while spans := _spans(text):
            text = self._replaced(text, spans)
        return text

    def known_text(self, text: str) -> str:
        """A text with the labels of those originals alone that have one; others stay, and are for an audit to find."""
        spans = [span for span in _spans(text) if text[span[0] : span[1]] in self._labels]
        self.corrected += len(spans)
        return self._replaced(text, spans)

    def message(self, message: Numbered) -> Numbered:
        """A message whose texts, and arguments of calls, have labels."""
        return replace(message, message=with_texts(message.message, self.text))

    def entries(self, entries: Iterable[LedgerEntry]) -> tuple[LedgerEntry, ...]:
        """Entries of a ledger with labels, each thing once; what says a person's name is nothing but one."""
        return merged(({**entry, "text": self._entry_text(entry)} for entry in entries), ())

    def used_in(self, texts: Sequence[str]) -> dict[str, str]:
        """The originals whose labels stand in the texts."""
        standing = {found[0] for text in texts for found in _LABEL.finditer(text)}
        return {original: label for original, label in self._labels.items() if label in standing}

    def _entry_text(self, entry: LedgerEntry) -> str:
        if entry["kind"] == "name":
            return entry["text"] if _LABEL.fullmatch(entry["text"]) else self._label("person", entry["text"])
        if entry["kind"] in ("path", "file_read", "file_modified") and not _LABEL.search(entry["text"]):
            return self._label("file", entry["text"])
        return self.text(entry["text"])

    def _replaced(self, text: str, spans: Iterable[Span]) -> str:
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
        found = _LABEL.fullmatch(label)
        if found:
            self._counts[found[1]] = max(self._counts.get(found[1], 0), int(found[2]))


def _spans(text: str) -> list[Span]:
    """What is to be replaced, in order; nothing within a handle or a label, nothing twice."""
    taken = [match.span() for pattern in (_HANDLE, _LABEL) for match in pattern.finditer(text)]
    kept, end = list[Span](), 0
    for span in sorted([*_identifiers(text), *_numbers(text), *_names(text)], key=lambda span: (span[0], -span[1])):
        if span[0] >= end and not any(span[0] < last and first < span[1] for first, last in taken):
            kept.append(span)
            end = span[1]
    return kept


def _identifiers(text: str) -> Iterator[Span]:
    for found in find_identifiers(text):
        if found.kind in _NOUNS:
            yield found.start, found.end, _NOUNS[found.kind]


def _names(text: str) -> Iterator[Span]:
    """Where somebody says what they are called; their names alone are not to be told from other words."""
    for said in names_of(text):
        if (at := text.find(said)) >= 0:
            yield at, at + len(said), "person"


def _numbers(text: str) -> Iterator[Span]:
    for match in _DIGITS.finditer(text):
        number = match[0].strip()
        digits = sum(map(str.isdigit, number))
        if digits >= _LEAST_DIGITS and not _GROUPED.fullmatch(number) and not _DATE.match(number):
            yield match.start(), match.start() + len(match[0].rstrip()), "number"
