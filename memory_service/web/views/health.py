"""The health of a workspace: what the doctor finds, the index, the hosts, and the settings with their places."""

from __future__ import annotations

from starlette.responses import Response

from memory_service.web.visit import Visit


def health_page(visit: Visit) -> Response:
    """The state at once, and behind it all findings, which take a second or two, each with its remedy."""
    service, workspace = visit.service, visit.workspace
    return visit.page(
        "health",
        checks=list(service.examine(workspace)) if visit.query.get("checks") == "yes" else None,
        status=service.status(workspace),
        operations=service.operations(workspace),
        hosts=service.connected_hosts() if visit.sees_home else None,
        settings=service.setting_values().settings if visit.sees_home else [],
        reindex_of=_reindex_of,
    )


def _reindex_of(remedy: str) -> str:
    """The reindex that a remedy names, which the page can start: `full`, `changes`, or empty for none."""
    if "`memory-service reindex --full`" in remedy:
        return "full"
    return "changes" if remedy.startswith("Run `memory-service reindex`") else ""


def start_reindex(visit: Visit) -> Response:
    """Start a reindex, and show how far it is."""
    operation = visit.service.start_reindex(visit.workspace, full=visit.form.get("full") == "yes")
    return visit.go(f"/w/{visit.workspace}/operations#{operation.operation_id}")


def operation_list(visit: Visit) -> Response:
    """The operations of the last day, each with its progress."""
    return visit.page("operations", operations=visit.service.operations(visit.workspace))


def cancel_operation(visit: Visit) -> Response:
    """Stop an operation after the batch at hand."""
    visit.service.cancel(visit.workspace, visit.form.get("cancel", ""))
    return visit.go(f"/w/{visit.workspace}/operations")
