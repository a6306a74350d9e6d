"""The place of the page on the server: nothing of it is loaded before somebody opens it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from starlette.routing import BaseRoute, Match
from starlette.types import ASGIApp, Receive, Scope, Send

if TYPE_CHECKING:
    from memory_service.service import NeededRole

from memory_service.web.host import Host

# Paths of the page; `/` alone is one too, for browsers.
FOLDERS = ("/w/", "/static/", "/sign-", "/keys")


class PageRoute(BaseRoute):
    """The route of all its paths.

    Args:
        host: What the server gives it.
    """

    # Who has not signed in is asked to; each view says what it needs.
    needed_role: Final[NeededRole] = "none"
    # What counts and logs requests names them by this.
    path = "/w/{page}"

    def __init__(self, host: Host) -> None:
        self._host = host
        self._site: ASGIApp | None = None

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """See Starlette."""
        if scope["type"] == "http" and is_page(scope):
            return Match.FULL, {"route": self}
        return Match.NONE, {}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See Starlette."""
        if self._site is None:
            from memory_service.web.site import make_site

            self._site = make_site(self._host)
        await self._site(scope, receive, send)


def is_page(scope: Scope) -> bool:
    """True if a request is for the page."""
    path: str = scope["path"]
    if path == "/":
        accepts = next((value for name, value in scope["headers"] if name == b"accept"), b"")
        return b"text/html" in accepts
    return path.startswith(FOLDERS)
