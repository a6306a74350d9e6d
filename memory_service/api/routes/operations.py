"""Routes of operations: reindexing in the background."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Response

from memory_service import answers, schemas
from memory_service.api import examples
from memory_service.api.auth import WorkspaceName, in_workspace
from memory_service.api.errors import documented
from memory_service.api.examples import shown
from memory_service.api.jobs import Once
from memory_service.api.state import Shared

router = APIRouter(
    prefix="/v1/workspaces/{workspace}",
    tags=["operations"],
    dependencies=[Depends(in_workspace)],
    responses=documented(400, 401, 403, 404, 422, 503),
)

OperationId = Annotated[str, Path(description="From the start of it.", examples=["op-0123456789abcdef"])]


@router.post(
    "/reindex",
    status_code=202,
    response_model=schemas.OperationRef,
    summary="Start a reindex",
    responses=shown(202, examples.OPERATION_REF) | documented(409, 413),
)
async def reindex(workspace: WorkspaceName, body: schemas.ReindexRequest, shared: Shared, once: Once) -> Response:
    """Bring the index up to date with the files, in the background. The files are never changed."""
    start = shared.service.start_reindex
    return await once.quick(
        lambda: schemas.OperationRef(operation_id=start(workspace, body.paths, full=body.full).operation_id)
    )


@router.get(
    "/operations/{operation_id}", summary="See how far an operation is", responses=shown(200, examples.OPERATION)
)
def operation(workspace: WorkspaceName, operation_id: OperationId, shared: Shared) -> schemas.Operation:
    """State, progress, rate and time left; the report when it is done."""
    return answers.operation(shared.service.operations.get(workspace, operation_id))


@router.delete("/operations/{operation_id}", summary="Cancel an operation", responses=shown(200, examples.OPERATION))
def cancel(workspace: WorkspaceName, operation_id: OperationId, shared: Shared) -> schemas.Operation:
    """Stop it after the batch at hand. What it has written stays, and the next reindex goes on from there."""
    return answers.operation(shared.service.operations.cancel(workspace, operation_id))
