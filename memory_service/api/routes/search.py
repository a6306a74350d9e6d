"""Route of search."""

from __future__ import annotations

import time

from fastapi import APIRouter, Depends

from memory_service import answers, schemas
from memory_service.api import examples
from memory_service.api.auth import WorkspaceName, in_workspace
from memory_service.api.errors import documented
from memory_service.api.examples import shown
from memory_service.api.requests import search_filter
from memory_service.api.state import Shared

router = APIRouter(prefix="/v1/workspaces/{workspace}", tags=["search"], dependencies=[Depends(in_workspace)])


@router.post(
    "/search",
    summary="Search the memories",
    responses=shown(200, examples.RESULTS) | documented(400, 401, 403, 404, 413, 422, 503),
)
def search(workspace: WorkspaceName, body: schemas.SearchRequest, shared: Shared) -> schemas.SearchResults:
    """The passages that answer a question, best first, by meaning and by words.

    The query is plain text: quotes, operators and wildcards have no special meaning.
    """
    started = time.perf_counter()
    found = shared.service.search(
        workspace,
        body.query,
        limit=body.limit,
        mode=body.mode,
        kept=search_filter(body),
        explain=body.explain,
        order=body.order,
    )
    seconds = time.perf_counter() - started
    shared.metrics.searched(seconds)
    shared.metrics.missed(found.degraded)
    fusion = shared.service.settings.ranking.fusion
    return answers.search_results(
        found, fusion=fusion, min_score=body.min_score, explain=body.explain, took_ms=1000 * seconds
    )
