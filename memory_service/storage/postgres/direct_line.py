"""The direct line of a process to the database: one connection for locks that last and for notices.

Invariants: the line answers a heartbeat, or the database ends it within three seconds, whatever has become of the
process; with it go its locks. Each connection of the line has another number, so whoever took a lock by one learns that
it is lost. A line that broke is opened again, by its thread or by whoever needs it first.

Source: https://www.postgresql.org/docs/current/runtime-config-client.html, idle_session_timeout
"""

from __future__ import annotations

import logging
import secrets
import selectors
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, LiteralString, TypeAlias

from indexer import StoreError
from indexer.stores import DatabaseUnreachable, PostgresDatabase

_BEAT_SECONDS: Final = 0.5
# A line that was silent for so long is ended by the database.
SILENCE_SECONDS: Final = 2.5
_CHANNEL: Final[LiteralString] = "memory_service"
_log = logging.getLogger("memory_service.storage")

# Runs a statement on the line; gives its rows.
Parameters: TypeAlias = Sequence[Any] | Mapping[str, Any]
Execute: TypeAlias = Callable[[LiteralString, Parameters], list[tuple[Any, ...]]]


class LineLost(StoreError):
    """The connection by which a lock was taken is not there any more, and nor is the lock."""


class DirectLine:
    """The line of one process, opened when it is first needed.

    Args:
        database: The database.
        on_notice: Called in the thread of the line with each notice; never waits.
        on_beat: Called in the thread of the line at each heartbeat, with what runs statements.
    """

    def __init__(
        self,
        database: PostgresDatabase,
        on_notice: Callable[[str], None],
        on_beat: Callable[[Execute], None],
    ) -> None:
        self._database = database
        self._on_notice = on_notice
        self._on_beat = on_beat
        # Held while a statement runs; others change what belongs to the line within it.
        self.mutex = threading.RLock()
        self._connection: Any = None
        self._answered_at = 0.0
        self.number = 0
        self._outgoing = deque[str]()
        self._ending = threading.Event()
        self._thread: threading.Thread | None = None
        self._wake_reader, self._wake_writer = socket.socketpair()
        self._wake_reader.setblocking(False)
        self._wake_writer.setblocking(False)

    def rows(self, query: LiteralString, parameters: Parameters = (), *, number: int = 0) -> list[tuple[Any, ...]]:
        """Run a statement.

        Args:
            query: The statement.
            parameters: Its values.
            number: That of the connection it is meant for; 0 for any, and then a line that broke is opened again.

        Raises:
            LineLost: The connection is another one.
            StoreError: The database does not do it.
        """
        self.begin()
        with self.mutex:
            lost_lock = LineLost("The connection to the database was lost, and with it the lock.")
            if number and not self.is_alive(number):
                raise lost_lock
            had_connection = self._connection is not None
            try:
                return self._execute(query, parameters)
            except StoreError:
                if self._connection is not None or not had_connection:
                    raise
            if number:
                raise lost_lock
            return self._execute(query, parameters)

    def is_alive(self, number: int) -> bool:
        """True if the database has not ended a connection of the line yet, as far as the clock of this machine says."""
        return (
            number == self.number
            and self._connection is not None
            and time.monotonic() - self._answered_at < SILENCE_SECONDS
        )

    def send(self, notice: str) -> None:
        """Have a notice sent soon; one that cannot be is lost."""
        self._outgoing.append(notice)
        self.begin()
        self._wake()

    def begin(self) -> None:
        """Begin to listen, and to answer for this process."""
        with self.mutex:
            if self._thread is None and not self._ending.is_set():
                self._thread = threading.Thread(target=self._watch, name="database line", daemon=True)
                self._thread.start()

    def close(self) -> None:
        """End it; the locks are free then."""
        self._ending.set()
        self._wake()
        if self._thread is not None:
            self._thread.join()
        with self.mutex:
            self._drop()
        self._wake_reader.close()
        self._wake_writer.close()

    def _wake(self) -> None:
        with suppress(OSError):
            self._wake_writer.send(b"x")

    def _execute(self, query: LiteralString, parameters: Parameters) -> list[tuple[Any, ...]]:
        connection = self._open_connection()
        sent_at = time.monotonic()
        try:
            with self._database.errors():
                cursor = connection.execute(query, parameters)
                rows = cursor.fetchall() if cursor.description else []
        finally:
            if connection.closed:
                self._drop()
        self._answered_at = sent_at
        return rows

    def _open_connection(self) -> Any:
        if self._connection is None:
            self._database.prepare()
            # A network that is gone is noticed as soon as the database would notice it.
            connection = self._database.connect(tcp_user_timeout=int(SILENCE_SECONDS * 1000))
            try:
                with self._database.errors():
                    connection.execute(f"SET idle_session_timeout = '{int(SILENCE_SECONDS * 1000)}ms'")
                    connection.execute(f"LISTEN {_CHANNEL}")
            except BaseException:
                connection.close()
                raise
            connection.add_notify_handler(lambda notice: self._on_notice(notice.payload))
            self._connection, self._answered_at = connection, time.monotonic()
            self.number += 1
        return self._connection

    def _drop(self) -> None:
        if self._connection is not None:
            with suppress(Exception):
                self._connection.close()
            self._connection = None

    def _watch(self) -> None:
        """Answer heartbeats, send notices and hear them until the end."""
        is_lost, due = False, 0.0
        while not self._ending.is_set():
            try:
                with self.mutex:
                    if time.monotonic() >= due:
                        due = time.monotonic() + _BEAT_SECONDS
                        self._execute("SELECT 1", ())
                        self._on_beat(self._execute)
                    if self._outgoing:
                        notices = [self._outgoing.popleft() for _ in range(len(self._outgoing))]
                        self._execute(
                            "SELECT pg_notify(%s, notice) FROM unnest(%s::text[]) notice", [_CHANNEL, notices]
                        )
                    descriptor = self._hear()
            except StoreError as error:
                # One that never was is an error of whoever asked for it.
                if not is_lost and self.number:
                    _log.warning("the direct connection to the database is lost: %s", error)
                is_lost, due = True, 0.0
                self._ending.wait(_BEAT_SECONDS)
                continue
            is_lost = False
            self._await(descriptor, due)

    def _hear(self) -> int:
        """Take the notices that have come, which statements take as well; gives what to wait at for the next."""
        connection = self._connection
        if connection is None:
            # A statement of another thread found it broken, and let it go.
            raise DatabaseUnreachable("The direct connection to the database is lost. It is made anew at once.")
        try:
            with self._database.errors():
                connection.pgconn.consume_input()
                while notice := connection.pgconn.notifies():
                    self._on_notice(notice.extra.decode())
                return int(connection.fileno())
        except StoreError:
            self._drop()
            raise

    def _await(self, descriptor: int, due: float) -> None:
        with suppress(OSError, ValueError), selectors.DefaultSelector() as selector:
            selector.register(descriptor, selectors.EVENT_READ)
            selector.register(self._wake_reader, selectors.EVENT_READ)
            selector.select(max(0.0, due - time.monotonic()))
        with suppress(BlockingIOError):
            self._wake_reader.recv(4096)


# A database of one run of one server.
_IDENTITY: Final[LiteralString] = "current_database() || ' ' || pg_postmaster_start_time()"


def require_locks(database: PostgresDatabase) -> None:
    """Make sure that locks are what they say: what one connection holds, another one does not get.

    Raises:
        StoreError: The engine has only stubs of them, a pooler stands before it, or the direct address leads elsewhere.
    """
    key = secrets.randbits(62)
    connection = database.connect()
    try:
        with database.errors(), database.transaction() as transaction:
            # The lock is taken before anything is asked of the other connection.
            row = connection.execute(
                f"SELECT pg_backend_pid(), version(), {_IDENTITY} FROM pg_try_advisory_lock(%s)", [key]
            ).fetchone()
            other_row = transaction.row(f"SELECT pg_try_advisory_xact_lock(%s), {_IDENTITY}", [key])
            assert row is not None and other_row is not None
            is_pooled = row[0] != connection.info.backend_pid
    finally:
        connection.close()
    if row[2] != other_row[1]:
        raise StoreError(
            f"The addresses database_url, {database.place}, and database_direct_url lead to different databases. Set "
            "both to the same one, the second to the server itself."
        )
    engine = " ".join(str(row[1]).split()[:2])
    if is_pooled and engine.startswith("PostgreSQL"):
        raise StoreError(
            f"The database {database.place} was reached through a pooler, which gives one lock to two clients. Set "
            "database_direct_url to the address of the server itself."
        )
    if other_row[0]:
        raise StoreError(
            f"The database {database.place} is {engine}, whose advisory locks exclude nobody: two processes would work "
            "on one session at once. Use PostgreSQL, or an engine that has such locks."
        )
