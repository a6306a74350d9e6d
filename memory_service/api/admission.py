"""Admission of requests to the threads of a server: a bounded queue for each kind of work.

How it works: of each kind only a few requests are worked on at once, as Python runs one thread at a time and more of
them would make all of them slower. The others wait in line, without a thread. Every request that ends tells how long
it took, and so how long whoever comes next will wait: a request that would wait longer than its kind may is refused at
once, and one that waits longer than was expected is refused then.

```
request -> is there a place? -> a thread works on it -> the place is free for the first in line
              |no
              +-> expected wait within the bound? -> in line -> its turn, or refused once the bound is over
                     |no
                     +-> refused: 503 with Retry-After, and nothing was done
```
Invariants: no kind takes places of another; who came first goes first; a request whose client has gone while it waited
is not worked on; a refused request has done nothing. `Retry-After` is the time at which there is room, spread over the
refused ones, so that they do not come back all at once. Used in the event loop alone.
"""

from __future__ import annotations

import asyncio
import math
import os
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Final, Literal, TypeVar

import anyio
import anyio.to_thread
from starlette.routing import BaseRoute, Match
from starlette.types import ASGIApp, Receive, Scope, Send

from memory_service.api.errors import error_answer
from memory_service.errors import CallCancelled, Overloaded

_T = TypeVar("_T")

WorkKind = Literal["search", "context", "append", "prompt", "gateway", "hook", "read", "status", "health"]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueRule:
    """Bounds of one kind of work.

    Attributes:
        named: Name of such requests in a message, in the plural.
        at_once: Number of requests that compute at the same time.
        threads: Number of threads: more than `at_once` where a request may wait for a model or for another one, as
            one that takes long gives its place to the next.
        most_seconds: The longest time until the answer, as far as the usual time of the work itself tells; at least a
            quarter of it is for the wait in line.
    """

    named: str
    at_once: int
    threads: int
    most_seconds: float


# Two keep a small machine busy, as one thread at a time runs Python and the model runs beside it; each more makes the
# event loop wait longer, and with it health checks and refusals.
_FEW = min(4, max(2, (os.cpu_count() or 2) // 2))
# On a busy machine a search is answered or refused within two seconds, and everything else before ten. Writes share
# rounds of indexing, for which they wait without computing, so more of them go at once.
RULES: Final[Mapping[WorkKind, QueueRule]] = MappingProxyType({
    "search": QueueRule(named="searches", at_once=_FEW, threads=_FEW, most_seconds=1.2),
    "context": QueueRule(named="contexts", at_once=_FEW, threads=_FEW, most_seconds=4.0),
    "append": QueueRule(named="writes", at_once=2 * _FEW, threads=24, most_seconds=4.0),
    "prompt": QueueRule(named="prompts of sessions", at_once=_FEW, threads=24, most_seconds=4.0),
    "gateway": QueueRule(named="calls of the gateway", at_once=_FEW, threads=24, most_seconds=4.0),
    "hook": QueueRule(named="hooks", at_once=_FEW, threads=24, most_seconds=4.0),
    "read": QueueRule(named="reads", at_once=_FEW, threads=12, most_seconds=4.0),
    "status": QueueRule(named="looks at a status", at_once=_FEW, threads=12, most_seconds=4.0),
    "health": QueueRule(named="looks at the server's health", at_once=_FEW, threads=12, most_seconds=4.0),
})  # fmt: skip

# A request that takes longer waits for something else as a rule: a model, a lock, a disk.
_LONG_SECONDS = 1.0
# Until the first request has told; then each one counts for a tenth.
_FIRST_SECONDS = 0.05
_WEIGHT = 0.1
# Clients wait no longer before they send a request again.
_LONGEST_RETRY_SECONDS = 10.0


class WorkQueue:
    """The queue of one kind of work, and the threads that do it.

    Args:
        rule: Its bounds.
        cancelled: Tells if nothing may begin any more.
        on_refused: Called for each request that is refused.
    """

    def __init__(
        self,
        rule: QueueRule,
        *,
        cancelled: Callable[[], bool] = lambda: False,
        on_refused: Callable[[], None] = lambda: None,
    ) -> None:
        self._rule = rule
        self._cancelled = cancelled
        self._on_refused = on_refused
        self._threads = anyio.CapacityLimiter(rule.threads)
        self._line: deque[asyncio.Future[None]] = deque()
        self._computing = self._working = 0
        self._usual_seconds = _FIRST_SECONDS
        self._promised_until = 0.0

    @property
    def waiting(self) -> int:
        """Number of requests in line."""
        return len(self._line)

    @property
    def working(self) -> int:
        """Number of requests that are worked on."""
        return self._working

    @property
    def is_full(self) -> bool:
        """True if one more request would wait too long."""
        has_to_wait = bool(self._line) or not self._has_room
        return has_to_wait and self._expected_seconds(len(self._line) + 1) > self._patience_seconds

    async def run(self, act: Callable[[], _T], receive: Receive | None = None) -> _T:
        """Do some work in one of the threads.

        Args:
            act: The work.
            receive: Receives from the client of the request; whose client goes away while it waits is given up.

        Raises:
            Overloaded: The wait would be, or was, too long.
            CallCancelled: The client has gone, or the server ends.
        """
        if self._has_room and not self._line:
            self._take()
        else:
            await self._wait(receive)
        loop = asyncio.get_running_loop()
        time = loop.time()
        long_since = loop.call_later(_LONG_SECONDS, self._pass_on)
        try:
            if self._cancelled():
                raise CallCancelled("The server ends. Nothing was changed; ask again when it is back.")
            return await anyio.to_thread.run_sync(act, limiter=self._threads)
        finally:
            self._leave(long_since, loop.time() - time)

    @property
    def _has_room(self) -> bool:
        return self._computing < self._rule.at_once and self._working < self._rule.threads

    def _take(self) -> None:
        self._computing += 1
        self._working += 1

    def _pass_on(self) -> None:
        """Take a request for one that does not compute, and let the next one in."""
        self._computing -= 1
        self._let_in()

    def _leave(self, long_since: asyncio.TimerHandle, seconds: float) -> None:
        if seconds < _LONG_SECONDS:
            long_since.cancel()
            self._computing -= 1
        self._working -= 1
        self._usual_seconds += _WEIGHT * (min(seconds, _LONG_SECONDS) - self._usual_seconds)
        self._let_in()

    def _let_in(self) -> None:
        """Let in the first in line if there is room: its place is taken at once, before somebody new can come."""
        while self._line and self._has_room:
            self._take()
            self._line.popleft().set_result(None)

    @property
    def _patience_seconds(self) -> float:
        most = self._rule.most_seconds
        return max(most / 4, most - self._usual_seconds)

    def _expected_seconds(self, ahead: int) -> float:
        """Time in which so many requests of this kind end."""
        return ahead * self._usual_seconds / self._rule.at_once

    async def _wait(self, receive: Receive | None) -> None:
        """Stand in line; a place is taken when this returns."""
        if self.is_full:
            raise self.refusal()
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._line.append(turn)
        try:
            is_gone = await _turn_or_gone(turn, receive, self._patience_seconds)
        except BaseException:
            self._give_up(turn)
            raise
        if turn.done():
            return
        self._give_up(turn)
        if is_gone:
            raise CallCancelled("The caller went away before its turn. Nothing was done.")
        raise self.refusal()

    def _give_up(self, turn: asyncio.Future[None]) -> None:
        """Leave the line, or the place that was taken meanwhile."""
        if turn.done():
            self._computing -= 1
            self._working -= 1
            self._let_in()
        else:
            self._line.remove(turn)
            turn.cancel()

    def refusal(self) -> Overloaded:
        """The error for one more request."""
        self._on_refused()
        now = asyncio.get_running_loop().time()
        free_at = max(now + self._expected_seconds(len(self._line)), self._promised_until)
        self._promised_until = min(free_at + self._expected_seconds(1), now + _LONGEST_RETRY_SECONDS)
        seconds = max(1, math.ceil(self._promised_until - now))
        return Overloaded(
            f"Too many {self._rule.named} wait already ({len(self._line)}). Nothing was done; send the request again "
            f"after {seconds} s.",
            retry_after_seconds=seconds,
        )


async def _turn_or_gone(turn: asyncio.Future[None], receive: Receive | None, seconds: float) -> bool:
    """Wait until a turn comes, a client goes away, or some time is over; gives whether the client has gone."""
    if receive is None:
        await asyncio.wait((turn,), timeout=seconds)
        return False
    watch = asyncio.ensure_future(_wait_for_disconnect(receive))
    try:
        await asyncio.wait((turn, watch), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        return watch.done() and watch.result()
    finally:
        watch.cancel()


async def _wait_for_disconnect(receive: Receive) -> bool:
    while (await receive())["type"] != "http.disconnect":
        pass
    return True


class WorkQueues:
    """The queues of one server, one for each kind.

    Args:
        cancelled: Tells if nothing may begin any more.
        on_refused: Called with the kind of each request that is refused.
    """

    def __init__(
        self, *, cancelled: Callable[[], bool] = lambda: False, on_refused: Callable[[str], None] = lambda kind: None
    ) -> None:
        self._queues = {
            kind: WorkQueue(rule, cancelled=cancelled, on_refused=partial(on_refused, kind))
            for kind, rule in RULES.items()
        }

    def of(self, kind: WorkKind) -> WorkQueue:
        """The queue of a kind."""
        return self._queues[kind]

    @property
    def any_full(self) -> bool:
        """True if one of them is full."""
        return any(queue.is_full for queue in self._queues.values())

    async def run_as(self, kind: WorkKind, act: Callable[[], _T]) -> _T:
        """Do some work in the queue of a kind; see `WorkQueue.run`."""
        return await self._queues[kind].run(act)


KIND_ATTRIBUTE: Final = "work_kind"


class RefuseEarly:
    """Middleware that refuses what its queue would refuse, before anything is read of it.

    To read a request takes several times as long as to refuse it, and in a flood everybody waits for that.

    Args:
        app: What is behind it.
        queues: The queues. A route names its own in the attribute `work_kind` of its function.
        routes: The routes of the app, as they are at the first flood.
    """

    def __init__(self, app: ASGIApp, queues: WorkQueues, routes: Sequence[BaseRoute]) -> None:
        self._app = app
        self._queues = queues
        self._routes = routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        queue = self._full_queue(scope) if scope["type"] == "http" and self._queues.any_full else None
        if queue is None:
            await self._app(scope, receive, send)
        else:
            await error_answer(queue.refusal(), scope=scope)(scope, receive, send)

    def _full_queue(self, scope: Scope) -> WorkQueue | None:
        for route in self._routes:
            kind = getattr(getattr(route, "endpoint", None), KIND_ATTRIBUTE, None)
            if kind is not None and self._queues.of(kind).is_full and route.matches(scope)[0] is Match.FULL:
                scope["route"] = route
                return self._queues.of(kind)
        return None
