"""Owns the step from a session to the snapshot that a compaction is planned on. Pure."""

from __future__ import annotations

import datetime as dt

from memory_service.compaction.snapshot import Snapshot
from memory_service.messages import is_system, is_tool_result
from memory_service.sessions.state import SessionState
from memory_service.sessions.view import View, ViewShape, checkpoint_of, pinned, tail_of
from memory_service.tokens import count_tokens


def snapshot_of(
    state: SessionState,
    view: View,
    shape: ViewShape,
    *,
    now: dt.datetime,
    last_used_at: dt.datetime | None = None,
) -> Snapshot:
    """The view of a session as plans are made for it."""
    shown = tail_of(state, shape)
    tail = tuple(each for each in shown if not is_system(each.message))
    # System messages that came later stand in the tail, and stay when it is covered.
    later = sum(each.tokens for each in shown if is_system(each.message))
    request = checkpoint_of(state, shape).request
    pins = min(view.summary_tokens, sum(count_tokens(text) + 8 for text, _ in pinned(state)))
    return Snapshot(
        tail=tail,
        fixed_tokens=view.system_tokens + later + pins,
        summary_tokens=view.summary_tokens - pins,
        now=now,
        request_tokens=count_tokens(request),
        most_request_tokens=shape.request_chars // 4,
        settled=_is_settled(state),
        live=state.pending,
        protected=frozenset(pin.target for pin in state.pins if pin.target is not None),
        cleared=state.head.cleared,
        stripped=state.head.stripped,
        last_used_at=last_used_at,
        said_tokens={
            each.seq: each.tokens for each in state.since(state.head.tail_start) if is_tool_result(each.message)
        },
    )


def _is_settled(state: SessionState) -> bool:
    """Whether nothing was said since the last summary was made."""
    head = state.head
    past = next((each for each in reversed(state.compactions) if each.seq == head.seq), None)
    if past is None or past.compaction.stage == "prune":
        return False
    return not state.messages or state.messages[-1].seq <= head.upto
