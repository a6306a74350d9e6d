"""The official client of the protocol, as a host uses it: over both transports, in both eras."""

from __future__ import annotations

import asyncio
import http.server
import itertools
import sys
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import httpx
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp_types import CallToolResult
from mcp_types.version import LATEST_HANDSHAKE_VERSION, LATEST_MODERN_VERSION

from tests.engines import child_environment

T = TypeVar("T")
Act = Callable[[Client], Awaitable[T]]

# How a host connects, and the revision that it then speaks.
ERAS = {"auto": LATEST_MODERN_VERSION, "legacy": LATEST_HANDSHAKE_VERSION, LATEST_MODERN_VERSION: LATEST_MODERN_VERSION}
# A process starts three times as fast without a model.
BY_WORDS = {"MEMORY_SERVICE_EMBEDDING_MODEL": "none", "MEMORY_SERVICE_TIMEZONE": "UTC"}
ENGLISH = "Deploys go out on Tuesdays after the 10:00 stand-up."
CHINESE = "数据库备份每周五晚上十点运行，由李雷负责。"


def by_http(url: str, act: Act[T], *, era: str = "auto", headers: Mapping[str, str] | None = None, path: str = "") -> T:
    """What a host does over HTTP."""

    async def run() -> T:
        async with create_mcp_http_client(headers=dict(headers or {})) as http:
            async with Client(streamable_http_client(f"{url}/mcp{path}", http_client=http), mode=era) as client:
                return await act(client)

    return _run(run)


def by_stdio(
    home: Path, act: Act[T], *arguments: str, era: str = "auto", environment: Mapping[str, str] | None = None
) -> T:
    """What a host does with a process that it starts; it searches by words alone unless told otherwise."""
    command = ["-m", "memory_service", "mcp", *arguments]
    ours = {**child_environment(), **BY_WORDS, "MEMORY_SERVICE_HOME": str(home)}
    parameters = StdioServerParameters(command=sys.executable, args=command, env={**ours, **(environment or {})})

    async def run() -> T:
        async with Client(parameters, mode=era) as client:
            return await act(client)

    return _run(run)


def _run(act: Callable[[], Coroutine[Any, Any, T]]) -> T:
    try:
        return asyncio.run(act())
    except BaseExceptionGroup as group:
        inner: BaseException = group
        while isinstance(inner, BaseExceptionGroup):
            inner = inner.exceptions[0]
        raise inner from None


def answer_of(result: CallToolResult) -> Any:
    """The structured answer of a call that went well."""
    assert not result.is_error, result.content
    return result.structured_content


def failure_of(result: CallToolResult) -> str:
    """The text of a call that failed."""
    assert result.is_error and result.structured_content is None
    (only,) = result.content
    assert only.type == "text"
    assert "Traceback" not in only.text and "Error" not in only.text
    return only.text


@contextmanager
def round_robin(*backends: str) -> Iterator[tuple[str, list[int]]]:
    """A proxy that sends each request to the next of some servers; gives its address and how many each has had."""
    turns, counts = itertools.cycle(range(len(backends))), [0] * len(backends)

    class Proxy(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            turn = next(turns)
            counts[turn] += 1
            body = self.rfile.read(int(self.headers["content-length"]))
            sent = {name: value for name, value in self.headers.items() if name.lower() not in ("host", "connection")}
            answer = httpx.post(backends[turn] + self.path, content=body, headers=sent, timeout=120, trust_env=False)
            self.send_response(answer.status_code)
            self.send_header("content-type", answer.headers.get("content-type", ""))
            self.send_header("content-length", str(len(answer.content)))
            self.end_headers()
            self.wfile.write(answer.content)

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", counts
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
