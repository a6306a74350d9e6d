"""The numbers behind the state of a session, and its compactions at their places in the log, for people.

Invariants: pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from memory_service.compaction.receipt import receipt_of
from memory_service.compaction.record import Head, LoggedCompaction, newest_compaction

if TYPE_CHECKING:
    from memory_service.runtime.session import SessionState
    from memory_service.runtime.session_services import SessionSnapshot
    from memory_service.schemas.compaction import CompactionReceipt


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownCompaction:
    """A compaction at its place in the log.

    Attributes:
        receipt: The receipt as the log has it.
        place: The message that the compaction stands before: the first one that it keeps word for word; where it
            keeps all, the first one after it was made.
        covered: First and last message that it took into its summary; None for one without a summary.
        covered_messages: Number of messages from the first to the last of `covered`.
    """

    receipt: CompactionReceipt
    place: int
    covered: tuple[int, int] | None
    covered_messages: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionDetails:
    """Numbers of a session beside its status.

    Attributes:
        compactions: All compactions, undone ones included, in the order of their places.
        marks: Where a compaction ends, a flush begins and a compaction begins, in tokens; None for a refused window.
        usable_tokens: What can be used of the window.
        first_shown: The first message that the view shows word for word.
        in_view: How many messages it shows so.
        newest_compaction: Id of the newest compaction that counts; empty for none.
        undone: How many compactions were undone.
        unreadable: How many lines of the log cannot be read.
    """

    last_message: int
    first_shown: int
    in_view: int
    newest_compaction: str
    undone: int
    flushes: int
    unreadable: int
    marks: tuple[int, int, int] | None
    usable_tokens: int = 0
    compactions: tuple[ShownCompaction, ...] = ()


def details_of(snapshot: SessionSnapshot) -> SessionDetails:
    """Details of a session."""
    state, view = snapshot.state, snapshot.view()
    budget = None if snapshot.options.window.problem == "refuse" else snapshot.budget()
    return SessionDetails(
        last_message=state.messages[-1].seq if state.messages else 0,
        first_shown=view.first_seq,
        in_view=len(view.seqs),
        newest_compaction=newest_compaction(state.compactions),
        undone=sum(not past.active for past in state.compactions),
        flushes=len(state.flushes),
        unreadable=state.unreadable,
        marks=(budget.target_tokens, budget.soft_tokens, budget.hard_tokens) if budget else None,
        usable_tokens=budget.usable_tokens if budget else 0,
        compactions=tuple(
            sorted((_shown_compaction(state, past) for past in state.compactions), key=lambda shown: shown.place)
        ),
    )


def _shown_compaction(state: SessionState, past: LoggedCompaction) -> ShownCompaction:
    compaction = past.compaction
    kept_before = state.heads.get(compaction.base, Head()).tail_start if compaction.base is not None else 0
    messages = state.between(kept_before, compaction.tail_start - 1) if compaction.stage != "prune" else ()
    return ShownCompaction(
        receipt=receipt_of(past),
        place=compaction.tail_start if messages else past.seq,
        covered=(messages[0].seq, messages[-1].seq) if messages else None,
        covered_messages=len(messages),
    )
