"""Changes of a session log that are made of its primitives: begin, fork, trim, erase; and logs of other programs.

Invariants: an erased record keeps its number and its time, and says nothing else. With a message go the compactions
whose summary or stubs were made of it, those that are built on them, pins of it, and what a trim has gathered from it:
the view is then made of what is left, and the next compaction sums that up anew.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import takewhile

from indexer import is_openclaw, openclaw_messages
from memory_service.compaction.record import Compaction, PinRecord
from memory_service.errors import Conflict, NotFound
from memory_service.sessions.records import Body, ErasedRecord, Record, SessionHeader, TrimRecord, Unknown
from memory_service.storage.logs import LogStore, SessionLog

# All other kinds are what a view is built on: without its pins and its compaction it would be another one. What was
# flushed is not flushed again, and what was sent with an idempotency key is not taken twice.
_GOES = frozenset({"message", "usage"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasedSeqs:
    """Numbers of the messages that were erased, and of the compactions that went with them."""

    messages: tuple[int, ...]
    compactions: tuple[int, ...]


def begin_log(logs: LogStore, header: SessionHeader) -> SessionLog:
    """Begin the log of a session with its header.

    Raises:
        InvalidName: The id is not one of a session.
        Conflict: There is a session of that id.
        StorageFailed: The storage did not take it.
    """
    log = logs.open(header.session_id, must_exist=False)
    try:
        log.append([header], expected_last_seq=0)
    except Conflict as error:
        raise Conflict(
            f"There is a session {header.session_id} already. Choose another id, or go on with it."
        ) from error
    return log


def fork_log(logs: LogStore, session_id: str, branch: str, *, before_seq: int, title: str = "") -> None:
    """Begin a session with what the log of another one has before a record; with a title, that is its name for people.

    Raises:
        InvalidName: An id is not one of a session.
        NotFound: There is no session to begin with.
        Conflict: There is a session with the id of the branch.
        StorageFailed: The storage did not take it.
    """
    shared_takewhile = takewhile(lambda record: record.seq < before_seq, logs.open(session_id).read())
    logs.begin(
        branch,
        (_of_branch(record, branch, title) for record in shared_takewhile if not isinstance(record.body, Unknown)),
    )


def is_fork(logs: LogStore, session_id: str, branch: str, *, before_seq: int, title: str = "") -> bool:
    """True if a log is what `fork_log` would begin, or went on from that in its own way."""
    records = (record for record in logs.open(session_id).read(media=False) if not isinstance(record.body, Unknown))
    own_records = iter(logs.open(branch).read(media=False))
    for record in records:
        own, forked = next(own_records, None), _of_branch(record, branch, title)
        is_same = own is not None and (own.seq, own.body) == (forked.seq, forked.body)
        if record.seq >= before_seq:
            return not is_same
        if not is_same:
            return False
    return True


def _of_branch(record: Record, branch: str, title: str) -> Record:
    """A record as a branch has it: a header names the branch."""
    if not isinstance(record.body, SessionHeader):
        return record
    header = replace(record.body, session_id=branch, log_id=secrets.token_hex(8), title=title or record.body.title)
    return replace(record, body=header)


def kept_by_trim(log: SessionLog, keep_last: int, also: Collection[int] = ()) -> set[int]:
    """The numbers of the records that a trim keeps.

    Args:
        log: The log.
        keep_last: How many of the last records stay, whatever they are; of the older ones, messages and usage go.
        also: Messages that stay, however old.
    """
    outline = log.outline()
    border = len(outline) - keep_last
    return {seq for at, (seq, kind) in enumerate(outline) if at >= border or kind not in _GOES or seq in also}


def has_messages(log: SessionLog, seqs: Collection[int]) -> bool:
    """True if a log, or what trims took out of it, has one of some messages."""
    return any(kind == "message" and seq in seqs for seq, kind in log.outline(trimmed=True))


def erase_messages(
    logs: LogStore, session_id: str, seqs: Collection[int], *, first: Callable[[], None] = lambda: None
) -> ErasedSeqs:
    """Erase messages of a session, and what was made of them; what trims took out of the log comes back first.

    Args:
        logs: The logs.
        session_id: The session.
        seqs: The numbers of the messages.
        first: Erases what else was made of them; nobody writes to the log meanwhile.

    Raises:
        InvalidName: The id is not one of a session.
        NotFound: There is no session of that id, or none of these messages.
        StorageFailed: The storage did not let it go.
    """
    log = logs.open(session_id)
    if not has_messages(log, seqs):
        raise _no_messages(session_id, seqs)
    with suppress(NotFound):
        while True:
            log.restore_trim()
    bodies = dict[int, Body]()

    def change(records: Iterable[Record]) -> Mapping[int, Body]:
        bodies.update(_erased_bodies(records, frozenset(seqs)))
        if ErasedRecord(was="message") not in bodies.values():
            raise _no_messages(session_id, seqs)
        return bodies

    logs.rewrite(session_id, change, first=first)
    return ErasedSeqs(messages=_erased_of("message", bodies), compactions=_erased_of("compaction", bodies))


def _no_messages(session_id: str, seqs: Collection[int]) -> NotFound:
    numbers = ", ".join(map(str, sorted(seqs)[:5]))
    return NotFound(f"The log of {session_id} has no message {numbers}. Read the log to see what it has.")


def _erased_of(kind: str, bodies: Mapping[int, Body]) -> tuple[int, ...]:
    return tuple(sorted(seq for seq, body in bodies.items() if body == ErasedRecord(was=kind)))


def _erased_bodies(records: Iterable[Record], seqs: frozenset[int]) -> dict[int, Body]:
    """The new bodies of the records that some messages are in, and of what was made of them."""
    bodies = dict[int, Body]()
    for record in records:
        match record.kind, record.body:
            case "message", _ if record.seq in seqs:
                bodies[record.seq] = ErasedRecord(was="message")
            case "compaction", Compaction() as compaction if compaction.base not in bodies and not _covers(
                compaction, seqs
            ):
                pass
            case "compaction", _:
                # One that cannot be read may have the message in it, and counts for nothing.
                bodies[record.seq] = ErasedRecord(was="compaction")
            case _, PinRecord(target=int(target)) if target in seqs:
                bodies[record.seq] = ErasedRecord(was="pin")
            case _, TrimRecord(ledger=ledger) as trim_record if any(seqs.intersection(entry.seqs) for entry in ledger):
                kept_entries = tuple(entry for entry in ledger if not seqs.intersection(entry.seqs))
                bodies[record.seq] = replace(trim_record, ledger=kept_entries)
    return bodies


def _covers(compaction: Compaction, seqs: frozenset[int]) -> bool:
    """True if a compaction was made of one of some messages."""
    return not seqs.isdisjoint(compaction.cleared) or (
        compaction.stage != "prune" and min(seqs) < compaction.tail_start
    )


def foreign_messages(
    log: SessionLog, since_seq: int, limit: int | None
) -> Sequence[tuple[int, Mapping[str, object]]] | None:
    """Number and message of those after `since_seq`, as they were given; None for a log of ours."""
    content = log.foreign()
    if content is None:
        return None
    return [(entry.line, entry.message) for entry in openclaw_messages(content) if entry.line > since_seq][:limit]


def unreadable(log: SessionLog) -> tuple[str, ...]:
    """Limits of a log in a foreign format, for `degraded`; empty for our own format."""
    content = log.foreign()
    if content is None:
        return ()
    if is_openclaw(content):
        return ("log: OpenClaw wrote it: it can be read and searched, not gone on with. Choose another id for that.",)
    return ("log: it is in a format that is not known here, so nothing of it is shown. Move it away.",)
