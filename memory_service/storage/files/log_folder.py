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
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from itertools import takewhile
from pathlib import Path

from indexer import is_openclaw, openclaw_messages
from indexer.common import LRU
from memory_service import disk
from memory_service.disk import WriteLock, open_no_follow, storage_errors
from memory_service.errors import Conflict, InvalidName, NotFound
from memory_service.home import SESSION_NAME
from memory_service.messages.shapes import Json
from memory_service.schemas.sessions import ListedSession
from memory_service.sessions.codec import Stamp, decode, stamp
from memory_service.sessions.erased_lines import ErasedLines
from memory_service.sessions.records import SessionHeader
from memory_service.storage.files import log_recovery
from memory_service.storage.files.blobs import Blobs
from memory_service.storage.files.jsonl_log import BLOBS, BLOBS_LOCK, LOCKS, SUFFIX, JsonlLog, utc_now

_KEPT_LOGS = 256
_END_BYTES = 64 * 1024
_SHA256 = re.compile(rb'"sha256":"([0-9a-f]{64})"')
# As much of a piece is looked at again, so that no name is missed between two.
_OVERLAP_BYTES = 80


class SessionLogs:
    """The logs of one workspace.

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

    def create(
        self,
        session_id: str,
        *,
        model: str | None = None,
        context_window: int | None = None,
        settings: Mapping[str, Json] | None = None,
        title: str = "",
    ) -> JsonlLog:
        """Begins a session.

        Raises:
            InvalidName: The id is not one of a session.
            Conflict: There is a session of that id.
            StorageFailed: The disk did not take it.
        """
        log = self._log(session_id)
        header = SessionHeader(
            session_id=session_id,
            model=model,
            context_window=context_window,
            settings=dict(settings or {}),
            title=title,
        )
        try:
            log.append([header], expected_last_seq=0)
        except Conflict as error:
            raise Conflict(f"There is a session {session_id} already. Choose another id, or go on with it.") from error
        return log

    def fork(self, session_id: str, branch: str, *, before_seq: int) -> None:
        """Begins a session with what another one has before a record.

        Raises:
            InvalidName: An id is not one of a session.
            NotFound: There is no session to begin with.
            Conflict: There is a session with the id of the branch.
            StorageFailed: The disk did not take it.
        """
        shared = takewhile(lambda record: record.seq < before_seq, self.get(session_id).read())
        self._log(branch).begin(shared)

    def get(self, session_id: str) -> JsonlLog:
        """The log of a session that is there.

        Raises:
            InvalidName: The id is not one of a session, or its log is a symbolic link.
            NotFound: There is no session of that id.
        """
        log = self._log(session_id)
        if not (self._folder / f"{session_id}{SUFFIX}").is_file():
            raise NotFound(f"There is no session {session_id} in {self._folder}. List the sessions to see their ids.")
        return log

    def list(self) -> list[ListedSession]:
        """All sessions, the last active first.

        Raises:
            StorageFailed: The folder or a log cannot be read.
        """
        found = (self._measured(name.removesuffix(SUFFIX)) for name in self._names() if _is_log(name))
        return sorted((file for file in found if file), key=lambda file: file.last_activity, reverse=True)

    def holding(self, mark: bytes) -> Iterator[str]:
        """Ids of the sessions whose log has some bytes in it, the last active first."""
        for listed in self.list():
            name = f"{listed.session_id}{SUFFIX}"
            with suppress(NotFound), storage_errors(name), open_no_follow(self._folder / name) as descriptor:
                if any(mark in piece for piece in _pieces(descriptor, len(mark))):
                    yield listed.session_id

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
        log = self.get(session_id)
        name = f"{session_id}{SUFFIX}"
        # To be removed, a log need not be sound, nor the disk have room to mend it.
        with log.writing(must_exist=True, mend=False):
            first()
            own = [name, *(file for file in self._names() if log_recovery.is_put_aside(file, name))]
            # The log goes last: as long as it is there, a delete that was broken off can be repeated.
            if any(map(self._named_in, own)):
                self._remove_unnamed(but=own)
            with storage_errors(self._folder.name):
                disk.sweep([self._folder], of=name)
            self._sweep_blobs()
            for file in reversed(own):
                disk.remove_durably(self._folder / file)
        self._logs.pop(session_id)

    def erase(self, session_id: str, seqs: Collection[int], *, first: Callable[[], None] = lambda: None) -> ErasedLines:
        """Erases messages of a session, what trims and repairs left of them, and what no log keeps beside it any more.

        Args:
            session_id: The session.
            seqs: The numbers of the messages.
            first: Erases what else was made of them; nobody writes to the log meanwhile.

        Raises:
            InvalidName: The id is not one of a session.
            NotFound: There is no session of that id, or none of these messages.
            StorageFailed: The disk did not let it go.
        """
        made = self.get(session_id).erase(seqs, first=first)
        name = f"{session_id}{SUFFIX}"
        # Backups that were in use are gone: what is left of them, or was cut off, nobody reads any more.
        for file in [file for file in self._names() if log_recovery.is_put_aside(file, name)]:
            disk.remove_durably(self._folder / file)
        with storage_errors(self._folder.name):
            disk.sweep([self._folder], of=name)
        self._remove_unnamed(but=())
        return made

    def has_files(self, session_id: str) -> bool:
        """True if the log of a session, or what a trim or a repair put beside it, is there."""
        name = f"{session_id}{SUFFIX}"
        return any(file == name or log_recovery.is_put_aside(file, name) for file in self._names())

    @property
    def drafts(self) -> tuple[Path, ...]:
        """Temporary files of crashed writers."""
        return tuple(draft for folder in (self._folder, *self._blobs.folders()) for draft in disk.draft_files(folder))

    def sweep(self) -> None:
        """Remove these: they hold what may be erased, and nobody would find them.

        Raises:
            StorageFailed: They cannot be removed.
        """
        with storage_errors(self._folder.name):
            for draft in disk.draft_files(self._folder):
                name, suffix, _ = draft.name[1:].partition(SUFFIX)
                is_ours = bool(suffix) and SESSION_NAME.fullmatch(name)
                with self._log(name).locked() if is_ours else nullcontext():
                    draft.unlink(missing_ok=True)
            self._sweep_blobs()

    def _sweep_blobs(self) -> None:
        if any(map(disk.draft_files, self._blobs.folders())):
            with self._blobs_lock.held():
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

    def _measured(self, session_id: str) -> ListedSession | None:
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
        with self._blobs_lock.held():
            unnamed = set(self._blobs.all())
            for file in set(self._names()).difference(but):
                if not unnamed:
                    break
                unnamed -= self._named_in(file)
            for sha256 in unnamed:
                self._blobs.remove(sha256)

    def _named_in(self, file: str) -> set[str]:
        """The contents that a file names."""
        try:
            with storage_errors(file), open_no_follow(self._folder / file) as descriptor:
                return {match.decode() for piece in _pieces(descriptor) for match in _SHA256.findall(piece)}
        except NotFound:
            return set()


def check_session_id(session_id: str) -> None:
    """Make sure that a name is the id of a session.

    Raises:
        InvalidName: It is none.
    """
    if SESSION_NAME.fullmatch(session_id) is None:
        raise InvalidName(
            f"{session_id[:100]!r} is no id of a session. "
            "Use 1 to 128 of A-Z, a-z, 0-9, '.', '_' and '-', and begin with a letter or digit."
        )


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


def foreign_messages(
    log: JsonlLog, since_seq: int, limit: int | None
) -> Sequence[tuple[int, Mapping[str, object]]] | None:
    """Number and message of those after `since_seq`, as they were given; None for a log of ours."""
    content = log.foreign()
    if content is None:
        return None
    return [(told.line, told.message) for told in openclaw_messages(content) if told.line > since_seq][:limit]


def unreadable(log: JsonlLog) -> tuple[str, ...]:
    """Limits of a log in a foreign format, for `degraded`; empty for our own format."""
    content = log.foreign()
    if content is None:
        return ()
    if is_openclaw(content):
        return ("log: OpenClaw wrote it: it can be read and searched, not gone on with. Choose another id for that.",)
    return ("log: it is in a format that is not known here, so nothing of it is shown. Move it away.",)
