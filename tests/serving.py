"""A real server on a loopback port, for tests: real files, real sockets, its own home."""

from __future__ import annotations

import os
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import uvicorn
from fastapi import FastAPI

from memory_service.api.app import create_app
from memory_service.api.server import StreamingServer, TimedProtocol, listening
from memory_service.config import Settings
from memory_service.home import announce_server, new_instance
from memory_service.messages.server_events import EventSplitter, ServerEvent
from memory_service.service import MemoryService

W = "/v1/workspaces/default"
# Reading the authorities for each client would take a good part of the tests' time.
NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningServer:
    """A server that runs, and a client without any key."""

    url: str
    home: Path
    app: FastAPI
    http: httpx.Client

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    @property
    def place(self) -> str:
        """Where its storage is, as messages name it."""
        place: str = self.app.state.shared.service.storage.place
        return place

    def raw(self, request: bytes) -> bytes:
        """Send bytes as they are and read until the server closes."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=60) as connection:
            connection.sendall(request)
            parts = []
            while part := connection.recv(65536):
                parts.append(part)
            return b"".join(parts)

    def raw_get(self, target: str, method: str = "GET") -> tuple[int, bytes]:
        """Ask for a target that no client library may tidy up; gives status and body."""
        head = f"{method} {target} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
        answer = self.raw(head.encode("latin-1"))
        return int(answer.split(b" ", 2)[1]), answer.partition(b"\r\n\r\n")[2]


@contextmanager
def serving(
    service: MemoryService, protocol: type[TimedProtocol] = TimedProtocol, *, instance: str = ""
) -> Iterator[RunningServer]:
    """Run a server for a service until the block ends."""
    app = create_app(service, instance=instance)
    server = StreamingServer(
        uvicorn.Config(app, log_config=None, access_log=False, http=protocol, ws="none", timeout_graceful_shutdown=2),
        end_streams=app.state.shared.end,
    )
    with listening("127.0.0.1", 0) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            with httpx.Client(base_url=url, timeout=120, trust_env=False, verify=NO_TLS) as http:
                yield RunningServer(url=url, home=service.settings.home, app=app, http=http)
        finally:
            server.should_exit = True
            thread.join(60)
    assert not thread.is_alive()


def settings(home: Path, **values: object) -> Settings:
    """Settings for a home in a test."""
    return Settings.model_validate({"home": home, "timezone": "UTC", **values})


@contextmanager
def found_by_home(home: Path, **values: object) -> Iterator[str]:
    """A server in this process that searches by words, and that commands on its home find as any other; gives its URL.

    It is there in a twentieth of the time that a process takes to start.
    """
    service, instance = MemoryService(settings(home, embedding_model="none", **values)), new_instance()
    with serving(service, instance=instance) as server, announce_server(home, server.url, instance):
        yield server.url


@contextmanager
def running_process(home: Path, environment: dict[str, str]) -> Iterator[str]:
    """Run `memory-service serve` as a process of its own until the block ends; gives its URL."""
    with own_process(home, environment) as (url, _):
        yield url


@contextmanager
def own_process(
    home: Path, environment: dict[str, str], *, log: Path | None = None, health: str = "ready", port: int = 0
) -> Iterator[tuple[str, int]]:
    """The same; gives the id of the process too, and writes what it says on its way into a file, if one is given."""
    with listening("127.0.0.1", port) as listener:
        port = listener.getsockname()[1]
    command = [sys.executable, "-m", "memory_service", "serve", "--home", str(home), "--port", str(port)]
    with open(log or os.devnull, "wb") as said:
        process = subprocess.Popen(command, env={**os.environ, **environment}, stderr=said)
    url = f"http://127.0.0.1:{port}"
    try:
        _wait_until_ready(url, process, health)
        yield url, process.pid
    finally:
        process.terminate()
        process.wait(timeout=120)


def _wait_until_ready(url: str, process: subprocess.Popen[bytes], health: str = "ready") -> None:
    with httpx.Client(timeout=10, verify=NO_TLS) as http:
        for _ in range(2400):
            if process.poll() is not None:
                raise RuntimeError(f"the server ended with {process.returncode}")
            try:
                if http.get(f"{url}/health/{health}").is_success:
                    return
            except httpx.TransportError:
                pass
            time.sleep(0.05)
    raise TimeoutError(f"no server answers at {url}")


def events_of(lines: Iterable[str]) -> Iterator[ServerEvent]:
    """The events in the lines of a stream, each as soon as it is complete, read as the client reads them."""
    reader = EventSplitter()
    for line in lines:
        yield from reader.feed(line.encode() + b"\n")
