"""Facts that change: what holds now, what it replaced, and lines that say that two things are not the same."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

from memory_service.schemas.base import MAX_QUERY_CHARS
from memory_service.web.visit import Visit

_LIMIT: Final = 40


def facts_page(visit: Visit) -> Response:
    """The facts that changed, oldest value to current: all, or those that a question finds."""
    query = visit.query.get("q", "").strip()[:MAX_QUERY_CHARS]
    if query:
        answer = visit.service.search(visit.workspace, query, limit=_LIMIT, history=True)
        chains = [result.history for result in answer.results if len(result.history) > 1]
    else:
        chains = [fact.values for fact in visit.service.changed_facts(visit.workspace, limit=_LIMIT).facts]
    return visit.page("facts", query=query, chains=chains)


def part_facts(visit: Visit) -> Response:
    """Write the plain line that two statements are not about the same thing."""
    visit.service.distinguish(visit.workspace, visit.form.get("one", ""), visit.form.get("other", ""))
    return visit.go(f"/w/{visit.workspace}/facts")
