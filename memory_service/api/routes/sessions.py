"""Routes of sessions, and of what is pinned in them."""

from __future__ import annotations

from typing import Annotated, cast

from fastapi import APIRouter, Depends, Path, Query, Response

from memory_service import schemas
from memory_service.api import examples
from memory_service.api.auth import WorkspaceName, in_workspace
from memory_service.api.errors import error_responses
from memory_service.api.examples import success_response
from memory_service.api.requests import Once, SessionId, Shared, in_queue

sessions_router = APIRouter(
    prefix="/v1/workspaces/{workspace}/sessions",
    tags=["sessions"],
    dependencies=[Depends(in_workspace)],
    responses=error_responses(400, 401, 403, 404, 422, 503),
)

SearchText = Annotated[
    str, Query(alias="q", min_length=1, max_length=schemas.MAX_QUERY_CHARS, description="What was said, in words.")
]
Limit = Annotated[int, Query(ge=1, le=schemas.MAX_SEARCH_LIMIT, description="The most results.")]


@sessions_router.post(
    "",
    status_code=201,
    response_model=schemas.Session,
    summary="Begin a session",
    responses=success_response(201, examples.SESSION) | error_responses(409, 413),
)
async def begin(workspace: WorkspaceName, body: schemas.NewSession, shared: Shared, once: Once) -> Response:
    """A conversation with its own model, window and settings. To append to it begins a session too.

    The answer says which context window is used, who decided it, and what is wrong with it if it is small.
    """
    return await once.run_queued("append", lambda: shared.service.create_session(workspace, body))


@sessions_router.get("", summary="List the sessions", responses=success_response(200, examples.SESSIONS))
@in_queue("read")
def sessions(workspace: WorkspaceName, shared: Shared) -> schemas.Sessions:
    """All sessions of the workspace, the last active first."""
    return shared.service.list_sessions(workspace)


@sessions_router.get(
    "/{session_id}", summary="See how a session stands", responses=success_response(200, examples.SESSION)
)
@in_queue("read")
def session(workspace: WorkspaceName, session_id: SessionId, shared: Shared) -> schemas.Session:
    """Its size and pressure, its window and where that is from, what was compacted, flushed and pinned."""
    return shared.service.session_status(workspace, session_id)


@sessions_router.patch(
    "/{session_id}",
    summary="Change a session",
    responses=success_response(200, examples.SESSION) | error_responses(413),
)
@in_queue("append")
def change(
    workspace: WorkspaceName, session_id: SessionId, body: schemas.SessionChange, shared: Shared
) -> schemas.Session:
    """Set its model, window or settings anew; what is left out stays, and null leaves them to the service again.

    `settings` replace the old ones as a whole.
    """
    changes = cast(schemas.SessionChanges, body.model_dump(exclude_unset=True))
    return shared.service.update_session(workspace, session_id, **changes)


@sessions_router.delete(
    "/{session_id}", summary="Erase a session", responses=success_response(200, examples.SESSION_ERASED)
)
@in_queue("append")
def erase(workspace: WorkspaceName, session_id: SessionId, shared: Shared) -> schemas.ErasedSession:
    """Erase its log, what is kept beside it, and its part of the index. Memories that were flushed stay."""
    done_delete_session = shared.service.delete_session(workspace, session_id)
    shared.metrics.count_degraded(done_delete_session.degraded)
    return done_delete_session


@sessions_router.post(
    "/{session_id}/branches",
    status_code=201,
    response_model=schemas.Session,
    summary="Branch a session",
    responses=success_response(201, examples.BRANCH) | error_responses(409, 413),
)
async def branch(
    workspace: WorkspaceName, session_id: SessionId, body: schemas.NewBranch, shared: Shared, once: Once
) -> Response:
    """Begin a session that has all of this one up to a message, with its compactions and pins of until then.

    This one stays as it is. The same again gives the same branch.
    """
    return await once.run_queued("append", lambda: shared.service.branch(workspace, session_id, body))


@sessions_router.get(
    "/{session_id}/search", summary="Search a session", responses=success_response(200, examples.FOUND)
)
@in_queue("read")
def search(
    workspace: WorkspaceName, session_id: SessionId, query: SearchText, shared: Shared, limit: Limit = 10
) -> schemas.FoundMessages:
    """The messages in which something was said, found by words alone, whether the view still shows it or not."""
    messages = shared.service.session_search(workspace, session_id, query, limit)
    shared.metrics.count_degraded(messages.degraded)
    return messages


@sessions_router.post(
    "/{session_id}/pending",
    response_model=schemas.AwaitedCalls,
    summary="Await results of tools",
    responses=success_response(200, examples.AWAITED) | error_responses(409, 413),
)
async def await_results(
    workspace: WorkspaceName, session_id: SessionId, body: schemas.PendingCalls, shared: Shared, once: Once
) -> Response:
    """Note that tool calls run for long: until their results come, they are not taken for lost."""
    return await once.run_queued("append", lambda: shared.service.pending(workspace, session_id, body.call_ids))


@sessions_router.post(
    "/{session_id}/trim",
    response_model=schemas.Trimmed,
    summary="Shorten a log",
    responses=success_response(200, examples.TRIMMED) | error_responses(409, 413),
)
async def trim(
    workspace: WorkspaceName, session_id: SessionId, body: schemas.Trim, shared: Shared, once: Once
) -> Response:
    """Move all but the last lines of the log into a file beside it. `restore` takes that back."""
    return await once.run_queued("append", lambda: shared.service.trim(workspace, session_id, body.keep_last))


@sessions_router.post(
    "/{session_id}/restore",
    response_model=schemas.Restored,
    summary="Take a trim back",
    responses=success_response(200, examples.RESTORED) | error_responses(409),
)
async def restore(workspace: WorkspaceName, session_id: SessionId, shared: Shared, once: Once) -> Response:
    """Put back what the last trim took out of the log; what was appended since stays."""
    return await once.run_queued("append", lambda: shared.service.restore(workspace, session_id))


pins_router = APIRouter(
    prefix="/v1/workspaces/{workspace}/sessions/{session_id}/pins",
    tags=["pins"],
    dependencies=[Depends(in_workspace)],
    responses=error_responses(400, 401, 403, 404, 422, 503),
)

PinId = Annotated[str, Path(max_length=200, description="From the pin.", examples=["p0123456789ab"])]


@pins_router.post(
    "",
    status_code=201,
    response_model=schemas.Pin,
    summary="Pin something",
    responses=success_response(201, examples.PIN) | error_responses(409, 413),
)
async def pin(
    workspace: WorkspaceName, session_id: SessionId, body: schemas.NewPin, shared: Shared, once: Once
) -> Response:
    """Keep a text, or a message by its number, word for word in every view, however often it is compacted.

    A text begins the session if it is not there.
    """
    return await once.run_queued("append", lambda: shared.service.pin(workspace, session_id, body.text, seq=body.seq))


@pins_router.get("", summary="List the pins", responses=success_response(200, examples.PINS))
@in_queue("read")
def pins(workspace: WorkspaceName, session_id: SessionId, shared: Shared) -> schemas.Pins:
    """All pins of the session, oldest first."""
    return shared.service.pins(workspace, session_id)


@pins_router.delete("/{pin_id}", summary="Remove a pin", responses=success_response(200, examples.REMOVED_PIN))
@in_queue("append")
def unpin(workspace: WorkspaceName, session_id: SessionId, pin_id: PinId, shared: Shared) -> schemas.RemovedPin:
    """Keep it no longer: the next compaction may cover it."""
    return shared.service.unpin(workspace, session_id, pin_id)
