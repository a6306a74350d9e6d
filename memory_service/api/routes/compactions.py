"""Routes of compactions: of a session, and of messages without one."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Response

from memory_service import compaction_schemas, session_answers
from memory_service.api import session_examples as examples
from memory_service.api.auth import WorkspaceName, grant_of, in_workspace
from memory_service.api.errors import documented
from memory_service.api.examples import shown
from memory_service.api.jobs import Once, json_of
from memory_service.api.session_requests import SessionId, compaction_call, stateless_call
from memory_service.api.state import Shared
from memory_service.sessions.state import SessionState
from memory_service.shortterm.talks import on_wire

router = APIRouter(tags=["compactions"], responses=documented(401, 403, 422, 503))

CompactionId = Annotated[str, Path(max_length=200, description="From its receipt.", examples=["c41"])]
_SESSION = "/v1/workspaces/{workspace}/sessions/{session_id}"
_GUARDED = [Depends(in_workspace)]


@router.post(
    f"{_SESSION}/compact",
    dependencies=_GUARDED,
    response_model=compaction_schemas.CompactionReceipt,
    summary="Compact a session",
    responses=shown(200, examples.RECEIPT) | documented(400, 404, 409, 413, 429, 502),
)
async def compact(
    workspace: WorkspaceName,
    session_id: SessionId,
    body: compaction_schemas.CompactRequest,
    shared: Shared,
    once: Once,
) -> Response:
    """Let a summary stand for the old messages of the view; the log keeps every one of them.

    `plan` costs nothing, `preview` shows the summary and the view, `apply` commits them. If there is nothing to gain,
    nothing is changed, and `reason` says so; `force` compacts all the same.
    """
    wanted = compaction_call(body)
    return await once.slow(
        lambda: session_answers.receipt(
            shared.service.sessions(workspace).compactions.compact(session_id, wanted, cancelled=shared.pools.cancelled)
        )
    )


@router.get(
    f"{_SESSION}/compactions",
    dependencies=_GUARDED,
    summary="List the compactions",
    responses=shown(200, examples.COMPACTIONS) | documented(400, 404),
)
def compactions(workspace: WorkspaceName, session_id: SessionId, shared: Shared) -> compaction_schemas.Compactions:
    """The receipts of all compactions of a session, newest first, undone ones too."""
    found = shared.service.sessions(workspace).compactions.past(session_id)
    return compaction_schemas.Compactions(compactions=[session_answers.receipt(each) for each in found])


@router.get(
    f"{_SESSION}/compactions/{{compaction_id}}",
    dependencies=_GUARDED,
    summary="Read the receipt of a compaction",
    responses=shown(200, examples.RECEIPT) | documented(400, 404),
)
def receipt(
    workspace: WorkspaceName, session_id: SessionId, compaction_id: CompactionId, shared: Shared
) -> compaction_schemas.CompactionReceipt:
    """What it did and why: sizes, summary, ledger, audit, steps that were tried, calls of a model."""
    return session_answers.receipt(shared.service.sessions(workspace).compactions.receipt(session_id, compaction_id))


@router.post(
    f"{_SESSION}/compactions/{{compaction_id}}/undo",
    dependencies=_GUARDED,
    response_model=compaction_schemas.CompactionReceipt,
    summary="Undo a compaction",
    responses=shown(200, examples.RECEIPT) | documented(400, 404, 409, 429),
)
async def undo(
    workspace: WorkspaceName, session_id: SessionId, compaction_id: CompactionId, shared: Shared, once: Once
) -> Response:
    """Back to the exact view before it; what was said since stays. Later compactions that built on it go with it."""
    return await once.slow(
        lambda: session_answers.receipt(shared.service.sessions(workspace).compactions.undo(session_id, compaction_id))
    )


@router.post(
    "/v1/compact",
    dependencies=[Depends(grant_of)],
    response_model=compaction_schemas.CompactedMessages,
    summary="Compact messages without a session",
    responses=shown(200, examples.COMPACTED) | documented(413, 429, 502),
)
async def compact_messages(body: compaction_schemas.StatelessRequest, shared: Shared) -> Response:
    """Messages in, fewer messages out; nothing is kept. They come back as they are if they fit the window.

    Any key may call it. `receipt.summary` and `receipt.covered` say what stands for what, counted from 1.
    """
    return Response(
        await shared.pools.stateless.run(lambda: json_of(_compacted(body, shared))), media_type="application/json"
    )


def _compacted(body: compaction_schemas.StatelessRequest, shared: Shared) -> compaction_schemas.CompactedMessages:
    made = shared.service.compact_messages(stateless_call(body), cancelled=shared.pools.cancelled)
    sent = on_wire(made.messages, body.format, SessionState())
    return session_answers.compacted(made.receipt, sent, body.format)
