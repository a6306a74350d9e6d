"""The tables that hold contents are rewritten after an erasure: what was deleted stays in their files until then.

Invariants: an erasure is noted durably before it is answered, and its note goes when a rewrite that began after it has
left no row of a table behind; one process rewrites at a time, one table at a time.

Source: https://www.postgresql.org/docs/current/sql-vacuum.html
"""

from __future__ import annotations

import datetime as dt
import logging
import re
import secrets
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from indexer import StoreError
from indexer.stores import PostgresDatabase
from memory_service.errors import MemoryServiceError, StorageFailed
from memory_service.schemas.base import PendingErasure
from memory_service.storage.coordination import Coordination
from memory_service.storage.postgres.workspace_rows import storage_errors
from memory_service.storage.record_store import RecordKind, RecordStore

if TYPE_CHECKING:
    import psycopg

LOG = logging.getLogger(__name__)

# Tables with texts, or with what is made of them; statistics are kept of none of these columns.
CONTENT_TABLES: Final = (
    "documents", "document_versions", "log_records", "blobs", "records", "channel_messages",
    "index_passages", "index_labels", "index_vectors", "index_packs",
)  # fmt: skip
# What was erased is gone from their files within a day. A rewrite begins an hour before, for all erasures until then.
_PROMISED: Final = dt.timedelta(hours=24)
_BEGIN_AFTER: Final = dt.timedelta(hours=23)
_FIRST_LOOK_SECONDS, _LOOK_SECONDS = 60.0, 900.0
_LEASE = "rewrite"
# Whoever waits for a table to be free has all others wait behind it.
_LOCK_WAIT: Final = "SET lock_timeout = '5s'"
_NUMBER = re.compile(r"\s*(\d+)")


class TableRewrites:
    """The rewrites of one database.

    Args:
        database: The database.
        records: The small records of the home.
        coordination: That of the home.
    """

    def __init__(self, database: PostgresDatabase, records: RecordStore, coordination: Coordination) -> None:
        self._database = database
        self._records = records
        self._coordination = coordination
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None
        self._ending = threading.Event()

    def note(self) -> list[PendingErasure]:
        """Notes durably that something was erased just now; gives where it still is, and until when."""
        now = dt.datetime.now(dt.UTC)
        self._records.put(RecordKind.REWRITE, f"{now.isoformat(timespec='seconds')} {secrets.token_hex(8)}", b"")
        with storage_errors():
            interval, most = self._database.run(
                "SELECT current_setting('checkpoint_timeout'), current_setting('max_wal_size')", read_only=True
            ).fetchall()[0]
        self.start()
        return [
            PendingErasure(place="the tables of the database, until they are rewritten", until=now + _PROMISED),
            PendingErasure(
                place="the write-ahead log of the database, until its segments are used again after the rewrite "
                f"(checkpoint_timeout {interval}, max_wal_size {most})"
            ),
            PendingErasure(
                place="backups, standbys and archived logs of the database, as long as its operator keeps them"
            ),
        ]

    def run(self) -> list[str]:
        """Rewrites the tables now; gives their names.

        Raises:
            StorageFailed: Another process is at it, or a table is in use or is another role's; the others are done.
        """
        give_back = self._coordination.lease(_LEASE)
        if give_back is None:
            raise StorageFailed(f"The tables of {self._database.place} are being rewritten. Try again later.")
        try:
            notes = list(self._records.keys(RecordKind.REWRITE))
            failures = self._rewrite()
            if failures:
                by_reason = "; ".join(f"{', '.join(tables)}: {reason}" for reason, tables in failures.items())
                raise StorageFailed(f"What was erased may be in tables of {self._database.place} still: {by_reason}.")
            for key in notes:
                self._records.erase(RecordKind.REWRITE, key=key)
        finally:
            give_back()
        return list(CONTENT_TABLES)

    def start(self) -> None:
        """Has a thread look from time to time whether a rewrite is due."""
        with self._starting:
            if self._thread is None and not self._ending.is_set():
                self._thread = threading.Thread(target=self._look, name="rewrites", daemon=True)
                self._thread.start()

    def close(self) -> None:
        """Ends the looks."""
        self._ending.set()

    @property
    def is_due(self) -> bool:
        """True if what is erased longest is to be rewritten now."""
        oldest = min(self._records.keys(RecordKind.REWRITE), default="")
        return bool(oldest) and dt.datetime.fromisoformat(oldest.split()[0]) + _BEGIN_AFTER <= dt.datetime.now(dt.UTC)

    def _look(self) -> None:
        seconds = _FIRST_LOOK_SECONDS
        while not self._ending.wait(seconds):
            seconds = _LOOK_SECONDS
            try:
                if self.is_due:
                    self.run()
            except MemoryServiceError as error:
                LOG.warning("%s", error)

    def _rewrite(self) -> dict[str, list[str]]:
        """Rewrite each table, and end the part of the write-ahead log that has its old rows.

        Returns:
            The tables that failed, by the reason.
        """
        failures = dict[str, list[str]]()
        with storage_errors():
            connection = self._database.connect()
        try:
            with storage_errors(), self._database.errors():
                connection.execute(_LOCK_WAIT)
            for table in CONTENT_TABLES:
                try:
                    with self._database.errors():
                        reason = _rewrite_table(connection, table)
                except StoreError as error:
                    reason = str(error).rstrip(".")
                if reason:
                    failures.setdefault(reason, []).append(table)
            # A role that may not ask for it leaves it to the next one that the server makes.
            with suppress(StoreError), self._database.errors():
                connection.execute("CHECKPOINT")
        finally:
            connection.close()
        return failures


def _rewrite_table(connection: psycopg.Connection[tuple[object, ...]], table: str) -> str:
    """Rewrite one table with its indexes; gives why deleted rows of it are left, empty if none is."""
    left_rows = list[int]()

    def read(notice: psycopg.errors.Diagnostic) -> None:
        # The detail of VERBOSE begins with the number of deleted rows that somebody may still see.
        if (number := _NUMBER.match(notice.message_detail or "")) is not None:
            left_rows.append(int(number[1]))

    before = _file_of(connection, table)
    connection.add_notice_handler(read)
    try:
        connection.execute(f"VACUUM (FULL, VERBOSE) {table}".encode())
    finally:
        connection.remove_notice_handler(read)
    if _file_of(connection, table) == before:
        return "the role may not rewrite it; run `memory-service migrate --rewrite` as the owner of the tables"
    return (
        "a transaction that began before sees what was deleted; try again when it has ended" if any(left_rows) else ""
    )


def _file_of(connection: psycopg.Connection[tuple[object, ...]], table: str) -> object:
    return connection.execute("SELECT pg_relation_filenode(%s::regclass)", [table]).fetchall()[0][0]
