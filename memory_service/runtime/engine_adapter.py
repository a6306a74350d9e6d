"""Adapter between the sessions of one workspace and a third-party context engine.

Invariants: without such an engine nothing is done and nothing costs anything; an engine hears what the log has, and
nothing before the log has it; an append waits for no engine; pins stand in every prompt, whatever an engine gives.
"""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import TYPE_CHECKING

from indexer.common import LRU
from memory_service.compaction.checkpoint import Checkpoint, checkpoint_messages, pinned_texts
from memory_service.compaction.view import View, pin_texts
from memory_service.engines import AssembleCall, CompactCall, Compacted
from memory_service.errors import MemoryServiceError
from memory_service.messages.shapes import Message, is_system, text_of
from memory_service.messages.sizes import message_tokens

if TYPE_CHECKING:
    from memory_service.runtime.session import SessionState
    from memory_service.runtime.session_services import SessionRuntime, SessionSnapshot

_KEPT_SESSIONS = 1_024


class EngineAdapter:
    """The place of an engine beside the sessions of a workspace.

    Args:
        services: What work on the sessions needs, the engine among it.
    """

    def __init__(self, services: SessionRuntime) -> None:
        self._services = services
        self._engine = services.engine
        self._changing = threading.Lock()
        self._telling: set[str] = set()
        self._limits: LRU[str, int] = LRU(_KEPT_SESSIONS)

    def failures(self, session_id: str) -> tuple[str, ...]:
        """Failures of the engine in a session, for `degraded`."""
        return self._engine.failures(session_id) if self._engine else ()

    def owns_compaction(self, session_id: str) -> bool:
        """True if the engine keeps a session small by itself."""
        engine = self._engine
        return bool(engine and engine.usable(session_id) and engine.info and engine.info.owns_compaction)

    def owner(self, session_id: str) -> str:
        """The name of the engine that keeps a session small by itself; empty if the service does."""
        return self._engine.name if self._engine and self.owns_compaction(session_id) else ""

    def notice_append(self, session_id: str) -> None:
        """Something was said: the engine hears of it soon, while others go on."""
        if self._engine is None:
            return
        with self._changing:
            if session_id in self._telling:
                return
            self._telling.add(session_id)
        threading.Thread(target=self._tell, args=(session_id,), name="context-engine-hears", daemon=True).start()

    def is_limited(self, session_id: str) -> bool:
        """True if the engine has less room in a session than there is, since a provider refused what it gave."""
        return session_id in self._limits and self._engine is not None and self._engine.usable(session_id)

    def view(self, snapshot: SessionSnapshot, *, tokens: int, query: str, system_prompt: str) -> View | None:
        """View assembled by the engine; None if it is the service's own view.

        Args:
            snapshot: The session.
            tokens: What the session may take of the prompt, by estimate.
            query: The question at hand.
            system_prompt: What will stand before it.
        """
        engine = self._engine
        if engine is None or not engine.usable(snapshot.session_id):
            return None
        own = snapshot.view()
        pins = _pins_of(snapshot.state)
        limit = min(tokens, self._limits.get(snapshot.session_id) or tokens)
        call = AssembleCall(
            messages=own.messages,
            query=query,
            system_prompt=system_prompt,
            model=snapshot.options.model_name,
            window_tokens=snapshot.options.window.tokens,
        )
        room = limit - sum(map(message_tokens, pins))
        if room < 1:
            return None
        messages = engine.assemble(snapshot.session_id, snapshot.state.messages, token_budget=room, call=call)
        return None if messages is None else _view_of(messages, pins, snapshot.state, own)

    def compact(self, snapshot: SessionSnapshot, *, target_tokens: int, call: CompactCall) -> Compacted | None:
        """Have the engine compact; None if it cannot, or none is there.

        After an overflow it gets no larger a budget for the session again, as long as the process lives.
        """
        if self._engine is None or not self._engine.usable(snapshot.session_id):
            return None
        if call.trigger == "overflow":
            self._limits[snapshot.session_id] = max(target_tokens, 1)
        self._engine.hear(snapshot.session_id, snapshot.state.messages)
        return self._engine.compact(snapshot.session_id, token_budget=target_tokens, call=call)

    def begin_subagent(self, parent: str, child: str, ttl_seconds: float | None) -> None:
        """A subagent begins."""
        if self._engine is not None:
            self._engine.begin_subagent(parent, child, ttl_seconds)

    def end_subagent(self, child: str, reason: str) -> None:
        """A subagent is over."""
        if self._engine is not None:
            self._engine.end_subagent(child, reason)

    def _tell(self, session_id: str) -> None:
        # Taken out first: what is said from now on needs another look.
        with self._changing:
            self._telling.discard(session_id)
        try:
            history = self._services.session(session_id).state().messages
        except MemoryServiceError:
            # It was erased meanwhile, or cannot be read, which the next who wants it is told.
            return
        if self._engine is not None:
            self._engine.hear(session_id, history)


def _pins_of(state: SessionState) -> list[Message]:
    return checkpoint_messages(Checkpoint(pins=pinned_texts(pin_texts(state))))


def _view_of(messages: tuple[Message, ...], pins: list[Message], state: SessionState, own: View) -> View:
    """View made from an engine's messages; pins that it left out follow its system messages."""
    lead = next((at for at, message in enumerate(messages) if not is_system(message)), len(messages))
    said_text = "\n".join(map(text_of, messages)) if pins else ""
    missing = pins if any(text not in said_text for text, _ in pin_texts(state)) else []
    sizes = tuple(map(message_tokens, messages))
    return replace(
        own,
        messages=(*messages[:lead], *missing, *messages[lead:]),
        system_tokens=sum(sizes[:lead]),
        summary_tokens=sum(map(message_tokens, missing)),
        tail_tokens=sum(sizes[lead:]),
        lead=lead + len(missing),
        seqs=(),
        sizes=(),
        repairs=(),
    )
