"""`MemoryService`, the facade: one method per use case, called by the HTTP API and the command line.

Invariants: every name and path is checked before the disk is touched; errors that leave are those of
`memory_service.errors`; workspaces are opened at first use and share one embedding model.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, TypeVar

from indexer import (
    Embedder,
    IndexerError,
    IndexStatus,
    Mode,
    QueryInvalid,
    SearchFilter,
    SearchResults,
    SourceMissing,
    SyncPlan,
    SyncProgress,
    SyncReport,
)
from indexer.lru import LRU
from indexer.sources.scan import is_session_path
from indexer.sources.watch import WatchState
from indexer.types import EXTRA_MARK, ErasedPassages
from memory_service.compaction.stateless import compact_messages
from memory_service.config import Settings, load_settings
from memory_service.disk import write_fault
from memory_service.engines import check_engine
from memory_service.errors import InvalidRequest, MemoryServiceError, NotFound, StorageFailed
from memory_service.events import EventHub
from memory_service.hooks import Hooks
from memory_service.llm.base import not_cancelled
from memory_service.locks import SessionLocks
from memory_service.memories.block import Context, Receipt, build_context, candidates_for
from memory_service.memories.format import draft
from memory_service.memories.receipts import new_receipt_id
from memory_service.memories.store import AppendedMemory, FileRange, ForgottenMemory, MemoryFile, NewMemory, read_range
from memory_service.schemas.compaction import CompactedMessages, StatelessRequest
from memory_service.schemas.memories import Order
from memory_service.service.benchmark import Benchmark, measure
from memory_service.service.conversations import (
    ConversationCall,
    ConversationPrompt,
    Conversations,
    last_words,
    with_block,
)
from memory_service.service.doctor import Finding, examine
from memory_service.service.handles import Original, original_of_file, original_of_messages, read_handle
from memory_service.service.options import options_of
from memory_service.service.session_services import Models, Shared
from memory_service.service.session_use_cases import SessionUseCases
from memory_service.service.short_term import ShortTermMemory
from memory_service.service.upstreams import Upstreams
from memory_service.service.watching import Operation, Operations, SyncedChange, follow
from memory_service.service.workspace import OpenWorkspaces, make_embedder, make_models, make_reranker
from memory_service.sessions.records import SessionHeader
from memory_service.sessions.state import SessionState
from memory_service.text.recall import decide_recall
from memory_service.workspaces import memory_path

T = TypeVar("T")

_MOST_CONVERSATIONS = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Done(Generic[T]):
    """Result of a use case, with its degraded parts.

    Attributes:
        degraded: Parts that failed after the essential was done, each "part: why and what to do".
    """

    value: T
    degraded: tuple[str, ...] = ()


class MemoryService(SessionUseCases):
    """Memory and sessions of any number of workspaces below one home folder.

    Args:
        settings: See `memory_service.config`.
        embedder: Takes the place of the configured one.
        models: Take the place of the configured ones.

    Safe to use from several threads, and beside other processes on the same home.
    """

    def __init__(self, settings: Settings, *, embedder: Embedder | None = None, models: Models | None = None) -> None:
        self.settings = settings
        self.operations = Operations()
        self.events = EventHub(now=settings.now)
        self.hooks = Hooks()
        check_engine(settings.context_engine)
        self._embedder = embedder or make_embedder(settings)
        self._reranker = make_reranker(settings)
        shared = Shared(
            settings=settings,
            session_locks=SessionLocks(settings.compaction.max_concurrent),
            events=self.events,
            hooks=self.hooks,
            models=models or make_models(settings),
        )
        self._workspaces = OpenWorkspaces(settings, self._embedder, self._reranker, shared)
        self._conversing = threading.Lock()
        self._conversations: LRU[str, Conversations] = LRU(_MOST_CONVERSATIONS)

    @classmethod
    def open(cls, home: Path | str | None = None, **settings: Any) -> MemoryService:
        """Open a home folder; nothing is read or made before the first use of a workspace."""
        return cls(load_settings(home=home, **settings))

    def close(self) -> None:
        """Stop background work and give back all files."""
        self.events.close()
        self.operations.close()
        self._workspaces.close()

    def __enter__(self) -> MemoryService:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Memories

    def remember(self, workspace: str, new: NewMemory) -> Done[AppendedMemory]:
        """Append an entry to the file of its day; durable and searchable when this returns."""
        draft(new)  # A memory that cannot be stored makes no workspace.
        entry, missing = self._workspaces.memory(workspace, make=True).remember(new)
        return Done(value=entry, degraded=tuple(missing))

    def list_files(self, workspace: str) -> list[MemoryFile]:
        """All memory files, by path."""
        return self._workspaces.memory(workspace).files.list()

    def read_file(self, workspace: str, path: str, *, start_line: int = 1, lines: int | None = None) -> FileRange:
        """A range of lines of a memory file, or of a file of an extra folder that the index lists."""
        memory = self._workspaces.memory(workspace)
        if path.startswith(EXTRA_MARK):
            with _translated():
                place = memory.index.locate(path)
            return read_range(place, path, start_line=start_line, lines=lines)
        return memory.files.read(memory_path(path), start_line=start_line, lines=lines)

    def original(self, workspace: str, handle: str, *, session_id: str | None = None) -> Original:
        """The text that a handle stands for; see `memory_service.service.handles`.

        Args:
            workspace: Its name.
            handle: A path, with or without lines, or messages such as `log:12`.
            session_id: The session of such messages, where the handle does not name it.
        """
        read = read_handle(handle)
        if not read.path:
            return original_of_messages(read, self.sessions(workspace).store, session_id)
        return original_of_file(
            read,
            lambda path, start, lines: self.read_file(workspace, path, start_line=start, lines=lines),
            self._workspaces.memory(workspace).files.entries,
        )

    def write_file(
        self, workspace: str, path: str, text: str, *, if_match: str | None = None, if_none_match: bool = False
    ) -> Done[str]:
        """Replace a file that is still what the caller saw, or make a new one; gives its etag."""
        checked = memory_path(path)
        # A file that has to be there already makes no workspace.
        etag, missing = self._workspaces.memory(workspace, make=if_match is None).write(
            checked, text, if_match=if_match, if_none_match=if_none_match
        )
        return Done(value=etag, degraded=tuple(missing))

    def delete_file(self, workspace: str, path: str) -> Done[ErasedPassages | None]:
        """Erase a file from disk and index, and look for it; None where the index could not be read."""
        erased, missing = self._workspaces.memory(workspace).delete(memory_path(path))
        return Done(value=erased, degraded=tuple(missing))

    def forget(self, workspace: str, memory_id: str) -> Done[ForgottenMemory]:
        """Erase an entry from its file and from the index."""
        gone, missing = self._workspaces.memory(workspace).forget(memory_id)
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
        order: Order = "score",
    ) -> SearchResults:
        """Find the passages that answer a question, best first; memories before sessions, if that is the order."""
        memory = self._workspaces.memory(workspace)
        with _translated():
            return memory.search(query, limit=limit, mode=mode, kept=kept, explain=explain, order=order)

    def context(
        self,
        workspace: str,
        query: str,
        *,
        budget_tokens: int = 2000,
        kept: SearchFilter = SearchFilter(),  # noqa: B008  (frozen)
        order: Order = "score",
    ) -> Context:
        """A block of memories of at most `budget_tokens`, with its stored receipt."""
        if budget_tokens < 0:
            raise InvalidRequest(f"The budget is {budget_tokens} tokens. Give 0 or more.")
        memory = self._workspaces.memory(workspace)
        with _translated():
            found = memory.search(query, limit=candidates_for(budget_tokens), kept=kept, snippets=False, order=order)
        now = self.settings.now()
        context = build_context(
            found.hits,
            query=query,
            budget_tokens=budget_tokens,
            receipt_id=new_receipt_id(now),
            created_at=now,
            degraded=found.degraded,
            order=order,
        )
        return self._with_stored_receipt(workspace, context)

    def receipt(self, workspace: str, receipt_id: str) -> Receipt:
        """The record of a context that was made before."""
        self._workspaces.folders.existing(workspace)
        return self._workspaces.receipts(workspace).get(receipt_id)

    # Sessions

    def sessions(self, workspace: str, *, make: bool = False) -> ShortTermMemory:
        """The parts that work on the sessions of a workspace; the use cases are methods of this class.

        Args:
            workspace: Its name.
            make: Whether the workspace is made if it is not there.

        Raises:
            InvalidName: The name is not one of a workspace.
            NotFound: There is no such workspace.
        """
        return self._workspaces.sessions(workspace, make=make)

    def conversations(self, workspace: str, *, make: bool = False) -> Conversations:
        """The conversations that clients keep themselves, as sessions of a workspace; see `sessions`."""
        sessions = self._workspaces.sessions(workspace, make=make)
        with self._conversing:
            known = self._conversations.get(workspace)
            if known is None or known.sessions is not sessions:
                known = self._conversations[workspace] = Conversations(sessions)
            return known

    def recalled_prompt(self, workspace: str, call: ConversationCall) -> ConversationPrompt:
        """The messages of a call with the memories that they ask for; no session is read or written."""
        decision = decide_recall(last_words(call.messages))
        if not decision.search:
            return ConversationPrompt(messages=tuple(call.messages))
        try:
            made = self.context(workspace, decision.query)
        except MemoryServiceError as error:
            return ConversationPrompt(messages=tuple(call.messages), degraded=(f"recall: {error}",))
        sent = with_block(call.messages, made.block, call.wire)
        return ConversationPrompt(
            messages=tuple(sent), receipt_id=made.receipt.receipt_id, degraded=tuple(made.receipt.degraded)
        )

    @cached_property
    def upstreams(self) -> Upstreams:
        """The providers that calls of clients are sent on to."""
        return Upstreams(self.settings)

    def engine_problems(self, workspace: str) -> tuple[str, ...]:
        """Failures of a third-party context engine in a workspace; loads the engine."""
        self._workspaces.folders.existing(workspace)
        engine = self._workspaces.engine(workspace)
        return engine.problems() if engine else ()

    def compact_messages(
        self, request: StatelessRequest, *, cancelled: Callable[[], bool] = not_cancelled
    ) -> CompactedMessages:
        """Compact a list of messages without a session, as the settings say; see `memory_service.compaction`."""
        header = SessionHeader(session_id="", model=request.model, context_window=request.context_window)
        options = options_of(
            self.settings, SessionState(header=header), preset=request.preset, overrides=request.overrides
        )
        compactor = self._workspaces.compactor
        return compact_messages(request, options, compactor, now=self.settings.now(), cancelled=cancelled)

    # The index

    def plan(self, workspace: str, paths: Collection[str] = ()) -> SyncPlan:
        """Plan a reindex without doing it."""
        memory = self._workspaces.memory(workspace)
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
        memory = self._workspaces.memory(workspace)
        with _translated():
            return memory.sync(_checked_paths(paths), full=full, on_progress=on_progress, cancelled=cancelled)

    def start_reindex(self, workspace: str, paths: Collection[str] = (), *, full: bool = False) -> Operation:
        """Start a reindex in the background."""
        memory = self._workspaces.memory(workspace)
        checked = _checked_paths(paths)
        return self.operations.start(
            workspace,
            lambda on_progress, cancelled: memory.sync(
                checked, full=full, on_progress=on_progress, cancelled=cancelled
            ),
        )

    def status(self, workspace: str) -> IndexStatus:
        """Status of a workspace."""
        memory = self._workspaces.memory(workspace)
        with _translated():
            return memory.index.status()

    def watch(self) -> None:
        """From now on index what others change in the workspaces that are in use, without a search having to ask."""
        self._workspaces.watching.start()

    def watch_state(self, workspace: str) -> WatchState:
        """State of the file watch of a workspace, with the reason if it is off."""
        return self._workspaces.watching.state(workspace)

    def follow(
        self,
        workspace: str,
        on_followed: Callable[[SyncedChange], None],
        stop: threading.Event,
        paths: Collection[str] = (),
    ) -> None:
        """Index what changes in one workspace, here and now, until told to stop; see `watching.follow`."""
        memory = self._workspaces.memory(workspace)
        with _translated():
            follow(memory.index, on_followed, stop, only=_checked_paths(paths))

    def workspaces(self) -> list[str]:
        """Names of all workspaces."""
        return self._workspaces.folders.names()

    def examine(self, workspace: str) -> Iterator[Finding]:
        """Check every part by using it; gives one finding after the other."""
        folder = self._workspaces.folders.folder(workspace)
        failing = self._workspaces.known_problems(workspace)
        return examine(self.settings, folder, self._embedder, reranker=self._reranker, engine_problems=failing)

    def bench(self, workspace: str, *, seconds: float = 5.0, told: Callable[[str], None] = lambda _: None) -> Benchmark:
        """Measure a workspace's index: searches by stage, the fast path against the exact one, indexing."""
        index = self._workspaces.memory(workspace).index
        with _translated():
            return measure(
                index,
                lambda place: self._workspaces.index(index.root, place),
                self._embedder,
                seconds=seconds,
                told=told,
            )

    def ready(self) -> tuple[str, ...]:
        """Problems that keep the service from serving; empty if there are none."""
        fault = write_fault(self.settings.home)
        return (f"home: {fault}. Mend that, or choose another --home.",) if fault else ()

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

    def _with_stored_receipt(self, workspace: str, context: Context) -> Context:
        try:
            self._workspaces.receipts(workspace).put(context.receipt)
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
