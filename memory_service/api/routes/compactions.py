"""Routes of compactions, of a session or of bare messages, and of flushes."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Response

from memory_service import schemas
from memory_service.api import examples
from memory_service.api.auth import WorkspaceName, grant_of, in_workspace
from memory_service.api.errors import error_responses
from memory_service.api.examples import success_response
from memory_service.api.requests import Once, SessionId, Shared, in_queue, json_response

compactions_router = APIRouter(tags=["compactions"], responses=error_responses(401, 403, 422, 503))

CompactionId = Annotated[str, Path(max_length=200, description="From its receipt.", examples=["c41"])]
_SESSION = "/v1/workspaces/{workspace}/sessions/{session_id}"
_GUARDED = [Depends(in_workspace)]


@compactions_router.post(
    f"{_SESSION}/compact",
    dependencies=_GUARDED,
    response_model=schemas.CompactionReceipt,
    summary="Compact a session",
    responses=success_response(200, examples.COMPACTION_RECEIPT) | error_responses(400, 404, 409, 413, 429, 502),
)
async def compact(
    workspace: WorkspaceName,
    session_id: SessionId,
    body: schemas.CompactRequest,
    shared: Shared,
    once: Once,
) -> Response:
    """Let a summary stand for the old messages of the view; the log keeps every one of them.

    `plan` costs nothing, `preview` shows the summary and the view, `apply` commits them. If there is nothing to gain,
    nothing is changed, and `reason` says so; `force` compacts all the same.
    """
    return await once.slow(
        lambda: shared.service.compact(workspace, session_id, body, cancelled=shared.pools.is_ending)
    )


@compactions_router.get(
    f"{_SESSION}/compactions",
    dependencies=_GUARDED,
    summary="List the compactions",
    responses=success_response(200, examples.COMPACTIONS) | error_responses(400, 404),
)
@in_queue("read")
def compactions(workspace: WorkspaceName, session_id: SessionId, shared: Shared) -> schemas.Compactions:
    """The receipts of all compactions of a session, newest first, undone ones too."""
    return shared.service.compactions(workspace, session_id)


@compactions_router.get(
    f"{_SESSION}/prompts",
    dependencies=_GUARDED,
    summary="List the sizes of the last prompts",
    responses=success_response(200, examples.PROMPTS) | error_responses(400, 404),
)
@in_queue("read")
def prompts(workspace: WorkspaceName, session_id: SessionId, shared: Shared) -> schemas.PromptMeasures:
    """The sizes of the last prompts, part by part, the oldest first; what no part takes of the window is free."""
    return shared.service.prompts(workspace, session_id)


@compactions_router.get(
    f"{_SESSION}/compactions/{{compaction_id}}",
    dependencies=_GUARDED,
    summary="Read the receipt of a compaction",
    responses=success_response(200, examples.COMPACTION_RECEIPT) | error_responses(400, 404),
)
@in_queue("read")
def receipt(
    workspace: WorkspaceName, session_id: SessionId, compaction_id: CompactionId, shared: Shared
) -> schemas.CompactionReceipt:
    """The receipt: sizes, reasons, summary, ledger, audit, steps that were tried, calls of a model."""
    return shared.service.compaction(workspace, session_id, compaction_id)


@compactions_router.post(
    f"{_SESSION}/compactions/{{compaction_id}}/undo",
    dependencies=_GUARDED,
    response_model=schemas.CompactionReceipt,
    summary="Undo a compaction",
    responses=success_response(200, examples.COMPACTION_RECEIPT) | error_responses(400, 404, 409, 429),
)
async def undo(
    workspace: WorkspaceName, session_id: SessionId, compaction_id: CompactionId, shared: Shared, once: Once
) -> Response:
    """Back to the exact view before it; what was said since stays. Later compactions that built on it go with it."""
    return await once.slow(lambda: shared.service.undo(workspace, session_id, compaction_id))


@compactions_router.post(
    "/v1/compact",
    dependencies=[Depends(grant_of)],
    response_model=schemas.CompactedMessages,
    summary="Compact messages without a session",
    responses=success_response(200, examples.COMPACTED) | error_responses(413, 429, 502),
)
async def compact_messages(body: schemas.StatelessRequest, shared: Shared) -> Response:
    """Messages in, fewer messages out; nothing is kept. They come back as they are if they fit the window.

    Any key may call it. `receipt.summary` and `receipt.covered` say what stands for what, counted from 1.
    """
    return await shared.pools.stateless.run(lambda: json_response(_compact_stateless(body, shared)))


def _compact_stateless(body: schemas.StatelessRequest, shared: Shared) -> schemas.CompactedMessages:
    return shared.service.compact_messages(body, cancelled=shared.pools.is_ending)


flushes_router = APIRouter(
    prefix="/v1/workspaces/{workspace}/sessions/{session_id}",
    tags=["flushes"],
    dependencies=[Depends(in_workspace)],
    responses=error_responses(400, 401, 403, 404, 422, 503),
)


@flushes_router.post(
    "/flush",
    response_model=schemas.Flush,
    summary="Write down what a session leaves behind",
    responses=success_response(200, examples.FLUSHED) | error_responses(409, 413, 429, 502),
)
async def flush(
    workspace: WorkspaceName,
    session_id: SessionId,
    shared: Shared,
    once: Once,
    body: schemas.FlushRequest | None = None,
) -> Response:
    """Memories of what was said since the last flush go to today's file, and the next search finds them.

    With `reply`, what the agent answered to the flush prompt is stored; else the model of the service finds the
    memories, or rules do where there is none. Each stretch is searched once, and a known fact is not stored again.
    """
    reply = body.reply if body else None
    return await once.slow(lambda: shared.service.flush(workspace, session_id, reply, cancelled=shared.pools.is_ending))


@flushes_router.get(
    "/flush-prompt", summary="Read the flush prompt", responses=success_response(200, examples.FLUSH_PROMPT)
)
@in_queue("read")
def flush_prompt(workspace: WorkspaceName, session_id: SessionId, shared: Shared) -> schemas.FlushPrompt:
    """The prompt for an agent that finds the memories itself. It answers `NO_REPLY` if there are none."""
    return shared.service.flush_prompt(workspace, session_id)
