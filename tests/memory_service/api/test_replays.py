"""Requests with an idempotency key in the event loop of one server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

import pytest

from memory_service.api.idempotency import KeyedRequest, RepeatedRequests
from memory_service.errors import Conflict, StorageFailed
from memory_service.runtime.keyed_answers import KeyedAnswers
from memory_service.runtime.presence import Presence
from tests.memory_service.storage.in_memory_records import MemoryCoordination, MemoryRecords

T = TypeVar("T")


def request(content: bytes = b"same", *, key: str = "k", place: str = "POST /v1/部署") -> KeyedRequest:
    return KeyedRequest(workspace="w", place=place, key=key, content=content)


def new_requests() -> RepeatedRequests:
    records = MemoryRecords()
    return RepeatedRequests(KeyedAnswers(lambda workspace: records, Presence(MemoryCoordination())))


class Work:
    """Something to do, which counts how often it was done; it may be done once a test lets it."""

    def __init__(self, answer: bytes = b"done", failures: int = 0) -> None:
        self.times = 0
        self.may_end = asyncio.Event()
        self._answer, self._failures = answer, failures

    def __call__(self) -> bytes:
        self.times += 1
        if self.times <= self._failures:
            raise StorageFailed("The disk is full.")
        return self._answer

    async def run(self, job: Callable[[], T]) -> T:
        """The queue of a thread."""
        await self.may_end.wait()
        return job()


def test_who_asks_the_same_while_it_is_done_waits_for_the_answer() -> None:
    async def run() -> None:
        repeated, work = new_requests(), Work()
        both = [asyncio.create_task(repeated.once(request(), work, work.run)) for _ in range(5)]
        await asyncio.sleep(0)
        with pytest.raises(Conflict):
            await repeated.once(request(b"other"), work, work.run)
        work.may_end.set()
        assert sorted(await asyncio.gather(*both)) == [(b"done", False)] + [(b"done", True)] * 4
        assert work.times == 1
        with pytest.raises(Conflict):
            await repeated.once(request(b"other"), work, work.run)
        assert await repeated.once(request(b"other", key="k2"), work, work.run) == (b"done", False)
        assert await repeated.once(request(place="POST /elsewhere"), work, work.run) == (b"done", False)

    asyncio.run(run())


def test_a_failure_is_not_kept_and_the_next_in_line_tries() -> None:
    async def run() -> None:
        repeated, work = new_requests(), Work(failures=1)
        tasks = [asyncio.create_task(repeated.once(request(), work, work.run)) for _ in range(3)]
        await asyncio.sleep(0)
        work.may_end.set()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert isinstance(results[0], StorageFailed)
        assert sorted(results[1:], key=str) == [(b"done", False), (b"done", True)]
        assert work.times == 2

    asyncio.run(run())


def test_who_goes_away_leaves_nothing_behind() -> None:
    async def run() -> None:
        repeated, work = new_requests(), Work()
        gone = asyncio.create_task(repeated.once(request(), work, work.run))
        await asyncio.sleep(0)
        gone.cancel()
        await asyncio.gather(gone, return_exceptions=True)
        work.may_end.set()
        assert await repeated.once(request(), work, work.run) == (b"done", False)

    asyncio.run(run())


def test_what_another_process_is_doing_is_waited_for() -> None:
    async def run() -> None:
        records, coordination = MemoryRecords(), MemoryCoordination()
        one, other = (
            RepeatedRequests(KeyedAnswers(lambda workspace: records, Presence(coordination))) for _ in range(2)
        )
        work, begun, loop = Work(), asyncio.Event(), asyncio.get_running_loop()

        def slow() -> bytes:
            loop.call_soon_threadsafe(begun.set)
            asyncio.run_coroutine_threadsafe(work.may_end.wait(), loop).result()
            return work()

        first = asyncio.create_task(one.once(request(), slow, asyncio.to_thread))
        await begun.wait()
        second = asyncio.create_task(other.once(request(), work, asyncio.to_thread))
        await asyncio.sleep(0.1)
        assert not second.done()
        work.may_end.set()
        assert [await first, await second] == [(b"done", False), (b"done", True)]
        assert work.times == 1

    asyncio.run(run())
