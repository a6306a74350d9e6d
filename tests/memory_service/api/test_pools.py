"""Threads of their own for calls that may wait long."""

from __future__ import annotations

import asyncio
import threading

import pytest

from memory_service.api.pools import Pools, WorkerPool
from memory_service.errors import CallCancelled, TooManyRequests


def test_no_more_run_at_once_than_there_are_places() -> None:
    running, most, lock, go = 0, 0, threading.Lock(), threading.Event()

    def act() -> str:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        go.wait(5)
        with lock:
            running -= 1
        return "好"

    async def run() -> list[str]:
        places = WorkerPool(3)
        tasks = [asyncio.create_task(places.run(act)) for _ in range(9)]
        await asyncio.sleep(0.1)
        go.set()
        return await asyncio.gather(*tasks)

    assert asyncio.run(run()) == ["好"] * 9
    assert most == 3


def test_who_waits_in_vain_hears_so_and_gives_no_place_away() -> None:
    go = threading.Event()

    async def run() -> None:
        places = WorkerPool(1, patience_seconds=0.05, most_waiting=2)
        first = asyncio.create_task(places.run(lambda: go.wait(5)))
        await asyncio.sleep(0.02)
        second = asyncio.create_task(places.run(lambda: True))
        third = asyncio.create_task(places.run(lambda: True))
        await asyncio.sleep(0)
        with pytest.raises(TooManyRequests, match="2 calls wait"):
            await places.run(lambda: True)
        for waiting in (second, third):
            with pytest.raises(TooManyRequests, match="taken for"):
                await waiting
        go.set()
        assert await first
        assert await asyncio.gather(*(places.run(lambda: True) for _ in range(2))) == [True, True]

    asyncio.run(run())


def test_a_failure_gives_its_place_back() -> None:
    def fail() -> None:
        raise CallCancelled("x")

    async def run() -> None:
        places = WorkerPool(1, patience_seconds=1)
        for _ in range(3):
            with pytest.raises(CallCancelled):
                await places.run(fail)

    asyncio.run(run())


def test_nothing_begins_once_the_server_ends() -> None:
    begun = []

    async def run() -> None:
        pools = Pools(1)
        go = threading.Event()
        first = asyncio.create_task(pools.stateless.run(lambda: go.wait(5)))
        await asyncio.sleep(0.02)
        waiting = asyncio.create_task(pools.stateless.run(lambda: begun.append(1)))
        await asyncio.sleep(0)
        assert not pools.cancelled()
        pools.close()
        assert pools.cancelled()
        go.set()
        assert await first
        with pytest.raises(CallCancelled):
            await waiting
        with pytest.raises(CallCancelled):
            await pools.work.run(lambda: begun.append(1))

    asyncio.run(run())
    assert begun == []
