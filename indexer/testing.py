"""Test doubles: `HashEmbedder`, a deterministic embedder without a model, and `LoopbackServer`, a scripted provider.

Invariants: the server listens on loopback alone, records every request before it answers, and prints nothing.
"""

from __future__ import annotations

import hashlib
import json
import socket
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

import numpy as np

from indexer.embeddings.bundled import MiniLM
from indexer.language.terms import index_terms
from indexer.types import Vectors


class HashEmbedder:
    """Embedder that adds a fixed random direction per term, so texts that share words are near each other.

    Args:
        dimensions: Length of the vectors.
        seed: Another seed is another model: other vectors, other fingerprint.
    """

    def __init__(self, dimensions: int = 64, *, seed: int = 0) -> None:
        self.name = "hash"
        self.dimensions = dimensions
        self.fingerprint = f"hash-{dimensions}-{seed}"
        # Tests get a relevance without another table: texts that share words are near each other here as there.
        self.calibrated_as = MiniLM.fingerprint
        self._seed = seed

    def reads(self, text: str) -> bool:
        """See `Embedder`; it reads everything."""
        return True

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """See `Embedder`."""
        return (
            np.stack([self.embed_query(text) for text in texts])
            if texts
            else np.empty((0, self.dimensions), np.float32)
        )

    def embed_query(self, text: str) -> Vectors:
        """See `Embedder`."""
        directions = [_direction(self._seed, self.dimensions, term) for term in index_terms(text) or [""]]
        total = np.sum(directions, axis=0)
        return np.asarray(total / np.linalg.norm(total), np.float32)


@lru_cache(16_384)
def _direction(seed: int, dimensions: int, term: str) -> Vectors:
    digest = hashlib.blake2b(f"{seed}:{term}".encode(), digest_size=8).digest()
    chance = np.random.default_rng(int.from_bytes(digest, "little"))
    return chance.standard_normal(dimensions).astype(np.float32)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request to a server; names of headers are in lower case, and each connection has its own port."""

    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]
    at_seconds: float
    client_port: int


class Exchange:
    """A request, and the ways to answer it."""

    def __init__(self, request: Request, handler: BaseHTTPRequestHandler, stopping: threading.Event) -> None:
        self.request = request
        self._handler = handler
        self._stopping = stopping

    def send(self, status: int, text: str, headers: Mapping[str, str] | None = None) -> None:
        """Answer, with JSON unless the headers say otherwise."""
        content = text.encode()
        self._handler.send_response(status)
        for name, value in {"content-type": "application/json", **(headers or {})}.items():
            self._handler.send_header(name, value)
        self._handler.send_header("content-length", str(len(content)))
        self._handler.end_headers()
        self._handler.wfile.write(content)

    def stream(self, pieces: Iterable[str], *, pause_seconds: float = 0.0, whole: bool = True) -> bool:
        """Answer with server-sent events, each of them on its way before the next one is made.

        Args:
            pieces: The events.
            pause_seconds: Between two of them.
            whole: Whether the answer ends as it should; else the connection breaks.

        Returns:
            Whether the client took them all; it may have gone.
        """
        self._handler.send_response(200)
        self._handler.send_header("content-type", "text/event-stream")
        self._handler.send_header("transfer-encoding", "chunked")
        self._handler.end_headers()
        try:
            for piece in pieces:
                content = piece.encode()
                self._handler.wfile.write(b"%x\r\n%b\r\n" % (len(content), content))
                if pause_seconds and self._stopping.wait(pause_seconds):
                    break
            if not whole:
                self.hang_up()
                return True
            self._handler.wfile.write(b"0\r\n\r\n")
        except OSError:
            self._handler.close_connection = True
            return False
        return True

    def hang_up(self, after_seconds: float = 0.0) -> None:
        """Break the connection instead of answering, after a while or when the server stops."""
        self._stopping.wait(after_seconds)
        with suppress(OSError):
            self._handler.connection.shutdown(socket.SHUT_RDWR)
        self._handler.close_connection = True


class LoopbackServer(ABC):
    """HTTP server for GET and for POST requests with JSON; it runs while its `with` block does.

    Attributes:
        requests: The requests so far.
        url: Base URL for clients.
    """

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self._stopping = threading.Event()
        self._server = _Server(("127.0.0.1", 0), _handler(self))
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), name="loopback-server")

    @abstractmethod
    def answer(self, exchange: Exchange) -> None:
        """Answer a request; called in a thread of its own."""

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stopping.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _play(self, handler: BaseHTTPRequestHandler) -> None:
        body = json.loads(handler.rfile.read(int(handler.headers.get("content-length", 0))) or b"{}")
        headers = {name.lower(): value for name, value in handler.headers.items()}
        request = Request(
            path=handler.path, headers=headers, body=body, at_seconds=time.monotonic(),
            client_port=handler.client_address[1],
        )  # fmt: skip
        self.requests.append(request)
        self.answer(Exchange(request, handler, self._stopping))


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of clients that went away: tests let them."""


def _handler(server: LoopbackServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Else the head of an answer waits 40 ms for its body.
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            server._play(self)

        def do_GET(self) -> None:
            server._play(self)

        def log_message(self, format: str, *args: Any) -> None:
            """Print nothing."""

    return Handler
