"""The stores that an index can be kept in, by name: the one place that a new store is added to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from indexer.errors import StoreError

if TYPE_CHECKING:
    from indexer.stores.base import IndexStore
    from indexer.stores.sqlite_database import Database as Database

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
