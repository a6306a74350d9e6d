"""The limit of a body's size, counted as it comes.

Invariants: at most the limit is ever held, whether the size was announced or not; a larger body is answered 413, and
the connection is closed so that nobody waits for the rest.
"""

from __future__ import annotations

import anyio
import anyio.to_thread
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from memory_service.api.errors import error_answer
from memory_service.errors import TooLarge

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
        elif _content_length(scope) > self._max_bytes:
            await self._refuse(scope, receive, send, ended="expect" in Headers(scope=scope))
        else:
            await self._run_counting(scope, receive, send)

    async def _run_counting(self, scope: Scope, receive: Receive, send: Send) -> None:
        seen_count = 0
        answering = has_ended = False

        async def count() -> Message:
            nonlocal seen_count, has_ended
            message = await receive()
            has_ended = not message.get("more_body", False)
            seen_count += len(message.get("body", b""))
            if seen_count > self._max_bytes:
                raise _OverLimit
            return message

        async def hold_back(message: Message) -> None:
            nonlocal answering
            # The app may turn the exception above into an answer of its own.
            if answering or seen_count <= self._max_bytes:
                answering = True
                await send(message)

        try:
            await self._app(scope, count, hold_back)
        except _OverLimit:
            pass
        if seen_count > self._max_bytes and not answering:
            await self._refuse(scope, receive, send, ended=has_ended)

    async def _refuse(self, scope: Scope, receive: Receive, send: Send, *, ended: bool) -> None:
        if not ended:
            with anyio.move_on_after(_LINGER_SECONDS):
                await self._discard(receive)
        message = (
            f"The body is over the limit of {self._max_bytes:,} bytes. Send less at once, or raise max_body_bytes."
        )
        await error_answer(TooLarge(message), {"Connection": "close"}, scope=scope)(scope, receive, send)

    async def _discard(self, receive: Receive) -> None:
        """Read on for a while: who is still sending when the connection closes may never see the answer."""
        left = self._max_bytes
        while left > 0:
            message = await receive()
            left -= len(message.get("body", b""))
            if not message.get("more_body"):
                return


def _content_length(scope: Scope) -> int:
    length = Headers(scope=scope).get("content-length", "")
    return int(length) if length.isascii() and length.isdigit() and len(length) < 20 else 0
