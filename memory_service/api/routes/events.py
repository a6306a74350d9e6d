"""Routes of events: what happens to a session, as it happens, and whether it is at rest."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

import anyio.to_thread
from fastapi import APIRouter, Depends, Header, Query, Response

from memory_service import session_schemas
from memory_service.api import session_examples as examples
from memory_service.api.auth import WorkspaceName, in_workspace
from memory_service.api.errors import documented
from memory_service.api.examples import shown
from memory_service.api.session_requests import SessionId
from memory_service.api.state import Shared
from memory_service.api.streams import EVENT_SCHEMA, comes_true, event_stream, last_event_id

router = APIRouter(
    prefix="/v1/workspaces/{workspace}/sessions/{session_id}",
    tags=["sessions"],
    dependencies=[Depends(in_workspace)],
    responses=documented(400, 401, 403, 404, 422, 503),
)

LastEventId = Annotated[
    str | None, Header(alias="Last-Event-ID", description="The last event that was heard; browsers send it.")
]
After = Annotated[
    int | None, Query(ge=0, le=2**53, description="The same as a parameter; 0 begins with the oldest that is kept.")
]
Timeout = Annotated[float, Query(ge=0, le=300, description="The longest wait.")]
_STREAM: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Server-sent events: compaction_start, compaction_end, flush, prune, overflow, undo, dropped.",
        "content": {
            "text/event-stream": {
                "schema": {"type": "string", "description": "Events, each as the lines that stand for it."},
                "itemSchema": EVENT_SCHEMA,
                "example": examples.EVENT,
            }
        },
    }
}


@router.get("/events", response_class=Response, summary="Follow a session", responses=_STREAM)
def events(
    workspace: WorkspaceName,
    session_id: SessionId,
    shared: Shared,
    after: After = None,
    last: LastEventId = None,
) -> Response:
    """What happens to the session from now on, with numbers: compactions, flushes, prunings, recoveries.

    The stream stays open. After a broken connection, `Last-Event-ID` or `after` goes on where it ended; what is not
    kept any more is counted by an event `dropped`.
    """
    heard = last_event_id(last)
    subscription = shared.service.sessions(workspace).events(session_id, after_id=after if heard is None else heard)
    return event_stream(subscription)


@router.get("/idle", summary="Wait until a session is at rest", responses=shown(200, examples.IDLE))
async def idle(
    workspace: WorkspaceName, session_id: SessionId, shared: Shared, timeout_seconds: Timeout = 25.0
) -> session_schemas.Idle:
    """Answers once no compaction runs and none is to be tried again, or when the time is over."""
    memory = await anyio.to_thread.run_sync(shared.service.sessions, workspace)
    subscription = await anyio.to_thread.run_sync(memory.events, session_id)
    at_rest = partial(memory.wait_idle, session_id, timeout_seconds=0)
    return session_schemas.Idle(idle=await comes_true(subscription, at_rest, timeout_seconds))
