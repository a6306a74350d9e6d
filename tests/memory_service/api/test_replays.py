"""Answers that are kept for requests with an idempotency key."""

from __future__ import annotations

import asyncio

import pytest

from memory_service.api.idempotency import IdempotencyCache
from memory_service.errors import Conflict, StorageFailed

KEY = ("POST /v1/部署", "k")


class Work:
    """Something to do, which counts how often it was done and waits until it may end."""

    def __init__(self, answer: bytes = b"done", failures: int = 0) -> None:
        self.times = 0
        self.may_end = asyncio.Event()
        self._answer, self._failures = answer, failures

    async def __call__(self) -> bytes:
        self.times += 1
        await self.may_end.wait()
        if self.times <= self._failures:
            raise StorageFailed("The disk is full.")
        return self._answer


def test_who_asks_the_same_while_it_is_done_waits_for_the_answer() -> None:
    async def run() -> None:
        replays, work = IdempotencyCache(), Work()
        both = [asyncio.create_task(replays.once(KEY, b"same", work)) for _ in range(5)]
        await asyncio.sleep(0)
        with pytest.raises(Conflict):
            await replays.once(KEY, b"other", work)
        work.may_end.set()
        assert sorted(await asyncio.gather(*both)) == [(b"done", False)] + [(b"done", True)] * 4
        assert work.times == 1
        with pytest.raises(Conflict):
            await replays.once(KEY, b"other", work)
        assert await replays.once((KEY[0], "k2"), b"other", work) == (b"done", False)
        assert await replays.once(("POST /elsewhere", "k"), b"same", work) == (b"done", False)

    asyncio.run(run())


def test_a_failure_is_not_kept_and_the_next_in_line_tries() -> None:
    async def run() -> None:
        replays, work = IdempotencyCache(), Work(failures=1)
        tasks = [asyncio.create_task(replays.once(KEY, b"same", work)) for _ in range(3)]
        await asyncio.sleep(0)
        work.may_end.set()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert isinstance(results[0], StorageFailed)
        assert sorted(results[1:], key=str) == [(b"done", False), (b"done", True)]
        assert work.times == 2

    asyncio.run(run())


def test_who_goes_away_leaves_nothing_behind() -> None:
    async def run() -> None:
        replays, work = IdempotencyCache(), Work()
        gone = asyncio.create_task(replays.once(KEY, b"same", work))
        await asyncio.sleep(0)
        gone.cancel()
        await asyncio.gather(gone, return_exceptions=True)
        work.may_end.set()
        assert await replays.once(KEY, b"same", work) == (b"done", False)

    asyncio.run(run())


@pytest.mark.parametrize(("most_answers", "most_bytes"), [(3, 10**6), (10**6, 3 * 100)])
def test_what_is_kept_is_bounded(most_answers: int, most_bytes: int) -> None:
    async def run() -> None:
        replays, work = IdempotencyCache(most_answers=most_answers, most_bytes=most_bytes), Work(b"x" * 100)
        work.may_end.set()
        for number in range(10):
            assert await replays.once(("p", str(number)), b"", work) == (b"x" * 100, False)
        kept = [(await replays.once(("p", str(number)), b"", work))[1] for number in (9, 8, 7)]
        assert kept == [True] * 3
        assert (await replays.once(("p", "0"), b"", work))[1] is False
        big = Work(b"x" * (most_bytes + 1))
        big.may_end.set()
        assert [(await replays.once(("big", "k"), b"", big))[1] for _ in range(2)] == [False, False]

    asyncio.run(run())
