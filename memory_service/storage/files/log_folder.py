"""Session logs of one workspace: names, listing, deletion; and logs that another program wrote.

Invariants: a name that a caller gives is refused, never repaired; nothing leaves the folder; a list reads the
beginning and the end of each log and not what is between; a content that another log names stays; a foreign log is
read, never written to.
"""

from __future__ import annotations

import datetime as dt
import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path

from indexer.common import LRU
from memory_service.errors import InvalidName, NotFound
from memory_service.home import SESSION_NAME, check_session_id
from memory_service.schemas.sessions import ListedSession
from memory_service.sessions.codec import Stamp, decode, stamp
from memory_service.sessions.records import Record, SessionHeader
from memory_service.storage.files import disk
from memory_service.storage.files.blobs import Blobs
from memory_service.storage.files.disk import WriteLock, open_no_follow, storage_errors
from memory_service.storage.files.jsonl_log import BLOBS, BLOBS_LOCK, JsonlLog, is_put_aside, utc_now
from memory_service.storage.files.log_file import LOCKS, SUFFIX
from memory_service.storage.logs import Rewrite, TrimmedRecords

_KEPT_LOGS = 256
_END_BYTES = 64 * 1024
_SHA256 = re.compile(rb'"sha256":"([0-9a-f]{64})"')
# As much of a piece is looked at again, so that no name is missed between two.
_OVERLAP_BYTES = 80


class LogFolder:
    """The `LogStore` of one workspace: a folder of JSONL files.

    Args:
        folder: The folder `sessions` of the workspace; the first session creates it.
        now: The present moment, with a time zone.
    """

    def __init__(self, folder: Path, *, now: Callable[[], dt.datetime] = utc_now) -> None:
        self._folder = folder
        self._now = now
        self._blobs = Blobs(folder / BLOBS)
        self._blobs_lock = WriteLock(folder / LOCKS / BLOBS_LOCK)
        self._logs: LRU[str, JsonlLog] = LRU(_KEPT_LOGS)
        self._guard = threading.Lock()

    def open(self, session_id: str, *, must_exist: bool = True) -> JsonlLog:
        """The log of a session.

        Raises:
            InvalidName: The id is not one of a session, or its log is a symbolic link.
            NotFound: There is no session of that id, and there must be one.
        """
        log = self._log(session_id)
        if must_exist and not log.file.path.is_file():
            raise NotFound(f"There is no session {session_id} in {self._folder}. List the sessions to see their ids.")
        return log

    def begin(self, session_id: str, records: Iterable[Record], trims: Iterable[TrimmedRecords] = ()) -> None:
        """Begins a log with records under their numbers and at their times, the first a header; see `LogStore`.

        Raises:
            InvalidName: The id is not one of a session.
            Conflict: There is a log already.
            StorageFailed: The disk did not take them; there is no log then.
        """
        self._log(session_id).begin(records, trims)

    def list(self) -> list[ListedSession]:
        """All sessions, the last active first.

        Raises:
            StorageFailed: The folder or a log cannot be read.
        """
        sessions = (self._listing_row(name.removesuffix(SUFFIX)) for name in self._names() if _is_log(name))
        return sorted((file for file in sessions if file), key=lambda file: file.last_activity, reverse=True)

    def containing(self, mark: bytes) -> Iterator[str]:
        """Ids of the sessions whose log has some bytes in it, the last active first."""
        for session in self.list():
            name = f"{session.session_id}{SUFFIX}"
            with suppress(NotFound), storage_errors(name), open_no_follow(self._folder / name) as descriptor:
                if any(mark in piece for piece in _pieces(descriptor, len(mark))):
                    yield session.session_id

    def delete(self, session_id: str, *, first: Callable[[], None] = lambda: None) -> None:
        """Removes a session: its log, what trims and repairs left, and what no other session keeps beside its own.

        Args:
            session_id: The session.
            first: Erases what else was made of it; nobody writes to the log meanwhile.

        Raises:
            InvalidName: The id is not one of a session.
            NotFound: There is no session of that id.
            StorageFailed: The disk did not let it go.
        """
        log = self.open(session_id)
        name = f"{session_id}{SUFFIX}"
        # To be removed, a log need not be sound, nor the disk have room to mend it.
        with log.file.writing(must_exist=True, mend=False):
            first()
            own = [name, *(file for file in self._names() if is_put_aside(file, name))]
            # The log goes last: as long as it is there, a delete that was broken off can be repeated.
            if any(map(self._named_in, own)):
                self._remove_unnamed(but=own)
            with storage_errors(self._folder.name):
                disk.sweep([self._folder], of=name)
            self._sweep_blobs()
            for file in reversed(own):
                disk.remove_durably(self._folder / file)
        self._logs.pop(session_id)

    def rewrite(self, session_id: str, change: Rewrite, *, first: Callable[[], None]) -> None:
        """Gives records another body, and removes what repairs and crashes left and the contents that no log names.

        Args:
            session_id: The session.
            change: Gives the new bodies; nothing is done if it raises.
            first: Erases what else was made of the records; nobody writes to the log meanwhile.

        Raises:
            InvalidName: The id is not one of a session.
            NotFound: There is no session of that id.
            StorageFailed: The disk did not let it go.
        """
        restorable = self.open(session_id).rewrite(change, first=first)
        name = f"{session_id}{SUFFIX}"
        # Nobody reads any more what was cut off, nor backups of trims that were taken back.
        for file in [file for file in self._names() if is_put_aside(file, name)]:
            if file not in restorable:
                disk.remove_durably(self._folder / file)
        with storage_errors(self._folder.name):
            disk.sweep([self._folder], of=name)
        self._remove_unnamed(but=())

    def unit(self) -> AbstractContextManager[None]:
        """Nothing: each write of a file lasts by itself."""
        return nullcontext()

    def has_remains(self, session_id: str) -> bool:
        """True if the log of a session, or what a trim or a repair put beside it, is there."""
        name = f"{session_id}{SUFFIX}"
        return any(file == name or is_put_aside(file, name) for file in self._names())

    def leftovers(self) -> Sequence[str]:
        """Paths below the workspace of temporary files of crashed writers."""
        drafts = (draft for folder in (self._folder, *self._blobs.folders()) for draft in disk.draft_files(folder))
        return [str(draft.relative_to(self._folder.parent)) for draft in drafts]

    def sweep(self) -> None:
        """Remove these: they hold what may be erased, and nobody would find them.

        Raises:
            StorageFailed: They cannot be removed.
        """
        with storage_errors(self._folder.name):
            for draft in disk.draft_files(self._folder):
                name, suffix, _ = draft.name[1:].partition(SUFFIX)
                is_ours = bool(suffix) and SESSION_NAME.fullmatch(name)
                with self._log(name).file.hold_lock() if is_ours else nullcontext():
                    draft.unlink(missing_ok=True)
            self._sweep_blobs()

    def _sweep_blobs(self) -> None:
        if any(map(disk.draft_files, self._blobs.folders())):
            with self._blobs_lock.hold():
                disk.sweep(self._blobs.folders())

    def _log(self, session_id: str) -> JsonlLog:
        check_session_id(session_id)
        with self._guard:
            log = self._logs.get(session_id)
            if log is None:
                log = self._logs[session_id] = JsonlLog(self._folder / f"{session_id}{SUFFIX}", now=self._now)
            return log

    def _names(self) -> Iterable[str]:
        """The names of all regular files in the folder, sorted."""
        with storage_errors(self._folder.name):
            if self._folder.is_symlink():
                raise InvalidName(f"The folder {self._folder.name} is a symbolic link. Put the folder itself there.")
            if not self._folder.exists():
                return []
            with os.scandir(self._folder) as entries:
                return sorted(entry.name for entry in entries if entry.is_file(follow_symlinks=False))

    def _listing_row(self, session_id: str) -> ListedSession | None:
        """Listing row read from the end of a log; None if it is gone."""
        name = f"{session_id}{SUFFIX}"
        try:
            with storage_errors(name), open_no_follow(self._folder / name) as descriptor:
                status = os.fstat(descriptor)
                last = _last_stamp(descriptor, status.st_size)
                title = _title(descriptor)
        except NotFound:
            return None
        return ListedSession(
            session_id=session_id,
            title=title,
            last_activity=_moment(last, status),
            last_seq=last.seq if last else None,
            size_bytes=status.st_size,
        )

    def _remove_unnamed(self, *, but: Iterable[str]) -> None:
        """Removes the contents that no file names but these, and those that a crash left, which none names at all."""
        with self._blobs_lock.hold():
            unnamed_keys = set(self._blobs.hashes())
            for file in set(self._names()).difference(but):
                if not unnamed_keys:
                    break
                unnamed_keys -= self._named_in(file)
            for sha256 in unnamed_keys:
                self._blobs.remove(sha256)

    def _named_in(self, file: str) -> set[str]:
        """The contents that a file names."""
        try:
            with storage_errors(file), open_no_follow(self._folder / file) as descriptor:
                return {match.decode() for piece in _pieces(descriptor) for match in _SHA256.findall(piece)}
        except NotFound:
            return set()


def _is_log(name: str) -> bool:
    return name.endswith(SUFFIX) and SESSION_NAME.fullmatch(name, 0, len(name) - len(SUFFIX)) is not None


def _pieces(descriptor: int, overlap_bytes: int = _OVERLAP_BYTES) -> Iterator[bytes]:
    rest = b""
    for piece in disk.pieces(descriptor):
        yield rest + piece
        rest = (rest + piece)[-overlap_bytes:]


def _last_stamp(descriptor: int, size: int) -> Stamp | None:
    """The place of the last whole line, if it begins near the end."""
    with open(descriptor, "rb", closefd=False) as stream:
        begin = max(0, size - _END_BYTES)
        stream.seek(begin)
        lines = stream.read().split(b"\n")[:-1]
    whole = lines if begin == 0 else lines[1:]
    return next((place for line in reversed(whole) if (place := stamp(line + b"\n"))), None)


def _title(descriptor: int) -> str:
    """The title in the first line of a log, which a session keeps; empty if that is no header, or a very long one."""
    with open(descriptor, "rb", closefd=False) as stream:
        stream.seek(0)
        line = stream.readline(_END_BYTES)
    place = stamp(line)
    if place is None or place.kind != "session":
        return ""
    try:
        header = decode(line).record.body
    except ValueError:
        return ""
    return header.title if isinstance(header, SessionHeader) else ""


def _moment(last: Stamp | None, status: os.stat_result) -> dt.datetime:
    if last is not None:
        with suppress(ValueError):
            return dt.datetime.fromisoformat(last.ts).astimezone(dt.UTC)
    return disk.modified_at(status)
