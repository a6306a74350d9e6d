"""Routes of the messages of a session, and of their media."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Response
from fastapi.responses import StreamingResponse

from memory_service import schemas
from memory_service.api import examples
from memory_service.api.auth import WorkspaceName, in_workspace
from memory_service.api.errors import error_responses
from memory_service.api.examples import success_response
from memory_service.api.requests import IdempotencyKey, SessionId, Shared, in_queue, json_response
from memory_service.api.streams import log_pieces

messages_router = APIRouter(
    prefix="/v1/workspaces/{workspace}/sessions/{session_id}/messages",
    tags=["messages"],
    dependencies=[Depends(in_workspace)],
    responses=error_responses(400, 401, 403, 404, 422, 503),
)

ViewQuery = Annotated[schemas.ViewName, Query(description="`model`: what the model sees; `log`: everything ever said.")]
FormatQuery = Annotated[
    schemas.Wire, Query(alias="format", description="The shape of the view; the log is as it was given.")
]
SinceSeq = Annotated[int, Query(ge=0, le=2**53, description="Of the log: only messages after this number.")]
MessageLimit = Annotated[int | None, Query(ge=1, le=10**9, description="Of the log: the most messages; else all.")]
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


@messages_router.post(
    "",
    response_model=schemas.AppendedMessages,
    summary="Append messages",
    responses=success_response(200, examples.APPENDED) | error_responses(409, 413),
)
@in_queue("append")
def append(
    workspace: WorkspaceName,
    session_id: SessionId,
    body: schemas.NewMessages,
    shared: Shared,
    key: IdempotencyKey = None,
) -> Response:
    """Append what was said. It is on the disk when the answer arrives, and waits for no model and no compaction.

    The first messages begin the session, and the workspace. Messages that the service itself put into a prompt are
    recognised and left out, so the whole list that was sent to the model may come back. With an idempotency key the
    same messages are appended once, whatever happens to client or server between.
    """
    service, after = shared.service, body.after_seq
    append: Callable[..., schemas.AppendedMessages] = (
        partial(service.append, key=key) if after is None else partial(service.append_answer, after_seq=after)
    )
    messages = append(
        workspace,
        session_id,
        body.messages,
        usage=body.usage,
        finish_reason=body.finish_reason,
        model=body.model,
    )
    shared.metrics.count_messages(0 if messages.replayed else len(body.messages))
    return json_response(messages, replayed=messages.replayed)


@messages_router.get(
    "", response_model=schemas.Messages, summary="Read the messages", responses=success_response(200, examples.MESSAGES)
)
@in_queue("read")
def read(
    workspace: WorkspaceName,
    session_id: SessionId,
    shared: Shared,
    view: ViewQuery = "model",
    wire: FormatQuery = "openai",
    since_seq: SinceSeq = 0,
    limit: MessageLimit = None,
) -> Response:
    """The messages the model sees, valid for its provider; or everything ever said, with the number of each message."""
    if view == "model":
        return json_response(shared.service.messages(workspace, session_id, format=wire))
    pairs, degraded = shared.service.logged_messages(workspace, session_id, since_seq=since_seq, limit=limit)
    return StreamingResponse(log_pieces(pairs, degraded), media_type="application/json")


@messages_router.get("/{seq}", response_class=Response, summary="Read one message", responses=_MESSAGE)
@in_queue("read")
def message(workspace: WorkspaceName, session_id: SessionId, seq: Seq, shared: Shared) -> Response:
    """One message of the log, word for word: what a stub or a handle `log:<seq>` in a view stands for."""
    text = shared.service.message(workspace, session_id, seq)
    return Response(text.encode(), media_type="application/json")


@messages_router.delete("/{seq}", summary="Erase a message", responses=success_response(200, examples.ERASED_MESSAGES))
@in_queue("append")
def erase_message(workspace: WorkspaceName, session_id: SessionId, seq: Seq, shared: Shared) -> schemas.ErasedMessages:
    """Erase one message, from the log and from the index, with the compactions whose summaries were made of it.

    The numbers of the others stay. Memories that were flushed stay, too, and so do branches of the session.
    """
    gone_erase_messages = shared.service.erase_messages(workspace, session_id, [seq])
    shared.metrics.count_degraded(gone_erase_messages.degraded)
    return gone_erase_messages


@messages_router.get("/{seq}/media/{number}", response_class=Response, summary="Read a medium", responses=_MEDIUM)
@in_queue("read")
def medium(workspace: WorkspaceName, session_id: SessionId, seq: Seq, number: MediumNumber, shared: Shared) -> Response:
    """One image, sound or file of a message: what a handle `log:<seq>#<number>` in a view stands for."""
    content, mime = shared.service.medium(workspace, session_id, seq, number)
    return Response(content, media_type=mime, headers=None if mime.startswith(_SHOWN_TYPES) else _AS_FILE)
