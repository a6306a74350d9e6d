"""Owns `ShortTermMemory`: the sessions of one workspace, with all that can be done to them.

It holds parts and computes nothing: `talks` for what is said, `contexts` for prompts, `compactions`, `flushes`,
`recalls` and `overflows` for what their names say. Of a prompt it remembers what it was taken for, until the provider
tells what it was; a restart loses that, and with it one step of precision.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace

from memory_service.engines import GuardedEngine
from memory_service.events import Subscription
from memory_service.flush.prompts import AgentPrompt
from memory_service.llm.base import never
from memory_service.longterm import LongTermMemory
from memory_service.messages import Message
from memory_service.receipts import Receipts
from memory_service.sessions.folder import SessionLogs
from memory_service.sessions.records import Usage
from memory_service.shortterm.bench import Bench, Look, Shared
from memory_service.shortterm.compactions import Compactions
from memory_service.shortterm.compactor import Compactor
from memory_service.shortterm.contexts import ContextCall, Contexts, SessionContext
from memory_service.shortterm.flushes import Flushes
from memory_service.shortterm.overflows import OverflowCall, Overflows, Recovery
from memory_service.shortterm.recalls import FoundTalk, Recalls
from memory_service.shortterm.seat import Seat
from memory_service.shortterm.subagents import Subagents
from memory_service.shortterm.talks import Talks, on_wire
from memory_service.shortterm.told import AppendedMessages, Transcript, Wire

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
        shared: Shared,
        compactor: Compactor,
        engine: GuardedEngine | None = None,
    ) -> None:
        self.longterm = longterm
        self._bench = Bench(workspace, logs, longterm, shared, engine)
        self._seat = Seat(self._bench)
        self.talks = Talks(self._bench, receipts)
        self.compactions = Compactions(self._bench, compactor, self._seat)
        self.flushes = Flushes(self._bench)
        self.recalls = Recalls(self._bench, receipts)
        self.contexts = Contexts(self._bench, self.compactions, self.flushes, self.recalls, self._seat)
        self.overflows = Overflows(self._bench, self.compactions, self.contexts, self._seat)
        self.subagents = Subagents(self._bench, self.talks, self.flushes, self._seat)
        self._estimates: dict[str, int] = {}
        self._estimating = threading.Lock()

    def append(
        self,
        session_id: str,
        messages: Sequence[object],
        *,
        usage: Usage | None = None,
        model: str | None = None,
        key: str | None = None,
    ) -> AppendedMessages:
        """Append messages; see `Talks.append`. A provider's count is noted beside what its prompt was taken for."""
        if usage is not None and usage.estimated_tokens is None:
            with self._estimating:
                usage = replace(usage, estimated_tokens=self._estimates.pop(session_id, None))
        made = self.talks.append(session_id, messages, usage=usage, model=model, key=key)
        self._bench.settle(session_id)
        self._seat.appended(session_id)
        return replace(made, degraded=(*made.degraded, *self._seat.failures(session_id)))

    def context(self, session_id: str, call: ContextCall, *, cancelled: Callable[[], bool] = never) -> SessionContext:
        """What to send to the model; see `Contexts.context`."""
        made = self.contexts.context(session_id, call, cancelled=cancelled)
        self.overflows.note_call(session_id, call)
        self._note_estimate(session_id, made, call.tools_tokens)
        return made

    def recover(self, session_id: str, call: OverflowCall, *, cancelled: Callable[[], bool] = never) -> Recovery:
        """What to do when a provider has refused a prompt; see `Overflows.recover`."""
        made = self.overflows.recover(session_id, call, cancelled=cancelled)
        if made.context is not None:
            self._note_estimate(session_id, made.context, call.context.tools_tokens if call.context else 0)
        if made.action == "give_up":
            self._bench.settle(session_id)
        return made

    def sent(self, session_id: str, messages: Sequence[Message], wire: Wire) -> Transcript:
        """Messages of a prompt of a session, in the shape of a provider."""
        return on_wire(messages, wire, self._bench.session(session_id).state())

    def flush_prompt(self, session_id: str) -> AgentPrompt:
        """What an agent is asked that finds the memories itself."""
        return self.flushes.prompt(self._bench.look(session_id))

    def look(self, session_id: str) -> Look:
        """A session as it is now, and how it is treated.

        Raises:
            NotFound: There is no such session.
        """
        return self._bench.look(session_id)

    def search(self, session_id: str, query: str, *, limit: int = 10) -> FoundTalk:
        """What was said in a session about something; see `Recalls.search`."""
        return self.recalls.search(self._bench.look(session_id), query, limit=limit)

    def events(self, session_id: str, *, after_id: int | None = None) -> Subscription:
        """What happens to a session from now on, and after an event if one is named.

        Raises:
            NotFound: There is no such session.
        """
        self._bench.session(session_id)
        return self._bench.shared.events.subscribe(self._bench.workspace, session_id, after_id)

    def wait_idle(self, session_id: str, *, timeout_seconds: float | None = None) -> bool:
        """Wait until no compaction runs and none is to be tried again; tells whether that is so."""
        return self._bench.shared.events.wait_idle(self._bench.workspace, session_id, timeout_seconds)

    def _note_estimate(self, session_id: str, made: SessionContext, tools_tokens: int) -> None:
        with self._estimating:
            self._estimates.pop(session_id, None)
            # Not the total, which is corrected already: what is learned from is what was estimated.
            self._estimates[session_id] = made.prompt.estimated.total + tools_tokens
            while len(self._estimates) > _KEPT_ESTIMATES:
                del self._estimates[next(iter(self._estimates))]
