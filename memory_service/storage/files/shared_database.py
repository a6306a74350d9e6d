"""The SQLite file of a home that its processes share: records that have no file of their own, and messages.

Invariants: nothing in it has to last: what is acknowledged outlives the process, a power cut may take it back; only a
write makes the file; what is erased leaves no byte in it or in its log.
"""

from __future__ import annotations

import datetime as dt
import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from indexer import StoreError
from memory_service.errors import StorageFailed
from memory_service.storage.coordination import KEPT_MESSAGES, ChannelMessage
from memory_service.storage.files import disk
from memory_service.storage.files.disk import storage_errors
from memory_service.storage.record_store import ANY, RecordKind, RecordVersion, StoredRecord

if TYPE_CHECKING:
    from indexer.stores import Database

SHARED_FOLDER = ".shared"
_NAME = "records.sqlite"
# Of all channels together.
_MOST_MESSAGES = 16_384
_SCHEMA = """
    CREATE TABLE IF NOT EXISTS records(
        id INTEGER PRIMARY KEY AUTOINCREMENT, scope TEXT NOT NULL, kind TEXT NOT NULL, key TEXT NOT NULL,
        session TEXT NOT NULL, expires REAL NOT NULL, raw BLOB NOT NULL);
    CREATE UNIQUE INDEX IF NOT EXISTS record_keys ON records(scope, kind, key);
    CREATE TABLE IF NOT EXISTS messages(
        id INTEGER PRIMARY KEY AUTOINCREMENT, channel TEXT NOT NULL, number INTEGER NOT NULL, raw BLOB NOT NULL);
    CREATE UNIQUE INDEX IF NOT EXISTS message_numbers ON messages(channel, number);
"""
_FOREVER = 1e12
_ONE = "scope = ? AND kind = ? AND key = ? AND expires > ?"


def make_shared_folder(home: Path) -> None:
    """Make the folder of what the processes of a home share.

    Raises:
        StorageFailed: There is no home yet, or the folder cannot be made.
    """
    if not home.is_dir():
        raise StorageFailed("Nobody has written to the home yet. Write to a workspace first.")
    with storage_errors(SHARED_FOLDER):
        disk.make_folder(home / SHARED_FOLDER)


class SharedDatabase:
    """The shared file of one home.

    Args:
        home: Its folder; in one that is not there, nothing is stored.
    """

    def __init__(self, home: Path) -> None:
        self._home = home
        self._path = home / SHARED_FOLDER / _NAME
        self._opening = threading.Lock()
        self._opened: Database | None = None
        # SQLite has writers ask again and again; those of one process wait for each other here.
        self._writing = threading.Lock()
        self._made: tuple[int, int] | None = None

    def rows(self, sql: str, bindings: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """The rows of a query; none as long as nobody wrote."""
        with self._translate_errors():
            return self._database().rows(sql, bindings) if self._is_made() else []

    @contextmanager
    def writing(self) -> Iterator[Database]:
        """The database within a transaction of its own.

        Raises:
            StorageFailed: The disk does not take it, or other processes write for too long.
        """
        with self._writing, self._translate_errors():
            database = self._database()
            if not self._is_made():
                make_shared_folder(self._home)
            with database.writing():
                if not self._is_made():
                    database.run(_SCHEMA)
                yield database

    def cut_log(self) -> None:
        """Leave nothing of what was erased in the log of the database."""
        with self._translate_errors():
            if not self._database().cut_log():
                raise StorageFailed("What was erased stands in .shared/records.sqlite-wal: others read it. Try again.")

    def close(self) -> None:
        """Close the file."""
        with self._opening:
            if self._opened is not None:
                self._opened.close()
                self._opened = None

    def _database(self) -> Database:
        with self._opening:
            if self._opened is None:
                from indexer.stores import open_database

                self._opened = open_database(self._path)
            return self._opened

    def _is_made(self) -> bool:
        """True if the tables are there, which the file alone does not show."""
        try:
            status = os.stat(self._path)
        except OSError:
            return False
        place = status.st_dev, status.st_ino
        if place != self._made:
            tables = self._database().value("SELECT count(*) FROM sqlite_master WHERE name = 'message_numbers'")
            self._made = place if tables else None
        return place == self._made

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            yield
        except StoreError as error:
            raise StorageFailed(
                f"The file {SHARED_FOLDER}/{_NAME} of the home failed ({type(error).__name__}). Make it writable. If "
                "it is damaged, remove it: the progress of operations and repeated answers go with it."
            ) from error


class DatabaseRecords:
    """The records of one workspace, or of the home itself, in a shared database; see `RecordStore`."""

    def __init__(self, database: SharedDatabase, scope: str) -> None:
        self._database = database
        self._scope = scope

    def get(self, kind: RecordKind, key: str) -> StoredRecord | None:
        """See `RecordStore`."""
        sql = f"SELECT raw, id, session, expires FROM records WHERE {_ONE}"
        rows = self._database.rows(sql, self._record_key(kind, key))
        if not rows:
            return None
        raw, number, session, until = rows[0]
        expires = dt.datetime.fromtimestamp(until, dt.UTC) if until < _FOREVER else None
        return StoredRecord(bytes(raw), _version(number), session, expires)

    def version(self, kind: RecordKind, key: str) -> RecordVersion | None:
        """See `RecordStore`."""
        rows = self._database.rows(f"SELECT id FROM records WHERE {_ONE}", self._record_key(kind, key))
        return _version(rows[0][0]) if rows else None

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
        """See `RecordStore`."""
        until = expires.timestamp() if expires else _FOREVER
        with self._database.writing() as database:
            if expected != ANY:
                known_value = database.value(f"SELECT id FROM records WHERE {_ONE}", self._record_key(kind, key))
                if (None if known_value is None else _version(known_value)) != expected:
                    return None
            stored_count = database.insert(
                "INSERT OR REPLACE INTO records(scope, kind, key, session, expires, raw) VALUES (?, ?, ?, ?, ?, ?)",
                (self._scope, kind.value, key, session, until, raw),
            )
        return _version(stored_count)

    def erase(self, kind: RecordKind, *, key: str = "", session: str = "") -> int:
        """See `RecordStore`."""
        pairs = [("key", key), ("session", session)]
        given_pairs = [(f"{name} = ?", value) for name, value in pairs if value]
        where = " AND ".join(("scope = ? AND kind = ?", *(condition for condition, _ in given_pairs)))
        bindings = (self._scope, kind.value, *(value for _, value in given_pairs))
        if not self._database.rows(f"SELECT 1 FROM records WHERE {where} LIMIT 1", bindings):
            return 0
        with self._database.writing() as database:
            rows = database.rows(f"DELETE FROM records WHERE {where} RETURNING 1", bindings)
        if not key:
            self._database.cut_log()
        return len(rows)

    def keys(self, kind: RecordKind) -> Iterator[str]:
        """See `RecordStore`."""
        sql = "SELECT key FROM records WHERE scope = ? AND kind = ? AND expires > ?"
        yield from (str(key) for (key,) in self._database.rows(sql, (self._scope, kind.value, time.time())))

    def newest(self, kind: RecordKind, *, session: str = "") -> Iterator[tuple[str, StoredRecord]]:
        """See `RecordStore`."""
        of_session = "AND ? IN ('', session) ORDER BY id DESC"
        sql = f"SELECT key FROM records WHERE scope = ? AND kind = ? AND expires > ? {of_session}"
        for (key,) in self._database.rows(sql, (self._scope, kind.value, time.time(), session)):
            # What is erased meanwhile is left out.
            if record := self.get(kind, str(key)):
                yield str(key), record

    def trim(self, kind: RecordKind, *, most: int, most_bytes: int) -> None:
        """See `RecordStore`."""
        sql = "SELECT id, length(raw) FROM records WHERE scope = ? AND kind = ? AND expires > ? ORDER BY id DESC"
        oldest, size = 0, 0
        for count, (number, length) in enumerate(self._database.rows(sql, (self._scope, kind.value, time.time())), 1):
            size += length
            if count > most or size > most_bytes:
                oldest = number
                break
        with self._database.writing() as database:
            gone_text = "DELETE FROM records WHERE scope = ? AND kind = ? AND (id <= ? OR expires <= ?)"
            database.run(gone_text, (self._scope, kind.value, oldest, time.time()))

    def sweep(self) -> None:
        """See `RecordStore`; a database leaves nothing half-written."""

    def leftovers(self) -> list[str]:
        """See `RecordStore`."""
        return []

    def _record_key(self, kind: RecordKind, key: str) -> tuple[str, str, str, float]:
        return self._scope, kind.value, key, time.time()


class DatabaseMessages:
    """The messages of all channels of a home, in a shared database; see `Coordination`."""

    def __init__(self, database: SharedDatabase) -> None:
        self._database = database

    def publish(self, channel: str, raw: bytes, first: int, behind: int) -> int:
        """See `Coordination`."""
        with self._database.writing() as database:
            last = database.value("SELECT max(number) FROM messages WHERE channel = ?", (channel,))
            number = max(int(last), behind) + 1 if last is not None else first
            added_count = database.insert(
                "INSERT INTO messages(channel, number, raw) VALUES (?, ?, ?)", (channel, number, raw)
            )
            database.run("DELETE FROM messages WHERE channel = ? AND number <= ?", (channel, number - KEPT_MESSAGES))
            database.run("DELETE FROM messages WHERE id <= ?", (added_count - _MOST_MESSAGES,))
        return number

    def messages(self, channel: str, after: int = 0) -> Sequence[ChannelMessage]:
        """See `Coordination`."""
        sql = "SELECT number, raw FROM messages WHERE channel = ? AND number > ? ORDER BY number"
        return [ChannelMessage(number, bytes(raw)) for number, raw in self._database.rows(sql, (channel, after))]

    def newest(self) -> int:
        """The number of the last message of the home, whatever its channel."""
        rows = self._database.rows("SELECT max(id) FROM messages")
        return rows[0][0] or 0 if rows else 0

    def channels(self, after: int) -> list[str]:
        """The channels that have a message behind such a number."""
        sql = "SELECT DISTINCT channel FROM messages WHERE id > ?"
        return [str(channel) for (channel,) in self._database.rows(sql, (after,))]


def _version(number: int) -> RecordVersion:
    return b"%d" % number
