"""Routes of pins: what every view of a session keeps word for word."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Response

from memory_service import session_answers, session_schemas
from memory_service.api import session_examples as examples
from memory_service.api.auth import WorkspaceName, in_workspace
from memory_service.api.errors import documented
from memory_service.api.examples import shown
from memory_service.api.jobs import Once
from memory_service.api.session_requests import SessionId, begun, check_pin
from memory_service.api.state import Shared

router = APIRouter(
    prefix="/v1/workspaces/{workspace}/sessions/{session_id}/pins",
    tags=["pins"],
    dependencies=[Depends(in_workspace)],
    responses=documented(400, 401, 403, 404, 422, 503),
)

PinId = Annotated[str, Path(max_length=200, description="From the pin.", examples=["p0123456789ab"])]


@router.post(
    "",
    status_code=201,
    response_model=session_schemas.Pin,
    summary="Pin something",
    responses=shown(201, examples.PIN) | documented(409, 413),
)
async def pin(
    workspace: WorkspaceName, session_id: SessionId, body: session_schemas.NewPin, shared: Shared, once: Once
) -> Response:
    """Keep a text, or a message by its number, word for word in every view, however often it is compacted.

    A text begins the session if it is not there.
    """

    def act() -> session_schemas.Pin:
        memory = begun(shared.service, workspace, session_id, lambda: check_pin(body))
        return session_answers.pin(memory.talks.pin(session_id, text=body.text, seq=body.seq))

    return await once.quick(act)


@router.get("", summary="List the pins", responses=shown(200, examples.PINS))
def pins(workspace: WorkspaceName, session_id: SessionId, shared: Shared) -> session_schemas.Pins:
    """All pins of the session, oldest first."""
    return session_answers.pins(shared.service.sessions(workspace).talks.pins(session_id))


@router.delete("/{pin_id}", summary="Remove a pin", responses=shown(200, examples.REMOVED_PIN))
def unpin(workspace: WorkspaceName, session_id: SessionId, pin_id: PinId, shared: Shared) -> session_schemas.RemovedPin:
    """Keep it no longer: the next compaction may cover it."""
    shared.service.sessions(workspace).talks.unpin(session_id, pin_id)
    return session_schemas.RemovedPin(pin_id=pin_id)
