"""Routes of flushes: memories that a session leaves behind."""

from __future__ import annotations

from fastapi import APIRouter, Depends, Response

from memory_service import compaction_schemas, session_answers
from memory_service.api import session_examples as examples
from memory_service.api.auth import WorkspaceName, in_workspace
from memory_service.api.errors import documented
from memory_service.api.examples import shown
from memory_service.api.jobs import Once
from memory_service.api.session_requests import SessionId
from memory_service.api.state import Shared

router = APIRouter(
    prefix="/v1/workspaces/{workspace}/sessions/{session_id}",
    tags=["flushes"],
    dependencies=[Depends(in_workspace)],
    responses=documented(400, 401, 403, 404, 422, 503),
)


@router.post(
    "/flush",
    response_model=compaction_schemas.Flush,
    summary="Write down what a session leaves behind",
    responses=shown(200, examples.FLUSHED) | documented(409, 413, 429, 502),
)
async def flush(
    workspace: WorkspaceName,
    session_id: SessionId,
    shared: Shared,
    once: Once,
    body: compaction_schemas.FlushRequest | None = None,
) -> Response:
    """Memories of what was said since the last flush go to today's file, and the next search finds them.

    With `reply`, what the agent answered to the flush prompt is stored; else the model of the service finds the
    memories, or rules do where there is none. Each stretch is searched once, and a known fact is not stored again.
    """
    reply = body.reply if body else None
    return await once.slow(
        lambda: session_answers.flush(
            shared.service.sessions(workspace).flushes.flush(session_id, reply=reply, cancelled=shared.pools.cancelled)
        )
    )


@router.get("/flush-prompt", summary="Read the flush prompt", responses=shown(200, examples.FLUSH_PROMPT))
def flush_prompt(workspace: WorkspaceName, session_id: SessionId, shared: Shared) -> compaction_schemas.FlushPrompt:
    """What to ask an agent that finds the memories itself. It answers `NO_REPLY` if there are none."""
    asked = shared.service.sessions(workspace).flush_prompt(session_id)
    return compaction_schemas.FlushPrompt(prompt=asked.prompt, system_prompt=asked.system_prompt)
