"""Routes of the status: which workspaces there are and how each stands."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends

from memory_service import answers, schemas
from memory_service.api import examples
from memory_service.api.auth import EVERY_WORKSPACE, WorkspaceName, grant_of, in_workspace
from memory_service.api.errors import documented
from memory_service.api.examples import shown
from memory_service.api.state import Shared

router = APIRouter(prefix="/v1/workspaces", tags=["status"])


@router.get("", summary="List the workspaces", responses=shown(200, examples.WORKSPACES) | documented(401, 403, 503))
def workspaces(shared: Shared, grant: Annotated[str, Depends(grant_of)]) -> schemas.Workspaces:
    """Names of all workspaces that the key is for."""
    names = shared.service.workspaces()
    return schemas.Workspaces(workspaces=[name for name in names if grant in (EVERY_WORKSPACE, name)])


@router.get(
    "/{workspace}/status",
    dependencies=[Depends(in_workspace)],
    summary="See how a workspace stands",
    responses=shown(200, examples.STATUS) | documented(400, 401, 403, 404, 422, 503),
)
def status(workspace: WorkspaceName, shared: Shared) -> schemas.Status:
    """Counts, share of passages with a vector, files that changed since the last reindex, model and sizes."""
    found = shared.service.status(workspace)
    problems = shared.service.engine_problems(workspace)
    watched = shared.service.watch_state(workspace)
    return answers.status(workspace, found, shared.service.settings, degraded=problems, watched=watched)
