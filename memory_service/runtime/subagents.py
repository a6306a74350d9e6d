"""Subagents: sessions that begin with a task of their parent, and end with what they found.

Invariants: what stands in the parent of a subagent stays there; a child ends once; what a child found is in the memory
of the workspace before its parent is told; who the parent is stands in the child's log, so that a restart loses
nothing.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memory_service import schemas
from memory_service.compaction.checkpoint import shorten_text
from memory_service.compaction.record import PinRecord
from memory_service.compaction.view import view_language
from memory_service.errors import InvalidRequest, MemoryServiceError
from memory_service.messages.shapes import text_of
from memory_service.runtime.session import SessionState
from memory_service.sessions.records import Unpin
from memory_service.text.texts import Texts, texts_in

if TYPE_CHECKING:
    from memory_service.runtime.engine_adapter import EngineAdapter
    from memory_service.runtime.flushes import Flushes
    from memory_service.runtime.session_services import SessionRuntime
    from memory_service.runtime.session_store import SessionStore

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

    def __init__(self, services: SessionRuntime, store: SessionStore, flushes: Flushes, adapter: EngineAdapter) -> None:
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
        begun_session = self._store.create(
            child,
            model=header.model if header else None,
            context_window=header.context_window if header else None,
            settings=header.settings if header else None,
        )
        until = f":{int(time.time() + ttl_seconds)}" if ttl_seconds is not None else ""
        session = self._services.session(begun_session.session_id)
        words = texts_in(view_language(state)).subagent
        link = PinRecord(pin_id=f"{_PARENT}:{parent}{until}", text=words["link"].format(parent=parent))
        session.note([link], session.state())
        for pin in self._store.pins(parent):
            if not pin.pin_id.startswith(f"{_PARENT}:"):
                self._store.pin(begun_session.session_id, text=pin.text)
        if state.head.summary:
            opening = words["opening"].format(parent=parent) + state.head.summary
            self._store.append(begun_session.session_id, [{"role": "user", "content": opening}])
        self._adapter.begin_subagent(parent, begun_session.session_id, ttl_seconds)
        return self._store.summary(begun_session.session_id)

    def end(self, child: str, reason: str) -> SubagentEnd:
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
        written_count, degraded = self._flush(child)
        self._services.session(child).note([Unpin(pin_id=link.pin_id)], state)
        self._adapter.end_subagent(child, reason)
        _, parent, until = f"{link.pin_id}:".split(":", 2)
        if (until := until.rstrip(":")) and time.time() > int(until):
            return SubagentEnd(parent=None, written=written_count, degraded=degraded)
        try:
            texts = texts_in(view_language(self._services.session(parent).state()))
        except MemoryServiceError:
            return SubagentEnd(parent=None, written=written_count, degraded=(*degraded, f"parent: {parent} is gone."))
        messages = self._store.append(parent, [{"role": "user", "content": _outcome(child, reason, state, texts)}])
        return SubagentEnd(parent=parent, seq=messages.first_seq, written=written_count, degraded=degraded)

    def _flush(self, child: str) -> tuple[int, tuple[str, ...]]:
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
            for message in reversed(state.messages)
            if message.message["role"] == "assistant"
            if (text := text_of(message.message))
        ),
        "",
    )
    how = " ".join(reason.split())[:_REASON_CHARS] or words["silent"]
    return words["outcome"].format(child=child, how=how) + shorten_text(
        answer or words["nothing"], _ANSWER_CHARS, words["session"].format(child=child), texts
    )
