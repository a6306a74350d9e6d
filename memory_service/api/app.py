"""The app: routes, middleware, startup and shutdown.

Invariants: the app closes the service that it is given; every handler that does work runs in a thread, so that slow
work never delays other requests; a log line names the route, never the path or the query; every answer carries an
X-Request-ID.
"""

from __future__ import annotations

import logging
import re
import secrets
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio.to_thread
from fastapi import Depends, FastAPI
from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from memory_service._version import __version__
from memory_service.api import errors
from memory_service.api.admission import RefuseEarly
from memory_service.api.auth import (
    JsonOnly,
    LocalOnly,
    OneInstance,
    RequireKey,
    check_json,
    file_access,
    grant_of,
    is_loopback,
    shows_home,
    workspace_of,
)
from memory_service.api.body_limit import BodyLimitMiddleware
from memory_service.api.errors import defect_answer
from memory_service.api.idempotency import RepeatedRequests
from memory_service.api.metrics import Metrics
from memory_service.api.pages import PAGES, with_requests, with_roles
from memory_service.api.pools import Pools
from memory_service.api.requests import AppState
from memory_service.api.routes.compactions import compactions_router, flushes_router
from memory_service.api.routes.facts import facts_router
from memory_service.api.routes.hosts import hosts_router
from memory_service.api.routes.keys import keys_router
from memory_service.api.routes.mcp import McpRoute
from memory_service.api.routes.memories import context_router, memories_router, search_router
from memory_service.api.routes.messages import messages_router
from memory_service.api.routes.session_prompts import prompts_router
from memory_service.api.routes.sessions import pins_router, sessions_router
from memory_service.api.routes.workspace import events_router, health_router, operations_router, status_router
from memory_service.api.streams import event_stream
from memory_service.errors import MemoryServiceError, retry_headers
from memory_service.gateway.exchange import GatewayRuntime
from memory_service.gateway.passing import PassedRoute, dialect_of, provider_path
from memory_service.gateway.relay import Relay
from memory_service.gateway.routes import gateway_router
from memory_service.gateway.transit import json_answer
from memory_service.gateway.upstreams import Upstreams
from memory_service.home import SearchedPlace
from memory_service.mcp.endpoint import McpEndpoint
from memory_service.service import needs, reader_failures
from memory_service.web.host import Host, PageWork, Runner
from memory_service.web.mount import PageRoute, is_page

if TYPE_CHECKING:
    from memory_service.service import MemoryService

# In the order of the HTTP docs page.
ROUTERS = (
    memories_router,
    search_router,
    facts_router,
    context_router,
    sessions_router,
    messages_router,
    prompts_router,
    compactions_router,
    flushes_router,
    pins_router,
    events_router,
    hosts_router,
    operations_router,
    keys_router,
    status_router,
    health_router,
)

_access = logging.getLogger("memory_service.access")
_log = logging.getLogger("memory_service.api")
_REQUEST_ID = re.compile(r"[A-Za-z0-9._:/+=@-]{1,128}")


class ObservationMiddleware:
    """Middleware that counts, logs and names requests; the outermost one."""

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
            nonlocal request_id, status, streams
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                # That of an upstream stays: it is the one that its provider can be asked about.
                request_id = headers.setdefault("X-Request-ID", request_id)
                streams = headers.get("content-type", "").startswith("text/event-stream")
            await send(message)

        started_time = time.perf_counter()
        try:
            await self._app(scope, receive, send_named)
        except Exception:
            _log.exception("defect while answering request %s (%s %s)", request_id, scope["method"], _route(scope))
            if status:
                raise
            await defect_answer()(scope, receive, send_named)
        finally:
            self._note(scope, request_id, status, time.perf_counter() - started_time, streams=streams)

    def _note(self, scope: Scope, request_id: str, status: int, seconds: float, *, streams: bool) -> None:
        method, route = scope["method"], _route(scope)
        # How long somebody listened says nothing of how fast the server is.
        self._metrics.count_request(method, route, status, None if streams else seconds)
        _access.info("%s %s %d %.1f ms %s", method, route, status, 1000 * seconds, request_id)


def _route(scope: Scope) -> str:
    """Template of the route; requests without a route are one kind."""
    return getattr(scope.get("route"), "path", None) or "none"


def _request_id(scope: Scope) -> str:
    given_header = Headers(scope=scope).get("x-request-id", "")
    return given_header if _REQUEST_ID.fullmatch(given_header) else secrets.token_hex(8)


_DESCRIPTION = (
    "Hybrid memory for AI agents: Markdown files in, an exact, budgeted block in the prompt out; and sessions that "
    "always fit their model: an append-only log, of which the model sees a view that is pruned, flushed and compacted "
    "in time. A turn of an agent is `POST …/sessions/{session_id}/messages` with what the user said, "
    "`POST …/context` for the messages to send, the call of the model, and `POST …/messages` with its answer and "
    "the `usage` that came with it. "
    'Every failure is answered as {"error": {"code", "message"}}; every part that was missing from an answer '
    "is named in its `degraded`."
)
_TAGS = [
    {"name": "memories", "description": "Entries, and the Markdown files that hold them."},
    {"name": "search", "description": "Passages that answer a question."},
    {"name": "context", "description": "Blocks for prompts within a token budget, and their receipts."},
    {
        "name": "sessions",
        "description": "Conversations: append-only logs, what is set for each, and what happens to it.",
    },
    {"name": "messages", "description": "What was said, as it was said, and as the model sees it."},
    {"name": "prompts", "description": "What to send to the model, and what to do when its provider refuses it."},
    {"name": "compactions", "description": "Summaries that old messages give way to: plan, preview, apply, undo."},
    {"name": "flushes", "description": "Memories that are written down before a compaction."},
    {"name": "pins", "description": "What every view keeps word for word."},
    {"name": "gateway", "description": "Providers' own protocols, with sessions and memories behind them."},
    {"name": "hooks", "description": "What coding agents call by themselves: at a start, a prompt, an end of a turn."},
    {"name": "operations", "description": "Reindexing in the background."},
    {"name": "keys", "description": "Who may do what: keys with a role, for some workspaces or all."},
    {"name": "status", "description": "Which workspaces there are, and how each stands."},
    {"name": "server", "description": "Health, version and numbers of the server itself."},
]


class _App(FastAPI):
    """An app whose document has an example of each request, and the shape of failures."""

    def openapi(self) -> dict[str, Any]:
        """See FastAPI; made once."""
        if self.openapi_schema is None:
            document = with_roles(with_requests(super().openapi()), self.routes)
            schemas = document["components"]["schemas"]
            named_pairs = sorted({**schemas, **errors.error_schemas()}.items())
            schemas.clear()
            schemas.update(named_pairs)
        assert self.openapi_schema is not None
        return self.openapi_schema


def create_app(service: MemoryService, *, watch: bool = False, instance: str = "") -> FastAPI:
    """The app for a service, which it closes at the end.

    Args:
        service: The service.
        watch: Index changes of the files as they happen, without waiting for a search.
        instance: Name of this run of the server, if commands find it by its home.
    """
    app_state = _app_state(service, watch=watch)
    app = _App(
        title="memory-service",
        version=__version__,
        description=_DESCRIPTION,
        openapi_tags=_TAGS,
        license_info={"name": "MIT", "identifier": "MIT"},
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=_lifespan,
    )
    app.state.shared = app_state
    for route in app.routes:
        # That of the document, which FastAPI has made.
        assert isinstance(route, Route)
        needs("none")(route.endpoint)

    def place_of(request: Request) -> SearchedPlace:
        workspace = str(request.path_params.get("workspace", ""))
        home, place = service.settings.home, service.storage.place
        return SearchedPlace(home=home, place=place, workspace=workspace, shows_home=shows_home(request))

    gateway = _gateway(service, app_state, place_of)
    app.state.relay = gateway.relay
    gateway_routes = gateway_router(
        gateway,
        dependencies=[Depends(grant_of)],
        error_responses=errors.error_responses(400, 401, 403, 404, 413, 422, 429, 502, 503),
    )
    own = _own_paths()
    app.state.in_provider_shape = partial(_in_provider_shape, own)

    def elsewhere(scope: Scope) -> bool:
        return is_page(scope) or bool(provider_path(scope, own))

    app.user_middleware = _layers(service, app_state, instance, app.router.routes, elsewhere)
    # `include_router` would build each route anew for every app, a quarter of a second of its first request.
    app.router.routes.extend(route for router in (*ROUTERS, gateway_routes) for route in router.routes)
    app.state.mcp = McpEndpoint(service, app_state.pools.queues.run_as, max_body_bytes=service.settings.max_body_bytes)
    app.router.routes.append(Route("/mcp", McpRoute(app.state.mcp), methods=["POST"], include_in_schema=False))
    app.router.routes.append(
        PageRoute(Host(service=service, run=_queue_runner(app_state.pools), stream=event_stream, shows_home=shows_home))
    )
    app.router.routes.extend(PAGES)
    if gateway.relay.upstreams.by_name:
        app.router.routes.append(PassedRoute(gateway, own))
    errors.install(app, place_of)
    return app


def _app_state(service: MemoryService, *, watch: bool) -> AppState:
    """The state that all requests share; compactions and flushes are counted in it."""
    metrics = Metrics(service.running_operations, reader_failures)
    pools = Pools(service.settings.compaction.max_concurrent, metrics.count_refusal)
    metrics.watch_queues(pools.queues)
    service.hooks.after_compaction(metrics.count_compaction)
    service.hooks.after_flush(metrics.count_flush)
    repeated = RepeatedRequests(service.keyed_answers)
    return AppState(service=service, metrics=metrics, pools=pools, watches=watch, repeated=repeated)


def _own_paths() -> frozenset[str]:
    """The first parts of paths behind `/v1/` that are the service's own, and no provider's."""
    paths = (getattr(route, "path", "") for router in ROUTERS for route in router.routes)
    return frozenset(path.split("/")[2] for path in paths if path.startswith("/v1/"))


def _in_provider_shape(own: frozenset[str], scope: Scope, error: MemoryServiceError) -> Response | None:
    """An error as the provider whose path was asked for would answer it; None for a path of the service's own."""
    path = provider_path(scope, own)
    told_object = dialect_of(path, scope).error(error.status, error.code, str(error)) if path else None
    return json_answer(told_object, error.status, retry_headers(error)) if told_object is not None else None


def _queue_runner(pools: Pools) -> Runner:
    """Runs calls of the page in the queues of the routes that do the same work."""

    async def run(kind: PageWork, act: Callable[[], Any], receive: Receive | None) -> Any:
        return await pools.queues.of(kind).run(act, receive)

    return run


def _gateway(service: MemoryService, shared: AppState, place_of: Callable[[Request], SearchedPlace]) -> GatewayRuntime:
    """Parts that the routes in providers' shapes work with."""
    pools = shared.pools

    def workspace_told(request: Request, folder: Callable[[], str]) -> str:
        workspace = workspace_of(request.headers, request.state.grant)
        if not request.state.grant.is_for_all or request.headers.get("x-memory-workspace") or not folder():
            return workspace
        is_local = file_access(request, request.state.grant) in ("all", "hosts")
        return service.workspace_of_folder(folder(), is_local=is_local) or workspace

    return GatewayRuntime(
        service=service,
        relay=Relay(Upstreams(service.settings)),
        admit=pools.queues.of("gateway").run,
        work=pools.work.run,
        finish=pools.finish,
        cancelled=pools.is_ending,
        workspace_of=workspace_told,
        check_body=check_json,
        place_of=place_of,
        on_prompt=shared.metrics.count_prompt,
        on_missed=shared.metrics.count_degraded,
    )


def _layers(
    service: MemoryService,
    shared: AppState,
    instance: str,
    routes: Sequence[BaseRoute],
    elsewhere: Callable[[Scope], bool],
) -> list[Middleware]:
    """The middleware, outermost first."""
    settings, access = service.settings, service.access
    local = [Middleware(LocalOnly, access=access)] if is_loopback(settings.host) else []
    return [
        Middleware(ObservationMiddleware, metrics=shared.metrics),
        *local,
        Middleware(OneInstance, instance=instance),
        Middleware(RequireKey, access=access),
        Middleware(RefuseEarly, queues=shared.pools.queues, routes=routes),
        Middleware(BodyLimitMiddleware, max_bytes=settings.max_body_bytes),
        Middleware(JsonOnly, elsewhere=elsewhere),
    ]


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    app_state: AppState = app.state.shared
    app_state.warm_up.start(app_state.service.warm_up, app_state.service.load_language_models)
    if app_state.watches:
        app_state.service.watch()
    try:
        async with app.state.mcp.running():
            yield
    finally:
        app_state.end()
        await app.state.relay.close()
        await anyio.to_thread.run_sync(app_state.service.close)
