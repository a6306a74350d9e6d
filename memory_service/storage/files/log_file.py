"""The file of one session log: its place, its lock, its repair, and how lines get into it.

Invariants: a batch is there as a whole or not at all, for every reader; numbers are given once, under a lock among
threads and processes; a torn end is cut before anything is written behind it; reading creates nothing.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import os
import stat
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path

from memory_service.errors import Conflict, InvalidName, MemoryServiceError, NotFound
from memory_service.sessions.codec import LogLine, RecordDraft, draft_record, encode
from memory_service.sessions.records import SessionHeader
from memory_service.storage.files import disk
from memory_service.storage.files.disk import WriteLock, open_no_follow, storage_errors
from memory_service.storage.files.log_offsets import Offsets
from memory_service.storage.files.log_recovery import LogRecovery
from memory_service.storage.revisions import kept_changing

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
