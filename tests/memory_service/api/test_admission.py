"""Bounded queues by kind: whose turn it is, who is refused, and what a refusal says."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from memory_service.api.admission import RULES, QueueRule, WorkQueue
from memory_service.errors import CallCancelled, Overloaded
from tests.memory_service.gateway.talking import gateway
from tests.serving import RunningServer, W


def _rule(**given: Any) -> QueueRule:
    return QueueRule(**{"named": "searches", "at_once": 1, "threads": 1, "most_seconds": 60.0, **given})


@asynccontextmanager
async def _busy(queue: WorkQueue, count: int = 1) -> AsyncIterator[threading.Event]:
    """Work in all places of a queue until the event is set, at the latest at the end."""
    go, begun = threading.Event(), threading.Semaphore(0)

    def act() -> None:
        begun.release()
        go.wait(60)

    tasks = [asyncio.create_task(queue.run(act)) for _ in range(count)]
    for _ in tasks:
        await asyncio.to_thread(begun.acquire)
    try:
        yield go
    finally:
        go.set()
        await asyncio.gather(*tasks)


def test_who_came_first_goes_first_and_a_newcomer_takes_no_place_of_who_waits() -> None:
    order: list[int] = []

    async def run() -> None:
        queue = WorkQueue(_rule())
        async with _busy(queue) as go:
            tasks = [asyncio.create_task(queue.run(partial(order.append, at))) for at in range(4)]
            await asyncio.sleep(0)
            assert (queue.waiting, queue.working) == (4, 1)
            go.set()
            while len(order) < 1:
                await asyncio.sleep(0)
            await queue.run(lambda: order.append(99))
            await asyncio.gather(*tasks)
        assert (queue.waiting, queue.working) == (0, 0)

    asyncio.run(run())
    assert order == [0, 1, 2, 3, 99]


def test_a_wait_that_would_be_too_long_is_refused_at_once_and_nothing_is_done() -> None:
    refused, done = list[int](), list[int]()

    async def run() -> None:
        # Fifty milliseconds each until one has told: three are expected to wait for 150.
        queue = WorkQueue(_rule(most_seconds=0.201), on_refused=lambda: refused.append(1))
        async with _busy(queue) as go:
            tasks = [asyncio.create_task(queue.run(partial(done.append, at))) for at in range(3)]
            await asyncio.sleep(0)
            with pytest.raises(Overloaded, match=r"Too many searches wait.*Nothing was done.*after") as told:
                await queue.run(lambda: done.append(9))
            assert told.value.retry_after_seconds == 1
            go.set()
            await asyncio.gather(*tasks)

    asyncio.run(run())
    assert (done, len(refused)) == ([0, 1, 2], 1)


def test_who_waits_longer_than_was_expected_is_refused_then() -> None:
    done: list[int] = []

    async def run() -> None:
        queue = WorkQueue(_rule(most_seconds=0.11))
        async with _busy(queue):
            with pytest.raises(Overloaded):
                await queue.run(lambda: done.append(1))
            assert queue.waiting == 0
        await queue.run(lambda: done.append(2))

    asyncio.run(run())
    assert done == [2]


def test_the_refused_are_asked_to_come_back_one_after_the_other() -> None:
    async def run() -> list[float]:
        queue, waits = WorkQueue(_rule(most_seconds=0.0)), []
        async with _busy(queue):
            for _ in range(600):
                with pytest.raises(Overloaded) as told:
                    await queue.run(lambda: None)
                waits.append(told.value.retry_after_seconds or 0)
        return waits

    waits = asyncio.run(run())
    assert waits == sorted(waits)
    assert (waits[0], waits[-1]) == (1, 10)
    assert len(set(waits)) == 10


def test_work_of_who_has_gone_is_not_done() -> None:
    done: list[int] = []

    async def run() -> None:
        queue, gone = WorkQueue(_rule()), asyncio.Event()

        async def receive() -> dict[str, Any]:
            await gone.wait()
            return {"type": "http.disconnect"}

        async with _busy(queue) as go:
            given_up = asyncio.create_task(queue.run(lambda: done.append(1), receive=receive))
            stays = asyncio.create_task(queue.run(lambda: done.append(2)))
            cancelled = asyncio.create_task(queue.run(lambda: done.append(3)))
            await asyncio.sleep(0)
            gone.set()
            cancelled.cancel()
            with pytest.raises(CallCancelled):
                await given_up
            go.set()
            await stays

    asyncio.run(run())
    assert done == [2]


def test_a_turn_that_came_as_its_caller_was_cancelled_goes_to_the_next() -> None:
    done: list[int] = []

    async def run() -> None:
        queue = WorkQueue(_rule())
        async with _busy(queue) as go:
            first = asyncio.create_task(queue.run(lambda: done.append(1)))
            second = asyncio.create_task(queue.run(lambda: done.append(2)))
            await asyncio.sleep(0)
            go.set()
            while queue.waiting > 1:
                await asyncio.sleep(0)
            first.cancel()
            await second
        await queue.run(lambda: done.append(3))
        assert (queue.waiting, queue.working) == (0, 0)

    asyncio.run(run())
    assert done[-2:] == [2, 3]


def test_one_that_takes_long_gives_its_place_to_the_next_as_far_as_there_are_threads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("memory_service.api.admission._LONG_SECONDS", 0.02)

    async def run() -> None:
        queue = WorkQueue(_rule(threads=2, most_seconds=0.5))
        async with _busy(queue, 2):
            assert queue.working == 2
            with pytest.raises(Overloaded):
                await queue.run(lambda: None)
        assert await queue.run(lambda: "好") == "好"
        assert (queue.waiting, queue.working) == (0, 0)

    asyncio.run(run())


def test_nothing_begins_once_the_server_ends() -> None:
    async def run() -> None:
        queue = WorkQueue(_rule(), cancelled=lambda: True)
        for _ in range(2):
            with pytest.raises(CallCancelled):
                await queue.run(lambda: None)

    asyncio.run(run())


def _fill(server: RunningServer, kind: Any) -> None:
    """Leave a kind of work no room."""
    queue = server.app.state.shared.pools.queues.of(kind)
    queue._rule = replace(RULES[kind], threads=0, most_seconds=0.0)


_REQUESTS = {
    "search": ("POST", f"{W}/search", {"query": "deploys"}),
    "context": ("POST", f"{W}/context", {"query": "deploys"}),
    "append": ("POST", f"{W}/sessions/s-1/messages", {"messages": [{"role": "user", "content": "好"}]}),
    "prompt": ("POST", f"{W}/sessions/s-1/context", {}),
    "hook": ("POST", "/v1/hooks/claude-code", {"hook_event_name": "UserPromptSubmit", "session_id": "h", "cwd": "/x"}),
    "read": ("GET", f"{W}/memories", None),
    "status": ("GET", f"{W}/status", None),
    "health": ("GET", "/health/ready", None),
}


@pytest.mark.parametrize("kind", _REQUESTS)
def test_a_refusal_says_when_to_come_back_and_the_other_kinds_go_on(kind: str, running_server: RunningServer) -> None:
    http = running_server.http
    http.post(f"{W}/memories", json={"text": "部署在周二。Deploys go out on Tuesdays."})
    http.post(f"{W}/sessions", json={"session_id": "s-1"})
    _fill(running_server, kind)
    for other, (method, path, body) in _REQUESTS.items():
        answer = http.request(method, path, json=body)
        if other != kind:
            assert answer.status_code in (200, 201), (other, answer.text)
            continue
        assert answer.status_code == 503
        assert answer.json()["error"]["code"] == "overloaded"
        assert "Nothing was done" in answer.json()["error"]["message"]
        assert 1 <= int(answer.headers["Retry-After"]) <= 10
    assert http.get("/health/live").status_code == http.get("/version").status_code == 200
    if kind != "health":
        shown = http.get("/metrics").text
        assert f'memory_service_queue_refused_total{{kind="{kind}"}} 1.0' in shown
        assert f'memory_service_queue_waiting{{kind="{kind}"}} 0.0' in shown


@pytest.mark.parametrize(
    ("protocol", "path"), [("openai", "chat/completions"), ("openai", "responses"), ("anthropic", "messages")]
)
def test_the_gateway_refuses_in_the_shape_of_the_provider(protocol: str, path: str, tmp_path: Path) -> None:
    body = {"model": "gpt-4o", "messages": [{"role": "user", "content": "好"}], "input": "好", "max_tokens": 9}
    with gateway(tmp_path, protocol=protocol) as asked:
        _fill(asked.server, "gateway")
        answer = asked.server.http.post(f"/v1/{path}", json=body)
        assert not (tmp_path / "default").exists()
    assert (answer.status_code, answer.headers.get("Retry-After")) == (503, "1"), answer.text
    assert "Nothing was done" in answer.json()["error"]["message"]
    assert answer.json().get("type") == ("error" if protocol == "anthropic" else None)
    assert not asked.upstream.requests


def test_a_tool_of_mcp_says_that_it_was_refused(running_server: RunningServer) -> None:
    http = running_server.http
    http.post(f"{W}/memories", json={"text": "部署在周二。Deploys go out on Tuesdays."})
    _fill(running_server, "search")
    asked = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "search", "arguments": {"query": "x"}},
    }
    headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-11-25"}
    answer = http.post("/mcp", json=asked, headers=headers).json()["result"]
    assert answer["isError"]
    assert "Too many searches wait already" in answer["content"][0]["text"]
    asked["params"] = {"name": "status", "arguments": {}}
    assert not http.post("/mcp", json=asked, headers=headers).json()["result"].get("isError")


def test_a_refused_message_is_not_in_the_log(running_server: RunningServer) -> None:
    http = running_server.http
    http.post(f"{W}/memories", json={"text": "部署在周二。"})
    _fill(running_server, "append")
    body = {"messages": [{"role": "user", "content": "好"}]}
    headers = {"Idempotency-Key": "k-1"}
    refused = http.post(f"{W}/sessions/s-9/messages", json=body, headers=headers)
    assert refused.status_code == 503
    assert http.get(f"{W}/sessions/s-9/messages?view=log").status_code == 404
    running_server.app.state.shared.pools.queues.of("append")._rule = RULES["append"]
    again = http.post(f"{W}/sessions/s-9/messages", json=body, headers=headers)
    assert again.is_success
    assert len(http.get(f"{W}/sessions/s-9/messages?view=log").json()["messages"]) == 1
