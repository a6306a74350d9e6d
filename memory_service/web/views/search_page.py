"""Search as you type: hits with what their score is made of, and the way to their lines."""

from __future__ import annotations

from typing import Any, Final

from starlette.responses import Response

from memory_service.schemas.base import MAX_QUERY_CHARS
from memory_service.schemas.memories import SearchMode, Source
from memory_service.web.visit import Visit, written_day

_LIMIT: Final = 20
_MODES: Final[tuple[SearchMode, ...]] = ("hybrid", "text", "vector")
_SOURCES: Final[tuple[Source, ...]] = ("memory", "sessions", "files")


def search_page(visit: Visit) -> Response:
    """The results for a question, or the empty form."""
    query = visit.query.get("q", "").strip()[:MAX_QUERY_CHARS]
    mode: SearchMode = next((mode for mode in _MODES if mode == visit.query.get("mode")), "hybrid")
    source = next((name for name in _SOURCES if name == visit.query.get("source")), None)
    filters: dict[str, Any] = {
        "since": written_day(visit.query.get("since", "")),
        "until": written_day(visit.query.get("until", "")),
        "tags": visit.query.get("tags", "").replace("#", " ").split()[:16],
        "path_prefix": visit.query.get("path", "")[:512],
    }
    answer = None
    if query:
        answer = visit.service.search(
            visit.workspace,
            query,
            mode=mode,
            limit=_LIMIT,
            sources=[source] if source else [],
            explain=True,
            **filters,
        )
    return visit.page(
        "search", query=query, mode=mode, modes=_MODES, source=source, sources=_SOURCES, filters=filters, answer=answer
    )
