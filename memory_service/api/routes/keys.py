"""Routes of keys, for admins: made, listed and withdrawn without a restart."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Path
from starlette.responses import Response

from memory_service import schemas
from memory_service.api import examples
from memory_service.api.auth import grant_of
from memory_service.api.errors import error_responses
from memory_service.api.examples import success_response
from memory_service.api.requests import Shared, in_queue, json_response
from memory_service.service import needs

keys_router = APIRouter(
    prefix="/v1/keys", tags=["keys"], dependencies=[Depends(grant_of)], responses=error_responses(401, 403, 422, 503)
)


@keys_router.get("", summary="List the keys", responses=success_response(200, examples.KEYS))
@needs("admin")
@in_queue("read")
def list_keys(shared: Shared) -> schemas.AccessKeys:
    """All keys without their secrets: those of the setting `api_keys`, and those that were made."""
    return schemas.AccessKeys(keys=shared.service.access.keys())


@keys_router.post(
    "",
    status_code=201,
    response_model=schemas.MadeKey,
    summary="Make a key",
    responses=success_response(201, examples.MADE_KEY) | error_responses(400),
)
@needs("admin")
@in_queue("append")
def make_key(body: schemas.NewKey, shared: Shared) -> Response:
    """The answer alone tells the key. With the first one every request needs one, so let that be an admin's."""
    return json_response(shared.service.access.make(body), 201)


@keys_router.delete(
    "/{key_id}", summary="Withdraw a key", responses=success_response(200, examples.KEY) | error_responses(404)
)
@needs("admin")
@in_queue("append")
def withdraw_key(
    key_id: Annotated[str, Path(description="Its id, as the list has it.", examples=["0123456789ab"])], shared: Shared
) -> schemas.AccessKey:
    """It is no key any more, in every process within a second; those of the setting `api_keys` are taken out there."""
    return shared.service.access.withdraw(key_id)
