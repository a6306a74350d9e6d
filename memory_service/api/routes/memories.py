"""Routes of memories: entries and files, search, and contexts with their receipts."""

from __future__ import annotations

import time
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Response

from memory_service import schemas
from memory_service.api import examples
from memory_service.api.auth import WorkspaceName, in_workspace
from memory_service.api.errors import error_responses
from memory_service.api.examples import ETAG_HEADER, success_response
from memory_service.api.requests import (
    IdempotencyKey,
    IfMatch,
    IfNoneMatch,
    Shared,
    condition,
    json_response,
    queued,
    well_encoded,
)

memories_router = APIRouter(
    prefix="/v1/workspaces/{workspace}",
    tags=["memories"],
    dependencies=[Depends(in_workspace), Depends(well_encoded)],
    responses=error_responses(400, 401, 403, 422, 503),
)

# A part of a path: not empty, without a dot at its beginning or what no file name has. Without its end, ".md".
_PART = r"[^./\\\x00-\x1f][^/\\\x00-\x1f]*"
FilePath = Annotated[
    str,
    Path(
        description="MEMORY.md, USER.md or a file below memory/.",
        examples=["memory/2026-11-20.md"],
        json_schema_extra={
            "pattern": rf"^(MEMORY\.md|USER\.md|memory/({_PART}/)*{_PART}\.[mM][dD])$",
            "maxLength": 512,
        },
    ),
]
ReadPath = Annotated[
    str,
    Path(
        description="MEMORY.md, USER.md or a file below memory/; also @NAME/... of an extra folder.",
        examples=["memory/2026-11-20.md"],
        json_schema_extra={
            "pattern": rf"^(MEMORY\.md|USER\.md|memory/({_PART}/)*{_PART}\.[mM][dD]|@({_PART}/)+{_PART})$",
        },
    ),
]
StartLine = Annotated[int, Query(ge=1, le=10**9, description="The first line to read.")]
Lines = Annotated[int | None, Query(ge=1, le=10**9, description="How many lines; 2,000 at most, which is the default.")]


@memories_router.post(
    "/memories",
    status_code=201,
    response_model=schemas.StoredMemory,
    summary="Remember something",
    responses=success_response(201, examples.STORED) | error_responses(409, 413),
)
@queued("append")
def remember(workspace: WorkspaceName, body: schemas.NewMemory, shared: Shared, key: IdempotencyKey = None) -> Response:
    """Append a memory to the file of its day. It is on disk and searchable when the answer arrives.

    The same text on the same day is stored once. The workspace is created by its first memory.
    """
    stored = shared.service.remember(
        workspace,
        body.text,
        tags=body.tags,
        date=body.date,
        origin=body.origin,
        session_id=body.session_id,
        idempotency_key=key,
    )
    if not (stored.replayed or stored.duplicate):
        shared.metrics.remembered()
    shared.metrics.missed(stored.degraded)
    return json_response(stored, 201, replayed=stored.replayed)


@memories_router.get(
    "/memories", summary="List the memory files", responses=success_response(200, examples.FILES) | error_responses(404)
)
@queued("read")
def list_files(workspace: WorkspaceName, shared: Shared) -> schemas.MemoryFiles:
    """All memory files of the workspace, by path."""
    return schemas.MemoryFiles(files=shared.service.files(workspace))


@memories_router.get(
    "/memories/{path:path}",
    summary="Read a memory file",
    responses=success_response(200, examples.TEXT, ETAG_HEADER) | error_responses(404),
)
@queued("read")
def read_file(
    workspace: WorkspaceName,
    path: ReadPath,
    shared: Shared,
    response: Response,
    start_line: StartLine = 1,
    lines: Lines = None,
) -> schemas.FileText:
    """A range of lines, exactly as they stand in the file."""
    found = shared.service.get(workspace, path, start_line, lines)
    response.headers["ETag"] = f'"{found.etag}"'
    return found


@memories_router.put(
    "/memories/{path:path}",
    summary="Write a memory file",
    responses=success_response(200, examples.WRITTEN, ETAG_HEADER) | error_responses(404, 412, 413),
)
@queued("append")
def write_file(
    workspace: WorkspaceName,
    path: FilePath,
    body: schemas.FileWrite,
    shared: Shared,
    response: Response,
    if_match: IfMatch = None,
    if_none_match: IfNoneMatch = None,
) -> schemas.WrittenFile:
    """Replace a whole file, or create one.

    Exactly one condition is needed: `If-Match` with the etag that the new text was made from, or
    `If-None-Match: *` for a new file. When a person changed the file meanwhile, theirs stays: 412.
    """
    must = condition(if_match, if_none_match)
    written = shared.service.put(workspace, path, body.text, if_match=must.if_match, if_none_match=must.if_none_match)
    response.headers["ETag"] = f'"{written.etag}"'
    shared.metrics.missed(written.degraded)
    return written


@memories_router.delete(
    "/memories/{path:path}",
    summary="Erase a memory file",
    responses=success_response(200, examples.ERASED) | error_responses(404),
)
@queued("append")
def delete_file(workspace: WorkspaceName, path: FilePath, shared: Shared) -> schemas.ErasedFile:
    """Erase a file from disk and from the index."""
    erased = shared.service.delete(workspace, path)
    shared.metrics.missed(erased.degraded)
    return erased


@memories_router.delete(
    "/entries/{memory_id}",
    summary="Forget a memory",
    responses=success_response(200, examples.FORGOTTEN) | error_responses(404, 409),
)
@queued("append")
def forget(
    workspace: WorkspaceName,
    memory_id: Annotated[str, Path(description="What the answer to a new memory named.", examples=["m0123456789ab"])],
    shared: Shared,
) -> schemas.ForgottenMemory:
    """Erase an entry from its file and from the index."""
    forgotten = shared.service.forget(workspace, memory_id)
    shared.metrics.missed(forgotten.degraded)
    return forgotten


search_router = APIRouter(prefix="/v1/workspaces/{workspace}", tags=["search"], dependencies=[Depends(in_workspace)])


@search_router.post(
    "/search",
    response_model=schemas.SearchResults,
    summary="Search the memories",
    responses=success_response(200, examples.RESULTS) | error_responses(400, 401, 403, 404, 413, 422, 503),
)
@queued("search")
def search(workspace: WorkspaceName, body: schemas.SearchRequest, shared: Shared) -> Response:
    """The passages that answer a question, best first, by meaning and by words.

    The query is plain text: quotes, operators and wildcards have no special meaning.
    """
    found = shared.service.search(workspace, **dict(body))
    shared.metrics.searched(found.took_ms / 1000)
    shared.metrics.missed(found.degraded)
    return json_response(found)


context_router = APIRouter(
    prefix="/v1/workspaces/{workspace}",
    tags=["context"],
    dependencies=[Depends(in_workspace)],
    responses=error_responses(400, 401, 403, 404, 422, 503),
)


@context_router.post(
    "/context",
    response_model=schemas.Context,
    summary="Make a context for a prompt",
    responses=success_response(200, examples.CONTEXT) | error_responses(413),
)
@queued("context")
def context(workspace: WorkspaceName, body: schemas.ContextRequest, shared: Shared) -> Response:
    """The memories that a prompt needs, as a block that is never over the budget, wrapper included."""
    started = time.perf_counter()
    made = shared.service.context(workspace, **dict(body))
    shared.metrics.injected(time.perf_counter() - started, made.tokens)
    shared.metrics.missed(made.degraded)
    return json_response(made)


@context_router.get(
    "/receipts/{receipt_id}",
    response_model=schemas.Receipt,
    summary="Read the receipt of a context",
    responses=success_response(200, examples.RECEIPT),
)
@queued("read")
def receipt(
    workspace: WorkspaceName,
    receipt_id: Annotated[str, Path(description="From the context.", examples=["r20261120-0123456789abcdef"])],
    shared: Shared,
) -> Response:
    """The receipt of a prompt: what was put into it and what was left out, with the reasons."""
    return json_response(shared.service.receipt(workspace, receipt_id))
