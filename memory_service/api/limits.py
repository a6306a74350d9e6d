"""Limits of a request: size of its body, and time to send it and to read the answer.

Invariants: at most the limit is ever held, whether the size was announced or not; a larger body is answered 413, and
the connection is closed so that nobody waits for the rest. A request that does not arrive in time, and an answer that
is not read in time, end their connection; so no client holds a slot or memory by doing nothing. Time that the server
itself takes does not count.
"""

from __future__ import annotations

import asyncio

import anyio
import h11
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from memory_service.api.errors import error_answer
from memory_service.errors import ConnectionFailed, MemoryServiceError, TooLarge, TooManyRequests, retry_headers

_LINGER_SECONDS = 2.0


class _OverLimit(Exception):
    """The body went over the limit while it was read."""


class BodyLimitMiddleware:
    """Refuses bodies over a size.

    Args:
        max_bytes: The largest size that passes.
    """

    def __init__(self, app: ASGIApp, max_bytes: int) -> None:
        self._app = app
        self._max_bytes = max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
        elif _announced(scope) > self._max_bytes:
            await self._refuse(scope, receive, send, ended="expect" in Headers(scope=scope))
        else:
            await self._counted(scope, receive, send)

    async def _counted(self, scope: Scope, receive: Receive, send: Send) -> None:
        seen = 0
        answering = ended = False

        async def count() -> Message:
            nonlocal seen, ended
            message = await receive()
            ended = not message.get("more_body", False)
            seen += len(message.get("body", b""))
            if seen > self._max_bytes:
                raise _OverLimit
            return message

        async def hold_back(message: Message) -> None:
            nonlocal answering
            # The app may turn the exception above into an answer of its own.
            if answering or seen <= self._max_bytes:
                answering = True
                await send(message)

        try:
            await self._app(scope, count, hold_back)
        except _OverLimit:
            pass
        if seen > self._max_bytes and not answering:
            await self._refuse(scope, receive, send, ended=ended)

    async def _refuse(self, scope: Scope, receive: Receive, send: Send, *, ended: bool) -> None:
        if not ended:
            with anyio.move_on_after(_LINGER_SECONDS):
                await self._discard(receive)
        message = (
            f"The body is over the limit of {self._max_bytes:,} bytes. Send less at once, or raise max_body_bytes."
        )
        await error_answer(TooLarge(message), {"Connection": "close"})(scope, receive, send)

    async def _discard(self, receive: Receive) -> None:
        """Read on for a while: who is still sending when the connection closes may never see the answer."""
        left = self._max_bytes
        while left > 0:
            message = await receive()
            left -= len(message.get("body", b""))
            if not message.get("more_body"):
                return


def _announced(scope: Scope) -> int:
    length = Headers(scope=scope).get("content-length", "")
    return int(length) if length.isascii() and length.isdigit() and len(length) < 20 else 0


# Longer than a slow network needs for its first and its next bytes.
_HEAD_SECONDS = 20.0
_PAUSE_SECONDS = 20.0
# 16 MB at 64 KB a second.
_BODY_SECONDS = 300.0
_UNREAD_SECONDS = 60.0
_MOST_CONNECTIONS = 1_000


class TimedProtocol(H11Protocol):
    """A connection that is closed if its client keeps the server waiting.

    Attributes:
        head_seconds: From the first moment of a connection, or the first byte of a later request, to the end of its
            head.
        pause_seconds: Between two pieces of a body.
        body_seconds: For a whole body.
        unread_seconds: For a client to read some of what waits for it.
        most_connections: One more is refused.
    """

    head_seconds = _HEAD_SECONDS
    pause_seconds = _PAUSE_SECONDS
    body_seconds = _BODY_SECONDS
    unread_seconds = _UNREAD_SECONDS
    most_connections = _MOST_CONNECTIONS

    _incoming: asyncio.TimerHandle | None = None
    _unread: asyncio.TimerHandle | None = None
    _is_new = True
    _body_ends_at = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """See asyncio."""
        super().connection_made(transport)
        if len(self.connections) > self.most_connections:
            self._refuse(503, TooManyRequests("The server has as many connections as it takes. Try again later."))
        else:
            self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """See asyncio."""
        self._stop(self._incoming)
        self._stop(self._unread)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """See asyncio."""
        if self.transport.is_closing():
            return
        super().data_received(data)
        self._watch()

    def pause_writing(self) -> None:
        """See asyncio."""
        super().pause_writing()
        self._unread = self.loop.call_later(self.unread_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        """See asyncio."""
        self._stop(self._unread)
        super().resume_writing()

    def _watch(self) -> None:
        """Begin, go on with or end the wait for the rest of a request."""
        state, now = self.conn.their_state, self.loop.time()
        if state is h11.SEND_BODY:
            self._is_new = False
            self._body_ends_at = self._body_ends_at or now + self.body_seconds
            self._wait(min(self.pause_seconds, self._body_ends_at - now), anew=True)
            return
        self._body_ends_at = 0.0
        if state is h11.IDLE and (self._is_new or self.conn.trailing_data[0]):
            self._wait(self.head_seconds, anew=False)
        else:
            self._is_new = False
            self._stop(self._incoming)
            self._incoming = None

    def _wait(self, seconds: float, *, anew: bool) -> None:
        if self._incoming is None or anew:
            self._stop(self._incoming)
            self._incoming = self.loop.call_later(max(0.0, seconds), self._late)

    def _late(self) -> None:
        self._incoming = None
        if self.flow.read_paused:
            # It is the server that does not read.
            self._body_ends_at = 0.0
            self._watch()
        elif self._is_answering():
            self.transport.abort()
        else:
            self._refuse(408, ConnectionFailed("The request did not come whole in time. Send it again."))

    def _is_answering(self) -> bool:
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is not None and cycle.response_started and not cycle.response_complete

    def _refuse(self, status: int, error: MemoryServiceError) -> None:
        body = bytes(error_answer(error).body)
        head = (
            f"HTTP/1.1 {status} Refused\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n"
        )
        waits = "".join(f"{name}: {value}\r\n" for name, value in retry_headers(error).items() if status == 503)
        self.transport.write(f"{head}{waits}\r\n".encode() + body)
        self.transport.close()

    @staticmethod
    def _stop(timer: asyncio.TimerHandle | None) -> None:
        if timer is not None:
            timer.cancel()
