"""Access: API keys with their workspaces, and requests that a browser may not make for a web site.

Invariants: with keys configured every request but those for health, version and documentation needs one, before its
body is read; comparing keys takes the same time for every wrong one; without keys only pages that this server itself
has served may call it, so no web site reaches it through its visitor's browser; a body is sent as JSON, which pages of
other sites cannot do without asking.
"""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Callable
from typing import Annotated
from urllib.parse import SplitResult, urlsplit

import anyio.to_thread
from fastapi import Depends, Path, Request, Security
from fastapi.security import APIKeyHeader, HTTPBearer
from starlette.datastructures import Headers
from starlette.routing import BaseRoute, Match
from starlette.types import ASGIApp, Receive, Scope, Send

from memory_service.api.errors import error_answer
from memory_service.errors import Forbidden, PreconditionFailed, StorageFailed, Unauthorized, UnsupportedMedia
from memory_service.home import INSTANCE_HEADER, check_workspace, shown_name
from memory_service.hosts.places import FileAccess
from memory_service.schemas.memories import DEFAULT_WORKSPACE
from memory_service.service import ALL_RIGHTS, AccessControl, Grant, NeededRole, needed_role

# Headers by which proxies tell whom they ask for; their own address is what the server sees.
_OF_PROXIES = frozenset({
    "forwarded", "via", "x-real-ip", "x-client-ip", "x-cluster-client-ip", "true-client-ip", "cf-connecting-ip",
})  # fmt: skip
_WITH_BODY = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_KEY_HEADERS = frozenset({b"authorization", b"x-api-key", b"api-key"})
_bearer = HTTPBearer(auto_error=False, description="A key that was made, or one of the setting api_keys.")
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


class RequireKey:
    """Middleware that lets requests through whose key may do what they ask for, and notes what else it may do.

    Args:
        app: What is behind it.
        access: The keys.
    """

    def __init__(self, app: ASGIApp, access: AccessControl) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        grant: Grant | None = ALL_RIGHTS
        try:
            is_required = await _is_required(self._access)
            if is_required:
                grant = await _grant(self._access, _given_key(Headers(scope=scope)))
        except StorageFailed as error:
            # Who may do what is kept where nothing can be read now; health is told all the same.
            if _needed_role(scope) != "none":
                await error_answer(error, scope=scope)(scope, receive, send)
                return
            is_required, grant = True, None
        state = scope.setdefault("state", {})
        state["is_keyed"] = is_required
        if is_required:
            # A key of this server is read here alone: no upstream gets it.
            scope["headers"] = [header for header in scope["headers"] if header[0] not in _KEY_HEADERS]
        role = _needed_role(scope) if is_required else "any"
        if grant is None and role != "none":
            message = "The request has no known key. Send one as `Authorization: Bearer KEY` or `X-API-Key: KEY`."
            await error_answer(Unauthorized(message), scope=scope)(scope, receive, send)
            return
        if grant is not None:
            state["grant"] = grant
            try:
                grant.check(role)
            except Forbidden as error:
                await error_answer(error, scope=scope)(scope, receive, send)
                return
        await self._app(scope, receive, send)


async def _is_required(access: AccessControl) -> bool:
    return access.is_required() if access.knows() else await anyio.to_thread.run_sync(access.is_required)


async def _grant(access: AccessControl, key: str) -> Grant | None:
    return access.grant(key) if access.knows(key) else await anyio.to_thread.run_sync(access.grant, key)


def _needed_role(scope: Scope) -> NeededRole:
    """The role that a request needs, by its route; without a route any key is told so."""
    partly: BaseRoute | None = None
    for route in scope["app"].routes:
        match, _ = route.matches(scope)
        if match is Match.FULL:
            return role_of(route, scope["method"])
        partly = partly or (route if match is Match.PARTIAL else None)
    return role_of(partly, scope["method"]) if partly is not None else "any"


def role_of(route: BaseRoute, method: str) -> NeededRole:
    """The role that a request of a route needs."""
    return needed_role(getattr(route, "endpoint", route), method)


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
    """Middleware that refuses requests of a browser for another site, by the Host and Origin headers.

    Args:
        app: What is behind it.
        access: The keys: with them, a site would need one.
    """

    def __init__(self, app: ASGIApp, access: AccessControl) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        fault = ""
        if scope["type"] == "http" and not await self._is_keyed():
            fault = _foreign(Headers(scope=scope), scope["scheme"])
        if fault:
            await error_answer(Forbidden(fault), scope=scope)(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _is_keyed(self) -> bool:
        try:
            return await _is_required(self._access)
        except StorageFailed:
            return False


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
) -> Grant:
    """The grant of the request's key."""
    grant: Grant = request.state.grant
    return grant


async def remains_allowed(request: Request) -> Callable[[], bool]:
    """A check, for answers without an end, that the key of a request still is one with the same rights."""
    access: AccessControl = request.app.state.shared.service.access
    grant, is_keyed = request.state.grant, request.state.is_keyed

    def is_allowed() -> bool:
        try:
            return access.grant_of_id(grant.key_id) == grant if is_keyed else not access.is_required()
        except StorageFailed:
            # What was known last holds.
            return True

    return is_allowed


async def in_workspace(workspace: WorkspaceName, grant: Annotated[Grant, Depends(grant_of)]) -> None:
    """Refuse a key that is for another workspace."""
    if not grant.allows(workspace):
        raise Forbidden("The key is not for this workspace. Use a key of it, or one for '*'.")


async def at_home(request: Request, grant: Annotated[Grant, Depends(grant_of)]) -> None:
    """Refuse whoever may not know where the home lies, and what else there is on this machine."""
    if not (grant.may("admin") and shows_home(request)):
        raise Forbidden("This is for an admin of all workspaces, or on this machine. Use a key of the role admin.")


async def in_every_workspace(grant: Annotated[Grant, Depends(grant_of)]) -> None:
    """Refuse a key that is for some workspaces only."""
    if not grant.is_for_all:
        raise Forbidden("The key is for one workspace only. Use one for '*'.")


def workspace_of(headers: Headers, grant: Grant) -> str:
    """The workspace of a request whose path names none: the one of its header, else of its key, else `default`.

    Raises:
        InvalidName: The name is none of a workspace.
        Forbidden: The key is for another one.
    """
    own = DEFAULT_WORKSPACE if grant.allows(DEFAULT_WORKSPACE) else grant.workspaces[0]
    header = headers.get("x-memory-workspace") or own
    if not grant.allows(header):
        raise Forbidden("The key is not for the workspace of X-Memory-Workspace. Use a key of it, or one for '*'.")
    check_workspace(header)
    return header


def shows_home(request: Request) -> bool:
    """True if who asks may know where the home lies: with a key for all workspaces, or on this machine without keys."""
    grant: Grant | None = getattr(request.state, "grant", None)
    if grant is None or not grant.is_for_all:
        return False
    return bool(request.state.is_keyed) or file_access(request, grant) in ("all", "hosts")


def file_access(request: Request, grant: Grant) -> FileAccess:
    """Whose files a request may name: all for the owner's own commands, those of hosts for others on this machine.

    Whoever has a key of some workspaces may read those, and no file.
    """
    if not grant.is_for_all or not grant.may("write"):
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
