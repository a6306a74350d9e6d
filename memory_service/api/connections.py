"""One connection of a client, and how long it may keep the server waiting.

A request that does not come whole in time, and an answer that is not read in time, end their connection; so no client
holds a place or memory by doing nothing. How long the server itself takes counts for nothing.
"""

from __future__ import annotations

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from memory_service.api.errors import error_answer
from memory_service.errors import ConnectionFailed, MemoryServiceError, TooManyRequests

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
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self.transport.close()

    @staticmethod
    def _stop(timer: asyncio.TimerHandle | None) -> None:
        if timer is not None:
            timer.cancel()
