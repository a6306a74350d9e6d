"""Indexing for many writers: shared rounds, and work for later.

Invariants: no lock is held while a text is embedded; whoever waits is told how it ended, also by a defect; a burst of
writes to one file is one round; an idle service has no threads.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import TYPE_CHECKING

from indexer import FileFailure, Hit, IndexerError, SyncPlan, is_session_path
from indexer.common import THROTTLE

if TYPE_CHECKING:
    from indexer import Index

_log = logging.getLogger("memory_service.memories.indexing")

# A session that is being talked in is indexed at most so often, unless a search asks for it.
_SETTLE_SECONDS = 1.0
# Of several who search at once none is for so long again the one who has it indexed.
_CROWD_SECONDS = 1.0
RUN_REINDEX = "Run `memory-service reindex`."
# As `degraded` says what a search had to do without.
BEING_EMBEDDED = "vector: some passages have no vector yet and are found by their words. Ask again in a moment."
BEING_REBUILT = "index: it is being made anew; when that has ended, what it has of erased texts is taken out."
BEING_SAID = "index: what was said last in sessions is still being indexed. Ask again in a moment."
FOUND_BY_WORDS = (
    "index: what was said last in sessions is still being indexed; the newest of it is found by its words alone "
    "(rank-bm25). Ask again in a moment."
)
UNEMBEDDED = f"vector: some passages have no vector yet and are found by their words. {RUN_REINDEX}"
BEING_MADE = "index: it was deleted, and is being made anew. Ask again in a moment."
_DEFECT = "index: it met a defect. See the log, then run `memory-service reindex`."


# What people changed in an editor is indexed by the next search, as long as that takes no time.
INLINE_BYTES = 32 * 1024
_TINY_BYTES = 4 * 1024
# So many files are looked at one by one; more, by a look at all.
NAMED_PATHS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingFiles:
    """Files to be indexed: `changed` of them surely, with so many bytes; of the others a look at them will tell."""

    paths: Sequence[str]
    changed: int
    size_bytes: int

    @classmethod
    def of(cls, plan: SyncPlan) -> WaitingFiles:
        """The files of a plan that are no session logs."""
        files = [file for file in (*plan.added, *plan.suspects) if file.source != "sessions"]
        unsure = [file for file in plan.unsure if file.source != "sessions"]
        paths = [*(file.path for file in (*files, *unsure)), *plan.removed]
        size_bytes = sum(file.size_bytes for file in files)
        return cls(paths=paths, changed=len(files) + len(plan.removed), size_bytes=size_bytes)

    @property
    def is_small(self) -> bool:
        """True if a search indexes them itself."""
        return self.size_bytes <= INLINE_BYTES and len(self.paths) <= NAMED_PATHS

    @property
    def is_tiny(self) -> bool:
        """True if one who leaves the work to another process indexes them all the same: a note that was just made."""
        return self.is_small and self.size_bytes <= _TINY_BYTES

    @property
    def summary(self) -> str:
        """How many files there are, for messages."""
        return f"{self.changed} changed files ({self.size_bytes:,} bytes)"


class ConcurrencyProbe:
    """Tells who is alone at something from those who do it at the same time as others, or did until a moment ago."""

    def __init__(self) -> None:
        self._changing = threading.Lock()
        self._present = 0
        self._crowded_until = 0.0

    @contextmanager
    def enter(self) -> Iterator[bool]:
        """Take part; gives whether nobody else does."""
        with self._changing:
            self._present += 1
            now = time.monotonic()
            if self._present > 1:
                self._crowded_until = now + _CROWD_SECONDS
            alone = now >= self._crowded_until
        try:
            yield alone
        finally:
            with self._changing:
                self._present -= 1


class IndexRefresher:
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
            with THROTTLE.waiting():
                while self._running and self._ended < mine:
                    self._turn.wait()
            if self._ended >= mine:
                return self._outcomes.get(mine, "")
            batch, self._waiting = self._waiting, set()
            self._begun, self._running = mine, True
        # What the others hear if this ends with an exception: whatever it is, they must not wait for ever.
        outcome = _DEFECT
        try:
            outcome = sync_files(self._index, batch)
        finally:
            with self._turn:
                self._running, self._ended = False, mine
                self._outcomes = {mine: outcome} | {n: o for n, o in self._outcomes.items() if n > mine - 8}
                self._turn.notify_all()
        return outcome


def sync_files(index: Index, paths: Collection[str], *, cancelled: Callable[[], bool] = lambda: False) -> str:
    """Bring an index up to date with files, there or not; why that failed, empty when it did not."""
    try:
        report = index.sync(paths, missing_ok=True, cancelled=cancelled)
    except IndexerError as error:
        return f"index: {error}"
    failures = [f"index: {failure.path}: {failure.reason}" for failure in report.failed if failure.path in paths]
    return "; ".join([*failures, *report.degraded])


class DeferredRefresh:
    """Does something for paths a little later, once for all that come meanwhile, in a thread of its own.

    Args:
        work: What is done; gives what went wrong, empty for nothing.
        after_seconds: How long is waited for more.
        rests: Whether paths are only noted, as another process does what is to be done.
    """

    def __init__(
        self, work: Callable[[Collection[str]], str], after_seconds: float = _SETTLE_SECONDS, *, rests: bool = False
    ) -> None:
        self._work = work
        self._after = after_seconds
        self._rests = rests
        self._turn = threading.Condition()
        self._waiting: set[str] = set()
        self._at_work: set[str] = set()
        self._begun = self._ended = 0
        self._begun_at = 0.0
        self._outcome = ""
        self._hurried = self._closed = False
        self._thread: threading.Thread | None = None

    def note(self, path: str) -> None:
        """Take note of a path."""
        with self._turn:
            self._waiting.add(path)
            if self._thread is None and not self._closed and not self._rests:
                self._thread = threading.Thread(target=self._run, name="index-sessions", daemon=True)
                self._thread.start()

    def drain(self, seconds: float, *, but: str = "") -> str | None:
        """Have it done now, and wait for it; nobody waits for work that has taken this long already.

        Args:
            seconds: How long the work may take.
            but: A path that need not be done.

        Returns:
            What went wrong, empty for nothing; None if it is not done in that time.
        """
        with self._turn:
            if not (self._waiting | self._at_work) - {but}:
                return ""
            if self._rests:
                return None
            mine = self._begun + 1 if self._waiting - {but} else self._begun
            since = self._begun_at if self._at_work else time.monotonic()
            self._hurried = True
            self._turn.notify_all()
            left = max(0.0, since + seconds - time.monotonic())
            with THROTTLE.waiting():
                is_done = self._turn.wait_for(lambda: self._ended >= mine or self._closed, left)
            return self._outcome if is_done else None

    def close(self) -> None:
        """End the thread; what still waits is left."""
        with self._turn:
            self._closed = True
            self._turn.notify_all()
            thread = self._thread
        if thread is not None:
            thread.join()

    @property
    def pending(self) -> frozenset[str]:
        """The paths that wait, or are being worked on."""
        with self._turn:
            return frozenset(self._waiting | self._at_work)

    @property
    def rounds(self) -> int:
        """Number of finished rounds of work."""
        return self._ended

    @property
    def is_closed(self) -> bool:
        """True if it was ended."""
        return self._closed

    def _run(self) -> None:
        while self._begin():
            outcome = _DEFECT
            try:
                outcome = self._work(frozenset(self._at_work))
            except Exception:
                _log.exception("indexing in the background met a defect")
            finally:
                with self._turn:
                    self._at_work, self._ended, self._outcome = set(), self._begun, outcome
                    self._turn.notify_all()

    def _begin(self) -> bool:
        """Wait for more, then take what there is; whether there is anything."""
        with self._turn:
            self._turn.wait_for(lambda: self._hurried or self._closed, self._after)
            self._hurried = False
            if self._closed or not self._waiting:
                # An idle service has no threads for it.
                self._thread = None
                return False
            self._at_work, self._waiting = self._waiting, set()
            self._begun, self._begun_at = self._begun + 1, time.monotonic()
            return True


def interleave_hits(hits: Sequence[Hit], said_hits: Sequence[Hit], limit: int) -> tuple[Hit, ...]:
    """The hits of the index with what was just said between them, rank by rank.

    Scores of two rankings cannot be compared: what was just said gets the score of the hit of its own rank, and stands
    before it as the newer of two equals. Where that hit has the higher authority it stands behind it, and yields to it.
    """
    there = {(hit.path, hit.passage.start_line) for hit in hits}
    new = [hit for hit in said_hits if (hit.path, hit.passage.start_line) not in there]
    merged_hits, score = list[Hit](), None
    for old, fresh in zip_longest(hits, new):
        score = old.score if old else score
        if fresh:
            worth = fresh.score if score is None else score
            above = [hit for hit in (*merged_hits, old) if hit and hit.passage.authority > fresh.passage.authority][:1]
            yields_to = tuple((hit.path, hit.ordinal) for hit in above)
            fresh = replace(fresh, score=worth, signals={"just_said": worth}, yields_to=yields_to)
        yields = old and fresh and old.passage.authority > fresh.passage.authority
        merged_hits += filter(None, (old, fresh) if yields else (fresh, old))
    return tuple(merged_hits[:limit])


def all_waiting(plan: SyncPlan) -> str:
    """A sentence on all that a plan has to do, sessions too; empty where that is nothing."""
    files = [*plan.added, *plan.suspects]
    count = len(files) + len(plan.removed)
    size_bytes = sum(file.size_bytes for file in files)
    text = "1 changed file" if count == 1 else f"{count:,} changed files"
    return f"index: {text} ({size_bytes:,} bytes) not indexed yet. {RUN_REINDEX}" if count else ""


def unread_logs(failures: Sequence[FileFailure]) -> tuple[str, ...]:
    """The session logs among files that could not be indexed; `status` names the others too."""
    return tuple(f"index: {failure.path}: {failure.reason}." for failure in failures if is_session_path(failure.path))
