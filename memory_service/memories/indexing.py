"""Indexing of a workspace: shared rounds for many writers, work for later, healing, and the move to another model.

Invariants: no lock is held while a text is embedded; whoever waits is told how it ended, also by a defect; a burst of
writes to one file is one round; an idle service has no threads.

Healing is of the vectors that passages were stored without, and of the whole of an index that an older version made.
One thread embeds what lacks a vector, the others answer without; a model that does not answer is not asked by every
search; an index that cannot be read is made anew once, however many wait for it, and what was made of it stays when the
process ends; one of a newer version is left alone.

A move goes to the model that fits what is written there, and to the rules of this version. The index in use answers
until the next one is whole, and stays as it is where that cannot be made; an interrupted move goes on where it was; a
process makes one move at a time, and people who wait go before it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import TYPE_CHECKING

from indexer import (
    EmbeddingError,
    FileFailure,
    Hit,
    IndexerError,
    StoreBusy,
    SyncCancelled,
    SyncPlan,
    SyncProgress,
    is_session_path,
)
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
BEING_LOOKED = "index: what changed last is still being looked for, and may be missing. Ask again in a moment."
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


# A model that does not answer is asked again after this, or after ten times as long as it took to hear that; one that
# refuses some texts, later.
_AWAY_SECONDS = 2.0
_AWAY_SHARE = 10
_REFUSED_SECONDS = 60.0
# A renewal that failed is tried again after this.
_AGAIN_SECONDS = 10.0
_OLD = "index: an older version made it, and it is being made anew"


class MissingVectorHealing:
    """Embedding of what was stored without a vector.

    Args:
        index: The index.
        is_closed: Tells whether the workspace is being closed.
        go_on: Has the rest embedded in the background.
    """

    def __init__(self, index: Index, is_closed: Callable[[], bool], go_on: Callable[[], None]) -> None:
        self._index = index
        self._is_closed = is_closed
        self._go_on = go_on
        self._healing = threading.Lock()
        self._again = 0.0
        self._left: tuple[str, ...] = ()

    def hasten(self) -> None:
        """Have the next call try, as the model answers."""
        self._again = 0.0

    def heal(self, most: int | None, cancelled: Callable[[], bool] = lambda: False) -> tuple[str, ...]:
        """Embed what was stored without a vector, if the model answers now; why some passages are still without."""
        if time.monotonic() < self._again or not self._healing.acquire(blocking=False):
            return self._left
        started_time, pause = time.monotonic(), 0.0
        try:
            done_vectors = self._index.embed_missing(most=most, cancelled=lambda: cancelled() or self._is_closed())
            self._left = done_vectors.problems or ((BEING_EMBEDDED,) if done_vectors.left else ())
            if done_vectors.away:
                pause = max(_AWAY_SECONDS, _AWAY_SHARE * (time.monotonic() - started_time))
            elif done_vectors.problems:
                pause = _REFUSED_SECONDS
            elif done_vectors.left and most is not None:
                self._go_on()
        except IndexerError as error:
            self._left, pause = (f"vector: {error}",), _AWAY_SECONDS
        finally:
            self._healing.release()
        self._again = time.monotonic() + pause
        return self._left


class IndexRenewal:
    """Renewal of an index that an older version made, of which nothing can be read until then.

    Args:
        index: The index.
        rests: See `DeferredRefresh`.
    """

    def __init__(self, index: Index, *, rests: bool = False) -> None:
        self._index = index
        self._background = DeferredRefresh(self._in_background, 0.0, rests=rests)
        self._turn = threading.Lock()
        self._begins = True
        self._progress: SyncProgress | None = None
        self._problem = ""
        self._again = 0.0

    def is_due(self) -> bool:
        """True if an older version made the index; one that is damaged says so where it is used."""
        with suppress(IndexerError):
            return self._index.is_unread()
        return False

    @property
    def pending(self) -> bool:
        """True if it is left for another process."""
        return bool(self._background.pending)

    def wait_until_readable(self, seconds: float = 0.0) -> str:
        """Why the index cannot be read yet, after a wait of so many seconds at most; empty if an older one is not it.

        It is made anew in the background meanwhile.
        """
        try:
            return self._wait(seconds) if self.is_due() else ""
        except IndexerError as error:
            return f"index: {error}"

    def _wait(self, seconds: float) -> str:
        if self._begins and not self._background.pending and time.monotonic() >= self._again:
            self._background.note("index")
        if self._background.drain(seconds) is None or not self.is_due():
            return self._underway() if self.is_due() else ""
        return self._problem or self._underway()

    def renew(
        self,
        *,
        on_progress: Callable[[SyncProgress], None] | None = None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> tuple[str, ...]:
        """Make the index anew, here and now, if an older version made it; why that could not be done."""
        if not self.is_due():
            return ()

        def show(progress: SyncProgress) -> None:
            self._progress = progress
            if on_progress is not None:
                on_progress(progress)

        with self._turn:
            try:
                if self.is_due():
                    _log.warning(
                        "The index of %s was made by an older version; it is made anew.", self._index.source.name
                    )
                    self._index.sync(words_only=True, on_progress=show, cancelled=cancelled)
                self._problem = ""
            except (StoreBusy, SyncCancelled):
                self._problem = ""  # another process does it, or the next one goes on with it
            except IndexerError as error:
                self._problem = f"index: an older version made it, and it could not be made anew yet. {error}"
                _log.warning("The index of %s could not be made anew: %s", self._index.source.name, error)
            finally:
                self._progress = None
                self._again = time.monotonic() + _AGAIN_SECONDS if self.is_due() else 0.0
        return (self._problem,) if self._problem else ()

    def leave(self) -> None:
        """Begin none from now on."""
        self._begins = False

    def close(self) -> None:
        """End the background; the next process goes on with a renewal that runs."""
        self._background.close()

    def _in_background(self, _: object) -> str:
        return "; ".join(self.renew(cancelled=lambda: self._background.is_closed))

    def _underway(self) -> str:
        if not self._begins:
            return "index: an older version made it, and it is not read. Run `memory-service reindex`."
        progress = self._progress
        share = f": {progress.done:,} of {progress.total:,} files are read" if progress and progress.total else ""
        return f"{_OLD}{share}. Ask again in a moment."


# So long after something was written it is looked at, with all that came meanwhile: 40 ms of a processor at most.
_QUIET_SECONDS = 15.0
# A move that failed is tried again after this.
_TRY_AGAIN_SECONDS = 60.0
_TURN_SECONDS = 0.2
_TURN = threading.Lock()


class IndexMoves:
    """Moves of one index.

    Args:
        index: The index.
        after_seconds: See `DeferredRefresh`.
        rests: Likewise.
    """

    def __init__(self, index: Index, *, after_seconds: float = _QUIET_SECONDS, rests: bool = False) -> None:
        self._index = index
        self._background = DeferredRefresh(self._in_background, after_seconds, rests=rests)
        self._problems: tuple[str, ...] = ()
        self._again = 0.0

    @property
    def problems(self) -> tuple[str, ...]:
        """Why the last move failed, as `degraded` says it; it is tried again now and then."""
        if self._problems and time.monotonic() >= self._again:
            self._again = time.monotonic() + _TRY_AGAIN_SECONDS
            self.note()
        return self._problems

    def note(self) -> None:
        """Have it found out in the background whether another model or version of it is due, and move if so."""
        with suppress(IndexerError):  # whoever uses it is told why it cannot be read
            if self._index.is_chosen_for or self._index.lags():
                self._background.note("")

    def move(
        self,
        *,
        cancelled: Callable[[], bool] = lambda: False,
        on_progress: Callable[[SyncProgress], None] | None = None,
    ) -> tuple[str, ...]:
        """Make the index anew, if another model fits what is written now or other rules made it; why that failed.

        One that another process makes anew is left to that.
        """
        index, self._problems = self._index, ()
        try:
            if not self._is_due() or not _has_turn(cancelled):
                return ()
            try:
                if self._is_due() and not index.beside.running:
                    _log.info(
                        "The index of %s is made anew, as another model fits it or an older version made it.",
                        index.source.name,
                    )
                    self._problems = index.sync(full=True, on_progress=on_progress, cancelled=cancelled).degraded
            finally:
                _TURN.release()
        except (StoreBusy, SyncCancelled):
            pass
        except IndexerError as error:
            part = "vector" if isinstance(error, EmbeddingError) else "index"
            self._problems = (f"{part}: the index goes on as it was made, as it could not be made anew. {error}",)
            self._again = time.monotonic() + _TRY_AGAIN_SECONDS
            _log.warning("The index of %s stays with its model: %s", index.source.name, error)
        return self._problems

    def close(self) -> None:
        """End the background; a move that runs is left to the next one."""
        self._background.close()

    def _is_due(self) -> bool:
        return self._index.moves() or self._index.lags()

    def _in_background(self, _: object) -> str:
        return "; ".join(self.move(cancelled=lambda: self._background.is_closed))


def _has_turn(cancelled: Callable[[], bool]) -> bool:
    """Wait until no other index of this process is moving; True once it is this one's turn, False if cancelled."""
    while not _TURN.acquire(timeout=_TURN_SECONDS):
        if cancelled():
            return False
    return True
