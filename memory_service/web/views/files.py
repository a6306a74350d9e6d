"""The memory files: read, written, and what of them is forgotten."""

from __future__ import annotations

import re
from functools import partial
from typing import Any, Final

from starlette.responses import Response

from memory_service.errors import Conflict, Forbidden, InvalidRequest, NotFound, PreconditionFailed
from memory_service.schemas.memories import FileText
from memory_service.web.markdown import outline_of
from memory_service.web.views.sessions import messages_at
from memory_service.web.visit import Visit, written_day

# A file is shown in parts of so many lines and characters; of a longer line its beginning.
_LINES: Final = 1_000
_CHARS: Final = 200_000
# So many lines are shown before one that is looked for, in a part of its own.
_LINES_BEFORE: Final = 20
_LINE_CHARS: Final = 20_000
# What `get` gives at once.
_MOST_LINES: Final = 2_000
_MOST_ENTRIES: Final = 500
# Of what would be erased so much is shown.
_MOST_REMOVED: Final = 200
# All entries of a file are read to list some: those of a longer one would take seconds.
_MOST_LISTED_LINES: Final = 20_000
# A form holds no more: what is larger is for an editor.
_MOST_EDIT_CHARS: Final = 2_000_000
# Where an entry's comment stands in its file: that is told beside the entry.
_COMMENT: Final = re.compile(r"[ \t]*<!--[^\n]*?-->")
DAY_FILE: Final = re.compile(r"memory/(?:.*/)?(\d{4}-\d{2}-\d{2})[^/]*\.md")
_LOG: Final = re.compile(r"sessions/(.+)\.jsonl(?:#L(\d+).*)?")


def file_list(visit: Visit) -> Response:
    """All files, or those of a day, and a form for a new note."""
    files, day = visit.service.files(visit.workspace), written_day(visit.query.get("day", ""))
    if day:
        files = [file for file in files if (match := DAY_FILE.fullmatch(file.path)) and match[1] == str(day)]
    return visit.page("files", files=files, day=day)


def note_memory(visit: Visit) -> Response:
    """Note a new memory in today's file."""
    visit.service.remember(visit.workspace, visit.form.get("text", ""), origin="user")
    return visit.go(f"/w/{visit.workspace}/files")


def file_page(visit: Visit) -> Response:
    """A file as a person reads it, its outline, and each of its entries with where it comes from."""
    path = str(visit.request.path_params["path"])
    if log := _LOG.fullmatch(path):
        return visit.go(f"/w/{visit.workspace}/sessions/{log[1]}")
    part = _part_at(visit, path, visit.number("from", 1, 10**9), visit.number("at", 0, 10**9))
    file: FileText = part["file"]
    if visit.query.get("as") == "source":
        return visit.page("source", **part)
    entries = []
    is_listed = file.total_lines <= _MOST_LISTED_LINES
    is_memory = not path.startswith("@")
    if is_listed and is_memory:
        # A list of entries goes on above the line at which the one before it ended.
        end = f"{file.path}#L{file.end_line + 1}"
        entries = visit.service.entries(visit.workspace, path=file.path, limit=_MOST_ENTRIES, cursor=end).entries
    text = _COMMENT.sub("", file.text)
    return visit.page(
        "file",
        history=visit.service.versions(visit.workspace, path) if is_memory else None,
        shown="",
        text=text,
        is_listed=is_listed,
        outline=outline_of(text, file.start_line),
        entries=sorted(
            (entry for entry in entries if entry.start_line >= file.start_line), key=lambda entry: entry.start_line
        ),
        **part,
    )


def edit_page(visit: Visit) -> Response:
    """A file in a form."""
    if not visit.may_write:
        raise Forbidden("The key may read this file, and not change it. Sign in with another one.")
    path = str(visit.request.path_params["path"])
    try:
        file = file_in_full(visit, path)
    except NotFound:
        return visit.page("edit", path=path, text="", etag="", theirs=None)
    return visit.page("edit", path=file.path, text=file.text, etag=file.etag, theirs=None)


def save_file(visit: Visit) -> Response:
    """Write a file that is still as it was opened; else both versions are shown, to be made one by the person."""
    path = str(visit.request.path_params["path"])
    # A form sends every line end as two characters.
    text, etag = visit.form.get("text", "").replace("\r\n", "\n"), visit.form.get("etag", "")
    try:
        visit.service.put(visit.workspace, path, text, if_match=etag or None, if_none_match=not etag)
    except (PreconditionFailed, Conflict):
        try:
            theirs = file_in_full(visit, path)
        except NotFound:
            return visit.page("edit", 409, path=path, text=text, etag="", theirs="")
        if theirs.text == text:
            # The form was sent twice.
            return visit.go(f"/w/{visit.workspace}/files/{path}")
        return visit.page("edit", 409, path=path, text=text, etag=theirs.etag, theirs=theirs.text)
    return visit.go(f"/w/{visit.workspace}/files/{path}")


def forget_page(visit: Visit) -> Response:
    """A memory that would be erased, before it is."""
    memory = visit.query.get("memory", "")
    answer = visit.service.forget(visit.workspace, memory, dry_run=True)
    messages = {removal.citation: messages_at(visit, removal.citation) for removal in answer.removed[:_MOST_REMOVED]}
    return visit.page("forget", memory=memory, answer=answer, messages=messages, back=visit.query.get("back", ""))


def forget_memory(visit: Visit) -> Response:
    """Erase it, and show where it was looked for."""
    memory = visit.form.get("memory", "")
    answer = visit.service.forget(visit.workspace, memory)
    return visit.page("forget", memory=memory, answer=answer, back=visit.form.get("back", ""))


def _part_at(visit: Visit, path: str, first: int, line: int) -> dict[str, Any]:
    """The part of a file that begins with a line, or one that has another line, which is looked for."""
    part = _part(visit, path, max(1, first))
    line = min(line, part["file"].total_lines)
    if line <= part["file"].end_line:
        return part
    near = _part(visit, path, max(1, line - _LINES_BEFORE))
    return near if line <= near["file"].end_line else _part(visit, path, line)


def _part(visit: Visit, path: str, first: int) -> dict[str, Any]:
    """The part of a file that begins with a line, and where the parts before and after it begin."""
    file = visit.service.get(visit.workspace, path, first, _LINES)
    lines, size, is_cut = list[str](), 0, False
    for line in file.text.splitlines(keepends=True):
        shown = line if len(line) <= _LINE_CHARS else f"{line[:_LINE_CHARS]}…\n"
        if lines and size + len(shown) > _CHARS:
            break
        is_cut = is_cut or shown is not line
        lines.append(shown)
        size += len(shown)
    end = first + len(lines) - 1
    following = end + 1 if lines and end < file.total_lines else None
    shown_file = file.model_copy(update={"text": "".join(lines), "end_line": end, "next_start_line": following})
    may_edit = visit.may_write and not path.startswith("@")
    return {
        "file": shown_file,
        "earlier": max(1, first - _LINES) if first > 1 else 0,
        "is_cut": is_cut,
        "may_edit": may_edit,
    }


def file_in_full(visit: Visit, path: str, version: str | None = None) -> FileText:
    """All of a file, or of a version of it, which `get` gives in ranges.

    Raises:
        InvalidRequest: It is too large for a form.
    """
    get = partial(visit.service.get, visit.workspace, path, version=version)
    file = get(1, _MOST_LINES)
    parts, following, size = [file.text], file.next_start_line, len(file.text)
    while following is not None and size <= _MOST_EDIT_CHARS:
        more = get(following, _MOST_LINES)
        if more.etag != file.etag:
            return file_in_full(visit, path, version)
        parts.append(more.text)
        size += len(more.text)
        following = more.next_start_line
    if size > _MOST_EDIT_CHARS:
        raise InvalidRequest(f"The file {path} is too large for a form. Change it in an editor: the page follows.")
    return file.model_copy(update={"text": "".join(parts), "end_line": file.total_lines, "next_start_line": None})
