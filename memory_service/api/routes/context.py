"""Routes of contexts: the block that goes into a prompt, and the receipt of what it was made of."""

from __future__ import annotations

import time
from typing import Annotated

from fastapi import APIRouter, Depends, Path

from memory_service import answers, schemas
from memory_service.api import examples
from memory_service.api.auth import WorkspaceName, in_workspace
from memory_service.api.errors import documented
from memory_service.api.examples import shown
from memory_service.api.requests import search_filter
from memory_service.api.state import Shared

router = APIRouter(
    prefix="/v1/workspaces/{workspace}",
    tags=["context"],
    dependencies=[Depends(in_workspace)],
    responses=documented(400, 401, 403, 404, 422, 503),
)


@router.post(
    "/context", summary="Make a context for a prompt", responses=shown(200, examples.CONTEXT) | documented(413)
)
def context(workspace: WorkspaceName, body: schemas.ContextRequest, shared: Shared) -> schemas.Context:
    """The memories that a prompt needs, as a block that is never over the budget, wrapper included."""
    started = time.perf_counter()
    made = shared.service.context(
        workspace, body.query, budget_tokens=body.budget_tokens, kept=search_filter(body), order=body.order
    )
    shared.metrics.injected(time.perf_counter() - started, made.receipt.tokens)
    shared.metrics.missed(made.receipt.degraded)
    fusion = shared.service.settings.ranking.fusion
    return answers.context(made, system_prompt=body.system_prompt, fusion=fusion)


@router.get("/receipts/{receipt_id}", summary="Read the receipt of a context", responses=shown(200, examples.RECEIPT))
def receipt(
    workspace: WorkspaceName,
    receipt_id: Annotated[str, Path(description="From the context.", examples=["r20261120-0123456789abcdef"])],
    shared: Shared,
) -> schemas.Receipt:
    """What was put into a prompt and what was left out, with the reasons."""
    made = shared.service.receipt(workspace, receipt_id)
    return answers.receipt(made, fusion=shared.service.settings.ranking.fusion)
