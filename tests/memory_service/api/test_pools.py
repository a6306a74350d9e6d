"""Threads of their own for calls that may wait long."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import anyio.to_thread
import pytest

from memory_service.api.pools import Pools, WorkerPool
from memory_service.errors import CallCancelled, TooManyRequests
from tests.serving import RunningServer, W


def test_no_more_run_at_once_than_there_are_places() -> None:
    running, most, lock, go = 0, 0, threading.Lock(), threading.Event()

    def act() -> str:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        go.wait(60)
        with lock:
            running -= 1
        return "好"

    async def run() -> list[str]:
        places = WorkerPool(3)
        tasks = [asyncio.create_task(places.run(act)) for _ in range(9)]
        while running < 3:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)  # for one that should wait, and does not
        go.set()
        return await asyncio.gather(*tasks)

    assert asyncio.run(run()) == ["好"] * 9
    assert most == 3


def test_who_waits_in_vain_hears_so_and_gives_no_place_away() -> None:
    go = threading.Event()

    async def run() -> None:
        places = WorkerPool(1, patience_seconds=0.05, most_waiting=2)
        first = asyncio.create_task(places.run(lambda: go.wait(60)))
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
        first = asyncio.create_task(pools.stateless.run(lambda: go.wait(60)))
        await asyncio.sleep(0.02)
        waiting = asyncio.create_task(pools.stateless.run(lambda: begun.append(1)))
        await asyncio.sleep(0)
        assert not pools.is_ending()
        pools.close()
        assert pools.is_ending()
        go.set()
        assert await first
        with pytest.raises(CallCancelled):
            await waiting
        with pytest.raises(CallCancelled):
            await pools.work.run(lambda: begun.append(1))

    asyncio.run(run())
    assert begun == []


def test_a_frequent_request_takes_one_thread_which_makes_its_json_too(
    running_server: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    http, run_sync, ran = running_server.http, anyio.to_thread.run_sync, []

    async def counted(act: Callable[..., Any], *given: Any, **more: Any) -> Any:
        # Whether keys are needed is asked again in a thread, when it was asked some seconds ago.
        if act.__name__ != "is_required":
            ran.append(act)
        return await run_sync(act, *given, **more)

    http.post(f"{W}/memories", json={"text": "部署在周二。Deploys go out on Tuesdays."})
    receipt = http.post(f"{W}/context", json={"query": "部署", "budget_tokens": 100}).json()["receipt"]["receipt_id"]
    monkeypatch.setattr(anyio.to_thread, "run_sync", counted)
    for path, body in {
        "memories": {"text": "周三开会。Meetings are on Wednesdays."},
        "search": {"query": "什么时候部署?"},
        "context": {"query": "when are deploys?", "budget_tokens": 100},
        f"receipts/{receipt}": None,
        "sessions/s-1/messages": {"messages": [{"role": "user", "content": "什么时候部署?"}]},
        "sessions/s-1/context": {"system_prompt": "Be brief."},
    }.items():
        ran.clear()
        answer = http.request("POST" if body else "GET", f"{W}/{path}", json=body)
        assert answer.is_success, answer.text
        assert len(ran) == 1, (path, ran)
