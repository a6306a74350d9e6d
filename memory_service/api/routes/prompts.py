"""Routes of prompts: what to send to the model, and what to do when its provider refuses it."""

from __future__ import annotations

from fastapi import APIRouter, Depends, Response

from memory_service import compaction_schemas, session_answers
from memory_service.api import session_examples as examples
from memory_service.api.auth import WorkspaceName, in_workspace
from memory_service.api.errors import documented
from memory_service.api.examples import shown
from memory_service.api.jobs import Once
from memory_service.api.session_requests import SessionId, context_call, overflow_call
from memory_service.api.state import Shared

router = APIRouter(
    prefix="/v1/workspaces/{workspace}/sessions/{session_id}",
    tags=["prompts"],
    dependencies=[Depends(in_workspace)],
    responses=documented(400, 401, 403, 404, 409, 413, 422, 429, 502, 503),
)


@router.post(
    "/context",
    response_model=compaction_schemas.SessionContext,
    summary="Make the prompt of a session",
    responses=shown(200, examples.CONTEXT),
)
async def context(
    workspace: WorkspaceName,
    session_id: SessionId,
    body: compaction_schemas.SessionContextRequest,
    shared: Shared,
    once: Once,
) -> Response:
    """The messages to send to the model: complete, valid on the wire, and within the window.

    System prompt, summary, older messages, memories for the last turn, and that turn. With `auto`, memories are
    flushed and old messages compacted first if the budget asks for it; `compaction` and `flush` say what was done, and
    are null if nothing was. When `flush.mode` is `agent`, send `flush.prompt` to the model in a turn of its own, and
    its reply to the route `flush`.
    """
    return await once.slow(lambda: _context(workspace, session_id, body, shared), shared.pools.contexts)


def _context(
    workspace: str, session_id: str, body: compaction_schemas.SessionContextRequest, shared: Shared
) -> compaction_schemas.SessionContext:
    memory = shared.service.sessions(workspace)
    made = memory.context(session_id, context_call(body), cancelled=shared.pools.cancelled)
    sent = memory.sent(session_id, made.prompt.messages, body.format)
    return session_answers.context(made, sent, body.format, fusion=shared.service.settings.ranking.fusion)


@router.post(
    "/overflow",
    response_model=compaction_schemas.Recovery,
    summary="Recover from a refused prompt",
    responses=shown(200, examples.RECOVERY),
)
async def overflow(
    workspace: WorkspaceName,
    session_id: SessionId,
    body: compaction_schemas.OverflowRequest,
    shared: Shared,
    once: Once,
) -> Response:
    """Give the error of the provider, word for word, and get what to send instead, or why to give up.

    A window that the error tells is learned. Each remedy is tried a bounded number of times for one prompt. A failed
    compaction is never taken for an overflow, nor is a rate limit: then `retry_after_seconds` says how long to wait.
    """
    return await once.slow(lambda: _recovery(workspace, session_id, body, shared))


def _recovery(
    workspace: str, session_id: str, body: compaction_schemas.OverflowRequest, shared: Shared
) -> compaction_schemas.Recovery:
    memory = shared.service.sessions(workspace)
    made = memory.recover(session_id, overflow_call(body), cancelled=shared.pools.cancelled)
    shared.metrics.recovered(made.remedy)
    return session_answers.recovery(made, memory.sent(session_id, made.messages, body.format), body.format)
