"""Access: API keys with their workspaces, and requests that a browser may not make for a web site.

Invariants: with keys configured every request but those for health, version and documentation needs one, before its
body is read; comparing keys takes the same time for every wrong one; without keys only pages that this server itself
has served may call it, so no web site reaches it through its visitor's browser; a body is sent as JSON, which pages of
other sites cannot do without asking.
"""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Callable, Mapping
from typing import Annotated
from urllib.parse import SplitResult, urlsplit

from fastapi import Depends, Path, Request, Security
from fastapi.security import APIKeyHeader, HTTPBearer
from starlette.datastructures import Headers
from starlette.routing import Match
from starlette.types import ASGIApp, Receive, Scope, Send

from memory_service.api.errors import error_answer
from memory_service.errors import Forbidden, PreconditionFailed, Unauthorized, UnsupportedMedia
from memory_service.home import INSTANCE_HEADER, check_workspace, shown_name
from memory_service.hosts.places import FileAccess
from memory_service.schemas.memories import DEFAULT_WORKSPACE

EVERY_WORKSPACE = "*"
# Headers by which proxies tell whom they ask for; their own address is what the server sees.
_OF_PROXIES = frozenset({
    "forwarded", "via", "x-real-ip", "x-client-ip", "x-cluster-client-ip", "true-client-ip", "cf-connecting-ip",
})  # fmt: skip
RAPIDOC_PATH = "/docs/rapidoc.js"
_OPEN_PATHS = frozenset({"/", "/health/live", "/health/ready", "/version", "/docs", RAPIDOC_PATH, "/openapi.json"})
_WITH_BODY = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_bearer = HTTPBearer(auto_error=False, description="A key of the setting api_keys.")
_key_header = APIKeyHeader(name="X-API-Key", auto_error=False, description="The same key, in a header of its own.")

# In the document alone: what does not match is answered 400, with what to do.
WorkspaceName = Annotated[
    str,
    Path(
        description="Name of the workspace.",
        examples=["default"],
        json_schema_extra={"pattern": r"^[a-z0-9][a-z0-9._-]{0,63}$"},
    ),
]


class Keys:
    """The configured keys.

    Args:
        keys: Workspace by key; "*" is all of them.
    """

    def __init__(self, keys: Mapping[str, str]) -> None:
        self.replace(keys)

    def replace(self, keys: Mapping[str, str]) -> None:
        """Take these keys from the next request on."""
        self._workspaces = [(key.encode(), workspace) for key, workspace in keys.items()]

    def grant(self, given: str) -> str | None:
        """Workspace of a key; None for an unknown key."""
        text = None
        # No early end: how long this takes must not tell how much of a key was right.
        for key, workspace in self._workspaces:
            if hmac.compare_digest(key, given.encode("utf-8", "replace")):
                text = workspace
        return text


class RequireKey:
    """Middleware that lets requests with a known key through, and notes its workspace.

    Args:
        app: What is behind it.
        keys: The keys; None where a request needs none.
    """

    def __init__(self, app: ASGIApp, keys: Keys | None) -> None:
        self._app = app
        self._keys = keys

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        if scope["type"] != "http" or scope["path"] in _OPEN_PATHS:
            await self._app(scope, receive, send)
            return
        grant = EVERY_WORKSPACE if self._keys is None else self._keys.grant(_given_key(Headers(scope=scope)))
        if grant is None:
            message = "The request has no known key. Send one as `Authorization: Bearer KEY` or `X-API-Key: KEY`."
            await error_answer(Unauthorized(message), scope=scope)(scope, receive, send)
            return
        scope.setdefault("state", {})["grant"] = grant
        await self._app(scope, receive, send)


class OneInstance:
    """Middleware that refuses requests for another run of a server, whose address this one has now.

    Args:
        app: What is behind it.
        instance: Name of this run.
    """

    def __init__(self, app: ASGIApp, instance: str) -> None:
        self._app = app
        self._instance = instance

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        header = Headers(scope=scope).get(INSTANCE_HEADER) if scope["type"] == "http" else None
        if header is not None and not hmac.compare_digest(header.encode("utf-8", "replace"), self._instance.encode()):
            message = f"The server that {INSTANCE_HEADER} names has ended. Read its address from the home again."
            await error_answer(PreconditionFailed(message))(scope, receive, send)
        else:
            # The name stands in a file of the home that only its owner can read.
            scope.setdefault("state", {})["is_owners"] = bool(header)
            await self._app(scope, receive, send)


class LocalOnly:
    """Middleware that refuses requests of a browser for another site, by the Host and Origin headers."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        fault = _foreign(Headers(scope=scope), scope["scheme"]) if scope["type"] == "http" else ""
        if fault:
            await error_answer(Forbidden(fault), scope=scope)(scope, receive, send)
        else:
            await self._app(scope, receive, send)


class JsonOnly:
    """Middleware that refuses bodies of routes which are not sent as JSON.

    Args:
        app: What is behind it.
        elsewhere: Tells of a request whether its route sees to that itself, or takes other bodies.
    """

    def __init__(self, app: ASGIApp, elsewhere: Callable[[Scope], bool]) -> None:
        self._app = app
        self._elsewhere = elsewhere

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        if scope["type"] == "http" and scope["method"] in _WITH_BODY and not self._elsewhere(scope):
            try:
                check_json(Headers(scope=scope))
            except UnsupportedMedia as error:
                # What there is no route for is answered so, whatever it brings.
                if any(route.matches(scope)[0] is Match.FULL for route in scope["app"].routes):
                    await error_answer(error)(scope, receive, send)
                    return
        await self._app(scope, receive, send)


def check_json(headers: Headers) -> None:
    """Make sure that the body of a request is sent as JSON, if there is one.

    Raises:
        UnsupportedMedia: It is sent as something else, or as nothing.
    """
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    has_body = headers.get("content-length", "0") != "0" or "transfer-encoding" in headers
    if kind == "application/json" or (kind.startswith("application/") and kind.endswith("+json")):
        return
    if kind or has_body:
        sent_text = f"sent as {shown_name(kind)}" if kind else "sent without a Content-Type"
        raise UnsupportedMedia(
            f"The body is {sent_text}, and has to be JSON. Send the header Content-Type: application/json "
            "(curl: -H 'Content-Type: application/json', or --json in the place of -d)."
        )


def is_loopback(host: str) -> bool:
    """True if an address is reached from this machine alone."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


async def grant_of(
    request: Request,
    _bearer: Annotated[object, Security(_bearer)],
    _key: Annotated[object, Security(_key_header)],
) -> str:
    """Workspace of the request's key, or "*"."""
    grant: str = request.state.grant
    return grant


async def in_workspace(workspace: WorkspaceName, grant: Annotated[str, Depends(grant_of)]) -> None:
    """Refuse a key that is for another workspace."""
    if grant not in (EVERY_WORKSPACE, workspace):
        raise Forbidden("The key is not for this workspace. Use a key of it, or one for '*'.")


async def in_every_workspace(grant: Annotated[str, Depends(grant_of)]) -> None:
    """Refuse a key that is for one workspace only."""
    if grant != EVERY_WORKSPACE:
        raise Forbidden("The key is for one workspace only. Use one for '*'.")


def workspace_of(headers: Headers, grant: str) -> str:
    """The workspace of a request whose path names none: the one of its header, else of its key, else `default`.

    Raises:
        InvalidName: The name is none of a workspace.
        Forbidden: The key is for another one.
    """
    own = DEFAULT_WORKSPACE if grant == EVERY_WORKSPACE else grant
    header = headers.get("x-memory-workspace") or own
    if grant not in (EVERY_WORKSPACE, header):
        raise Forbidden("The key is not for the workspace of X-Memory-Workspace. Use a key of it, or one for '*'.")
    check_workspace(header)
    return header


def shows_home(request: Request, keys: Keys | None) -> bool:
    """True if who asks may know where the home lies: with a key for all workspaces, or on this machine without keys."""
    grant = getattr(request.state, "grant", "")
    return grant == EVERY_WORKSPACE and (keys is not None or file_access(request, grant) in ("all", "hosts"))


def file_access(request: Request, grant: str) -> FileAccess:
    """Whose files a request may name: all for the owner's own commands, those of hosts for others on this machine.

    Whoever has a key of one workspace may read that, and no file.
    """
    if grant != EVERY_WORKSPACE:
        return "none"
    if any(name in _OF_PROXIES or name.startswith("x-forwarded") for name in request.headers):
        return "proxied"
    if request.client is None or not is_loopback(request.client.host):
        return "none"
    return "all" if request.state.is_owners else "hosts"


def _given_key(headers: Headers) -> str:
    scheme, _, key = headers.get("authorization", "").partition(" ")
    return key.strip() if scheme.lower() == "bearer" else headers.get("x-api-key", "")


def _foreign(headers: Headers, scheme: str) -> str:
    """Why a request is not from this machine's own user; empty if it may be."""
    host, origin = headers.get("host", ""), headers.get("origin")
    if not is_loopback(_split(f"//{host}").hostname or ""):
        return "The Host header names another machine. Use the address that the server prints, or configure api_keys."
    page = _split(origin or "")
    if origin is not None and (page.scheme, page.netloc.lower()) != (scheme, host.lower()):
        return "The request comes from a page of another site. Call the API from a program, or configure api_keys."
    return ""


def _split(url: str) -> SplitResult:
    """Parts of a URL; of an empty one if it is malformed."""
    try:
        return urlsplit(url)
    except ValueError:
        return urlsplit("")
