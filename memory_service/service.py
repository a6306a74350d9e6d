"""Owns `MemoryService`, the facade: one method per use case, called by the HTTP API and the command line.

Invariants: every name and path is checked before the disk is touched; errors that leave are those of
`memory_service.errors`; workspaces are opened at first use and share one embedding model.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from indexer import (
    Embedder,
    Index,
    IndexerError,
    IndexStatus,
    Mode,
    QueryInvalid,
    RankingSettings,
    SearchFilter,
    SearchResults,
    SourceMissing,
    SyncPlan,
    SyncProgress,
    SyncReport,
)
from indexer.files.sources import EXTRA_MARK, is_session_path
from indexer.files.watch import WatchState
from indexer.stores.base import IndexStore
from memory_service.benchmark import Benchmark, measure
from memory_service.config import Settings, load_settings
from memory_service.context import Context, Receipt, build_context
from memory_service.doctor import Finding, examine
from memory_service.engines import DEFAULT, EnginePlace, GuardedEngine, check_engine, load_engine
from memory_service.errors import InvalidRequest, NotFound, StorageFailed
from memory_service.events import EventHub
from memory_service.hooks import Hooks
from memory_service.lanes import Lanes
from memory_service.llm.base import never
from memory_service.longterm import LongTermMemory
from memory_service.memories import (
    AppendedMemory,
    FileRange,
    ForgottenMemory,
    MemoryFile,
    MemoryFiles,
    NewMemory,
    read_range,
)
from memory_service.operations import Operation, Operations
from memory_service.packing import candidates_for
from memory_service.pages import draft
from memory_service.parts import make_embedder, make_models, make_reranker
from memory_service.receipts import Receipts, new_receipt_id
from memory_service.sessions.folder import SessionLogs
from memory_service.shortterm.bench import Models, Shared
from memory_service.shortterm.compactor import Compactor
from memory_service.shortterm.memory import ShortTermMemory
from memory_service.shortterm.stateless import Stateless, StatelessCall, compacted
from memory_service.watching import Followed, Watching, follow
from memory_service.workspaces import Workspaces, extra_folders, memory_path

_OPEN_WORKSPACES = 256

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Done(Generic[T]):
    """What a use case gave, and what of it was missing.

    Attributes:
        degraded: Parts that failed after the essential was done, each "part: why and what to do".
    """

    value: T
    degraded: tuple[str, ...] = ()


class MemoryService:
    """The long-term memory of any number of workspaces below one home folder.

    Args:
        settings: See `memory_service.config`.
        embedder: Takes the place of the configured one.
        models: Take the place of the configured ones.

    Safe to use from several threads, and beside other processes on the same home.
    """

    def __init__(self, settings: Settings, *, embedder: Embedder | None = None, models: Models | None = None) -> None:
        self.settings = settings
        self.operations = Operations()
        self._workspaces = Workspaces(settings.home)
        check_engine(settings.context_engine)
        self._embedder = embedder or make_embedder(settings)
        self._reranker = make_reranker(settings)
        self.events = EventHub(now=settings.now)
        self.hooks = Hooks()
        self._shared = Shared(
            settings=settings,
            lanes=Lanes(settings.compaction.max_concurrent),
            events=self.events,
            hooks=self.hooks,
            models=models or make_models(settings),
        )
        self._compactor = Compactor(
            model=self._shared.models.summaries,
            fallback_model=self._shared.models.fallback,
            embedder=self._embedder,
            timeout_seconds=settings.llm_timeout_seconds,
        )
        self._open: dict[str, LongTermMemory] = {}
        self._sessions: dict[str, ShortTermMemory] = {}
        # As long as the service: what failed is asked no more, however often its workspace is opened.
        self._engines: dict[str, GuardedEngine] = {}
        self._opening = threading.Lock()
        self._watching = Watching()

    @classmethod
    def open(cls, home: Path | str | None = None, **settings: Any) -> MemoryService:
        """Open a home folder; nothing is read or made before the first use of a workspace."""
        return cls(load_settings(home=home, **settings))

    def close(self) -> None:
        """Stop background work and give back all files."""
        self._watching.close()
        self.events.close()
        self.operations.close()
        with self._opening:
            self._sessions.clear()
            for engine in self._engines.values():
                engine.dispose()
            self._engines.clear()
            for memory in self._open.values():
                memory.close()
            self._open.clear()

    def __enter__(self) -> MemoryService:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Memories

    def remember(self, workspace: str, new: NewMemory) -> Done[AppendedMemory]:
        """Append an entry to the file of its day; durable and searchable when this returns."""
        draft(new)  # A memory that cannot be stored makes no workspace.
        entry, missing = self._memory(workspace, make=True).remember(new)
        return Done(value=entry, degraded=tuple(missing))

    def list_files(self, workspace: str) -> list[MemoryFile]:
        """All memory files, by path."""
        return self._memory(workspace).files.list()

    def read_file(self, workspace: str, path: str, *, start_line: int = 1, lines: int | None = None) -> FileRange:
        """A range of lines of a memory file, or of a file of an extra folder that the index lists."""
        memory = self._memory(workspace)
        if path.startswith(EXTRA_MARK):
            with _translated():
                place = memory.index.locate(path)
            return read_range(place, path, start_line=start_line, lines=lines)
        return memory.files.read(memory_path(path), start_line=start_line, lines=lines)

    def write_file(
        self, workspace: str, path: str, text: str, *, if_match: str | None = None, if_none_match: bool = False
    ) -> Done[str]:
        """Replace a file that is still what the caller saw, or make a new one; gives its etag."""
        checked = memory_path(path)
        # A file that has to be there already makes no workspace.
        etag, missing = self._memory(workspace, make=if_match is None).write(
            checked, text, if_match=if_match, if_none_match=if_none_match
        )
        return Done(value=etag, degraded=tuple(missing))

    def delete_file(self, workspace: str, path: str) -> Done[str]:
        """Erase a file from disk and index; gives its path."""
        checked = memory_path(path)
        return Done(value=checked, degraded=tuple(self._memory(workspace).delete(checked)))

    def forget(self, workspace: str, memory_id: str) -> Done[ForgottenMemory]:
        """Erase an entry from its file and from the index."""
        gone, missing = self._memory(workspace).forget(memory_id)
        return Done(value=gone, degraded=tuple(missing))

    # Search and context

    def search(
        self,
        workspace: str,
        query: str,
        *,
        limit: int = 6,
        mode: Mode = "hybrid",
        kept: SearchFilter = SearchFilter(),  # noqa: B008  (frozen)
        explain: bool = False,
    ) -> SearchResults:
        """Find the passages that answer a question, best first."""
        memory = self._memory(workspace)
        with _translated():
            return memory.search(query, limit=limit, mode=mode, kept=kept, explain=explain)

    def context(
        self,
        workspace: str,
        query: str,
        *,
        budget_tokens: int = 2000,
        kept: SearchFilter = SearchFilter(),  # noqa: B008  (frozen)
    ) -> Context:
        """A block of memories of at most `budget_tokens`, with its stored receipt."""
        if budget_tokens < 0:
            raise InvalidRequest(f"The budget is {budget_tokens} tokens. Give 0 or more.")
        memory = self._memory(workspace)
        with _translated():
            found = memory.search(query, limit=candidates_for(budget_tokens), kept=kept, snippets=False)
        now = self.settings.now()
        context = build_context(
            found.hits,
            query=query,
            budget_tokens=budget_tokens,
            receipt_id=new_receipt_id(now),
            created_at=now,
            degraded=found.degraded,
        )
        return self._with_stored_receipt(workspace, context)

    def receipt(self, workspace: str, receipt_id: str) -> Receipt:
        """The record of a context that was made before."""
        self._workspaces.existing(workspace)
        return self._receipts(workspace).get(receipt_id)

    # Sessions

    def sessions(self, workspace: str, *, make: bool = False) -> ShortTermMemory:
        """The sessions of a workspace, with all that can be done to them.

        Args:
            workspace: Its name.
            make: Whether the workspace is made if it is not there.

        Raises:
            InvalidName: The name is not one of a workspace.
            NotFound: There is no such workspace.
        """
        longterm = self._memory(workspace, make=make)
        with self._opening:
            known = self._sessions.get(workspace)
            if known is None or known.longterm is not longterm:
                folder = self._workspaces.folder(workspace)
                known = self._sessions[workspace] = ShortTermMemory(
                    workspace,
                    SessionLogs(folder / "sessions"),
                    longterm,
                    self._receipts(workspace),
                    self._shared,
                    self._compactor,
                    self._engine(workspace),
                )
            return known

    def engine_problems(self, workspace: str) -> tuple[str, ...]:
        """What a context engine of somebody else fails to do in a workspace; it is loaded for that."""
        self._workspaces.existing(workspace)
        with self._opening:
            engine = self._engine(workspace)
        return engine.problems() if engine else ()

    def compact_messages(self, call: StatelessCall, *, cancelled: Callable[[], bool] = never) -> Stateless:
        """Compact a list of messages without a session; see `shortterm.stateless`."""
        return compacted(call, self.settings, self._compactor, now=self.settings.now(), cancelled=cancelled)

    # The index

    def plan(self, workspace: str, paths: Collection[str] = ()) -> SyncPlan:
        """What a reindex would do."""
        memory = self._memory(workspace)
        with _translated():
            return memory.index.plan(_checked_paths(paths))

    def reindex(
        self,
        workspace: str,
        paths: Collection[str] = (),
        *,
        full: bool = False,
        on_progress: Callable[[SyncProgress], None] | None = None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> SyncReport:
        """Bring the index up to date with the files, here and now."""
        memory = self._memory(workspace)
        with _translated():
            return memory.sync(_checked_paths(paths), full=full, on_progress=on_progress, cancelled=cancelled)

    def start_reindex(self, workspace: str, paths: Collection[str] = (), *, full: bool = False) -> Operation:
        """The same in the background."""
        memory = self._memory(workspace)
        checked = _checked_paths(paths)
        return self.operations.start(
            workspace,
            lambda on_progress, cancelled: memory.sync(
                checked, full=full, on_progress=on_progress, cancelled=cancelled
            ),
        )

    def status(self, workspace: str) -> IndexStatus:
        """How a workspace stands."""
        memory = self._memory(workspace)
        with _translated():
            return memory.index.status()

    def watch(self) -> None:
        """From now on index what others change in the workspaces that are in use, without a search having to ask."""
        self._watching.start()

    def watch_state(self, workspace: str) -> WatchState:
        """Whether that is done for a workspace, and why not."""
        return self._watching.state(workspace)

    def follow(
        self,
        workspace: str,
        on_followed: Callable[[Followed], None],
        stop: threading.Event,
        paths: Collection[str] = (),
    ) -> None:
        """Index what changes in one workspace, here and now, until told to stop; see `watching.follow`."""
        memory = self._memory(workspace)
        with _translated():
            follow(memory.index, on_followed, stop, only=_checked_paths(paths))

    def workspaces(self) -> list[str]:
        """Names of all workspaces."""
        return self._workspaces.names()

    def examine(self, workspace: str) -> Iterator[Finding]:
        """Check every part by using it; gives one finding after the other."""
        folder = self._workspaces.folder(workspace)
        failing = self._engines[workspace].problems() if workspace in self._engines else ()
        return examine(self.settings, folder, self._embedder, reranker=self._reranker, engine_problems=failing)

    def bench(self, workspace: str, *, seconds: float = 5.0, told: Callable[[str], None] = lambda _: None) -> Benchmark:
        """Measure a workspace's index: searches by stage, the fast path against the exact one, indexing."""
        index = self._memory(workspace).index
        folder = self._workspaces.folder(workspace)
        with _translated():
            return measure(
                index,
                lambda store: self._index(folder, store),
                self._embedder,
                seconds=seconds,
                told=told,
            )

    def ready(self) -> tuple[str, ...]:
        """What keeps the service from serving; empty when nothing does."""
        home = self.settings.home
        if home.exists() and not home.is_dir():
            return (f"home: {home} is not a folder. Choose another --home.",)
        return ()

    def warm_up(self) -> None:
        """Load the models now instead of at the first search."""
        if self._embedder is not None:
            self._embedder.embed_query("warm")
        if self._reranker is not None:
            self._reranker.score("warm", ["up"])

    @property
    def embedding_model(self) -> str:
        """Name of the model in use; "none" without."""
        return self._embedder.name if self._embedder else "none"

    def _memory(self, workspace: str, *, make: bool = False) -> LongTermMemory:
        folder = self._workspaces.ensure(workspace) if make else self._workspaces.existing(workspace)
        with self._opening:
            memory = self._open.get(workspace)
            if memory is None:
                if len(self._open) >= _OPEN_WORKSPACES:
                    oldest = next(iter(self._open))
                    self._watching.leave(oldest)
                    self._open.pop(oldest).close()
                    self._sessions.pop(oldest, None)
                memory = self._open[workspace] = self._opened(folder)
        self._watching.use(workspace, memory)
        return memory

    def _opened(self, folder: Path) -> LongTermMemory:
        files = MemoryFiles(folder, now=self.settings.now, max_bytes=self.settings.max_file_bytes)
        return LongTermMemory(files, self._index(folder))

    def _index(self, folder: Path, store: IndexStore | None = None) -> Index:
        settings = self.settings
        return Index(
            folder,
            self._embedder,
            store=store,
            ranking=RankingSettings(**settings.ranking.model_dump()),
            extra=extra_folders(folder, settings.extra_paths),
            max_file_bytes=settings.max_file_bytes,
            today=lambda: settings.now().date(),
            reranker=self._reranker,
        )

    def _engine(self, workspace: str) -> GuardedEngine | None:
        """The configured engine of somebody else, not loaded yet; None for the service's own."""
        name = self.settings.context_engine
        if name == DEFAULT:
            return None
        if workspace not in self._engines:
            place = EnginePlace(workspace=workspace, folder=self._workspaces.folder(workspace) / "engines" / name)
            self._engines[workspace] = GuardedEngine(name, lambda: load_engine(name, place))
        return self._engines[workspace]

    def _receipts(self, workspace: str) -> Receipts:
        folder = self._workspaces.folder(workspace) / "receipts"
        return Receipts(folder, keep_days=self.settings.receipt_days)

    def _with_stored_receipt(self, workspace: str, context: Context) -> Context:
        try:
            self._receipts(workspace).put(context.receipt)
        except StorageFailed as error:
            # The block is good without it: the caller gets both, and hears that the receipt was not kept.
            return context.with_degraded(f"receipt: {error}")
        return context


def _checked_paths(paths: Collection[str]) -> tuple[str, ...]:
    # The logs of sessions are named by the service alone, and the index checks the names; so it does in extra folders.
    return tuple(
        path
        if path.rstrip("/") in ("memory", "sessions") or path.startswith(EXTRA_MARK) or is_session_path(path)
        else _checked(path)
        for path in paths
    )


def _checked(path: str) -> str:
    # A folder below memory/ is as good as a file: checked as the file that it might hold.
    folder = path.rstrip("/")
    return memory_path(path) if path.lower().endswith(".md") else memory_path(f"{folder}/x.md").removesuffix("/x.md")


@contextmanager
def _translated() -> Iterator[None]:
    """Errors of the index, as those of the service."""
    try:
        yield
    except QueryInvalid as error:
        raise InvalidRequest(str(error)) from error
    except SourceMissing as error:
        raise NotFound(str(error)) from error
    except IndexerError as error:
        raise StorageFailed(str(error)) from error
