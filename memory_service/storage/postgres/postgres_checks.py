"""The checks of a database: each part that the storage stands on, tried by using it."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable
from typing import Final

from indexer import StoreError
from indexer.stores import PostgresDatabase, applied_steps
from memory_service.storage.base import StorageCheck
from memory_service.storage.postgres import PARTS
from memory_service.storage.postgres.direct_line import require_locks

# Times of sessions are those of the replica that wrote.
_MOST_SKEW_SECONDS: Final = 2.0


def check_database(database: PostgresDatabase) -> list[StorageCheck]:
    """The checks; after one without which the others are none, no more."""
    checks = list[StorageCheck]()
    for name, check in _CHECKS.items():
        try:
            detail, remedy = check(database)
        except StoreError as error:
            detail, _, remedy = str(error).partition(". ")
        checks.append(StorageCheck(name, detail, remedy))
        if remedy and name in ("database", "schema"):
            break
    return checks


def _reach(database: PostgresDatabase) -> tuple[str, str]:
    with database.transaction(read_only=True) as transaction:
        start = time.perf_counter()
        row = transaction.row("SELECT current_setting('server_version'), pg_is_in_recovery()")
        seconds = time.perf_counter() - start
    assert row is not None
    remedy = "It is a standby: set database_url to the primary." if row[1] else ""
    return f"PostgreSQL {row[0]} at {database.place}, begun and asked in {seconds * 1e3:.1f} ms", remedy


def _schema(database: PostgresDatabase) -> tuple[str, str]:
    with database.transaction(read_only=True) as transaction:
        checksums = applied_steps(transaction)
    pending_steps = [
        f"{part.name} {step.number:04}"
        for part in PARTS
        for step in part.migrations()
        if (part.name, step.number) not in checksums
    ]
    if pending_steps:
        return f"it lacks {', '.join(pending_steps)}", "Run `memory-service migrate`."
    return f"as this version has it, of {len(checksums)} steps", ""


def _rights(database: PostgresDatabase) -> tuple[str, str]:
    with database.transaction(read_only=True) as transaction:
        rows = transaction.rows(
            "SELECT c.relname, r FROM pg_class c, unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) r "
            "WHERE c.relkind IN ('r', 'p') AND c.relname <> 'schema_migrations' "
            "AND c.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'workspaces'::regclass) "
            "AND NOT has_table_privilege(c.oid, r) ORDER BY 1, 2"
        )
        role = transaction.row(
            "SELECT current_user, CASE WHEN rolsuper THEN 'is a superuser' WHEN rolbypassrls THEN 'has BYPASSRLS' END "
            "FROM pg_roles WHERE rolname = current_user"
        )
    assert role is not None
    if rows:
        table, right = rows[0]
        return f"the role {role[0]} may not {right} in {table}", "Grant it that as the owner of the tables."
    wall = f", past the wall between workspaces, as it {role[1]}" if role[1] else ""
    return f"the role {role[0]} may read and write{wall}", ""


def _clock(database: PostgresDatabase) -> tuple[str, str]:
    with database.transaction(read_only=True) as transaction:
        transaction.execute("SELECT")
        before = dt.datetime.now(dt.UTC)
        row = transaction.row("SELECT clock_timestamp()")
        after = dt.datetime.now(dt.UTC)
    assert row is not None
    skew = (row[0] - before - (after - before) / 2).total_seconds()
    remedy = "Let both machines take their time from one source (NTP)." if abs(skew) > _MOST_SKEW_SECONDS else ""
    return f"the clock of the database is {abs(skew):.3f} s {'behind' if skew < 0 else 'ahead'}", remedy


def _locks(database: PostgresDatabase) -> tuple[str, str]:
    require_locks(database)
    return "what one connection holds, another one does not get", ""


_CHECKS: Final[dict[str, Callable[[PostgresDatabase], tuple[str, str]]]] = {
    "database": _reach,
    "schema": _schema,
    "rights": _rights,
    "clock": _clock,
    "locks": _locks,
}
