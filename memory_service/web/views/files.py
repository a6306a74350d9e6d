"""The memory files: read, written, and what of them is forgotten."""

from __future__ import annotations

import re
from typing import Final

from starlette.responses import Response

from memory_service.errors import Conflict, NotFound, PreconditionFailed
from memory_service.schemas.memories import FileText
from memory_service.web.markdown import outline_of
from memory_service.web.visit import Visit

# What `get` gives at once.
_LINES: Final = 2_000
_MOST_LINES: Final = 400_000
_MOST_ENTRIES: Final = 500
# Where an entry's comment stands in its file: that is told beside the entry.
_COMMENT: Final = re.compile(r"[ \t]*<!--[^\n]*?-->")
_LOG: Final = re.compile(r"sessions/(.+)\.jsonl(?:#L(\d+).*)?")


def file_list(visit: Visit) -> Response:
    """All files, and a form for a new note."""
    return visit.page("files", files=visit.service.files(visit.workspace), text="", message="")


def note_memory(visit: Visit) -> Response:
    """Note a new memory in today's file."""
    visit.service.remember(visit.workspace, visit.form.get("text", ""), origin="user")
    return visit.go(f"/w/{visit.workspace}/files")


def file_page(visit: Visit) -> Response:
    """A file as a person reads it, its outline, and each of its entries with where it comes from."""
    path = str(visit.request.path_params["path"])
    if log := _LOG.fullmatch(path):
        return visit.go(f"/w/{visit.workspace}/sessions/{log[1]}")
    if visit.query.get("as") == "source":
        start = max(1, visit.number("from", 1, 10**9))
        return visit.page("source", file=visit.service.get(visit.workspace, path, start, _LINES))
    file = _whole(visit, path)
    entries = []
    if not path.startswith("@"):
        entries = visit.service.entries(visit.workspace, path=file.path, limit=_MOST_ENTRIES).entries
    return visit.page(
        "file",
        file=file,
        text=_COMMENT.sub("", file.text),
        outline=outline_of(file.text),
        entries=sorted(entries, key=lambda entry: entry.start_line),
    )


def edit_page(visit: Visit) -> Response:
    """A file in a form."""
    path = str(visit.request.path_params["path"])
    try:
        file = _whole(visit, path)
    except NotFound:
        return visit.page("edit", path=path, text="", etag="", theirs=None, message="")
    return visit.page("edit", path=file.path, text=file.text, etag=file.etag, theirs=None, message="")


def save_file(visit: Visit) -> Response:
    """Write a file that is still as it was opened; else both versions are shown, to be made one by the person."""
    path = str(visit.request.path_params["path"])
    # A form sends every line end as two characters.
    text, etag = visit.form.get("text", "").replace("\r\n", "\n"), visit.form.get("etag", "")
    try:
        visit.service.put(visit.workspace, path, text, if_match=etag or None, if_none_match=not etag)
    except (PreconditionFailed, Conflict) as error:
        try:
            theirs = _whole(visit, path)
        except NotFound:
            return visit.page("edit", 409, path=path, text=text, etag="", theirs="", message=str(error))
        return visit.page("edit", 409, path=path, text=text, etag=theirs.etag, theirs=theirs.text, message=str(error))
    return visit.go(f"/w/{visit.workspace}/files/{path}")


def forget_page(visit: Visit) -> Response:
    """A memory that would be erased, before it is."""
    memory = visit.query.get("memory", "")
    answer = visit.service.forget(visit.workspace, memory, dry_run=True)
    return visit.page("forget", memory=memory, answer=answer, back=visit.query.get("back", ""))


def forget_memory(visit: Visit) -> Response:
    """Erase it, and show where it was looked for."""
    memory = visit.form.get("memory", "")
    answer = visit.service.forget(visit.workspace, memory)
    return visit.page("forget", memory=memory, answer=answer, back=visit.form.get("back", ""))


def _whole(visit: Visit, path: str) -> FileText:
    """All of a file, which `get` gives in ranges."""
    file = visit.service.get(visit.workspace, path, 1, _LINES)
    parts, following = [file.text], file.next_start_line
    while following is not None and following < _MOST_LINES:
        more = visit.service.get(visit.workspace, path, following, _LINES)
        if more.etag != file.etag:
            return _whole(visit, path)
        parts.append(more.text)
        following = more.next_start_line
    return file.model_copy(update={"text": "".join(parts), "end_line": file.total_lines, "next_start_line": None})
