"""The overview of a workspace, and the list of all."""

from __future__ import annotations

import datetime as dt
import re
from collections import Counter

from starlette.responses import Response

from memory_service.web.visit import Visit, written_day

_DAY = re.compile(r"memory/(?:.*/)?(\d{4}-\d{2}-\d{2})[^/]*\.md")
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
    days = Counter[dt.date]()
    for file in files:
        if (match := _DAY.fullmatch(file.path)) and (day := written_day(match[1])):
            days[day] += file.lines
    until = max([dt.datetime.now(dt.UTC).date(), *days])
    return visit.page(
        "overview",
        status=status,
        operations=service.operations(workspace),
        files=files,
        sessions=sessions.sessions,
        entries=entries,
        days=days,
        until=until,
        weeks=_WEEKS,
        degraded=[*status.degraded, *sessions.degraded],
    )
