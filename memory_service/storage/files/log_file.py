"""The file of one session log: its place, its lock, where its records begin, its repair, and how lines get into it.

Invariants: a batch is there as a whole or not at all, for every reader; numbers are given once, under a lock among
threads and processes; a torn end is cut before anything is written behind it; reading creates nothing.

Offsets take 16 bytes a record. Only records of whole batches are known, in the order of their numbers; what was known
is looked at again when the file is another one, is shorter, or begins or ends differently, and that gives it another
edition; a lookup reads nothing but its line.

Of a repair nothing is thrown away: what is cut off stays beside the log; a file that has lines, and none of them ours,
is left alone; each finding is told once.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import itertools
import os
import stat
import threading
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from memory_service.errors import Conflict, InvalidName, MemoryServiceError, NotFound, StorageFailed
from memory_service.sessions.codec import LogLine, RecordDraft, Stamp, decode, draft_record, encode, is_object, stamp
from memory_service.sessions.records import Repair, RepairKind, SessionHeader
from memory_service.storage.files import disk
from memory_service.storage.files.disk import Signature, WriteLock, open_no_follow, signature, storage_errors
from memory_service.storage.revisions import kept_changing


class LogRecovery:
    """Faults found in one log, and their repair. The caller holds the lock of the offsets.

    Args:
        path: The file of the log.
        offsets: Where its records begin.
    """

    def __init__(self, path: Path, offsets: Offsets) -> None:
        self._path = path
        self._offsets = offsets
        self._found: dict[Repair, None] = {}
        self._read_header: int | None = None

    @property
    def repairs(self) -> tuple[Repair, ...]:
        """Faults found, and what was done about each."""
        count, first = self._offsets.damaged
        message = f"{count} lines of {self._path.name} were skipped; the first begins at byte {first}."
        repairs = [Repair(kind="damaged", message=message)] if count else []
        return (*repairs, *self._found)

    def note(self, kind: RepairKind, message: str) -> None:
        """Keeps a finding."""
        self._found[Repair(kind=kind, message=message)] = None

    def drop(self, seq: int) -> None:
        """Skips a record that turned out to be damaged."""
        self._offsets.drop(seq)
        self.note("damaged", f"Record {seq} of {self._path.name} cannot be read and was skipped.")

    def is_sound(self, descriptor: int) -> bool:
        """True if there is nothing to mend."""
        return not self._offsets.is_torn and not self.is_foreign and self.has_header(descriptor)

    def has_header(self, descriptor: int) -> bool:
        """True if the log has a header that can be read, or needs none."""
        while (seq := self._offsets.header_seq) is not None and seq != self._read_header:
            if self._offsets.line(descriptor, seq) is None:
                self.drop(seq)
            else:
                self._read_header = seq
        return seq is not None or not self._offsets.last_seq

    def cut_torn_end(self, descriptor: int) -> None:
        """Cuts a torn end off. The lock of the log is held.

        Raises:
            StorageFailed: The file is no log of ours, or the disk did not let it be mended.
        """
        self._offsets.refresh(descriptor)
        if self._offsets.is_torn:
            end = self._offsets.end
            torn_bytes = os.fstat(descriptor).st_size - end
            path = save_beside(self._path, lambda: disk.pieces(descriptor, end), "torn")
            disk.truncate_durably(descriptor, end)
            self._offsets.refresh(descriptor)
            text = f"The last {torn_bytes} bytes of {self._path.name} were no whole record; {path.name} has them."
            self.note("torn", text)
        if self.is_foreign:
            self.note("foreign", f"{self._path.name} holds no record of a session.")
            raise StorageFailed(
                f"{self._path.name} is no log of a session of this service. Choose another id, or move it away."
            )

    @property
    def is_foreign(self) -> bool:
        """True if there are whole lines, and none is ours."""
        return not self._offsets.last_seq and self._offsets.end > 0


def save_beside(path: Path, read: Callable[[], Iterable[bytes]], ending: str) -> Path:
    """Writes a file beside a log, under a name that is free.

    Args:
        path: The log.
        read: Gives the content in pieces, from its beginning each time.
        ending: What follows the name of the log.

    Raises:
        StorageFailed: The disk did not take it.
    """
    for number in itertools.count(1):
        target = path.with_name(f"{path.name}.{ending}" + (f"-{number}" if number > 1 else ""))
        if disk.current_signature(target) is None and disk.replace_durably(target, read(), expected=None):
            break
    return target


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


SUFFIX = ".jsonl"
LOCKS = ".locks"


class LogFile:
    """The file of one log, there or not.

    Args:
        path: The file. Beside it are `.locks/`, and what was cut off or trimmed.
        now: The present moment, with a time zone.

    Attributes:
        offsets: Where its records begin; as new as the last `reading` or `writing`, within which it may be asked.
        recovery: Its faults.
    """

    def __init__(self, path: Path, *, now: Callable[[], dt.datetime]) -> None:
        self.path = path
        self._now = now
        self.session_id = path.name.removesuffix(SUFFIX)
        # A few files for all sessions: a lock file that came and went with its session could be held twice.
        stripe = hashlib.sha256(path.name.encode()).hexdigest()[:2]
        self._lock = WriteLock(path.parent / LOCKS / f"{stripe}.lock")
        # Held for every look at what follows; whoever needs the lock too takes that first.
        self._guard = threading.RLock()
        self.offsets = Offsets()
        self.recovery = LogRecovery(path, self.offsets)
        self._is_open = False

    def hold_lock(self) -> AbstractContextManager[None]:
        """Keeps all others from writing, whether there is a log or not."""
        return self._lock.hold()

    @contextmanager
    def writing(self, *, must_exist: bool = False, mend: bool = True) -> Iterator[int]:
        """Holds the lock of the log; gives its file, mended if need be, to who changes it.

        A file that is empty afterwards goes again.
        """
        with storage_errors(self.path.name):
            # First without the lock, whose file would be made in what a link leads to.
            self._check_place()
        with self._lock.hold(), self._guard, storage_errors(self.path.name):
            self._check_place()
            create = 0 if must_exist else os.O_CREAT
            with open_no_follow(self.path, os.O_RDWR | os.O_APPEND | create) as descriptor:
                try:
                    if mend:
                        self._mend(descriptor)
                    yield descriptor
                finally:
                    with suppress(OSError):
                        disk.drop_empty(self.path, descriptor)

    @contextmanager
    def hold(self, edition: int) -> Iterator[int]:
        """Gives the file to who changes it, if it is still the log that was read."""
        with ExitStack() as stack:
            try:
                descriptor = stack.enter_context(self.writing(must_exist=True))
            except NotFound:
                raise Conflict(
                    f"The session {self.session_id} was deleted meanwhile, so nothing was written. "
                    "Begin a new one, if there shall be one."
                ) from None
            if self.offsets.edition != edition:
                raise Conflict(
                    f"The log of {self.session_id} was deleted and begun anew, trimmed or restored meanwhile, "
                    "so nothing was written. Look at the session again."
                )
            yield descriptor

    def expect(self, last_seq: int | None) -> None:
        """Refuses with `Conflict` if the last record is another one; None is any."""
        if last_seq not in (None, self.offsets.last_seq):
            raise Conflict(
                f"The log of {self.session_id} ends with record {self.offsets.last_seq}, not {last_seq}. "
                "Read what was added, then try again."
            )

    @contextmanager
    def reading(self) -> Iterator[int | None]:
        """Gives the file, with its offsets up to date; None if there is none."""
        self._open()
        with self._guard, storage_errors(self.path.name), ExitStack() as stack:
            self._check_place()
            descriptor = None
            with suppress(FileNotFoundError):
                descriptor = stack.enter_context(open_no_follow(self.path))
            if descriptor is None:
                self.offsets.clear()
            else:
                self.offsets.refresh(descriptor)
            yield descriptor

    def _open(self) -> None:
        """Mends the log before it is read for the first time."""
        if self._is_open:
            return
        self._is_open = True
        with self.reading() as descriptor:
            is_sound = descriptor is None or self.recovery.is_sound(descriptor)
        if is_sound:
            return
        # What looks torn may be a line that somebody writes at this moment: with the lock held, it is whole.
        try:
            with self.writing(must_exist=True):
                pass
        except MemoryServiceError as error:
            self.recovery.note("unrepaired", f"{self.path.name} was read as it is, not mended. {error}")

    def _check_place(self) -> None:
        folder = self.path.parent
        if folder.is_symlink():
            raise InvalidName(f"The folder {folder.name} is a symbolic link. Put the folder itself there.")
        with suppress(FileNotFoundError):
            if not stat.S_ISREG(os.lstat(self.path).st_mode):
                raise InvalidName(f"{self.path.name} is a link or no regular file. Move it away.")

    def _mend(self, descriptor: int) -> None:
        """Cuts a torn end, and writes a header if the log has lost its own. The lock is held."""
        self.recovery.cut_torn_end(descriptor)
        if not self.recovery.has_header(descriptor):
            self.write(descriptor, [draft_record(SessionHeader(session_id=self.session_id, rebuilt=True))])
            self.recovery.note("header", f"{self.path.name} had lost its header and has a new one.")

    def replace(self, descriptor: int, raw: Iterable[bytes]) -> None:
        """Puts other lines in the place of all that the open file has, in one step."""
        if not disk.replace_durably(self.path, raw, expected=disk.signature(os.fstat(descriptor))):
            raise kept_changing(self.path.name)

    def lines(self, drafts: Sequence[RecordDraft], at: dt.datetime | None = None) -> list[bytes]:
        """The lines of records that are written at once, under the next numbers, at the present moment or another."""
        first = self.offsets.last_seq + 1
        ts = (at or self._now()).astimezone(dt.UTC).replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"
        return [
            encode(draft, seq=seq, ts=ts, batch=len(drafts) if seq == first else 1)
            for seq, draft in enumerate(drafts, start=first)
        ]

    def write(self, descriptor: int, drafts: Sequence[RecordDraft], at: dt.datetime | None = None) -> None:
        """Appends a batch with one write."""
        disk.append_durably(descriptor, b"".join(self.lines(drafts, at)))
        if not self.offsets.end:
            try:
                disk.sync_folder(self.path.parent)
            except BaseException:
                os.ftruncate(descriptor, 0)
                raise
        # Somebody may have put another file in this one's place.
        if not disk.is_at(self.path, descriptor):
            raise kept_changing(self.path.name)
        self.offsets.refresh(descriptor)

    def second_look(self, seq: int, edition: int) -> LogLine | None:
        """A record that was not where it should be: it is damaged, or was taken back meanwhile, or the log is gone."""
        with self.reading() as descriptor:
            if descriptor is None or self.offsets.edition != edition:
                return None
            self.offsets.refresh(descriptor, again=True)
            line = self.offsets.line(descriptor, seq)
            if line is None and self.offsets.start_of(seq) is not None:
                self.recovery.drop(seq)
            return line
