"""Owns the making of the app: routes, layers, documentation, beginning and end.

Invariants: the app owns the service that it is given and closes it; every handler that does work runs in a
thread, so that slow work never holds up other requests.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio.to_thread
from fastapi import FastAPI
from fastapi.responses import HTMLResponse
from starlette.middleware import Middleware

from memory_service._version import __version__
from memory_service.api import errors
from memory_service.api.auth import LocalOnly, RequireKey, is_loopback
from memory_service.api.docs import docs_page
from memory_service.api.limits import BodyLimit
from memory_service.api.metrics import Metrics
from memory_service.api.observed import Observed
from memory_service.api.pools import Pools
from memory_service.api.routes import ROUTERS
from memory_service.api.state import AppState
from memory_service.config import Settings
from memory_service.service import MemoryService

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
    {"name": "operations", "description": "Reindexing in the background."},
    {"name": "status", "description": "Which workspaces there are, and how each stands."},
    {"name": "server", "description": "Health, version and numbers of the server itself."},
]


def create_app(service: MemoryService, *, watch: bool = False) -> FastAPI:
    """Make the app that serves a service, and closes it at the end.

    Args:
        service: What it serves.
        watch: Whether what others change in the files is indexed without a search having to ask.
    """
    shared = AppState(
        service=service,
        metrics=Metrics(service.operations.running),
        pools=Pools(service.settings.compaction.max_concurrent),
        watches=watch,
    )
    service.hooks.after_compaction(shared.metrics.compacted)
    service.hooks.after_flush(shared.metrics.flushed)
    app = FastAPI(
        title="memory-service",
        version=__version__,
        description=_DESCRIPTION,
        openapi_tags=_TAGS,
        license_info={"name": "MIT", "identifier": "MIT"},
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=_lifespan,
        middleware=_layers(service.settings, shared.metrics),
    )
    app.state.shared = shared
    for router in ROUTERS:
        app.include_router(router)
    _add_docs(app)
    errors.install(app, [*app.router.routes, *(route for router in ROUTERS for route in router.routes)])
    return app


def _layers(settings: Settings, metrics: Metrics) -> list[Middleware]:
    """What a request goes through, outermost first."""
    local = [Middleware(LocalOnly)] if not settings.api_keys and is_loopback(settings.host) else []
    return [
        Middleware(Observed, metrics=metrics),
        *local,
        Middleware(RequireKey, keys=settings.api_keys),
        Middleware(BodyLimit, max_bytes=settings.max_body_bytes),
    ]


def _add_docs(app: FastAPI) -> None:
    @app.get("/docs", include_in_schema=False)
    async def docs() -> HTMLResponse:
        return HTMLResponse(docs_page(app.openapi(), "/openapi.json"))


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    shared: AppState = app.state.shared
    shared.warm_up.start(shared.service.warm_up)
    if shared.watches:
        shared.service.watch()
    try:
        yield
    finally:
        shared.end()
        await anyio.to_thread.run_sync(shared.service.close)
