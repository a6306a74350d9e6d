"""Splitting of files that grow at their end: only the new part is split.

An agent appends to one file all day; splitting all of it for every entry would cost as much as the rest of a write,
and more with every entry.

Invariants: the result is always that of `split_markdown` or `split_transcript` for the whole text; a bounded number
of files is remembered, logs without their text; what is remembered is used only where the text before it is the same,
byte for byte, and for a log only if the index holds the passages of just that log.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from indexer.common.lru import LRU
from indexer.common.patterns import lazy_regex
from indexer.documents.formats import split_file
from indexer.documents.markdown import SpokenPassages, keep_shared_labels, read_section, read_speakers
from indexer.documents.transcripts import Carried, go_on, grown_transcript, whole_transcript
from indexer.types import EXTRA_MARK, Passage

_LOGS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """Passages of a file beyond its first ones.

    Attributes:
        first: Number of passages before these, which stay as they are.
    """

    first: int
    passages: list[Passage]


@dataclass(frozen=True, slots=True, kw_only=True)
class _KnownLog:
    """A log as it was last read."""

    content_hash: str
    read_hash: bytes
    carried_state: Carried


class Logs:
    """Reader of session logs that remembers those read lately. Safe to use from several threads."""

    def __init__(self) -> None:
        self._cache: LRU[str, _KnownLog] = LRU(_LOGS)

    def read(
        self,
        raw: bytes,
        path: str,
        *,
        content_hash: str,
        stored_hash: str = "",
        check: Callable[[], None] = go_on,
    ) -> Growth:
        """The passages of a log that an index does not have yet.

        Args:
            raw: The whole log.
            path: Path of the log.
            content_hash: Hash of the log's content.
            stored_hash: Content hash of the log that the index holds in full; empty if it holds none.
            check: Called for every passage; it ends the reading by raising.
        """
        log = self._cache.get(path)
        usable = log if log and stored_hash == log.content_hash else None
        carried_value = usable.carried_state if usable else Carried()
        hashed_sha256 = hashlib.sha256(memoryview(raw)[: carried_value.size_bytes])
        is_unchanged = usable is not None and hashed_sha256.digest() == usable.read_hash
        read = grown_transcript(raw, carried_value, check) if is_unchanged else None
        if read is None:
            # Another beginning, or earlier messages turn out to have a speaker.
            carried_value, hashed_sha256 = Carried(), hashlib.sha256()
            read = whole_transcript(raw, check)
        hashed_sha256.update(memoryview(raw)[carried_value.size_bytes : read.carried_state.size_bytes])
        self._cache[path] = _KnownLog(
            content_hash=content_hash, read_hash=hashed_sha256.digest(), carried_state=read.carried_state
        )
        return Growth(first=carried_value.passages, passages=read.passages)


_FILES = 32
_HEADING = lazy_regex(r"(##?)[ \t]+\S")
_FRONT_END = lazy_regex(r"^(?:---|\+\+\+|\.\.\.)[ \t]*$", re.MULTILINE)
_TOP_LEVEL = lazy_regex(r"^ {0,3}(?:#(?:[ \t]|$)|=+[ \t]*$)", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """A file up to its last heading of level 1 or 2; the text below that is split again."""

    before: str
    lines: int
    passages: list[Passage]
    depths: list[int]
    labelled_passages: list[Passage]
    level: int
    above: tuple[str, ...]
    file_date: dt.date | None
    file_tags: tuple[str, ...]


_NOTHING = _Known(
    before="", lines=0, passages=[], depths=[], labelled_passages=[], level=0, above=(), file_date=None, file_tags=()
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Split:
    content_hash: str
    passages: list[Passage]


class Splitter:
    """Splitter of Markdown files that remembers those split lately. Safe to use from several threads."""

    def __init__(self) -> None:
        self._cache: LRU[str, _Known] = LRU(_FILES)
        self._splits: LRU[str, _Split] = LRU(_FILES)

    def read(self, text: str, path: str, *, content_hash: str, stored_hash: str = "") -> Growth:
        """The passages of a file from the first one on that the index does not hold like this.

        Args:
            text: The whole file.
            path: Path of the file.
            content_hash: Hash of the file's content.
            stored_hash: Content hash of the file that the index holds in full; empty if it holds none.
        """
        before = self._splits.get(path)
        passages = self.split(text, path)
        self._splits[path] = _Split(content_hash=content_hash, passages=passages)
        first = 0
        if before is not None and stored_hash == before.content_hash:
            first = _common(before.passages, passages)
        return Growth(first=first, passages=passages[first:])

    def split(self, text: str, path: str) -> list[Passage]:
        """The passages of a file; see `split_markdown`, and `split_file` for a file of an extra folder."""
        if path.startswith(EXTRA_MARK):
            return [replace(passage, role="file") for passage in split_file(text, path)]
        state = self._cache.get(path)
        passages = _grow(state, text, path) if state else None
        if state is None or passages is None:
            state, passages = _NOTHING, read_speakers(text, path=path)
        labelled_passages = keep_shared_labels(passages, state.labelled_passages)
        last = _last_section(text, passages, labelled_passages, state)
        if last is None:
            self._cache.pop(path)
        else:
            self._cache[path] = last
        return labelled_passages


def _common(before: Sequence[Passage], now: Sequence[Passage]) -> int:
    """Number of equal passages at the beginning of both."""
    # Most are one and the same object, which is cheaper to see than that two are equal.
    pairs = enumerate(zip(before, now, strict=False))
    return next((place for place, (a, b) in pairs if a is not b and a != b), min(len(before), len(now)))


def _grow(state: _Known, text: str, path: str) -> SpokenPassages | None:
    """Passages of a text that is the same up to the remembered heading; None if it is not."""
    if not text.startswith(state.before):
        return None
    rest = text[len(state.before) :]
    heading = _HEADING.match(rest)
    if heading is None or len(heading[1]) != state.level or "\r" in rest:
        return None
    if state.level > 1 and _TOP_LEVEL.search(rest):
        return None
    part = read_section(
        rest,
        path=path,
        level=state.level,
        above=state.above,
        file_date=state.file_date,
        file_tags=state.file_tags,
    )
    # A heading with nothing below it is a passage of the section above, which only the whole file knows.
    if not part.passages or part.depths[0] <= len(state.above):
        return None
    passages = [
        replace(passage, start_line=passage.start_line + state.lines, end_line=passage.end_line + state.lines)
        for passage in part.passages
    ]
    return SpokenPassages(
        passages=state.passages + passages,
        depths=state.depths + part.depths,
        file_date=state.file_date,
        file_tags=state.file_tags,
    )


def _opens_heading(passages: SpokenPassages, at: int) -> bool:
    """True for the first passage below a heading."""
    passage, depth = passages.passages[at], passages.depths[at]
    if not passage.opens_section or not depth:
        return False
    return not at or passage.heading[:depth] != passages.passages[at - 1].heading[: passages.depths[at - 1]]


def _last_section(
    text: str, passages: SpokenPassages, labelled_passages: list[Passage], state: _Known
) -> _Known | None:
    """The file up to its last heading of level 1 or 2, where that can be told without doubt; `state` is its start."""
    if "\r" in text or text.startswith("\ufeff"):
        return None
    last = next((i for i in range(len(passages.passages) - 1, -1, -1) if _opens_heading(passages, i)), None)
    if last is None:
        return None
    first, depth = passages.passages[last], passages.depths[last]
    after = passages.passages[last - 1].end_line if last else 0
    # The heading may be the very one that the file was known up to, and stands behind it in any case.
    lines = text[len(state.before) :].split("\n")
    place = range(max(0, after - state.lines), first.start_line - 1 - state.lines)
    at = next((n for n in place if _HEADING.match(lines[n])), None)
    if at is None or lines[at].lstrip("#").strip().rstrip("#").rstrip() != first.heading[depth - 1]:
        return None
    before = state.before + "\n".join((*lines[:at], ""))
    # A comment that is still open there might end below, and take the heading with it.
    if before.rfind("<!--") > before.rfind("-->"):
        return None
    # Front matter that is not closed yet may be closed below, and what looked like text is none then.
    if before.startswith(("---", "+++")) and _FRONT_END.search(before, 3) is None:
        return None
    level = len(lines[at]) - len(lines[at].lstrip("#"))
    return _Known(
        before=before,
        lines=state.lines + at,
        passages=passages.passages[:last],
        depths=passages.depths[:last],
        labelled_passages=labelled_passages[:last],
        level=level,
        above=first.heading[: depth - 1],
        file_date=passages.file_date,
        file_tags=passages.file_tags,
    )
