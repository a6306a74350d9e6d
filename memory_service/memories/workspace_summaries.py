"""Contents of workspaces, told without an index."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from contextlib import suppress

from indexer import change_times, scan_workspace
from memory_service.errors import NotFound
from memory_service.home import project_of_workspace
from memory_service.schemas.status import WorkspaceSummary
from memory_service.storage.base import Storage


def workspace_summaries(storage: Storage, names: Iterable[str]) -> list[WorkspaceSummary]:
    """Contents of some workspaces; one that is gone meanwhile is left out.

    Raises:
        StorageFailed: One of them cannot be listed.
    """
    summaries = list[WorkspaceSummary]()
    for name in names:
        with suppress(NotFound):
            summaries.append(_summary(storage, name))
    return summaries


def _summary(storage: Storage, name: str) -> WorkspaceSummary:
    made_at, kept = storage.modified_at(name), storage.workspace(name)
    files = scan_workspace(kept.scratch).files.values()
    changes = [dt.datetime.fromtimestamp(change_times(file)[0] / 1e9, dt.UTC) for file in files]
    sessions = sum(file.source == "sessions" for file in files)
    return WorkspaceSummary(
        workspace=name,
        memory_files=len(files) - sessions,
        sessions=sessions,
        modified_at=max(changes, default=made_at),
        project=project_of_workspace(kept.scratch) or None,
    )
