"""Routes of the server itself: health, version, numbers. None but the numbers needs a key."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Depends, Response

from memory_service import schemas
from memory_service._version import __version__
from memory_service.api import examples
from memory_service.api.auth import in_every_workspace
from memory_service.api.errors import documented
from memory_service.api.examples import shown
from memory_service.api.metrics import CONTENT_TYPE
from memory_service.api.state import Shared

router = APIRouter(tags=["server"])
_UNREADY: dict[int | str, dict[str, Any]] = {
    503: {"model": schemas.Health, "description": "It cannot serve now; `degraded` says why."}
}
_NUMBERS: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "Text format of Prometheus."}
}


@router.get("/health/live", summary="Whether the server lives", responses=shown(200, examples.HEALTHY))
def live() -> schemas.Health:
    """Always ok: who gets this answer talks to a living server."""
    return schemas.Health(status="ok")


@router.get("/health/ready", summary="Whether the server can serve", responses=shown(200, examples.HEALTHY) | _UNREADY)
def ready(shared: Shared, response: Response) -> schemas.Health:
    """Unavailable while the model is loading or the home cannot be used; ok without a model that failed to load."""
    faults = list(shared.service.ready())
    if shared.warm_up.loading:
        faults.append("vector: the model is being loaded. Ask again in a second.")
    response.status_code = 503 if faults else 200
    failure = [shared.warm_up.failure] if shared.warm_up.failure else []
    return schemas.Health(status="unavailable" if faults else "ok", degraded=faults + failure)


@router.get("/version", summary="What is running", responses=shown(200, examples.VERSION))
def version(shared: Shared) -> schemas.Version:
    """Version of the server, and its embedding model."""
    return schemas.Version(version=__version__, embedding_model=shared.service.embedding_model)


@router.get(
    "/metrics",
    dependencies=[Depends(in_every_workspace)],
    response_class=Response,
    summary="Numbers for Prometheus",
    responses=_NUMBERS | documented(401, 403),
)
def metrics(shared: Shared) -> Response:
    """Requests, latencies, tokens injected, memories written, degraded answers. With keys, one for `*` is needed."""
    return Response(shared.metrics.exposition(), media_type=CONTENT_TYPE)
