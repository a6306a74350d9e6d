"""The index half of `MemoryService`: bringing it up to date, here or in the background, and how it and the rest stand.

Invariants: the files are never changed; errors that leave are those of `memory_service.errors`.
"""

from __future__ import annotations

import datetime as dt
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from indexer import SyncProgress, index_activity
from memory_service.errors import MemoryServiceError
from memory_service.memories.workspaces import indexed_paths
from memory_service.runtime import index_answers
from memory_service.runtime.background import Operations
from memory_service.runtime.change_reports import SyncedChange, follow
from memory_service.runtime.events import Subscription
from memory_service.runtime.index_answers import translate_errors
from memory_service.runtime.workspace_events import WorkspaceEvents, WorkspaceState
from memory_service.schemas.status import ConnectedHost, ConnectedHosts, Operation, ReindexReport, SettingValues, Status

if TYPE_CHECKING:
    from memory_service.config import Settings
    from memory_service.health.missed_calls import MissedCalls
    from memory_service.service.workspace import OpenWorkspaces


# So many lines of the log of hooks are shown.
_FAULTS = 20


class IndexUseCases(ABC):
    """The use cases of the index, and of what the service stands on."""

    settings: Settings
    _operations: Operations
    _workspace_events: WorkspaceEvents
    _workspaces: OpenWorkspaces

    @abstractmethod
    def has_workspace(self, workspace: str) -> bool:
        """True if somebody has written to a workspace."""

    def bring_up_to_date(self, workspace: str, *, on_progress: Callable[[SyncProgress], None] | None = None) -> None:
        """Index all that changed before the next search, for a caller who would rather wait than miss something.

        What could not be indexed is named by the `degraded` of that search.
        """
        if self.has_workspace(workspace):
            self._workspaces.memory(workspace).bring_up_to_date(on_progress)

    def leave_changes(self, workspace: str) -> None:
        """Index nothing that changed from now on: searches answer at once with what is there, and name what waits."""
        if self.has_workspace(workspace):
            self._workspaces.memory(workspace).leave_changes()

    def is_behind(self, workspace: str) -> bool:
        """True if something was left for another process to index, by a service that rests."""
        return self.has_workspace(workspace) and self._workspaces.memory(workspace).is_behind

    def plan(self, workspace: str, paths: Collection[str] = ()) -> ReindexReport:
        """The plan of a reindex, without doing it."""
        memory = self._workspaces.readable(workspace)
        with translate_errors():
            return index_answers.planned_report(memory.index.plan(indexed_paths(paths, memory.index)))

    def reindex(
        self,
        workspace: str,
        paths: Collection[str] = (),
        *,
        full: bool = False,
        on_progress: Callable[[SyncProgress], None] | None = None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> ReindexReport:
        """Bring the index up to date with the files, here and now."""
        memory = self._workspaces.readable(workspace)
        with translate_errors():
            report = memory.sync(
                indexed_paths(paths, memory.index), full=full, on_progress=on_progress, cancelled=cancelled
            )
        return index_answers.reindex_report(report)

    def index_words(self, workspace: str, *, cancelled: Callable[[], bool] = lambda: False) -> None:
        """Make all that changed be found by its words, which takes a moment; `reindex` makes its vectors."""
        memory = self._workspaces.memory(workspace)
        with translate_errors():
            memory.index.sync(words_only=True, cancelled=cancelled)

    def start_reindex(self, workspace: str, paths: Collection[str] = (), *, full: bool = False) -> Operation:
        """Start a reindex in the background."""
        memory = self._workspaces.readable(workspace)
        checked_texts = indexed_paths(paths, memory.index)
        return self._operations.start(
            workspace,
            lambda on_progress, cancelled: memory.sync(
                checked_texts, full=full, on_progress=on_progress, cancelled=cancelled
            ),
        )

    def operation(self, workspace: str, operation_id: str) -> Operation:
        """How far an operation is; see `Operations.get`."""
        return self._operations.get(workspace, operation_id)

    def operations(self, workspace: str) -> list[Operation]:
        """The operations of the last day, of every process; the newest first."""
        return self._operations.list(workspace)

    def cancel(self, workspace: str, operation_id: str) -> Operation:
        """Ask an operation to stop; what it has written stays."""
        return self._operations.cancel(workspace, operation_id)

    def running_operations(self) -> int:
        """Number of operations that are queued or run."""
        return self._operations.running()

    def workspace_events(
        self, workspace: str, after: int | None = None, *, since: dt.datetime | None = None
    ) -> Subscription:
        """Subscription to the changes of a workspace; to be closed at the end. See `WorkspaceEvents.subscribe`."""
        return self._workspace_events.subscribe(workspace, after, since=since)

    def _look(self, workspace: str) -> WorkspaceState:
        """A workspace as it is now, for its events."""
        parts, index = self._workspaces.storage.workspace(workspace), self._workspaces.readable(workspace).index
        documents, logs = parts.documents.scan().documents.values(), parts.logs.list()
        with translate_errors():
            revision, progress = index_activity(index)
        return WorkspaceState(
            documents={document.path: document.revision for document in documents},
            sessions={log.session_id: (log.last_activity, log.size_bytes) for log in logs},
            index_revision=revision,
            sync=(progress.passages, progress.total_passages) if progress else None,
            changed_at=max(
                (*(document.modified_at for document in documents), *(log.last_activity for log in logs)), default=None
            ),
        )

    def status(self, workspace: str) -> Status:
        """How a workspace stands, and what its context engine failed to do; loads the engine."""
        memory = self._workspaces.readable(workspace)
        with translate_errors():
            status = memory.index.status()
        engine = self._workspaces.engine(workspace)
        return index_answers.status(
            workspace,
            status,
            self.settings,
            degraded=(*(engine.problems() if engine else ()), *self._missed_calls(workspace)),
            watch_state=self._workspaces.watching.state(workspace),
        )

    @cached_property
    def missed_calls(self) -> MissedCalls:
        """The log of what the gateway could not do for conversations."""
        from memory_service.health.missed_calls import MissedCalls

        return MissedCalls(self.settings.home)

    def _missed_calls(self, workspace: str) -> Iterator[str]:
        from memory_service.health.missed_calls import missed_calls_note

        if missed_text := missed_calls_note(self.missed_calls.recent(workspace, dt.datetime.now(dt.UTC))):
            yield f"gateway: {missed_text}"

    def setting_values(self) -> SettingValues:
        """The settings of this process, each with its value, but for secrets, and where that is from."""
        return SettingValues(settings=self.settings.list_values())

    def connected_hosts(self) -> ConnectedHosts:
        """The coding agents that are connected on this machine, and the last faults of their hooks."""
        from memory_service.hosts.connect import connected_hosts
        from memory_service.hosts.progress import last_faults

        hosts, log, degraded = list[ConnectedHost](), list[str](), list[str]()
        try:
            hosts = list(connected_hosts())
        except MemoryServiceError as error:
            degraded.append(f"hosts: {error}")
        try:
            log = last_faults(self.settings.home, _FAULTS)
        except MemoryServiceError as error:
            degraded.append(f"log: {error}")
        return ConnectedHosts(hosts=hosts, log=log, degraded=degraded)

    def watch(self) -> None:
        """From now on index what others change in the workspaces that are in use, without a search having to ask."""
        self._workspaces.watching.start()

    def follow(
        self,
        workspace: str,
        on_followed: Callable[[SyncedChange], None],
        stop: threading.Event,
        paths: Collection[str] = (),
    ) -> None:
        """Index what changes in one workspace, here and now, until told to stop; see `watching.follow`."""
        memory = self._workspaces.memory(workspace)
        with translate_errors():
            follow(memory.index, on_followed, stop, only=indexed_paths(paths, memory.index))
