"""`MemoryService`, the facade: one method per use case, called by the HTTP API and the command line.

Invariants: every name and path is checked before the disk is touched; errors that leave are those of
`memory_service.errors`; workspaces are opened at first use and share one embedding model.
"""

from __future__ import annotations

import datetime as dt
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from indexer import Embedder, LanguageChoice, SearchFilter
from indexer.common import LRU, THROTTLE
from memory_service.config import OWN_ENGINE, Settings, load_settings
from memory_service.conversations.seals import Seals
from memory_service.errors import InvalidRequest, MemoryServiceError, StorageFailed
from memory_service.home import check_workspace
from memory_service.hooks import Hooks
from memory_service.llm.base import not_cancelled
from memory_service.memories.block import RelevanceLimits, build_context, candidates_for, checked_share
from memory_service.memories.drafts import checked_tags
from memory_service.memories.workspace_summaries import workspace_summaries
from memory_service.prompts.receipt_records import new_receipt_id
from memory_service.runtime import search_answers
from memory_service.runtime.access import AccessControl
from memory_service.runtime.background import Operations
from memory_service.runtime.events import EventHub
from memory_service.runtime.index_answers import translate_errors
from memory_service.runtime.keyed_answers import KeyedAnswers
from memory_service.runtime.models import (
    Models,
    load_litellm,
    make_embedder,
    make_models,
    make_reranker,
    make_talk_judge,
)
from memory_service.runtime.presence import Presence
from memory_service.runtime.workspace_events import WorkspaceEvents
from memory_service.schemas.compaction import (
    CompactedMessages,
    ConversationContext,
    ConversationRequest,
    StatelessRequest,
)
from memory_service.schemas.memories import (
    Context,
    Order,
    Receipt,
    SearchMode,
    SearchResults,
    Source,
)
from memory_service.schemas.messages import AppendedMessages, UsageReport
from memory_service.schemas.status import Check, WorkspaceSummary
from memory_service.service.index_use_cases import IndexUseCases
from memory_service.service.memory_use_cases import MemoryUseCases
from memory_service.service.session_use_cases import SessionUseCases
from memory_service.service.workspace import OpenWorkspaces
from memory_service.storage.engines import open_storage
from memory_service.storage.record_store import RecordStore

if TYPE_CHECKING:
    from memory_service.compaction.compactor import Compactor
    from memory_service.conversations.client_calls import ConversationCall, ConversationPrompt
    from memory_service.conversations.join import Conversations
    from memory_service.conversations.references import CompactionItems
    from memory_service.runtime.session_services import ServiceParts
    from memory_service.service.short_term import WorkspaceSessions
    from memory_service.storage.home_join import HomeJoin

# Parts for providers' clients, checks and measurements are imported where they are used: a search has no need of them.
_MOST_CONVERSATIONS = 256
_SIGNING_KEY = "signing.key"


class MemoryService(MemoryUseCases, SessionUseCases, IndexUseCases):
    """Memory and sessions of any number of workspaces below one home folder.

    Args:
        settings: See `memory_service.config`.
        embedder: Takes the place of the configured one.
        models: Take the place of the configured ones.
        rests: Whether what takes long to index is left to another process, for one that ends at once.

    Safe to use from several threads, and beside other processes on the same home.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        embedder: Embedder | LanguageChoice | None = None,
        models: Models | None = None,
        rests: bool = False,
    ) -> None:
        self.settings = settings
        self.hooks = Hooks()
        if settings.context_engine != OWN_ENGINE:
            from memory_service.engines import check_engine

            check_engine(settings.context_engine)
        self._embedder = embedder or make_embedder(settings)
        self._reranker = make_reranker(settings)
        self._models = models or make_models(settings)
        self.storage = storage = open_storage(settings)
        self._workspaces = OpenWorkspaces(
            storage, settings, self._embedder, self._reranker, self._sessions_maker, rests=rests
        )
        self._presence = Presence(storage.coordination)
        self._operations = Operations(self._records, self._presence, contains=self.storage.contains)
        self.keyed_answers = KeyedAnswers(self._records, self._presence)
        self.access = AccessControl(
            storage.records,
            settings.api_keys,
            secret=lambda: storage.secret(_SIGNING_KEY, 32),
            now=lambda: storage.now().astimezone(settings.zone),
        )
        self.events = EventHub(storage.coordination, self._presence, now=settings.now)
        self._workspace_events = WorkspaceEvents(self.events, self._look, self.operations)
        self._seals = Seals(storage)
        self._shared: tuple[ServiceParts, Compactor] | None = None
        self._sharing = threading.Lock()
        self._conversing = threading.Lock()
        self._conversations: LRU[str, Conversations] = LRU(_MOST_CONVERSATIONS)

    def _records(self, workspace: str) -> RecordStore:
        return self.storage.workspace(workspace).records if workspace else self.storage.records

    def _sessions_maker(self) -> Callable[..., WorkspaceSessions]:
        """The maker of the sessions of a workspace; its code is loaded with the first of them."""
        from memory_service.service.short_term import WorkspaceSessions

        services, compactor = self._session_parts()
        return partial(WorkspaceSessions, shared=services, compactor=compactor)

    def _session_parts(self) -> tuple[ServiceParts, Compactor]:
        """The services that all sessions share, and their compactor; made with the first, as most calls need none."""
        with self._sharing:
            if self._shared is None:
                from memory_service.compaction.compactor import Compactor
                from memory_service.runtime.locks import SessionLocks
                from memory_service.runtime.session_services import ServiceParts

                services = ServiceParts(
                    settings=self.settings,
                    session_locks=SessionLocks(self.settings.compaction.max_concurrent, self.storage.coordination),
                    events=self.events,
                    hooks=self.hooks,
                    models=self._models,
                )
                compactor = Compactor(
                    model=services.models.summaries,
                    fallbacks=services.models.fallbacks,
                    embedder=self._embedder,
                    judge=make_talk_judge(self.settings),
                    timeout_seconds=self.settings.llm_timeout_seconds,
                )
                self._shared = services, compactor
            return self._shared

    @classmethod
    def open(cls, home: Path | str | None = None, **settings: Any) -> MemoryService:
        """Open a home folder; nothing is read or made before the first use of a workspace."""
        return cls(load_settings(home=home, **settings))

    def close(self) -> None:
        """Stop background work and give back all files."""
        self.events.close()
        self._workspace_events.close()
        self._operations.close()
        self._presence.close()
        self._workspaces.close()

    def __enter__(self) -> MemoryService:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Search and context

    @THROTTLE.foreground()
    def search(
        self,
        workspace: str,
        query: str,
        *,
        limit: int = 6,
        mode: SearchMode = "hybrid",
        sources: Collection[Source] = (),
        path_prefix: str = "",
        tags: Collection[str] = (),
        since: dt.date | None = None,
        until: dt.date | None = None,
        min_score: float | None = None,
        min_relevance: float = 0.0,
        order: Order = "score",
        explain: bool = False,
        history: bool = False,
    ) -> SearchResults:
        """Find the passages that answer a question, best first.

        Args:
            workspace: Its name.
            query: The question, in plain words.
            limit: Most results.
            mode: By meaning and words, or by one of them.
            sources: Kinds of source; empty means all.
            path_prefix: Only files whose path begins so.
            tags: Only what has all of these tags.
            since: Only memories of that day or later.
            until: Only memories of that day or earlier.
            min_score: Only results with at least this score.
            min_relevance: Only results with at least this relevance, and those whose relevance is not known.
            order: `memory_first` puts memories and files before what was said in sessions.
            explain: Say what every signal added to each score.
            history: Tell all values that the facts found have had.
        """
        start = time.perf_counter()
        with translate_errors():
            passing = SearchFilter(
                sources=tuple(sources), path_prefix=path_prefix, tags=checked_tags(tags), since=since, until=until
            )
            results = self._workspaces.readable(workspace).search(
                query,
                limit=search_answers.looked_at(limit, min_score, min_relevance),
                mode=mode,
                passing=passing,
                explain=explain,
                order=order,
                history=history,
                spread=True,
            )
        return search_answers.search_results(
            results,
            limit=limit,
            fusion=self.settings.ranking.fusion,
            min_score=min_score,
            min_relevance=checked_share(min_relevance),
            explain=explain,
            took_ms=1000 * (time.perf_counter() - start),
        )

    @THROTTLE.foreground()
    def context(
        self,
        workspace: str,
        query: str,
        *,
        system_prompt: str = "",
        budget_tokens: int = 2000,
        min_relevance: float = 0.0,
        min_best: float = 0.0,
        min_gain: float = 0.0,
        order: Order = "score",
        sources: Collection[Source] = (),
        path_prefix: str = "",
        tags: Collection[str] = (),
        since: dt.date | None = None,
        until: dt.date | None = None,
    ) -> Context:
        """A block of memories of at most `budget_tokens` behind a system prompt, with its stored receipt."""
        if budget_tokens < 0:
            raise InvalidRequest(f"The budget is {budget_tokens} tokens. Give 0 or more.")
        memory = self._workspaces.readable(workspace)
        with translate_errors():
            passing = SearchFilter(
                sources=tuple(sources), path_prefix=path_prefix, tags=checked_tags(tags), since=since, until=until
            )
            results = memory.search(
                query, limit=candidates_for(budget_tokens), passing=passing, snippets=False, order=order
            )
        now, least = self.settings.now(), checked_share(min_relevance)
        context = build_context(
            results.hits,
            query=query,
            budget_tokens=budget_tokens,
            limits=RelevanceLimits(min_relevance=least, min_best=min_best, min_gain=min_gain),
            receipt_id=new_receipt_id(now),
            created_at=now,
            system_prompt=system_prompt,
            degraded=results.degraded,
            order=order,
        )
        receipt = search_answers.receipt(context.receipt, fusion=self.settings.ranking.fusion)
        try:
            if self.has_workspace(workspace):
                self._workspaces.receipts(workspace).put(context.receipt)
        except StorageFailed as error:  # the block is good without it
            receipt = receipt.model_copy(update={"degraded": [*receipt.degraded, f"receipt: {error}"]})
        return context.model_copy(update={"receipt": receipt, "degraded": receipt.degraded})

    def recalled(self, workspace: str, query: str, *, tokens: int = 2000) -> Context:
        """A context as a session recalls it, by the settings `recall`: empty where nothing bears on the question."""
        by = self.settings.recall
        return self.context(workspace, query, budget_tokens=tokens, min_best=by.min_relevance, min_gain=by.min_gain)

    def receipt(self, workspace: str, receipt_id: str) -> Receipt:
        """The record of a context that was made before."""
        record = self._workspaces.receipts(workspace).get(receipt_id)
        return search_answers.receipt(record, fusion=self.settings.ranking.fusion)

    # Sessions

    def sessions(self, workspace: str, *, make: bool = False) -> WorkspaceSessions:
        """The parts that work on the sessions of a workspace, of which one that is not there has none unless made."""
        return self._workspaces.sessions(workspace, make=make)

    def conversations(self, workspace: str, *, make: bool = False) -> Conversations:
        """The conversations that clients keep themselves, as sessions of a workspace; see `sessions`."""
        from memory_service.conversations.join import Conversations

        sessions = self._workspaces.sessions(workspace, make=make)
        with self._conversing:
            conversations = self._conversations.get(workspace)
            if conversations is None or conversations.sessions is not sessions:
                conversations = self._conversations[workspace] = Conversations(sessions)
            return conversations

    def conversation_prompt(
        self, workspace: str, call: ConversationCall, *, cancelled: Callable[[], bool] = not_cancelled
    ) -> ConversationPrompt:
        """The prompt for a client's call, with all that is new appended to its session.

        Raises:
            InvalidReference: The compaction item that the call begins with stands for nothing here.
            Incompressible: The prompt cannot be made to fit.
        """
        return self._compaction_items(workspace).prompt(call, cancelled=cancelled)

    def recovered_prompt(
        self,
        workspace: str,
        prompt: ConversationPrompt,
        call: ConversationCall,
        error: str,
        status: int,
        *,
        cancelled: Callable[[], bool] = not_cancelled,
    ) -> ConversationPrompt | None:
        """The prompt to send after a provider refused one; None where the refusal is the caller's to see."""
        items = self._compaction_items(workspace)
        again = self.conversations(workspace).recover(prompt, call, error, status, cancelled=cancelled)
        return items.with_reference(again, call) if again is not None else None

    def compact_conversation(
        self, workspace: str, call: ConversationCall, *, cancelled: Callable[[], bool] = not_cancelled
    ) -> ConversationPrompt:
        """Compact a client's conversation: the user's messages, and a sealed reference to all that was said.

        Raises:
            InvalidReference: The compaction item that the call begins with stands for nothing here.
            InvalidRequest: Nothing was said, or not in a shape that is known.
            UpstreamFailed: The model failed and nothing may stand in for it; nothing was changed.
        """
        return self._compaction_items(workspace).compact(call, cancelled=cancelled)

    def _compaction_items(self, workspace: str) -> CompactionItems:
        from memory_service.conversations.references import CompactionItems

        return CompactionItems(workspace, self.conversations(workspace, make=True), self._seals)

    def conversation(
        self,
        workspace: str,
        session_id: str,
        request: ConversationRequest,
        *,
        cancelled: Callable[[], bool] = not_cancelled,
    ) -> ConversationContext:
        """The prompt of a conversation that its caller keeps whole; see `session_context`.

        What the session does not have yet is appended. A list that differs from what was said goes on in a branch.

        Raises:
            InvalidName: The id is not one of a session.
            InvalidRequest: A message is in no shape that is known.
            Incompressible: The prompt cannot be made to fit.
        """
        from memory_service.conversations.client_calls import ConversationCall
        from memory_service.home import check_session_id
        from memory_service.runtime.sent_messages import check_messages

        check_session_id(session_id)
        check_messages(request.messages)
        call = ConversationCall(
            messages=request.messages, wire=request.format, session_id=session_id, model=request.model
        )
        text, last_seq, branch_of = self.conversations(workspace, make=True).join(call)
        session_context = self.session_context(workspace, text, request, cancelled=cancelled)
        return ConversationContext(**dict(session_context), session_id=text, branch_of=branch_of, last_seq=last_seq)

    def append_answer(
        self,
        workspace: str,
        session_id: str,
        messages: Sequence[Mapping[str, Any]],
        *,
        after_seq: int,
        usage: UsageReport | None = None,
        finish_reason: str | None = None,
        model: str | None = None,
    ) -> AppendedMessages:
        """Append the answer to a prompt that ended with a message of a session, whenever it comes.

        It is appended once, whoever else appends it; where the session went on otherwise meanwhile, in a branch.
        """
        from memory_service.conversations.client_calls import ConversationPrompt
        from memory_service.runtime.sent_messages import check_messages

        check_messages(messages)
        prompt = ConversationPrompt(messages=(), session_id=session_id, last_seq=after_seq)
        conversations = self.conversations(workspace)
        conversations.sessions.snapshot(session_id)
        conversations.append_answer(prompt, messages, usage=usage, finish_reason=finish_reason, model=model)
        return conversations.sessions.store.standing(session_id)

    def recalled_prompt(self, workspace: str, call: ConversationCall) -> ConversationPrompt:
        """The messages of a call with the memories that they ask for; no session is read or written."""
        from memory_service.conversations.client_calls import ConversationPrompt
        from memory_service.conversations.join import last_words, with_block
        from memory_service.text.recall import decide_recall

        if not (decision := decide_recall(last_words(call.messages))).search:
            return ConversationPrompt(messages=tuple(call.messages))
        try:
            context = self.recalled(workspace, decision.query)
        except MemoryServiceError as error:
            return ConversationPrompt(messages=tuple(call.messages), degraded=(f"recall: {error}",))
        messages, receipt = tuple(with_block(call.messages, context.block, call.wire)), context.receipt
        return ConversationPrompt(messages=messages, receipt_id=receipt.receipt_id, degraded=tuple(receipt.degraded))

    def workspace_of_folder(self, folder: str, *, is_local: bool) -> str:
        """The workspace of the project that a folder belongs to; empty if the folder is none.

        Args:
            folder: An absolute path, as a host tells it.
            is_local: Whether it lies on this machine, and may be looked at.
        """
        from memory_service.hosts.projects import project_elsewhere, project_of

        try:
            if not is_local:
                return project_elsewhere(folder).workspace_elsewhere
            project = project_of(folder)
        except InvalidRequest:
            return ""
        name = project.workspace_for(self.settings)
        project.mark(self.settings.home / name)
        return name

    def compact_messages(
        self, request: StatelessRequest, *, cancelled: Callable[[], bool] = not_cancelled
    ) -> CompactedMessages:
        """Compact a list of messages without a session, as the settings say; see `memory_service.compaction`."""
        from memory_service.compaction.stateless import compact_messages
        from memory_service.runtime.session_options import check_summary_model, options_of
        from memory_service.sessions.records import SessionHeader

        check_summary_model(self.settings, request.summary_model or "")

        header = SessionHeader(session_id="", model=request.model, context_window=request.context_window)
        options = options_of(self.settings, header, preset=request.preset, overrides=request.overrides)
        model = self._models.of_name(request.summary_model)
        (_, compactor), now = self._session_parts(), self.settings.now()
        return compact_messages(request, options, compactor, now=now, model=model, cancelled=cancelled)

    # The home

    def has_workspace(self, workspace: str) -> bool:
        """True if somebody has written to a workspace."""
        return self.storage.contains(workspace)

    def workspaces(self) -> list[str]:
        """Names of all workspaces."""
        return self.storage.workspaces()

    def workspace_summaries(self, names: Iterable[str] | None = None) -> list[WorkspaceSummary]:
        """More of some workspaces, or of all, by name."""
        return workspace_summaries(self.storage, self.workspaces() if names is None else names)

    def join(self, other: Path, *, dry_run: bool = False) -> HomeJoin:
        """Copy into this home what another one has and this one lacks."""
        return self.storage.join(other, dry_run=dry_run)

    def other_homes(self) -> list[HomeJoin]:
        """Homes that somebody may have written to instead of this one, and what this one lacks of them."""
        return self.storage.other_homes()

    def examine(self, workspace: str, *, measures: bool = False) -> Iterator[Check]:
        """Check every part by using it, one after the other; and if wanted, measure the index on its own passages."""
        from memory_service.health.doctor import examine
        from memory_service.health.missed_calls import missed_calls_note

        check_workspace(workspace)
        failing = self._workspaces.known_problems(workspace)
        missed_text = missed_calls_note(self.missed_calls.recent(workspace, dt.datetime.now(dt.UTC)))
        return examine(
            self.settings,
            self.storage,
            workspace,
            self._embedder,
            reranker=self._reranker,
            engine_problems=failing,
            missed_text=missed_text,
            measures=measures,
        )

    def ready(self) -> tuple[str, ...]:
        """Problems that keep the service from serving; empty if there are none."""
        fault = self.storage.fault()
        return (f"home: {fault.detail}. {fault.remedy}",) if fault else ()

    def warm_up(self) -> None:
        """Load the models now instead of at the first search."""
        with translate_errors():
            if (embedder := self._workspaces.first_embedder) is not None:
                embedder.embed_query("warm")
            if self._reranker is not None:
                self._reranker.score("warm", ["up"])

    def load_language_models(self) -> None:
        """Load what calls language models, if one is configured: the first summary does not wait for it then."""
        if self._models.is_any and self.settings.llm_model:
            load_litellm()

    @staticmethod
    def on_background_work(heard: Callable[[bool], None]) -> None:
        """Call back whenever work in the background begins or has ended, in whichever service of the process."""
        THROTTLE.on_work_behind(heard)

    @property
    def embedding_model(self) -> str:
        """Name of the model in use; "none" without."""
        return self._embedder.name if self._embedder else "none"
