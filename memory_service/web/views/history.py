"""The earlier versions of a memory file, beside what it says now, and the way back to one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Final, Literal, NamedTuple

from starlette.responses import Response

from memory_service.errors import Conflict, PreconditionFailed
from memory_service.web.views.files import file_in_full
from memory_service.web.visit import Visit

# So many equal lines are shown around a difference.
_CONTEXT_LINES: Final = 3
# So many lines are shown at most, and of each so many characters.
_LINES: Final = 2_000
_LINE_CHARS: Final = 2_000
# Of longer texts all lines count as others: to compare them would take seconds.
_COMPARED: Final = 4_000_000


class ShownLine(NamedTuple):
    """A line of a comparison: of both texts, of the old one or of the new one alone; or a gap of equal lines."""

    kind: Literal["same", "gone", "new", "gap"]
    text: str


def history_page(visit: Visit, status: int = 200, message: str = "") -> Response:
    """The versions of a file, and one of them compared with what the file says now."""
    path, version_id = str(visit.request.path_params["path"]), visit.query.get("version", "")
    answer = visit.service.versions(visit.workspace, path)
    version = next((known for known in answer.versions if known.version_id == version_id), None)
    file = file_in_full(visit, answer.path)
    lines, is_cut = list[ShownLine](), False
    if version is not None:
        old = file_in_full(visit, answer.path, version_id)
        lines = list(_compared_lines(old.text.splitlines(), file.text.splitlines()))
        is_cut = len(lines) > _LINES or any(len(line.text) > _LINE_CHARS for line in lines)
    return visit.page(
        "history",
        status,
        history=answer,
        version=version,
        etag=file.etag,
        lines=[line._replace(text=line.text[:_LINE_CHARS]) for line in lines[:_LINES]],
        is_cut=is_cut,
        message=message,
    )


def restore_version(visit: Visit) -> Response:
    """Write a version over a file that still says what the person saw; what it says becomes a version itself."""
    path, version_id = str(visit.request.path_params["path"]), visit.query.get("version", "")
    old = file_in_full(visit, path, version_id)
    try:
        visit.service.put(visit.workspace, path, old.text, if_match=visit.form.get("etag", ""))
    except (PreconditionFailed, Conflict) as error:
        return history_page(visit, 409, str(error))
    return visit.go(f"/w/{visit.workspace}/files/{path}")


def _compared_lines(old: Sequence[str], new: Sequence[str]) -> Iterator[ShownLine]:
    """The lines in which two texts differ, with some around them."""
    start = next((at for at, pair in enumerate(zip(old, new, strict=False)) if pair[0] != pair[1]), None)
    start = min(len(old), len(new)) if start is None else start
    rest = min(len(old), len(new)) - start
    end = next((at for at in range(rest) if old[-1 - at] != new[-1 - at]), rest)
    old_end, new_end = len(old) - end, len(new) - end
    shown = 0  # lines of the new text that are told
    for old_from, old_to, new_from, new_to in _differences(old[start:old_end], new[start:new_end]):
        yield from _around(new, shown, start + new_from)
        yield from (ShownLine("gone", line) for line in old[start + old_from : start + old_to])
        yield from (ShownLine("new", line) for line in new[start + new_from : start + new_to])
        shown = start + new_to
    if shown or start < old_end:
        yield from _around(new, shown, len(new), is_last=True)


def _differences(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[int, int, int, int]]:
    """The places at which two lists of lines differ, in both."""
    if len(old) * len(new) > _COMPARED:
        yield 0, len(old), 0, len(new)
        return
    for kind, *places in SequenceMatcher(None, old, new).get_opcodes():
        if kind != "equal":
            old_from, old_to, new_from, new_to = places
            yield old_from, old_to, new_from, new_to


def _around(lines: Sequence[str], start: int, end: int, *, is_last: bool = False) -> Iterator[ShownLine]:
    """Equal lines before a difference and after the one before it, those between them as a gap."""
    head = min(start + _CONTEXT_LINES, end) if start or is_last else start
    tail = end if is_last else max(head, end - _CONTEXT_LINES)
    yield from (ShownLine("same", line) for line in lines[start:head])
    gap = (end - head) if is_last else (tail - head)
    if gap:
        yield ShownLine("gap", str(gap))
    if not is_last:
        yield from (ShownLine("same", line) for line in lines[tail:end])
