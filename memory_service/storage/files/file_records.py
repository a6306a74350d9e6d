"""The small records of a workspace: each kind in the files that it has always had, the others in the shared database.

| kind | files |
|---|---|
| receipt | `receipts/DAY.jsonl`, a line each |
| erasure | `.locks/KEY`, empty |
| prompt | `prompts/SESSION.json`, replaced without a wait for the disk |
| host progress | `.hosts/SESSION.json` |

Invariants: a file is the old one or the new one; no link is followed, and nothing is waited for but the lock; a record
that cannot be read is a fault, and can be erased.
"""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from memory_service.errors import InvalidName, NotFound, StorageFailed, TooLarge
from memory_service.storage.files import disk
from memory_service.storage.files.disk import WriteLock, storage_errors
from memory_service.storage.files.receipt_files import ReceiptFiles
from memory_service.storage.files.shared_database import DatabaseRecords
from memory_service.storage.record_store import ANY, RecordKind, RecordVersion, StoredRecord

_SUFFIX = ".json"
_LOCK = ".lock"
# A pipe that somebody put there is not waited for.
_AT_ONCE = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)


class SessionFiles:
    """Records of sessions, a file each.

    Args:
        folder: Their folder, below that of the workspace; made at the first write.
        lasts: Whether a write waits for the disk.
    """

    def __init__(self, folder: Path, *, lasts: bool) -> None:
        self._folder = folder
        self._lasts = lasts
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
                return StoredRecord(disk.read_all(descriptor), version, key)
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
        """Remove a record, or all; a record is that of the session whose id is its key."""
        meant_keys = {key, session} - {""}
        if len(meant_keys) > 1:
            return 0
        paths = [self._path(next(iter(meant_keys)))] if meant_keys else [self._path(text) for text in self.keys()]
        there = [path for path in paths if path.is_file() or path.is_symlink()]
        for path in there:
            with self._lock_held(path):
                disk.remove_durably(path)
        return len(there)

    def keys(self) -> Iterator[str]:
        """The sessions that have one; a link is none."""
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

    def version(self, key: str) -> RecordVersion | None:
        """The version of a mark; None if there is none."""
        state = disk.current_signature(os.path.join(self._folder, key))
        return None if state is None else repr(state).encode()

    def put(self, key: str) -> RecordVersion | None:
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

    def erase(self, key: str) -> int:
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


class FileRecords:
    """The records of one workspace; see `RecordStore`.

    Args:
        folder: Its folder.
        others: The records of kinds that have no files of their own.
    """

    def __init__(self, folder: Path, other_records: DatabaseRecords) -> None:
        self._receipts = ReceiptFiles(folder / "receipts")
        self._of_sessions = {
            RecordKind.PROMPT: SessionFiles(folder / "prompts", lasts=False),
            RecordKind.PROGRESS: SessionFiles(folder / ".hosts", lasts=True),
        }
        self._marks = MarkFiles(folder / ".locks")
        self._others = other_records

    def get(self, kind: RecordKind, key: str) -> StoredRecord | None:
        """See `RecordStore`."""
        if kind is RecordKind.RECEIPT:
            return self._receipts.get(key)
        if kind is RecordKind.ERASURE:
            return StoredRecord(b"", version) if (version := self._marks.version(key)) else None
        files = self._of_sessions.get(kind)
        return files.get(key) if files else self._others.get(kind, key)

    def version(self, kind: RecordKind, key: str) -> RecordVersion | None:
        """See `RecordStore`."""
        if kind is RecordKind.RECEIPT:
            record = self._receipts.get(key)
            return record.version if record else None
        if kind is RecordKind.ERASURE:
            return self._marks.version(key)
        files = self._of_sessions.get(kind)
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
        if kind is RecordKind.RECEIPT:
            return self._receipts.put(key, raw, session, expires)
        if kind is RecordKind.ERASURE:
            return self._marks.put(key)
        if files := self._of_sessions.get(kind):
            return files.put(key, raw, expected)
        return self._others.put(kind, key, raw, expected=expected, session=session, expires=expires)

    def erase(self, kind: RecordKind, *, key: str = "", session: str = "") -> int:
        """See `RecordStore`."""
        if kind is RecordKind.RECEIPT:
            return self._receipts.erase(key, session)
        if kind is RecordKind.ERASURE:
            return self._marks.erase(key)
        if files := self._of_sessions.get(kind):
            return files.erase(key, session)
        return self._others.erase(kind, key=key, session=session)

    def keys(self, kind: RecordKind) -> Iterator[str]:
        """See `RecordStore`."""
        if kind is RecordKind.RECEIPT:
            return self._receipts.keys()
        if kind is RecordKind.ERASURE:
            return self._marks.keys()
        files = self._of_sessions.get(kind)
        return files.keys() if files else self._others.keys(kind)

    def trim(self, kind: RecordKind, *, most: int, most_bytes: int) -> None:
        """See `RecordStore`; old receipts go with the first of a new day."""
        if kind not in (RecordKind.RECEIPT, RecordKind.ERASURE, *self._of_sessions):
            self._others.trim(kind, most=most, most_bytes=most_bytes)

    def sweep(self) -> None:
        """See `RecordStore`."""
        for files in self._of_sessions.values():
            files.sweep()

    def leftovers(self) -> list[str]:
        """See `RecordStore`."""
        return [name for files in self._of_sessions.values() for name in files.leftovers()]
