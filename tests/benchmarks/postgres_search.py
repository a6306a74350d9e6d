"""Searches of one index in PostgreSQL and in SQLite, in turns: the hits, the time, what a database spends.

`python -m tests.benchmarks.postgres_search [--passages 1000 10000 100000] [--searches 2000] [--address postgresql://…]`

Notes are put together from sentences of the sample workspaces, questions from their words and from the sample's own
questions; each is asked with a mode, a limit and a filter by chance. For each size:

- `different`: searches with other hits, another order, or scores that differ by more than roundings of a distance;
- `ratio_p50`, `ratio_p95`: the time in PostgreSQL as a multiple of that in SQLite, over all searches and by mode;
- `database_cpu_ms`: processor time of the database for a search; `own_cpu_ratio`: that of the process beside SQLite's;
- `round_trips`: how often a search waits for the database;
- `bytes_a_passage`: what its tables grew by, with their indexes;
- `first_answer`: a search in a new process that has nothing of the workspace: seconds, and processor seconds of it.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import random
import secrets
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import psycopg

from indexer import Hit, Index, Mode, SearchFilter
from indexer.stores.base import IndexStore
from indexer.stores.postgres.migrations import INDEX_TABLES, migrate_tables
from indexer.stores.postgres.postgres_database import PostgresDatabase, Transaction
from indexer.stores.postgres.postgres_index import open_postgres_index
from indexer.stores.sqlite import SqliteStore
from indexer.testing import HashEmbedder
from tests.postgres import databases

_ROOT = Path(__file__).resolve().parents[2]
_TODAY = dt.date(2026, 11, 20)
_FIRST_DAY = dt.date(2024, 1, 1)
_FILE_PASSAGES = 40
_MODES: tuple[Mode, ...] = ("hybrid", "text", "vector")
# Two roundings of one distance, and what a ranking makes of them.
TOLERANCE = 2e-4
# Share of the passages with a tag: a filter by tags reads all that have it, from either store.
_TAG_SHARE = 0.02


class Search(NamedTuple):
    """A question and how it is asked."""

    text: str
    mode: Mode
    limit: int
    filter: SearchFilter


def sample_sentences() -> list[str]:
    """Sentences of the sample workspaces, English and Chinese."""
    texts = [file.read_text("utf-8") for file in sorted((_ROOT / "data").rglob("*.md"))]
    return [line.strip("-# ") for text in texts for line in text.splitlines() if len(line.strip("-# ")) > 15]


def write_sample_notes(folder: Path, passages: int, *, seed: int = 1) -> None:
    """Fill a workspace with dated notes that are put together from sentences of the samples."""
    chance, sentences = random.Random(seed), sample_sentences()
    for number in range(max(1, passages // _FILE_PASSAGES)):
        day = _FIRST_DAY + dt.timedelta(days=number % 900)
        items = [_item(chance, sentences, number) for _ in range(min(passages, _FILE_PASSAGES))]
        place = folder / "memory" / ("" if number < 900 else f"part{number // 900}") / f"{day}.md"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(f"# {day}\n\n" + "".join(f"- {item}\n" for item in items), "utf-8")


def _item(chance: random.Random, sentences: list[str], number: int) -> str:
    words = " ".join(chance.choice(sentences) for _ in range(chance.randint(1, 2))).split()
    first = chance.randrange(max(1, len(words) - 6))
    said_by = chance.choice(("", "", "", "Ann: ", "Ben: "))
    tag = chance.choice((" #ops", " #home/garden")) if chance.random() < _TAG_SHARE else ""
    return f"{said_by}{' '.join(words[first : first + chance.randint(8, 40)])} {number}{tag}"


def draw_searches(count: int, *, seed: int = 2) -> Iterator[Search]:
    """Questions with a mode, a limit and a filter each, by chance."""
    chance, sentences = random.Random(seed), sample_sentences()
    texts = [row["question"] for row in json.loads((_ROOT / "tests/evals/sample_questions.json").read_text("utf-8"))]
    for number in range(count):
        words = chance.choice(sentences).split()
        drawn_text = " ".join(chance.sample(words, min(len(words), chance.randint(1, 6))))
        yield Search(
            text=chance.choice(texts) if chance.random() < 0.5 else drawn_text,
            mode=_MODES[number % 3],
            limit=chance.choice((3, 6, 6, 20)),
            filter=chance.choice(_FILTERS),
        )


_FILTERS = (
    SearchFilter(),
    SearchFilter(),
    SearchFilter(),
    SearchFilter(sources=("memory",)),
    SearchFilter(since=dt.date(2024, 2, 1), until=dt.date(2024, 9, 1)),
    SearchFilter(path_prefix="memory/2024-0"),
    SearchFilter(tags=("home",)),
)


def is_same(first: tuple[Hit, ...], second: tuple[Hit, ...]) -> bool:
    """True if two searches gave the same hits; those of one score, but for roundings, in any order."""
    if [round(hit.score, 3) for hit in first] != [round(hit.score, 3) for hit in second] and any(
        abs(a.score - b.score) > TOLERANCE for a, b in zip(first, second, strict=False)
    ):
        return False
    return [(hit.path, hit.ordinal) for hit in first] == [(hit.path, hit.ordinal) for hit in second]


@contextmanager
def count_trips() -> Iterator[list[int]]:
    """Counts the statements that are waited for: one begins with its transaction, and the end of a read is not."""
    trips, before = [0], Transaction.execute

    def execute(self: Transaction, *arguments: Any, **options: Any) -> Any:
        trips[0] += 1
        return before(self, *arguments, **options)

    Transaction.execute = execute  # type: ignore[method-assign]
    try:
        yield trips
    finally:
        Transaction.execute = before  # type: ignore[method-assign]


def database_seconds(watch: psycopg.Connection[Any]) -> float:
    """Processor time of the processes that serve clients, but for the one that asks."""
    rows = watch.execute(
        "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
    ).fetchall()
    total = 0.0
    for (pid,) in rows:
        schedule = Path(f"/proc/{pid}/schedstat")
        total += int(schedule.read_text().split()[0]) / 1e9 if schedule.exists() else 0.0
    return total


def _timed(index: Index, search: Search) -> tuple[tuple[Hit, ...], float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    hits = _run(index, search)
    return hits, time.perf_counter() - wall, time.process_time() - cpu


def _index(folder: Path, store: IndexStore) -> Index:
    index = Index(folder, HashEmbedder(384), store=store, today=lambda: _TODAY, zone=dt.UTC)
    index.sync()
    index.pack()
    return index


def measure(address: str, passages: int, searches: int) -> dict[str, Any]:
    """Searches of one size, in turns."""
    database = PostgresDatabase(address)
    with tempfile.TemporaryDirectory() as name, psycopg.connect(address, autocommit=True) as watch:
        folder = Path(name) / "w"
        write_sample_notes(folder, passages)
        begin = time.perf_counter()
        sqlite = _index(folder, SqliteStore(Path(name) / "index.sqlite"))
        middle, before_bytes = time.perf_counter(), table_bytes(watch)
        workspace = secrets.token_hex(8)
        postgres = _index(folder, open_postgres_index(database, workspace, Path(name) / "scratch"))
        built = middle - begin, time.perf_counter() - middle
        grown = {table: size - before_bytes[table] for table, size in table_bytes(watch).items()}
        watch.execute("ANALYZE")
        first = subprocess.run(
            [sys.executable, "-m", "tests.benchmarks.postgres_search", "--first", address, workspace, str(folder)],
            check=True, stdout=subprocess.PIPE, text=True,
        ).stdout  # fmt: skip
        for search in draw_searches(30, seed=9):
            _run(sqlite, search), _run(postgres, search)
        rows = list[tuple[Search, bool, float, float, float, float, int]]()
        spent = database_seconds(watch)
        with count_trips() as trips:
            for number, search in enumerate(draw_searches(searches)):
                before = trips[0]
                turns = [sqlite, postgres] if number % 2 else [postgres, sqlite]
                took = {index: _timed(index, search) for index in turns}
                (ours, wall, cpu), (theirs, sqlite_wall, sqlite_cpu) = took[postgres], took[sqlite]
                rows.append((search, is_same(ours, theirs), wall, sqlite_wall, cpu, sqlite_cpu, trips[0] - before))
        spent = database_seconds(watch) - spent
        postgres.close()
        sqlite.close()
    database.close()
    return _report(passages, rows, spent, built) | {
        "first_answer": json.loads(first),
        "bytes_a_passage": {table: round(size / passages) for table, size in grown.items() if size >= passages},
    }


def table_bytes(watch: psycopg.Connection[Any]) -> dict[str, int]:
    """Bytes of each table of indexes, with its own indexes."""
    return dict(
        watch.execute(
            "SELECT relname, pg_total_relation_size(oid) FROM pg_class WHERE relkind = 'r' AND relname LIKE 'index%'"
        ).fetchall()
    )


def first_answer(address: str, workspace: str, folder: Path) -> list[float]:
    """Seconds and processor seconds of the first search of this process, which fetches the pack."""
    database = PostgresDatabase(address)
    with tempfile.TemporaryDirectory() as name:
        store = open_postgres_index(database, workspace, Path(name) / "scratch")
        index = Index(folder, HashEmbedder(384), store=store, today=lambda: _TODAY, zone=dt.UTC)
        wall, cpu = time.perf_counter(), time.process_time()
        index.search("Who looks at the dashboards?", limit=6)
        took = [round(time.perf_counter() - wall, 3), round(time.process_time() - cpu, 3)]
        index.close()
    database.close()
    return took


def _run(index: Index, search: Search) -> tuple[Hit, ...]:
    return index.search(search.text, mode=search.mode, limit=search.limit, filter=search.filter).hits


def _report(passages: int, rows: list[Any], spent: float, built: tuple[float, float]) -> dict[str, Any]:
    own, theirs = [row[2] for row in rows], [row[3] for row in rows]
    by_mode = {
        mode: round(
            _ratio([row[2] for row in rows if row[0].mode == mode], [row[3] for row in rows if row[0].mode == mode]), 2
        )
        for mode in _MODES
    }
    return {
        "passages": passages,
        "searches": len(rows),
        "different": sum(not row[1] for row in rows),
        "examples": [repr(row[0]) for row in rows if not row[1]][:5],
        "ratio_p50": round(_ratio(own, theirs), 2),
        "ratio_p50_by_mode": by_mode,
        "ratio_p95": round(_quantile(own, 0.95) / _quantile(theirs, 0.95), 2),
        "p50_ms": [round(statistics.median(values) * 1e3, 1) for values in (own, theirs)],
        "own_cpu_ratio": round(sum(row[4] for row in rows) / sum(row[5] for row in rows), 2),
        "database_cpu_ms": round(spent / len(rows) * 1e3, 2),
        "round_trips": round(statistics.mean(row[6] for row in rows), 2),
        "build_seconds": [round(seconds, 1) for seconds in built],
    }


def _ratio(own: list[float], theirs: list[float]) -> float:
    return statistics.median(own) / statistics.median(theirs)


def _quantile(values: list[float], share: float) -> float:
    return sorted(values)[int(share * (len(values) - 1))]


def main() -> None:
    """Measure, and print a line for each size."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--passages", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--searches", type=int, default=2_000)
    parser.add_argument("--address", help="a database in which the tables of an index may be made")
    parser.add_argument("--first", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.first:
        address, workspace, folder = options.first
        sys.stdout.write(json.dumps(first_answer(address, workspace, Path(folder))))
        return

    def run(address: str) -> None:
        database = PostgresDatabase(address)
        migrate_tables(database, [INDEX_TABLES])
        database.close()
        for passages in options.passages:
            sys.stdout.write(json.dumps(measure(address, passages, options.searches)) + "\n")
            sys.stdout.flush()

    if options.address:
        run(options.address)
    else:
        with databases() as made:
            run(made.empty())


if __name__ == "__main__":
    main()
