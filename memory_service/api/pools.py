"""Thread pools for calls that may wait long, for a model or for each other.

Invariants: such a call never takes a thread that searches and writes need; a call that waits for a slot holds no
thread, and not for ever; when the server ends, running calls are told to stop, and nothing new begins.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

import anyio
import anyio.to_thread

from memory_service.api.admission import WorkQueues
from memory_service.errors import CallCancelled, TooManyRequests

_T = TypeVar("_T")

# Compactions themselves are few at once, see `SessionLocks`; most of these only wait for one, or find nothing to do.
_WORK = 12
# Each takes some milliseconds.
_FINISHING = 4
# Shorter than the clients' own time limit of 30 s, so that who waited in vain hears why.
_PATIENCE_SECONDS = 25.0
_MOST_WAITING = 256


class WorkerPool:
    """A pool of threads with a bounded queue.

    Args:
        count: Number of threads.
        cancelled: Tells if nothing may begin any more.
        patience_seconds: The longest wait of a call for a thread.
        most_waiting: Number of calls that may wait; the next is refused at once.
    """

    def __init__(
        self,
        count: int,
        *,
        cancelled: Callable[[], bool] = lambda: False,
        patience_seconds: float = _PATIENCE_SECONDS,
        most_waiting: int = _MOST_WAITING,
    ) -> None:
        self._cancelled = cancelled
        self._patience_seconds = patience_seconds
        self._most_waiting = most_waiting
        self._free = anyio.Semaphore(count)
        self._threads = anyio.CapacityLimiter(count)
        self._waiting = 0

    async def run(self, act: Callable[[], _T]) -> _T:
        """Run a call in one of the threads.

        Raises:
            TooManyRequests: No thread was free in time, or too many calls wait.
            CallCancelled: The server ends.
        """
        if self._waiting >= self._most_waiting:
            raise TooManyRequests(f"{self._waiting} calls wait for others to end. Try again later.")
        self._waiting += 1
        try:
            with anyio.move_on_after(self._patience_seconds) as waiting:
                await self._free.acquire()
        finally:
            self._waiting -= 1
        if waiting.cancelled_caught:
            raise TooManyRequests(
                f"All calls that may take long were taken for {self._patience_seconds:g} seconds. Try again later."
            )
        try:
            if self._cancelled():
                raise CallCancelled("The server ends. Nothing was changed; ask again when it is back.")
            return await anyio.to_thread.run_sync(act, limiter=self._threads)
        finally:
            self._free.release()


class Pools:
    """The pools of one app, one for each purpose, so that none takes threads of another.

    Attributes:
        queues: Everything that is made at once, as a rule, by its kind.
        work: Compactions, flushes, recoveries.
        stateless: Compactions of bare lists of messages, which nothing else serialises.

    Args:
        compactions: Number of compactions at a time.
        on_refused: Called with the kind of each request that a queue refuses.
    """

    def __init__(self, compactions: int, on_refused: Callable[[str], None] = lambda kind: None) -> None:
        self._ending = threading.Event()
        self._finishing = anyio.CapacityLimiter(_FINISHING)
        self.queues = WorkQueues(cancelled=self.is_ending, on_refused=on_refused)
        self.work = WorkerPool(_WORK, cancelled=self.is_ending)
        self.stateless = WorkerPool(compactions, cancelled=self.is_ending)

    async def finish(self, act: Callable[[], _T]) -> _T:
        """Do the last part of a call that was let in before; it is never refused, as its first part was done."""
        return await anyio.to_thread.run_sync(act, limiter=self._finishing)

    def is_ending(self) -> bool:
        """True if calls are to stop; asked by them while a model works."""
        return self._ending.is_set()

    def close(self) -> None:
        """Tell all calls to stop; returns at once."""
        self._ending.set()
