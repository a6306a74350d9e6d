"""Routes of sessions: begin, list, look at, change, search, shorten, erase."""

from __future__ import annotations

from typing import Annotated, cast

from fastapi import APIRouter, Depends, Query, Response

from memory_service import schemas, session_answers, session_schemas
from memory_service.api import session_examples as examples
from memory_service.api.auth import WorkspaceName, in_workspace
from memory_service.api.errors import documented
from memory_service.api.examples import shown
from memory_service.api.jobs import Once
from memory_service.api.session_requests import SessionId, begun
from memory_service.api.state import Shared
from memory_service.shortterm.options import check_new

router = APIRouter(
    prefix="/v1/workspaces/{workspace}/sessions",
    tags=["sessions"],
    dependencies=[Depends(in_workspace)],
    responses=documented(400, 401, 403, 404, 422, 503),
)

SearchText = Annotated[
    str, Query(alias="q", min_length=1, max_length=schemas.MAX_QUERY_CHARS, description="What was said, in words.")
]
Limit = Annotated[int, Query(ge=1, le=session_schemas.MAX_SEARCH_LIMIT, description="The most results.")]


@router.post(
    "",
    status_code=201,
    response_model=session_schemas.Session,
    summary="Begin a session",
    responses=shown(201, examples.SESSION) | documented(409, 413),
)
async def begin(workspace: WorkspaceName, body: session_schemas.NewSession, shared: Shared, once: Once) -> Response:
    """A conversation with its own model, window and settings. To append to it begins a session too.

    The answer says which context window is used, who decided it, and what is wrong with it if it is small.
    """
    return await once.quick(lambda: _begun(workspace, body, shared))


def _begun(workspace: str, body: session_schemas.NewSession, shared: Shared) -> session_schemas.Session:
    settings, model, window = body.settings or {}, body.model, body.context_window

    def check() -> None:
        check_new(shared.service.settings, settings, model=model, context_window=window)

    memory = begun(shared.service, workspace, body.session_id, check)
    made = memory.talks.create(body.session_id, model=model, context_window=window, settings=settings)
    return session_answers.session(made)


@router.get("", summary="List the sessions", responses=shown(200, examples.SESSIONS))
def sessions(workspace: WorkspaceName, shared: Shared) -> session_schemas.Sessions:
    """All sessions of the workspace, the last active first."""
    return session_answers.sessions(shared.service.sessions(workspace).talks.listed())


@router.get("/{session_id}", summary="See how a session stands", responses=shown(200, examples.SESSION))
def session(workspace: WorkspaceName, session_id: SessionId, shared: Shared) -> session_schemas.Session:
    """Its size and pressure, its window and where that is from, what was compacted, flushed and pinned."""
    return session_answers.session(shared.service.sessions(workspace).talks.summary(session_id))


@router.patch("/{session_id}", summary="Change a session", responses=shown(200, examples.SESSION) | documented(413))
def change(
    workspace: WorkspaceName, session_id: SessionId, body: session_schemas.SessionChange, shared: Shared
) -> session_schemas.Session:
    """Set its model, window or settings anew; what is left out stays, and null leaves them to the service again.

    `settings` replace the old ones as a whole.
    """
    changes = cast(session_schemas.SessionChanges, body.model_dump(exclude_unset=True))
    return session_answers.session(shared.service.sessions(workspace).talks.update(session_id, changes))


@router.delete("/{session_id}", summary="Erase a session", responses=shown(200, examples.ERASED))
def erase(workspace: WorkspaceName, session_id: SessionId, shared: Shared) -> session_schemas.ErasedSession:
    """Erase its log, what is kept beside it, and its part of the index. Memories that were flushed stay."""
    done = shared.service.sessions(workspace).talks.delete(session_id)
    shared.metrics.missed(done.degraded)
    return session_answers.erased(done)


@router.get("/{session_id}/search", summary="Search a session", responses=shown(200, examples.FOUND))
def search(
    workspace: WorkspaceName, session_id: SessionId, query: SearchText, shared: Shared, limit: Limit = 10
) -> session_schemas.FoundMessages:
    """What was said in it about something, by words alone, whether the view still shows it or not."""
    found = shared.service.sessions(workspace).search(session_id, query, limit=limit)
    shared.metrics.missed(found.degraded)
    return session_answers.found_messages(found)


@router.post(
    "/{session_id}/pending",
    response_model=session_schemas.AwaitedCalls,
    summary="Await results of tools",
    responses=shown(200, examples.AWAITED) | documented(409, 413),
)
async def await_results(
    workspace: WorkspaceName, session_id: SessionId, body: session_schemas.PendingCalls, shared: Shared, once: Once
) -> Response:
    """Note that tool calls run for long: until their results come, they are not taken for lost."""

    def act() -> session_schemas.AwaitedCalls:
        shared.service.sessions(workspace).talks.await_results(session_id, body.call_ids)
        return session_schemas.AwaitedCalls(call_ids=body.call_ids)

    return await once.quick(act)


@router.post(
    "/{session_id}/trim",
    response_model=session_schemas.Trimmed,
    summary="Shorten a log",
    responses=shown(200, examples.TRIMMED) | documented(409, 413),
)
async def trim(
    workspace: WorkspaceName, session_id: SessionId, body: session_schemas.Trim, shared: Shared, once: Once
) -> Response:
    """Move all but the last lines of the log into a file beside it. `restore` takes that back."""
    trimmed = shared.service.sessions
    return await once.quick(
        lambda: session_schemas.Trimmed(backup=trimmed(workspace).talks.trim(session_id, body.keep_last))
    )


@router.post(
    "/{session_id}/restore",
    response_model=session_schemas.Restored,
    summary="Take a trim back",
    responses=shown(200, examples.RESTORED) | documented(409),
)
async def restore(workspace: WorkspaceName, session_id: SessionId, shared: Shared, once: Once) -> Response:
    """Put back what the last trim took out of the log; what was appended since stays."""

    def act() -> session_schemas.Restored:
        shared.service.sessions(workspace).talks.restore(session_id)
        return session_schemas.Restored(session_id=session_id)

    return await once.quick(act)
