"""Shared services of a workspace's sessions: logs, long-term memory, locks, events.

Invariants: a session is opened once, so that its state is folded once; its log is looked at for every use.
"""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from indexer.common import LRU
from memory_service.compaction.budget import ContextBudget
from memory_service.compaction.presets import budget_of
from memory_service.compaction.view import View, ViewShape, shape_of
from memory_service.config import Settings
from memory_service.engines import GuardedEngine
from memory_service.errors import Conflict, NotFound
from memory_service.hooks import Hooks
from memory_service.llm.token_anchor import Reading
from memory_service.messages.shapes import Json
from memory_service.runtime.events import EventHub, EventKind
from memory_service.runtime.locks import SessionLocks
from memory_service.runtime.log_changes import begin_log
from memory_service.runtime.models import Models
from memory_service.runtime.session import OpenSession, SessionState
from memory_service.runtime.session_options import SessionOptions, options_of, reading_of, scale_of
from memory_service.schemas.messages import ReadingSource
from memory_service.schemas.sessions import EventField
from memory_service.sessions.records import SessionHeader
from memory_service.storage.logs import LogStore

if TYPE_CHECKING:
    from memory_service.memories.long_term import LongTermMemory
    from memory_service.prompts.prompt_records import PromptRecords

_OPEN_SESSIONS = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceParts:
    """Services shared by all workspaces."""

    settings: Settings
    session_locks: SessionLocks
    events: EventHub
    hooks: Hooks
    models: Models = field(default_factory=Models)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSnapshot:
    """A session as it is now, and how it is treated."""

    session_id: str
    session: OpenSession
    state: SessionState
    options: SessionOptions
    shape: ViewShape

    def view(self) -> View:
        """The view that the model sees."""
        return self.session.view(self.shape, self.state)

    def scale(self) -> float:
        """Tokens as its model counts them for each one estimated."""
        return self._scale()[0]

    def reading(self, *, is_anchored: bool = False) -> Reading:
        """Size of the view in tokens; see `options.reading_of`."""
        view_sizes = self.session.view_sizes(self.shape, self.state)
        return reading_of(self.state, view_sizes, self._scale(), self.options.model_name, is_anchored=is_anchored)

    def _scale(self) -> tuple[float, ReadingSource]:
        return scale_of(self.state, lambda: self.session.last_view(self.shape, self.state), self.options.model_name)

    def budget(
        self, *, overhead_tokens: int = 0, tools_tokens: int = 0, most_tokens: int | None = None
    ) -> ContextBudget:
        """Token budget of the session; see `budget_of`."""
        return budget_of(
            self.options,
            scale=self.scale(),
            overhead_tokens=overhead_tokens,
            tools_tokens=tools_tokens,
            most_tokens=most_tokens,
        )


class SessionRuntime:
    """The sessions of one workspace, and what work on them needs.

    Args:
        workspace: Its name.
        logs: Their logs.
        longterm: The memory beside them.
        prompts: Records of their last prompts.
        shared: What all workspaces share.
        engine: The context engine of somebody else; None for the service's own.
    """

    def __init__(
        self,
        workspace: str,
        logs: LogStore,
        longterm: LongTermMemory,
        prompts: PromptRecords,
        services: ServiceParts,
        engine: GuardedEngine | None = None,
    ) -> None:
        self.workspace = workspace
        self.logs = logs
        self.longterm = longterm
        self.prompts = prompts
        self.shared = services
        self.engine = engine
        self._sessions: LRU[str, OpenSession] = LRU(_OPEN_SESSIONS)
        self._opening = threading.Lock()

    def session(self, session_id: str) -> OpenSession:
        """A session that is there.

        Raises:
            InvalidName: The id is not one of a session.
            NotFound: There is no such session.
        """
        log = self.logs.open(session_id)
        with self._opening:
            session = self._sessions.get(session_id)
            if session is None or session.log is not log:
                session = self._sessions[session_id] = OpenSession(log)
            return session

    def get_or_create(self, session_id: str, *, model: str | None = None) -> OpenSession:
        """A session; begun if it is not there."""
        try:
            return self.session(session_id)
        except NotFound:
            # Somebody else may be faster.
            with suppress(Conflict):
                begin_log(self.logs, SessionHeader(session_id=session_id, model=model))
            return self.session(session_id)

    def create(
        self,
        session_id: str,
        *,
        model: str | None,
        context_window: int | None,
        settings: Mapping[str, Json],
        title: str = "",
    ) -> OpenSession:
        """A new session.

        Raises:
            Conflict: There is one of that id.
        """
        header = SessionHeader(
            session_id=session_id, model=model, context_window=context_window, settings=dict(settings), title=title
        )
        begin_log(self.logs, header)
        return self.session(session_id)

    def delete(self, session_id: str, *, first: Callable[[], None] = lambda: None) -> None:
        """A session is no more, nor what is beside its log, which goes first."""
        self.logs.delete(session_id, first=first)
        self._sessions.pop(session_id)

    def snapshot(
        self,
        session_id: str,
        *,
        preset: str | None = None,
        overrides: Mapping[str, Json] | None = None,
        session: OpenSession | None = None,
    ) -> SessionSnapshot:
        """A session as it is now; with another preset or other numbers than its settings have, if they are given."""
        session = session or self.session(session_id)
        state = session.state()
        options = options_of(self.shared.settings, state.header, state.learned, preset=preset, overrides=overrides)
        return SessionSnapshot(
            session_id=session_id, session=session, state=state, options=options, shape=shape_of(options)
        )

    @contextmanager
    def alone(self, session_id: str, *, compacting: bool = False) -> Iterator[None]:
        """Be the only one that flushes or compacts a session; appends go on meanwhile."""
        session_locks, key = self.shared.session_locks, (self.workspace, session_id)
        with session_locks.compaction(key) if compacting else session_locks.session(key):
            yield

    def tell(self, kind: EventKind, session_id: str, **fields: EventField) -> None:
        """Publish an event."""
        self.shared.events.publish(self.workspace, kind, session_id, **fields)

    def settle(self, session_id: str) -> None:
        """Take note that a prompt that was refused has been answered, or was given up."""
        self.shared.events.settle(self.workspace, session_id)

    def now(self) -> dt.datetime:
        """The present moment in the configured timezone."""
        return self.shared.settings.now()
