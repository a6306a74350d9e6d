"""The small records of a workspace, or of the home, as rows; see `RecordStore`.

Invariants: each change is one statement, so of several that claim at once one gets it; the database's clock says
whether a record has expired, whatever that of the caller shows.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, LiteralString
from uuid import UUID

from indexer.stores import NO_WORKSPACE, PostgresDatabase, Transaction
from memory_service.storage.postgres.workspace_rows import storage_errors
from memory_service.storage.record_store import ANY, RecordKind, RecordVersion, StoredRecord

_ENCODING, _ERRORS = "utf-8", "surrogatepass"
# As the index of sessions has it, which is of records that have one.
_OF_SESSION: Final[LiteralString] = "AND session = %(session)s AND session <> ''"
# Records that are fetched at once: few at first, and more each time, as each time all of a kind are put in order.
_FIRST, _MOST = 100, 1_600
_STORED: Final[LiteralString] = (
    "raw, version, session, extract(epoch FROM nullif(expires, 'infinity') - clock_timestamp())::float"
)


class ExpiredRecords:
    """When this process last removed the expired records of each kind of a workspace: once a day."""

    def __init__(self) -> None:
        self._days = dict[tuple[int, RecordKind], dt.date]()

    def remove(self, transaction: Transaction, workspace: int, kind: RecordKind) -> None:
        """Remove those of a kind, unless that was done today."""
        today = dt.datetime.now(dt.UTC).date()
        if self._days.get((workspace, kind)) == today:
            return
        self._days[workspace, kind] = today
        transaction.execute(
            "DELETE FROM records WHERE ws = %s AND kind = %s AND expires <= clock_timestamp()", [workspace, kind.value]
        )


class PostgresRecords:
    """The records of one workspace, or of the home itself.

    Args:
        database: The database.
        workspace: Name of the workspace; empty for the home.
        expiry: What removes expired records.
    """

    def __init__(self, database: PostgresDatabase, workspace: str, expiry: ExpiredRecords) -> None:
        self._database = database
        self._workspace = workspace
        self._expiry = expiry

    def get(self, kind: RecordKind, key: str) -> StoredRecord | None:
        """See `RecordStore`."""
        with self._reading() as transaction:
            if transaction is None:
                return None
            row = transaction.row(
                f"SELECT {_STORED} FROM records "
                "WHERE ws = %s AND kind = %s AND key = %s AND expires > clock_timestamp()",
                [transaction.workspace, kind.value, _raw(key)],
            )
        return _stored_record(*row) if row else None

    def version(self, kind: RecordKind, key: str) -> RecordVersion | None:
        """See `RecordStore`."""
        with self._reading() as transaction:
            if transaction is None:
                return None
            row = transaction.row(
                "SELECT version FROM records WHERE ws = %s AND kind = %s AND key = %s AND expires > clock_timestamp()",
                [transaction.workspace, kind.value, _raw(key)],
            )
        return _version(row[0]) if row else None

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
        seconds = None if expires is None else (expires - dt.datetime.now(dt.UTC)).total_seconds()
        with storage_errors():
            workspace = self._database.reserved_number(self._workspace) if self._workspace else NO_WORKSPACE
            values = {
                "ws": workspace, "kind": kind.value, "key": _raw(key), "session": _raw(session), "raw": raw,
                "seconds": seconds, "any": expected == ANY, "expected": _uuid(expected),
            }  # fmt: skip
            with self._database.transaction(workspace) as transaction:
                if expected not in (ANY, None):
                    row = transaction.row(
                        "UPDATE records SET raw = %(raw)s, session = %(session)s, version = gen_random_uuid(), "
                        "stored_at = clock_timestamp(), "
                        "expires = coalesce(clock_timestamp() + make_interval(secs => %(seconds)s), 'infinity') "
                        "WHERE ws = %(ws)s AND kind = %(kind)s AND key = %(key)s AND version = %(expected)s "
                        "AND expires > clock_timestamp() RETURNING version",
                        values,
                    )
                else:
                    row = transaction.row(
                        "INSERT INTO records AS r (ws, kind, key, session, expires, raw) VALUES (%(ws)s, %(kind)s, "
                        "%(key)s, %(session)s, "
                        "coalesce(clock_timestamp() + make_interval(secs => %(seconds)s), 'infinity'), %(raw)s) "
                        "ON CONFLICT (ws, kind, key) DO UPDATE SET raw = excluded.raw, session = excluded.session, "
                        "version = gen_random_uuid(), stored_at = clock_timestamp(), expires = excluded.expires "
                        "WHERE %(any)s OR r.expires <= clock_timestamp() RETURNING version",
                        values,
                    )
                if expires is not None and row is not None:
                    self._expiry.remove(transaction, workspace, kind)
        return _version(row[0]) if row else None

    def erase(self, kind: RecordKind, *, key: str = "", session: str = "") -> int:
        """See `RecordStore`; the rows are gone, and the database rewrites their pages later."""
        with storage_errors():
            number = self._number()
            if number is None:
                return 0
            # One statement for all would read every record of the kind.
            of_key: LiteralString = "AND key = %(key)s" if key else ""
            of_session: LiteralString = _OF_SESSION if session else ""
            with self._database.transaction(number) as transaction:
                return transaction.execute(
                    f"DELETE FROM records WHERE ws = %(ws)s AND kind = %(kind)s {of_key} {of_session}",
                    {"ws": number, "kind": kind.value, "key": _raw(key), "session": _raw(session)},
                ).rowcount

    def keys(self, kind: RecordKind) -> Iterator[str]:
        """See `RecordStore`."""
        with self._reading() as transaction:
            rows = [] if transaction is None else transaction.rows(
                "SELECT key FROM records WHERE ws = %s AND kind = %s AND expires > clock_timestamp() "
                "ORDER BY stored_at, key",
                [transaction.workspace, kind.value],
            )  # fmt: skip
        return (bytes(key).decode(_ENCODING, _ERRORS) for (key,) in rows)

    def newest(self, kind: RecordKind, *, session: str = "") -> Iterator[tuple[str, StoredRecord]]:
        """See `RecordStore`."""
        of_session: LiteralString = _OF_SESSION if session else ""
        values: dict[str, Any] = {"kind": kind.value, "session": _raw(session), "most": _FIRST}
        before: LiteralString = ""
        while True:
            with self._reading() as transaction:
                rows = [] if transaction is None else transaction.rows(
                    f"SELECT {_STORED}, key, stored_at FROM records "
                    f"WHERE ws = %(ws)s AND kind = %(kind)s AND expires > clock_timestamp() {of_session} {before} "
                    "ORDER BY stored_at DESC, key DESC LIMIT %(most)s",
                    {**values, "ws": transaction.workspace},
                )  # fmt: skip
            for *stored, key, _ in rows:
                yield bytes(key).decode(_ENCODING, _ERRORS), _stored_record(*stored)
            if len(rows) < values["most"]:
                return
            values["most"] = min(2 * values["most"], _MOST)
            before = "AND (stored_at, key) < (%(last_at)s, %(last_key)s)"
            *_, values["last_key"], values["last_at"] = rows[-1]

    def trim(self, kind: RecordKind, *, most: int, most_bytes: int) -> None:
        """See `RecordStore`."""
        with storage_errors():
            number = self._number()
            if number is None:
                return
            with self._database.transaction(number) as transaction:
                transaction.execute(
                    "WITH kept AS (SELECT key, row_number() OVER newest AS place, sum(length(raw)) OVER newest AS size "
                    "FROM records WHERE ws = %(ws)s AND kind = %(kind)s AND expires > clock_timestamp() "
                    "WINDOW newest AS (ORDER BY stored_at DESC, key)) "
                    "DELETE FROM records r WHERE ws = %(ws)s AND kind = %(kind)s AND NOT EXISTS (SELECT FROM kept k "
                    "WHERE k.key = r.key AND k.place <= %(most)s AND k.size <= %(most_bytes)s)",
                    {"ws": number, "kind": kind.value, "most": most, "most_bytes": most_bytes},
                )

    def sweep(self) -> None:
        """See `RecordStore`; a database leaves nothing half-written."""

    def leftovers(self) -> list[str]:
        """See `RecordStore`."""
        return []

    def _number(self) -> int | None:
        """The number of the workspace; None where nothing was ever stored of it."""
        return self._database.number(self._workspace) if self._workspace else NO_WORKSPACE

    @contextmanager
    def _reading(self) -> Iterator[Transaction | None]:
        with storage_errors():
            number = self._number()
            if number is None:
                yield None
                return
            with self._database.transaction(number, read_only=True) as transaction:
                yield transaction


def _raw(text: str) -> bytes:
    """A text of any characters, which a column of texts would not take."""
    return text.encode(_ENCODING, _ERRORS)


def _stored_record(raw: bytes, version: UUID, session: bytes, seconds: float | None) -> StoredRecord:
    """A record of a row; it expires by the clock of this machine."""
    expires = None if seconds is None else dt.datetime.now(dt.UTC) + dt.timedelta(seconds=seconds)
    return StoredRecord(bytes(raw), _version(version), bytes(session).decode(_ENCODING, _ERRORS), expires)


def _version(value: UUID) -> RecordVersion:
    return value.bytes


def _uuid(version: RecordVersion | None) -> UUID | None:
    """The value of a version; one that is none of ours is that of no record."""
    return UUID(bytes=version) if version is not None and len(version) == 16 else None
