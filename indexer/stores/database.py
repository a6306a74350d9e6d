"""Owns SQLite connections: opening, transactions, and what the driver's errors mean. Imports apsw.

Invariants: one connection is used by one thread at a time; a write transaction takes the write lock at
its beginning, so it never fails half-way for want of it; only a write makes the file; a connection to a
file that was deleted or replaced is not used again; nothing of apsw leaves this file but rows.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw

from indexer.errors import StoreCorrupt, StoreError, StoreFull, StoreLocked, StoreReadOnly

Row = tuple[Any, ...]
_Place = tuple[int | bool, ...]

# No mmap: it makes a scan of 30,000 vectors a third faster (19 instead of 27 ms), but a file that is cut short
# while it is mapped (an editor, a sync tool) ends the process with SIGBUS instead of an error.
_PRAGMAS = """
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = NORMAL;
    PRAGMA secure_delete = ON;
    PRAGMA cache_size = -16384;
    PRAGMA temp_store = MEMORY;
"""


class Database:
    """One SQLite file with sqlite-vec loaded, shared by the threads of a process.

    Args:
        path: The file; made when it is not there.
        busy_seconds: How long a writer waits for another process.

    Raises:
        StoreError: See the tree in `indexer.errors`.
    """

    def __init__(self, path: Path, *, busy_seconds: float = 30.0) -> None:
        self.path = path
        self._busy_ms = round(busy_seconds * 1000)
        self._idle: deque[tuple[apsw.Connection, _Place]] = deque()
        self._held = threading.local()
        self._closed = False
        self.read_only = False

    def exists(self) -> bool:
        """Whether the file is there."""
        try:
            os.stat(self.path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            raise StoreError(
                f"The index {self.path} cannot be opened ({error.strerror}). "
                "Check that its folder is there and is yours."
            ) from error
        return True

    def size_bytes(self) -> int:
        """What the file and its log take; 0 where neither is there."""
        try:
            return self.path.stat().st_size + _log_bytes(self.path)
        except FileNotFoundError:
            return _log_bytes(self.path)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """A snapshot for all queries of this thread within the block; blocks may nest."""
        with self._transaction("BEGIN DEFERRED"):
            yield

    @contextmanager
    def writing(self) -> Iterator[None]:
        """A transaction that holds the write lock; on any error nothing of it remains."""
        with self._transaction("BEGIN IMMEDIATE"):
            yield

    def rows(self, sql: str, bindings: Sequence[Any] = ()) -> list[Row]:
        """Run one query and return all its rows."""
        with self._translated(), self._borrowed() as connection:
            return connection.execute(sql, tuple(bindings)).fetchall()

    def value(self, sql: str, bindings: Sequence[Any] = ()) -> Any:
        """The first column of the first row, or None."""
        rows = self.rows(sql, bindings)
        return rows[0][0] if rows else None

    def run(self, sql: str, bindings: Sequence[Any] = ()) -> None:
        """Run statements for their effect."""
        self.rows(sql, bindings)

    def run_many(self, sql: str, bindings: Iterable[Sequence[Any]]) -> None:
        """Run one statement for every set of bindings."""
        with self._translated(), self._borrowed() as connection:
            connection.executemany(sql, bindings)

    def insert(self, sql: str, bindings: Sequence[Any]) -> int:
        """Run one INSERT and return the row's id."""
        with self._translated(), self._borrowed() as connection:
            connection.execute(sql, tuple(bindings))
            return int(connection.last_insert_rowid())

    def close(self) -> None:
        """Close every idle connection; those in use close when they are given back."""
        self._closed = True
        while self._idle:
            self._idle.pop()[0].close()

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[None]:
        if getattr(self._held, "connection", None) is not None:
            yield
            return
        with self._translated(), self._borrowed(create=begin == "BEGIN IMMEDIATE") as connection:
            connection.execute(begin)
            self._held.connection = connection
            try:
                yield
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
            finally:
                self._held.connection = None

    @contextmanager
    def _borrowed(self, *, create: bool = False) -> Iterator[apsw.Connection]:
        held = getattr(self._held, "connection", None)
        if held is not None:
            yield held
            return
        connection, place = self._idle_connection() or self._open(create=create)
        try:
            yield connection
        finally:
            if self._closed:
                connection.close()
            else:
                self._idle.append((connection, place))

    def _idle_connection(self) -> tuple[apsw.Connection, _Place] | None:
        place = _place(self.path)
        while True:
            try:
                connection, opened_at = self._idle.pop()
            except IndexError:
                return None
            if opened_at == place:
                return connection, place
            connection.close()

    def _open(self, *, create: bool) -> tuple[apsw.Connection, _Place]:
        import sqlite_vec

        self.read_only = not _writable(self.path)
        connection = self._connect(create=create)
        try:
            connection.set_busy_timeout(self._busy_ms)
            connection.enable_load_extension(True)
            connection.load_extension(sqlite_vec.loadable_path())
            connection.enable_load_extension(False)
            if not self.read_only:
                # Statements run as far as rows are fetched: without this, the first one alone.
                connection.execute(_PRAGMAS).fetchall()
        except BaseException:
            connection.close()
            raise
        return connection, _place(self.path)

    def _connect(self, *, create: bool) -> apsw.Connection:
        if not self.read_only:
            made = apsw.SQLITE_OPEN_CREATE if create else 0
            return apsw.Connection(str(self.path), flags=apsw.SQLITE_OPEN_READWRITE | made)
        # Without write access SQLite cannot make the shared-memory file that WAL needs; `immutable` does
        # without it, but passes over what is in the log, and is true only as long as nobody writes.
        how = "mode=ro" if _log_bytes(self.path) else "immutable=1"
        uri = f"{self.path.absolute().as_uri()}?{how}"
        return apsw.Connection(uri, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except apsw.Error as error:
            raise _meaning(error, self.path, self.read_only) from error


def _writable(path: Path) -> bool:
    return os.access(path.parent, os.W_OK) and (not path.exists() or os.access(path, os.W_OK))


def _place(path: Path) -> _Place:
    """What a connection is good for: this very file, with this access; without write access, this state of it."""
    try:
        stat = os.stat(path)
    except OSError:
        return ()
    if _writable(path):
        return stat.st_dev, stat.st_ino, True
    return stat.st_dev, stat.st_ino, False, stat.st_size, stat.st_mtime_ns, _log_bytes(path) > 0


def _log_bytes(path: Path) -> int:
    try:
        return os.stat(f"{path}-wal").st_size
    except OSError:
        return 0


def _meaning(error: apsw.Error, path: Path, read_only: bool) -> StoreError:
    if isinstance(error, apsw.CorruptError | apsw.NotADBError | apsw.FormatError):
        return StoreCorrupt(
            f"The index {path} is damaged ({error}). Delete it and run `memory-service reindex`; no memory is lost."
        )
    if isinstance(error, apsw.BusyError | apsw.LockedError):
        return StoreLocked(
            f"Another process keeps the index {path} locked. Wait for it to end, or stop it, and try again."
        )
    if isinstance(error, apsw.FullError):
        return StoreFull(
            f"The disk that holds the index {path} is full. Free some space and run `memory-service reindex`."
        )
    if isinstance(error, apsw.ReadOnlyError | apsw.PermissionsError) or (
        read_only and isinstance(error, apsw.CantOpenError)
    ):
        return StoreReadOnly(f"The index {path} cannot be written. Make its folder writable, or choose another --home.")
    if isinstance(error, apsw.CantOpenError):
        return StoreError(f"The index {path} cannot be opened ({error}). Check that its folder is there and is yours.")
    return StoreError(f"The index {path} failed ({type(error).__name__}: {error}). Run `memory-service doctor`.")
