"""Rebuild of an index: the next generation, built beside the one in use.

Invariants: until the switch nothing of the index in use changes, and a rebuild that is killed, cancelled or out of
room leaves it as it was; a write that the index in use took is in the next one before the switch, which happens while
nobody can write; no text is embedded while a lock is held that writers wait for.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from indexer.common.throttle import THROTTLE
from indexer.errors import EmbeddingError, StoreBusy, StoreCorrupt, StoreError, StoreFull, SyncCancelled
from indexer.stores.base import Beside, FileWrite, Head, IndexStore, Room, Written
from indexer.types import Fingerprint, SyncReport

if TYPE_CHECKING:
    from indexer.sync.runner import SyncRunner


# What the next generation takes, as a share of the one in use: its log grows beside it.
_ROOM_FACTOR = 1.2
# What is brought over while writers wait: some milliseconds of parsing.
_LAST_FILES = 16
_LAST_BYTES = 256 * 1024
_ROUNDS = 20
# A few texts that no model takes are no reason to stay with the old generation.
_COVERAGE_LOSS = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class RebuildState:
    """Progress of a running or interrupted rebuild.

    Attributes:
        name: Name of the file that is being built.
        running: True while a process works on it; if not, the next full reindex continues it.
        current: True if it is built with the present configuration; if not, the next full reindex deletes it.
        files: Files that it holds.
        total_files: Files that it will hold.
    """

    name: str
    running: bool
    current: bool
    files: int
    total_files: int
    passages: int
    embedded: int
    size_bytes: int

    @property
    def share(self) -> float:
        """Share of the files that are done."""
        return min(1.0, self.files / self.total_files) if self.total_files else 0.0


class _Next:
    """Store of the next generation while it is filled: takes vectors from the one in use, and gives way to searches.

    Args:
        store: The store itself, which does everything else.
        older: The index in use, if its vectors are those of the same model.
    """

    def __init__(self, store: IndexStore, older: IndexStore | None) -> None:
        self._store = store
        self._older = older
        # Set while writers wait for this one: to give way to them would be to wait for each other.
        self.hurried = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    @property
    def store(self) -> IndexStore:
        """This wrapper, typed as the store."""
        return cast("IndexStore", self)

    def vectors_of_texts(self, text_hashes: Iterable[bytes]) -> dict[bytes, bytes]:
        """See `IndexStore`."""
        self._give_way()
        wanted_text_hashes = list(text_hashes)
        vectors = self._store.vectors_of_texts(wanted_text_hashes)
        missing = [raw for raw in wanted_text_hashes if raw not in vectors]
        if self._older is not None and missing:
            # What cannot be read is embedded anew.
            with suppress(StoreError):
                vectors |= self._older.vectors_of_texts(missing)
        return vectors

    def write(
        self,
        writes: Sequence[FileWrite],
        *,
        vectors: Sequence[tuple[int, bytes]] = (),
        made_with: Fingerprint | None = None,
    ) -> Written:
        """See `IndexStore`."""
        self._give_way()
        return self._store.write(writes, vectors=vectors, made_with=made_with)

    def _give_way(self) -> None:
        if not self.hurried:
            THROTTLE.yield_to_foreground()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """State of the index in use at some moment: generation, revision, and the path of each file."""

    generation: str
    revision: int
    paths: dict[int, str]


class Rebuild:
    """One rebuild. Use once.

    Args:
        live: The index in use.
        fingerprint: Fingerprint of the next one.
        runner: Brings a store up to date with the files.
        adopt: Called with the next one when it is all but complete, to load it for searching.
        reached: Called with the name of every step; for tests, which end the process there.
        free_bytes: Free space on the disk of a folder.
    """

    def __init__(
        self,
        live: IndexStore,
        fingerprint: Fingerprint,
        runner: SyncRunner,
        *,
        adopt: Callable[[IndexStore], None] = lambda store: None,
        reached: Callable[[str], None] = lambda step: None,
        free_bytes: Callable[[Path], int] = lambda folder: shutil.disk_usage(folder).free,
    ) -> None:
        self._live = live
        self._fingerprint = fingerprint
        self._runner = runner
        self._adopt = adopt
        self._reached = reached
        self._free_bytes = free_bytes
        self._beside = live.beside
        new_fingerprint = live.head().fingerprint
        self._readable = new_fingerprint is not None and new_fingerprint.schema == fingerprint.schema

    def run(self) -> tuple[SyncReport, tuple[str, ...]]:
        """Build the next generation, or continue an interrupted one, and put it in use.

        Returns:
            The report, and the paths whose newest passages have no vector yet.

        Raises:
            StoreBusy: Another rebuild of this index is running.
            StoreFull: There is no room for it; the unfinished generation is deleted.
            SyncCancelled: It was stopped; the next one continues from there.
            EmbeddingError: The model gives no vectors where the index in use has them; the next one continues.
            StoreError: The index cannot be written.
        """
        with self._beside.hold_lock(), THROTTLE.background():
            store = self._beside.next(self._fingerprint)
            self._check_room(self._beside.room())
            try:
                done_pair = self._fill_next(_Next(store, self._older()))
            except StoreFull as error:
                store.close()
                self._beside.remove()
                raise StoreFull(
                    "The disk is full, and the rebuild was given up; the index in use goes on answering. "
                    "Free some space and run `memory-service reindex --full`."
                ) from error
            finally:
                store.close()
            self._beside.retire(self._reached)
        return done_pair

    def _older(self) -> IndexStore | None:
        """The index in use, if the next one can take its vectors."""
        fingerprint = self._live.head().fingerprint
        fits = fingerprint is not None and (fingerprint.model, fingerprint.dimensions, fingerprint.schema) == (
            self._fingerprint.model,
            self._fingerprint.dimensions,
            self._fingerprint.schema,
        )
        return self._live if fits and self._fingerprint.dimensions else None

    def _check_room(self, room: Room | None) -> None:
        if room is None:
            return
        needed_count, free = needed_bytes(room.live_bytes, room.made_bytes), self._free_bytes(room.folder)
        if needed_count > free:
            raise StoreFull(
                f"The rebuild needs {_megabytes(needed_count)} beside the index in use, and its disk has "
                f"{_megabytes(free)} free. Free some space and run `memory-service reindex --full`."
            )

    def _fill_next(self, filled_next: _Next) -> tuple[SyncReport, tuple[str, ...]]:
        store = filled_next.store
        if store.head().fingerprint is None:
            store.begin(self._fingerprint)
        self._reached("begun")
        try:
            report = self._runner.fill(store, is_shown=True)
            self._check_worth(store, report)
            self._reached("filled")
            self._runner.fill(store)
            store.scrub()
            # Whatever is not ready is loaded by the first search.
            with suppress(StoreError):
                self._adopt(store)
            self._reached("adopted")
            return report, self._switch(filled_next)
        except SyncCancelled:
            filled_next.hurried = True
            self._runner.forget_changed(store)
            store.scrub()
            raise

    def _check_worth(self, store: IndexStore, report: SyncReport) -> None:
        """Refuse a generation that lost vectors to a failing model."""
        if self._older() is None or not report.degraded:
            return
        old, new = self._live.counts(), store.counts()
        if new.embedded / max(1, new.passages) < old.embedded / max(1, old.passages) - _COVERAGE_LOSS:
            raise EmbeddingError(
                f"The rebuild waits for its model, and the old index goes on answering ({_reason(report)}). "
                "Mend that and run `memory-service reindex --full`, which goes on from there."
            )

    def _switch(self, filled_next: _Next) -> tuple[str, ...]:
        """Catch up with the files until little is left, bring that over while writers wait, and switch."""
        stale: tuple[str, ...] | None = None
        for attempt in range(_ROUNDS):
            seen_value = self._snapshot()
            if attempt == 0 or stale is None or stale:
                self._runner.fill(filled_next.store, stale or ())
            self._reached("caught up")
            with self._beside.switching() as put_in_use:
                stale = self._changed_paths(seen_value)
                last = attempt == _ROUNDS - 1
                if last or (stale is not None and self._is_little(stale)):
                    self._bring_over(filled_next, stale)
                    put_in_use(self._reached)
                    break
        return stale or ()

    def _bring_over(self, filled_next: _Next, stale: Collection[str] | None) -> None:
        """Bring the last files over; all of them if the changed ones are not known."""
        self._reached("locked")
        filled_next.hurried = True
        if stale is None or stale:
            self._runner.fill_texts(filled_next.store, stale or ())

    def _snapshot(self) -> _Seen:
        with self._live.reading():
            now = self._live.head(0) if self._readable else Head(revision=self._live.head().revision, generation="")
        return _Seen(
            generation=now.generation, revision=now.revision, paths={file: path for file, path, _ in now.files}
        )

    def _changed_paths(self, seen: _Seen) -> tuple[str, ...] | None:
        """Paths that the index in use wrote since; None if they are not known."""
        if not self._readable:
            return () if self._live.head().revision == seen.revision else None
        now = self._live.head(seen.revision)
        if now.generation != seen.generation or any(file not in seen.paths for file in now.gone):
            return None
        return (*(path for _, path, _ in now.files), *(seen.paths[file] for file in now.gone))

    def _is_little(self, paths: Collection[str]) -> bool:
        if len(paths) > _LAST_FILES:
            return False
        return sum(state.size_bytes for state in self._live.file_states(paths).values()) <= _LAST_BYTES


def needed_bytes(live_bytes: int, made_bytes: int) -> int:
    """Disk space that a rebuild takes in addition to what is there."""
    return max(0, round(live_bytes * _ROOM_FACTOR) - made_bytes)


def partial_state(store: IndexStore, fingerprint: Fingerprint, total_files: int) -> RebuildState | None:
    """Progress of a running or interrupted rebuild; None if there is none."""
    generation = store.beside.unfinished_generation()
    if generation is None:
        return None
    try:
        new_fingerprint = generation.store.head().fingerprint
        counts = generation.store.counts() if new_fingerprint else None
    except StoreError:
        new_fingerprint = counts = None
    finally:
        generation.store.close()
    return RebuildState(
        name=generation.name,
        running=store.beside.state().running,
        current=new_fingerprint == fingerprint,
        files=counts.files if counts else 0,
        total_files=total_files,
        passages=counts.passages if counts else 0,
        embedded=counts.embedded if counts else 0,
        size_bytes=counts.size_bytes if counts else 0,
    )


def scrub_others(store: IndexStore, runner: SyncRunner, fingerprint: Fingerprint) -> bool:
    """Erase removed passages from the generations of an index that are not in use.

    Returns:
        False while a rebuild runs: it does so itself unless it is killed.
    """
    beside = store.beside
    if not beside.state().others:
        return True
    try:
        with beside.hold_lock():
            _scrub_unfinished(beside, runner, fingerprint)
    except StoreBusy:
        return False
    return True


def _scrub_unfinished(beside: Beside, runner: SyncRunner, fingerprint: Fingerprint) -> None:
    generation = beside.unfinished_generation()
    if generation is None:
        return
    store = generation.store
    try:
        usable = store.head().fingerprint == fingerprint
        if usable:
            runner.forget_changed(store)
            store.scrub()
    except StoreCorrupt:
        usable = False
    finally:
        store.close()
    if not usable:
        # No rebuild will go on from it.
        beside.remove()


def _reason(report: SyncReport) -> str:
    """Why there are no vectors, without the remedy."""
    return report.degraded[0].partition(": ")[2].partition(". ")[0]


def _megabytes(size_bytes: int) -> str:
    return f"{size_bytes / 1e6:,.1f} MB"
