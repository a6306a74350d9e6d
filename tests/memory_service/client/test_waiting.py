"""How long and how often the clients ask, and what class of error comes out of a server's answer."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

from memory_service import AsyncMemoryClient, ConnectionFailed, MemoryClient
from memory_service.api.errors import error_answer
from memory_service.client._wire import Call, failure, request_arguments
from memory_service.errors import ContextOverflow, Incompressible, MemoryServiceError
from memory_service.schemas.status import Version
from tests.waiting import until

_URL = "http://127.0.0.1:8765"


class Silent:
    """A server that takes connections and requests, and answers none."""

    def __init__(self) -> None:
        self.connections = list[socket.socket]()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while True:
            try:
                self.connections.append(self._listener.accept()[0])
            except OSError:
                return

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(60)
        for connection in self.connections:
            connection.close()


@contextmanager
def silent() -> Iterator[Silent]:
    server = Silent()
    try:
        yield server
    finally:
        server.close()


def check_a_call_that_times_out_is_sent_once() -> None:
    """Whoever does not answer in time may be at it still: asking again would only make it later."""
    with silent() as server, MemoryClient(server.url, timeout=0.2) as client:
        for ask in (client.status, lambda: client.remember("x"), lambda: client.search("x")):
            with pytest.raises(ConnectionFailed, match="in time"):
                ask()
        until(lambda: len(server.connections) >= 3)
        assert len(server.connections) == 3, "a call that timed out was sent again"


def check_the_async_client_sends_once_too() -> None:
    async def ask(url: str) -> None:
        async with AsyncMemoryClient(url, timeout=0.2) as client:
            with pytest.raises(ConnectionFailed, match="in time"):
                await client.remember("x")

    with silent() as server:
        asyncio.run(ask(server.url))
        until(lambda: len(server.connections) >= 1)
        assert len(server.connections) == 1, "a call that timed out was sent again"


def check_a_long_timeout_stays() -> None:
    """A call that may take long is waited for at least so long; a caller who would wait longer does."""
    call = Call(method="GET", path="/version", answer=Version, least_seconds=5.0)
    given = request_arguments(call, httpx.Timeout(1.0)).get("timeout")
    assert given is not None and given.read == 5.0 and given.connect == 1.0
    for longer in (60.0, 5.0, None):
        assert "timeout" not in request_arguments(call, httpx.Timeout(longer)), "a longer timeout was cut"
    plain = Call(method="GET", path="/version", answer=Version)
    assert "timeout" not in request_arguments(plain, httpx.Timeout(0.1))


def errors() -> list[type[MemoryServiceError]]:
    """All classes of errors."""

    def below(root: type[MemoryServiceError]) -> list[type[MemoryServiceError]]:
        return [kind for child in root.__subclasses__() for kind in (child, *below(child))]

    return [kind for kind in below(MemoryServiceError) if kind.status]


def check_every_error_keeps_its_class() -> None:
    """What the server raises is what the client raises, with the same words."""
    assert len(errors()) >= 16
    for kind in errors():
        sent = error_answer(kind("Something failed. Do this."))
        answer = httpx.Response(sent.status_code, content=bytes(sent.body), request=httpx.Request("GET", _URL))
        made = failure(answer)
        assert (type(made), made.status, str(made)) == (kind, kind.status, "Something failed. Do this."), kind
        # A code of a newer server: the class that the status means, never a child of it.
        unknown = httpx.Response(
            kind.status, json={"error": {"code": "new_code", "message": "m"}}, request=httpx.Request("GET", _URL)
        )
        assert type(failure(unknown)).status == kind.status
        assert type(failure(unknown)) is kind or not issubclass(type(failure(unknown)), kind)
    assert {ContextOverflow, Incompressible} <= set(errors())


CHECKS = (
    check_a_call_that_times_out_is_sent_once,
    check_the_async_client_sends_once_too,
    check_a_long_timeout_stays,
    check_every_error_keeps_its_class,
)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__.removeprefix("check_"))
def test_waiting(check: object) -> None:
    assert callable(check)
    check()
