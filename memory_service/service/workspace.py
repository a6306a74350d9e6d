"""Open workspaces: memory, sessions, engine.

Invariants: all share one embedding model and one compactor; 256 are open at most, and the one that was used longest
ago gives way; looking a workspace up creates nothing, unless it is said to.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from indexer import Embedder, Index, LanguageChoice, RankingSettings, Reranker
from memory_service.config import OWN_ENGINE, Settings
from memory_service.errors import MemoryServiceError, NotFound
from memory_service.home import tighten, tighten_workspace
from memory_service.memories.erasures import Erasures
from memory_service.memories.long_term import LongTermMemory
from memory_service.memories.store import MemoryStore
from memory_service.prompts.prompt_records import PromptRecords
from memory_service.prompts.receipt_records import Receipts
from memory_service.runtime.watching import WorkspaceWatcher
from memory_service.schemas.memories import DEFAULT_WORKSPACE
from memory_service.storage.base import Storage, WorkspaceStorage

if TYPE_CHECKING:
    from memory_service.engines import GuardedEngine
    from memory_service.service.short_term import WorkspaceSessions

_MOST_OPEN = 256


class OpenWorkspaces:
    """The open workspaces of one home.

    Args:
        storage: The storage of the home.
        settings: See `memory_service.config`.
        embedder: The model of all of them, or the two that each chooses from; None for none.
        reranker: The model that has a second look at results, or None.
        sessions: Gives the maker of the sessions of a workspace; it is loaded with the first of them.
        rests: Whether what takes long to index is left to another process.

    Attributes:
        watching: Follows the changes in those that are open, once it is started.
    """

    def __init__(
        self,
        storage: Storage,
        settings: Settings,
        embedder: Embedder | LanguageChoice | None,
        reranker: Reranker | None,
        sessions: Callable[[], Callable[..., WorkspaceSessions]],
        *,
        rests: bool = False,
    ) -> None:
        self.storage = storage
        self.watching = WorkspaceWatcher()
        self._settings = settings
        self._embedder = embedder
        self._reranker = reranker
        self._maker_of_sessions = sessions
        self._rests = rests
        self._open: OrderedDict[str, LongTermMemory] = OrderedDict()
        self._sessions: dict[str, WorkspaceSessions] = {}
        # As long as the service: what failed is asked no more, however often its workspace is opened.
        self._engines: dict[str, GuardedEngine] = {}
        self._opening = threading.Lock()

    @property
    def first_embedder(self) -> Embedder | None:
        """The model that is needed first: where it is chosen, that of the workspace that is there unless named."""
        if isinstance(self._embedder, LanguageChoice):
            return self.readable(DEFAULT_WORKSPACE).index.embedder
        return self._embedder

    def readable(self, workspace: str) -> LongTermMemory:
        """The long-term memory of a workspace, to read; an empty one, stored nowhere, where nobody wrote to it.

        Raises:
            InvalidName: The name is not one of a workspace.
        """
        try:
            return self.memory(workspace)
        except NotFound:
            return self._open_memory(workspace, self.storage.workspace(workspace))

    def memory(self, workspace: str, *, make: bool = False) -> LongTermMemory:
        """The long-term memory of a workspace, to write.

        Args:
            workspace: Its name.
            make: Whether the workspace is made if it is not there.

        Raises:
            InvalidName: The name is not one of a workspace.
            NotFound: There is no such workspace.
        """
        if make:
            self.storage.make(workspace)
        elif not self.storage.contains(workspace):
            if self._settings.database_url:
                raise NotFound(
                    f"There is no workspace {workspace} in the database {self.storage.place}. Write a first memory to "
                    "create it, or check the name and database_url."
                )
            raise NotFound(
                f"There is no workspace {workspace} in the home {self.storage.place}. Write a first memory to create "
                "it, or check the name and the home; a symbolic link does not count as one."
            )
        if workspace not in self._open:
            tighten(self._settings.home)
            tighten_workspace(self.storage.workspace(workspace).scratch)
        with self._opening:
            memory = self._open.get(workspace)
            is_new = memory is None
            if memory is None:
                if len(self._open) >= _MOST_OPEN:
                    self._close(next(iter(self._open)))
                memory = self._open[workspace] = self._open_memory(workspace, self.storage.workspace(workspace))
            self._open.move_to_end(workspace)
        if is_new:
            self._recover(memory, workspace)
        self.watching.use(workspace, memory)
        return memory

    def sessions(self, workspace: str, *, make: bool = False) -> WorkspaceSessions:
        """The sessions of a workspace; none, unless they are made, where nobody wrote to it."""
        longterm = self.memory(workspace, make=True) if make else self.readable(workspace)
        make_sessions = self._maker_of_sessions()
        with self._opening:
            memory = self._sessions.get(workspace)
            if memory is not None and memory.longterm is longterm:
                return memory
            logs = self.storage.workspace(workspace).logs
            prompts, receipts = self._prompts(workspace, longterm), self.receipts(workspace)
            found_memory = make_sessions(workspace, logs, longterm, prompts, receipts, engine=self._engine(workspace))
            if self._open.get(workspace) is longterm:
                self._sessions[workspace] = found_memory
            return found_memory

    def _index(self, parts: WorkspaceStorage) -> Index:
        settings = self._settings
        return Index(
            parts.open_source(),
            self._embedder,
            store=parts.open_index(),
            ranking=RankingSettings(**settings.ranking.model_dump()),
            max_file_bytes=settings.max_file_bytes,
            today=lambda: settings.now().date(),
            zone=settings.zone,
            reranker=self._reranker,
        )

    def receipts(self, workspace: str) -> Receipts:
        """The receipts of a workspace, there or not."""
        return Receipts(self.storage.workspace(workspace).records, keep_days=self._settings.receipt_days)

    def engine(self, workspace: str) -> GuardedEngine | None:
        """The configured engine of somebody else, not loaded yet; None for the service's own."""
        with self._opening:
            return self._engine(workspace)

    def known_problems(self, workspace: str) -> tuple[str, ...]:
        """Known failures of an engine that was used here already; does not load it."""
        engine = self._engines.get(workspace)
        return engine.problems() if engine else ()

    def close(self) -> None:
        """Stop background work and give back all files."""
        self.watching.close()
        with self._opening:
            for engine in self._engines.values():
                engine.dispose()
            self._engines.clear()
            while self._open:
                self._close(next(iter(self._open)))
        self.storage.close()

    def _close(self, workspace: str) -> None:
        self.watching.leave(workspace)
        self._sessions.pop(workspace, None)
        self._open.pop(workspace).close()

    def _open_memory(self, workspace: str, parts: WorkspaceStorage) -> LongTermMemory:
        settings = self._settings
        files = MemoryStore(parts.documents, now=settings.now, max_bytes=settings.max_file_bytes)
        erasures = Erasures(parts.records, self.storage.coordination, workspace, self.storage.note_erasure)
        memory = LongTermMemory(files, self._index(parts), erasures, lambda: parts.logs, rests=self._rests)
        erasures.add_copies("prompts", self._prompts(workspace, memory).sweep)
        return memory

    def _prompts(self, workspace: str, memory: LongTermMemory) -> PromptRecords:
        return PromptRecords(self.storage.workspace(workspace).records, memory.still_in_file)

    def _recover(self, memory: LongTermMemory, workspace: str) -> None:
        """See to what killed processes left behind; what cannot be done now is done later, and `doctor` names it."""
        with suppress(MemoryServiceError):
            memory.recover()
            self.storage.sweep(workspace)

    def _engine(self, workspace: str) -> GuardedEngine | None:
        name = self._settings.context_engine
        if name == OWN_ENGINE:
            return None
        from memory_service.engines import EnginePlace, GuardedEngine, load_engine

        if workspace not in self._engines:
            place = EnginePlace(
                workspace=workspace, folder=self.storage.workspace(workspace).scratch / "engines" / name
            )
            self._engines[workspace] = GuardedEngine(name, lambda: load_engine(name, place))
        return self._engines[workspace]
