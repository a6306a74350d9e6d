"""Contents of workspaces, told without an index."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from memory_service.errors import NotFound
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
            documents, sessions, modified_at, project = storage.contents(name)
            summaries.append(
                WorkspaceSummary(
                    workspace=name,
                    memory_files=documents,
                    sessions=sessions,
                    modified_at=modified_at,
                    project=project or None,
                )
            )
    return summaries
