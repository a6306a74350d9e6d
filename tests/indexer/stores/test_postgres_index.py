"""An index in PostgreSQL: what it finds beside SQLite, and what it does when connections, writers or servers go."""

from __future__ import annotations

import datetime as dt
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from indexer import Index
from indexer.engine.segments.builder import fetch_pack, open_segment, pack_store
from indexer.errors import StoreError
from indexer.stores.base import IndexStore
from indexer.stores.postgres.migrations import INDEX_TABLES, migrate_tables
from indexer.stores.postgres.postgres_database import PostgresDatabase
from indexer.stores.postgres.postgres_index import open_postgres_index
from indexer.stores.postgres.postgres_writes import PostgresWrite
from indexer.stores.sqlite import SqliteStore
from indexer.testing import HashEmbedder
from indexer.types import SearchFilter
from tests.benchmarks.postgres_search import draw_searches, is_same, write_sample_notes
from tests.indexer.stores.test_store_contract import EMBEDDER, MADE, keys_of, put, removal
from tests.postgres import PostgresServer, TestDatabases

_TODAY = dt.date(2026, 11, 20)


@pytest.fixture
def databases(shared_database: str) -> Iterator[list[PostgresDatabase]]:
    made = [PostgresDatabase(shared_database) for _ in range(2)]
    yield made
    for database in made:
        database.close()


@pytest.fixture
def stores(databases: list[PostgresDatabase], tmp_path: Path) -> Iterator[list[IndexStore]]:
    """The index of a workspace, as two processes have it."""
    name = secrets.token_hex(8)
    opened: list[IndexStore] = [
        open_postgres_index(database, name, tmp_path / str(number)) for number, database in enumerate(databases)
    ]
    opened[0].begin(MADE)
    yield opened
    for store in opened:
        store.close()


@pytest.mark.parametrize("pack_passages", [10_000, 100])
def test_it_finds_what_sqlite_finds_in_the_same_order(
    databases: list[PostgresDatabase], tmp_path: Path, pack_passages: int
) -> None:
    folder = tmp_path / "w"
    write_sample_notes(folder, 400)
    postgres = open_postgres_index(databases[0], secrets.token_hex(8), tmp_path / "scratch")
    indexes = [
        Index(folder, HashEmbedder(), store=store, pack_passages=pack_passages, today=lambda: _TODAY, zone=dt.UTC)
        for store in (postgres, SqliteStore(tmp_path / "index.sqlite"))
    ]
    for index in indexes:
        index.sync()
        index.pack()
        assert bool(index.status().packed) is (pack_passages == 100)
    shown = 0
    for text, mode, limit, kept in draw_searches(40):
        ours, theirs = (index.search(text, mode=mode, limit=limit, filter=kept).hits for index in indexes)
        assert is_same(ours, theirs), (text, mode, limit, kept)
        shown += len(ours)
    assert shown > 60
    for index in indexes:
        index.close()


def _kill_connections(address: str, *, keep: int) -> None:
    with psycopg.connect(address, autocommit=True) as watch:
        watch.execute(
            """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
               WHERE datname = current_database() AND pid NOT IN (pg_backend_pid(), %s)""",
            [keep],
        )


def test_a_connection_that_is_cut_within_a_write_leaves_nothing_of_it(
    stores: list[IndexStore], shared_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(stores[0], "memory/a.md", ["one"])
    before = stores[0].head(), stores[0].file_states(), keys_of(stores[0], "memory/a.md")
    end = PostgresWrite.end

    def cut(self: PostgresWrite, *arguments: Any) -> None:
        _kill_connections(shared_database, keep=0)
        end(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(PostgresWrite, "end", cut)
        with pytest.raises(StoreError, match="failed"):
            put(stores[0], "memory/b.md", ["two"])
    assert (stores[0].head(), stores[0].file_states(), keys_of(stores[0], "memory/a.md")) == before
    assert stores[1].postings(["two"]) == []
    put(stores[0], "memory/b.md", ["two"])
    assert len(stores[1].postings(["two"])) == 1


def test_what_another_process_wrote_is_found_by_the_next_search(stores: list[IndexStore]) -> None:
    mine, other = stores
    query = EMBEDDER.embed_query("quokka")
    for number in range(12):
        put(mine, f"memory/{number}.md", [f"quokka n{number}", "wombat"])
        (posting,) = other.postings(["quokka"])
        assert len(posting.keys) == number + 1
        keys, _ = other.nearest(query, 99, SearchFilter())
        assert len(keys) == 2 * (number + 1)
    with other.reading():
        assert len(other.postings(["quokka"])[0].keys) == 12
        mine.write([removal(mine, "memory/3.md")])
        put(mine, "memory/12.md", ["quokka again"])
        assert len(mine.postings(["quokka"])[0].keys) == 12
        assert len(other.postings(["quokka"])[0].keys) == 12
        assert len(other.nearest(query, 99, SearchFilter())[0]) == 24
    assert sorted(other.postings(["quokka"])[0].keys) == sorted(mine.postings(["quokka"])[0].keys)
    assert sorted(other.nearest(query, 99, SearchFilter())[0]) == sorted(other.vectors(None)[0])


def test_a_late_vector_is_measured(stores: list[IndexStore]) -> None:
    mine, other = stores
    put(mine, "memory/a.md", ["one", "two"], embedded=False)
    query = EMBEDDER.embed_query("two")
    assert len(other.nearest(query, 9, SearchFilter())[0]) == 0
    first, second = keys_of(mine, "memory/a.md")
    for key in (second, first):
        mine.write((), vectors=[(key, query.astype("<f4").tobytes())], made_with=MADE)
        assert key in other.nearest(query, 9, SearchFilter())[0]


def test_what_a_process_holds_is_void_when_the_database_was_put_back(
    postgres_databases: TestDatabases, migrated_database: str, tmp_path: Path
) -> None:
    databases = [PostgresDatabase(migrated_database) for _ in range(2)]
    mine, other = (open_postgres_index(database, "w", tmp_path) for database in databases)
    mine.begin(MADE)
    put(mine, "memory/a.md", ["one"])
    put_back = postgres_databases.snapshot(migrated_database)
    put(mine, "memory/b.md", ["xylophone"])
    lost_key = keys_of(mine, "memory/b.md")
    query = EMBEDDER.embed_query("tambourine")
    # Terms are stems.
    assert len(other.postings(["xylophon"])) == 1 and lost_key[0] in other.nearest(query, 9, SearchFilter())[0]
    put_back()
    put(mine, "memory/b.md", ["tambourine"])
    assert keys_of(mine, "memory/b.md") == lost_key, "it is given again"
    assert other.postings(["xylophon"]) == [] and len(other.postings(["tambourin"])) == 1
    assert other.nearest(query, 1, SearchFilter())[1][0] == pytest.approx(1, abs=1e-5)
    for store, database in zip((mine, other), databases, strict=True):
        store.close()
        database.close()


def test_a_pack_outlives_a_restart_of_the_database(tmp_path: Path) -> None:
    server = PostgresServer(is_durable=True)
    database = PostgresDatabase(server.address())
    try:
        migrate_tables(database, [INDEX_TABLES])
        store = open_postgres_index(database, "w", tmp_path / "one")
        store.begin(MADE)
        put(store, "memory/a.md", ["one", "two"])
        path, former = store.segments.path(), store.head().generation
        assert path is not None
        segment = pack_store(store, path)
        assert segment is not None and segment.generation == former
        server.stop()
        server.start()
        other = open_postgres_index(database, "w", tmp_path / "two")
        path, generation = other.segments.path(), other.head().generation
        assert path is not None and generation != former
        assert fetch_pack(other, path), "nobody builds it again"
        fetched = open_segment(path, generation)
        assert fetched is not None and fetched.revision == segment.revision and fetched.paths == segment.paths
        assert not fetch_pack(other, path), "it is the newest"
        # What was built before a set-back is not for what came after it.
        other.segments.publish(path, generation=former, revision=segment.revision + 1)
        assert not fetch_pack(other, path)
    finally:
        database.close()
        server.close()
