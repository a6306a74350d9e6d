"""Owns the threads of calls that may wait long: for a model, or for each other.

Invariants: such a call never takes a thread that searches and writes need, however many come; who waits for a place
holds no thread, and not for ever; when the server ends, what runs is told to stop, and nothing new begins.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

import anyio
import anyio.to_thread

from memory_service.errors import CallCancelled, TooManyRequests
from memory_service.llm.base import never

T = TypeVar("T")

# Compactions themselves are few at once, see `Lanes`; most of these only wait for one, or find nothing to do.
_CONTEXTS = 24
_WORK = 12
# Shorter than the clients' own time limit of 30 s, so that who waited in vain hears why.
_PATIENCE_SECONDS = 25.0
_MOST_WAITING = 256


class Places:
    """Some threads of their own.

    Args:
        count: How many.
        cancelled: Whether nothing may begin any more.
        patience_seconds: How long a call waits for one.
        most_waiting: How many calls may wait; the next is refused at once.
    """

    def __init__(
        self,
        count: int,
        *,
        cancelled: Callable[[], bool] = never,
        patience_seconds: float = _PATIENCE_SECONDS,
        most_waiting: int = _MOST_WAITING,
    ) -> None:
        self._cancelled = cancelled
        self._patience_seconds = patience_seconds
        self._most_waiting = most_waiting
        self._free = anyio.Semaphore(count)
        self._threads = anyio.CapacityLimiter(count)
        self._waiting = 0

    async def run(self, act: Callable[[], T]) -> T:
        """Do something in one of the threads.

        Raises:
            TooManyRequests: None was free in time, or too many wait.
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
    """The places of one app, by what they are for, so that none takes those of another.

    Attributes:
        contexts: Prompts, most of which are made at once.
        work: Compactions, flushes, recoveries.
        stateless: Lists of messages to compact, which nothing else puts in a row.

    Args:
        compactions: How many may run at once.
    """

    def __init__(self, compactions: int) -> None:
        self._ending = threading.Event()
        self.contexts = Places(_CONTEXTS, cancelled=self.cancelled)
        self.work = Places(_WORK, cancelled=self.cancelled)
        self.stateless = Places(compactions, cancelled=self.cancelled)

    def cancelled(self) -> bool:
        """Whether calls are to stop; asked by them while a model works."""
        return self._ending.is_set()

    def close(self) -> None:
        """Tell all calls to stop; returns at once."""
        self._ending.set()
