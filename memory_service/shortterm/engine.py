"""Owns the default context engine: this service, as the protocol has it.

Invariants: it computes nothing itself: what it gives is what `ShortTermMemory` gives to everybody. Only programs that
run the service in process need it, to hold one engine like the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from memory_service._version import __version__
from memory_service.compaction.plan import CompactionTrigger
from memory_service.engines import DEFAULT, AssembleCall, Assembled, CompactCall, Compacted, EngineInfo
from memory_service.errors import NotFound
from memory_service.messages import Message
from memory_service.shortterm.contexts import ContextCall
from memory_service.shortterm.memory import ShortTermMemory
from memory_service.shortterm.receipts import CompactionCall
from memory_service.shortterm.subagents import SubagentEnd
from memory_service.shortterm.told import AppendedMessages, SessionSummary


class DefaultEngine:
    """The service as a context engine.

    Args:
        sessions: Those of a workspace.
    """

    info = EngineInfo(id=DEFAULT, name="Memory service", version=__version__, owns_compaction=True)

    def __init__(self, sessions: ShortTermMemory) -> None:
        self._sessions = sessions

    def bootstrap(self, session_id: str) -> int:
        """How many messages of a session are in its log."""
        try:
            return self._sessions.talks.summary(session_id).messages
        except NotFound:
            return 0

    def ingest(self, session_id: str, message: Message) -> AppendedMessages:
        """Append a message to the log."""
        return self.ingest_batch(session_id, [message])

    def ingest_batch(self, session_id: str, messages: Sequence[Message]) -> AppendedMessages:
        """Append messages to the log."""
        return self._sessions.append(session_id, messages)

    def assemble(self, session_id: str, *, token_budget: int, call: AssembleCall) -> Assembled:
        """The session, compacted first if it must be, and the memories that answer the question.

        What the call has as messages is not looked at: the log has them.
        """
        made = self._sessions.context(
            session_id,
            ContextCall(query=call.query or None, system_prompt=call.system_prompt, max_tokens=token_budget),
        )
        return Assembled(messages=made.prompt.messages)

    def compact(self, session_id: str, *, token_budget: int, call: CompactCall) -> Compacted:
        """Compact the view, to a budget."""
        made = self._sessions.compactions.compact(
            session_id,
            CompactionCall(
                trigger=cast(CompactionTrigger, call.trigger),
                instructions=call.instructions or None,
                target_tokens=token_budget,
                force=call.force,
            ),
        )
        return Compacted(
            compacted=made.applied,
            reason=made.reason,
            tokens_before=made.tokens_before,
            tokens_after=made.tokens_after,
            summary=made.summary,
        )

    def prepare_subagent_spawn(self, parent: str, child: str, ttl: float | None) -> SessionSummary:
        """Begin the session of a subagent; see `Subagents.spawn`."""
        return self._sessions.subagents.spawn(parent, child, ttl_seconds=ttl)

    def on_subagent_ended(self, child: str, reason: str) -> SubagentEnd:
        """End it; see `Subagents.ended`."""
        return self._sessions.subagents.ended(child, reason)

    def forget(self, session_id: str) -> tuple[str, ...]:
        """Erase a session."""
        return self._sessions.talks.delete(session_id).degraded
