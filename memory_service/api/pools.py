"""Thread pools for calls that may wait long (for a model, or for each other), and the idempotency cache.

Invariants: such a call never takes a thread that searches and writes need; a call that waits for a slot holds no
thread, and not for ever; when the server ends, running calls are told to stop, and nothing new begins. The cache is
used in the event loop alone, so a look-up and its entry are atomic; a request equal to a running one waits for that
answer without a thread; a failed request is forgotten, so that it can be tried again; the cache is bounded in number
and in bytes, and a restart empties it.
"""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

import anyio
import anyio.to_thread

from memory_service.api.admission import WorkQueues
from memory_service.errors import CallCancelled, Conflict, TooManyRequests

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
        self.queues = WorkQueues(cancelled=self.cancelled, on_refused=on_refused)
        self.work = WorkerPool(_WORK, cancelled=self.cancelled)
        self.stateless = WorkerPool(compactions, cancelled=self.cancelled)

    async def finish(self, act: Callable[[], _T]) -> _T:
        """Do the last part of a call that was let in before; it is never refused, as its first part was done."""
        return await anyio.to_thread.run_sync(act, limiter=self._finishing)

    def cancelled(self) -> bool:
        """True if calls are to stop; asked by them while a model works."""
        return self._ending.is_set()

    def close(self) -> None:
        """Tell all calls to stop; returns at once."""
        self._ending.set()


_KEPT_ANSWERS = 10_000
_KEPT_BYTES = 32 * 1024 * 1024

# What is asked: the route with its workspace and session, and the key.
ReplayKey = tuple[str, str]


@dataclass(slots=True)
class _Asked:
    """A request: its content, and its answer once there is one."""

    content: bytes
    done: asyncio.Event
    answer: bytes | None = None


class IdempotencyCache:
    """Answers of one app by idempotency key.

    Args:
        most_answers: Largest number of answers.
        most_bytes: Largest size of all of them.
    """

    def __init__(self, *, most_answers: int = _KEPT_ANSWERS, most_bytes: int = _KEPT_BYTES) -> None:
        self._most_answers, self._most_bytes = most_answers, most_bytes
        self._asked: OrderedDict[ReplayKey, _Asked] = OrderedDict()
        self._bytes = 0

    async def once(self, key: ReplayKey, content: bytes, act: Callable[[], Awaitable[bytes]]) -> tuple[bytes, bool]:
        """Act, unless the same request was made with the same key before.

        Args:
            key: The route, with the idempotency key.
            content: The request, or its hash.
            act: Gives the answer.

        Returns:
            The answer, and True if it is that of an earlier request.

        Raises:
            Conflict: The key belongs to another request.
        """
        while (known := self._asked.get(key)) is not None:
            if known.content != content:
                raise Conflict("The idempotency key was used for another request. Use a new key for a new request.")
            await known.done.wait()
            if known.answer is not None:
                return known.answer, True
        asked = self._asked[key] = _Asked(content=content, done=asyncio.Event())
        try:
            asked.answer = await act()
        finally:
            self._settle(key, asked)
        return asked.answer, False

    def _settle(self, key: ReplayKey, asked: _Asked) -> None:
        """Store an answer, forget a failure, and wake the waiting requests."""
        if asked.answer is None or len(asked.answer) > self._most_bytes:
            del self._asked[key]
        else:
            self._asked.move_to_end(key)
            self._bytes += len(asked.answer)
        asked.done.set()
        self._trim()

    def _trim(self) -> None:
        while self._bytes > self._most_bytes or len(self._asked) > self._most_answers:
            oldest = next((key for key, asked in self._asked.items() if asked.answer is not None), None)
            if oldest is None:
                return
            self._bytes -= len(self._asked.pop(oldest).answer or b"")
