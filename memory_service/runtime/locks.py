"""Who may work on which session: one thread at a time in a session, and few compactions at once in all.

Invariants: nobody is let in before those who came earlier; a thread that is in a session enters it again without
waiting, so a compaction called from inside a turn never waits for itself; no two threads wait for each other, since
a session is always taken before the place of a compaction, and a thread in one session is refused another at once.
What nobody holds or waits for takes no memory.

Two callers who want the same compaction need nothing more: the second enters when the first has left, looks at the
session again, and finds nothing left to compact. The locks are those of one process; between processes of several
machines, whoever has its turn takes the lane of the session, too, and in any case the log's own lock and its
compare-and-swap on the head keep order.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from indexer.common import THROTTLE
from memory_service.errors import CallCancelled, Conflict, InvalidRequest, StorageFailed, TooManyRequests
from memory_service.storage.coordination import Coordination

SessionKey = tuple[str, str]

# Shorter than the clients' own time limit of 30 s, so that who waited in vain hears why.
WAIT_SECONDS = 25.0
_POLL_SECONDS = 0.02
# A wait for another process looks so often at whether it was cancelled.
_LANE_SECONDS = 0.5


@dataclass(slots=True)
class _SessionLock:
    """Some places, who has one and how often he entered, and who waits; all by thread."""

    places: int
    inside: dict[int, int] = field(default_factory=dict)
    waiting: OrderedDict[int, threading.Event] = field(default_factory=OrderedDict)

    def enter(self, thread: int) -> threading.Event | None:
        """Go in, or else queue up; gives what is set as soon as it is the thread's turn."""
        if thread not in self.inside and len(self.inside) >= self.places:
            turn = self.waiting[thread] = threading.Event()
            return turn
        self.inside[thread] = self.inside.get(thread, 0) + 1
        return None

    def leave(self, thread: int) -> None:
        """Go out, or give up waiting. Who waits longest goes in at once, so no place is free while somebody waits."""
        if self.waiting.pop(thread, None) is None:
            self.inside[thread] -= 1
            if not self.inside[thread]:
                del self.inside[thread]
        if self.waiting and len(self.inside) < self.places:
            following, turn = self.waiting.popitem(last=False)
            self.inside[following] = 1
            turn.set()


class _Patience:
    """How long one waits, for all locks together."""

    def __init__(self, timeout_seconds: float, cancelled: Callable[[], bool] | None) -> None:
        self._timeout = timeout_seconds
        self._deadline = time.monotonic() + timeout_seconds
        self._cancelled = cancelled

    def step(self) -> float:
        """The seconds to wait before somebody looks again at whether to go on."""
        return min(self._step(), _LANE_SECONDS)

    def check(self, key: SessionKey) -> None:
        """Give up if it is over, or was cancelled."""
        self._check(f"session {key[1]!r} of workspace {key[0]!r}", "another server works on it")

    def wait(self, turn: threading.Event, key: SessionKey, other_texts: str) -> None:
        name = f"session {key[1]!r} of workspace {key[0]!r}"
        with THROTTLE.waiting():
            self._wait(turn, name, other_texts)

    def _wait(self, turn: threading.Event, name: str, other_texts: str) -> None:
        while not turn.wait(self._step()):
            self._check(name, other_texts)

    def _check(self, name: str, other_texts: str) -> None:
        if self._cancelled is not None and self._cancelled():
            raise CallCancelled(f"The wait for {name} was cancelled. Nothing was changed; ask again to go on.")
        if time.monotonic() >= self._deadline:
            raise TooManyRequests(
                f"There was no turn for {name} within {self._timeout:g} seconds: {other_texts}. Try again later."
            )

    def _step(self) -> float:
        left = min(max(self._deadline - time.monotonic(), 0.0), threading.TIMEOUT_MAX)
        return left if self._cancelled is None else min(left, _POLL_SECONDS)


class SessionLocks:
    """The locks of one process.

    Args:
        limit: Most compactions at once, over all sessions; 1 or more.
        coordination: Keeps other processes out, where it does; None if there are none.
    """

    def __init__(self, limit: int = 2, coordination: Coordination | None = None) -> None:
        if limit < 1:
            raise InvalidRequest(f"The limit of concurrent compactions is {limit}. Give 1 or more.")
        self._coordination = coordination
        self._changing = threading.Lock()
        self._sessions: dict[SessionKey, _SessionLock] = {}
        self._compactions = _SessionLock(limit)
        self._session_of: dict[int, SessionKey] = {}

    def __len__(self) -> int:
        """How many sessions somebody is in."""
        return len(self._sessions)

    @contextmanager
    def session(
        self, key: SessionKey, *, timeout_seconds: float = WAIT_SECONDS, cancelled: Callable[[], bool] | None = None
    ) -> Iterator[None]:
        """Be alone in a session while the block runs; free for a thread that is in it already.

        Args:
            key: Workspace and session id.
            timeout_seconds: How long to wait for others; 0 means now or never.
            cancelled: Asked while waiting; once true, the wait ends.

        Raises:
            TooManyRequests: Others did not leave in time.
            CallCancelled: `cancelled` became true.
            Conflict: The thread is in another session.
        """
        with self._enter(key, _Patience(timeout_seconds, cancelled), compaction=False):
            yield

    @contextmanager
    def compaction(
        self, key: SessionKey, *, timeout_seconds: float = WAIT_SECONDS, cancelled: Callable[[], bool] | None = None
    ) -> Iterator[None]:
        """Be alone in a session and have one of the places for compactions; arguments and errors as `session`."""
        patience = _Patience(timeout_seconds, cancelled)
        with self._enter(key, patience, compaction=False), self._enter(key, patience, compaction=True):
            yield

    @contextmanager
    def _enter(self, key: SessionKey, patience: _Patience, *, compaction: bool) -> Iterator[None]:
        thread = threading.get_ident()
        with self._changing:
            lock = self._compactions if compaction else self._session_lock(key, thread)
            turn = lock.enter(thread)
        try:
            if turn is not None:
                other_kinds = "others compact, and no more may at once" if compaction else "others work on it"
                patience.wait(turn, key, other_kinds)
            if compaction or self._coordination is None or lock.inside[thread] > 1:
                yield
            else:
                with _lane(self._coordination, key, patience):
                    yield
        finally:
            with self._changing:
                lock.leave(thread)
                self._forget(key, thread)

    def _session_lock(self, key: SessionKey, thread: int) -> _SessionLock:
        outer = self._session_of.setdefault(thread, key)
        if outer != key:
            # To wait here could be to wait for somebody who waits for this thread.
            raise Conflict(f"Work on session {outer[1]!r} asked for session {key[1]!r}. Do one after the other.")
        return self._sessions.setdefault(key, _SessionLock(1))

    def _forget(self, key: SessionKey, thread: int) -> None:
        """Keep nothing of who has left, nor of a session that nobody wants."""
        lock = self._sessions[key]
        if thread not in lock.inside:
            del self._session_of[thread]
        if not lock.inside:
            del self._sessions[key]


@contextmanager
def _lane(coordination: Coordination, key: SessionKey, patience: _Patience) -> Iterator[None]:
    """The lane of a session among processes, for as long as the block runs."""
    workspace, session_id = key
    with ExitStack() as stack:
        while True:
            try:
                lane = coordination.lane(f"{workspace}/.locks/session-{session_id}", timeout_seconds=patience.step())
                stack.enter_context(lane)
                break
            except StorageFailed as error:
                if error.retry_after_seconds is None:
                    raise
                patience.check(key)
        yield
