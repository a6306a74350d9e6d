"""Owns the long-term memory of one workspace: its Markdown files and the index over them, kept together.

Invariants: a write is on disk before the index hears of it, and in the index before it is answered; a
write that the index cannot take is kept and says so; no lock is held while a text is embedded.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection

from indexer import Index, IndexerError, Mode, SearchFilter, SearchResults, SyncProgress, SyncReport
from memory_service.memories import AppendedMemory, ForgottenMemory, MemoryFiles, NewMemory

# What people changed in an editor is indexed by the next search, as long as that takes no time.
_INLINE_BYTES = 32 * 1024
_LOOK_EVERY_SECONDS = 1.0
# Looking for changes may take this share of the time at most.
_LOOK_SHARE = 0.02


class Refresher:
    """Indexes files that were just written, for many writers at once.

    The first to come does the work for all who come before it begins; they wait for it, and those who
    come later wait for the next round. So a burst of writes to one file is one sync, and whoever waits
    holds no lock.
    """

    def __init__(self, index: Index) -> None:
        self._index = index
        self._turn = threading.Condition()
        self._waiting: set[str] = set()
        self._running = False
        self._begun = self._ended = 0
        self._outcomes: dict[int, str] = {}

    def refresh(self, paths: Collection[str]) -> str:
        """Bring the index up to date with these files.

        Returns:
            Why that failed; empty when it did not.
        """
        with self._turn:
            self._waiting.update(paths)
            mine = self._begun + 1
            while self._running and self._ended < mine:
                self._turn.wait()
            if self._ended >= mine:
                return self._outcomes.get(mine, "")
            batch, self._waiting = self._waiting, set()
            self._begun, self._running = mine, True
        # What the others hear if this ends with an exception: whatever it is, they must not wait for ever.
        outcome = "index: it met a defect. See the log, then run `memory-service reindex`."
        try:
            outcome = self._sync(batch)
        finally:
            with self._turn:
                self._running, self._ended = False, mine
                self._outcomes = {mine: outcome} | {n: o for n, o in self._outcomes.items() if n > mine - 8}
                self._turn.notify_all()
        return outcome

    def _sync(self, paths: Collection[str]) -> str:
        try:
            report = self._index.sync(paths, missing_ok=True)
        except IndexerError as error:
            return f"index: {error}"
        failures = [f"index: {failure.path}: {failure.reason}" for failure in report.failed if failure.path in paths]
        return "; ".join([*failures, *report.degraded])


class LongTermMemory:
    """One workspace's files and index.

    Args:
        files: The Markdown files.
        index: The index of the same folder.
    """

    def __init__(self, files: MemoryFiles, index: Index) -> None:
        self.files = files
        self.index = index
        self._refresher = Refresher(index)
        self._looking = threading.Lock()
        self._look_again = 0.0
        self._behind: tuple[str, ...] = ()

    def remember(self, new: NewMemory) -> tuple[AppendedMemory, list[str]]:
        """Append an entry and index it. Returns the entry, and what of that failed after it was on disk."""
        entry = self.files.append(new)
        return entry, self._refresh([entry.path])

    def write(self, path: str, text: str, *, if_match: str | None, if_none_match: bool) -> tuple[str, list[str]]:
        """Replace or make a file and index it. Returns its etag, and what of that failed after it was on disk."""
        etag = self.files.write(path, text, if_match=if_match, if_none_match=if_none_match)
        return etag, self._refresh([path])

    def delete(self, path: str) -> list[str]:
        """Erase a file from disk and index. Returns what of that failed after it was gone from disk."""
        self.files.delete(path)
        return self._erase([path])

    def forget(self, memory_id: str) -> tuple[ForgottenMemory, list[str]]:
        """Erase an entry from all files that hold it and from the index."""
        gone = self.files.forget(memory_id)
        return gone, self._erase(gone.paths)

    def search(
        self, query: str, *, limit: int, kept: SearchFilter, mode: Mode = "hybrid", explain: bool = False
    ) -> SearchResults:
        """Search, after a look for files that people have changed."""
        behind = self._look()
        found = self.index.search(query, limit=limit, mode=mode, kept=kept, explain=explain)
        return SearchResults(hits=found.hits, mode=found.mode, degraded=(*found.degraded, *behind))

    def sync(
        self,
        paths: Collection[str],
        *,
        full: bool,
        on_progress: Callable[[SyncProgress], None] | None,
        cancelled: Callable[[], bool],
    ) -> SyncReport:
        """Bring the index up to date; see `Index.sync`."""
        report = self.index.sync(paths, full=full, on_progress=on_progress, cancelled=cancelled)
        self._look_again = 0.0
        return report

    def close(self) -> None:
        """Give back what the index holds."""
        self.index.close()

    def _refresh(self, paths: Collection[str]) -> list[str]:
        outcome = self._refresher.refresh(paths)
        return [outcome] if outcome else []

    def _erase(self, paths: Collection[str]) -> list[str]:
        missing = self._refresh(paths)
        try:
            self.index.scrub()
        except IndexerError as error:
            missing.append(f"index: {error}")
        return missing

    def _look(self) -> tuple[str, ...]:
        """Index what changed on disk since the last look, if it is little; else say that it waits."""
        if time.monotonic() < self._look_again or not self._looking.acquire(blocking=False):
            return self._behind
        try:
            started = time.monotonic()
            self._behind = self._catch_up()
            ended = time.monotonic()
            self._look_again = ended + max(_LOOK_EVERY_SECONDS, (ended - started) / _LOOK_SHARE)
        finally:
            self._looking.release()
        return self._behind

    def _catch_up(self) -> tuple[str, ...]:
        try:
            plan = self.index.plan()
        except IndexerError as error:
            return (f"index: {error}",)
        changed = [*plan.added, *plan.suspects]
        paths = [*(file.path for file in (*changed, *plan.unsure)), *plan.removed]
        if not paths:
            return ()
        size = sum(file.size_bytes for file in changed)
        if size > _INLINE_BYTES:
            return (f"index: {len(changed)} changed files ({size:,} bytes) wait. Run `memory-service reindex`.",)
        outcome = self._refresher.refresh(paths)
        return (outcome,) if outcome else ()
