"""One session: the state that its log tells, and the session as a process works with it: log, state and view.

Invariants: a state is a fold: the same records give the same state, read at once or one by one; no record is needed
again; a state never changes, and leaves out and counts what cannot be read. What is read of an open session is as new
as the log, whoever wrote to it; a compaction is committed only on the head that it was planned on, and takes nothing
away that was said meanwhile; nothing is computed twice for the same log.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field, replace
from itertools import takewhile

from memory_service.compaction.checkpoint import Labels
from memory_service.compaction.ledger import ledger_of, merge_ledger
from memory_service.compaction.record import Compaction, Head, LoggedCompaction, PinRecord, built_on
from memory_service.compaction.view import Conversation, View, ViewShape, ViewSizes, extend_view, project, view_language
from memory_service.errors import Conflict, InvalidRequest, NotFound, StorageFailed, TooLarge
from memory_service.messages.reading import read_messages
from memory_service.messages.shapes import Message, compact_command, is_system, media_parts_of, own_text_of, was_cut
from memory_service.messages.sizes import Numbered, Usage, number_message
from memory_service.runtime.log_changes import kept_by_trim
from memory_service.schemas.compaction import LedgerEntry
from memory_service.sessions.records import (
    Appended,
    Body,
    FlushRecord,
    Keyed,
    Learned,
    Media,
    MessageRecord,
    Pending,
    Record,
    SessionHeader,
    TrimRecord,
    Undo,
    Unpin,
)
from memory_service.storage.logs import SessionLog
from memory_service.text.placeholders import without_media
from memory_service.text.texts import texts_in

# Of the calls of a session that a provider counted, the last ones tell how far the estimate is off.
_USAGES = 16
# A client tries again within minutes; a thousand batches are hours.
_KEYS = 1_000


def _is_own(message: Message) -> bool:
    """False for a message of the user's of which a host put in all."""
    return bool(own_text_of(message).strip() or media_parts_of(message))


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """A provider's token count, and the last record before it."""

    seq: int
    usage: Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactCommand:
    """The user said `/compact`: the number of the message, and the words behind it."""

    seq: int
    instructions: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionState(Conversation):
    """A session as its log tells it.

    Attributes:
        media: What is kept beside the log, by message.
        heads: Every compaction ever made, with its chain, by its number.
        changed_seq: The last record that made the view another one: a compaction, the undo of one, or a trim.
        usages: The last counts of providers.
        flushed_to: The last message that was searched for memories; 0 if none ever was.
        flushed_round: `rounds` of the head at the last flush; None, not 0, means never.
        learned: The last context window that a provider told.
        unreadable: Messages that no model could be sent.
        command: The last `/compact` of the user.
        cut_seq: Where it stands that the last answer was cut at its end; 0 if it was not.
        keys: Of the last idempotency keys, by their hash: first and last message, and the hash of what they say.
        last_at: When the last record was appended; empty if there is none.
        edition: That of the log which tells this, see `SessionLog.append`; 0 if there is none.
    """

    header: SessionHeader | None = None
    media: Mapping[int, tuple[Media, ...]] = field(default_factory=dict)
    heads: Mapping[int, Head] = field(default_factory=dict)
    changed_seq: int = 0
    usages: tuple[Counted, ...] = ()
    flushes: tuple[FlushRecord, ...] = ()
    flushed_to: int = 0
    flushed_round: int | None = None
    learned: Learned | None = None
    unreadable: int = 0
    command: CompactCommand | None = None
    cut_seq: int = 0
    keys: Mapping[str, tuple[int, int, str]] = field(default_factory=dict)
    last_at: str = ""
    edition: int = 0

    @property
    def turn(self) -> Numbered | None:
        """The message of the user that the last turn began with; what a host inserted alone begins none."""
        users = [message for message in reversed(self.messages) if message.message["role"] == "user"]
        return next((message for message in users if _is_own(message.message)), users[0] if users else None)

    @property
    def is_commanded(self) -> bool:
        """True if the last thing said is a command to the service, so that no model need answer."""
        return self.command is not None and (not self.messages or self.messages[-1].seq < self.command.seq)

    @property
    def open_command(self) -> CompactCommand | None:
        """The command that nobody has carried out or passed over yet."""
        command = self.command
        if command is None or command.seq < self.changed_seq:
            return None
        has_answer = any(message.message["role"] != "user" for message in self.since(command.seq))
        return None if has_answer else command

    @property
    def is_cut(self) -> bool:
        """True if the last answer was cut at its end, and nothing was compacted since."""
        return self.cut_seq > self.changed_seq


def _extend_state(state: SessionState, records: Iterable[Record]) -> SessionState:
    """The state after more records."""
    fold = _Fold(state)
    for record in records:
        fold.add(record)
    return fold.state()


class _Fold:
    """A state while records are added: lists are copied once for all of them."""

    def __init__(self, state: SessionState) -> None:
        self._state = state
        self._last: Record | None = None
        self._messages = list[Numbered]()
        self._media = dict[int, tuple[Media, ...]]()

    def state(self) -> SessionState:
        state = self._state
        if self._last is not None:
            state = replace(state, last_seq=self._last.seq, last_at=self._last.ts)
        if self._messages:
            state = replace(state, messages=(*state.messages, *self._messages))
        return replace(state, media={**state.media, **self._media}) if self._media else state

    def add(self, record: Record) -> None:
        match record.body:
            case MessageRecord() as message:
                self._say(record, message)
            case SessionHeader() as header:
                self._state = replace(self._state, header=header)
            case Usage() as usage:
                self._count(record.seq, usage)
            case Compaction() as compaction:
                self._compact(record, compaction)
            case Undo() as undo:
                self._undo(record.seq, undo)
            case PinRecord() as pin:
                self._state = replace(
                    self._state,
                    pins=(*(pin_record for pin_record in self._state.pins if pin_record.pin_id != pin.pin_id), pin),
                )
            case Unpin() as unpin:
                self._state = replace(
                    self._state, pins=tuple(pin for pin in self._state.pins if pin.pin_id != unpin.pin_id)
                )
            case Pending() as pending:
                self._state = replace(self._state, pending=self._state.pending | set(pending.call_ids))
            case FlushRecord() as flush:
                self._flush(flush)
            case Keyed() as key:
                self._key(record.seq, key)
            case Learned() as lesson:
                self._state = replace(self._state, learned=lesson if lesson.context_window else None)
            case TrimRecord() as trim_record:
                # What a provider counted before was of messages that are gone.
                self._state = replace(self._state, changed_seq=record.seq)
                self._trim(trim_record)
            case _:
                pass
        self._last = record

    def _say(self, record: Record, message: MessageRecord) -> None:
        try:
            given_value = json.loads(message.text)
            # Parts and roles that are not known are carried; what is no object is no message.
            read = read_messages([given_value], strict=not isinstance(given_value, dict))
        except (InvalidRequest, TooLarge, ValueError, RecursionError):
            self._state = replace(self._state, unreadable=self._state.unreadable + 1)
            return
        if len(read) == 1 and (instructions := compact_command(read[0])) is not None:
            command = CompactCommand(seq=record.seq, instructions=instructions)
            self._state = replace(self._state, command=command)
            return
        if read and read[-1]["role"] == "assistant":
            reason = given_value.get("finish_reason") or given_value.get("stop_reason")
            self._set_cut(record.seq if was_cut(reason) else 0)
        # One message of Anthropic's may be several of ours: they share its number.
        self._messages += [number_message(each_message, record.seq, record.ts) for each_message in read]
        if message.media:
            self._media[record.seq] = message.media
        if message.usage is not None:
            self._count(record.seq, message.usage)

    def _set_cut(self, cut_seq: int) -> None:
        if cut_seq != self._state.cut_seq:
            self._state = replace(self._state, cut_seq=cut_seq)

    def _count(self, seq: int, usage: Usage) -> None:
        if was_cut(usage.finish_reason):
            self._set_cut(seq)
        self._state = replace(self._state, usages=(*self._state.usages, Counted(seq=seq, usage=usage))[-_USAGES:])

    def _compact(self, record: Record, compaction: Compaction) -> None:
        self._state, self._messages = self.state(), []
        below = self._state.heads.get(compaction.base, Head()) if compaction.base is not None else Head()
        head = built_on(below, compaction, record.seq, _ledger_after(self._state, below, compaction))
        past = LoggedCompaction(seq=record.seq, at=record.ts, compaction=compaction, head=head)
        self._state = replace(
            self._state,
            heads={**self._state.heads, record.seq: head},
            head=head,
            compactions=(*self._state.compactions, past),
            changed_seq=record.seq,
        )

    def _undo(self, seq: int, undo: Undo) -> None:
        heads = self._state.heads
        undone_head = heads.get(undo.compaction)
        # Two may undo the same one at once: what does not count any more is not undone again.
        if undone_head is None or undo.compaction not in chain_of(heads, self._state.head):
            return
        head = heads.get(undone_head.base, Head()) if undone_head.base is not None else Head()
        chain = set(chain_of(heads, head))
        past = tuple(replace(compaction, active=compaction.seq in chain) for compaction in self._state.compactions)
        self._state = replace(self._state, head=head, compactions=past, changed_seq=seq)

    def _trim(self, trim_record: TrimRecord) -> None:
        """Messages are gone that a ledger was gathered from: it is as it was then."""
        state = self._state
        if trim_record.head is None or trim_record.head not in state.heads:
            return
        head = replace(state.heads[trim_record.head], ledger=trim_record.ledger)
        self._state = replace(
            state,
            heads={**state.heads, trim_record.head: head},
            head=head if state.head.seq == trim_record.head else state.head,
            compactions=tuple(
                replace(past, head=head) if past.seq == trim_record.head else past for past in state.compactions
            ),
        )

    def _key(self, seq: int, key: Keyed) -> None:
        known_keys = dict(self._state.keys)
        known_keys[key.key] = (seq - key.messages, seq - 1, key.content)
        while len(known_keys) > _KEYS:
            del known_keys[next(iter(known_keys))]
        self._state = replace(self._state, keys=known_keys)

    def _flush(self, flush: FlushRecord) -> None:
        state = self._state
        self._state = replace(
            self._state,
            flushes=(*state.flushes, flush),
            flushed_to=max(state.flushed_to, flush.to_seq),
            flushed_round=state.head.rounds,
        )


def _ledger_after(state: SessionState, below: Head, compaction: Compaction) -> tuple[LedgerEntry, ...]:
    """The ledger once a compaction counts: what the newly covered messages hold goes into the one before."""
    if compaction.stage == "prune":
        return below.ledger
    messages = state.between(below.tail_start, compaction.tail_start - 1)
    read = [message for message in messages if not is_system(message.message)]
    ledger = merge_ledger(below.ledger, ledger_of(read, compaction.judged_statements(), before=below.ledger))
    return (
        Labels({**below.labels, **compaction.labels}).entries(ledger)
        if compaction.identifier_policy == "anonymize"
        else ledger
    )


def chain_of(heads: Mapping[int, Head], head: Head) -> list[int]:
    """The compactions that a head is built on and itself, newest first."""
    chain = list[int]()
    while head.seq is not None:
        chain.append(head.seq)
        head = heads.get(head.base, Head()) if head.base is not None else Head()
    return chain


# About a quarter of a second to read.
_LONG_LOG = 5_000
# Others may write between a look at the log and the commit; each time it is looked at anew.
_COMMIT_ATTEMPTS = 200
_BUSY = "The session is written to all the time. Try again."


class OpenSession:
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
                self._state = _extend_state(self._state, read.records)
            return self._state

    def unread_log(self) -> int:
        """The last number of the log, if so much of it is not read yet that it takes a while; else 0."""
        last_seq = self.log.status().last_seq
        return last_seq if last_seq - self._state.last_seq > _LONG_LOG else 0

    def log_part(self, within: range) -> tuple[Numbered, ...]:
        """The messages with numbers in a range, without a look at the rest of the log."""
        records = self.log.read(within.start - 1, media=False)
        return _extend_state(SessionState(), takewhile(lambda record: record.seq in within, records)).messages

    def view(self, shape: ViewShape, state: SessionState | None = None) -> View:
        """Build the view that a model sees, with its media."""
        state = state or self.state()
        known_view = self._view
        if known_view is not None and known_view[0] is state and known_view[1] == shape:
            return known_view[2]
        view = project(state, shape, originals=self.originals(state))
        self._view = (state, shape, view)
        self._view_sizes = (state, shape, view.view_sizes)
        return view

    def last_view(self, shape: ViewShape, state: SessionState) -> View:
        """The last view that was made, new or not; one is made if there is none."""
        return self._view[2] if self._view is not None else self.view(shape, state)

    def view_sizes(self, shape: ViewShape, state: SessionState) -> ViewSizes:
        """Sizes of the view; updated without building it where only messages were added."""
        known_view_sizes = self._view_sizes
        if known_view_sizes is None or known_view_sizes[1] != shape or not _only_grown(known_view_sizes[0], state):
            return self.view(shape, state).view_sizes
        view_sizes = known_view_sizes[2]
        if known_view_sizes[0] is not state:
            messages, texts = state.messages[len(known_view_sizes[0].messages) :], texts_in(view_language(state))
            view_sizes = extend_view(view_sizes, messages, shape, texts)
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

    def hold(self, on: SessionState) -> AbstractContextManager[None]:
        """Keep the session from being deleted while something made from a state of it is stored; see `SessionLog`."""
        return self.log.hold(_there(on))

    def commit(self, compaction: Compaction, on: SessionState) -> int:
        """Write a compaction if the head is still the one that it was planned on; gives its number.

        Args:
            compaction: The compaction.
            on: The state that it was planned on.

        Raises:
            Conflict: Another compaction, or an undo, came first, or the session was deleted; nothing was written.
            StorageFailed: The disk did not take it.
        """
        edition = _there(on)
        for _ in range(_COMMIT_ATTEMPTS):
            state = self.state()
            if state.edition == edition and state.head.seq != compaction.base:
                raise Conflict(
                    f"The session was compacted or undone meanwhile (now {state.head.seq}, planned on "
                    f"{compaction.base}). Look at the view again."
                )
            try:
                return self.log.append([compaction], expected_last_seq=state.last_seq, edition=edition).last_seq
            except Conflict:
                if state.edition != edition:
                    raise
        raise Conflict(_BUSY)

    def trim(self, keep_last: int) -> str:
        """Put all but the last records of the log aside; what the view is built on stays.

        System messages and pinned ones stay, and the ledger, which could not be gathered anew.

        Args:
            keep_last: How many records stay whatever they are; of the older ones, messages and usage go.

        Returns:
            The name of what was put aside.

        Raises:
            InvalidRequest: `keep_last` is negative.
            NotFound: There is no log.
            StorageFailed: The storage did not take it; the log is as it was.
        """
        if keep_last < 0:
            raise InvalidRequest(f"A log cannot keep {keep_last} lines. Use 0 or more.")
        for _ in range(_COMMIT_ATTEMPTS):
            state = self.state()
            if not state.edition:
                raise NotFound("The session was deleted meanwhile, so there is nothing to trim.")
            also = {
                *(message.seq for message in state.messages if is_system(message.message)),
                *(pin.target for pin in state.pins if pin.target is not None),
            }
            with suppress(Conflict):
                return self.log.trim(
                    kept_by_trim(self.log, keep_last, also),
                    TrimRecord(backup="", lines=0, head=state.head.seq, ledger=state.head.ledger),
                    expected_last_seq=state.last_seq,
                    edition=state.edition,
                )
        raise Conflict(_BUSY)

    def originals(self, state: SessionState) -> Mapping[int, tuple[Message, ...]]:
        """The messages of the tail whose media are shown, with them: all that one of the log was read as."""
        head = state.head
        wanted_seqs = [seq for seq in state.media if seq >= head.tail_start]
        messages = {seq: self._originals[seq] for seq in wanted_seqs if seq in self._originals}
        texts = texts_in(view_language(state))
        for seq in wanted_seqs:
            if seq not in messages:
                messages[seq] = self._original(seq) or tuple(
                    without_media(message.message, seq, texts) for message in state.between(seq, seq)
                )
        self._originals = messages
        return messages

    def _original(self, seq: int) -> tuple[Message, ...]:
        """Original of a message with its media; nothing if they are gone, so that a label takes their place."""
        try:
            return tuple(read_messages([json.loads(self.log.message(seq))], strict=False))
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
        and not any(is_system(message.message) for message in now.messages[count:])
        and view_language(before) == view_language(now)
    )
