"""Routes of memories: entries and files, search, and contexts with their receipts."""

from __future__ import annotations

import time
from typing import Annotated

from fastapi import APIRouter, Depends, Header, Path, Query, Response

from memory_service import schemas
from memory_service.api import examples
from memory_service.api.auth import WorkspaceName, in_workspace
from memory_service.api.errors import error_responses
from memory_service.api.examples import ETAG_HEADER, success_response
from memory_service.api.requests import (
    IdempotencyKey,
    IfMatch,
    IfNoneMatch,
    Once,
    Shared,
    condition,
    in_queue,
    json_response,
    well_encoded,
)
from memory_service.service import needs

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
DeletedIfMatch = Annotated[
    str | None,
    Header(alias="If-Match", description="The etag of the file that is erased; without it, whatever it says now."),
]
Lines = Annotated[int | None, Query(ge=1, le=10**9, description="How many lines; 2,000 at most, which is the default.")]

FileVersionId = Annotated[
    str | None, Query(description="Id of an earlier version, as `GET …/versions/{path}` lists them.")
]


@memories_router.post(
    "/memories",
    status_code=201,
    response_model=schemas.StoredMemory,
    summary="Remember something",
    responses=success_response(201, examples.STORED) | error_responses(409, 413),
)
@in_queue("append")
def remember(workspace: WorkspaceName, body: schemas.NewMemory, shared: Shared, key: IdempotencyKey = None) -> Response:
    """Append a memory to the file of its day. It is on disk and searchable when the answer arrives.

    The same text on the same day is stored once. The workspace is created by its first memory.
    """
    memory = shared.service.remember(
        workspace,
        body.text,
        tags=body.tags,
        date=body.date,
        origin=body.origin,
        session_id=body.session_id,
        idempotency_key=key,
    )
    if not (memory.replayed or memory.duplicate):
        shared.metrics.count_memory()
    shared.metrics.count_degraded(memory.degraded)
    return json_response(memory, 201, replayed=memory.replayed)


@memories_router.get(
    "/memories", summary="List the memory files", responses=success_response(200, examples.FILES) | error_responses(404)
)
@in_queue("read")
def list_files(workspace: WorkspaceName, shared: Shared) -> schemas.MemoryFiles:
    """All memory files of the workspace, by path."""
    return schemas.MemoryFiles(files=shared.service.files(workspace))


@memories_router.get(
    "/versions/{path:path}",
    summary="List the earlier versions of a memory file",
    responses=success_response(200, examples.VERSIONS) | error_responses(404),
)
@in_queue("read")
def list_versions(workspace: WorkspaceName, path: FilePath, shared: Shared) -> schemas.FileVersions:
    """The contents that edits took the place of, the last replaced first: at most 100, of 90 days.

    An append loses nothing, and makes none. `GET …/memories/{path}?version=…` reads one. Where memories are files in a
    folder there are none.
    """
    return shared.service.versions(workspace, path)


@memories_router.delete(
    "/versions/{path:path}",
    summary="Erase the earlier versions of a memory file",
    responses=success_response(200, examples.ERASED_VERSIONS) | error_responses(404),
)
@in_queue("append")
def erase_versions(workspace: WorkspaceName, path: FilePath, shared: Shared) -> schemas.ErasedVersions:
    """Erase what was edited out of a file; the file stays. What is forgotten goes from the versions by itself."""
    return shared.service.erase_versions(workspace, path)


@memories_router.get(
    "/memories/{path:path}",
    summary="Read a memory file",
    responses=success_response(200, examples.TEXT, ETAG_HEADER) | error_responses(404),
)
@in_queue("read")
def read_file(
    workspace: WorkspaceName,
    path: ReadPath,
    shared: Shared,
    response: Response,
    start_line: StartLine = 1,
    lines: Lines = None,
    version: FileVersionId = None,
) -> schemas.FileText:
    """A range of lines, exactly as they stand in the file, or in an earlier version of it."""
    file_text = shared.service.get(workspace, path, start_line, lines, version=version)
    response.headers["ETag"] = f'"{file_text.etag}"'
    return file_text


@memories_router.put(
    "/memories/{path:path}",
    summary="Write a memory file",
    responses=success_response(200, examples.WRITTEN, ETAG_HEADER) | error_responses(404, 412, 413),
)
@in_queue("append")
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
    file = shared.service.put(workspace, path, body.text, if_match=must.if_match, if_none_match=must.if_none_match)
    response.headers["ETag"] = f'"{file.etag}"'
    shared.metrics.count_degraded(file.degraded)
    return file


@memories_router.delete(
    "/memories/{path:path}",
    summary="Erase a memory file",
    responses=success_response(200, examples.ERASED) | error_responses(404, 412),
)
@in_queue("append")
def delete_file(
    workspace: WorkspaceName, path: FilePath, shared: Shared, if_match: DeletedIfMatch = None
) -> schemas.ErasedFile:
    """Erase a file from disk and from the index. With `If-Match`, one that was changed meanwhile stays: 412."""
    file = shared.service.delete(workspace, path, if_match=condition(if_match, None).if_match)
    shared.metrics.count_degraded(file.degraded)
    return file


MemoryIdPath = Annotated[
    str,
    Path(
        description="Id of the entry, as a result or the answer to a new memory names it.", examples=["m0123456789ab"]
    ),
]
EntryTags = Annotated[
    list[str],
    Query(
        alias="tag", max_length=16, description="Only entries that have all of these tags; may be sent several times."
    ),
]
EntryRole = Annotated[
    schemas.NotedOrigin | None,
    Query(description="Only entries that are somebody's word; what was written by hand is the user's."),
]
EntrySession = Annotated[str | None, Query(description="Only entries that were taken from a session.")]
EntryPath = Annotated[str | None, Query(max_length=512, description="Only entries of this file.")]
EntryLimit = Annotated[int, Query(ge=1, le=schemas.MAX_LISTED, description="The most entries of an answer.")]
EntryCursor = Annotated[str | None, Query(description="`next_cursor` of the list before this one.")]
DryRun = Annotated[bool, Query(description="Erase nothing, show what would go.")]
EntryIfMatch = Annotated[
    str | None,
    Header(alias="If-Match", description="The etag of the entry that is changed; without it, whatever it says now."),
]


@memories_router.get("/entries", summary="List the entries", responses=success_response(200, examples.ENTRIES))
@in_queue("read")
def list_entries(
    workspace: WorkspaceName,
    shared: Shared,
    tags: EntryTags = [],  # noqa: B006  (FastAPI copies it)
    origin: EntryRole = None,
    session_id: EntrySession = None,
    since: schemas.Since = None,
    until: schemas.Until = None,
    path: EntryPath = None,
    limit: EntryLimit = 50,
    cursor: EntryCursor = None,
) -> schemas.MemoryEntries:
    """Entries, those of the newest day first and there the last one; then those of files without a day.

    Entries are list items of dated files, and what stands below the comment of an entry in any file.
    """
    return shared.service.entries(
        workspace,
        tags=tags,
        origin=origin,
        session_id=session_id,
        since=since,
        until=until,
        path=path,
        limit=limit,
        cursor=cursor,
    )


@memories_router.get(
    "/entries/{memory_id:path}",
    summary="Read an entry",
    responses=success_response(200, examples.ENTRY, ETAG_HEADER) | error_responses(404, 409),
)
@in_queue("read")
def read_entry(
    workspace: WorkspaceName, memory_id: MemoryIdPath, shared: Shared, response: Response
) -> schemas.MemoryEntry:
    """One entry, with the etag that a change takes."""
    memory_entry = shared.service.entry(workspace, memory_id)
    response.headers["ETag"] = f'"{memory_entry.etag}"'
    return memory_entry


@memories_router.patch(
    "/entries/{memory_id:path}",
    summary="Change an entry",
    responses=success_response(200, examples.CHANGED, ETAG_HEADER) | error_responses(404, 409, 412),
)
@in_queue("append")
def edit(
    workspace: WorkspaceName,
    memory_id: MemoryIdPath,
    body: schemas.EntryChange,
    shared: Shared,
    response: Response,
    if_match: EntryIfMatch = None,
) -> schemas.ChangedEntry:
    """Change the text or the tags of an entry. It keeps its id, its day and its place in the file.

    New words are those of who changes it, the user unless `origin` says otherwise. With `If-Match`, an entry that was
    changed meanwhile stays as it is: 412.
    """
    entry = shared.service.edit(
        workspace,
        memory_id,
        text=body.text,
        tags=body.tags,
        origin=body.origin,
        etag=condition(if_match, None).if_match,
    )
    response.headers["ETag"] = f'"{entry.etag}"'
    shared.metrics.count_degraded(entry.degraded)
    return entry


@memories_router.delete(
    "/entries/{memory_id:path}",
    summary="Forget a memory",
    responses=success_response(200, examples.FORGOTTEN) | error_responses(404, 409),
)
@in_queue("append")
def forget(
    workspace: WorkspaceName, memory_id: MemoryIdPath, shared: Shared, dry_run: DryRun = False
) -> schemas.ForgottenMemory:
    """Erase an entry from its file and from the index."""
    memory = shared.service.forget(workspace, memory_id, dry_run=dry_run)
    shared.metrics.count_degraded(memory.degraded)
    return memory


@memories_router.post(
    "/forget",
    response_model=schemas.ForgottenMemory,
    summary="Forget what is cited or named",
    responses=success_response(200, examples.FORGOTTEN) | error_responses(404, 409, 413),
)
async def forget_named(workspace: WorkspaceName, body: schemas.ForgetRequest, shared: Shared, once: Once) -> Response:
    """Erase what an id, a citation or words name, from its file and from the index.

    A citation is that of a result: lines of a file, a whole file, or a message of a session; an entry goes whole.
    Words erase only where they stand in one memory alone: else 409, and a dry run shows which come into question.
    """
    return await once.run_queued(
        "append",
        lambda: shared.service.forget(workspace, body.memory, query=body.query, dry_run=body.dry_run),
    )


search_router = APIRouter(prefix="/v1/workspaces/{workspace}", tags=["search"], dependencies=[Depends(in_workspace)])


@search_router.post(
    "/search",
    response_model=schemas.SearchResults,
    summary="Search the memories",
    responses=success_response(200, examples.RESULTS) | error_responses(400, 401, 403, 404, 413, 422, 503),
)
@needs("read")
@in_queue("search")
def search(workspace: WorkspaceName, body: schemas.SearchRequest, shared: Shared) -> Response:
    """The passages that answer a question, best first, by meaning and by words.

    The query is plain text: quotes, operators and wildcards have no special meaning.
    """
    results = shared.service.search(workspace, **dict(body))
    shared.metrics.count_search(results.took_ms / 1000)
    shared.metrics.count_degraded(results.degraded)
    return json_response(results)


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
@needs("read")
@in_queue("context")
def context(workspace: WorkspaceName, body: schemas.ContextRequest, shared: Shared) -> Response:
    """The memories that a prompt needs, as a block that is never over the budget, wrapper included."""
    started_time = time.perf_counter()
    context = shared.service.context(workspace, **dict(body))
    shared.metrics.count_context(time.perf_counter() - started_time, context.tokens)
    shared.metrics.count_degraded(context.degraded)
    return json_response(context)


@context_router.get(
    "/receipts/{receipt_id}",
    response_model=schemas.Receipt,
    summary="Read the receipt of a context",
    responses=success_response(200, examples.RECEIPT),
)
@in_queue("read")
def receipt(
    workspace: WorkspaceName,
    receipt_id: Annotated[str, Path(description="From the context.", examples=["r20261120-0123456789abcdef"])],
    shared: Shared,
) -> Response:
    """The receipt of a prompt: what was put into it and what was left out, with the reasons."""
    return json_response(shared.service.receipt(workspace, receipt_id))


ListLimit = Annotated[int, Query(ge=1, le=schemas.MAX_LISTED, description="The most of an answer.")]


@context_router.get(
    "/receipts",
    summary="List the newest receipts",
    responses=success_response(200, examples.RECEIPTS),
)
@in_queue("read")
def receipts(
    workspace: WorkspaceName,
    shared: Shared,
    session_id: Annotated[str | None, Query(description="Only those of prompts of this session.")] = None,
    limit: ListLimit = 50,
) -> schemas.ReceiptList:
    """The receipts of the last prompts, the newest first."""
    return shared.service.receipts(workspace, session_id=session_id, limit=limit)
