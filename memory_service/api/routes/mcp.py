"""Route of MCP: whose memory a request is for, before the protocol reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

if TYPE_CHECKING:
    from memory_service.service import NeededRole

from memory_service.api.auth import shows_home, workspace_of
from memory_service.errors import Forbidden


class McpRoute:
    """Checks the origin, the workspace and the session of a request, and hands it on.

    Args:
        endpoint: Speaks the protocol; it finds `workspace`, `session_id`, `shows_home` and `grant` in the state of
            the request.
    """

    # Each tool says what it needs.
    needed_role: Final[NeededRole] = "any"

    def __init__(self, endpoint: ASGIApp) -> None:
        self._endpoint = endpoint

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI.

        Raises:
            Forbidden: The request comes from a page of another site, or its key is for another workspace.
        """
        headers = Headers(scope=scope)
        _check_origin(headers)
        state = scope["state"]
        state["workspace"] = workspace_of(headers, state["grant"])
        state["session_id"] = headers.get("x-memory-session")
        state["shows_home"] = shows_home(Request(scope))
        await self._endpoint(scope, receive, send)


def _check_origin(headers: Headers) -> None:
    """Refuse pages of other sites, with keys too.

    Source: MCP 2026-07-28, "Streamable HTTP", security warning: an Origin that is there must be a known one.
    """
    origin = headers.get("origin")
    try:
        is_known = origin is None or urlsplit(origin).netloc.lower() == headers.get("host", "").lower()
    except ValueError:
        is_known = False
    if not is_known:
        raise Forbidden("The request comes from a page of another site. Call /mcp from a program.")
