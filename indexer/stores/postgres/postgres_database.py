"""A PostgreSQL database: its connections, transactions and errors; whoever keeps tables in it writes the SQL.

Invariants: a transaction is of one thread and, for row-level security, of one workspace; one that begins within another
of its thread is a part of it. A connection that broke costs the statement that finds out, and that only once it has
been begun: the first statement of a transaction is sent again. No message holds a password.

Source: https://www.psycopg.org/psycopg3/docs/advanced/pipeline.html
"""

from __future__ import annotations

import logging
import secrets
import select
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from threading import Lock, RLock, local
from typing import TYPE_CHECKING, Any, Final, LiteralString, TypeAlias

from indexer.errors import StoreError, StoreLocked
from indexer.stores.postgres.postgres_address import CONNECT_SECONDS, connection_options, passwords_of, place_of
from indexer.stores.postgres.postgres_errors import explain_error

if TYPE_CHECKING:
    import psycopg
    from psycopg_pool import ConnectionPool

Connection: TypeAlias = "psycopg.Connection[tuple[Any, ...]]"
Cursor: TypeAlias = "psycopg.Cursor[tuple[Any, ...]]"
Parameters: TypeAlias = Sequence[Any] | Mapping[str, Any]

# After so long without a connection it is asked why there is none.
_PATIENCE_SECONDS = 0.5
# A statement that waits longer for another transaction's row is given up.
LOCK_SECONDS = 30
# A process that was stopped within a transaction keeps its rows for so long, which is less.
IDLE_SECONDS = 25
# So many connections may wait for the answer to the end of a read, beside the pool.
_MOST_QUIET = 4
_MOST_WORKSPACES = 2**31 - 1
# No workspace: for tables that are of all of them.
NO_WORKSPACE = 0
# What a failover to a standby or a restart changes: numbers that were given may be given again after it.
INCARNATION: Final[LiteralString] = (
    "(SELECT extract(epoch FROM pg_postmaster_start_time())::text || '/' || timeline_id FROM pg_control_checkpoint())"
)
_SETTINGS_OF_ONE: Final[LiteralString] = "SELECT set_config('app.ws', %s, true), set_config('lock_timeout', %s, true)"
_SETTINGS: Final[LiteralString] = (
    "SELECT set_config('app.ws', %s, true), set_config('lock_timeout', %s, true), "
    "set_config('idle_in_transaction_session_timeout', CASE current_setting('transaction_read_only') "
    "WHEN 'on' THEN '0' ELSE %s END, true)"
)
_INSTALL = (
    "PostgreSQL needs the package psycopg, which is not installed. Install: pip install 'memory-service[postgres]'"
)


class Transaction:
    """A transaction, which is begun together with its first statement: that costs no trip of its own.

    Args:
        database: The database.
        workspace: Number of the workspace that row-level security lets through.
        read_only: Whether all statements see one state, and none may write.
    """

    def __init__(self, database: PostgresDatabase, workspace: int, *, read_only: bool) -> None:
        self._database = database
        self.workspace = workspace
        self.read_only = read_only
        self.place = database.place
        self._connection: Connection | None = None

    def execute(self, query: LiteralString, parameters: Parameters = (), *, binary: bool = False) -> Cursor:
        """Run one statement; gives the cursor with its rows.

        Args:
            query: The statement, with `%s` or `%(name)s` for values.
            parameters: The values.
            binary: Whether the rows come in binary form: bytes take half of what they take as text.
        """
        if self._connection is not None:
            return self._connection.execute(query, parameters, binary=binary)
        return self._begin(query, parameters, binary=binary)

    def rows(self, query: LiteralString, parameters: Parameters = (), *, binary: bool = False) -> list[tuple[Any, ...]]:
        """Run one statement; gives all its rows."""
        return self.execute(query, parameters, binary=binary).fetchall()

    def row(self, query: LiteralString, parameters: Parameters = (), *, binary: bool = False) -> tuple[Any, ...] | None:
        """Run one statement; gives its first row, or None."""
        return self.execute(query, parameters, binary=binary).fetchone()

    @property
    def connection(self) -> Connection:
        """The connection, for what needs more than statements, such as COPY."""
        if self._connection is None:
            self._begin("SELECT", ())
        assert self._connection is not None
        return self._connection

    def part(self, *, read_only: bool) -> AbstractContextManager[object]:
        """A part of it while a block runs, which is undone alone if it fails, and if there is something to undo."""
        return nullcontext() if read_only or self.read_only else self.connection.transaction()

    def end(self, word: LiteralString) -> None:
        """Commit it or roll it back, and give the connection back."""
        connection, self._connection = self._connection, None
        if connection is None or (self.read_only and word == "COMMIT" and self._database.end_later(connection)):
            return
        try:
            connection.execute(word)
        finally:
            self._database.pool.putconn(connection)

    def _begin(self, query: LiteralString, parameters: Parameters, *, binary: bool = False) -> Cursor:
        import psycopg

        for attempt in (0, 1):
            connection = self._database.take()
            try:
                with connection.pipeline():
                    connection.execute(
                        "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY" if self.read_only else "BEGIN READ WRITE"
                    )
                    connection.execute(_SETTINGS, [str(self.workspace), f"{LOCK_SECONDS}s", f"{IDLE_SECONDS}s"])
                    cursor = connection.execute(query, parameters, binary=binary)
            except psycopg.OperationalError:
                is_broken = connection.broken
                self._database.pool.putconn(connection)
                if attempt and is_broken:
                    self._database.ask_why()
                if attempt or not is_broken:
                    raise
                # All that were open when the server went are like this one.
                self._database.drop_ended()
                self._database.pool.check()
            except BaseException:
                self._database.pool.putconn(connection)
                raise
            else:
                self._connection = connection
                return cursor
        raise AssertionError


class PostgresDatabase:
    """A database, which is reached when it is first asked.

    Args:
        address: Its address, `postgresql://…`, which may be that of a pooler in transaction mode.
        direct_address: That of the server itself, if `address` is a pooler's; for locks that last and for notices.
        connections: Largest number of connections that transactions take at once.
        prepare: Called before the first transaction, and again until it raises nothing: makes sure of the tables.
    """

    def __init__(
        self,
        address: str,
        *,
        direct_address: str = "",
        connections: int = 16,
        prepare: Callable[[PostgresDatabase], None] | None = None,
    ) -> None:
        self._address = address
        self._direct_address = direct_address or address
        self._is_pooled = bool(direct_address)
        self._connections = connections
        self._lock = Lock()
        self._pool: ConnectionPool[Connection] | None = None
        self._numbers: dict[str, int] = {}
        self._made_names = set[str]()
        self._current = local()
        self._quiet_connections: deque[Connection] = deque()
        self._prepare = prepare or (lambda _: None)
        self._is_ready, self._is_being_prepared = prepare is None, False
        self._preparing = RLock()
        self.place = place_of(address)

    @property
    def pool(self) -> ConnectionPool[Connection]:
        """The pool of connections."""
        with self._lock:
            if self._pool is None:
                from psycopg_pool import ConnectionPool

                # What they say of connections that are lost or not to be had, whoever asked for one says better.
                for name in ("psycopg", "psycopg.pool"):
                    logging.getLogger(name).setLevel(logging.ERROR)
                self._pool = ConnectionPool(
                    self._address,
                    min_size=0,
                    max_size=self._connections,
                    timeout=CONNECT_SECONDS,
                    max_idle=300,
                    reconnect_timeout=CONNECT_SECONDS,
                    open=True,
                    kwargs=connection_options(self._address, through_pooler=self._is_pooled),
                )
            return self._pool

    @contextmanager
    def transaction(self, workspace: int = NO_WORKSPACE, *, read_only: bool = False) -> Iterator[Transaction]:
        """A transaction while a block runs; one within another of the same thread is a part of it, and undone alone.

        Args:
            workspace: Number of the workspace, see `number`.
            read_only: Whether all statements see one state, and none may write.

        Raises:
            StoreError: The database does not do it; then nothing has changed.
        """
        outer: Transaction | None = getattr(self._current, "transaction", None)
        if outer is not None:
            assert outer.workspace == workspace or NO_WORKSPACE in (workspace, outer.workspace)
            assert read_only or not outer.read_only
            with self.errors(), outer.part(read_only=read_only):
                yield outer
            return
        self.prepare()
        transaction = Transaction(self, workspace, read_only=read_only)
        self._current.transaction = transaction
        try:
            with self.errors():
                try:
                    yield transaction
                except BaseException:
                    # A connection that broke has rolled it back already.
                    with suppress(Exception):
                        transaction.end("ROLLBACK")
                    raise
                transaction.end("COMMIT")
        finally:
            self._current.transaction = None

    def run(
        self,
        query: LiteralString,
        parameters: Parameters = (),
        *,
        workspace: int = NO_WORKSPACE,
        read_only: bool = False,
        binary: bool = False,
    ) -> Cursor:
        """Run one statement as a transaction, in one trip; within a transaction of the thread, as a part of that.

        Args:
            query: The statement, with `%s` or `%(name)s` for values.
            parameters: The values.
            workspace: Number of the workspace, see `number`.
            read_only: Whether it writes nothing.
            binary: Whether the rows come in binary form.

        Raises:
            StoreError: The database does not do it; if it broke at that moment, it may have been done.
        """
        if self.is_in_transaction:
            with self.transaction(workspace, read_only=read_only) as transaction:
                return transaction.execute(query, parameters, binary=binary)
        self.prepare()
        with self.errors():
            connection = self._take_alive()
            try:
                # What comes before the pipeline's end is one transaction, without words for its begin and end.
                with connection.pipeline():
                    connection.execute(_SETTINGS_OF_ONE, [str(workspace), f"{LOCK_SECONDS}s"])
                    return connection.execute(query, parameters, binary=binary)
            finally:
                self.pool.putconn(connection)
        raise AssertionError

    def _take_alive(self) -> Connection:
        """A connection of the pool that did not break while it was there: what is sent on it is not sent again."""
        from psycopg import OperationalError

        while True:
            connection = self.take()
            if not _has_input(connection.fileno()):
                return connection
            try:
                connection.execute("SELECT")
            except OperationalError:
                self.pool.putconn(connection)
                self.drop_ended()
                self.pool.check()
            else:
                return connection

    def prepare(self) -> None:
        """Make sure once that the database can be worked with, as whoever opened it says."""
        if not self._is_ready:
            self._prepare_once()

    def _prepare_once(self) -> None:
        with self._preparing:
            # Its own transactions, of this thread, need none.
            if self._is_ready or self._is_being_prepared:
                return
            self._is_being_prepared = True
            try:
                self._prepare(self)
                self._is_ready = True
            finally:
                self._is_being_prepared = False

    def number(self, workspace: str, *, make: bool = False) -> int | None:
        """The number of a workspace, which its rows are under; None if it has none, and is not to be made."""
        if make and workspace not in self._made_names:
            drawn_number = self._draw_number(
                "INSERT INTO workspaces (name, made_at, ws) VALUES (%s, now(), %s) "
                "ON CONFLICT (name) DO UPDATE SET made_at = now() WHERE workspaces.made_at IS NULL",
                workspace,
            )
            if not self.is_in_transaction:
                self._made_names.add(workspace)
            return drawn_number
        if (number := self._numbers.get(workspace)) is not None:
            return number
        with self.transaction(read_only=True) as transaction:
            row = transaction.row("SELECT ws FROM workspaces WHERE name = %s", [workspace])
        return self._note_number(workspace, int(row[0])) if row else None

    def reserved_number(self, workspace: str) -> int:
        """The same, of one that need not be made: what is noted of it before that has its number."""
        return self.number(workspace) or self._draw_number(
            "INSERT INTO workspaces (name, ws) VALUES (%s, %s) ON CONFLICT (name) DO NOTHING", workspace
        )

    def is_made(self, workspace: str) -> bool:
        """True if there is a workspace of a name, whose number is not only reserved."""
        if workspace not in self._made_names:
            with self.transaction(read_only=True) as transaction:
                row = transaction.row("SELECT FROM workspaces WHERE name = %s AND made_at IS NOT NULL", [workspace])
            if row is None:
                return False
            if not self.is_in_transaction:
                self._made_names.add(workspace)
        return True

    def _draw_number(self, statement: LiteralString, workspace: str) -> int:
        with self.transaction() as transaction:
            transaction.execute(statement, [workspace, _free_number(transaction)])
            row = transaction.row("SELECT ws FROM workspaces WHERE name = %s", [workspace])
        assert row is not None
        return self._note_number(workspace, int(row[0]))

    def _forget_names(self) -> None:
        """Look up the numbers of workspaces again: a database that was away may be one that lacks the last ones."""
        self._numbers.clear()
        self._made_names.clear()

    def _note_number(self, workspace: str, number: int) -> int:
        # What is rolled back was never there.
        if not self.is_in_transaction:
            self._numbers[workspace] = number
        return number

    @property
    def is_in_transaction(self) -> bool:
        """True if the thread is within a transaction, of which what follows is a part."""
        return getattr(self._current, "transaction", None) is not None

    def take(self) -> Connection:
        """A connection of the pool, which the caller puts back there.

        Raises:
            StoreError: The server does not answer, or all connections are at work for too long.
        """
        from psycopg_pool import PoolTimeout

        while (connection := self._ended_connection()) is not None:
            try:
                _await_end(connection)
            except Exception:
                self.pool.putconn(connection)
            else:
                return connection
        with suppress(PoolTimeout):
            return self.pool.getconn(_PATIENCE_SECONDS)
        # The pool does not say why it has none: a connection beside it does, unless all of the pool are at work.
        self._reach().close()
        try:
            return self.pool.getconn(CONNECT_SECONDS)
        except PoolTimeout:
            raise StoreLocked(
                f"All {self._connections} connections of this process to the database {self.place} are at work. "
                "Try again later."
            ) from None

    def ask_why(self) -> None:
        """Begin a transaction on a new connection, whose error tells more than that of one that was closed.

        Raises:
            StoreError: It cannot be begun.
        """
        with self.errors(), self._reach() as connection:
            connection.execute("BEGIN")

    def _reach(self) -> Connection:
        import psycopg

        with self.errors():
            return psycopg.connect(self._address, **connection_options(self._address, through_pooler=self._is_pooled))

    def connect(self, **options: Any) -> Connection:
        """A connection of its own to the server itself, outside the pool, without a transaction; the caller closes it.

        Args:
            options: Options of libpq beside those of all connections.

        Raises:
            StoreError: The server does not answer.
        """
        self._forget_names()
        with self.errors(is_direct=True):
            import psycopg

            return psycopg.connect(
                self._direct_address, **connection_options(self._direct_address, through_pooler=False) | options
            )

    @contextmanager
    def errors(self, *, is_direct: bool = False) -> Iterator[None]:
        """Turns errors of the database into those of the index library.

        Args:
            is_direct: Whether they come from the server's own address.
        """
        try:
            yield
        except ImportError as error:
            if error.name not in ("psycopg", "psycopg_pool"):
                raise
            raise StoreError(_INSTALL) from None
        except StoreError:
            raise
        except Exception as error:
            if not type(error).__module__.startswith("psycopg"):
                raise
            # Its own text may hold values, and where an address cannot be read, the password.
            raise self._error(error, is_direct=is_direct and self._is_pooled) from None

    def end_later(self, connection: Connection) -> bool:
        """Send the end of a read without waiting for the answer; False if the connection is wanted now.

        The next transaction takes the answer, which is there by then: that spares each read a trip.
        """
        from psycopg import OperationalError
        from psycopg.pq import TransactionStatus

        is_open = connection.pgconn.transaction_status == TransactionStatus.INTRANS
        if not is_open or len(self._quiet_connections) >= _MOST_QUIET or self.pool.get_stats().get("requests_waiting"):
            return False
        try:
            connection.pgconn.send_query(b"COMMIT")
            connection.pgconn.flush()
        except OperationalError:
            return False  # it broke: whoever ends it finds out, and gives it back
        self._quiet_connections.append(connection)
        return True

    def drop_ended(self) -> None:
        """Close the connections whose last read has ended, as they are like one that broke."""
        self._forget_names()
        while (connection := self._ended_connection()) is not None:
            connection.close()
            self.pool.putconn(connection)

    def _ended_connection(self) -> Connection | None:
        try:
            return self._quiet_connections.pop()
        except IndexError:
            return None

    def close(self) -> None:
        """Gives all connections back."""
        if self._pool is not None:
            self.drop_ended()
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.close()

    def _error(self, error: Exception, *, is_direct: bool) -> StoreError:
        state: str = getattr(error, "sqlstate", None) or ""
        if not state or state[:2] in ("08", "23", "57"):
            self._forget_names()
        kind, reason, remedy = explain_error(error, state)
        place = self.place
        if is_direct:
            place, remedy = place_of(self._direct_address), remedy.replace("database_url", "database_direct_url")
        for address in (self._address, self._direct_address):
            reason = reason.replace(address, place)
            for secret in passwords_of(address):
                reason = reason.replace(secret, "***")
        return kind(f"The database {place} failed: {reason.rstrip('. ')}. {remedy}")


def _await_end(connection: Connection) -> None:
    """Take the answer to the end of a read."""
    from psycopg.generators import fetch_many

    connection.wait(fetch_many(connection.pgconn))


def _free_number(transaction: Transaction) -> int:
    """A number that no workspace has."""
    while True:
        number = secrets.randbelow(_MOST_WORKSPACES) + 1
        if transaction.row("SELECT FROM workspaces WHERE ws = %s", [number]) is None:
            return number


def _has_input(descriptor: int) -> bool:
    """True if something came on a connection that nothing was asked on, such as its end."""
    if not hasattr(select, "poll"):
        return True
    waiting = select.poll()
    waiting.register(descriptor, select.POLLIN)
    return bool(waiting.poll(0))
