from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexer.corpus import PAIR_CHARS, TRIPLE_CHARS, WINDOW_CHARS, WINDOW_REACH, Corpus, Ints
from indexer.stores.sqlite_database import Database
from tests.indexer.corpora import Row, corpus_of, rows
from tests.indexer.workspace import Workspace


def same_section(made: list[Row], low: int, high: int) -> bool:
    """Whether two rows stand below one heading of one file: nothing opens between them."""
    return made[low].file == made[high].file and not any(row.opens for row in made[low + 1 : high + 1])


@given(rows())
def test_pairs_against_loops(made: list[Row]) -> None:
    low, high = corpus_of(made).pairs
    for i, row in enumerate(made):
        joined = i > 0 and same_section(made, i - 1, i) and made[i - 1].chars + row.chars <= PAIR_CHARS
        assert (low[i], high[i]) == (i - joined, i)


@given(rows())
def test_triples_against_loops(made: list[Row]) -> None:
    low, high = corpus_of(made).triples
    for i, row in enumerate(made):
        first, last, size = i, i, row.chars
        if i > 0 and same_section(made, i - 1, i) and size + made[i - 1].chars <= TRIPLE_CHARS:
            first, size = i - 1, size + made[i - 1].chars
        if i + 1 < len(made) and same_section(made, i, i + 1) and size + made[i + 1].chars <= TRIPLE_CHARS:
            last = i + 1
        assert (low[i], high[i]) == (first, last)


@given(rows())
def test_windows_against_loops(made: list[Row]) -> None:
    low, high = corpus_of(made).windows
    for i in range(len(made)):
        assert low[i] == i - reach(made, i, -1)
        assert high[i] == i + reach(made, i, +1)


def reach(made: list[Row], i: int, step: int) -> int:
    taken, size = 0, 0
    for distance in range(1, WINDOW_REACH + 1):
        at = i + step * distance
        if not 0 <= at < len(made) or not same_section(made, min(i, at), max(i, at)):
            break
        size += made[at].chars
        if size > WINDOW_CHARS // 2:
            break
        taken = distance
    return taken


@given(rows(), st.lists(st.integers(0, 100)))
def test_rows_finds_keys(made: list[Row], keys: list[int]) -> None:
    corpus = corpus_of(made)
    found, known = corpus.rows(np.array(keys, np.int64))
    place = {int(key): row for row, key in enumerate(corpus.keys)}
    assert known.tolist() == [key in place for key in keys]
    assert found.tolist() == [place[key] for key in keys if key in place]


def test_an_empty_corpus_has_empty_columns() -> None:
    corpus = Corpus(revision=0, files=(), label_names={})
    assert len(corpus) == len(corpus.file) == 0
    assert corpus.speakers == {}
    for low, high in (corpus.pairs, corpus.triples, corpus.windows, corpus.bounds):
        assert len(low) == len(high) == 0
    assert corpus.rows(np.array([1, 2]))[1].tolist() == [False, False]


def test_refreshing_equals_loading_anew_after_any_edits(workspace: Workspace) -> None:
    chance = random.Random(7)
    index = workspace.synced()
    store = index._store
    corpus: Corpus | None = None
    for round_number in range(40):
        for _ in range(chance.randint(1, 3)):
            edit(workspace, chance, round_number)
        index.sync()
        corpus = store.corpus(corpus)
        anew = store.corpus(None)
        assert corpus.revision == anew.revision
        assert [file.path for file in corpus.files] == [file.path for file in anew.files]
        assert all(np.array_equal(a.table, b.table) for a, b in zip(corpus.files, anew.files, strict=True))
        assert corpus.speakers == anew.speakers
        assert store.corpus(corpus) is corpus
    index.close()


def test_of_a_page_that_grows_only_what_is_new_is_read(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    page = [f"第{number}条 entry {number}" for number in range(300)]
    workspace.write_items("memory/2026-11-02.md", page)
    index = workspace.synced()
    store, read = index._store, list[int]()
    corpus = store.corpus(None)
    table = Database.table

    def counted(database: Database, sql: str, bindings: Sequence[object] = (), *, columns: int) -> Ints:
        rows = table(database, sql, bindings, columns=columns)
        read.append(len(rows))
        return rows

    monkeypatch.setattr(Database, "table", counted)
    for number in range(5):
        page.append(f"one more {number}")
        workspace.write_items("memory/2026-11-02.md", page)
        index.sync()
        corpus = store.corpus(corpus)
        assert sum(read) == 1
        anew = store.corpus(None)
        assert np.array_equal(corpus.files[0].table, anew.files[0].table)
        read.clear()
    page[7] = "another entry"
    workspace.write_items("memory/2026-11-02.md", page)
    index.sync()
    corpus = store.corpus(corpus)
    assert sum(read) == 305, "an entry in the middle is another"
    index.close()


def edit(workspace: Workspace, chance: random.Random, number: int) -> None:
    path = f"memory/{chance.randint(0, 5)}.md"
    file = workspace.root / path
    match chance.choice(["write", "write", "append", "shuffle", "delete", "rename"]):
        case "append" if file.exists():
            file.write_text(file.read_text() + f"- appended {number}\n")
        case "shuffle" if file.exists():
            lines = file.read_text().splitlines(keepends=True)
            chance.shuffle(lines)
            file.write_text("".join(lines))
        case "delete":
            file.unlink(missing_ok=True)
        case "rename" if file.exists():
            file.rename(workspace.root / f"memory/{chance.randint(6, 9)}.md")
        case _:
            speakers = chance.choice([["Ann", "Bob"], ["Cy"], [""]])
            items = [f"{chance.choice(speakers)}: line {chance.randint(0, 9)}" for _ in range(chance.randint(0, 6))]
            heading = chance.choice(["", "# 2026-11-02\n\n", "# Plans\n\n"])
            workspace.write(path, heading + "".join(f"- {item.removeprefix(': ')}\n" for item in items))
