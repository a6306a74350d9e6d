"""SQLite connections: opening, transactions, and the driver's errors. Imports apsw.

Invariants: one connection is used by one thread at a time; a write transaction takes the write lock at its beginning,
so it never fails half-way for want of it; only a write creates the file; a connection to a file that was deleted or
replaced is not used again, and a write goes to the file at the path when it is committed; the path may be a link to a
file `<stem>-<number><suffix>` beside it, and to nothing else; nothing of apsw leaves this file but rows.
"""

from __future__ import annotations

import itertools
import os
import random
import re
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain, islice
from pathlib import Path
from typing import Any

import apsw
import numpy as np

from indexer.corpus import Ints
from indexer.errors import StoreCorrupt, StoreError, StoreFull, StoreLocked, StoreReadOnly
from indexer.types import file_mode, short_path, to_nfc

Row = tuple[Any, ...]
_Place = tuple[int | bool, ...]
_ASK_AGAIN_SECONDS = 0.01
# Rows that become numbers at once: no other thread has its turn meanwhile, for 2 ms.
_PIECE_ROWS = 4096
# How often a file is opened again that was replaced meanwhile.
_OPENINGS = 50

# No mmap: it makes a scan of 30,000 vectors a third faster (19 instead of 27 ms), but a file that is cut short
# while it is mapped (an editor, a sync tool) ends the process with SIGBUS instead of an error.
# No database is as small as this, and no file longer that names one.
_POINTER_BYTES = 300
_PRAGMAS = """
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = NORMAL;
    PRAGMA fullfsync = ON;
    PRAGMA checkpoint_fullfsync = ON;
    PRAGMA secure_delete = ON;
    PRAGMA cache_size = -16384;
    PRAGMA temp_store = MEMORY;
"""


class Database:
    """One SQLite file with sqlite-vec loaded, shared by the threads of a process.

    Args:
        path: The file; created when it is missing.
        busy_seconds: How long a writer waits for another process.

    Raises:
        StoreError: See the tree in `indexer.errors`.
    """

    def __init__(self, path: Path, *, busy_seconds: float = 30.0) -> None:
        self.path = path
        self._busy_seconds = busy_seconds
        self._idle: deque[tuple[apsw.Connection, _Place]] = deque()
        self._held = threading.local()
        self._closed = False
        self.read_only = False

    def exists(self) -> bool:
        """True if the file exists."""
        try:
            os.stat(real_path(self.path))
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            raise StoreError(
                f"The index {short_path(self.path)} cannot be opened ({error.strerror}). "
                "Check that its folder is there and is yours."
            ) from error
        return True

    def size_bytes(self) -> int:
        """Size of the file and its log; 0 without them."""
        real = real_path(self.path)
        try:
            return os.stat(real).st_size + _log_bytes(real)
        except FileNotFoundError:
            return _log_bytes(real)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """A snapshot for all queries of this thread within the block; blocks may nest."""
        with self._transaction("BEGIN DEFERRED"):
            yield

    @contextmanager
    def writing(self) -> Iterator[None]:
        """A transaction that holds the write lock; an error rolls it back."""
        with self._transaction("BEGIN IMMEDIATE"):
            yield

    def rows(self, sql: str, bindings: Sequence[Any] = ()) -> list[Row]:
        """Run one query and return all its rows."""
        with self._translate_errors(), self._borrow() as (connection, _):
            return connection.execute(sql, tuple(bindings)).fetchall()

    def rows_and_file(self, sql: str) -> tuple[list[Row], tuple[int, ...]]:
        """All rows of one query, and what the file that they are of is known by as long as it exists."""
        with self._translate_errors(), self._borrow() as (connection, place):
            return connection.execute(sql).fetchall(), place[:2]

    @property
    def in_transaction(self) -> bool:
        """True if this thread is within a `reading` or a `writing`."""
        return getattr(self._held, "connection", None) is not None

    def table(self, sql: str, bindings: Sequence[Any] = (), *, columns: int) -> Ints:
        """All rows of a query of whole numbers, int64 of shape (m, columns).

        They are never all Python objects at once, which would be ten times as large and keep every other thread
        waiting: 45 ms with 100,000 rows.
        """
        parts = [np.empty((0, columns), np.int64)]
        with self._translate_errors(), self._borrow() as (connection, _):
            cursor = connection.execute(sql, tuple(bindings))
            while rows := list(islice(cursor, _PIECE_ROWS)):
                flat = np.fromiter(chain.from_iterable(rows), np.int64, len(rows) * columns)
                parts.append(flat.reshape(-1, columns))
        return np.concatenate(parts)

    def value(self, sql: str, bindings: Sequence[Any] = ()) -> Any:
        """The first column of the first row, or None."""
        rows = self.rows(sql, bindings)
        return rows[0][0] if rows else None

    def run(self, sql: str, bindings: Sequence[Any] = ()) -> None:
        """Run statements for their effect."""
        self.rows(sql, bindings)

    def run_many(self, sql: str, bindings: Iterable[Sequence[Any]]) -> None:
        """Run one statement for every set of bindings."""
        with self._translate_errors(), self._borrow() as (connection, _):
            connection.executemany(sql, bindings)

    def insert(self, sql: str, bindings: Sequence[Any]) -> int:
        """Run one INSERT and return the row's id."""
        with self._translate_errors(), self._borrow() as (connection, _):
            connection.execute(sql, tuple(bindings))
            return int(connection.last_insert_rowid())

    def drop_stale(self) -> None:
        """Close the idle connections to a replaced file, so that the next query does not wait for it."""
        kept_value = []
        while (idle := self._idle_connection()) is not None:
            kept_value.append(idle)
        self._idle.extend(kept_value)

    def cut_log(self) -> bool:
        """Write the log back and empty it; False if a reader prevented that."""
        deadline = time.monotonic() + self._busy_seconds
        while True:
            blocked_value, *_ = self.rows("PRAGMA wal_checkpoint(TRUNCATE)")[0]
            # Of another one who does the same SQLite waits for nothing: it says at once that it is blocked.
            if not blocked_value or time.monotonic() > deadline:
                return not blocked_value
            time.sleep(_shortly())

    def close(self) -> None:
        """Close every idle connection; those in use close when they are returned."""
        self._closed = True
        while self._idle:
            self._idle.pop()[0].close()

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[None]:
        if self.in_transaction:
            yield
            return
        writing = begin == "BEGIN IMMEDIATE"
        while True:
            with self._translate_errors(), self._borrow(create=writing) as (connection, place):
                connection.execute(begin)
                # Whoever puts another file in this one's place holds the lock meanwhile: from here on nobody does.
                if writing and place != _place(self.path):
                    connection.execute("ROLLBACK")
                    continue
                self._held.connection, self._held.place = connection, place
                try:
                    yield
                    connection.execute("COMMIT")
                except BaseException:
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
                    raise
                finally:
                    self._held.connection = None
            return

    @contextmanager
    def _borrow(self, *, create: bool = False) -> Iterator[tuple[apsw.Connection, _Place]]:
        held_value = getattr(self._held, "connection", None)
        if held_value is not None:
            yield held_value, self._held.place
            return
        connection, place = self._idle_connection() or self._open(create=create)
        try:
            yield connection, place
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
            self._close_stale(connection)

    def _close_stale(self, connection: apsw.Connection) -> None:
        """Close a connection to a file that is no longer the index.

        The last connection to close writes the log back, and no other thread has its turn meanwhile: 85 ms after a
        rebuild of 100,000 passages. A former generation is deleted, and its log with it.
        """
        if os.path.basename(connection.filename) != os.path.basename(real_path(self.path)):
            connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        connection.close()

    def _open(self, *, create: bool) -> tuple[apsw.Connection, _Place]:
        """A new connection, and the place that it is valid for."""
        for _ in range(_OPENINGS):
            place = _place(self.path)
            try:
                connection = self._open_connection(create=create and not place)
            except apsw.CantOpenError:
                # The file may have been replaced while it was opened: its place tells.
                if place == _place(self.path):
                    raise
                continue
            now = _place(self.path)
            if place == now:
                return connection, place
            connection.close()
        raise StoreLocked(
            f"The index {short_path(self.path)} is replaced again and again. Wait a moment, and try again."
        )

    def _open_connection(self, *, create: bool) -> apsw.Connection:
        import sqlite_vec

        self.read_only = not _writable(self.path)
        connection = self._connect(create=create)
        patience = _Patience(self._busy_seconds)
        try:
            connection.set_busy_handler(patience)
            connection.enable_load_extension(True)
            connection.load_extension(sqlite_vec.loadable_path())
            connection.enable_load_extension(False)
            connection.create_scalar_function("composed", _nfc_function, 1, deterministic=True)
            if not self.read_only:
                for tries in itertools.count():
                    try:
                        # Statements run as far as rows are fetched: without this, the first one alone.
                        connection.execute(_PRAGMAS).fetchall()
                        break
                    except apsw.BusyError:
                        # Of those that open a new file at once, SQLite refuses some without asking the handler.
                        if not patience(tries):
                            raise
        except BaseException:
            connection.close()
            raise
        return connection

    def _connect(self, *, create: bool) -> apsw.Connection:
        real = real_path(self.path)
        if not self.read_only:
            if create:
                # SQLite would let others read it; the log and the shared memory beside it get the mode of the file.
                with suppress(OSError):  # SQLite says why
                    os.close(os.open(real, os.O_RDWR | os.O_CREAT, file_mode(os.path.dirname(real))))
            number = apsw.SQLITE_OPEN_CREATE if create else 0
            return apsw.Connection(real, flags=apsw.SQLITE_OPEN_READWRITE | number)
        # Without write access SQLite cannot make the shared-memory file that WAL needs; `immutable` does
        # without it, but passes over what is in the log, and is true only as long as nobody writes.
        how = "mode=ro" if _log_bytes(real) else "immutable=1"
        uri = f"{Path(real).absolute().as_uri()}?{how}"
        return apsw.Connection(uri, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            yield
        except apsw.Error as error:
            raise _meaning(error, self.path, self.read_only) from error


class _Patience:
    """Waiting of a connection for a lock: it asks again soon, and not for ever.

    SQLite itself waits up to 100 ms at a time: among 6 writers of 6 ms each, that made one wait 740 to 950 ms at the
    99th percentile, and 1.9 s at most; this, 290 and 420 ms.
    """

    def __init__(self, busy_seconds: float) -> None:
        self._busy_seconds = busy_seconds
        self._since = 0.0

    def __call__(self, tries: int) -> bool:
        now = time.monotonic()
        if tries == 0:
            self._since = now
        elif now - self._since > self._busy_seconds:
            return False
        time.sleep(_shortly(tries))
        return True


def _shortly(tries: int = 9) -> float:
    """Seconds until the next try; random, so that waiting connections do not ask all at once."""
    return min(_ASK_AGAIN_SECONDS, (tries + 1) * 0.001) * random.uniform(0.5, 1.5)


def _writable(path: Path) -> bool:
    # Asked before every query: of the usual file, two calls of the system and no path is built.
    folder = os.path.dirname(path) or "."
    return os.access(folder, os.W_OK) and (os.access(path, os.W_OK) or not os.path.exists(path))


def _place(path: Path) -> _Place:
    """Place that a connection is valid for: this file, with this access; without write access, this state of it."""
    try:
        stat = os.stat(path)
        if stat.st_size <= _POINTER_BYTES:
            stat = os.stat(real_path(path))
    except OSError:
        return ()
    if _writable(path):
        return stat.st_dev, stat.st_ino, True
    return stat.st_dev, stat.st_ino, False, stat.st_size, stat.st_mtime_ns, _log_bytes(real_path(path)) > 0


def _log_bytes(path: str) -> int:
    try:
        return os.stat(f"{path}-wal").st_size
    except OSError:
        return 0


def _meaning(error: apsw.Error, path: Path, read_only: bool) -> StoreError:
    if isinstance(error, apsw.CorruptError | apsw.NotADBError | apsw.FormatError):
        return StoreCorrupt(
            f"The index {short_path(path)} is damaged ({error}). "
            "Delete it and run `memory-service reindex`; no memory is lost."
        )
    if isinstance(error, apsw.BusyError | apsw.LockedError):
        return StoreLocked(
            f"Another process keeps the index {short_path(path)} locked. Wait for it to end, or stop it, and try again."
        )
    if isinstance(error, apsw.FullError):
        return StoreFull(
            f"The disk that holds the index {short_path(path)} is full. "
            "Free some space and run `memory-service reindex`."
        )
    if isinstance(error, apsw.ReadOnlyError | apsw.PermissionsError) or (
        read_only and isinstance(error, apsw.CantOpenError)
    ):
        return StoreReadOnly(
            f"The index {short_path(path)} cannot be written. Make its folder writable, or choose another --home."
        )
    if isinstance(error, apsw.CantOpenError):
        return StoreError(
            f"The index {short_path(path)} cannot be opened ({error}). Check that its folder is there and is yours."
        )
    return StoreError(
        f"The index {short_path(path)} failed ({type(error).__name__}: {error}). Run `memory-service doctor`."
    )


def real_path(path: Path) -> str:
    """The file of an index: the path itself, or the generation beside it that it links to or names.

    Raises:
        StoreError: It is a link to something else.
    """
    try:
        target = os.readlink(path)
    except OSError:
        named_text = _named_in(path)
        return os.path.join(path.parent, named_text) if named_text else str(path)
    match = name_of(path).fullmatch(target)
    if match is None or match[2]:
        raise StoreError(
            f"The index {short_path(path)} is a link to a file that was not made for it. "
            "Remove the link and run `memory-service reindex`."
        )
    return os.path.join(path.parent, target)


def _named_in(path: Path) -> str:
    """The generation that a file names, where there are no links; empty for a database."""
    try:
        if os.stat(path).st_size > _POINTER_BYTES:
            return ""
        with open(path, encoding="ascii") as wrapper:
            named_text = wrapper.read().removesuffix("\n")
    except (OSError, UnicodeDecodeError):
        return ""
    match = name_of(path).fullmatch(named_text)
    return named_text if match and not match[2] else ""


def name_of(path: Path) -> re.Pattern[str]:
    """Pattern of the names of an index's generations: the number, and the rest after it."""
    return re.compile(rf"{re.escape(path.stem)}-([1-9][0-9]{{0,17}}){re.escape(path.suffix)}(.*)")


def _nfc_function(*texts: Any) -> str:
    """The function `composed` of statements."""
    return to_nfc(str(texts[0]))
