"""Snapshot of a conversation: the view as plans are made for it, with the sizes of its parts. Pure."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field

from memory_service.compaction.prune_steps import SaidAt, said_at
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
from memory_service.messages.shapes import is_system, is_tool_result
from memory_service.messages.sizes import Numbered, estimate_tokens
from memory_service.text.texts import ENGLISH, Texts, texts_in


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A view as a plan is made for it; sizes in tokens by estimate.

    Attributes:
        tail: The messages below the checkpoint as they are shown.
        fixed_tokens: What no compaction changes: system messages and pins.
        summary_tokens: What the rest of the checkpoint takes now: summary, ledger, request, and its frame.
        request_tokens: Of that, the last request of the user, if it is not in the tail.
        whole_request_tokens: The same request, if nothing of it is left out.
        most_request_tokens: The most that a request takes in a checkpoint; a longer one is shortened.
        most_ledger_tokens: The most that the ledger takes there.
        settled: Whether nothing was said since the last summary.
        live: Ids of tool calls that still run.
        protected: Messages whose results and media stay: those that are pinned.
        cleared: What was cleared before, by message; the tail shows it so.
        stripped: Messages whose media were stripped before.
        said: The results of tools as they came, by the place that `said_at` gives.
        last_used_at: When a model last saw the view, for the age of a provider's cache; None if that is not known.
        texts: Words of the talk's language.
    """

    tail: tuple[Numbered, ...]
    fixed_tokens: int
    summary_tokens: int
    now: dt.datetime
    request_tokens: int = 0
    whole_request_tokens: int = 0
    most_request_tokens: int = 4_000
    most_ledger_tokens: int = 0
    settled: bool = False
    live: frozenset[str] = frozenset()
    protected: frozenset[int] = frozenset()
    cleared: Mapping[int, str] = field(default_factory=dict)
    stripped: frozenset[int] = frozenset()
    last_used_at: dt.datetime | None = None
    texts: Texts = ENGLISH
    said: Mapping[SaidAt, Numbered] = field(default_factory=dict)

    @property
    def tokens(self) -> int:
        """The whole view."""
        return self.fixed_tokens + self.summary_tokens + sum(message.tokens for message in self.tail)


def snapshot_of(state: Conversation, view: View, shape: ViewShape, *, now: dt.datetime) -> Snapshot:
    """The view of a session as plans are made for it."""
    messages = tail_of(state, shape)
    tail = tuple(message for message in messages if not is_system(message.message))
    # System messages that came later stand in the tail, and stay when it is covered.
    later = sum(each_message.tokens for each_message in messages if is_system(each_message.message))
    request, whole = checkpoint_of(state, shape).request, whole_request_of(state)
    pins = min(view.summary_tokens, sum(estimate_tokens(text) + 8 for text, _ in pin_texts(state)))
    as_shown = view.system_tokens + view.summary_tokens + sum(message.tokens for message in messages)
    # What makes the messages valid, such as results that nobody gave, may stay whatever is covered.
    number = max(0, view.tokens - as_shown)
    return Snapshot(
        tail=tail,
        fixed_tokens=view.system_tokens + later + pins + number,
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
        said={
            said_at(message): message
            for message in state.since(state.head.tail_start)
            if is_tool_result(message.message)
        },
    )


def _last_answer_at(state: Conversation) -> dt.datetime | None:
    """When a model last answered, and so had seen the view; None if that is not known."""
    answer = next((message for message in reversed(state.messages) if message.message["role"] == "assistant"), None)
    return moment_of(answer) if answer else None


def _is_settled(state: Conversation) -> bool:
    """True if no message came since the last summary."""
    head = state.head
    past = next((compaction for compaction in reversed(state.compactions) if compaction.seq == head.seq), None)
    if past is None or past.compaction.stage == "prune":
        return False
    return not state.messages or state.messages[-1].seq <= head.upto
