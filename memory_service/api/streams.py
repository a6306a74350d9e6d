"""Streamed answers: the messages of a long log, and the events of a session or a workspace as they happen.

Invariants: a waiting stream holds no thread; it is closed when its client has gone, when its key is withdrawn, when the
hub closes, and when the response is never sent; a client that reads slowly slows nobody but itself.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any

import anyio.to_thread
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from memory_service.schemas.sessions import SessionEvent
from memory_service.service import Subscription

# Shorter than what proxies allow an idle connection: 60 s in nginx, 30 s in some clouds.
HEARTBEAT_SECONDS = 15.0
# A key that was withdrawn ends a stream within this time.
_CHECK_SECONDS = 5.0
# What a client waits before it connects again.
_RETRY_MS = 2000
# An item of the stream, for its documentation (OpenAPI 3.2, "Sequential media types"; older readers pass it over).
EVENT_SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["id", "event", "data"],
    "properties": {
        "id": {"type": "string", "description": "For `Last-Event-ID`."},
        "event": {"type": "string", "description": "Its kind."},
        "data": {
            "type": "string",
            "contentMediaType": "application/json",
            "contentSchema": {
                "type": "object",
                "required": ["id", "at", "kind", "session_id", "fields"],
                "properties": {
                    "id": {"type": "integer"},
                    "at": {"type": "string", "format": "date-time"},
                    "kind": {"type": "string"},
                    "session_id": {"type": "string"},
                    "fields": {"type": "object", "description": "Numbers and names of what happened."},
                },
            },
        },
    },
}
_PIECE_CHARS = 64 * 1024
_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
_MAX_ID_DIGITS = 18


def event_stream(
    subscription: Subscription,
    is_allowed: Callable[[], bool] = lambda: True,
    *,
    heartbeat_seconds: float = HEARTBEAT_SECONDS,
    check_seconds: float = _CHECK_SECONDS,
) -> StreamingResponse:
    """Answer that sends events as they happen, and a comment after a time without any.

    Args:
        subscription: The events; closed at the end of the stream.
        is_allowed: Tells, in a thread, if who listens still may; the stream ends if not.
        heartbeat_seconds: The longest silence.
        check_seconds: How often `is_allowed` is asked.
    """
    return _EventStream(subscription, _frames(subscription, is_allowed, heartbeat_seconds, check_seconds))


async def comes_true(subscription: Subscription, reached: Callable[[], bool], timeout_seconds: float) -> bool:
    """Wait for a condition that only events can bring about, without a thread; False if it does not hold in time.

    Args:
        subscription: The events; closed at the end.
        reached: The condition; must answer at once.
        timeout_seconds: The longest wait.
    """
    loop, news = asyncio.get_running_loop(), asyncio.Event()
    deadline = loop.time() + timeout_seconds
    with subscription:
        subscription.on_news(_waker(loop, news))
        while not reached():
            if subscription.is_closed or not await _set_within(news, deadline - loop.time()):
                return reached()
            news.clear()
        return True


def last_event_id(header: str | None) -> int | None:
    """The id in a header `Last-Event-ID`; None without one, or if it is none of ours."""
    text = (header or "").strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _MAX_ID_DIGITS else None


def _frame(event: SessionEvent) -> str:
    """An event as the lines that stand for it, with the empty one at its end.

    Source: WHATWG HTML, 9.2.6 "Interpreting an event stream".
    """
    content = {
        "id": event.id,
        "at": event.at.isoformat(),
        "kind": event.kind,
        "session_id": event.session_id,
        "fields": dict(event.fields),
    }
    # All in ASCII: no character in it can be taken for the end of a line.
    return f"id: {event.id}\nevent: {event.kind}\ndata: {json.dumps(content, allow_nan=False)}\n\n"


def log_pieces(said: Iterator[tuple[int, str]], degraded: Sequence[str]) -> Iterator[bytes]:
    """The messages of a log as one JSON answer, in pieces: a slow reader takes the memory of one.

    The first message is read before this returns, so that a log that cannot be read is answered as such.
    """
    first = next(said, None)
    return _log_pieces(said if first is None else chain((first,), said), degraded)


def _log_pieces(said: Iterator[tuple[int, str]], degraded: Sequence[str]) -> Iterator[bytes]:
    seqs, piece = list[int](), '{"messages":['
    for seq, text in said:
        piece += f",{text}" if seqs else text
        seqs.append(seq)
        if len(piece) >= _PIECE_CHARS:
            yield piece.encode()
            piece = ""
    rest = {"seqs": seqs, "system": None, "degraded": list(degraded)}
    yield f"{piece}],{json.dumps(rest)[1:]}".encode()


class _EventStream(StreamingResponse):
    """Response that sends a subscription and closes it, even if nothing could be sent."""

    def __init__(self, subscription: Subscription, frames: AsyncIterator[str]) -> None:
        self._subscription = subscription
        super().__init__(frames, media_type="text/event-stream", headers=_HEADERS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._subscription.close()


async def _frames(
    subscription: Subscription, is_allowed: Callable[[], bool], heartbeat_seconds: float, check_seconds: float
) -> AsyncIterator[str]:
    loop, news = asyncio.get_running_loop(), asyncio.Event()
    subscription.on_news(_waker(loop, news))
    yield f"retry: {_RETRY_MS}\n\n"
    heartbeat, check = loop.time() + heartbeat_seconds, loop.time() + check_seconds
    while True:
        if loop.time() >= check:
            if not await anyio.to_thread.run_sync(is_allowed):
                return
            check = loop.time() + check_seconds
        news.clear()
        is_closed = subscription.is_closed
        events = subscription.take()
        if events:
            yield "".join(map(_frame, events))
            heartbeat = loop.time() + heartbeat_seconds
        if is_closed:
            return
        if not await _set_within(news, min(heartbeat, check) - loop.time()) and loop.time() >= heartbeat:
            yield ": still here\n\n"
            heartbeat = loop.time() + heartbeat_seconds


def _waker(loop: asyncio.AbstractEventLoop, news: asyncio.Event) -> Callable[[], None]:
    def wake() -> None:
        # A loop that has ended has no stream that could wake.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(news.set)

    return wake


async def _set_within(news: asyncio.Event, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            return await news.wait()
    except TimeoutError:
        return False
