"""The sessions: log and view side by side, what compactions did, and pins."""

from __future__ import annotations

from typing import Any, Final

from starlette.responses import Response

from memory_service.web.visit import Visit

_PAGE: Final = 200
# A text longer than this is folded.
_FOLD_CHARS: Final = 1_200


def session_list(visit: Visit) -> Response:
    """All sessions, the last active first."""
    return visit.page("sessions", answer=visit.service.list_sessions(visit.workspace))


def session_page(visit: Visit) -> Response:
    """A part of the log beside what the model sees of it; the newest, unless another one is asked for."""
    service, workspace, session_id = visit.service, visit.workspace, str(visit.request.path_params["session_id"])
    session = service.session_status(workspace, session_id)
    details = service.session_details(workspace, session_id)
    last = details.last_message
    until = min(visit.number("until", last, max(last, 1)) or last, last)
    shown = range(max(1, until - _PAGE + 1), until + 1)
    view = service.shown_messages(workspace, session_id, "model", shown)
    messages = service.shown_messages(workspace, session_id, "log", shown)
    by_seq: dict[int | None, Any] = {message.seq: message for message in view if message.seq is not None}
    notes = [message for message in view if message.seq is None or message.note == "checkpoint"]
    compactions = service.compactions(workspace, session_id).compactions
    return visit.page(
        "session",
        session=session,
        rows=[_row(message, by_seq.get(message.seq)) for message in messages],
        placed=notes,
        compactions=compactions,
        pins=service.pins(workspace, session_id).pins,
        branches=_branches(visit, session_id),
        earlier=shown.start - 1,
        later=min(last, until + _PAGE) if until < last else 0,
        fold=_FOLD_CHARS,
        at=visit.number("at", 0, last),
    )


def undo_compaction(visit: Visit) -> Response:
    """Take a compaction back."""
    session_id = str(visit.request.path_params["session_id"])
    visit.service.undo(visit.workspace, session_id, visit.form.get("compaction", "") or None)
    return visit.go(f"/w/{visit.workspace}/sessions/{session_id}")


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


def _row(message: Any, in_view: Any) -> dict[str, Any]:
    """A message of the log with what the view has in its place."""
    state = "gone" if in_view is None else ("changed" if in_view.note or in_view.text != message.text else "kept")
    return {"said": message, "seen": in_view, "state": state}


def _branches(visit: Visit, session_id: str) -> list[str]:
    stem = session_id.partition(".branch-")[0]
    summaries = visit.service.list_sessions(visit.workspace).sessions
    family = [session.session_id for session in summaries if session.session_id.partition(".branch-")[0] == stem]
    return sorted(set(family) - {session_id})
