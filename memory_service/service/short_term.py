"""Short-term memory: `ShortTermMemory` for a workspace's sessions, subagents, and the default context engine.

It holds parts and computes nothing: `store` for what is said, `contexts` for prompts, `compactions`, `flushes`,
`recalls` and `overflows` for what their names say. Of a prompt it remembers what it was taken for, until the provider
tells what it was; a restart loses that, and with it one step of precision.

Invariants: what stands in the parent of a subagent stays there; a child ends once; what a child found is in the memory
of the workspace before its parent is told; who the parent is stands in the child's log, so that a restart loses
nothing. The default engine gives what `ShortTermMemory` gives to everybody: only programs that run the service in
process need it, to hold one engine like the other.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import cast

from indexer.lru import LRU
from memory_service import schemas
from memory_service._version import __version__
from memory_service.compaction.checkpoint import shortened
from memory_service.compaction.compactor import Compactor
from memory_service.compaction.plan import CompactionTrigger
from memory_service.compaction.record import PinRecord
from memory_service.compaction.view import view_language
from memory_service.engines import DEFAULT, AssembleCall, Assembled, CompactCall, Compacted, EngineInfo, GuardedEngine
from memory_service.errors import InvalidRequest, MemoryServiceError, NotFound
from memory_service.llm.base import not_cancelled
from memory_service.memories.long_term import LongTermMemory
from memory_service.memories.receipts import Receipts
from memory_service.messages import Message, text_of
from memory_service.messages.sizes import Usage
from memory_service.prompts.build import BuiltContext, Contexts
from memory_service.prompts.overflows import Overflows, RecoveryStep
from memory_service.prompts.session_recall import SessionRecall
from memory_service.runtime.compactions import CompactionCall, SessionCompactions
from memory_service.runtime.engine_adapter import EngineAdapter
from memory_service.runtime.events import Subscription
from memory_service.runtime.flushes import Flushes, remember_asked
from memory_service.runtime.session_services import SessionServices, SessionSnapshot, SharedServices
from memory_service.runtime.session_store import SessionStore, on_wire
from memory_service.schemas.compaction import CompactRequest, FlushPrompt
from memory_service.schemas.sessions import Wire
from memory_service.sessions.folder import SessionLogs
from memory_service.sessions.records import LogEnd, Unpin
from memory_service.sessions.session import SessionState
from memory_service.text.texts import Texts, texts_in

# A pin of the child that names its parent; ids of sessions have no colon.
_PARENT = "parent"
_ANSWER_CHARS = 2_000
_REASON_CHARS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class SubagentEnd:
    """Outcome of a subagent.

    Attributes:
        parent: The session that was told; None if there is none, or it had waited long enough.
        seq: The number of the message there; 0 for none.
        written: How many memories the child left behind.
    """

    parent: str | None
    seq: int = 0
    written: int = 0
    degraded: tuple[str, ...] = ()


class Subagents:
    """The subagents of one workspace."""

    def __init__(
        self, services: SessionServices, store: SessionStore, flushes: Flushes, adapter: EngineAdapter
    ) -> None:
        self._services = services
        self._store = store
        self._flushes = flushes
        self._adapter = adapter

    def spawn(self, parent: str, child: str | None = None, *, ttl_seconds: float | None = None) -> schemas.Session:
        """Begin a session that carries the model, the settings, the pins and the summary of another.

        Args:
            parent: The session that it works for.
            child: Its id; None for a new one.
            ttl_seconds: After so long its end is not told to the parent any more; None is never.

        Raises:
            NotFound: There is no such parent.
            Conflict: There is a session with the child's id.
            InvalidRequest: The time is not positive.
        """
        if ttl_seconds is not None and ttl_seconds <= 0:
            raise InvalidRequest(f"A subagent has {ttl_seconds:g} seconds to live. Give more than 0, or none at all.")
        state = self._services.session(parent).state()
        header = state.header
        begun = self._store.create(
            child,
            model=header.model if header else None,
            context_window=header.context_window if header else None,
            settings=header.settings if header else None,
        )
        until = f":{int(time.time() + ttl_seconds)}" if ttl_seconds is not None else ""
        session = self._services.session(begun.session_id)
        words = texts_in(view_language(state)).subagent
        link = PinRecord(pin_id=f"{_PARENT}:{parent}{until}", text=words["link"].format(parent=parent))
        session.note([link], session.state())
        for pin in self._store.pins(parent):
            if not pin.pin_id.startswith(f"{_PARENT}:"):
                self._store.pin(begun.session_id, text=pin.text)
        if state.head.summary:
            opening = words["opening"].format(parent=parent) + state.head.summary
            self._store.append(begun.session_id, [{"role": "user", "content": opening}])
        self._adapter.spawned(parent, begun.session_id, ttl_seconds)
        return self._store.summary(begun.session_id)

    def ended(self, child: str, reason: str) -> SubagentEnd:
        """Keep what a subagent found, and tell its parent; a second time does nothing.

        Args:
            child: Its session.
            reason: How it ended: `completed`, `failed`, `cancelled`, or other words.

        Raises:
            NotFound: There is no such session.
        """
        state = self._services.session(child).state()
        link = next((pin for pin in state.pins if pin.pin_id.startswith(f"{_PARENT}:")), None)
        if link is None:
            return SubagentEnd(parent=None)
        written, degraded = self._flushed(child)
        self._services.session(child).note([Unpin(pin_id=link.pin_id)], state)
        self._adapter.ended(child, reason)
        _, parent, until = f"{link.pin_id}:".split(":", 2)
        if (until := until.rstrip(":")) and time.time() > int(until):
            return SubagentEnd(parent=None, written=written, degraded=degraded)
        try:
            texts = texts_in(view_language(self._services.session(parent).state()))
        except MemoryServiceError:
            return SubagentEnd(parent=None, written=written, degraded=(*degraded, f"parent: {parent} is gone."))
        told = self._store.append(parent, [{"role": "user", "content": _outcome(child, reason, state, texts)}])
        return SubagentEnd(parent=parent, seq=told.first_seq, written=written, degraded=degraded)

    def _flushed(self, child: str) -> tuple[int, tuple[str, ...]]:
        try:
            report = self._flushes.flush(child)
        except MemoryServiceError as error:
            return 0, (f"flush: {error}",)
        return len(report.written), tuple(report.degraded)


def _outcome(child: str, reason: str, state: SessionState, texts: Texts) -> str:
    """Message to the parent: how its subagent ended, and its last answer."""
    words = texts.subagent
    answer = next(
        (
            text
            for each in reversed(state.messages)
            if each.message["role"] == "assistant"
            if (text := text_of(each.message))
        ),
        "",
    )
    how = " ".join(reason.split())[:_REASON_CHARS] or words["silent"]
    return words["outcome"].format(child=child, how=how) + shortened(
        answer or words["nothing"], _ANSWER_CHARS, words["session"].format(child=child), texts
    )


_KEPT_ESTIMATES = 1_024


class ShortTermMemory:
    """The sessions of one workspace.

    Args:
        workspace: Its name.
        logs: Where the logs of its sessions are.
        longterm: The memory that they are flushed to and recalled from.
        receipts: Where receipts of recalls are kept.
        shared: What all workspaces of the service share.
        compactor: Makes their compactions.
        engine: The context engine of somebody else; None for the service's own.
    """

    def __init__(
        self,
        workspace: str,
        logs: SessionLogs,
        longterm: LongTermMemory,
        receipts: Receipts,
        shared: SharedServices,
        compactor: Compactor,
        engine: GuardedEngine | None = None,
    ) -> None:
        self.longterm = longterm
        self._services = SessionServices(workspace, logs, longterm, shared, engine)
        self._adapter = EngineAdapter(self._services)
        self.store = SessionStore(self._services, receipts)
        self.flushes = Flushes(self._services)
        self.compactions = SessionCompactions(self._services, compactor, self._adapter, self.flushes)
        self.recalls = SessionRecall(self._services, receipts)
        self.contexts = Contexts(self._services, self.compactions, self.flushes, self.recalls, self._adapter, receipts)
        self.overflows = Overflows(self._services, self.compactions, self.contexts, self._adapter)
        self.subagents = Subagents(self._services, self.store, self.flushes, self._adapter)
        self._estimates: LRU[str, int] = LRU(_KEPT_ESTIMATES)

    def append(
        self,
        session_id: str,
        messages: Sequence[object],
        *,
        usage: Usage | None = None,
        model: str | None = None,
        key: str | None = None,
        verbatim: bool = False,
        at: LogEnd | None = None,
    ) -> schemas.AppendedMessages:
        """Append messages; see `SessionStore.append`. A provider's count is noted beside the estimate of its prompt."""
        if usage is not None and usage.estimated_tokens is None:
            usage = replace(usage, estimated_tokens=self._estimates.pop(session_id))
        made = self.store.append(session_id, messages, usage=usage, model=model, key=key, verbatim=verbatim, at=at)
        self._services.settle(session_id)
        self._adapter.appended(session_id)
        failures = [*self._adapter.failures(session_id), *remember_asked(self._services, session_id, messages, made)]
        return made.model_copy(update={"degraded": [*made.degraded, *failures]}) if failures else made

    def context(
        self, session_id: str, call: schemas.SessionContextRequest, *, cancelled: Callable[[], bool] = not_cancelled
    ) -> BuiltContext:
        """Build the messages to send to the model; see `Contexts.context`."""
        made = self.contexts.context(session_id, call, cancelled=cancelled)
        self.overflows.note_call(session_id, call, made.tools_tokens)
        self._note_estimate(session_id, made)
        return made

    def recover(
        self, session_id: str, call: schemas.OverflowRequest, *, cancelled: Callable[[], bool] = not_cancelled
    ) -> RecoveryStep:
        """Recover from a provider's refusal of a prompt; see `Overflows.recover`."""
        made = self.overflows.recover(session_id, call, cancelled=cancelled)
        if made.context is not None:
            self._note_estimate(session_id, made.context)
        if made.action == "give_up":
            self._services.settle(session_id)
        return made

    def sent(self, session_id: str, messages: Sequence[Message], wire: Wire) -> schemas.Messages:
        """Messages of a prompt of a session, in the shape of a provider."""
        return on_wire(messages, wire, self._services.session(session_id).state())

    def flush_prompt(self, session_id: str) -> FlushPrompt:
        """Flush prompt for an agent that finds the memories itself."""
        return self.flushes.prompt(self._services.snapshot(session_id))

    def snapshot(self, session_id: str) -> SessionSnapshot:
        """A session as it is now, and how it is treated.

        Raises:
            NotFound: There is no such session.
        """
        return self._services.snapshot(session_id)

    def search(self, session_id: str, query: str, *, limit: int = 10) -> schemas.FoundMessages:
        """Search the messages of a session; see `SessionRecall.search`."""
        return self.recalls.search(self._services.snapshot(session_id), query, limit=limit)

    def events(self, session_id: str, *, after_id: int | None = None) -> Subscription:
        """Subscribe to the events of a session, from now on or after a given event.

        Raises:
            NotFound: There is no such session.
        """
        self._services.session(session_id)
        return self._services.shared.events.subscribe(self._services.workspace, session_id, after_id)

    def wait_idle(self, session_id: str, *, timeout_seconds: float | None = None) -> bool:
        """Wait until no compaction runs and none is to be tried again; tells whether that is so."""
        return self._services.shared.events.wait_idle(self._services.workspace, session_id, timeout_seconds)

    def _note_estimate(self, session_id: str, made: BuiltContext) -> None:
        # Not the total, which is corrected already: what is learned from is what was estimated.
        self._estimates[session_id] = made.prompt.estimated.total + made.tools_tokens


class DefaultEngine:
    """The service as a context engine.

    Args:
        sessions: Those of a workspace.
    """

    info = EngineInfo(id=DEFAULT, name="Memory service", version=__version__, owns_compaction=True)

    def __init__(self, sessions: ShortTermMemory) -> None:
        self._sessions = sessions

    def bootstrap(self, session_id: str) -> int:
        """Number of messages in a session's log."""
        try:
            return self._sessions.store.summary(session_id).messages
        except NotFound:
            return 0

    def ingest(self, session_id: str, message: Message) -> schemas.AppendedMessages:
        """Append a message to the log."""
        return self.ingest_batch(session_id, [message])

    def ingest_batch(self, session_id: str, messages: Sequence[Message]) -> schemas.AppendedMessages:
        """Append messages to the log."""
        return self._sessions.append(session_id, messages)

    def assemble(self, session_id: str, *, token_budget: int, call: AssembleCall) -> Assembled:
        """The session, compacted first if it must be, and the memories that answer the question.

        What the call has as messages is not looked at: the log has them.
        """
        made = self._sessions.context(
            session_id,
            schemas.SessionContextRequest(
                query=call.query or None, system_prompt=call.system_prompt, max_tokens=token_budget
            ),
        )
        return Assembled(messages=made.prompt.messages)

    def compact(self, session_id: str, *, token_budget: int, call: CompactCall) -> Compacted:
        """Compact the view, to a budget."""
        made = self._sessions.compactions.compact(
            session_id,
            CompactionCall(
                request=CompactRequest.model_construct(
                    instructions=call.instructions or None, target_tokens=token_budget, force=call.force
                ),
                cause=cast(CompactionTrigger, call.trigger),
            ),
        )
        return Compacted(
            compacted=made.applied,
            reason=made.reason,
            tokens_before=made.tokens_before,
            tokens_after=made.tokens_after,
            summary=made.summary,
        )

    def prepare_subagent_spawn(self, parent: str, child: str, ttl: float | None) -> schemas.Session:
        """Begin the session of a subagent; see `Subagents.spawn`."""
        return self._sessions.subagents.spawn(parent, child, ttl_seconds=ttl)

    def on_subagent_ended(self, child: str, reason: str) -> SubagentEnd:
        """End it; see `Subagents.ended`."""
        return self._sessions.subagents.ended(child, reason)

    def forget(self, session_id: str) -> tuple[str, ...]:
        """Erase a session."""
        return tuple(self._sessions.store.delete(session_id).degraded)
