"""Answers of upstreams on their way to the caller, as bytes.

Invariants: a caller gets the status and the bytes that it would get from the upstream itself; an answer that the
upstream breaks off in the middle is broken off here too, at the same byte; nothing is collected beyond a limit; what
the model said is in the session before the caller has the end of it.
"""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import anyio
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from memory_service.errors import UpstreamFailed
from memory_service.gateway.base import JsonObject
from memory_service.gateway.observer import MOST_READ_BYTES, ReadAlong
from memory_service.gateway.relay import ConnectionCut
from memory_service.gateway.translation import UpstreamAnswer

if TYPE_CHECKING:
    from memory_service.gateway.exchange import Exchange

_log = logging.getLogger("memory_service.gateway")
_CLIENT_GONE = "the client went away"
_UPSTREAM_GONE = "the upstream broke off"


@dataclass(frozen=True, slots=True, kw_only=True)
class Beginning:
    """The beginning of an answer.

    Attributes:
        content: Its bytes.
        is_whole: Whether that is all of it.
        connection_cut: The failure that the answer was broken off with; None if it was not.
    """

    content: bytes
    is_whole: bool
    connection_cut: ConnectionCut | None = None

    def and_rest(self, answer: UpstreamAnswer) -> UpstreamAnswer:
        """The answer again, from its first byte."""
        return replace(answer, pieces=self._pieces(answer.pieces))

    async def _pieces(self, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        if self.content:
            yield self.content
        if self.connection_cut is not None:
            raise self.connection_cut
        if not self.is_whole:
            async for piece in rest:
                yield piece


async def beginning_of(
    answer: UpstreamAnswer, enough: Callable[[bytes], bool] = lambda piece: False, most_bytes: int = MOST_READ_BYTES
) -> Beginning:
    """The beginning of an answer, up to a limit.

    Args:
        answer: The answer.
        enough: Hears each piece; whether that was enough.
        most_bytes: Where to stop, give or take a piece.

    Raises:
        UpstreamFailed: Nothing came for too long.
    """
    content = bytearray()
    try:
        async for piece in answer.pieces:
            content += piece
            if enough(piece) or len(content) > most_bytes:
                return Beginning(content=bytes(content), is_whole=False)
    except ConnectionCut as error:
        return Beginning(content=bytes(content), is_whole=False, connection_cut=error)
    return Beginning(content=bytes(content), is_whole=True)


def json_answer(content: JsonObject, status: int, headers: Mapping[str, str]) -> Response:
    """An answer of our own. Escaped: half a surrogate pair can be named in JSON, but not encoded."""
    return Response(json.dumps(content), status, dict(headers), "application/json")


class PassedAnswer(Response):
    """An answer, sent on piece by piece.

    Args:
        exchange: The call.
        answer: The answer.
        reading: Reads it along; None if that is of no use.
    """

    def __init__(self, exchange: Exchange, answer: UpstreamAnswer, reading: ReadAlong | None) -> None:
        entity = dict(answer.entity)
        if reading is not None and reading.rewrites:
            entity.pop("content-length", None)
        super().__init__(None, answer.status, {**entity, **answer.headers, **exchange.headers()})
        if "content-length" not in entity:
            del self.headers["content-length"]
        if answer.is_stream:
            self.headers.setdefault("Cache-Control", "no-store")
            self.headers["X-Accel-Buffering"] = "no"
        self._exchange = exchange
        self._answer = answer
        self._reading = reading
        self._is_kept = reading is None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI; without a last message, the server breaks the connection off."""
        cut_text = _CLIENT_GONE
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(until_gone, receive, group.cancel_scope)
                await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
                is_whole = await self._relay(send)
                cut_text = _UPSTREAM_GONE
                if is_whole:
                    await send({"type": "http.response.body", "body": b"", "more_body": False})
                group.cancel_scope.cancel()
        finally:
            with anyio.CancelScope(shield=True):
                await self._answer.close()
                await self._keep(cut_text)

    async def _relay(self, send: Send) -> bool:
        """Send the pieces on; gives whether the answer came to an end."""
        try:
            async for piece in self._answer.pieces:
                await _send_piece(send, await self._read(piece))
        except (UpstreamFailed, ConnectionCut) as error:
            await self._keep(_UPSTREAM_GONE)
            _log.warning("an answer of the upstream %s is not whole: %s", self._exchange.target.upstream, error)
            if isinstance(error, ConnectionCut) or not self._answer.is_stream:
                return False
            # No upstream said so: it was waited for in vain, or is behind a translation.
            await _send_piece(send, self._exchange.dialect.error_event(str(error)).encode())
            return True
        if self._reading is not None:
            await self._keep("" if self._reading.has_ended else _UPSTREAM_GONE)
            await _send_piece(send, self._reading.rest())
        return True

    async def _read(self, piece: bytes) -> bytes:
        """The bytes that go on for a piece, once what they end is kept."""
        if self._reading is None:
            return piece
        passed_raw = self._reading.feed(piece)
        if self._reading.has_ended or self._reading.fault:
            await self._keep("")
        return passed_raw

    async def _keep(self, cut_text: str) -> None:
        """Keep what was said, once: all of it or, of an answer that was broken off, as far as it came."""
        if self._is_kept or self._reading is None:
            return
        self._is_kept = True
        answer = self._reading.answer(whole=not cut_text)
        self._exchange.miss(*(f"answer: {why}" for why in (self._reading.fault, self._reading.omission) if why))
        await self._exchange.keep(answer, cut_text)


async def until_gone(receive: Receive, scope: anyio.CancelScope) -> None:
    """End a scope when the caller has gone away."""
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()


async def _send_piece(send: Send, piece: bytes) -> None:
    if piece:
        await send({"type": "http.response.body", "body": piece, "more_body": True})
