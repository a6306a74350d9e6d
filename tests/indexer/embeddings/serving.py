"""A provider of embeddings and of reranking on a loopback port, whose answers are functions of what it is asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from indexer.testing import Exchange, HashEmbedder, LoopbackServer, Request

DIMENSIONS = 8
_EMBEDDER = HashEmbedder(DIMENSIONS)


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
Behaviour = Callable[[Request], Answer]


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


def texts_of(asked: Request) -> list[str]:
    found = asked.body.get("input") or asked.body.get("texts") or []
    return [found] if isinstance(found, str) else list(found)


def sound(asked: Request) -> Answer:
    return vectors(texts_of(asked))


class EmbeddingServer(LoopbackServer):
    """Runs while its `with` block does.

    Attributes:
        most_at_once: How many requests it was answering at the same time.
        behaviour: What it answers; may be changed while it runs.
    """

    def __init__(self, behaviour: Behaviour = sound) -> None:
        super().__init__()
        self.behaviour = behaviour
        self.most_at_once = 0
        self._at_once = 0
        self._counting = threading.Lock()

    @property
    def sizes(self) -> list[int]:
        """How many texts each request had."""
        return [len(texts_of(asked)) for asked in self.requests]

    def answer(self, exchange: Exchange) -> None:
        with self._counting:
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            match self.behaviour(exchange.request):
                case Said(body=body, status=status, headers=headers):
                    # NaN and Infinity are what json writes of them, and what some servers send.
                    exchange.send(status, body if isinstance(body, str) else json.dumps(body), headers)
                case Hang(seconds):
                    exchange.hang_up(seconds)
                case Cut():
                    exchange.hang_up()
        finally:
            with self._counting:
                self._at_once -= 1
