"""Byte offsets of the records in a log file, in 16 bytes a record.

Invariants: only records of whole batches are known, in the order of their numbers; what was known is looked
at again when the file is another one, is shorter, or begins or ends differently, and that gives it another
edition; a lookup reads nothing but its line.
"""

from __future__ import annotations

import itertools
import os
from array import array
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from typing import BinaryIO

from memory_service.sessions.codec import LogLine, Stamp, decode, is_object, stamp
from memory_service.storage.files.disk import Signature, signature

# A line begins with its place in the log; this much of it tells whether it is still the same one.
_GLANCE_BYTES = 160
# The first line holds the identity of the log.
_FIRST_BYTES = 512
_EDITIONS = itertools.count(1)


@dataclass(slots=True)
class _Batch:
    """A batch of lines written at once, as far as it was read.

    Attributes:
        begin: Where the first of its lines begins that was met.
        last: The number of its last record.
        ts: When all of it was written.
        last_line: Where the last of its lines begins that was met.
        is_whole: Whether that is the last one of all. Lines before it that are damaged are skipped, here as
            anywhere: it cannot be told from damage to what was answered long ago.
    """

    begin: int
    last: int
    ts: str
    last_line: int = 0
    is_whole: bool = False

    def goes_on(self, place: Stamp) -> bool:
        """True if a line is the next one of it."""
        # The time ends a batch too: a damaged count must not take what was answered later for a part of it.
        return not place.batch and place.seq <= self.last and place.ts == self.ts


class Offsets:
    """Byte offsets of the records of one file.

    Attributes:
        edition: Another number, never given before, once what was known of the file does not hold any more: it was
            deleted, trimmed, restored or edited. 0 as long as there is no file.
        end: Where the last whole line ends.
        size_bytes: That of the file; what lies beyond `end` is torn, or being written.
        damaged: How many lines are skipped, and where the first of them begins.
    """

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forgets everything: there is no file."""
        self.edition = 0
        self._reset()

    def _reset(self) -> None:
        self._seqs = array("Q")
        self._starts = array("Q")
        self._signature: Signature | None = None
        self._glances = b"", b""
        self.end = 0
        self.size_bytes = 0
        self.damaged = (0, 0)
        self._headers = list[int]()
        self._dropped = set[int]()

    @property
    def last_seq(self) -> int:
        """The number of the last record; 0 if there is none."""
        return self._seqs[-1] if self._seqs else 0

    @property
    def header_seq(self) -> int | None:
        """The number of the last header; None if there is none."""
        return self._headers[-1] if self._headers else None

    @property
    def is_torn(self) -> bool:
        """True if there are bytes after the last whole batch."""
        return self.size_bytes > self.end

    def start_of(self, seq: int) -> int | None:
        """Byte offset of a record; None if there is no such record."""
        at = bisect_left(self._seqs, seq)
        if at == len(self._seqs) or self._seqs[at] != seq or seq in self._dropped:
            return None
        return self._starts[at]

    def line(self, descriptor: int, seq: int) -> LogLine | None:
        """A record by its number, from the open file; None if there is none, or it is damaged."""
        start = self.start_of(seq)
        if start is None:
            return None
        with open(descriptor, "rb", closefd=False) as stream:
            stream.seek(start)
            return line_of(stream.readline(), seq)

    def after(self, seq: int) -> tuple[array[int], array[int]]:
        """The numbers of all records after this one, and where they begin."""
        at = bisect_right(self._seqs, seq)
        seqs, starts = self._seqs[at:], self._starts[at:]
        for gone_count in sorted(self._dropped, reverse=True):
            if gone_count > seq:
                del starts[bisect_left(seqs, gone_count)]
                seqs.remove(gone_count)
        return seqs, starts

    def drop(self, seq: int) -> None:
        """Skips a record that turned out to be damaged; its number is not given again."""
        self._dropped.add(seq)
        self._headers = [header for header in self._headers if header != seq]

    def refresh(self, descriptor: int, *, again: bool = False) -> None:
        """Reads what was added to the open file, or all of it if it is not the same any more, or `again`."""
        now = signature(os.fstat(descriptor))
        if now == self._signature and not again:
            return
        is_same = self._is_same(descriptor, now)
        fresh = again or not is_same
        if fresh:
            self._reset()
        if not is_same:
            self.edition = next(_EDITIONS)
        with open(descriptor, "rb", closefd=False) as stream:
            batch = self._scan(stream)
            # Everything before the last batch was on the disk before that was begun.
            if fresh and batch is not None and not self._is_sound(stream, batch):
                self._take_back(batch)
            self._glances = self._glimpse(stream)
        self.size_bytes = max(now[0], self.end)
        self._signature = now

    def _is_same(self, descriptor: int, now: Signature) -> bool:
        """True if an open file is the one that is known, with more at its end or not."""
        signature = self._signature
        if signature is None or now[2] != signature[2] or now[0] < self.end:
            return False
        # The number of a file that was deleted may be given again at once.
        with open(descriptor, "rb", closefd=False) as stream:
            return self._glimpse(stream) == self._glances

    def _glimpse(self, stream: BinaryIO) -> tuple[bytes, bytes]:
        """The beginnings of the first line and of the last record."""
        if not self._starts:
            return b"", b""
        stream.seek(0)
        first = stream.readline(min(_FIRST_BYTES, self.end))
        stream.seek(self._starts[-1])
        return first, stream.read(min(_GLANCE_BYTES, self.end - self._starts[-1]))

    def _scan(self, stream: BinaryIO) -> _Batch | None:
        """Goes on from the end; returns the last batch, if there is a whole one."""
        stream.seek(self.end)
        at, batch, doubtful = self.end, None, list[int]()
        for line in stream:
            if not line.endswith(b"\n"):
                # Whoever writes it may go on at this moment: what comes next would look like another line.
                break
            start, at = at, at + len(line)
            place = stamp(line)
            if place is None or place.seq <= self.last_seq:
                if doubtful or (batch and not batch.is_whole) or not is_object(line):
                    doubtful.append(start)
                else:
                    self._skip([start])
                    self.end = at
                continue
            if batch is None or not batch.goes_on(place):
                # Those before it are whole batches, or damage to what was answered long ago.
                self._skip(doubtful)
                doubtful.clear()
                batch = _Batch(start, place.seq + max(place.batch, 1) - 1, place.ts)
            self._add(place, start)
            batch.last_line = start
            if place.seq == batch.last:
                batch.is_whole = True
                self._skip(doubtful)
                doubtful.clear()
                self.end = at
        if batch is not None and not batch.is_whole:
            self._take_back(batch)
            return None
        return batch

    def _skip(self, lines: list[int]) -> None:
        if lines:
            count, first = self.damaged
            self.damaged = count + len(lines), first if count else lines[0]

    def _add(self, place: Stamp, start: int) -> None:
        self._seqs.append(place.seq)
        self._starts.append(start)
        if place.kind == "session":
            self._headers.append(place.seq)

    def _is_sound(self, stream: BinaryIO, batch: _Batch) -> bool:
        stream.seek(batch.last_line)
        return is_object(stream.readline())

    def _take_back(self, batch: _Batch) -> None:
        """Forgets a batch that is not whole; it may be one that is being written."""
        kept_position = bisect_left(self._starts, batch.begin)
        del self._seqs[kept_position:], self._starts[kept_position:]
        self._headers = [seq for seq in self._headers if seq <= self.last_seq]
        self.end = batch.begin


def line_of(raw: bytes, seq: int) -> LogLine | None:
    """The record of a line; None if it is damaged, or another one."""
    try:
        line = decode(raw)
    except ValueError:
        return None
    return line if line.record.seq == seq else None
