"""Owns what surrounds every request: its id, its line in the log, its numbers, and the answer to a defect.

Invariants: a log line names the route, never the path or the query; every answer carries an X-Request-ID.
"""

from __future__ import annotations

import logging
import re
import secrets
import time

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from memory_service.api.errors import defect_answer
from memory_service.api.metrics import Metrics

_access = logging.getLogger("memory_service.access")
_log = logging.getLogger("memory_service.api")
_REQUEST_ID = re.compile(r"[A-Za-z0-9._:/+=@-]{1,128}")


class Observed:
    """Counts, logs and names requests; the outermost layer."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = _request_id(scope)
        status, streams = 0, False

        async def send_named(message: Message) -> None:
            nonlocal status, streams
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                headers["X-Request-ID"] = request_id
                streams = headers.get("content-type", "").startswith("text/event-stream")
            await send(message)

        started = time.perf_counter()
        try:
            await self._app(scope, receive, send_named)
        except Exception:
            _log.exception("defect while answering request %s (%s %s)", request_id, scope["method"], _route(scope))
            if status:
                raise
            await defect_answer()(scope, receive, send_named)
        finally:
            self._note(scope, request_id, status, time.perf_counter() - started, streams=streams)

    def _note(self, scope: Scope, request_id: str, status: int, seconds: float, *, streams: bool) -> None:
        method, route = scope["method"], _route(scope)
        # How long somebody listened says nothing of how fast the server is.
        self._metrics.answered(method, route, status, None if streams else seconds)
        _access.info("%s %s %d %.1f ms %s", method, route, status, 1000 * seconds, request_id)


def _route(scope: Scope) -> str:
    """The route's template; what no route answers is one kind."""
    return getattr(scope.get("route"), "path", None) or "none"


def _request_id(scope: Scope) -> str:
    given = Headers(scope=scope).get("x-request-id", "")
    return given if _REQUEST_ID.fullmatch(given) else secrets.token_hex(8)
