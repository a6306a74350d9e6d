"""Lines of a log from which messages are erased. Pure.

An erased line keeps its number, its time and its place in its batch, and says nothing else. With a message go the
compactions whose summary or stubs were made of it, those that are built on them, pins of it, and what a trim has
gathered from it: the view is then made of what is left, and the next compaction sums that up anew.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from memory_service.compaction.record import Compaction, PinRecord
from memory_service.sessions.codec import Stamp, decode, draft_record, encode, stamp
from memory_service.sessions.records import Body, ErasedRecord, TrimRecord

if TYPE_CHECKING:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasedLines:
    """A log without some of its messages.

    Attributes:
        lines: All of its lines.
        messages: Numbers of the messages that were there and are gone.
        compactions: Numbers of the compactions that are gone with them.
    """

    lines: list[bytes]
    messages: tuple[int, ...]
    compactions: tuple[int, ...]


def without_messages(read: Callable[[], Iterable[bytes]], seqs: Collection[int]) -> ErasedLines:
    """The lines of a log without some messages, and without what was made of them.

    Args:
        read: Gives the whole lines of the log, from the first on each time.
        seqs: Numbers of the messages.
    """
    wanted = frozenset(seqs)
    compactions = _made_of(read(), wanted)
    lines, messages = list[bytes](), list[int]()
    for line in read():
        place = stamp(line)
        if place is None:
            lines.append(line)
            continue
        if place.kind == "message" and place.seq in wanted:
            messages.append(place.seq)
            lines.append(_line(place, ErasedRecord(was="message")))
        elif place.seq in compactions:
            lines.append(_line(place, ErasedRecord(was="compaction")))
        else:
            lines.append(_without(line, place, wanted))
    return ErasedLines(lines=lines, messages=tuple(messages), compactions=tuple(sorted(compactions)))


def _made_of(lines: Iterable[bytes], seqs: frozenset[int]) -> set[int]:
    """Numbers of the compactions that were made of some messages, or are built on such."""
    found = set[int]()
    for line in lines:
        place = stamp(line)
        if place is None or place.kind != "compaction":
            continue
        body = _body(line)
        # One that cannot be read may have the message in it, and counts for nothing.
        if not isinstance(body, Compaction) or body.base in found or any(_covers(body, seq) for seq in seqs):
            found.add(place.seq)
    return found


def _covers(made: Compaction, seq: int) -> bool:
    return seq in made.cleared or (made.stage != "prune" and seq < made.tail_start)


def _without(line: bytes, place: Stamp, seqs: frozenset[int]) -> bytes:
    """A line of another kind, without what it has of some messages."""
    if place.kind not in ("pin", "trimmed"):
        return line
    body = _body(line)
    if isinstance(body, PinRecord) and body.target in seqs:
        return _line(place, ErasedRecord(was="pin"))
    if isinstance(body, TrimRecord) and any(seqs.intersection(entry.seqs) for entry in body.ledger):
        kept = tuple(entry for entry in body.ledger if not seqs.intersection(entry.seqs))
        return _line(place, replace(body, ledger=kept))
    return line


def _body(line: bytes) -> Body | None:
    with suppress(ValueError):
        return decode(line).record.body
    return None


def _line(place: Stamp, body: Body) -> bytes:
    return encode(draft_record(body), seq=place.seq, ts=place.ts, batch=place.batch)
