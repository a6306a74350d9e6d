"""View of a session: the messages that a model sees, a pure function of the state; and the open session.

Invariants: every message that is no system message is shown word for word, shown as a stub with its handle, or
covered by the summary; system messages, pins and the last request of the user always stand there; what comes out is
valid on the wire; a state and a shape always give the same bytes.

Invariants of the open session (log, state, view): what is read is as new as the log, whoever wrote to it; a
compaction is committed only on the head that it was planned on, and takes nothing away that was said meanwhile;
nothing is computed twice for the same log.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Literal, TypeAlias, cast

from memory_service.compaction.checkpoint import Checkpoint, checkpoint_messages, is_request, pinned_texts, shortened
from memory_service.compaction.ledger import fit_ledger, render_ledger
from memory_service.compaction.prune_steps import GuardRules, guarded_view
from memory_service.compaction.prune_steps import pruned_message as reduced
from memory_service.compaction.summary import without_tools
from memory_service.errors import Conflict, InvalidRequest, NotFound, StorageFailed
from memory_service.messages import Message, Numbered, is_system, message_tokens, numbered, read_messages, text_of
from memory_service.messages import without_thinking as stripped_of_thinking
from memory_service.messages.placeholders import without_media
from memory_service.messages.repair import PORTABLE, Repair, Rules, repaired
from memory_service.sessions.base import SessionLog
from memory_service.sessions.records import Appended, Body, Compaction
from memory_service.sessions.state import Head, SessionState, extend_state
from memory_service.text.frames import escaped
from memory_service.text.secrets import redacted

# What messages of the log were read as, with their media, by number.
Originals: TypeAlias = Mapping[int, Sequence[Message]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewShape:
    """Size limits of the parts of a view, for one window.

    Attributes:
        window_tokens: Size of the window that the guard's shares are of.
        ledger_tokens: The longest ledger shown.
        request_chars: The longest request of the user that stands word for word in a checkpoint.
        rules: What the provider at hand refuses.
    """

    window_tokens: int
    ledger_tokens: int = 800
    request_chars: int = 16_000
    guard: GuardRules = field(default_factory=GuardRules)
    rules: Rules = PORTABLE


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The messages that a model sees, with their sizes in estimated tokens.

    Attributes:
        messages: A list that every provider takes.
        system_tokens: Of the system messages in it.
        summary_tokens: Of the checkpoint: summary, ledger, pins, request.
        tail_tokens: Of all others.
        lead: How many messages stand before the tail: system messages and checkpoint.
        first_seq: The first message of the log that is shown itself; one more than the last if none is.
        last_seq: The last one.
        seqs: The number of each message of the tail.
        sizes: What each of them takes.
        repairs: What had to be done to make it valid.
        tail: The messages below the checkpoint as `tail_of` gives them.
    """

    messages: tuple[Message, ...]
    system_tokens: int
    summary_tokens: int
    tail_tokens: int
    lead: int
    first_seq: int
    last_seq: int
    seqs: tuple[int, ...] = ()
    sizes: tuple[int, ...] = ()
    repairs: tuple[Repair, ...] = ()
    tail: tuple[Numbered, ...] = ()

    @property
    def tokens(self) -> int:
        """All of it."""
        return self.system_tokens + self.summary_tokens + self.tail_tokens

    @property
    def view_sizes(self) -> ViewSizes:
        """Sizes of the view."""
        return ViewSizes(lead_tokens=self.system_tokens + self.summary_tokens, seqs=self.seqs, sizes=self.sizes)


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewSizes:
    """Sizes of a view in estimated tokens, without its messages.

    Attributes:
        lead_tokens: Of system messages and checkpoint.
        seqs: The number of each message of the tail.
        sizes: What each of them takes.
    """

    lead_tokens: int
    seqs: tuple[int, ...]
    sizes: tuple[int, ...]

    @property
    def tokens(self) -> int:
        """All of it."""
        return self.lead_tokens + sum(self.sizes)


def extend_view(view_sizes: ViewSizes, said: Sequence[Numbered], shape: ViewShape) -> ViewSizes:
    """Copy of a view with more messages at its end."""
    shown = guarded_view(said, shape.guard, shape.window_tokens)
    return ViewSizes(
        lead_tokens=view_sizes.lead_tokens,
        seqs=(*view_sizes.seqs, *(each.seq for each in shown)),
        sizes=(*view_sizes.sizes, *(each.tokens for each in shown)),
    )


def project(state: SessionState, shape: ViewShape, *, originals: Originals | None = None) -> View:
    """The view of a session.

    Args:
        state: The session.
        shape: What limits it.
        originals: Messages with their media, by number; the others show notes in their place.
    """
    opening = _opening(state)
    system = [each for each in state.messages if is_system(each.message) and _leads(each, state, opening)]
    tail = tail_of(state, shape, originals=originals)
    checkpoint = checkpoint_messages(checkpoint_of(state, shape))
    sent = repaired(
        [*(each.message for each in system), *checkpoint, *(each.message for each in tail)],
        pending=state.pending,
        rules=shape.rules,
    )
    summary_tokens = sum(map(message_tokens, checkpoint))
    # Those that are sent: one that says nothing is not.
    system_tokens = sum(map(message_tokens, takewhile(is_system, sent.messages)))
    total = _total(sent.messages, tail, system_tokens + summary_tokens, changed=bool(sent.repairs))
    return View(
        messages=tuple(sent.messages),
        system_tokens=system_tokens,
        summary_tokens=summary_tokens,
        tail_tokens=total - system_tokens - summary_tokens,
        lead=_lead(sent.messages, checkpoint),
        first_seq=tail[0].seq if tail else state.last_seq + 1,
        last_seq=tail[-1].seq if tail else state.last_seq,
        seqs=tuple(each.seq for each in tail),
        sizes=tuple(each.tokens for each in tail),
        repairs=sent.repairs,
        tail=tail,
    )


def tail_of(state: SessionState, shape: ViewShape, *, originals: Originals | None = None) -> tuple[Numbered, ...]:
    """The messages below the checkpoint as they are shown, with their sizes; not yet made valid."""
    head, opening = state.head, _opening(state)
    shown = state.since(head.tail_start)
    turn = max((at for at, each in enumerate(shown) if each.message["role"] == "user"), default=0)
    pins = frozenset(pin.target for pin in state.pins if pin.target is not None)
    changed = [
        _shown(each, whole, head, pins, keeps_thinking=at >= turn or each.seq > head.upto)
        for at, (each, whole) in enumerate(zip(shown, _whole(shown, originals or {}), strict=True))
        if not (is_system(each.message) and _leads(each, state, opening))
    ]
    if head.toolless_upto >= head.tail_start > 0:
        changed = without_tools(changed, head.toolless_upto, live=state.pending, pinned=pins)
    return tuple(guarded_view(changed, shape.guard, shape.window_tokens, protected=pins))


def checkpoint_of(state: SessionState, shape: ViewShape) -> Checkpoint:
    """Checkpoint of a view."""
    head = state.head
    request = _request(state)
    asked = escaped(redacted(text_of(request.message))) if request else ""
    return Checkpoint(
        summary=head.summary,
        ledger=render_ledger(fit_ledger(head.ledger, shape.ledger_tokens)) if head.ledger else "",
        pins=pinned_texts([(text, seq) for text, seq in pin_texts(state) if seq is None or seq < head.tail_start]),
        request=shortened(asked, shape.request_chars, f"log:{request.seq}") if request else "",
        request_seq=request.seq if request else 0,
        toolless_upto=head.toolless_upto if head.toolless_upto >= head.tail_start else 0,
        role=cast(Literal["user", "assistant"], head.role),
    )


def pin_texts(state: SessionState) -> list[tuple[str, int | None]]:
    """The text of each pin, with the number of the message that it is of."""
    found = list[tuple[str, int | None]]()
    for pin in state.pins:
        if pin.text is not None:
            found.append((pin.text, None))
        elif pin.target is not None and (said := state.between(pin.target, pin.target)):
            # One message of Anthropic's may be several of ours.
            found.append(("\n".join(filter(None, (text_of(each.message) for each in said))), pin.target))
    return found


def with_head(state: SessionState, head: Head) -> SessionState:
    """Session state as if another compaction were active, to size a plan."""
    return replace(state, head=head)


def _leads(each: Numbered, state: SessionState, opening: int) -> bool:
    """True if a system message stands at the beginning: it came there, or what it stood among is compacted."""
    return each.seq < state.head.tail_start or each.seq <= opening


def _opening(state: SessionState) -> int:
    """The last of the system messages that the log begins with."""
    last = 0
    for each in state.messages:
        if not is_system(each.message):
            break
        last = each.seq
    return last


def _whole(shown: Sequence[Numbered], originals: Originals) -> Iterator[Message]:
    """The messages with their media; several of ours may be one of the log, and share its number."""
    place, before = 0, None
    for each in shown:
        place = place + 1 if each.seq == before else 0
        before = each.seq
        read = originals.get(each.seq, ())
        yield read[place] if place < len(read) else each.message


def _shown(each: Numbered, message: Message, head: Head, pins: Collection[int], *, keeps_thinking: bool) -> Numbered:
    if each.seq not in pins:
        # The same rule that the steps planned with, so that both come to the same size.
        original = each if message is each.message else replace(each, message=message)
        message = reduced(original, head.cleared.get(each.seq), each.seq in head.stripped)
    if head.seq is not None and not keeps_thinking:
        # Its signature holds for what stood before it, and that is gone.
        message = stripped_of_thinking(message)
    return each if message is each.message else numbered(message, each.seq, each.at)


def _request(state: SessionState) -> Numbered | None:
    """The last message of the user, if the view has none of the user's below its checkpoint."""
    head = state.head
    if head.rounds == 0:
        return None
    for each in reversed(state.messages):
        if is_request(each.message):
            return each if each.seq < head.tail_start else None
    return None


def _total(messages: Sequence[Message], tail: Sequence[Numbered], lead_tokens: int, *, changed: bool) -> int:
    # Nothing was repaired nearly always: then every size is known.
    return sum(map(message_tokens, messages)) if changed else lead_tokens + sum(each.tokens for each in tail)


def _lead(messages: Sequence[Message], checkpoint: Sequence[Message]) -> int:
    at = 0
    while at < len(messages) and is_system(messages[at]):
        at += 1
    if checkpoint:
        at = next((place + 1 for place in range(at, len(messages)) if messages[place] == checkpoint[0]), at)
    return at


# Others may write between a look at the log and the commit; each time it is looked at anew.
_COMMIT_ATTEMPTS = 200


class Session:
    """One session.

    Args:
        log: Where its records are kept.

    Safe to use from several threads.
    """

    def __init__(self, log: SessionLog) -> None:
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
        """Keep the session from being deleted while something made from a state of it is stored; see `SessionLog`."""
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
        """Move all but the last lines out of the log; what the view is built on stays. See `SessionLog.trim`.

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
