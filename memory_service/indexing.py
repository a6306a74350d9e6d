"""Indexing for many writers: rounds that they wait for, and work in the background that they need not wait for.

Invariants: no lock is held while a text is embedded; whoever waits is told how it ended, also by a defect; a burst of
writes to one file is one round; an idle service has no threads.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager

from indexer import Index, IndexerError

_log = logging.getLogger("memory_service.indexing")

# A session that is being talked in is indexed at most so often, unless a search asks for it.
_SETTLE_SECONDS = 1.0
# Of several who search at once none is for so long again the one who has it indexed.
_CROWD_SECONDS = 1.0
_DEFECT = "index: it met a defect. See the log, then run `memory-service reindex`."


class Crowd:
    """Tells who is alone at something from those who do it at the same time as others, or did until a moment ago."""

    def __init__(self) -> None:
        self._changing = threading.Lock()
        self._present = 0
        self._crowded_until = 0.0

    @contextmanager
    def joined(self) -> Iterator[bool]:
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
        outcome = _DEFECT
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


class Later:
    """Does something for paths a little later, once for all that come meanwhile, in a thread of its own.

    Args:
        work: What is done; gives what went wrong, empty for nothing.
        after_seconds: How long is waited for more.
    """

    def __init__(self, work: Callable[[Collection[str]], str], after_seconds: float = _SETTLE_SECONDS) -> None:
        self._work = work
        self._after = after_seconds
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
            if self._thread is None and not self._closed:
                self._thread = threading.Thread(target=self._run, name="index-sessions", daemon=True)
                self._thread.start()

    def hurry(self, seconds: float, *, but: str = "") -> str | None:
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
            mine = self._begun + 1 if self._waiting - {but} else self._begun
            since = self._begun_at if self._at_work else time.monotonic()
            self._hurried = True
            self._turn.notify_all()
            left = max(0.0, since + seconds - time.monotonic())
            done = self._turn.wait_for(lambda: self._ended >= mine or self._closed, left)
            return self._outcome if done else None

    def close(self) -> None:
        """End the thread; what still waits is left."""
        with self._turn:
            self._closed = True
            self._turn.notify_all()
            thread = self._thread
        if thread is not None:
            thread.join()

    @property
    def undone(self) -> frozenset[str]:
        """The paths that wait, or are being worked on."""
        with self._turn:
            return frozenset(self._waiting | self._at_work)

    @property
    def rounds(self) -> int:
        """How many times work has ended."""
        return self._ended

    @property
    def is_closed(self) -> bool:
        """Whether it was ended."""
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
