"""The review: decision was written lately by others than a person, to be kept, corrected or forgotten."""

from __future__ import annotations

import datetime as dt
from typing import Final

from starlette.responses import Response

from memory_service.errors import NotFound, PreconditionFailed
from memory_service.web.visit import Visit, written_day

_MOST_ENTRIES: Final = 200
_DAYS: Final = 1


def review_page(visit: Visit) -> Response:
    """Entries that sessions left since yesterday, or since the day that is asked for; nothing is changed by looking."""
    return _page(visit)


def review_entry(visit: Visit) -> Response:
    """The decision of a person on one entry."""
    memory, decision = visit.form.get("memory", ""), visit.form.get("do", "")
    message = ""
    try:
        if decision == "forget":
            visit.service.forget(visit.workspace, memory)
        elif decision == "correct":
            visit.service.edit(
                visit.workspace, memory, text=visit.form.get("text", ""), etag=visit.form.get("etag", "") or None
            )
    except (NotFound, PreconditionFailed) as error:
        # A form that was sent twice, or somebody with an editor was faster.
        message = str(error)
    if message:
        return _page(visit, message, 409)
    return visit.go(f"/w/{visit.workspace}/review?{_since(visit.form.get('since', ''))}#{visit.form.get('next', '')}")


def _page(visit: Visit, message: str = "", status: int = 200) -> Response:
    today = dt.datetime.now(dt.UTC).date()
    since = written_day(visit.query.get("since", "")) or today - dt.timedelta(days=_DAYS)
    all_entries = visit.service.entries(visit.workspace, since=since, limit=_MOST_ENTRIES).entries
    entries = [entry for entry in all_entries if entry.session_id or (entry.origin and entry.origin != "user")]
    return visit.page("review", status, entries=entries, since=since, message=message)


def _since(text: str) -> str:
    day = written_day(text)
    return f"since={day}" if day else ""
