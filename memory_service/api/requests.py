"""Owns the way from what came over the wire to the service's values."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import unquote_to_bytes

from fastapi import Header, Request

from indexer import SearchFilter
from memory_service import schemas
from memory_service.errors import InvalidName, InvalidRequest
from memory_service.memories import NewMemory

_ETAG = re.compile(r'(?:W/)?"([^"\s]+)"|([^",\s]+)')

IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=255,
        pattern=r"^[\x21-\x7e]+$",
        description="The same request with the same key again does nothing again, and gets the same answer.",
    ),
]
IfMatch = Annotated[
    str | None, Header(alias="If-Match", description="The etag of the file that the new text replaces.")
]
IfNoneMatch = Annotated[str | None, Header(alias="If-None-Match", description="`*`: there must be no such file yet.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """What must hold for a file to be written."""

    if_match: str | None
    if_none_match: bool


async def well_encoded(request: Request) -> None:
    """Refuse a path that is no UTF-8: what it was decoded to may stand for several.

    Raises:
        InvalidName: It is none.
    """
    try:
        unquote_to_bytes(request.scope.get("raw_path", b"")).decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidName("The path of the request is not UTF-8. Percent-encode each name as UTF-8.") from None


def condition(if_match: str | None, if_none_match: str | None) -> Condition:
    """The condition that two headers state.

    Raises:
        InvalidRequest: One of them cannot be read.
    """
    if if_none_match not in (None, "*"):
        raise InvalidRequest("The header If-None-Match cannot be used. Send `If-None-Match: *` to create a file.")
    etag = _ETAG.fullmatch(if_match.strip()) if if_match is not None else None
    if if_match is not None and etag is None:
        raise InvalidRequest('The header If-Match cannot be read. Send the one etag you last saw: `If-Match: "…"`.')
    return Condition(if_match=(etag[1] or etag[2]) if etag else None, if_none_match=if_none_match == "*")


def new_memory(body: schemas.NewMemory, key: str | None) -> NewMemory:
    """What is to be remembered."""
    return NewMemory(
        text=body.text, tags=tuple(body.tags), date=body.date, origin=body.origin, session_id=body.session_id, key=key
    )


def search_filter(body: schemas.SearchRequest | schemas.ContextRequest) -> SearchFilter:
    """Which passages may be found."""
    prefix = body.path_prefix if isinstance(body, schemas.SearchRequest) else ""
    return SearchFilter(sources=tuple(body.sources), path_prefix=prefix, since=body.since, until=body.until)
