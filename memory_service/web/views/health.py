"""The health of a workspace: what the doctor finds, the index, the hosts, and the settings with their places."""

from __future__ import annotations

from starlette.responses import Response

from memory_service.web.visit import Visit


def health_page(visit: Visit) -> Response:
    """The state at once, and behind it all findings, which take a second or two, each with its remedy."""
    service, workspace = visit.service, visit.workspace
    operation = None
    if operation_id := visit.query.get("operation", "")[:80]:
        operation = service.operation(workspace, operation_id)
    return visit.page(
        "health",
        checks=list(service.examine(workspace)) if visit.query.get("checks") == "yes" else None,
        status=service.status(workspace),
        operation=operation,
    )


def start_reindex(visit: Visit) -> Response:
    """Start a reindex, and show how far it is."""
    operation = visit.service.start_reindex(visit.workspace, full=visit.form.get("full") == "yes")
    return visit.go(f"/w/{visit.workspace}/health?operation={operation.operation_id}")
