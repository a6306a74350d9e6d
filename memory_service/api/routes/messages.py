"""Routes of messages: append them, read them as they were said or as the model sees them, one by one or all."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Response
from fastapi.responses import StreamingResponse

from memory_service import session_answers, session_schemas
from memory_service.api import session_examples as examples
from memory_service.api.auth import WorkspaceName, in_workspace
from memory_service.api.errors import documented
from memory_service.api.examples import shown
from memory_service.api.jobs import REPLAYED, json_of
from memory_service.api.requests import IdempotencyKey
from memory_service.api.session_requests import SessionId, begun, usage_of
from memory_service.api.state import Shared
from memory_service.api.streams import log_pieces
from memory_service.messages import read_sent

router = APIRouter(
    prefix="/v1/workspaces/{workspace}/sessions/{session_id}/messages",
    tags=["messages"],
    dependencies=[Depends(in_workspace)],
    responses=documented(400, 401, 403, 404, 422, 503),
)

ViewQuery = Annotated[
    session_schemas.ViewName, Query(description="`model`: what the model sees; `log`: everything ever said.")
]
FormatQuery = Annotated[
    session_schemas.Wire, Query(alias="format", description="The shape of the view; the log is as it was given.")
]
SinceSeq = Annotated[int, Query(ge=0, le=2**53, description="Of the log: only messages after this number.")]
Limit = Annotated[int | None, Query(ge=1, le=10**9, description="Of the log: the most messages; else all.")]
Seq = Annotated[int, Path(ge=0, le=2**53, description="Number of the message in the log.", examples=[12])]
MediumNumber = Annotated[int, Path(ge=0, le=10**6, description="Which of its media, from 1 on.", examples=[1])]

_MESSAGE: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The message, byte for byte as it is kept.",
        "content": {"application/json": {"schema": {"type": "object"}, "example": examples.MESSAGE}},
    }
}
_MEDIUM: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The content, with the MIME type that the message names.",
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}
# A page may show these by itself; anything else that somebody sent is for saving, never for a browser to run.
_SHOWN_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp", "audio/", "video/")
_AS_FILE = {"Content-Disposition": "attachment", "X-Content-Type-Options": "nosniff"}


@router.post("", summary="Append messages", responses=shown(200, examples.APPENDED) | documented(409, 413))
def append(
    workspace: WorkspaceName,
    session_id: SessionId,
    body: session_schemas.NewMessages,
    shared: Shared,
    response: Response,
    key: IdempotencyKey = None,
) -> session_schemas.AppendedMessages:
    """Append what was said. It is on the disk when the answer arrives, and waits for no model and no compaction.

    The first messages begin the session, and the workspace. Messages that the service itself put into a prompt are
    recognised and left out, so the whole list that was sent to the model may come back. With an idempotency key the
    same messages are appended once, whatever happens to client or server between.
    """
    memory = begun(shared.service, workspace, session_id, lambda: read_sent(body.messages))
    usage = usage_of(body.usage, body.model, body.finish_reason)
    made = memory.append(session_id, body.messages, usage=usage, model=body.model, key=key)
    response.headers.update(REPLAYED if made.replayed else {})
    shared.metrics.appended(0 if made.replayed else len(body.messages))
    missing = (
        ["usage: none of its numbers is known; nothing was counted."] if body.usage and not usage_of(body.usage) else []
    )
    return session_answers.appended(made, missing)


@router.get(
    "", response_model=session_schemas.Messages, summary="Read the messages", responses=shown(200, examples.MESSAGES)
)
def read(
    workspace: WorkspaceName,
    session_id: SessionId,
    shared: Shared,
    view: ViewQuery = "model",
    wire: FormatQuery = "openai",
    since_seq: SinceSeq = 0,
    limit: Limit = None,
) -> Response:
    """What the model sees, valid for its provider; or everything ever said, with the number of each message."""
    talks = shared.service.sessions(workspace).talks
    if view == "model":
        answer = session_answers.messages(talks.model_view(session_id, wire=wire), wire)
        return Response(json_of(answer), media_type="application/json")
    said, degraded = talks.said(session_id, since_seq=since_seq, limit=limit)
    return StreamingResponse(log_pieces(said, degraded), media_type="application/json")


@router.get("/{seq}", response_class=Response, summary="Read one message", responses=_MESSAGE)
def message(workspace: WorkspaceName, session_id: SessionId, seq: Seq, shared: Shared) -> Response:
    """One message of the log, word for word: what a stub or a handle `log:<seq>` in a view stands for."""
    text = shared.service.sessions(workspace).talks.message(session_id, seq)
    return Response(text.encode(), media_type="application/json")


@router.get("/{seq}/media/{number}", response_class=Response, summary="Read a medium", responses=_MEDIUM)
def medium(workspace: WorkspaceName, session_id: SessionId, seq: Seq, number: MediumNumber, shared: Shared) -> Response:
    """One image, sound or file of a message: what a handle `log:<seq>#<number>` in a view stands for."""
    content, mime = shared.service.sessions(workspace).talks.medium(session_id, seq, number)
    return Response(content, media_type=mime, headers=None if mime.startswith(_SHOWN_TYPES) else _AS_FILE)
