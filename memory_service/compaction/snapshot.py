"""Snapshot of a conversation: the view as plans are made for it, with the sizes of its parts. Pure."""

from __future__ import annotations

import datetime as dt

from memory_service.compaction.cut import Snapshot
from memory_service.compaction.prune_steps import said_at
from memory_service.compaction.pruning import moment_of
from memory_service.compaction.view import (
    Conversation,
    View,
    ViewShape,
    checkpoint_of,
    newest_language,
    pin_texts,
    tail_of,
    whole_request_of,
)
from memory_service.messages import is_system, is_tool_result
from memory_service.messages.estimate import estimate_tokens
from memory_service.text.texts import texts_in


def snapshot_of(state: Conversation, view: View, shape: ViewShape, *, now: dt.datetime) -> Snapshot:
    """The view of a session as plans are made for it."""
    shown = tail_of(state, shape)
    tail = tuple(each for each in shown if not is_system(each.message))
    # System messages that came later stand in the tail, and stay when it is covered.
    later = sum(each.tokens for each in shown if is_system(each.message))
    request, whole = checkpoint_of(state, shape).request, whole_request_of(state)
    pins = min(view.summary_tokens, sum(estimate_tokens(text) + 8 for text, _ in pin_texts(state)))
    return Snapshot(
        tail=tail,
        fixed_tokens=view.system_tokens + later + pins,
        summary_tokens=view.summary_tokens - pins,
        now=now,
        request_tokens=estimate_tokens(request),
        whole_request_tokens=estimate_tokens(whole),
        most_request_tokens=shape.request_chars // 4,
        most_ledger_tokens=shape.ledger_tokens,
        settled=_is_settled(state),
        live=state.pending,
        protected=frozenset(pin.target for pin in state.pins if pin.target is not None),
        cleared=state.head.cleared,
        stripped=state.head.stripped,
        last_used_at=_last_answer_at(state),
        texts=texts_in(newest_language(state)),
        said={said_at(each): each for each in state.since(state.head.tail_start) if is_tool_result(each.message)},
    )


def _last_answer_at(state: Conversation) -> dt.datetime | None:
    """When a model last answered, and so had seen the view; None if that is not known."""
    answer = next((each for each in reversed(state.messages) if each.message["role"] == "assistant"), None)
    return moment_of(answer) if answer else None


def _is_settled(state: Conversation) -> bool:
    """True if no message came since the last summary."""
    head = state.head
    past = next((each for each in reversed(state.compactions) if each.seq == head.seq), None)
    if past is None or past.compaction.stage == "prune":
        return False
    return not state.messages or state.messages[-1].seq <= head.upto
