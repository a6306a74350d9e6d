"""The stores that an index can be kept in, by name: the one place that a new store is added to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from indexer.errors import StoreError

if TYPE_CHECKING:
    from indexer.stores.base import IndexStore
    from indexer.stores.postgres.migrations import INDEX_TABLES as INDEX_TABLES
    from indexer.stores.postgres.migrations import Tables as Tables
    from indexer.stores.postgres.migrations import applied_steps as applied_steps
    from indexer.stores.postgres.migrations import migrate_tables as migrate_tables
    from indexer.stores.postgres.migrations import require_tables as require_tables
    from indexer.stores.postgres.postgres_address import is_address as is_address
    from indexer.stores.postgres.postgres_database import INCARNATION as INCARNATION
    from indexer.stores.postgres.postgres_database import NO_WORKSPACE as NO_WORKSPACE
    from indexer.stores.postgres.postgres_database import PostgresDatabase as PostgresDatabase
    from indexer.stores.postgres.postgres_database import Transaction as Transaction
    from indexer.stores.postgres.postgres_errors import DatabaseUnreachable as DatabaseUnreachable
    from indexer.stores.postgres.postgres_index import open_postgres_index as open_postgres_index
    from indexer.stores.sqlite_database import Database as Database
else:
    # What PostgreSQL takes is loaded by whoever uses it.
    _MODULES = {
        **dict.fromkeys(
            ("INDEX_TABLES", "Tables", "applied_steps", "migrate_tables", "require_tables"), "postgres.migrations"
        ),
        **dict.fromkeys(
            ("INCARNATION", "NO_WORKSPACE", "PostgresDatabase", "Transaction"),
            "postgres.postgres_database",
        ),
        "DatabaseUnreachable": "postgres.postgres_errors",
        "is_address": "postgres.postgres_address",
        "open_postgres_index": "postgres.postgres_index",
    }

    def __getattr__(name: str) -> Any:
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


DEFAULT_STORE = "sqlite"
INDEX_NAME = "index.sqlite"


def _sqlite(folder: Path) -> IndexStore:
    from indexer.stores.sqlite import SqliteStore

    return SqliteStore(folder / INDEX_NAME)


# Each is imported when it is opened.
STORES: Mapping[str, Callable[[Path], IndexStore]] = {"sqlite": _sqlite}


def open_store(name: str, folder: Path) -> IndexStore:
    """The store of a name for the index of a folder.

    Raises:
        StoreError: There is none of this name.
    """
    if name not in STORES:
        raise StoreError(f"There is no store {name!r}. Choose one of {', '.join(STORES)}, or give an `IndexStore`.")
    return STORES[name](folder)


def open_database(path: Path) -> Database:
    """An SQLite file for other rows than those of an index; only a write creates it."""
    from indexer.stores.sqlite_database import Database

    return Database(path)
