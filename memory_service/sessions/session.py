"""One session as a process works with it: its log, the state that comes to, and the view of that.

Invariants: what is read is as new as the log, whoever wrote to it; a compaction is committed only on the head that it
was planned on, and takes nothing away that was said meanwhile; nothing is computed twice for the same log.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, suppress

from memory_service.compaction.record import Compaction
from memory_service.compaction.view import View, ViewShape, ViewSizes, extend_view, project
from memory_service.errors import Conflict, InvalidRequest, NotFound, StorageFailed
from memory_service.messages import Message, is_system, read_messages
from memory_service.messages.placeholders import without_media
from memory_service.sessions.log import JsonlLog
from memory_service.sessions.records import Appended, Body
from memory_service.sessions.state import SessionState, extend_state

# Others may write between a look at the log and the commit; each time it is looked at anew.
_COMMIT_ATTEMPTS = 200


class OpenSession:
    """One session.

    Args:
        log: Where its records are kept.

    Safe to use from several threads.
    """

    def __init__(self, log: JsonlLog) -> None:
        self.log = log
        self._state = SessionState()
        self._reading = threading.Lock()
        self._view: tuple[SessionState, ViewShape, View] | None = None
        self._view_sizes: tuple[SessionState, ViewShape, ViewSizes] | None = None
        self._originals: dict[int, tuple[Message, ...]] = {}

    def state(self) -> SessionState:
        """The session as its log tells it now.

        Raises:
            StorageFailed: The log cannot be read.
        """
        with self._reading:
            read = self.log.follow(self._state.edition, self._state.last_seq)
            if not read.is_same:
                # Deleted and begun anew, trimmed or restored, here or by another process: nothing of before holds.
                self._state = SessionState(edition=read.edition)
                self._view = self._view_sizes = None
                self._originals = {}
            if read.records:
                self._state = extend_state(self._state, read.records)
            return self._state

    def view(self, shape: ViewShape, state: SessionState | None = None) -> View:
        """Build the view that a model sees, with its media."""
        state = state or self.state()
        known = self._view
        if known is not None and known[0] is state and known[1] == shape:
            return known[2]
        view = project(state, shape, originals=self.originals(state))
        self._view = (state, shape, view)
        self._view_sizes = (state, shape, view.view_sizes)
        return view

    def seen(self, shape: ViewShape, state: SessionState) -> View:
        """The last view that was made, new or not; one is made if there is none."""
        return self._view[2] if self._view is not None else self.view(shape, state)

    def view_sizes(self, shape: ViewShape, state: SessionState) -> ViewSizes:
        """Sizes of the view; updated without building it where only messages were added."""
        known = self._view_sizes
        if known is None or known[1] != shape or not _only_grown(known[0], state):
            return self.view(shape, state).view_sizes
        view_sizes = known[2]
        if known[0] is not state:
            view_sizes = extend_view(view_sizes, state.messages[len(known[0].messages) :], shape)
            self._view_sizes = (state, shape, view_sizes)
        return view_sizes

    def append(self, bodies: Sequence[Body]) -> Appended:
        """Write what was said; durable when this returns. A session that was deleted meanwhile begins anew."""
        return self.log.append(bodies)

    def note(self, bodies: Sequence[Body], on: SessionState) -> Appended:
        """Write what was made from a state; durable when this returns.

        Raises:
            Conflict: The session was deleted, trimmed or restored since; nothing was written.
        """
        return self.log.append(bodies, edition=_there(on))

    def held(self, on: SessionState) -> AbstractContextManager[None]:
        """Keep the session from being deleted while something made from a state of it is stored; see `JsonlLog`."""
        return self.log.held(_there(on))

    def commit(self, made: Compaction, on: SessionState) -> int:
        """Write a compaction if the head is still the one that it was planned on; gives its number.

        Args:
            made: The compaction.
            on: The state that it was planned on.

        Raises:
            Conflict: Another compaction, or an undo, came first, or the session was deleted; nothing was written.
            StorageFailed: The disk did not take it.
        """
        edition = _there(on)
        for _ in range(_COMMIT_ATTEMPTS):
            state = self.state()
            if state.edition == edition and state.head.seq != made.base:
                raise Conflict(
                    f"The session was compacted or undone meanwhile (now {state.head.seq}, planned on {made.base}). "
                    "Look at the view again."
                )
            try:
                return self.log.append([made], expected_last_seq=state.last_seq, edition=edition).last_seq
            except Conflict:
                if state.edition != edition:
                    raise
        raise Conflict("The session is written to all the time. Try again.")

    def trim(self, keep_last: int) -> str:
        """Move all but the last lines out of the log; what the view is built on stays. See `JsonlLog.trim`.

        System messages and pinned ones stay, and the ledger, which could not be gathered anew.
        """
        for _ in range(_COMMIT_ATTEMPTS):
            state = self.state()
            if not state.edition:
                break
            with suppress(Conflict):
                return self.log.trim(
                    keep_last,
                    also={
                        *(each.seq for each in state.messages if is_system(each.message)),
                        *(pin.target for pin in state.pins if pin.target is not None),
                    },
                    head=state.head.seq,
                    ledger=state.head.ledger,
                    expected_last_seq=state.last_seq,
                    edition=state.edition,
                )
        return self.log.trim(keep_last)

    def originals(self, state: SessionState) -> Mapping[int, tuple[Message, ...]]:
        """The messages of the tail whose media are shown, with them: all that one of the log was read as."""
        head = state.head
        wanted = [seq for seq in state.media if seq >= head.tail_start]
        kept = {seq: self._originals[seq] for seq in wanted if seq in self._originals}
        for seq in wanted:
            if seq not in kept:
                kept[seq] = self._original(seq) or tuple(
                    without_media(each.message, seq) for each in state.between(seq, seq)
                )
        self._originals = kept
        return kept

    def _original(self, seq: int) -> tuple[Message, ...]:
        """Original of a message with its media; nothing if they are gone, so that a label takes their place."""
        try:
            return tuple(read_messages([json.loads(self.log.message(seq))]))
        except (NotFound, StorageFailed, InvalidRequest):
            return ()


def _there(on: SessionState) -> int:
    """The edition of a log that was read."""
    if not on.edition:
        raise Conflict("The session was deleted meanwhile, so nothing was written. Begin a new one, if there shall be.")
    return on.edition


def _only_grown(before: SessionState, now: SessionState) -> bool:
    """True if nothing but messages of the conversation came between two states."""
    if before is now:
        return True
    count = len(before.messages)
    return (
        before.head is now.head
        and before.pins == now.pins
        and before.pending == now.pending
        and 0 < count <= len(now.messages)
        and now.messages[count - 1] is before.messages[-1]
        and not any(is_system(each.message) for each in now.messages[count:])
    )
