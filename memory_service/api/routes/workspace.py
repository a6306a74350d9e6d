"""Routes of workspaces, background operations, events of a session, and the server itself.

Health and version need no key, the metrics one for `*`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Path, Query, Response

from memory_service import schemas
from memory_service._version import __version__
from memory_service.api import examples
from memory_service.api.auth import WorkspaceName, at_home, grant_of, in_every_workspace, in_workspace, remains_allowed
from memory_service.api.errors import error_responses
from memory_service.api.examples import success_response
from memory_service.api.metrics import CONTENT_TYPE
from memory_service.api.requests import Once, SessionId, Shared, in_queue
from memory_service.api.streams import EVENT_SCHEMA, comes_true, event_stream, last_event_id
from memory_service.home import SearchedPlace
from memory_service.service import Grant, needs

status_router = APIRouter(prefix="/v1/workspaces", tags=["status"])

LastEventId = Annotated[
    str | None,
    Header(alias="Last-Event-ID", description="Id of the last event that was heard; browsers send it by themselves."),
]
Listener = Annotated[Callable[[], bool], Depends(remains_allowed)]
After = Annotated[
    int | None,
    Query(
        ge=0,
        le=2**53,
        description="The last event heard, as `Last-Event-ID`, which wins; 0 begins with the oldest that is kept.",
    ),
]
Timeout = Annotated[float, Query(ge=0, le=300, description="The longest wait, in seconds.")]


def _stream(kinds: str, example: str) -> dict[int | str, dict[str, Any]]:
    schema = {"type": "string", "description": "Events, each as the lines that stand for it."}
    content = {"text/event-stream": {"schema": schema, "itemSchema": EVENT_SCHEMA, "example": example}}
    return {200: {"description": f"Server-sent events: {kinds}, dropped.", "content": content}}


@status_router.get(
    "",
    summary="List the workspaces",
    responses=success_response(200, examples.WORKSPACES) | error_responses(401, 403, 503),
)
@in_queue("read")
def workspaces(shared: Shared, grant: Annotated[Grant, Depends(grant_of)]) -> schemas.Workspaces:
    """All workspaces that the key is for: files, sessions, last change, project."""
    names = [name for name in shared.service.workspaces() if grant.allows(name)]
    return schemas.Workspaces(workspaces=names, details=shared.service.workspace_summaries(names))


@status_router.get(
    "/{workspace}/events",
    dependencies=[Depends(in_workspace)],
    response_class=Response,
    summary="Follow a workspace",
    responses=_stream("memories, session, operation, index", examples.CHANGE)
    | error_responses(400, 401, 403, 404, 422, 503),
)
@in_queue("read")
def workspace_events(
    workspace: WorkspaceName, shared: Shared, is_allowed: Listener, after: After = None, last: LastEventId = None
) -> Response:
    """The changes of the workspace from now on, whoever makes them: in files, sessions, operations and the index.

    An event says that something is different, and not what it says now. A change is seen within a second or two. The
    stream stays open; after a broken connection, `Last-Event-ID` or `after` goes on where it ended.
    """
    event_id = last_event_id(last)
    subscription = shared.service.workspace_events(workspace, after if event_id is None else event_id)
    return event_stream(subscription, is_allowed)


@status_router.get(
    "/{workspace}/status",
    dependencies=[Depends(in_workspace)],
    summary="See how a workspace stands",
    responses=success_response(200, examples.STATUS) | error_responses(400, 401, 403, 404, 422, 503),
)
@in_queue("status")
def status(workspace: WorkspaceName, shared: Shared) -> schemas.Status:
    """Counts, share of passages with a vector, files that changed since the last reindex, model and sizes."""
    return shared.service.status(workspace)


operations_router = APIRouter(
    prefix="/v1/workspaces/{workspace}",
    tags=["operations"],
    dependencies=[Depends(in_workspace)],
    responses=error_responses(400, 401, 403, 404, 422, 503),
)

OperationId = Annotated[
    str, Path(description="The `operation_id` that starting a reindex answered.", examples=["op-0123456789abcdef"])
]


@operations_router.post(
    "/reindex",
    status_code=202,
    response_model=schemas.OperationRef,
    summary="Start a reindex",
    responses=success_response(202, examples.OPERATION_REF) | error_responses(409, 413),
)
async def reindex(workspace: WorkspaceName, body: schemas.ReindexRequest, shared: Shared, once: Once) -> Response:
    """Bring the index up to date with the files, in the background. The files are never changed."""
    start = shared.service.start_reindex
    return await once.run_queued(
        "append", lambda: schemas.OperationRef(operation_id=start(workspace, body.paths, full=body.full).operation_id)
    )


@operations_router.get(
    "/operations", summary="List the operations", responses=success_response(200, examples.OPERATIONS)
)
@in_queue("status")
def operations(workspace: WorkspaceName, shared: Shared) -> schemas.OperationList:
    """The operations of the last day, of every process of the home; the newest first."""
    return schemas.OperationList(operations=shared.service.operations(workspace))


@operations_router.get(
    "/operations/{operation_id}",
    summary="See how far an operation is",
    responses=success_response(200, examples.OPERATION),
)
@in_queue("status")
def operation(workspace: WorkspaceName, operation_id: OperationId, shared: Shared) -> schemas.Operation:
    """State, progress, rate and time left; the report when it is done."""
    return shared.service.operation(workspace, operation_id)


@operations_router.delete(
    "/operations/{operation_id}", summary="Cancel an operation", responses=success_response(200, examples.OPERATION)
)
@in_queue("status")
def cancel(workspace: WorkspaceName, operation_id: OperationId, shared: Shared) -> schemas.Operation:
    """Stop it after the batch at hand. What it has written stays, and the next reindex goes on from there."""
    return shared.service.cancel(workspace, operation_id)


events_router = APIRouter(
    prefix="/v1/workspaces/{workspace}/sessions/{session_id}",
    tags=["sessions"],
    dependencies=[Depends(in_workspace)],
    responses=error_responses(400, 401, 403, 404, 422, 503),
)


@events_router.get(
    "/events",
    response_class=Response,
    summary="Follow a session",
    responses=_stream("compaction_start, compaction_end, flush, prune, overflow, undo", examples.EVENT),
)
@in_queue("read")
def events(
    workspace: WorkspaceName,
    session_id: SessionId,
    shared: Shared,
    is_allowed: Listener,
    after: After = None,
    last: LastEventId = None,
) -> Response:
    """The events of the session from now on, with numbers: compactions, flushes, prunings, recoveries.

    The stream stays open. After a broken connection, `Last-Event-ID` or `after` goes on where it ended; what is not
    kept any more is counted by an event `dropped`.
    """
    event_id = last_event_id(last)
    subscription = shared.service.session_events(workspace, session_id, after if event_id is None else event_id)
    return event_stream(subscription, is_allowed)


@events_router.get("/idle", summary="Wait until a session is at rest", responses=success_response(200, examples.IDLE))
async def idle(
    workspace: WorkspaceName, session_id: SessionId, shared: Shared, timeout_seconds: Timeout = 25.0
) -> schemas.Idle:
    """Answers once no compaction runs and none is to be tried again, or when the time is over."""
    queue = shared.pools.queues.of("read")
    subscription = await queue.run(lambda: shared.service.session_events(workspace, session_id))
    at_rest = partial(shared.service.events.is_idle, workspace, session_id)
    return schemas.Idle(idle=await comes_true(subscription, at_rest, timeout_seconds))


health_router = APIRouter(tags=["server"])
_UNREADY: dict[int | str, dict[str, Any]] = {
    503: {"model": schemas.Health, "description": "It cannot serve now; `degraded` says why."}
}
_NUMBERS: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "Text format of Prometheus."}
}


@health_router.get(
    "/health/live", summary="Whether the server lives", responses=success_response(200, examples.HEALTHY)
)
@needs("none")
async def live() -> schemas.Health:
    """Always ok: who gets this answer talks to a living server."""
    return schemas.Health(status="ok")


@health_router.get(
    "/health/ready",
    summary="Whether the server can serve",
    responses=success_response(200, examples.HEALTHY) | _UNREADY,
)
@needs("none")
@in_queue("health")
def ready(shared: Shared, response: Response) -> schemas.Health:
    """Unavailable while the model is loading or the home cannot be used; ok without a model that failed to load."""
    home, storage = shared.service.settings.home, shared.service.storage.place
    place = SearchedPlace(home=home, place=storage, workspace="", shows_home=False)
    faults = [place.hide_home(fault) for fault in shared.service.ready()]
    if shared.warm_up.loading:
        faults.append("vector: the model is being loaded. Ask again in a second.")
    response.status_code = 503 if faults else 200
    failure = [shared.warm_up.failure] if shared.warm_up.failure else []
    return schemas.Health(status="unavailable" if faults else "ok", degraded=faults + failure)


@health_router.get("/version", summary="What is running", responses=success_response(200, examples.VERSION))
@needs("none")
async def version(shared: Shared) -> schemas.Version:
    """Version of the server, and its embedding model."""
    return schemas.Version(version=__version__, embedding_model=shared.service.embedding_model)


@health_router.get(
    "/v1/settings",
    dependencies=[Depends(at_home)],
    summary="List the settings",
    responses=success_response(200, examples.SETTINGS) | error_responses(401, 403, 503),
)
@needs("admin")
@in_queue("status")
def settings(shared: Shared) -> schemas.SettingValues:
    """All settings of the server with their values, but for secrets, and where each is from. For an admin."""
    return shared.service.setting_values()


@health_router.get(
    "/v1/hosts",
    dependencies=[Depends(at_home)],
    summary="List the connected coding agents",
    responses=success_response(200, examples.CONNECTED_HOSTS) | error_responses(401, 403, 503),
)
@needs("admin")
@in_queue("status")
def hosts(shared: Shared) -> schemas.ConnectedHosts:
    """The coding agents that are connected on this machine, and the last faults of their hooks. For an admin."""
    return shared.service.connected_hosts()


@health_router.get(
    "/metrics",
    dependencies=[Depends(in_every_workspace)],
    response_class=Response,
    summary="Numbers for Prometheus",
    responses=_NUMBERS | error_responses(401, 403),
)
@in_queue("health")
def metrics(shared: Shared) -> Response:
    """Requests, latencies, tokens injected, memories written, degraded answers. With keys, one for `*` is needed."""
    return Response(shared.metrics.exposition(), media_type=CONTENT_TYPE)
