"""Routes of facts that change: all their values, and statements that are told apart."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query
from starlette.responses import Response

from memory_service import schemas
from memory_service.api import examples
from memory_service.api.auth import WorkspaceName, in_workspace
from memory_service.api.errors import error_responses
from memory_service.api.examples import success_response
from memory_service.api.requests import IdempotencyKey, Shared, in_queue, json_response

facts_router = APIRouter(
    prefix="/v1/workspaces/{workspace}/facts",
    tags=["search"],
    dependencies=[Depends(in_workspace)],
    responses=error_responses(400, 401, 403, 422, 503),
)
MostFacts = Annotated[int, Query(ge=1, le=schemas.MAX_LISTED, description="The most facts of an answer.")]


@facts_router.get(
    "",
    summary="List the facts that changed",
    responses=success_response(200, examples.CHANGED_FACTS),
)
@in_queue("search")
def changed_facts(workspace: WorkspaceName, shared: Shared, limit: MostFacts = 50) -> schemas.ChangedFacts:
    """The facts of the memory files that had several values, each with all of them, oldest first."""
    return shared.service.changed_facts(workspace, limit=limit)


@facts_router.post(
    "/distinctions",
    status_code=201,
    response_model=schemas.StoredMemory,
    summary="Say that two statements are not the same",
    responses=success_response(201, examples.STORED) | error_responses(409, 413),
)
@in_queue("append")
def distinguish(
    workspace: WorkspaceName, body: schemas.Distinction, shared: Shared, key: IdempotencyKey = None
) -> Response:
    """Note that two statements are not about the same thing: a line in the file of today, which people can read.

    From then on none of them replaces the other.
    """
    memory = shared.service.distinguish(workspace, body.first, body.second, idempotency_key=key)
    return json_response(memory, 201, replayed=memory.replayed)
