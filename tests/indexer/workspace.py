"""A workspace in a temporary folder, and embedders that count or fail."""

from __future__ import annotations

import datetime as dt
import hashlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import pytest

from indexer import Embedder, EmbeddingError, Index, LanguageChoice, SearchFilter
from indexer.stores import open_store
from indexer.stores.base import IndexStore
from indexer.stores.postgres.postgres_database import PostgresDatabase
from indexer.stores.postgres.postgres_index import open_postgres_index
from indexer.testing import HashEmbedder
from indexer.types import Vectors
from tests.indexer.memory_store import InMemoryStore

STORE_NAMES = ("sqlite", "memory", "postgres")
# The fixture `workspace` with its index in each of the stores.
every_store = pytest.mark.parametrize("workspace", [*STORE_NAMES], indirect=True)

TODAY = dt.date(2026, 11, 20)
LONG_AGO_NS = 1_700_000_000_123_456_789
NOBODY = 65534


class NamedStores:
    """Opens stores by their names in `STORE_NAMES`.

    Args:
        address: Gives the address of the database of the test.
    """

    def __init__(self, address: Callable[[], str]) -> None:
        self._address = address
        self._databases = list[PostgresDatabase]()
        self._indexes = list[IndexStore]()

    def open(self, name: str, folder: Path) -> IndexStore:
        """A store for the index of a folder, as another process would open it, but for a new one in memory."""
        if name == "postgres":
            self._databases.append(PostgresDatabase(self._address()))
            # The database is shared: the folder's name alone is that of other tests, too.
            workspace = hashlib.sha256(str(folder).encode()).hexdigest()[:16]
            self._indexes.append(open_postgres_index(self._databases[-1], workspace, folder.parent / "scratch"))
            return self._indexes[-1]
        return InMemoryStore() if name == "memory" else open_store(name, folder)

    def close(self) -> None:
        """Close the connections, and the files of indexes in databases."""
        for index in self._indexes:
            index.close()
        for database in self._databases:
            database.close()


class Workspace:
    """A folder with memories, and the store of its index.

    Attributes:
        keeps_files: True if its store is in files of the folder.
        packs: True if its store packs a large index.
    """

    def __init__(self, root: Path, *, store: str = "sqlite", stores: NamedStores | None = None) -> None:
        self.root = root
        self._name = store
        self._stores = stores
        self._shared = InMemoryStore() if store == "memory" else None
        self.keeps_files, self.packs = store == "sqlite", store != "memory"
        (root / "memory").mkdir(parents=True)

    def store(self) -> IndexStore:
        """The store, as another process would open it."""
        if self._shared:
            return self._shared.reopen()
        return self._stores.open(self._name, self.root) if self._stores else open_store(self._name, self.root)

    def write(self, path: str, text: str | bytes) -> Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode() if isinstance(text, str) else text)
        return file

    def write_items(self, path: str, items: Sequence[str]) -> Path:
        return self.write(path, "".join(f"- {item}\n" for item in items))

    def index(self, embedder: Embedder | LanguageChoice | None = None, **options: Any) -> Index:
        """An index with the options of `Index`, on a day that does not change."""
        return Index(self.root, embedder, **{"store": self.store(), "today": lambda: TODAY, **options})

    def synced(self, embedder: Embedder | LanguageChoice | None = None, **options: Any) -> Index:
        index = self.index(embedder, **options)
        index.sync()
        return index

    def memories(self) -> dict[str, bytes]:
        return {str(path.relative_to(self.root)): path.read_bytes() for path in sorted(self.root.rglob("*.md"))}

    def index_files(self) -> list[Path]:
        return sorted(self.root.glob("index.sqlite*"))


class CountingEmbedder(HashEmbedder):
    """Keeps every text that it was asked to embed."""

    def __init__(self, dimensions: int = 64, *, seed: int = 0) -> None:
        super().__init__(dimensions, seed=seed)
        self.documents: list[str] = []
        self.questions: list[str] = []

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        self.documents += texts
        return super().embed_documents(texts)

    def embed_query(self, text: str) -> Vectors:
        self.questions.append(text)
        return super().embed_query(text)


class FailingEmbedder(HashEmbedder):
    """Fails from a given call on."""

    def __init__(self, error: EmbeddingError, *, calls: int = 0) -> None:
        super().__init__()
        self.error = error
        self.calls = calls

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        if self.calls <= 0:
            raise self.error
        self.calls -= 1
        return np.stack([super(FailingEmbedder, self).embed_query(text) for text in texts])

    def embed_query(self, text: str) -> Vectors:
        raise self.error


def texts(index: Index, query: str, *, limit: int = 6, kept: SearchFilter | None = None) -> list[str]:
    return [hit.passage.text for hit in index.search(query, limit=limit, filter=kept or SearchFilter()).hits]


def make_old(file: Path) -> None:
    """Set a file's time to one that no clock's grain makes doubtful; its ctime is now."""
    os.utime(file, ns=(LONG_AGO_NS, LONG_AGO_NS))


@contextmanager
def watched_statements() -> Iterator[list[str]]:
    """Every SQL statement of the connections that are opened within the block."""
    seen: list[str] = []

    def watch(connection: apsw.Connection) -> None:
        def note(_: apsw.Cursor, statement: str, __: object) -> bool:
            seen.append(statement)
            return True

        connection.exec_trace = note

    apsw.connection_hooks.append(watch)
    try:
        yield seen
    finally:
        apsw.connection_hooks.remove(watch)


def run_python(code: str, *arguments: object, timeout: float = 60) -> str:
    """Run code in a fresh interpreter; what it prints."""
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True, timeout=timeout, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def run_unprivileged(code: str, *arguments: object) -> str:
    """Run code that, from `drop()` on, is one who may not read everything."""
    drop = f"os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY})" if os.geteuid() == 0 else "pass"
    return run_python(_LOADED + code.replace("drop()", drop), *arguments)


# The one who may not read everything may not read Python's own modules either.
_LOADED = """
import os, secrets, sys
import apsw, numpy, sqlite_vec
from indexer.testing import HashEmbedder
HashEmbedder().embed_query("loads what is loaded late")
from indexer.engine.relevance import bundled_calibration
bundled_calibration()
apsw.Connection(":memory:").execute("SELECT 1")
"""
