"""The log of one session in a file: JSONL, one record a line, media beside it, and what a trim took.

Invariants: what was answered is on the disk; no line is ever rewritten, but for what is erased; a trim keeps the whole
file beside the log, and what is trimmed keeps its bytes; a content is on the disk before a line names it. A trim is
lines in, lines out: a line that stays is the same, byte for byte, and keeps its number; taking a trim back loses
nothing that was appended since.
"""

from __future__ import annotations

import datetime as dt
import itertools
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from itertools import chain, dropwhile
from pathlib import Path
from typing import NamedTuple

from indexer.common import lazy_regex
from memory_service.errors import InvalidRequest, MemoryServiceError, NotFound, StorageFailed
from memory_service.sessions.codec import (
    LogLine,
    RecordDraft,
    decode,
    draft_copy,
    draft_record,
    encode,
    first_header,
    record_with_media,
    stamp,
)
from memory_service.sessions.records import (
    Appended,
    Body,
    Followed,
    MessageRecord,
    Record,
    SessionHeader,
    TrimRecord,
    Unknown,
    whole_batches,
)
from memory_service.storage.files import disk
from memory_service.storage.files.blobs import Blobs
from memory_service.storage.files.disk import WriteLock, open_no_follow, storage_errors
from memory_service.storage.files.log_file import LOCKS, LogFile, line_of, save_beside
from memory_service.storage.logs import LogChange, LogStatus, Rewrite, TrimmedRecords

_ASIDE = lazy_regex(r"\.(?:bak|torn)(?:-[1-9][0-9]{0,8})?")


def _trim_lines(lines: Iterable[bytes], keep: Collection[int]) -> tuple[list[bytes], int]:
    """The lines of some records, and how many other lines there are."""
    kept_chunks, gone_count = list[bytes](), 0
    for line in lines:
        if (place := stamp(line)) and place.seq in keep:
            kept_chunks.append(line)
        else:
            gone_count += 1
    return kept_chunks, gone_count


def outline(lines: Iterable[bytes]) -> dict[int, str]:
    """The kinds of the records of some lines, by their numbers."""
    return {place.seq: place.kind for line in lines if (place := stamp(line))}


def _lines_after(lines: Iterable[bytes], seq: int) -> Iterator[bytes]:
    """The lines from the first one on that was written after the record `seq`."""
    return dropwhile(lambda line: (place := stamp(line)) is None or place.seq <= seq, lines)


def _backup_names(lines: Iterable[bytes], name: str) -> list[tuple[int, str]]:
    """The files that the trims of the log `name` left, and the numbers of these, newest first; some may be gone."""
    texts = list[tuple[int, str]]()
    for line in lines:
        place = stamp(line)
        if place is None or place.kind != "trimmed":
            continue
        with suppress(ValueError):  # of a line that was damaged nobody knows the file
            body = decode(line).record.body
            if isinstance(body, TrimRecord) and is_put_aside(body.backup, name):
                texts.append((place.seq, body.backup))
    return texts[::-1]


def _lines_put_aside(lines: Iterable[bytes], path: Path) -> Iterator[tuple[int, list[bytes]]]:
    """The lines that each trim took from a log, if it can be taken back, and its number; the newest first.

    Args:
        lines: Those of the log.
        path: The log.
    """
    state, names = list(lines), set[str]()
    while True:
        there = (
            (seq, name)
            for seq, name in _backup_names(state, path.name)
            if name not in names and path.with_name(name).is_file()
        )
        seq, name = next(there, (0, ""))
        if not name:
            return
        names.add(name)
        with disk.open_no_follow(path.with_name(name)) as descriptor:
            earlier = list(disk.whole_lines(descriptor))
        here = outline(state)
        yield seq, [line for line in earlier if (place := stamp(line)) and place.seq not in here]
        state = [*earlier, *_lines_after(state, max(outline(earlier), default=0))]


def _lines_with_backups(
    own: Mapping[int, bytes], trims: Iterable[tuple[int, Mapping[int, bytes]]], name: str
) -> tuple[list[bytes], list[tuple[str, list[bytes]]]]:
    """The lines of a log, and the files beside it by which its trims can be taken back: the reverse of the above.

    Args:
        own: The lines of the log, by number.
        trims: The number of each trim and the lines that it took, the newest first.
        name: The log.

    Raises:
        InvalidRequest: The record of a trim is missing.
    """
    every, states, seqs = dict(own), list[tuple[int, set[int]]](), set(own)
    for trim_seq, lines in trims:
        earlier = {seq for seq in seqs if seq < trim_seq}.union(lines)
        every = {**lines, **every}
        states.append((trim_seq, earlier))
        seqs = earlier.union(seq for seq in seqs if seq >= trim_seq)
    files = dict[int, str]()
    # The oldest first, as their files were made.
    for trim_seq, _ in reversed(states):
        record = decode(every[trim_seq]).record if trim_seq in every else None
        if record is None or not isinstance(record.body, TrimRecord):
            raise InvalidRequest(f"Record {trim_seq} is none of a trim. Give each trim its own record.")
        file = record.body.backup
        if not is_put_aside(file, name) or file in files.values():
            names = itertools.chain([f"{name}.bak"], (f"{name}.bak-{number}" for number in itertools.count(2)))
            file = next(free for free in names if free not in files.values())
        files[trim_seq] = file
        body = replace(record.body, backup=file)
        every[trim_seq] = encode(draft_record(body), seq=trim_seq, ts=record.ts, batch=record.batch_length)
    sides = [(files[trim_seq], [every[seq] for seq in sorted(earlier)]) for trim_seq, earlier in states]
    return [every[seq] for seq in sorted(own)], sides


def is_put_aside(file: str, name: str) -> bool:
    """True if a file was put beside the log `name` by a trim or a repair."""
    return file.startswith(name) and _ASIDE.fullmatch(file, len(name)) is not None


BLOBS = "blobs"
BLOBS_LOCK = "blobs.lock"


def utc_now() -> dt.datetime:
    """The present moment in UTC."""
    return dt.datetime.now(dt.UTC)


class _Opened(NamedTuple):
    """A log that was opened to be read: which edition of it, and where the records begin that are wanted."""

    descriptor: int | None
    edition: int
    seqs: Sequence[int]
    starts: Sequence[int]


class JsonlLog:
    """A `SessionLog` in a file, `<session_id>.jsonl`; the first record creates it.

    Several objects, in several processes, may stand for the same file.

    Args:
        path: The file. Beside it are `blobs/`, `.locks/`, and what was cut off or trimmed.
        now: The present moment, with a time zone.
    """

    def __init__(self, path: Path, *, now: Callable[[], dt.datetime] = utc_now) -> None:
        self.file = LogFile(path, now=now)
        self._blobs = Blobs(path.parent / BLOBS)
        self._blobs_lock = WriteLock(path.parent / LOCKS / BLOBS_LOCK)

    def status(self) -> LogStatus:
        """The log as it stands."""
        with self.file.reading() as descriptor:
            offsets, repairs = self.file.offsets, self.file.recovery.repairs
            if descriptor is None:
                return LogStatus(last_seq=0, size_bytes=0, repairs=repairs)
            return LogStatus(last_seq=offsets.last_seq, size_bytes=offsets.end, repairs=repairs)

    def foreign(self) -> bytes | None:
        """The whole file, if it holds lines and none is a record of ours; None for a log of ours."""
        with self.file.reading() as descriptor:
            if descriptor is None or not self.file.recovery.is_foreign:
                return None
            return b"".join(disk.pieces(descriptor))

    def last_change(self) -> LogChange | None:
        """The last change of the file, by its stat; None if there is none."""
        with suppress(OSError):
            status = os.lstat(self.file.path)
            return LogChange(status.st_mtime_ns, b"%d:%d" % (status.st_size, status.st_ino))
        return None

    def tail(self, max_bytes: int | None = None) -> tuple[bytes, bool]:
        """The last lines, and whether they are all of the log; nothing of one that cannot be read."""
        with suppress(OSError), open_no_follow(self.file.path) as descriptor:
            start = 0 if max_bytes is None else max(0, os.fstat(descriptor).st_size - max_bytes)
            raw = b"".join(disk.pieces(descriptor, start))
            return (raw[raw.find(b"\n") + 1 :], False) if start else (raw, True)
        return b"", True

    def append(
        self,
        bodies: Sequence[Body],
        *,
        expected_last_seq: int | None = None,
        edition: int = 0,
        at: dt.datetime | None = None,
    ) -> Appended:
        """Appends records, all or none of them, and waits for the disk; an empty log gets a header first.

        Raises:
            InvalidRequest: A record cannot be written.
            Conflict: The last record is another one, or the log is.
            InvalidName: A link or something else than a file stands in the place of the log.
            StorageFailed: The disk did not take them; the log is as it was.
        """
        if not bodies:
            raise InvalidRequest("There is nothing to append. Send at least one record.")
        drafts = [draft_record(body) for body in bodies]
        with self.file.hold(edition) if edition else self.file.writing() as descriptor:
            self.file.expect(expected_last_seq)
            if not self.file.offsets.last_seq:
                header = first_header(self.file.session_id, bodies[0])
                drafts = [draft_record(header), *drafts[isinstance(bodies[0], SessionHeader) :]]
            with self._stored_media(drafts):
                self.file.write(descriptor, drafts, at)
            last_seq = self.file.offsets.last_seq
        return Appended(first_seq=last_seq - len(bodies) + 1, last_seq=last_seq)

    def begin(self, records: Iterable[Record], trims: Iterable[TrimmedRecords] = ()) -> None:
        """Begins this log with records under their numbers and at their times; see `LogStore.begin`."""
        path, drafts = self.file.path, list[RecordDraft]()
        own_records, states = list(records), list(trims)
        whole = whole_batches([*own_records, *(record for state in states for record in state.records)])

        def lines(records: Sequence[Record]) -> dict[int, bytes]:
            pairs = [(record, draft_copy(record)) for record in records]
            drafts.extend(draft for _, draft in pairs if draft.media)
            return {
                record.seq: encode(
                    draft, seq=record.seq, ts=record.ts, batch=record.batch_length if record.seq in whole else 0
                )
                for record, draft in pairs
            }

        own, backups = _lines_with_backups(
            lines(own_records), [(seq, lines(taken_records)) for seq, taken_records in states], path.name
        )
        with self.file.writing() as descriptor:
            self.file.expect(0)
            with self._stored_media(drafts):
                try:
                    for name, backup in backups:
                        # Without the log it is nothing: what a killed writer left of one is written again.
                        target = path.with_name(name)
                        disk.replace_durably(target, backup, expected=disk.current_signature(target))
                    self.file.replace(descriptor, own)
                except BaseException:
                    if disk.is_at(self.file.path, descriptor):
                        for name, _ in backups:
                            with suppress(OSError):
                                path.with_name(name).unlink()
                    raise

    def trims(self) -> Iterator[TrimmedRecords]:
        """Records that trims have put aside, the last first, from the files beside the log."""
        with self.file.reading() as descriptor:
            if descriptor is None:
                return
            lines = list(disk.whole_lines(descriptor))
        with storage_errors(self.file.path.name):
            for seq, taken_lines in _lines_put_aside(lines, self.file.path):
                read = [line for raw in taken_lines if (line := _log_line(raw))]
                yield TrimmedRecords(seq, [self._record(line, True) for line in read])

    @contextmanager
    def hold(self, edition: int) -> Iterator[None]:
        """Keeps a log from being deleted, trimmed or written to by others; for moments.

        Raises:
            Conflict: The log is another one now, or there is none.
        """
        with self.file.hold(edition):
            yield

    def read(self, since_seq: int = 0, *, media: bool = True) -> Iterator[Record]:
        """The records after `since_seq`, in order, one at a time; what is damaged is skipped.

        Raises:
            StorageFailed: The log cannot be read.
        """
        with ExitStack() as stack:
            yield from self._records(self._open_from(stack, since_seq), media)

    def follow(self, edition: int = 0, since_seq: int = 0) -> Followed:
        """The records after `since_seq`, as `read` gives them without media; all, if the log is another edition."""
        with ExitStack() as stack:
            opening = self._open_from(stack, since_seq, edition)
            return Followed(
                edition=opening.edition,
                is_same=opening.edition == edition,
                records=tuple(self._records(opening, False)),
            )

    def _open_from(self, stack: ExitStack, since_seq: int, edition: int | None = None) -> _Opened:
        """The log, opened to be read from a record on; from its beginning, if it is not of the edition given."""
        with self.file.reading() as descriptor:
            offsets = self.file.offsets
            seqs, starts = offsets.after(since_seq if edition in (None, offsets.edition) else 0)
            own = None if descriptor is None else os.dup(descriptor)
            opening = _Opened(own, offsets.edition, seqs, starts)
        if own is not None:
            stack.callback(os.close, own)
        return opening

    def _records(self, opening: _Opened, media: bool) -> Iterator[Record]:
        if opening.descriptor is None:
            return
        with storage_errors(self.file.path.name), open(opening.descriptor, "rb", closefd=False) as stream:
            at = -1
            for seq, start in zip(opening.seqs, opening.starts, strict=True):
                if at != start:
                    stream.seek(start)
                raw = stream.readline()
                at = start + len(raw)
                line = line_of(raw, seq) or self.file.second_look(seq, opening.edition)
                if line is not None:
                    yield self._record(line, media)

    def _record(self, line: LogLine, media: bool) -> Record:
        """The record of a line, with notes in the place of media that are lost."""
        with suppress(NotFound, StorageFailed):
            return record_with_media(line, self._blobs.get if media else None)
        self.file.recovery.note("media", f"What message {line.record.seq} keeps beside the log cannot be read.")
        return record_with_media(line, None)

    def message(self, seq: int, *, media: bool = True) -> str:
        """The JSON text of one message, as it was given.

        Raises:
            NotFound: There is no message of that number.
            StorageFailed: The log cannot be read, or what is kept beside it is damaged.
        """
        line = self._line_of_message(seq)
        try:
            body = record_with_media(line, self._blobs.get if media else None).body
        except NotFound as error:
            raise StorageFailed(
                f"What message {seq} keeps beside the log is gone. Restore it from a backup."
            ) from error
        assert isinstance(body, MessageRecord)
        return body.text

    def content(self, seq: int, number: int) -> bytes:
        """A medium of a message, counted from 1.

        Raises:
            NotFound: There is none of that number.
            StorageFailed: It is damaged or cannot be read.
        """
        parts = self._line_of_message(seq).parts
        if not 1 <= number <= len(parts):
            raise NotFound(
                f"Message {seq} has {len(parts)} media, and none with the number {number}. Take one of these."
            )
        return self._blobs.get(parts[number - 1].sha256)

    def _line_of_message(self, seq: int) -> LogLine:
        offsets = self.file.offsets
        with self.file.reading() as descriptor:
            line = None
            if descriptor is not None and offsets.start_of(seq) is not None:
                line = offsets.line(descriptor, seq) or self.file.second_look(seq, offsets.edition)
        if line is None or not isinstance(line.record.body, MessageRecord):
            raise NotFound(f"The log of {self.file.session_id} has no message {seq}. Read the log to see what it has.")
        return line

    def outline(self, *, trimmed: bool = False) -> list[tuple[int, str]]:
        """Number and kind of each record, damaged ones too; of those that trims put aside too, if they are wanted."""
        listed_values = dict[int, str]()
        with self.file.reading() as descriptor:
            if descriptor is not None:
                for backup in self._backups(descriptor) if trimmed else ():
                    with storage_errors(backup.name), open_no_follow(backup) as earlier:
                        listed_values |= outline(disk.whole_lines(earlier))
                last_seq = self.file.offsets.last_seq
                own = outline(disk.whole_lines(descriptor))
                listed_values |= {seq: kind for seq, kind in own.items() if seq <= last_seq}
        return sorted(listed_values.items())

    def trim(self, keep: Collection[int], record: TrimRecord, *, expected_last_seq: int, edition: int) -> str:
        """Takes all lines but those of some records out of the log, and keeps the whole of it beside.

        Returns:
            The name of the file beside the log that has it as it was.

        Raises:
            Conflict: The last record is another one, or the log is.
            StorageFailed: The disk did not take it; the log is as it was.
        """
        path = self.file.path
        with self.file.hold(edition) as descriptor:
            self.file.expect(expected_last_seq)
            kept_chunks, gone_count = _trim_lines(disk.whole_lines(descriptor), keep)
            backup = save_beside(path, lambda: disk.pieces(descriptor), "bak")
            draft = draft_record(replace(record, backup=backup.name, lines=gone_count))
            try:
                self.file.replace(descriptor, (*kept_chunks, *self.file.lines([draft])))
            except BaseException:
                # Only while the log is as it was: what the disk did not confirm may be done all the same.
                if disk.is_at(path, descriptor):
                    with suppress(OSError):
                        backup.unlink()
                raise
        return backup.name

    def restore_trim(self) -> None:
        """Takes the last trim back; what was appended since stays.

        Raises:
            NotFound: No trim is left to take back.
            StorageFailed: The disk did not take it; the log is as it was.
        """
        with self.file.writing(must_exist=True) as descriptor:
            backup = next(self._backups(descriptor), None)
            if backup is None:
                raise NotFound(f"The log of {self.file.session_id} has no trim to take back. Nothing has to be done.")
            with open_no_follow(backup) as earlier:
                last_seq = max(outline(disk.whole_lines(earlier)), default=0)
                newer = _lines_after(disk.whole_lines(descriptor), last_seq)
                self.file.replace(descriptor, chain(disk.pieces(earlier), newer))
            disk.remove_durably(backup)

    def _backups(self, descriptor: int) -> Iterator[Path]:
        """The files that trims of the open log left and that are still there, newest first."""
        path = self.file.path
        names = _backup_names(disk.whole_lines(descriptor), path.name)
        return (file for _, name in names if (file := path.with_name(name)).is_file())

    def rewrite(self, change: Rewrite, *, first: Callable[[], None]) -> list[str]:
        """Gives records another body; see `LogStore.rewrite`.

        Returns:
            The names of the files beside the log that can still be restored.
        """
        with self.file.writing(must_exist=True) as descriptor:
            bodies = change(_stored_records(disk.whole_lines(descriptor)))
            first()
            self.file.replace(descriptor, (_rewrite(line, bodies) for line in disk.whole_lines(descriptor)))
            return [backup.name for backup in self._backups(descriptor)]

    @contextmanager
    def _stored_media(self, drafts: Iterable[RecordDraft]) -> Iterator[None]:
        """Stores the media of a batch; those that are new go again if the batch fails."""
        contents = [content for draft in drafts if draft.media for content in draft.media.contents]
        if not contents:
            yield
            return
        # Nobody may sweep a content between the moment it is found there and the one it is named.
        with self._blobs_lock.hold():
            new = list[str]()
            try:
                for content in contents:
                    sha256, is_new = self._blobs.put(content)
                    new += [sha256] if is_new else []
                yield
            except BaseException:
                with suppress(MemoryServiceError):
                    for sha256 in new:
                        self._blobs.remove(sha256)
                raise


def _log_line(line: bytes) -> LogLine | None:
    """The record of a line; None of a damaged one."""
    with suppress(ValueError):
        return decode(line)
    return None


def _stored_records(lines: Iterable[bytes]) -> Iterator[Record]:
    """The records of lines, those that cannot be read as `Unknown`."""
    for line in lines:
        if place := stamp(line):
            try:
                yield decode(line).record
            except ValueError:
                yield Record(seq=place.seq, ts=place.ts, kind=place.kind, body=Unknown(kind=place.kind, text=""))


def _rewrite(line: bytes, bodies: Mapping[int, Body]) -> bytes:
    """A line with the new body of its record, if there is one; its number, time and place in its batch stay."""
    place = stamp(line)
    if place is None or place.seq not in bodies:
        return line
    return encode(draft_record(bodies[place.seq]), seq=place.seq, ts=place.ts, batch=place.batch)
