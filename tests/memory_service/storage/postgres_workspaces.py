"""Workspaces of a PostgreSQL database for the contract suites, and a server that cuts connections in the middle."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import count

import pytest

from indexer.stores import PostgresDatabase

_TABLES = """
SELECT format('%I', relname) FROM pg_class
WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND relname NOT IN ('workspaces', 'schema_migrations')"""
_FAULT = """
CREATE SEQUENCE changes;
CREATE FUNCTION cut() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF nextval('changes') >= TG_ARGV[0]::int THEN
        PERFORM pg_terminate_backend(pg_backend_pid());
        PERFORM pg_sleep(9);
    END IF;
    RETURN NULL;
END $$;
"""


class PostgresWorkspaces:
    """Workspaces of one database, each used by as many processes as it takes.

    Args:
        address: The address of the database.
    """

    def __init__(self, address: str) -> None:
        self.address = address
        self._databases = list[PostgresDatabase]()
        self._numbers = count(1)

    def name(self) -> str:
        """The name of a workspace that is not there yet."""
        return f"w{next(self._numbers)}"

    def database(self) -> PostgresDatabase:
        """The database as another process has it."""
        self._databases.append(PostgresDatabase(self.address))
        return self._databases[-1]

    def lock(self) -> Callable[[], AbstractContextManager[None]]:
        """A lock of all processes."""

        @contextmanager
        def hold() -> Iterator[None]:
            import psycopg

            with psycopg.connect(self.address, autocommit=True) as connection:
                connection.execute("SELECT pg_advisory_lock(1)")
                yield

        return hold

    def close(self) -> None:
        """Give all connections back."""
        for database in self._databases:
            database.close()

    @contextmanager
    def cutting(self, at: int = 1) -> Iterator[None]:
        """A server that ends the connection of whoever changes a row, at the step of this number and all later ones.

        Steps are the statements that change rows, and, for each row that they changed, the commit.
        """
        import psycopg

        with psycopg.connect(self.address, autocommit=True) as connection:
            tables = [name for (name,) in connection.execute(_TABLES)]
            connection.execute(_FAULT)
            for table in tables:
                change = f"INSERT OR UPDATE OR DELETE ON {table}"
                for trigger in (
                    f"CREATE TRIGGER cut BEFORE {change} FOR EACH STATEMENT",
                    f"CREATE CONSTRAINT TRIGGER cut_late AFTER {change} DEFERRABLE INITIALLY DEFERRED FOR EACH ROW",
                ):
                    connection.execute(f"{trigger} EXECUTE FUNCTION cut({at})".encode())
            try:
                yield
            finally:
                connection.execute("DROP FUNCTION cut CASCADE")
                connection.execute("DROP SEQUENCE changes")


@pytest.fixture
def postgres_workspaces(migrated_database: str) -> Iterator[PostgresWorkspaces]:
    """Workspaces of a database of its own."""
    made = PostgresWorkspaces(migrated_database)
    yield made
    made.close()
