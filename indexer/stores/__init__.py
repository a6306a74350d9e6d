"""The stores that an index can be kept in, by name: the one place that a new store is added to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from indexer.errors import StoreError

if TYPE_CHECKING:
    from indexer.stores.base import IndexStore

DEFAULT_STORE = "sqlite"
INDEX_NAME = "index.sqlite"


def _sqlite(folder: Path) -> IndexStore:
    from indexer.stores.sqlite import SqliteStore

    return SqliteStore(folder / INDEX_NAME)


def _memory(_: Path) -> IndexStore:
    from indexer.stores.memory import InMemoryStore

    return InMemoryStore()


class StoreKind(NamedTuple):
    """How a store is opened for the index of a folder, and whether what it holds outlives the process."""

    open: Callable[[Path], IndexStore]
    is_lasting: bool


# Each is imported when it is opened.
STORES: Mapping[str, StoreKind] = {
    "sqlite": StoreKind(_sqlite, is_lasting=True),
    "memory": StoreKind(_memory, is_lasting=False),
}


def open_store(name: str, folder: Path) -> IndexStore:
    """The store of a name for the index of a folder.

    Raises:
        StoreError: There is none of this name.
    """
    kind = STORES.get(name)
    if kind is None:
        raise StoreError(f"There is no store {name!r}. Choose one of {', '.join(STORES)}, or give an `IndexStore`.")
    return kind.open(folder)
