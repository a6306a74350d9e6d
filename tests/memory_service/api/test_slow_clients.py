"""Clients that send half a request, or do not read their answer: they cost next to nothing, and not for long."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from indexer.testing import HashEmbedder
from memory_service.api.server import TimedProtocol
from memory_service.service import MemoryService
from tests.memory_service.api.talking import S, ok
from tests.serving import RunningServer, W, serving, settings
from tests.waiting import until

HEAD = b"GET /version HTTP/1.1\r\nHost: 127.0.0.1\r\n"
BODY = f"POST {W}/memories HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 999\r\n\r\n"


class Hasty(TimedProtocol):
    """The same with times that a test can wait for."""

    head_seconds = 0.6
    pause_seconds = 0.6
    body_seconds = 1.5


class Full(TimedProtocol):
    """The same with as many connections as a test can open."""

    most_connections = 12


class Unread(TimedProtocol):
    """The same, in a hurry only with answers: a busy machine may take its time with a long request."""

    unread_seconds = 0.8


def _serving(home: Path, protocol: type[TimedProtocol]) -> AbstractContextManager[RunningServer]:
    return serving(MemoryService(settings(home), embedder=HashEmbedder()), protocol)


@pytest.fixture
def hasty(tmp_path: Path) -> Iterator[RunningServer]:
    with _serving(tmp_path / "home", Hasty) as server:
        yield server


def connect(server: RunningServer) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), timeout=60)


def until_closed(connection: socket.socket) -> tuple[bytes, float]:
    """What comes until the server closes, and after how many seconds it does."""
    started, answer = time.monotonic(), b""
    while piece := connection.recv(65536):
        answer += piece
    return answer, time.monotonic() - started


@pytest.mark.parametrize("sent", [b"", b"G", HEAD, HEAD + b"X-A: " + b"a" * 500, BODY.encode(), BODY.encode() + b"{"])
def test_half_a_request_is_closed(hasty: RunningServer, sent: bytes) -> None:
    with connect(hasty) as connection:
        connection.sendall(sent)
        answer, seconds = until_closed(connection)
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["code"] == "connection_failed"
    assert seconds > 0.4


def test_drops_do_not_keep_a_request_alive(hasty: RunningServer) -> None:
    for begin in (HEAD, BODY.encode()):
        with connect(hasty) as connection:
            connection.sendall(begin)
            with pytest.raises(OSError):
                for _ in range(600):
                    time.sleep(0.1)
                    connection.sendall(b"a")


def test_half_a_head_on_a_used_connection_is_closed(hasty: RunningServer) -> None:
    with connect(hasty) as connection:
        for _ in range(2):
            connection.sendall(HEAD + b"\r\n")
            answer = b""
            while not answer.endswith(b"}"):
                answer += connection.recv(65536)
            assert answer.startswith(b"HTTP/1.1 200 ")
            time.sleep(1.0)
        connection.sendall(HEAD)
        assert until_closed(connection)[0].startswith(b"HTTP/1.1 408 ")


def test_who_takes_long_to_answer_is_the_server(hasty: RunningServer) -> None:
    """A whole request may wait for its answer as long as it takes."""
    ok(hasty.http.post(f"{W}/sessions", json={"session_id": "support-42"}), 201)
    assert ok(hasty.http.get(f"{S}/idle", params={"timeout_seconds": 2})) == {"idle": True, "degraded": []}
    with connect(hasty) as connection:
        connection.sendall(f"GET {S}/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
        time.sleep(1.5)
        assert connection.recv(65536).startswith(b"HTTP/1.1 200 ")
        connection.settimeout(0.5)
        with pytest.raises(TimeoutError):
            connection.recv(65536)


def test_one_connection_too_many_is_told(tmp_path: Path) -> None:
    with _serving(tmp_path / "home", Full) as server:
        # The client of the server has none open yet.
        connections = [connect(server) for _ in range(Full.most_connections)]
        with connect(server) as late:
            assert until_closed(late)[0].startswith(b"HTTP/1.1 503 ")
        for connection in connections:
            connection.close()
        until(lambda: server.http.get("/version").status_code == 200)


def _long_log(server: RunningServer, count: int, chars: int) -> None:
    for n in range(count):
        said = [{"role": "user", "content": f"{n} 周二 " + "word " * (chars // 5)}]
        ok(server.http.post(f"{S}/messages", json={"messages": said}))


def test_an_answer_that_is_not_read_is_closed(tmp_path: Path) -> None:
    with _serving(tmp_path / "home", Unread) as server:
        _long_log(server, 12, 1_000_000)
        with connect(server) as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.sendall(f"GET {S}/messages?view=log HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
            # What the kernel took from the server before it closed would still come, through so small a window in a
            # minute and a half; a closed connection that gets a byte is broken off instead.
            ends = time.monotonic() + 60
            with pytest.raises((ConnectionResetError, BrokenPipeError)):
                while time.monotonic() < ends:
                    time.sleep(0.4)
                    connection.sendall(b"G")


def test_a_log_is_sent_in_pieces(running_server: RunningServer) -> None:
    _long_log(running_server, 3, 200_000)
    with running_server.http.stream("GET", f"{S}/messages", params={"view": "log"}) as answer:
        assert answer.headers["content-type"] == "application/json"
        assert "content-length" not in answer.headers
        found = json.loads(b"".join(answer.iter_bytes()))
    assert [message["content"].split()[0] for message in found["messages"]] == ["0", "1", "2"]
    assert (len(found["seqs"]), found["system"], found["degraded"]) == (3, None, [])
    part = ok(
        running_server.http.get(f"{S}/messages", params={"view": "log", "since_seq": found["seqs"][0], "limit": 1})
    )
    assert part["seqs"] == found["seqs"][1:2]
    assert ok(running_server.http.get(f"{S}/messages", params={"view": "log", "since_seq": 999}))["messages"] == []
