"""The log of one session: an append-only file, one record a line.

Invariants: what was answered is on the disk; a batch is there as a whole or not at all, for every reader that
opens the log; numbers are given once, under a lock among threads and processes; no line is ever rewritten, but for
what is erased: a torn end is cut, and kept beside the log, and a trim keeps the whole file; reading creates nothing.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import os
import secrets
import stat
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from memory_service import disk
from memory_service.disk import WriteLock, open_no_follow, storage_errors
from memory_service.errors import Conflict, InvalidName, InvalidRequest, MemoryServiceError, NotFound, StorageFailed
from memory_service.schemas.compaction import LedgerEntry
from memory_service.sessions.codec import LogLine, RecordDraft, draft_record, encode
from memory_service.sessions.erased_lines import ErasedLines, without_messages
from memory_service.sessions.media import DetachedPart, attach, describe, media_of
from memory_service.sessions.records import (
    Appended,
    Body,
    Followed,
    MessageRecord,
    Record,
    Repair,
    SessionHeader,
    TrimRecord,
    Unknown,
)
from memory_service.storage.files import log_recovery
from memory_service.storage.files.blobs import Blobs
from memory_service.storage.files.log_offsets import Offsets, line_of
from memory_service.storage.files.log_recovery import LogRecovery, save_beside

BLOBS = "blobs"
SUFFIX = ".jsonl"
LOCKS = ".locks"
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
    """The log of one session in a file, `<session_id>.jsonl`; the first record creates it.

    Several objects, in several processes, may stand for the same file.

    Args:
        path: The file. Beside it are `blobs/`, `.locks/`, and what was cut off or trimmed.
        now: The present moment, with a time zone.
    """

    def __init__(self, path: Path, *, now: Callable[[], dt.datetime] = utc_now) -> None:
        self._path = path
        self._now = now
        self._session_id = path.name.removesuffix(SUFFIX)
        self._blobs = Blobs(path.parent / BLOBS)
        # A few files for all sessions: a lock file that came and went with its session could be held twice.
        stripe = hashlib.sha256(path.name.encode()).hexdigest()[:2]
        self._lock = WriteLock(path.parent / LOCKS / f"{stripe}.lock")
        self._blobs_lock = WriteLock(path.parent / LOCKS / BLOBS_LOCK)
        # Held for every look at what follows; whoever needs the lock too takes that first.
        self._guard = threading.RLock()
        self._offsets = Offsets()
        self._mending = LogRecovery(path, self._offsets)
        self._is_open = False

    @property
    def last_seq(self) -> int:
        """The number of the last record; 0 if there is none."""
        with self._reading() as descriptor:
            return 0 if descriptor is None else self._offsets.last_seq

    @property
    def size_bytes(self) -> int:
        """Size of the records in bytes, without the media beside them."""
        with self._reading() as descriptor:
            return 0 if descriptor is None else self._offsets.end

    @property
    def header(self) -> SessionHeader | None:
        """The last header; one made of the name if it was lost and could not be rebuilt; None if the log is empty."""
        with self._reading() as descriptor:
            if descriptor is None or not self._offsets.last_seq:
                return None
            seq = self._offsets.header_seq
            line = None if seq is None else self._offsets.line(descriptor, seq)
            if line is not None and isinstance(line.record.body, SessionHeader):
                return line.record.body
            return self._lost_header()

    @property
    def repairs(self) -> tuple[Repair, ...]:
        """Faults found in the log since it was opened; for `degraded`."""
        with self._reading():
            return self._mending.repairs

    def foreign(self) -> bytes | None:
        """The whole file, if it holds lines and none is a record of ours; None for a log of ours."""
        with self._reading() as descriptor:
            if descriptor is None or not self._mending.is_foreign:
                return None
            return b"".join(disk.pieces(descriptor))

    def append(self, bodies: Sequence[Body], *, expected_last_seq: int | None = None, edition: int = 0) -> Appended:
        """Appends records, all or none of them, and waits for the disk; an empty log gets a header first.

        Args:
            bodies: The records, at least one.
            expected_last_seq: The last record that the caller has seen, if that matters.
            edition: That of the log that the records were made from, if that matters: no log is begun then.

        Raises:
            InvalidRequest: A record cannot be written.
            Conflict: The last record is another one, or the log is.
            InvalidName: A link or something else than a file stands in the place of the log.
            StorageFailed: The disk did not take them; the log is as it was.
        """
        if not bodies:
            raise InvalidRequest("There is nothing to append. Send at least one record.")
        drafts = [draft_record(body) for body in bodies]
        with self._held(edition) if edition else self.writing() as descriptor:
            self._expect(expected_last_seq)
            if not self._offsets.last_seq:
                drafts = self._begun(bodies[0], drafts)
            with self._kept_media(drafts):
                self._write(descriptor, drafts)
            appended = self._offsets.last_seq
        return Appended(first_seq=appended - len(bodies) + 1, last_seq=appended)

    def begin(self, records: Iterable[Record]) -> None:
        """Begins this log with records of another one, under their numbers and at their times.

        Args:
            records: The first of that log, with their media.

        Raises:
            Conflict: There is a log already.
            StorageFailed: The disk did not take them; there is no log then.
        """
        drafts = [
            (record, draft_record(self._own(record.body))) for record in records if not isinstance(record.body, Unknown)
        ]
        with self.writing() as descriptor:
            self._expect(0)
            with self._kept_media([made for _, made in drafts]):
                self._replace(descriptor, [encode(made, seq=record.seq, ts=record.ts) for record, made in drafts])

    def _own(self, body: Body) -> Body:
        """A record of another log as this one has it: a header names this one."""
        if not isinstance(body, SessionHeader):
            return body
        return replace(body, session_id=self._session_id, log_id=secrets.token_hex(8))

    @contextmanager
    def held(self, edition: int) -> Iterator[None]:
        """Keeps a log from being deleted, trimmed or written to by others; for moments.

        Whoever stores elsewhere what was made from it does so within: it is not stored after the log was erased.

        Args:
            edition: That of the log that was read.

        Raises:
            Conflict: The log is another one now, or there is none.
        """
        with self._held(edition):
            yield

    def read(self, since_seq: int = 0, *, media: bool = True) -> Iterator[Record]:
        """The records after `since_seq`, in order, one at a time; what is damaged is skipped.

        Args:
            since_seq: The last record that is not wanted.
            media: Whether messages come as they were given; if not, a short note stands for each of the media.

        Raises:
            StorageFailed: The log cannot be read.
        """
        with ExitStack() as stack:
            yield from self._records(self._opened(stack, since_seq), media)

    def follow(self, edition: int = 0, since_seq: int = 0) -> Followed:
        """The records after `since_seq`, as `read` gives them without media; all, if the log is another edition."""
        with ExitStack() as stack:
            found = self._opened(stack, since_seq, edition)
            return Followed(
                edition=found.edition, is_same=found.edition == edition, records=tuple(self._records(found, False))
            )

    def _opened(self, stack: ExitStack, since_seq: int, edition: int | None = None) -> _Opened:
        """The log, opened to be read from a record on; from its beginning, if it is not of the edition given."""
        with self._reading() as descriptor:
            now = self._offsets.edition
            seqs, starts = self._offsets.after(since_seq if edition in (None, now) else 0)
            own = None if descriptor is None else os.dup(descriptor)
        if own is not None:
            stack.callback(os.close, own)
        return _Opened(own, now, seqs, starts)

    def _records(self, found: _Opened, media: bool) -> Iterator[Record]:
        if found.descriptor is None:
            return
        with storage_errors(self._path.name), open(found.descriptor, "rb", closefd=False) as stream:
            at = -1
            for seq, start in zip(found.seqs, found.starts, strict=True):
                if at != start:
                    stream.seek(start)
                raw = stream.readline()
                at = start + len(raw)
                line = line_of(raw, seq) or self._second_look(seq, found.edition)
                if line is not None:
                    yield self._with_media(line, media)

    def message(self, seq: int, *, media: bool = True) -> str:
        """The JSON text of one message, as it was given.

        Raises:
            NotFound: There is no message of that number.
            StorageFailed: The log cannot be read, or what is kept beside it is damaged.
        """
        message, parts = self._message(seq)
        if not media:
            return describe(message.text, media_of(parts, seq), parts)
        try:
            return attach(message.text, parts, lambda part: self._blobs.get(part.sha256))
        except NotFound as error:
            raise StorageFailed(
                f"What message {seq} keeps beside the log is gone. Restore it from a backup."
            ) from error

    def content(self, seq: int, number: int) -> bytes:
        """A medium of a message, counted from 1.

        Raises:
            NotFound: There is none of that number.
            StorageFailed: It is damaged or cannot be read.
        """
        _, parts = self._message(seq)
        if not 1 <= number <= len(parts):
            raise NotFound(
                f"Message {seq} has {len(parts)} media, and none with the number {number}. Take one of these."
            )
        return self._blobs.get(parts[number - 1].sha256)

    def trim(
        self,
        keep_last: int,
        *,
        also: Collection[int] = (),
        head: int | None = None,
        ledger: tuple[LedgerEntry, ...] = (),
        expected_last_seq: int | None = None,
        edition: int = 0,
    ) -> str:
        """Shortens the log to its last lines; what the view is built on, such as pins and compactions, stays too.

        Args:
            keep_last: How many lines stay, whatever they are; of the older ones, messages and usage go.
            also: Messages that stay, however old.
            head: The compaction that counts; see `Trimmed`.
            ledger: What it has gathered.
            expected_last_seq: The last record that the caller has seen, if that matters.
            edition: That of the log which the caller has read, if that matters.

        Returns:
            The name of the file beside the log that has it as it was.

        Raises:
            InvalidRequest: `keep_last` is negative.
            NotFound: There is no log.
            Conflict: The last record is another one, or the log is.
            StorageFailed: The disk did not take it; the log is as it was.
        """
        if keep_last < 0:
            raise InvalidRequest(f"A log cannot keep {keep_last} lines. Use 0 or more.")
        with self._held(edition) if edition else self.writing(must_exist=True) as descriptor:
            self._expect(expected_last_seq)
            kept, gone = log_recovery.trim_lines(lambda: disk.whole_lines(descriptor), keep_last, also)
            backup = save_beside(self._path, lambda: disk.pieces(descriptor), "bak")
            made = draft_record(TrimRecord(backup=backup.name, lines=gone, head=head, ledger=ledger))
            try:
                self._replace(descriptor, (*kept, *self._lines([made])))
            except BaseException:
                # Only while the log is as it was: what the disk did not confirm may be done all the same.
                if disk.is_at(self._path, descriptor):
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
        with self.writing(must_exist=True) as descriptor:
            names = log_recovery.backups(disk.whole_lines(descriptor), self._path.name)
            backup = next((file for name in names if (file := self._path.with_name(name)).is_file()), None)
            if backup is None:
                raise NotFound(f"The log of {self._session_id} has no trim to take back. Nothing has to be done.")
            with open_no_follow(backup) as earlier:
                last_seq = log_recovery.last_seq(disk.whole_lines(earlier))
                newer = log_recovery.lines_after(disk.whole_lines(descriptor), last_seq)
                self._replace(descriptor, chain(disk.pieces(earlier), newer))
            disk.remove_durably(backup)

    def erase(self, seqs: Collection[int], *, first: Callable[[], None] = lambda: None) -> ErasedLines:
        """Erases messages, with the compactions and pins that were made of them; their numbers stay theirs.

        What trims moved out of the log comes back first, as it may have them.

        Args:
            seqs: The messages.
            first: Erases what else was made of them; nobody writes to the log meanwhile.

        Raises:
            NotFound: There is no log, or none of these messages.
            StorageFailed: The disk did not take it; the log is as it was.
        """
        while self._check_messages(seqs):
            self.restore_trim()
        with self.writing(must_exist=True) as descriptor:
            made = without_messages(lambda: disk.whole_lines(descriptor), seqs)
            first()
            self._replace(descriptor, made.lines)
        return made

    def has_messages(self, seqs: Collection[int]) -> bool:
        """True if it has one of some messages."""
        return any(record.seq in seqs for record in self.read(media=False) if isinstance(record.body, MessageRecord))

    def _check_messages(self, seqs: Collection[int]) -> bool:
        """True if a trim can be taken back.

        Raises:
            NotFound: Neither the log nor what was moved out of it has one of some messages.
        """
        with self.writing(must_exist=True) as descriptor:
            names = log_recovery.backups(disk.whole_lines(descriptor), self._path.name)
            files = [file for name in names if (file := self._path.with_name(name)).is_file()]
            if log_recovery.has_messages(disk.whole_lines(descriptor), seqs):
                return bool(files)
        for file in files:
            with storage_errors(file.name), open_no_follow(file) as earlier:
                if log_recovery.has_messages(disk.whole_lines(earlier), seqs):
                    return True
        numbers = ", ".join(map(str, sorted(seqs)[:5]))
        raise NotFound(f"The log of {self._session_id} has no message {numbers}. Read the log to see what it has.")

    def locked(self) -> AbstractContextManager[None]:
        """Keeps all others from writing, whether there is a log or not."""
        return self._lock.held()

    @contextmanager
    def writing(self, *, must_exist: bool = False, mend: bool = True) -> Iterator[int]:
        """Holds the lock of the log; gives its file, mended if need be, to who changes it.

        A file that is empty afterwards goes again.
        """
        with storage_errors(self._path.name):
            # First without the lock, whose file would be made in what a link leads to.
            self._check_place()
        with self._lock.held(), self._guard, storage_errors(self._path.name):
            self._check_place()
            create = 0 if must_exist else os.O_CREAT
            with open_no_follow(self._path, os.O_RDWR | os.O_APPEND | create) as descriptor:
                try:
                    if mend:
                        self._mend(descriptor)
                    yield descriptor
                finally:
                    with suppress(OSError):
                        disk.drop_empty(self._path, descriptor)

    @contextmanager
    def _held(self, edition: int) -> Iterator[int]:
        """Gives the file to who changes it, if it is still the log that was read."""
        with ExitStack() as stack:
            try:
                descriptor = stack.enter_context(self.writing(must_exist=True))
            except NotFound:
                raise Conflict(
                    f"The session {self._session_id} was deleted meanwhile, so nothing was written. "
                    "Begin a new one, if there shall be one."
                ) from None
            if self._offsets.edition != edition:
                raise Conflict(
                    f"The log of {self._session_id} was deleted and begun anew, trimmed or restored meanwhile, "
                    "so nothing was written. Look at the session again."
                )
            yield descriptor

    def _expect(self, last_seq: int | None) -> None:
        if last_seq not in (None, self._offsets.last_seq):
            raise Conflict(
                f"The log of {self._session_id} ends with record {self._offsets.last_seq}, not {last_seq}. "
                "Read what was added, then try again."
            )

    def _begun(self, first: Body, drafts: Sequence[RecordDraft]) -> list[RecordDraft]:
        """A first batch: it begins with a header that no other log has."""
        is_header = isinstance(first, SessionHeader)
        header = first if isinstance(first, SessionHeader) else SessionHeader(session_id=self._session_id)
        return [draft_record(replace(header, log_id=secrets.token_hex(8))), *drafts[is_header:]]

    @contextmanager
    def _reading(self) -> Iterator[int | None]:
        """Gives the file, with its offsets up to date; None if there is none."""
        self._open()
        with self._guard, storage_errors(self._path.name), ExitStack() as stack:
            self._check_place()
            descriptor = None
            with suppress(FileNotFoundError):
                descriptor = stack.enter_context(open_no_follow(self._path))
            if descriptor is None:
                self._offsets.clear()
            else:
                self._offsets.refresh(descriptor)
            yield descriptor

    def _open(self) -> None:
        """Mends the log before it is read for the first time."""
        if self._is_open:
            return
        self._is_open = True
        with self._reading() as descriptor:
            is_sound = descriptor is None or self._mending.is_sound(descriptor)
        if is_sound:
            return
        # What looks torn may be a line that somebody writes at this moment: with the lock held, it is whole.
        try:
            with self.writing(must_exist=True):
                pass
        except MemoryServiceError as error:
            self._mending.note("unrepaired", f"{self._path.name} was read as it is, not mended. {error}")

    def _check_place(self) -> None:
        folder = self._path.parent
        if folder.is_symlink():
            raise InvalidName(f"The folder {folder.name} is a symbolic link. Put the folder itself there.")
        with suppress(FileNotFoundError):
            if not stat.S_ISREG(os.lstat(self._path).st_mode):
                raise InvalidName(f"{self._path.name} is a link or no regular file. Move it away.")

    def _mend(self, descriptor: int) -> None:
        """Cuts a torn end, and writes a header if the log has lost its own. The lock is held."""
        self._mending.cut(descriptor)
        if not self._mending.has_header(descriptor):
            self._write(descriptor, [draft_record(self._lost_header())])
            self._mending.note("header", f"{self._path.name} had lost its header and has a new one.")

    def _lost_header(self) -> SessionHeader:
        return SessionHeader(session_id=self._session_id, rebuilt=True)

    def _replace(self, descriptor: int, raw: Iterable[bytes]) -> None:
        if not disk.replace_durably(self._path, raw, expected=disk.signature(os.fstat(descriptor))):
            raise disk.restless(self._path.name)

    def _lines(self, drafts: Sequence[RecordDraft]) -> list[bytes]:
        first = self._offsets.last_seq + 1
        ts = self._now().astimezone(dt.UTC).replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"
        return [
            encode(made, seq=seq, ts=ts, batch=len(drafts) if seq == first else 1)
            for seq, made in enumerate(drafts, start=first)
        ]

    def _write(self, descriptor: int, drafts: Sequence[RecordDraft]) -> None:
        """Appends a batch with one write."""
        disk.append_durably(descriptor, b"".join(self._lines(drafts)))
        if not self._offsets.end:
            try:
                disk.sync_folder(self._path.parent)
            except BaseException:
                os.ftruncate(descriptor, 0)
                raise
        # Somebody may have put another file in this one's place.
        if not disk.is_at(self._path, descriptor):
            raise disk.restless(self._path.name)
        self._offsets.refresh(descriptor)

    @contextmanager
    def _kept_media(self, drafts: Iterable[RecordDraft]) -> Iterator[None]:
        """Stores the media of a batch; those that are new go again if the batch fails."""
        contents = [content for made in drafts if made.media for content in made.media.contents]
        if not contents:
            yield
            return
        # Nobody may sweep a content between the moment it is found there and the one it is named.
        with self._blobs_lock.held():
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

    def _second_look(self, seq: int, edition: int) -> LogLine | None:
        """A record that was not where it should be: it is damaged, or was taken back meanwhile, or the log is gone."""
        with self._reading() as descriptor:
            if descriptor is None or self._offsets.edition != edition:
                return None
            self._offsets.refresh(descriptor, again=True)
            line = self._offsets.line(descriptor, seq)
            if line is None and self._offsets.start_of(seq) is not None:
                self._mending.drop(seq)
            return line

    def _message(self, seq: int) -> tuple[MessageRecord, tuple[DetachedPart, ...]]:
        with self._reading() as descriptor:
            line = None
            if descriptor is not None and self._offsets.start_of(seq) is not None:
                line = self._offsets.line(descriptor, seq) or self._second_look(seq, self._offsets.edition)
        if line is None or not isinstance(line.record.body, MessageRecord):
            raise NotFound(f"The log of {self._session_id} has no message {seq}. Read the log to see what it has.")
        return line.record.body, line.parts

    def _with_media(self, line: LogLine, media: bool) -> Record:
        body = line.record.body
        if not line.parts or not isinstance(body, MessageRecord):
            return line.record
        seq = line.record.seq
        told = media_of(line.parts, seq)
        text = None
        if media:
            try:
                text = attach(body.text, line.parts, lambda part: self._blobs.get(part.sha256))
            except (NotFound, StorageFailed):
                self._mending.note("media", f"What message {seq} keeps beside the log cannot be read.")
        if text is None:
            text = describe(body.text, told, line.parts)
        return replace(line.record, body=replace(body, text=text, media=told))
