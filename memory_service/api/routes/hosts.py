"""Route of hooks: a host's own JSON in, its own answer out."""

from __future__ import annotations

import codecs
import json
from collections.abc import Callable
from contextlib import suppress
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Request
from fastapi.responses import JSONResponse, Response
from starlette.background import BackgroundTask

from memory_service.api.auth import file_access, grant_of, workspace_of
from memory_service.api.errors import error_responses
from memory_service.api.pools import Pools
from memory_service.api.requests import Shared
from memory_service.errors import CallCancelled, InvalidRequest, NotFound, TooManyRequests
from memory_service.hosts import HOSTS
from memory_service.service import Grant

hosts_router = APIRouter(
    prefix="/v1/hooks", tags=["hooks"], responses=error_responses(400, 401, 403, 404, 413, 422, 503)
)

_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "description": "As the host writes it.",
        "content": {"application/json": {"schema": {"type": "object", "additionalProperties": True}}},
    }
}
HostPath = Annotated[
    str,
    Path(
        description=f"Name of the host: {', '.join(HOSTS)}.",
        examples=["claude-code"],
        json_schema_extra={"enum": [*HOSTS]},
    ),
]


@hosts_router.post("/{host}", summary="Answer a hook of a coding agent", response_class=Response, openapi_extra=_BODY)
async def hook(
    host: HostPath, request: Request, shared: Shared, grant: Annotated[Grant, Depends(grant_of)]
) -> Response:
    """Memories for the agent, in the shape that its host reads; an empty object where there is nothing to say.

    The body is the host's own JSON. The memory is that of the project which the agent works in, unless
    `X-Memory-Workspace` names one, or the key is for one. A transcript is read only for a host on this machine, below
    the folders of hosts, the home, and those of the setting `host_folders`; never for a call through a proxy.
    A failure of the memory is a line of `hooks.log` in the home, and never one of the agent.
    """
    if host not in HOSTS:
        raise NotFound(f"There is no host {host[:80]!r}. Use {', '.join(HOSTS)}.")
    from memory_service.hosts.hooks.hook_calls import handle_hook

    call = _call_of(await request.body())
    is_named = not grant.is_for_all or "x-memory-workspace" in request.headers
    access = file_access(request, grant)
    answer = await shared.pools.queues.of("hook").run(
        lambda: handle_hook(
            shared.service,
            host,
            call,
            workspace=workspace_of(request.headers, grant) if is_named else None,
            access=access,
        ),
        receive=request.receive,
    )
    shared.metrics.count_degraded(answer.faults)
    return JSONResponse(answer.answer, background=BackgroundTask(_done_afterwards, answer.afterwards, shared.pools))


async def _done_afterwards(work: Callable[[Callable[[], bool]], None], pools: Pools) -> None:
    # What is not done now, the next hook does.
    with suppress(TooManyRequests, CallCancelled):
        await pools.work.run(lambda: work(pools.is_ending))


def _call_of(body: bytes) -> dict[str, object]:
    try:
        call = json.loads(body.lstrip(codecs.BOM_UTF8))
    except (ValueError, RecursionError):
        raise InvalidRequest("The body is no JSON. Send the host's own JSON as it came.") from None
    if not isinstance(call, dict):
        raise InvalidRequest("The body is no JSON object. Send the host's own JSON as it came.")
    return call
