"""Snapshots of an index for its searches: data in memory, brought up to date before each, packed when it is large.

Invariants: a snapshot shows the store as the read around it sees it, whoever wrote; passages written after the packing
are searched beside the packed part, in full; nobody waits for a packing. A search is given the generation that its
read sees; the next one is loaded before the switch, and former ones are held until nobody reads them any more.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from indexer.common.throttle import THROTTLE
from indexer.corpus import Corpus, Mask
from indexer.engine.matrix import MATRIX_PASSAGES, Matrix, load_matrix
from indexer.engine.reader import IndexReader, Packed, TermCache
from indexer.engine.segments.builder import fetch_pack, open_segment, pack_store, scrub_pack
from indexer.engine.segments.file import is_sound, open_pack
from indexer.engine.segments.file_words import Recent, load_recent
from indexer.engine.segments.segment import Segment
from indexer.errors import StoreCorrupt, StoreError
from indexer.stores.base import Head, IndexStore

# Up to here all passages are looked at for every question: as fast as by codes, and exact. Source: processor time of a
# search without and with a packed part, 2.5 and 3.7 ms at 4,000 generated passages, 4.5 and 5.1 at 8,000, 5.5 and 5.2
# at 12,000; beside writes 7 and 11 at 7,000, as a file that is written to leaves the packed part (our measurement).
PACK_PASSAGES = 10_000
# The first question that a process asks of a larger index is answered by sqlite-vec. Source: python -m
# tests.benchmarks.nearest: reading all vectors takes twice as long at 5,000 passages and more above, at
# 2,000 less, for the neighbours of what is near are read too. Once read, a pass takes a twentieth of sqlite-vec's time.
_COLD_PASSAGES = 4_000
# What is not packed may be so many passages, and this share of the packed ones, before it is packed anew.
_RECENT_PASSAGES = 4_000
_RECENT_SHARE = 0.02
# This share of the packed passages may have been replaced.
_GONE_SHARE = 0.2
_RETRY_SECONDS = 60.0
_MENDED_BY = "Delete it and run `memory-service reindex`; no memory is lost."


class IndexReaderManager:
    """Data of one generation of an index in memory.

    Args:
        store: The index.
        pack_passages: Larger indexes are packed.
    """

    def __init__(self, store: IndexStore, *, pack_passages: int = PACK_PASSAGES) -> None:
        self._store = store
        self._pack_passages = pack_passages
        self._corpus: Corpus | None = None
        self._matrix: Matrix | None = None
        self._segment: Segment | None = None
        self._recent: Recent | None = None
        self._standing: tuple[int, Mask | None] = (0, None)
        self._seen: tuple[int, ...] = ()
        self._mapped: tuple[int, ...] = ()
        self._place_of: tuple[str, Path | None] = ("", None)
        self._fetched_for = ""
        self._view: IndexReader | None = None
        self._is_asked = False
        self._shown: tuple[object, ...] = ()
        self._packing = threading.Lock()
        self._retry_at = 0.0
        self._is_closed = False
        self.trouble = ""

    def reader(self, dimensions: int | None, *, loaded: bool = False) -> IndexReader:
        """The snapshot for a search; to be called within a read, by one thread at a time.

        Args:
            dimensions: Length of the vectors; None where none are searched.
            loaded: Have the vectors in memory for the first question too.
        """
        now = self._store.head()
        path = self._path(now.generation)
        seen_parts = (now.generation, now.revision, _place(path), dimensions)
        if self._view is None or seen_parts != self._shown:
            first = dimensions is not None and not (loaded or self._is_asked)
            self._view = self._make_reader(now, path, dimensions, first=first)
            # The next question has the vectors read.
            self._shown = () if first and self._view.matrix is None else seen_parts
            self._is_asked = self._is_asked or dimensions is not None
        return self._view

    def _make_reader(self, now: Head, path: Path | None, dimensions: int | None, *, first: bool) -> IndexReader:
        segment = self._current_segment(now, path)
        corpus = self._corpus = self._store.corpus(self._corpus, since=segment.revision if segment is not None else 0)
        matrix = self._current_matrix(corpus, dimensions, is_packed=segment is not None, first=first)
        pack = self._packed_part(segment, corpus) if segment is not None else None
        if self._is_due(corpus, pack) and time.monotonic() > self._retry_at:
            self._pack_later()
        before = self._view
        reader = IndexReader(
            store=self._store, corpus=corpus, matrix=matrix, packed_part=pack, terms=self._terms(corpus, pack)
        )
        if before is None or before.corpus is not corpus:
            return reader
        # Searches by words and by vectors of one state differ in the matrix alone.
        return replace(reader, facts=before.facts, tagged=before.tagged)

    def _terms(self, corpus: Corpus, pack: Packed | None) -> TermCache:
        """Known occurrences of late questions' terms; a packed index has its own."""
        before = self._view
        if before is None or before.packed_part is not None or pack is not None:
            return TermCache()
        return before.terms.after(self._store, before.corpus, corpus)

    def _current_matrix(self, corpus: Corpus, dimensions: int | None, *, is_packed: bool, first: bool) -> Matrix | None:
        """Vectors of a corpus; None where none are searched, or sqlite-vec answers."""
        if dimensions is None:
            # A search by words between two by vectors: they need not be read again.
            return None
        if not is_packed and len(corpus) > (_COLD_PASSAGES if first else MATRIX_PASSAGES):
            self._matrix = None
            return None
        matrix = self._matrix if self._matrix and self._matrix.dimensions == dimensions else None
        if matrix is None or matrix.corpus is not corpus:
            self._matrix = load_matrix(self._store, corpus, dimensions, matrix)
        return self._matrix

    def is_due(self) -> bool:
        """True if the index should be packed; to be called as `view` is."""
        now = self._store.head()
        path = self._path(now.generation)
        segment = self._current_segment(now, path)
        if segment is None:
            return bool(now.generation) and self._store.counts().passages > self._pack_passages
        corpus = self._store.corpus(self._corpus, since=segment.revision)
        if not _place(path):
            # Deleted, and still mapped here; other processes are slower for it.
            return len(segment) + len(corpus) > self._pack_passages
        return self._is_due(corpus, self._packed_part(segment, corpus))

    def pack(self) -> None:
        """Pack the index, or wait for the thread of this process that does; not for another process.

        Raises:
            StoreError: It cannot be read, or the packed part not be written.
        """
        path = self._store.segments.path()
        if path is None or self._is_closed:
            return
        if not self._packing.acquire(blocking=False):
            with self._packing:
                return
        try:
            with THROTTLE.background():
                pack_store(self._store, path)
            self.trouble = ""
        except StoreError as error:
            self.trouble = f"index: it could not be packed, searches are slower. {error}"
            self._retry_at = time.monotonic() + _RETRY_SECONDS
            raise
        finally:
            self._packing.release()

    def packed_passages(self) -> int:
        """Number of packed passages; to be called as `view` is."""
        now = self._store.head()
        segment = self._current_segment(now, self._path(now.generation))
        return 0 if segment is None else len(segment)

    def why_unpacked(self, passages: int) -> str:
        """Why an index of so many passages is not packed as it should be, and what to do; else empty."""
        packed_passages, path = self.packed_passages(), self._store.segments.path()
        if self.trouble or packed_passages or path is None or passages <= self._pack_passages:
            return self.trouble
        how = f"index: none of its {passages:,} passages is packed, so searches are slower"
        if not os.access(path.parent, os.W_OK):
            return f"{how}. Make the folder {path.parent.name} writable and run `memory-service reindex`."
        damaged_text = f", as {path.name} is damaged, or of another index" if os.path.lexists(path) else ""
        return f"{how}{damaged_text}. Run `memory-service reindex`."

    def drop_if_damaged(self) -> bool:
        """Drop the packed part if it is damaged or was replaced; True if so. It is packed again then."""
        path, place = self._store.segments.path(), self._mapped
        if self._segment is None or path is None:
            return False
        sound = is_sound(path)
        if sound and place == _place(path):
            return False
        self._segment, self._view, self._mapped, self._seen = None, None, (), ()
        if not sound:
            self._seen = place
            self.trouble = f"index: its packed part {path.name} is damaged, so searches are slower. {_MENDED_BY}"
        return True

    def check(self) -> None:
        """Read all of the packed part, if searches use one.

        Raises:
            StoreCorrupt: It is damaged.
        """
        path = self._store.segments.path()
        if path is not None and open_pack(path) is not None and not is_sound(path):
            raise StoreCorrupt(f"The packed part {path} of the index is damaged. {_MENDED_BY}")

    def scrub(self) -> None:
        """Erase removed passages from the packed part.

        Raises:
            StoreError: It cannot be done now; the message says why.
        """
        path = self._store.segments.path()
        if path is not None:
            with THROTTLE.background():
                scrub_pack(self._store, path)

    @property
    def generation(self) -> str:
        """Generation in memory; empty before the first view."""
        return self._corpus.generation if self._corpus else ""

    def take_over(self, ready: IndexReaderManager) -> None:
        """Take the data that was loaded from the same index at another path."""
        self._corpus, self._matrix = ready._corpus, ready._matrix
        self._segment, self._recent = ready._segment, ready._recent
        self._standing, self._seen, self._mapped = ready._standing, ready._seen, ready._mapped
        self._is_asked = ready._is_asked

    def close(self) -> None:
        """Free memory; a packing that runs ends with the process."""
        self._is_closed = True
        self._corpus = self._matrix = self._segment = self._recent = self._view = None

    def _packed_part(self, segment: Segment, corpus: Corpus) -> Packed:
        if self._standing[0] != corpus.revision:
            changes = self._store.head(segment.revision)
            replaced_numbers = [*(number for number, _, _ in changes.files), *changes.gone]
            self._standing = corpus.revision, segment.standing(replaced_numbers)
        if self._recent is None or self._recent.corpus is not corpus:
            self._recent = load_recent(self._store, corpus, self._recent)
        return Packed(segment=segment, standing=self._standing[1], recent=self._recent)

    def _path(self, generation: str) -> Path | None:
        """Path of a generation's packed part; resolving links for every search would cost a tenth of it."""
        if self._place_of[0] != generation:
            self._place_of = generation, self._store.segments.path()
        return self._place_of[1]

    def _current_segment(self, now: Head, path: Path | None) -> Segment | None:
        """The newest packed part that is not newer than the state this read sees."""
        if self._segment is not None and self._segment.generation != now.generation:
            self._segment, self._seen, self._mapped = None, (), ()
        if path and self._segment is None and self._fetched_for != now.generation:
            self._fetched_for = now.generation
            # What keeps it from being fetched keeps it from being packed, which says so.
            with contextlib.suppress(StoreError):
                fetch_pack(self._store, path)
        seen_place = _place(path)
        if seen_place != self._seen and seen_place[:2] == self._mapped[:2]:
            # Somebody wrote into the very file that is mapped, or cut it short: to read on may end the process.
            self._segment, self._mapped = None, ()
        if path and seen_place and seen_place != self._seen:
            segment = open_segment(path, now.generation)
            if segment is None or segment.revision <= now.revision:
                self._seen = seen_place
            if segment is not None and segment.revision <= now.revision:
                self._segment, self._recent, self._standing = segment, None, (0, None)
                self._mapped, self.trouble = seen_place, ""
        return self._segment

    def _is_due(self, corpus: Corpus, pack: Packed | None) -> bool:
        if pack is None:
            return len(corpus) > self._pack_passages
        size = len(pack.segment)
        number = 0 if pack.standing is None else size - int(pack.standing.sum())
        return len(corpus) > _RECENT_PASSAGES + _RECENT_SHARE * size or number > _RECENT_PASSAGES + _GONE_SHARE * size

    def _pack_later(self) -> None:
        self._retry_at = time.monotonic() + _RETRY_SECONDS
        threading.Thread(target=self._pack_quietly, name="index-packing", daemon=True).start()

    def _pack_quietly(self) -> None:
        # Why it failed stands in `trouble`.
        with contextlib.suppress(StoreError):
            self.pack()


def _place(path: Path | None) -> tuple[int, ...]:
    if path is None:
        return ()
    try:
        stat = os.stat(path)
    except OSError:
        return ()
    return stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns


# Longer than a search goes on reading the generation before the switch.
_KEPT_SECONDS = 10.0
# So long a status waits for what it can do without.
_STATUS_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class _Spare:
    """Data of another generation than the one that most searches see."""

    generation: str
    views: IndexReaderManager


class ReaderManagers:
    """Data of an index, for each of its generations in use.

    Args:
        store: The index.
        pack_passages: Larger indexes are packed.
    """

    def __init__(self, store: IndexStore, *, pack_passages: int) -> None:
        self._store = store
        self._pack_passages = pack_passages
        self._views = IndexReaderManager(store, pack_passages=pack_passages)
        self._next: _Spare | None = None
        self._former: _Spare | None = None
        self._former_until = 0.0
        self._loading = threading.Lock()

    @contextmanager
    def loading(self) -> Iterator[IndexReaderManager]:
        """A block, within a read of the store, in which one thread at a time has the manager for that read."""
        with self._loading:
            yield self.manager()

    def reader(self, dimensions: int | None) -> IndexReader:
        """A reader with all vectors in memory; to be called within a read."""
        with self.loading() as manager:
            return manager.reader(dimensions, loaded=True)

    def manager(self) -> IndexReaderManager:
        """The manager for the read at hand; to be called within it, by one thread at a time."""
        if self._next is None and self._former is None:
            return self._views
        generation = self._store.head().generation
        if self._next is not None and generation == self._next.generation:
            self._former_until = time.monotonic() + _KEPT_SECONDS
            self._former, self._views = _Spare(self._views.generation, self._views), self._next.views
            self._next = None
        elif self._former is not None and generation == self._former.generation:
            return self._former.views
        elif time.monotonic() > self._former_until:
            self._former = None
        return self._views

    def make_ready(self, store: IndexStore, dimensions: int | None) -> None:
        """Load the generation that is about to take the index's place, from its own store."""
        manager = IndexReaderManager(store, pack_passages=self._pack_passages)
        with store.reading():
            due = manager.is_due()
        if due:
            manager.pack()
        with store.reading():
            manager.reader(dimensions, loaded=True)
            generation = store.head().generation
        views = IndexReaderManager(self._store, pack_passages=self._pack_passages)
        views.take_over(manager)
        self._next = _Spare(generation, views)

    def packing(self, passages: int) -> tuple[int, str]:
        """Packed passages, and why there are none; nothing while a reader is being loaded, which may take long."""
        if not self._loading.acquire(timeout=_STATUS_SECONDS):
            return 0, ""
        try:
            manager = self.manager()
            return manager.packed_passages(), manager.why_unpacked(passages)
        finally:
            self._loading.release()

    def pack(self) -> tuple[str, ...]:
        """Pack the index if it is large and that is due; what kept it from it."""
        with self._store.reading(), self.loading() as manager:
            due = manager.is_due()
        if due:
            with contextlib.suppress(StoreError):
                manager.pack()
        return (manager.trouble,) if manager.trouble else ()

    def check(self) -> None:
        """Read all of the packed part; see `IndexReaderManager.check`."""
        with self._store.reading(), self.loading() as manager:
            pass
        manager.check()

    def scrub(self) -> None:
        """Erase removed passages from the packed part; see `IndexReaderManager.scrub`."""
        with self._store.reading(), self.loading() as manager:
            pass
        manager.scrub()

    def close(self) -> None:
        """Free memory."""
        self._views.close()
        self._next = self._former = None
