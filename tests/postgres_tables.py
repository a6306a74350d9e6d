"""All tables of the project in a database of tests."""

from __future__ import annotations

from indexer.stores.postgres.migrations import migrate_tables
from indexer.stores.postgres.postgres_database import PostgresDatabase
from memory_service.storage.postgres import PARTS


def make_tables(address: str) -> None:
    """Give a database all tables."""
    database = PostgresDatabase(address)
    try:
        migrate_tables(database, PARTS)
    finally:
        database.close()
