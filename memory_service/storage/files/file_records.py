"""The small records of a workspace and of a home: some kinds in files of their own, the others in the shared database.

| kind | files |
|---|---|
| receipt | `receipts/DAY.jsonl`, a line each |
| erasure | `.locks/KEY`, empty |
| prompt | `prompts/SESSION.json`, replaced without a wait for the disk |
| host progress | `.hosts/SESSION.json` |
| key (of the home) | `.keys/ID.json`, replaced and removed with a wait for the disk |

Invariants: a file is the old one or the new one; no link is followed, and nothing is waited for but the lock; a record
that cannot be read is a fault, and can be erased. A receipt's line is written once and never changed, but blanked when
its session is erased; one line is one write, so processes that append at once do not mix theirs; old files of receipts
go when the file of a new day begins.
"""

from __future__ import annotations

import datetime as dt
import errno
import mmap
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from indexer import sync_file
from indexer.common import lazy_regex
from memory_service.errors import InvalidName, NotFound, StorageFailed, TooLarge
from memory_service.storage.files import disk
from memory_service.storage.files.disk import FILE_MODE, FOLDER_MODE, WriteLock, storage_errors
from memory_service.storage.files.shared_database import DatabaseRecords
from memory_service.storage.record_store import ANY, RecordKind, RecordVersion, StoredRecord

_ID = lazy_regex(r"r(\d{4})(\d{2})(\d{2})-[0-9a-f]{16}")
# The beginning of a receipt, before which half of another one may stand in its line.
_BEGINNING = lazy_regex(r'.*(\{"receipt_id": "(r\d{8}-[0-9a-f]{16})")')
_OF_SESSION = b', "session_id": "'
_VERSION = b"written"


class ReceiptFiles:
    """The receipts below a workspace folder: JSON objects, whose first field is the key, which says the day.

    Args:
        folder: `<workspace>/receipts`; made at the first write.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._shown_folder = f"{folder.parent.name}/{folder.name}"

    def get(self, key: str) -> StoredRecord | None:
        """A receipt; None if there is none that can be read."""
        if (day := _day_of(key)) is None:
            return None
        begin = _begin(key)
        with suppress(OSError), self._path(day).open("rb") as lines:
            # Not the id alone, which a query may quote; not at the start of a line, where half of one may stand.
            line = next((line[line.index(begin) :] for line in lines if begin in line), None)
            return None if line is None else _receipt(line)
        return None

    def version(self, key: str) -> RecordVersion | None:
        """The version of a receipt, which never changes; None if there is none."""
        record = self.get(key)
        return record.version if record else None

    def put(self, key: str, raw: bytes, session: str, expires: dt.datetime | None) -> bytes | None:
        """Store a receipt.

        Raises:
            StorageFailed: The folder cannot be written, or old receipts in it cannot be deleted.
        """
        day = _day_of(key)
        if day is None or not raw.startswith(_begin(key)):
            raise StorageFailed(f"The receipt {key} does not begin with its id. Store it with one.")
        path, ending = self._path(day), _ending(session) if session else b"}\n"
        line = raw[:-1] + ending
        try:
            if fresh := not path.exists():
                self._folder.mkdir(exist_ok=True, mode=FOLDER_MODE)
            descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, FILE_MODE)
            try:
                if os.write(descriptor, line) < len(line):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            finally:
                os.close(descriptor)
        except FileNotFoundError:
            return None  # of a workspace that nobody wrote to, nothing is made
        except OSError as error:
            raise StorageFailed(
                f"The receipt could not be stored in {self._shown_folder} ({error.strerror}). Make the folder writable."
            ) from error
        if fresh and expires is not None:
            self._prune(day, expires.date() - day)
        return _VERSION

    def erase(self, key: str, session: str) -> int:
        """Blank receipts where they stand: what others append meanwhile is not touched.

        Raises:
            StorageFailed: A file of receipts cannot be written.
        """
        begin, ending = _begin(key) if key else b"", _ending(session) if session else b"}\n"
        erased_count = 0
        try:
            for path in self._files():
                with suppress(FileNotFoundError):
                    erased_count += _blank(path, ending, lambda line: begin in line)
        except OSError as error:
            of = f" of the session {session}" if session else ""
            raise StorageFailed(
                f"Receipts{of} stay in {self._folder.name} ({error.strerror}). "
                "Make the folder writable, then delete the session again."
            ) from error
        return erased_count

    def keys(self) -> Iterator[str]:
        """The keys of all receipts."""
        for path in self._files():
            with suppress(OSError), path.open("rb") as lines:
                yield from (match[0] for line in lines if (match := _ID.search(line[:64].decode("ascii", "replace"))))

    def newest(self) -> Iterator[tuple[str, StoredRecord]]:
        """All receipts with their keys, the last stored first."""
        for path in reversed(self._files()):
            with suppress(OSError):
                for line in reversed(path.read_text("utf-8", "surrogateescape").split("\n")):
                    if match := _BEGINNING.match(line):
                        yield match[2], _receipt(line[match.start(1) :].encode("utf-8", "surrogateescape"))

    def _files(self) -> list[Path]:
        return sorted(self._folder.glob("????-??-??.jsonl"))

    def _path(self, day: dt.date) -> Path:
        return self._folder / f"{day.isoformat()}.jsonl"

    def _prune(self, today: dt.date, keep: dt.timedelta) -> None:
        oldest = self._path(today - keep).name
        try:
            for path in self._files():
                if path.name < oldest:
                    path.unlink(missing_ok=True)
        except OSError as error:
            raise StorageFailed(
                f"Receipts of more than {keep.days} days stay in {self._shown_folder} ({error.strerror}). "
                "Check its permissions, and delete them by hand."
            ) from error


def _day_of(key: str) -> dt.date | None:
    match = _ID.fullmatch(key)
    with suppress(ValueError):
        return dt.date(*(int(part) for part in match.groups())) if match else None
    return None


def _begin(key: str) -> bytes:
    return f'{{"receipt_id": "{key}"'.encode()


def _receipt(line: bytes) -> StoredRecord:
    """The receipt of a line, from its beginning on."""
    # Within a text these quotation marks would be escaped.
    raw, of_session, session = line.rstrip(b"\n").rpartition(_OF_SESSION)
    return StoredRecord(raw + b"}", _VERSION, session[:-2].decode()) if of_session else StoredRecord(session, _VERSION)


def _ending(session: str) -> bytes:
    return _OF_SESSION + f'{session}"}}\n'.encode()


def _blank(path: Path, ending: bytes, is_meant: Callable[[bytes], bool]) -> int:
    """Write spaces over the lines of a file that end so and are meant; gives their number."""
    blanked_count = 0
    with path.open("r+b") as stream:
        if not os.fstat(stream.fileno()).st_size:
            return 0
        with mmap.mmap(stream.fileno(), 0) as lines:
            at = lines.find(ending)
            while at >= 0:
                start, end = lines.rfind(b"\n", 0, at) + 1, at + len(ending) - 1
                if is_meant(lines[start:end]):
                    lines[start:end] = b" " * (end - start)
                    blanked_count += 1
                at = lines.find(ending, end)
            if blanked_count:
                lines.flush()
        if blanked_count:
            sync_file(stream.fileno())
    return blanked_count


_SUFFIX = ".json"
_LOCK = ".lock"
KEYS_FOLDER = ".keys"
# Below it: the keys of the shared database were moved, or there were none.
_MOVED = ".moved"
# A pipe that somebody put there is not waited for.
_AT_ONCE = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)


class JsonFiles:
    """Records in JSON, a file each.

    Args:
        folder: Their folder; made at the first write.
        lasts: Whether a write waits for the disk.
        of_sessions: Whether each is of the session that is its key.
    """

    def __init__(self, folder: Path, *, lasts: bool, of_sessions: bool = True) -> None:
        self._folder = folder
        self._lasts = lasts
        self._of_sessions = of_sessions
        self._lock = WriteLock(folder / _LOCK)

    def get(self, key: str) -> StoredRecord | None:
        """A record.

        Raises:
            StorageFailed: It cannot be read.
        """
        path, version = self._path(key), self.version(key)
        if version is None:
            return None
        try:
            with self._faults(path), disk.open_no_follow(path, _AT_ONCE) as descriptor:
                disk.check_size(descriptor, path.name)
                return StoredRecord(disk.read_all(descriptor), version, key if self._of_sessions else "")
        except NotFound:
            return None

    def version(self, key: str) -> RecordVersion | None:
        """The state of its file."""
        path = self._path(key)
        with self._faults(path):
            state = disk.current_signature(path)
        return None if state is None else repr(state).encode()

    def put(self, key: str, raw: bytes, expected: RecordVersion | None) -> RecordVersion | None:
        """Store a record; see `RecordStore`."""
        path = self._path(key)
        with self._lock_held(path):
            if expected not in (ANY, self.version(key)):
                return None
            if self._lasts:
                disk.make_folder(self._folder)
                disk.replace_durably(path, raw, expected=disk.current_signature(path))
            else:
                disk.replace_undurably(path, raw)
            return self.version(key)

    def erase(self, key: str, session: str) -> int:
        """Remove a record, those of a session, or all."""
        meant_keys = {key, session} - {""}
        if len(meant_keys) > 1 or (session and not self._of_sessions):
            return 0
        paths = [self._path(next(iter(meant_keys)))] if meant_keys else [self._path(text) for text in self.keys()]
        there = [path for path in paths if path.is_file() or path.is_symlink()]
        for path in there:
            with self._lock_held(path):
                disk.remove_durably(path)
        return len(there)

    def keys(self) -> Iterator[str]:
        """The keys of all; a link is none."""
        for path in sorted(self._folder.glob(f"*{_SUFFIX}")):
            if path.is_file() and not path.is_symlink():
                yield path.name.removesuffix(_SUFFIX)

    def sweep(self) -> None:
        """Remove what killed writers left."""
        if disk.draft_files(self._folder):
            with self._lock_held(self._folder):
                disk.sweep([self._folder])

    def leftovers(self) -> list[str]:
        """The files that killed writers left."""
        return [self._relative_path(draft) for draft in disk.draft_files(self._folder)]

    @contextmanager
    def _lock_held(self, path: Path) -> Iterator[None]:
        with self._faults(path), self._lock.hold():
            yield

    @contextmanager
    def _faults(self, path: Path) -> Iterator[None]:
        """Whatever keeps a file from being read or written is a fault of the storage."""
        text = self._relative_path(path)
        try:
            with storage_errors(text):
                yield
        except (InvalidName, TooLarge) as error:
            raise StorageFailed(
                f"{text} cannot be used: a folder, a link or something too large stands there, or in the place of its "
                "lock. Remove it."
            ) from error

    def _path(self, key: str) -> Path:
        return self._folder / f"{key}{_SUFFIX}"

    def _relative_path(self, path: Path) -> str:
        return path.relative_to(self._folder.parent).as_posix()


class MarkFiles:
    """Marks, an empty file each.

    Args:
        folder: `<workspace>/.locks`; made with the first mark.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, key: str) -> StoredRecord | None:
        """A mark; None if there is none."""
        return StoredRecord(b"", version) if (version := self.version(key)) else None

    def version(self, key: str) -> RecordVersion | None:
        """The version of a mark; None if there is none."""
        state = disk.current_signature(os.path.join(self._folder, key))
        return None if state is None else repr(state).encode()

    def put(self, key: str, _raw: bytes, _expected: RecordVersion | None) -> RecordVersion | None:
        """Makes a mark that lasts; None if there is one."""
        with storage_errors(f"{self._folder.name}/{key}"):
            disk.make_folder(self._folder)
            try:
                with disk.open_no_follow(self._folder / key, os.O_WRONLY | os.O_CREAT | os.O_EXCL):
                    pass
            except FileExistsError:
                return None
            finally:
                disk.sync_folder(self._folder)
        return self.version(key)

    def erase(self, key: str, _session: str) -> int:
        """Removes a mark, or all; gives their number."""
        gone = [one for one in self.keys() if key in ("", one)]
        with storage_errors(self._folder.name):
            for one in gone:
                (self._folder / one).unlink(missing_ok=True)
        return len(gone)

    def keys(self) -> Iterator[str]:
        """The keys of all marks: names of files that are no locks."""
        with storage_errors(self._folder.name):
            names = os.listdir(self._folder) if self._folder.is_dir() else []
        return (name for name in names if not name.endswith(_LOCK))


class KeyFiles:
    """The keys of a home, a file each.

    Earlier versions had them in the shared database, which may be lost. From there they are moved when they are first
    looked at, and once: a mark says that they were, and behind it nothing of the database is a key, so that none that
    was withdrawn comes back with an old copy of it.

    Args:
        folder: Their folder; made with the first key.
        earlier: The records in the shared database.
    """

    def __init__(self, folder: Path, earlier: DatabaseRecords) -> None:
        self._files = JsonFiles(folder, lasts=True, of_sessions=False)
        self._earlier = earlier
        self._mark = folder / _MOVED
        self._moving = WriteLock(folder / f"{_MOVED}{_LOCK}")

    def get(self, key: str) -> StoredRecord | None:
        """A key."""
        return self._files.get(key) if self._are_files() else self._earlier.get(RecordKind.KEY, key)

    def version(self, key: str) -> RecordVersion | None:
        """The version of a key."""
        return self._files.version(key) if self._are_files() else self._earlier.version(RecordKind.KEY, key)

    def put(self, key: str, raw: bytes, expected: RecordVersion | None) -> RecordVersion | None:
        """Store a key; see `RecordStore`."""
        self._move()
        return self._files.put(key, raw, expected)

    def erase(self, key: str, session: str) -> int:
        """Remove a key, or all; none is of a session."""
        return self._files.erase(key, session) if self._are_files(must=True) else 0

    def keys(self) -> Iterator[str]:
        """The ids of all keys."""
        return self._files.keys() if self._are_files() else self._earlier.keys(RecordKind.KEY)

    def sweep(self) -> None:
        """Remove what killed writers left."""
        self._files.sweep()

    def leftovers(self) -> list[str]:
        """The files that killed writers left."""
        return self._files.leftovers()

    def _are_files(self, *, must: bool = False) -> bool:
        """True if the keys are files, as they are once there is one; in a home that cannot be written old ones stay.

        Raises:
            StorageFailed: Keys in the database have to be moved, and cannot be.
        """
        if not self._mark.exists() and any(self._earlier.keys(RecordKind.KEY)):
            try:
                self._move()
            except StorageFailed:
                if must:
                    raise
        return self._mark.exists()

    def _move(self) -> None:
        if self._mark.exists():
            return
        with self._moving.hold():
            if self._mark.exists():
                return
            for key in self._earlier.keys(RecordKind.KEY):
                if record := self._earlier.get(RecordKind.KEY, key):
                    self._files.put(key, record.raw, None)
            with storage_errors(self._mark.name):
                disk.replace_durably(self._mark, b"", expected=None)
        # From here on nobody looks at them.
        with suppress(StorageFailed):
            self._earlier.erase(RecordKind.KEY)


class FileRecords:
    """The records of one workspace, or of the home itself; see `RecordStore`.

    Args:
        files: The files of each kind that has its own.
        other_records: The records of the other kinds.
    """

    def __init__(
        self,
        files: Mapping[RecordKind, ReceiptFiles | MarkFiles | JsonFiles | KeyFiles],
        other_records: DatabaseRecords,
    ) -> None:
        self._files = files
        self._others = other_records
        self._drafted = [kind_files for kind_files in files.values() if isinstance(kind_files, JsonFiles | KeyFiles)]

    def get(self, kind: RecordKind, key: str) -> StoredRecord | None:
        """See `RecordStore`."""
        files = self._files.get(kind)
        return files.get(key) if files else self._others.get(kind, key)

    def version(self, kind: RecordKind, key: str) -> RecordVersion | None:
        """See `RecordStore`."""
        files = self._files.get(kind)
        return files.version(key) if files else self._others.version(kind, key)

    def put(
        self,
        kind: RecordKind,
        key: str,
        raw: bytes,
        *,
        expected: RecordVersion | None = ANY,
        session: str = "",
        expires: dt.datetime | None = None,
    ) -> RecordVersion | None:
        """See `RecordStore`; a receipt and a mark are stored once, and what is of a session does not expire."""
        files = self._files.get(kind)
        if isinstance(files, ReceiptFiles):
            return files.put(key, raw, session, expires)
        if files:
            return files.put(key, raw, expected)
        return self._others.put(kind, key, raw, expected=expected, session=session, expires=expires)

    def erase(self, kind: RecordKind, *, key: str = "", session: str = "") -> int:
        """See `RecordStore`."""
        files = self._files.get(kind)
        return files.erase(key, session) if files else self._others.erase(kind, key=key, session=session)

    def keys(self, kind: RecordKind) -> Iterator[str]:
        """See `RecordStore`."""
        files = self._files.get(kind)
        return files.keys() if files else self._others.keys(kind)

    def newest(self, kind: RecordKind, *, session: str = "") -> Iterator[tuple[str, StoredRecord]]:
        """See `RecordStore`."""
        files = self._files.get(kind)
        if files is None:
            return self._others.newest(kind, session=session)
        pairs = files.newest() if isinstance(files, ReceiptFiles) else self._records(kind)
        return (pair for pair in pairs if session in ("", pair[1].session))

    def _records(self, kind: RecordKind) -> Iterator[tuple[str, StoredRecord]]:
        for key in self.keys(kind):
            with suppress(StorageFailed):
                if record := self.get(kind, key):
                    yield key, record

    def trim(self, kind: RecordKind, *, most: int, most_bytes: int) -> None:
        """See `RecordStore`; old receipts go with the first of a new day."""
        if kind not in self._files:
            self._others.trim(kind, most=most, most_bytes=most_bytes)

    def sweep(self) -> None:
        """See `RecordStore`."""
        for files in self._drafted:
            files.sweep()

    def leftovers(self) -> list[str]:
        """See `RecordStore`."""
        return [name for files in self._drafted for name in files.leftovers()]


def workspace_records(folder: Path, other_records: DatabaseRecords) -> FileRecords:
    """The records of the workspace that has a folder."""
    return FileRecords(
        {
            RecordKind.RECEIPT: ReceiptFiles(folder / "receipts"),
            RecordKind.ERASURE: MarkFiles(folder / ".locks"),
            RecordKind.PROMPT: JsonFiles(folder / "prompts", lasts=False),
            RecordKind.PROGRESS: JsonFiles(folder / ".hosts", lasts=True),
        },
        other_records,
    )


def home_records(home: Path, other_records: DatabaseRecords) -> FileRecords:
    """The records that are of no workspace."""
    return FileRecords({RecordKind.KEY: KeyFiles(home / KEYS_FOLDER, other_records)}, other_records)
