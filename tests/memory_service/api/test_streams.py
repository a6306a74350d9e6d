"""Streams of events over real sockets: what arrives, what they cost, how they end."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import httpx
import pytest
import uvicorn
from fastapi import FastAPI, Header
from fastapi.responses import StreamingResponse

from indexer.testing import HashEmbedder
from memory_service.api.body_limit import BodyLimitMiddleware
from memory_service.api.server import StreamingServer, listening
from memory_service.api.streams import event_stream, last_event_id
from memory_service.messages.server_events import ServerEvent
from memory_service.runtime.events import KEPT_EVENTS, EventHub
from memory_service.schemas import NewKey
from memory_service.service import MemoryService
from tests.memory_service.storage.in_memory_records import event_hub
from tests.serving import events_of, serving, settings
from tests.waiting import until

W, S = "default", "support-42"


def make_app(hub: EventHub) -> FastAPI:
    app = FastAPI()
    app.add_middleware(BodyLimitMiddleware, max_bytes=1000)

    @app.get("/events/{session_id}")
    def events(
        session_id: str, heartbeat: float = 60, last: Annotated[str | None, Header(alias="Last-Event-ID")] = None
    ) -> StreamingResponse:
        subscription = hub.subscribe(W, session_id, last_event_id(last))
        return event_stream(subscription, heartbeat_seconds=heartbeat)

    @app.get("/normal")
    def normal() -> str:
        return "好"

    return app


@dataclass(frozen=True)
class Running:
    """A server with streams, and its hub."""

    hub: EventHub
    http: httpx.Client
    port: int

    def listeners(self) -> int:
        history = self.hub._histories.get((W, S))
        return len(history.followers) if history else 0


@contextmanager
def running(hub: EventHub, app: FastAPI | None = None) -> Iterator[Running]:
    config = uvicorn.Config(
        app or make_app(hub), log_config=None, access_log=False, ws="none", timeout_graceful_shutdown=3600
    )
    server = StreamingServer(config, end_streams=hub.close)
    with listening("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            limits = httpx.Limits(max_connections=200)
            with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=120, trust_env=False, limits=limits) as http:
                yield Running(hub, http, port)
        finally:
            server.should_exit = True
            thread.join(60)
            assert not thread.is_alive(), "open streams held up the end"


@pytest.fixture
def server() -> Iterator[Running]:
    with running(event_hub()) as made:
        yield made


@contextmanager
def listening_to(server: Running, heartbeat: float = 60, after_id: int | None = None) -> Iterator[Iterator[str]]:
    """An open stream, as its lines; who has its head hears what is told from then on."""
    headers = {} if after_id is None else {"Last-Event-ID": str(after_id)}
    with server.http.stream("GET", f"/events/{S}?heartbeat={heartbeat}", headers=headers) as response:
        assert response.status_code == 200
        assert response.headers["content-type"].startswith("text/event-stream")
        assert response.headers["cache-control"] == "no-store"
        yield response.iter_lines()


def some(lines: Iterator[str], count: int) -> list[ServerEvent]:
    events = events_of(lines)
    return [next(events) for _ in range(count)]


def test_events_arrive_as_they_happen(server: Running) -> None:
    with listening_to(server) as lines:
        assert next(lines) == "retry: 2000"
        told = server.hub.publish(W, "compaction_start", S, tokens_before=9000, reason="已达阈值")
        (event,) = some(lines, 1)
        assert (event.id, event.name) == (str(told.id), "compaction_start")
        assert event.json()["fields"] == {"tokens_before": 9000, "reason": "已达阈值"}
        assert event.json()["at"] == told.at.isoformat()
        server.hub.publish(W, "flush", "another")
        server.hub.publish(W, "compaction_end", S, will_retry=False)
        assert [event.name for event in some(lines, 1)] == ["compaction_end"]


def test_a_client_that_comes_back_gets_what_it_missed(server: Running) -> None:
    with listening_to(server) as lines:
        first = server.hub.publish(W, "prune", S)
        assert some(lines, 1)[0].id == str(first.id)
    missed = [server.hub.publish(W, "prune", S) for _ in range(3)]
    with listening_to(server, after_id=first.id) as lines:
        assert [event.id for event in some(lines, 3)] == [str(event.id) for event in missed]


def test_a_quiet_stream_shows_that_it_lives(server: Running) -> None:
    with listening_to(server, heartbeat=0.2) as lines:
        assert [next(lines) for _ in range(4)] == ["retry: 2000", "", ": still here", ""]


def test_a_client_that_goes_away_is_forgotten(server: Running) -> None:
    for _ in range(3):
        with listening_to(server) as lines:
            next(lines)
            assert server.listeners() == 1
        until(lambda: server.listeners() == 0)


def test_a_client_that_breaks_off_before_the_answer_is_forgotten(server: Running) -> None:
    for _ in range(20):
        with socket.create_connection(("127.0.0.1", server.port)) as connection:
            connection.sendall(f"GET /events/{S} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
    assert server.http.get("/normal").json() == "好"
    until(lambda: server.listeners() == 0)


def test_a_client_that_does_not_read_slows_nobody(server: Running) -> None:
    with socket.create_connection(("127.0.0.1", server.port)) as stalled:
        stalled.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
        stalled.sendall(f"GET /events/{S} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
        until(lambda: server.listeners() == 1)
        with listening_to(server) as lines:
            sent = 0
            while sent < 2000:
                server.hub.publish(W, "prune", S, reason="长" * 190, number=sent)
                sent += 1
            heard = 0
            for event in events_of(lines):
                fields = event.json()["fields"]
                assert isinstance(fields, dict)
                heard += fields["count"] if event.name == "dropped" else 1
                if heard == sent:
                    break


def test_a_burst_larger_than_the_history_is_counted(server: Running) -> None:
    burst = KEPT_EVENTS + 10
    first = server.hub.publish(W, "undo", S)
    for _ in range(burst):
        server.hub.publish(W, "prune", S)
    with listening_to(server, after_id=first.id) as lines:
        dropped, *rest = some(lines, KEPT_EVENTS + 1)
    assert (dropped.name, dropped.json()["fields"]) == ("dropped", {"count": 10})
    assert {event.name for event in rest} == {"prune"}


def test_fifty_open_streams_leave_room_for_requests(server: Running) -> None:
    with ExitStack() as stack:
        streams = [stack.enter_context(listening_to(server)) for _ in range(50)]
        assert server.http.get("/normal").json() == "好"
        told = server.hub.publish(W, "flush", S, written=2)
        assert all(some(lines, 1)[0].id == str(told.id) for lines in streams)
    until(lambda: server.listeners() == 0)


def test_a_stream_ends_with_the_hub_and_after_what_was_told() -> None:
    with running(event_hub()) as server, listening_to(server) as lines:
        server.hub.publish(W, "compaction_end", S, will_retry=False)
        server.hub.close()
        assert [event.name for event in events_of(lines)] == ["compaction_end"]
        assert server.http.get(f"/events/{S}").text == "retry: 2000\n\n"


@pytest.mark.parametrize(
    ("header", "after"),
    [(None, None), ("", None), (" 17 ", 17), ("0", 0), ("-1", None), ("第一", None), ("٣", None), ("9" * 5000, None)],
)
def test_an_id_that_is_none_of_ours_asks_for_nothing(header: str | None, after: int | None) -> None:
    assert last_event_id(header) == after


PROGRAM = """
import sys, uvicorn
from memory_service.api.server import listening
from memory_service.api.server import StreamingServer
from tests.memory_service.api.test_streams import make_app
from tests.memory_service.storage.in_memory_records import event_hub
hub = event_hub()
config = uvicorn.Config(make_app(hub), log_config=None, ws="none", timeout_graceful_shutdown=3600)
with listening("127.0.0.1", 0) as listener:
    print(listener.getsockname()[1], flush=True)
    StreamingServer(config, end_streams=hub.close).run(sockets=[listener])
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGTERM to catch")
def test_a_process_told_to_end_does_so_with_a_stream_open() -> None:
    with subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            url = f"http://127.0.0.1:{int(process.stdout.readline())}/events/{S}"
            with httpx.stream("GET", url, trust_env=False, timeout=120) as response:
                lines = response.iter_lines()
                assert next(lines) == "retry: 2000"
                process.send_signal(signal.SIGTERM)
                assert list(events_of(lines)) == []
                process.wait(60)
        finally:
            process.kill()


def test_a_stream_ends_with_the_right_to_listen() -> None:
    hub, answers = event_hub(), [True, True, False]
    app = make_app(hub)

    @app.get("/limited")
    def limited() -> StreamingResponse:
        return event_stream(hub.subscribe(W, S), lambda: answers.pop(0), check_seconds=0.05)

    with running(hub, app) as server, server.http.stream("GET", "/limited") as response:
        assert list(response.iter_lines()) == ["retry: 2000", ""]
    assert answers == []


@pytest.mark.parametrize("path", [f"/v1/workspaces/{W}/events", f"/v1/workspaces/{W}/sessions/{S}/events"])
def test_a_key_that_is_withdrawn_listens_no_more(tmp_path: Path, path: str) -> None:
    service = MemoryService(settings(tmp_path / "home"), embedder=HashEmbedder())
    with serving(service) as real:
        service.append(W, S, [{"role": "user", "content": "Hello."}])
        admin = service.access.make(NewKey(name="admin", role="admin"))
        key = service.access.make(NewKey(name="reader", role="read", workspaces=[W]))
        headers = {"Authorization": f"Bearer {key.key}"}
        elsewhere = path.replace(W, "other")
        assert real.http.get(elsewhere, headers=headers).status_code == 403
        with real.http.stream("GET", path, headers=headers, timeout=120) as response:
            lines = response.iter_lines()
            assert next(lines) == "retry: 2000"
            withdrawn = real.http.delete(f"/v1/keys/{key.key_id}", headers={"Authorization": f"Bearer {admin.key}"})
            assert withdrawn.status_code == 200
            # It ends by itself, whatever happened until then.
            for _ in lines:
                pass
        assert real.http.get(path, headers=headers).status_code == 401
