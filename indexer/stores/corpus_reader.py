"""The corpus of an index, brought up to date: of files that only grew, what is known is not read again."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from indexer.common import LRU
from indexer.corpus import Corpus, CorpusFile, Ints
from indexer.stores.base import FileWrite, Head
from indexer.stores.row_values import corpus_files
from indexer.types import SourceKind

_GROWN_FILES = 256


class _Growth(NamedTuple):
    """A stretch of a file's revisions in which passages were only added at its end.

    Attributes:
        since: The revision before the first of them.
        until: The last of them.
        start: Ordinal of the first passage that was added.
        end: Number of passages in the end.
    """

    since: int
    until: int
    start: int
    end: int

    def keeps(self, count: int, before: int, now: int) -> bool:
        """True if so many passages of an earlier revision are the first ones of a later one."""
        return self.since <= before <= now <= self.until and (before > self.since or count <= self.start)


class CorpusRows(NamedTuple):
    """Queries of an index that a corpus is made of; all are asked within one read.

    Attributes:
        head: The present head; with a revision also the files that changed after it.
        names: Names of the labels, by number.
        revisions: Revision of each of some files, by number.
        table: Passages of some files from a position on: the number of the file, then `COLUMNS`, in reading order.
    """

    head: Callable[[int | None], Head]
    names: Callable[[], dict[int, str]]
    revisions: Callable[[Sequence[int]], dict[int, int]]
    table: Callable[[Sequence[int], int], Ints]


class CorpusReader:
    """Reader of the corpus of an index.

    Args:
        rows: Its queries.
    """

    def __init__(self, rows: CorpusRows) -> None:
        self._rows = rows
        self._grown: LRU[str, _Growth] = LRU(_GROWN_FILES)
        self._generation = ""

    def note(self, writes: Sequence[FileWrite], refused_texts: Collection[str], revision: int) -> None:
        """Remember of each file between which of its revisions passages were only added at its end."""
        for write in writes:
            if write.state is None or write.moved or write.removed or write.path in refused_texts:
                self._grown.pop(write.path)
            elif write.inserted:
                ordinals = [new.ordinal for new in write.inserted]
                before = self._grown.get(write.path)
                if before is None or before.until != write.expected_revision or min(ordinals) < before.end:
                    before = _Growth(write.expected_revision, 0, min(ordinals), 0)
                self._grown[write.path] = before._replace(until=revision, end=max(ordinals) + 1)

    def read(self, previous: Corpus | None, *, since: int = 0) -> Corpus:
        """See `IndexStore.corpus`; to be called within a read."""
        now = self._rows.head(None)
        revision, generation = now.revision, now.generation
        if generation != self._generation:
            # The revisions of another generation may be given again.
            self._generation, self._grown = generation, LRU(_GROWN_FILES)
        if previous is not None and (previous.generation, previous.since) != (generation, since):
            previous = None
        if previous is not None and previous.revision == revision:
            return previous
        if not revision:
            return Corpus(revision=0, files=(), label_names={}, since=since)
        if previous is not None and previous.revision > revision:
            previous = None
        changes = self._rows.head(since if previous is None else previous.revision)
        files = self._files(changes.files, previous.files if previous is not None else ())
        names = self._rows.names()
        if previous is not None:
            stale = {file for file, _, _ in changes.files}.union(changes.gone)
            files = [file for file in previous.files if file.file not in stale] + files
        files.sort(key=attrgetter("path"))
        return Corpus(revision=revision, files=tuple(files), label_names=names, generation=generation, since=since)

    def _files(
        self, changed_parts: Sequence[tuple[int, str, SourceKind]], files: Sequence[CorpusFile]
    ) -> list[CorpusFile]:
        """Changed files as they are now; of those that only grew what is known is not read again."""
        known_of = {file.file: file for file in files}
        revisions = self._rows.revisions([number for number, _, _ in changed_parts])
        rows = dict[int, Ints]()
        for number, path, _ in changed_parts:
            before, growth = known_of.get(number), self._grown.get(path)
            if before and growth and growth.keeps(len(before.table), before.revision, revisions[number]):
                rest = self._rows.table([number], len(before.table))
                rows[number] = np.concatenate([before.table, rest[:, 1:]])
        table = self._rows.table([number for number, _, _ in changed_parts if number not in rows], 0)
        return corpus_files(changed_parts, table, rows, revisions)
