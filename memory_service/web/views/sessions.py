"""The sessions: log and view side by side, what compactions did, and pins."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from starlette.responses import Response

from memory_service.errors import MemoryServiceError
from memory_service.schemas.base import make_request
from memory_service.schemas.compaction import BRANCH_MARK
from memory_service.schemas.sessions import ListedSession, NewBranch
from memory_service.web.visit import Visit, written_number

if TYPE_CHECKING:
    from memory_service.service import ShownCompaction, ShownMessage

_PAGE: Final = 200
# A text longer than this is folded.
_FOLD_CHARS: Final = 1_200
_MESSAGES: Final = re.compile(r"sessions/(?P<session>[^/]+)\.jsonl#L(?P<first>\d{1,15})(?:-L(?P<last>\d{1,15}))?")


def session_list(visit: Visit) -> Response:
    """All sessions, the last active first."""
    return visit.page("sessions", answer=visit.service.list_sessions(visit.workspace))


def session_page(visit: Visit) -> Response:
    """A part of the log beside what the model sees of it; the newest, unless another one is asked for."""
    service, workspace, session_id = visit.service, visit.workspace, str(visit.request.path_params["session_id"])
    if (last := service.unread_log(workspace, session_id)) and not visit.query.get("view"):
        return _log_page(visit, session_id, last)
    session = service.session_status(workspace, session_id)
    details = service.session_details(workspace, session_id)
    part = _part(visit, details.last_message)
    shown: range = part["shown"]
    view = service.shown_messages(workspace, session_id, "model", shown)
    log = service.shown_messages(workspace, session_id, "log", shown)
    pins = service.pins(workspace, session_id).pins
    return visit.page(
        "session",
        session=session,
        rows=_rows(log, view, details.compactions, shown, is_end=not part["later"]),
        compactions=details.compactions,
        newest=details.newest_compaction,
        pins=pins,
        pinned={pin.seq: pin.pin_id for pin in pins if pin.seq is not None},
        branches=_branches(visit, session_id),
        **part,
    )


def _log_page(visit: Visit, session_id: str, last: int) -> Response:
    """A part of a long log at once; what the model sees of it is put beside it when all of the log is read."""
    part = _part(visit, last)
    messages = visit.service.log_part(visit.workspace, session_id, part["shown"])
    return visit.page("session_log", session_id=session_id, messages=messages, **part)


def _part(visit: Visit, last: int) -> dict[str, Any]:
    """The part of a log that is asked for: its numbers, and where the parts before and after it end."""
    until = min(visit.number("until", last, max(last, 1)) or last, last)
    shown = range(max(1, until - _PAGE + 1), until + 1)
    later = min(last, until + _PAGE) if until < last else 0
    at = visit.number("at", 0, last)
    branch = visit.number("branch", 0, last)
    places = {"earlier": shown.start - 1, "later": later, "at": at, "until": until, "branch": branch}
    return {"shown": shown, "fold": _FOLD_CHARS, **places}


def messages_at(visit: Visit, citation: str) -> list[ShownMessage]:
    """The messages of a session that a citation names; none for any other place, and where they are gone."""
    match = _MESSAGES.fullmatch(citation)
    if match is None:
        return []
    first = int(match["first"])
    try:
        return visit.service.log_part(visit.workspace, match["session"], range(first, int(match["last"] or first) + 1))
    except MemoryServiceError:
        return []


def undo_compaction(visit: Visit) -> Response:
    """Take a compaction back."""
    session_id = str(visit.request.path_params["session_id"])
    visit.service.undo(visit.workspace, session_id, visit.form.get("compaction", "") or None)
    return visit.go(f"/w/{visit.workspace}/sessions/{session_id}")


def branch_session(visit: Visit) -> Response:
    """Begin a session with the messages up to one; a form that is sent twice leads to the same one."""
    session_id, seq = str(visit.request.path_params["session_id"]), written_number(visit.form.get("seq", ""))
    request = make_request(NewBranch, seq=seq or 0, title=visit.form.get("title", ""))
    branch = visit.service.branch(visit.workspace, session_id, request)
    return visit.go(f"/w/{visit.workspace}/sessions/{branch.session_id}#m{seq}")


def pin_text(visit: Visit) -> Response:
    """Keep a text, or a message, in every view."""
    session_id = str(visit.request.path_params["session_id"])
    seq, text = visit.form.get("seq", ""), visit.form.get("text", "")
    if seq.isascii() and seq.isdigit():
        visit.service.pin(visit.workspace, session_id, seq=int(seq[:15]))
    else:
        visit.service.pin(visit.workspace, session_id, text)
    return visit.go(f"/w/{visit.workspace}/sessions/{session_id}")


def remove_pin(visit: Visit) -> Response:
    """Keep a pin no longer."""
    session_id = str(visit.request.path_params["session_id"])
    visit.service.unpin(visit.workspace, session_id, visit.form.get("pin", ""))
    return visit.go(f"/w/{visit.workspace}/sessions/{session_id}")


def _rows(
    log: Sequence[ShownMessage],
    view: Sequence[ShownMessage],
    compactions: Sequence[ShownCompaction],
    shown: range,
    *,
    is_end: bool,
) -> Iterator[dict[str, Any]]:
    """The rows of log and view side by side: messages, and before them the compactions and what the view has there."""
    by_seq: dict[int, ShownMessage] = {}
    added: list[ShownMessage] = []
    seen_before: dict[int, list[ShownMessage]] = {}
    for message in view:
        if message.seq is None:
            added.append(message)
        else:
            by_seq[message.seq] = message
            seen_before[message.seq], added = added, []
    folds = deque(each for each in compactions if each.place >= shown.start or shown.start == 1)
    for said in log:
        seen = seen_before.pop(said.seq or 0, [])
        while folds and folds[0].place <= (said.seq or 0):
            fold = folds.popleft()
            # A checkpoint stands in the view where the compaction stands in the log that it is of.
            is_here = fold.receipt.active and fold.covered and bool(seen) and seen[0].note == "checkpoint"
            yield _row(fold=fold, seen=seen.pop(0) if is_here else None)
        yield from (_row(seen=message) for message in seen)
        in_view = by_seq.get(said.seq or 0)
        yield _row(said=said, seen=in_view)
    if is_end:
        yield from (_row(fold=fold) for fold in folds)
    yield from (_row(seen=message) for message in added)


def _row(
    *, said: ShownMessage | None = None, seen: ShownMessage | None = None, fold: ShownCompaction | None = None
) -> dict[str, Any]:
    return {"said": said, "seen": seen, "fold": fold, "state": _state(said, seen) if said else ""}


def _state(said: ShownMessage, in_view: ShownMessage | None) -> str:
    """The state of a message of the log in the view."""
    if in_view is None:
        return "gone"
    return "changed" if in_view.note or in_view.text != said.text else "kept"


def _branches(visit: Visit, session_id: str) -> list[ListedSession]:
    """The sessions that a session was parted from or that were parted from it."""
    stem = session_id.partition(BRANCH_MARK)[0]
    summaries = visit.service.list_sessions(visit.workspace).sessions
    family = (each for each in summaries if each.session_id.partition(BRANCH_MARK)[0] == stem)
    return sorted((each for each in family if each.session_id != session_id), key=lambda each: each.session_id)
