"""Migrations of a PostgreSQL database: numbered SQL files, each applied once, in order, by one process at a time.

Invariants: what was applied is never changed, which checksums tell; a file whose first line is `-- online` runs outside
a transaction, and may be run again. A database that is newer than this version, or older than it can work with, is
refused by name.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Final, LiteralString

from indexer.errors import StoreError, StoreOutdated
from indexer.stores.postgres.postgres_database import Connection, PostgresDatabase, Transaction
from indexer.stores.postgres.postgres_errors import OWN_DATABASE

# A lock of the database that whoever migrates holds, as a number that nobody else uses.
_LOCK: Final = 7_235_911_604_288
_ONLINE = "-- online"
_TABLE: Final[LiteralString] = """
CREATE TABLE IF NOT EXISTS schema_migrations (
    part text, number int, name text NOT NULL, checksum text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (part, number)
)"""


@dataclass(frozen=True, slots=True)
class Migration:
    """A step from one schema to the next."""

    number: int
    name: str
    sql: str

    @property
    def checksum(self) -> str:
        """Hash of its text."""
        return hashlib.sha256(self.sql.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables of one room.

    Attributes:
        name: Name of the part.
        package: The package in which its files lie, `0001_name.sql` and so on.
        oldest: The oldest number that this version works with.
    """

    name: str
    package: str
    oldest: int

    def migrations(self) -> list[Migration]:
        """All its steps, in order."""
        steps = sorted((f for f in files(self.package).iterdir() if f.name.endswith(".sql")), key=lambda f: f.name)
        return [Migration(int(f.name[:4]), f.name[5:-4], f.read_text("utf-8")) for f in steps]


INDEX_TABLES = Tables("index", "indexer.stores.postgres", 1)


def applied_steps(transaction: Transaction) -> dict[tuple[str, int], str]:
    """Checksums of the steps that a database has, by part and number.

    Raises:
        StoreOutdated: The table of steps is another program's.
        StoreError: The database cannot hold every text.
    """
    [(encoding, columns, own_columns)] = transaction.rows(
        "SELECT convert_to(current_setting('server_encoding'), 'UTF8'), count(*), "
        "count(*) FILTER (WHERE attname = 'checksum') FROM pg_attribute "
        "WHERE attrelid = to_regclass('schema_migrations')"
    )
    if bytes(encoding) != b"UTF8":
        raise StoreError(
            f"The database {transaction.place} has the encoding {encoding.decode()}, which cannot hold every text. "
            "Create it with ENCODING 'UTF8' TEMPLATE template0."
        )
    if not columns:
        return {}
    if not own_columns:
        raise StoreOutdated(f"The table schema_migrations in {transaction.place} is another program's. {OWN_DATABASE}")
    return {
        (part, number): checksum
        for part, number, checksum in transaction.rows("SELECT part, number, checksum FROM schema_migrations")
    }


def migrate_tables(database: PostgresDatabase, parts: Sequence[Tables]) -> list[str]:
    """Apply the steps that are missing; gives their names.

    Raises:
        StoreOutdated: A step that was applied is another one here, or the database is newer.
    """
    names = list[str]()
    connection = database.connect()
    try:
        with database.errors():
            connection.execute("SELECT pg_advisory_lock(%s)", [_LOCK])
            connection.execute("SET lock_timeout = '10s'")
            with database.transaction() as transaction:
                applied_steps(transaction)
            # Whoever may not make tables learns that none is missing all the same.
            if connection.execute("SELECT to_regclass('schema_migrations')").fetchone() == (None,):
                connection.execute(_TABLE)
            for part in parts:
                with database.transaction() as transaction:
                    checksums = applied_steps(transaction)
                _check(database.place, part, checksums)
                for step in part.migrations():
                    if (part.name, step.number) not in checksums:
                        _apply(connection, part, step)
                        names.append(f"{part.name} {step.number:04} {step.name}")
    finally:
        connection.close()
    return names


def require_tables(database: PostgresDatabase, parts: Sequence[Tables]) -> None:
    """Make sure that a database can be worked with; one without any tables is given them.

    Raises:
        StoreOutdated: It is older or newer than this version works with.
    """
    with database.transaction(read_only=True) as transaction:
        checksums = applied_steps(transaction)
    if not checksums:
        migrate_tables(database, parts)
        return
    for part in parts:
        _check(database.place, part, checksums)
        newest = max((number for name, number in checksums if name == part.name), default=0)
        if newest < part.oldest:
            raise StoreOutdated(
                f"The tables of {part.name} in {database.place} are version {newest}, and this program works with "
                f"{part.oldest} or later. Run `memory-service migrate`."
            )


def _check(place: str, part: Tables, checksums: dict[tuple[str, int], str]) -> None:
    steps = {step.number: step for step in part.migrations()}
    for (name, number), checksum in checksums.items():
        if name != part.name:
            continue
        if number not in steps:
            raise StoreOutdated(
                f"The tables of {part.name} in {place} are version {number}, which a newer program made. Install that "
                "version, or restore a backup."
            )
        if steps[number].checksum != checksum:
            raise StoreOutdated(
                f"Step {number} of the tables of {part.name} in {place} is not the one of this program. Install the "
                "version that made them, or restore a backup."
            )


def _apply(connection: Connection, part: Tables, step: Migration) -> None:
    note = (
        "INSERT INTO schema_migrations (part, number, name, checksum) VALUES (%s, %s, %s, %s)",
        [part.name, step.number, step.name, step.checksum],
    )
    if step.sql.startswith(_ONLINE):
        for statement in step.sql.split(";\n"):
            if statement.strip():
                connection.execute(statement)
        connection.execute(*note)
        return
    with connection.transaction():
        connection.execute(step.sql)
        connection.execute(*note)
