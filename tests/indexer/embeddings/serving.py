"""A provider of embeddings and of reranking on a loopback port, whose answers are functions of what it is asked."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

from indexer.testing import HashEmbedder

DIMENSIONS = 8
_EMBEDDER = HashEmbedder(DIMENSIONS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request; names of headers are in lower case."""

    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]
    at_seconds: float

    @property
    def texts(self) -> list[str]:
        found = self.body.get("input") or self.body.get("texts") or []
        return [found] if isinstance(found, str) else list(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """An answer: JSON, or the text as it is."""

    body: Any
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Cut:
    """The connection breaks before an answer."""


@dataclass(frozen=True, slots=True)
class Hang:
    """No answer for so long."""

    seconds: float = 30.0


Answer = Said | Cut | Hang
Behaviour = Callable[[Asked], Answer]


def failing(message: str, status: int = 400, code: str | None = None, **headers: str) -> Said:
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": code}
    return Said(body={"error": error}, status=status, headers={k.replace("_", "-"): v for k, v in headers.items()})


def vectors(texts: list[str]) -> Said:
    """What a sound provider answers."""
    return numbered([(place, _EMBEDDER.embed_query(text).tolist()) for place, text in enumerate(texts)])


def numbered(rows: list[tuple[int | None, Any]]) -> Said:
    entries = [{"object": "embedding", "index": index, "embedding": row} for index, row in rows]
    usage = {"prompt_tokens": 1, "total_tokens": 1}
    return Said(body={"object": "list", "model": "any", "data": entries, "usage": usage})


def sound(asked: Asked) -> Answer:
    return vectors(asked.texts)


class EmbeddingServer:
    """Runs while its `with` block does.

    Attributes:
        requests: What it was asked so far.
        url: What a client takes as its base URL.
        most_at_once: How many requests it was answering at the same time.
        behaviour: What it answers; may be changed while it runs.
    """

    def __init__(self, behaviour: Behaviour = sound) -> None:
        self.behaviour = behaviour
        self.requests: list[Asked] = []
        self.most_at_once = 0
        self._at_once = 0
        self._counting = threading.Lock()
        self._stopping = threading.Event()
        self._server = _Server(("127.0.0.1", 0), _handler(self))
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), name="embedding-server")

    @property
    def sizes(self) -> list[int]:
        """How many texts each request had."""
        return [len(asked.texts) for asked in self.requests]

    def __enter__(self) -> EmbeddingServer:
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
        asked = Asked(path=handler.path, headers=headers, body=body, at_seconds=time.monotonic())
        with self._counting:
            self.requests.append(asked)
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            self._answer(handler, self.behaviour(asked))
        finally:
            with self._counting:
                self._at_once -= 1

    def _answer(self, handler: BaseHTTPRequestHandler, answer: Answer) -> None:
        if not isinstance(answer, Said):
            if isinstance(answer, Hang):
                self._stopping.wait(answer.seconds)
            handler.connection.shutdown(socket.SHUT_RDWR)
            handler.close_connection = True
            return
        # NaN and Infinity are what json writes of them, and what some servers send.
        content = (answer.body if isinstance(answer.body, str) else json.dumps(answer.body)).encode()
        handler.send_response(answer.status)
        for name, value in {"content-type": "application/json", **answer.headers}.items():
            handler.send_header(name, value)
        handler.send_header("content-length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of clients that went away: tests let them."""


def _handler(server: EmbeddingServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            server._play(self)

        def log_message(self, format: str, *args: Any) -> None:
            """Print nothing."""

    return Handler
