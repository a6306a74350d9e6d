from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from indexer.corpus import COLUMNS
from indexer.language.search_terms import passage_terms
from indexer.language.terms import term_hashes
from indexer.stores import sqlite_bulk
from indexer.stores import sqlite_database as databases
from indexer.stores.sqlite import SqliteStore
from indexer.stores.sqlite_bulk import term_entries, vectors
from indexer.stores.sqlite_database import Database
from indexer.stores.sqlite_rows import passage_table
from indexer.types import Fingerprint
from tests.indexer.stores.test_store_contract import MADE, passage, put, removal

TEXTS = ["deploy on tuesdays", "部署在星期二", "deploy deploy deploy on friday", "café au lait", "a1 a10 a2 a", "x"]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    made = SqliteStore(tmp_path / "index.sqlite")
    made.begin(MADE)
    yield made
    made.close()


@pytest.fixture
def database(store: SqliteStore) -> Iterator[Database]:
    opened = Database(store.path)
    yield opened
    opened.close()


def expected(store: SqliteStore) -> dict[tuple[int, int], int]:
    """How often each term occurs in each passage, made again from the texts."""
    keys = store.corpus(None).keys.tolist()
    return {
        (int(term_hashes([term])[0]), key): count
        for key, stored in store.passages(keys).items()
        for term, count in Counter(passage_terms(stored.passage, stored.path)).items()
    }


def entries(database: Database, size: int = 500_000) -> dict[tuple[int, int], int]:
    got = dict[tuple[int, int], int]()
    for chunk in term_entries(database, entries=size):
        assert len(chunk.terms) == len(chunk.sizes) and chunk.sizes.min() > 0
        assert chunk.sizes.sum() == len(chunk.passages) == len(chunk.counts)
        terms = np.repeat(chunk.terms, chunk.sizes).tolist()
        for entry, count in zip(zip(terms, chunk.passages.tolist(), strict=True), chunk.counts.tolist(), strict=True):
            assert entry not in got
            got[entry] = count
    return got


@pytest.mark.parametrize("size", [1, 3, 500_000])
@pytest.mark.parametrize("first", [1, 2, 256])
def test_every_term_of_every_passage_comes_once(
    store: SqliteStore, database: Database, monkeypatch: pytest.MonkeyPatch, size: int, first: int
) -> None:
    monkeypatch.setattr(sqlite_bulk, "_FIRST_TERMS", first)
    put(store, "memory/a.md", TEXTS)
    put(store, "memory/b.md", TEXTS[::-1])
    assert entries(database, size) == expected(store)


def test_what_was_removed_does_not_come(store: SqliteStore, database: Database) -> None:
    put(store, "memory/a.md", TEXTS)
    put(store, "memory/b.md", TEXTS[:3])
    store.write([removal(store, "memory/a.md")])
    assert entries(database) == expected(store)
    assert {key for keys, _ in vectors(database) for key in keys.tolist()} == set(store.corpus(None).keys.tolist())


@pytest.mark.parametrize("count", [1, 4, 16_384])
def test_vectors_are_those_that_were_stored(store: SqliteStore, database: Database, count: int) -> None:
    put(store, "memory/a.md", TEXTS)
    put(store, "memory/b.md", ["no vector"], embedded=False)
    put(store, "memory/c.md", [f"line {i}" for i in range(80)])
    store.write([removal(store, "memory/a.md")])
    got = list(vectors(database, count=count))
    assert all(0 < len(keys) <= count and found.dtype == np.float32 for keys, found in got)
    keys = np.concatenate([part for part, _ in got])
    stored_keys, stored = store.vectors(None)
    assert (np.diff(keys) > 0).all() and len(keys) == 80
    order = np.argsort(stored_keys)
    np.testing.assert_array_equal(keys, stored_keys[order])
    np.testing.assert_array_equal(np.concatenate([found for _, found in got]), stored[order])


@pytest.mark.parametrize("rows", [1, 4, 4096])
def test_the_table_is_that_of_the_corpus(
    store: SqliteStore, database: Database, monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    monkeypatch.setattr(databases, "_PIECE_ROWS", rows)
    put(store, "memory/b.md", [passage(text, label="Ann", line=at + 1) for at, text in enumerate(TEXTS)])
    put(store, "memory/c.md", TEXTS[:2])
    put(store, "memory/a.md", TEXTS[::-1], source="sessions")
    # The corpus has the files by their paths, the table by their numbers: b.md was first.
    files = {file.path: file for file in store.corpus(None).files}
    asked = [files[path] for path in ("memory/b.md", "memory/a.md")]
    table = passage_table(database, [file.file for file in reversed(asked)])
    np.testing.assert_array_equal(table[:, 1:], np.concatenate([file.table for file in asked]))
    assert table[:, 0].tolist() == [file.file for file in asked for _ in TEXTS]


def test_keys_far_apart_are_read_whole(store: SqliteStore, database: Database) -> None:
    put(store, "memory/a.md", TEXTS[:2])
    with database.writing():
        database.run("UPDATE sqlite_sequence SET seq = seq + ? WHERE name = 'passages'", (1 << 33,))
    put(store, "memory/b.md", TEXTS)
    assert entries(database) == expected(store)


def test_an_empty_index_has_nothing(store: SqliteStore, database: Database) -> None:
    assert entries(database) == {}
    assert not list(vectors(database))
    assert passage_table(database, []).shape == passage_table(database, [1]).shape == (0, 1 + len(COLUMNS))
    store.begin(Fingerprint(model="", dimensions=0, rules="r", schema=1))
    assert not list(vectors(database))


def test_all_chunks_of_one_reading_show_the_same_state(store: SqliteStore, database: Database) -> None:
    put(store, "memory/a.md", TEXTS)
    before = expected(store)
    with database.reading():
        chunks = vectors(database, count=2)
        next(chunks)
        store.write([removal(store, "memory/a.md")])
        assert sum(len(keys) for keys, _ in chunks) == len(TEXTS) - 2
        assert entries(database) == before
    assert entries(database) == {}
