"""Routes of the prompts of sessions, and of prompts that a provider refused."""

from __future__ import annotations

from fastapi import APIRouter, Depends, Response

from memory_service import schemas
from memory_service.api import examples
from memory_service.api.auth import WorkspaceName, in_workspace
from memory_service.api.errors import error_responses
from memory_service.api.examples import success_response
from memory_service.api.requests import Once, SessionId, Shared

prompts_router = APIRouter(
    prefix="/v1/workspaces/{workspace}/sessions/{session_id}",
    tags=["prompts"],
    dependencies=[Depends(in_workspace)],
    responses=error_responses(400, 401, 403, 404, 409, 413, 422, 429, 502, 503),
)


@prompts_router.post(
    "/context",
    response_model=schemas.SessionContext,
    summary="Make the prompt of a session",
    responses=success_response(200, examples.SESSION_CONTEXT),
)
async def context(
    workspace: WorkspaceName,
    session_id: SessionId,
    body: schemas.SessionContextRequest,
    shared: Shared,
    once: Once,
) -> Response:
    """The messages to send to the model: complete, valid on the wire, and within the window.

    System prompt, summary, older messages, memories for the last turn, and that turn. With `auto`, memories are
    flushed and old messages compacted first if the budget asks for it; `compaction` and `flush` say what was done, and
    are null if nothing was. When `flush.mode` is `agent`, send `flush.prompt` to the model in a turn of its own, and
    its reply to the route `flush`.
    """
    service, cancelled = shared.service, shared.pools.is_ending
    return await once.run_queued(
        "prompt",
        lambda: _count_prompt(shared, service.session_context(workspace, session_id, body, cancelled=cancelled)),
    )


@prompts_router.post(
    "/conversation",
    response_model=schemas.ConversationContext,
    summary="Make the prompt of a conversation that its client keeps",
    responses=success_response(200, examples.CONVERSATION_CONTEXT),
)
async def conversation(
    workspace: WorkspaceName,
    session_id: SessionId,
    body: schemas.ConversationRequest,
    shared: Shared,
    once: Once,
) -> Response:
    """For frameworks that keep the list of messages themselves: send all of it, and get the prompt for the model.

    What the session does not have yet is appended to it. A list that differs from what was said there (an edited
    question, an answer that was asked for again) goes on in a branch, whose id the answer has.
    """
    service, cancelled = shared.service, shared.pools.is_ending
    return await once.run_queued(
        "prompt", lambda: _count_prompt(shared, service.conversation(workspace, session_id, body, cancelled=cancelled))
    )


def _count_prompt(shared: Shared, made: schemas.SessionContext) -> schemas.SessionContext:
    shared.metrics.count_prompt(made.tokens.total, made.cached_prefix_tokens)
    return made


@prompts_router.post(
    "/overflow",
    response_model=schemas.Recovery,
    summary="Recover from a refused prompt",
    responses=success_response(200, examples.RECOVERY),
)
async def overflow(
    workspace: WorkspaceName,
    session_id: SessionId,
    body: schemas.OverflowRequest,
    shared: Shared,
    once: Once,
) -> Response:
    """Give the error of the provider, word for word, and get what to send instead, or why to give up.

    A window that the error tells is learned. Each remedy is tried a bounded number of times for one prompt. A failed
    compaction is never taken for an overflow, nor is a rate limit: then `retry_after_seconds` says how long to wait.
    """
    return await once.slow(lambda: _recovery(workspace, session_id, body, shared))


def _recovery(workspace: str, session_id: str, body: schemas.OverflowRequest, shared: Shared) -> schemas.Recovery:
    recovery = shared.service.overflow(workspace, session_id, body, cancelled=shared.pools.is_ending)
    shared.metrics.count_recovery(recovery.remedy)
    return recovery
