"""Events of whole workspaces: changes in one, seen by looking at it while somebody listens.

Invariants: a change is seen whoever made it, this process, another one or a person with an editor, on every storage; no
write costs more for it; a workspace that nobody listens to is not looked at, and looks take a small share of the time.
"""

from __future__ import annotations

import datetime as dt
import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from indexer import IndexerError
from memory_service.errors import MemoryServiceError
from memory_service.runtime.events import EventHub, Subscription
from memory_service.schemas.status import Operation
from memory_service.storage.revisions import Revision

_log = logging.getLogger("memory_service.runtime.events")

# How often operations that run here are looked at, and everything else.
_TICK_SECONDS = 0.25
_LOOK_SECONDS = 1.0
# A large workspace is looked at less often: looks take at most this share of the time.
_MOST_SHARE = 0.03
# Of one look, so many sessions have an event of their own; of more there is one without a session.
_NAMED_SESSIONS = 20
# Clocks of files go in steps.
_CLOCK_STEP = dt.timedelta(milliseconds=20)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceState:
    """A workspace as one look sees it.

    Attributes:
        documents: The revision of each memory file.
        sessions: Time of the last change and size of each log.
        index_revision: A number that another write into the index changes.
        sync: Passages that a sync of this process has stored, and all that it will; None while none runs.
        changed_at: Time of the last change of files and logs.
    """

    documents: Mapping[str, Revision]
    sessions: Mapping[str, tuple[dt.datetime, int]]
    index_revision: int = 0
    sync: tuple[int, int] | None = None
    changed_at: dt.datetime | None = None


@dataclass(slots=True, kw_only=True)
class _Followed:
    """A workspace that somebody listens to, as it was seen last, and why the last look failed."""

    state: WorkspaceState
    operations: dict[str, Operation]
    look_again: float = 0.0
    failure: str = ""


class WorkspaceEvents:
    """The events of workspaces; safe to use from any thread.

    Args:
        hub: Where they are told.
        look: Looks at a workspace.
        operations: The operations of a workspace.
    """

    def __init__(
        self, hub: EventHub, look: Callable[[str], WorkspaceState], operations: Callable[[str], list[Operation]]
    ) -> None:
        self._hub = hub
        self._look = look
        self._operations = operations
        self._changing = threading.Lock()
        self._followed: dict[str, _Followed] = {}
        self._ending = threading.Event()
        self._thread: threading.Thread | None = None

    def subscribe(
        self, workspace: str, after_id: int | None = None, *, since: dt.datetime | None = None
    ) -> Subscription:
        """Listen to a workspace, from now on or from where somebody has left off.

        Args:
            workspace: The workspace.
            after_id: The last event that was heard; 0 begins with the oldest that is kept.
            since: The moment from which on the listener knows nothing: a change since then is an event at once.
        """
        subscription = self._hub.subscribe(workspace, "", after_id)
        try:
            with self._changing:
                followed = self._followed.get(workspace)
            if followed is None:
                followed = _Followed(state=self._look(workspace), operations=self._operations_by_id(workspace))
            with self._changing:
                followed = self._followed.setdefault(workspace, followed)
                if self._thread is None and not self._ending.is_set():
                    self._thread = threading.Thread(target=self._run, name="workspace events", daemon=True)
                    self._thread.start()
        except BaseException:
            subscription.close()
            raise
        changed_at = followed.state.changed_at
        if since is not None and changed_at is not None and changed_at >= since - _CLOCK_STEP:
            self._hub.publish_here(workspace, "memories")
        return subscription

    def close(self) -> None:
        """Look no more."""
        self._ending.set()
        if self._thread is not None:
            self._thread.join()

    def _operations_by_id(self, workspace: str) -> dict[str, Operation]:
        return {operation.operation_id: operation for operation in self._operations(workspace)}

    def _run(self) -> None:
        """Look until nobody listens."""
        while not self._ending.wait(_TICK_SECONDS):
            with self._changing:
                for name in [name for name in self._followed if not self._hub.is_followed(name)]:
                    del self._followed[name]
                if not self._followed:
                    self._thread = None
                    return
                followed_workspaces = list(self._followed.items())
            for name, followed in followed_workspaces:
                try:
                    self._see(name, followed)
                except (MemoryServiceError, IndexerError) as error:
                    # The next look sees what this one missed.
                    if followed.failure != str(error):
                        _log.warning("a workspace could not be looked at: %s", error)
                    followed.failure = str(error)
                    followed.look_again = time.monotonic() + _LOOK_SECONDS

    def _see(self, workspace: str, followed: _Followed) -> None:
        """Tell of what is different from the last look."""
        is_due = time.monotonic() >= followed.look_again
        if not is_due and not any(operation.is_open for operation in followed.operations.values()):
            return
        operations = self._operations_by_id(workspace)
        for operation in operations.values():
            if followed.operations.get(operation.operation_id) != operation:
                shown_fields = {"operation_id", "state", "done", "total", "eta_seconds"}
                self._hub.publish_here(workspace, "operation", **operation.model_dump(include=shown_fields))
        followed.operations = operations
        if not is_due:
            return
        begun = time.monotonic()
        state = self._look(workspace)
        self._tell_differences(workspace, followed.state, state)
        followed.state, followed.failure = state, ""
        now = time.monotonic()
        followed.look_again = now + max(_LOOK_SECONDS, (now - begun) / _MOST_SHARE)

    def _tell_differences(self, workspace: str, old: WorkspaceState, new: WorkspaceState) -> None:
        if paths := _differing(old.documents, new.documents):
            self._hub.publish_here(workspace, "memories", count=len(paths), path=paths[0] if len(paths) == 1 else None)
        if names := _differing(old.sessions, new.sessions):
            for name in names if len(names) <= _NAMED_SESSIONS else [""]:
                self._hub.publish_here(workspace, "session", name)
        if (old.index_revision, old.sync) != (new.index_revision, new.sync):
            done, total = new.sync or (None, None)
            self._hub.publish_here(workspace, "index", done=done, total=total)


def _differing(old: Mapping[str, object], new: Mapping[str, object]) -> list[str]:
    return sorted(name for name in {*old, *new} if old.get(name) != new.get(name))
