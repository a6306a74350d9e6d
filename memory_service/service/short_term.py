"""Short-term memory: `ShortTermMemory`, the parts that work on the sessions of a workspace.

It holds parts and computes nothing: `store` for what is said, `contexts` for prompts, `compactions`, `flushes`,
`recalls` and `overflows` for what their names say. Of a prompt it remembers what it was taken for, until the provider
tells what it was; a restart loses that, and with it one step of precision.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from indexer.common import LRU
from memory_service import schemas
from memory_service.engines import GuardedEngine
from memory_service.llm.base import not_cancelled
from memory_service.messages.shapes import Message
from memory_service.messages.sizes import Usage
from memory_service.prompts.build import BuiltContext, Contexts
from memory_service.prompts.overflows import Overflows, RecoveryStep
from memory_service.prompts.prompt_records import PromptRecords
from memory_service.prompts.receipt_records import Receipts
from memory_service.prompts.session_recall import SessionRecall
from memory_service.runtime.compactions import SessionCompactions
from memory_service.runtime.engine_adapter import EngineAdapter
from memory_service.runtime.events import Subscription
from memory_service.runtime.flushes import Flushes, remember_asked
from memory_service.runtime.session_services import ServiceParts, SessionRuntime, SessionSnapshot
from memory_service.runtime.session_store import SessionStore, on_wire
from memory_service.runtime.subagents import Subagents
from memory_service.schemas.compaction import FlushPrompt
from memory_service.schemas.messages import Wire
from memory_service.sessions.records import LogEnd
from memory_service.storage.logs import LogStore

if TYPE_CHECKING:
    from memory_service.compaction.compactor import Compactor
    from memory_service.memories.long_term import LongTermMemory
    from memory_service.runtime.session import OpenSession

_KEPT_ESTIMATES = 1_024


class WorkspaceSessions:
    """The sessions of one workspace.

    Args:
        workspace: Its name.
        logs: Where the logs of its sessions are.
        longterm: The memory that they are flushed to and recalled from.
        prompts: Records of their last prompts.
        receipts: Where receipts of recalls are kept.
        shared: What all workspaces of the service share.
        compactor: Makes their compactions.
        engine: The context engine of somebody else; None for the service's own.
    """

    def __init__(
        self,
        workspace: str,
        logs: LogStore,
        longterm: LongTermMemory,
        prompts: PromptRecords,
        receipts: Receipts,
        shared: ServiceParts,
        compactor: Compactor,
        engine: GuardedEngine | None = None,
    ) -> None:
        self.longterm = longterm
        self.prompts = prompts
        self._services = SessionRuntime(workspace, logs, longterm, prompts, shared, engine)
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
        new_messages = self.store.append(
            session_id, messages, usage=usage, model=model, key=key, verbatim=verbatim, at=at
        )
        self._services.settle(session_id)
        self._adapter.notice_append(session_id)
        failures = [
            *self._adapter.failures(session_id),
            *remember_asked(self._services, session_id, messages, new_messages),
        ]
        return (
            new_messages.model_copy(update={"degraded": [*new_messages.degraded, *failures]})
            if failures
            else new_messages
        )

    def context(
        self, session_id: str, call: schemas.SessionContextRequest, *, cancelled: Callable[[], bool] = not_cancelled
    ) -> BuiltContext:
        """Build the messages to send to the model; see `Contexts.context`."""
        context = self.contexts.context(session_id, call, cancelled=cancelled)
        self.overflows.note_call(session_id, call, context.tools_tokens)
        self._note_estimate(session_id, context)
        return context

    def recover(
        self, session_id: str, call: schemas.OverflowRequest, *, cancelled: Callable[[], bool] = not_cancelled
    ) -> RecoveryStep:
        """Recover from a provider's refusal of a prompt; see `Overflows.recover`."""
        step = self.overflows.recover(session_id, call, cancelled=cancelled)
        if step.context is not None:
            self._note_estimate(session_id, step.context)
        if step.action == "give_up":
            self._services.settle(session_id)
        return step

    def to_wire(self, session_id: str, messages: Sequence[Message], wire: Wire) -> schemas.Messages:
        """Messages of a prompt of a session, in the shape of a provider."""
        return on_wire(messages, wire, self._services.session(session_id).state())

    def flush_prompt(self, session_id: str) -> FlushPrompt:
        """Flush prompt for an agent that finds the memories itself."""
        return self.flushes.prompt(self._services.snapshot(session_id))

    def session(self, session_id: str) -> OpenSession:
        """A session, of whose log not all may be read yet.

        Raises:
            NotFound: There is no such session.
        """
        return self._services.session(session_id)

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
