"""A home in a PostgreSQL database, of which each process keeps nothing but what is derived.

Invariants: a name is refused, never repaired; looking something up makes nothing but the tables; before anything else,
the tables and the locks of the database are made sure of, again and again until they are as they must be.
"""

from __future__ import annotations

import datetime as dt
import math
import secrets
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from indexer import StoreError
from indexer.stores import PostgresDatabase, migrate_tables, open_postgres_index, require_tables
from memory_service.errors import InvalidRequest, NotFound, StorageFailed
from memory_service.home import check_workspace, project_of_workspace
from memory_service.storage.base import StorageCheck, WorkspaceContents, WorkspaceStorage
from memory_service.storage.postgres import PARTS
from memory_service.storage.postgres.direct_line import require_locks
from memory_service.storage.postgres.postgres_checks import check_database
from memory_service.storage.postgres.postgres_coordination import PostgresCoordination
from memory_service.storage.postgres.postgres_documents import PostgresDocuments
from memory_service.storage.postgres.postgres_logs import PostgresLogs
from memory_service.storage.postgres.postgres_records import ExpiredRecords, PostgresRecords
from memory_service.storage.postgres.postgres_source import PostgresSource
from memory_service.storage.postgres.table_rewrites import TableRewrites
from memory_service.storage.postgres.workspace_rows import storage_errors

if TYPE_CHECKING:
    from memory_service.schemas.base import PendingErasure
    from memory_service.storage.home_join import HomeJoin

# The clock of the database is asked so often; between, that of the process tells how much time has gone by.
_CLOCK_SECONDS = 60.0


def migrate_database(address: str, direct_address: str = "") -> tuple[str, list[str]]:
    """Applies the steps that the tables of a database lack; gives where it is, and their names."""
    database = PostgresDatabase(address, direct_address=direct_address)
    try:
        with storage_errors():
            return database.place, migrate_tables(database, PARTS)
    finally:
        database.close()


def _prepare(database: PostgresDatabase) -> None:
    require_tables(database, PARTS)
    require_locks(database)


class PostgresStorage:
    """The rows of one home; see `Storage`.

    Args:
        address: The address of the database, which may be that of a pooler in transaction mode.
        direct_address: That of the server itself, if `address` is a pooler's.
        home: The folder of what is derived, or of this machine alone.
    """

    def __init__(self, address: str, *, direct_address: str = "", home: Path) -> None:
        self._database = PostgresDatabase(address, direct_address=direct_address, prepare=_prepare)
        self._home = home
        self._expiry = ExpiredRecords()
        self._clock: tuple[float, dt.datetime] | None = None
        self.coordination = PostgresCoordination(self._database)
        self.records = PostgresRecords(self._database, "", self._expiry)
        self._rewrites = TableRewrites(self._database, self.records, self.coordination)

    @property
    def place(self) -> str:
        """The database, without user and password."""
        return self._database.place

    def workspaces(self) -> list[str]:
        """Names of all workspaces, sorted."""
        with storage_errors(), self._database.transaction(read_only=True) as transaction:
            rows = transaction.rows(
                "SELECT name FROM workspaces WHERE made_at IS NOT NULL AND left(name, 1) <> '.' "
                'ORDER BY name COLLATE "C"'
            )
        return [name for (name,) in rows]

    def contains(self, name: str) -> bool:
        """True if a workspace was made."""
        check_workspace(name)
        with storage_errors():
            return self._database.is_made(name)

    def make(self, name: str) -> None:
        """Makes a workspace, unless it is there."""
        check_workspace(name)
        with storage_errors():
            self._database.number(name, make=True)

    def workspace(self, name: str) -> WorkspaceStorage:
        """The rows of a workspace."""
        check_workspace(name)
        return self._parts(name, self._home / name)

    @contextmanager
    def temporary_workspace(self) -> Iterator[WorkspaceStorage]:
        """The rows of a new workspace, which are deleted after the block."""
        name = f".temporary-{secrets.token_hex(8)}"
        with tempfile.TemporaryDirectory() as folder:
            try:
                yield self._parts(name, Path(folder))
            finally:
                with storage_errors():
                    _delete_rows(self._database, name)

    def _parts(self, name: str, scratch: Path) -> WorkspaceStorage:
        database, lock = self._database, f"{name}/.locks/documents"
        return WorkspaceStorage(
            documents=PostgresDocuments(database, name, lock=lambda: self.coordination.lock(lock)),
            records=PostgresRecords(database, name, self._expiry),
            scratch=scratch,
            open_logs=lambda: PostgresLogs(database, name),
            open_source=lambda: PostgresSource(database, name),
            open_index=lambda: open_postgres_index(database, name, scratch),
            read_extra=_read_extra,
        )

    def contents(self, name: str) -> WorkspaceContents:
        """Numbers on a workspace."""
        check_workspace(name)
        with storage_errors(), self._database.transaction(read_only=True) as transaction:
            row = transaction.row("SELECT made_at FROM workspaces WHERE name = %s AND made_at IS NOT NULL", [name])
        if row is None:
            raise NotFound(f"There is no workspace {name} in {self.place}.")
        parts = self.workspace(name)
        documents, sessions = parts.documents.scan().documents.values(), parts.logs.list()
        changes = [document.modified_at for document in documents] + [session.last_activity for session in sessions]
        return WorkspaceContents(
            documents=len(documents),
            sessions=len(sessions),
            modified_at=max(changes, default=row[0]),
            project=project_of_workspace(parts.scratch),
        )

    def secret(self, name: str, size_bytes: int) -> bytes:
        """Random bytes in a row of the home."""
        raw = self.stored_secret(name)
        if raw is None:
            self.store_secret(name, secrets.token_bytes(size_bytes))
            raw = self.stored_secret(name)
        if raw is None or len(raw) != size_bytes:
            raise StorageFailed(
                f"The secret {name} in {self.place} is damaged. Restore it, or delete it to begin anew."
            )
        return raw

    def stored_secret(self, name: str) -> bytes | None:
        """The bytes in a row of the home."""
        with storage_errors(), self._database.transaction(read_only=True) as transaction:
            row = transaction.row("SELECT value FROM secrets WHERE name = %s", [name])
        return None if row is None else bytes(row[0])

    def store_secret(self, name: str, raw: bytes) -> None:
        """Makes a row of the home, unless it is there."""
        with storage_errors(), self._database.transaction() as transaction:
            transaction.execute(
                "INSERT INTO secrets (name, value) VALUES (%s, %s) ON CONFLICT (name) DO NOTHING", [name, raw]
            )

    def sweep(self, name: str) -> None:
        """Nothing of the rows, as what a killed writer began is rolled back; tables are rewritten when that is due."""
        check_workspace(name)
        self._rewrites.start()

    def join(self, home: Path, *, dry_run: bool = False) -> HomeJoin:
        """Refused: folders of another home are not copied into a database by this."""
        raise InvalidRequest(
            f"{home} cannot be joined to the database {self.place}. Move it there: memory-service migrate --from {home}"
        )

    def other_homes(self) -> list[HomeJoin]:
        """None: no folder stands for a database."""
        return []

    def note_erasure(self) -> Sequence[PendingErasure]:
        """The tables until they are rewritten, the write-ahead log, backups."""
        return self._rewrites.note()

    def rewrite(self) -> Sequence[str]:
        """Rewrites the tables that hold contents, which are locked meanwhile, one after another."""
        return self._rewrites.run()

    def now(self) -> dt.datetime:
        """The time of the database's clock, which is asked for it once a minute."""
        asked_at, time_then = self._clock or (-math.inf, None)
        if time_then is None or time.monotonic() - asked_at > _CLOCK_SECONDS:
            asked_at = time.monotonic()
            with storage_errors():
                [(time_then,)] = self._database.run("SELECT clock_timestamp()", read_only=True).fetchall()
            self._clock = asked_at, time_then
        return (time_then + dt.timedelta(seconds=time.monotonic() - asked_at)).astimezone(dt.UTC)

    def fault(self) -> StorageCheck | None:
        """The reason why nothing can be written into the database."""
        try:
            with self._database.transaction() as transaction:
                row = transaction.row(
                    "SELECT pg_is_in_recovery(), bool_and(has_table_privilege('records', r)) "
                    "FROM unnest(ARRAY['INSERT', 'UPDATE', 'DELETE']) r"
                )
        except StoreError as error:
            detail, _, remedy = str(error).partition(". ")
            return StorageCheck("home", detail, remedy)
        if row == (False, True):
            return None
        if row and row[0]:
            return StorageCheck("home", "it is a standby, which takes no writes", "Set database_url to the primary.")
        return StorageCheck(
            "home", "its role may not write to its tables", "`memory-service doctor` names what it lacks."
        )

    def checks(self) -> Sequence[StorageCheck]:
        """Checks of the database."""
        return check_database(self._database)

    def close(self) -> None:
        """Gives all connections back."""
        self._rewrites.close()
        self.coordination.close()
        self._database.close()


def _delete_rows(database: PostgresDatabase, name: str) -> None:
    """Delete all rows of a workspace, whichever tables there are."""
    number = database.number(name)
    if number is None:
        return
    with database.transaction(number) as transaction:
        tables = transaction.rows(
            "SELECT c.oid::regclass::text FROM pg_class c, pg_class w, pg_attribute a "
            "WHERE w.oid = 'workspaces'::regclass AND c.relnamespace = w.relnamespace "
            "AND c.relkind IN ('r', 'p') AND NOT c.relispartition "
            "AND a.attrelid = c.oid AND a.attname = 'ws' "
            "ORDER BY c.relname = 'workspaces'"
        )
        for (table,) in tables:
            transaction.connection.execute(f"DELETE FROM {table} WHERE ws = %s", [number])


def _read_extra(path: str) -> bytes:
    raise NotFound(f"There is no file {path}: a database has no folders beside its workspaces.")
