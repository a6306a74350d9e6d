"""What both clients do when there is no server, another server, or one that breaks off."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from memory_service import (
    AsyncMemoryClient,
    ConnectionFailed,
    InvalidRequest,
    MemoryClient,
    Overloaded,
    ServerFailed,
    StorageFailed,
)
from memory_service.client._wire import httpx_arguments

STORED = b'{"memory_id":"m1","path":"memory/2026-11-20.md","start_line":1,"end_line":1,"duplicate":false,"new_field":1}'
REFUSED = b'{"error":{"code":"overloaded","message":"Too many searches wait already. Nothing was done."}}'
BUSY = b'{"error":{"code":"storage_failed","message":"The disk is full. Free some space."}}'


def http(status: int, body: bytes) -> bytes:
    return b"HTTP/1.1 %d X\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s" % (status, len(body), body)


class Scripted:
    """A server that answers each connection with the next of its bytes; empty ones break off."""

    def __init__(self, answers: Sequence[bytes]) -> None:
        self.requests: list[bytes] = []
        self._answers = answers
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        for answer in self._answers:
            connection, _ = self._listener.accept()
            with connection:
                self.requests.append(connection.recv(65536))
                connection.sendall(answer)

    def close(self) -> None:
        self._thread.join(60)
        self._listener.close()


@contextmanager
def scripted(*answers: bytes) -> Iterator[Scripted]:
    server = Scripted(answers)
    try:
        yield server
    finally:
        server.close()


def key_of(request: bytes) -> bytes:
    [line] = [line for line in request.split(b"\r\n") if line.lower().startswith(b"idempotency-key:")]
    return line


def test_no_server_names_the_url_and_what_to_do() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    with MemoryClient(url) as client, pytest.raises(ConnectionFailed, match="memory-service serve") as caught:
        client.status()
    assert url in str(caught.value)

    async def ask() -> None:
        async with AsyncMemoryClient(url) as coloured:
            with pytest.raises(ConnectionFailed, match="memory-service serve"):
                await coloured.status()

    asyncio.run(ask())


def test_a_memory_is_sent_again_with_the_same_key() -> None:
    with scripted(b"", http(503, BUSY), http(201, STORED)) as server, MemoryClient(server.url) as client:
        assert client.remember("x").memory_id == "m1"
    assert len({key_of(request) for request in server.requests}) == 1


def test_the_async_client_sends_again_too() -> None:
    async def store(url: str) -> str:
        async with AsyncMemoryClient(url) as client:
            return (await client.remember("x")).memory_id

    with scripted(http(503, BUSY), b"", http(201, STORED)) as server:
        assert asyncio.run(store(server.url)) == "m1"


def refused(seconds: str, status: int = 503) -> bytes:
    return http(status, REFUSED).replace(b"\r\n", b"\r\nRetry-After: %s\r\n" % seconds.encode(), 1)


def test_a_refused_call_is_sent_again_once_after_the_wait_that_the_server_asks_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waits = list[float]()
    monkeypatch.setattr("time.sleep", waits.append)
    written = http(200, b'{"path":"MEMORY.md","etag":"e2"}')
    # Nothing was done, so that holds for what would otherwise be done twice as well.
    with scripted(refused("3"), written) as server, MemoryClient(server.url) as client:
        assert client.put("MEMORY.md", "x", etag="e").etag == "e2"
    with scripted(refused("700", 429), http(201, STORED)) as server, MemoryClient(server.url) as client:
        assert client.remember("x").memory_id == "m1"
    assert len({key_of(request) for request in server.requests}) == 1
    assert waits == [3.0, 10.0]
    with scripted(refused("1"), refused("4")) as server, MemoryClient(server.url) as client:
        with pytest.raises(Overloaded, match="Nothing was done") as told:
            client.search("x")
    assert told.value.retry_after_seconds == 4.0
    assert len(server.requests) == 2


def test_the_async_client_waits_and_raises_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    waits, ours, sleep = list[float](), list[asyncio.AbstractEventLoop](), asyncio.sleep

    async def wait(seconds: float) -> None:
        # Servers of other tests may run in this process: they sleep as ever.
        if asyncio.get_running_loop() in ours:
            waits.append(seconds)
        else:
            await sleep(seconds)

    async def search(url: str) -> None:
        ours.append(asyncio.get_running_loop())
        async with AsyncMemoryClient(url) as client:
            await client.search("x")

    monkeypatch.setattr("asyncio.sleep", wait)
    with scripted(refused("2"), refused("5")) as server, pytest.raises(Overloaded) as told:
        asyncio.run(search(server.url))
    assert (waits, told.value.retry_after_seconds) == ([2.0], 5.0)


def test_it_gives_up_after_three_times() -> None:
    with scripted(*[http(503, BUSY)] * 3) as server, MemoryClient(server.url) as client:
        with pytest.raises(StorageFailed, match="Free some space"):
            client.remember("x")
    with scripted(b"", b"", b"") as server, MemoryClient(server.url) as client, pytest.raises(ConnectionFailed):
        client.status()


def test_what_would_be_done_twice_is_sent_once() -> None:
    for act in ("delete", "forget"):
        with scripted(b"") as server, MemoryClient(server.url) as client, pytest.raises(ConnectionFailed):
            getattr(client, act)("memory/x.md")
        assert len(server.requests) == 1
    with scripted(http(503, BUSY)) as server, MemoryClient(server.url) as client, pytest.raises(StorageFailed):
        client.put("MEMORY.md", "x", etag="e")


def test_a_server_that_does_not_answer_is_a_timeout() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        with MemoryClient(url, timeout=0.2) as client, pytest.raises(ConnectionFailed, match="in time"):
            client.status()


@pytest.mark.parametrize(
    "answer",
    [
        http(200, b"<html>"),
        http(200, b"{}"),
        http(404, b"<html>not here</html>"),
        http(500, b""),
        http(302, b""),
        http(204, b""),
    ],
)
def test_another_server_is_recognised(answer: bytes) -> None:
    with scripted(answer) as server, MemoryClient(server.url) as client, pytest.raises(ServerFailed) as caught:
        client.status()
    assert server.url in str(caught.value)


@pytest.mark.parametrize("url", ["", "127.0.0.1:8765", "ftp://x", "http://", "file:///etc/passwd"])
def test_a_malformed_url_is_named(url: str) -> None:
    for kind in (MemoryClient, AsyncMemoryClient):
        with pytest.raises(InvalidRequest, match="base URL"):
            kind(url)


def test_a_server_below_a_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    version = b'{"version":"1","embedding_model":"none"}'
    with scripted(http(200, version)) as server, MemoryClient(f"{server.url}/below/it/") as client:
        client.version()
    assert server.requests[0].startswith(b"GET /below/it/version HTTP/1.1\r\n")


def test_plain_http_trusts_nobody_and_https_the_authorities() -> None:
    plain = httpx_arguments("http://memory.example:8765", None, 1)["verify"]
    assert isinstance(plain, ssl.SSLContext) and plain.verify_mode is ssl.CERT_REQUIRED and not plain.get_ca_certs()
    assert httpx_arguments("https://memory.example", None, 1)["verify"] is True
