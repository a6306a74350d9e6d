"""The overview of a workspace, and the list of all."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from urllib.parse import quote

from starlette.responses import Response

from memory_service.web.views.files import DAY_FILE
from memory_service.web.visit import Visit, written_day

_WEEKS = 26
_LATEST = 12


def workspace_list(visit: Visit) -> Response:
    """All workspaces; where there is one alone, that one."""
    names = visit.names()
    if len(names) == 1:
        return visit.go(f"/w/{names[0]}")
    return visit.page("workspaces", summaries=visit.service.workspace_summaries(names))


def overview_page(visit: Visit) -> Response:
    """A workspace: its state, what was remembered lately, its sessions, and a calendar of its notes."""
    service, workspace = visit.service, visit.workspace
    status = service.status(workspace)
    files = service.files(workspace)
    sessions = service.list_sessions(workspace)
    entries = service.entries(workspace, limit=_LATEST).entries
    days, links = Counter[dt.date](), dict[dt.date, str]()
    for file in files:
        if (match := DAY_FILE.fullmatch(file.path)) and (day := written_day(match[1])):
            days[day] += file.lines
            several = f"/w/{workspace}/files?day={day}"
            links[day] = several if day in links else f"/w/{workspace}/files/{quote(file.path)}"
    until = max([dt.datetime.now(dt.UTC).date(), *days])
    return visit.page(
        "overview",
        status=status,
        operations=service.operations(workspace),
        files=files,
        sessions=sessions.sessions,
        entries=entries,
        days=days,
        links=links,
        until=until,
        weeks=_WEEKS,
        degraded=[*status.degraded, *sessions.degraded],
    )
