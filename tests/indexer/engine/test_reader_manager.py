from __future__ import annotations

import datetime as dt
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from indexer import Index, Mode, RankingSettings, SearchFilter
from indexer.common.throttle import THROTTLE
from indexer.engine.candidates import Ranked
from indexer.engine.finding import recall
from indexer.engine.matrix import load_matrix
from indexer.engine.reader import NO_TERMS, IndexReader, find_terms
from indexer.engine.reader_manager import IndexReaderManager
from indexer.engine.search import Query, rank
from indexer.engine.segments.builder import open_segment
from indexer.language.terms import term_hashes
from indexer.stores.base import TermEntries
from indexer.stores.sqlite import SqliteSegments, SqliteStore
from indexer.testing import HashEmbedder
from indexer.types import LineRange
from tests.indexer.common.test_throttle import elsewhere
from tests.indexer.talks import write_log
from tests.indexer.test_corpus import edit
from tests.indexer.workspace import TODAY, Workspace, watched_statements

EMBEDDER = HashEmbedder()
WORDS = [f"word{number}" for number in range(200)] + ["袋鼠", "笔记", "会议"]
PLAIN = RankingSettings()


def fill(workspace: Workspace, files: int, items: int, seed: int = 3) -> None:
    chance = random.Random(seed)
    for number in range(files):
        texts = [" ".join(chance.choices(WORDS, k=chance.randint(3, 9))) for _ in range(items)]
        workspace.write_items(f"memory/2026-{number % 12 + 1:02}-{number // 12 + 1:02}.md", texts)
    write_log(workspace.root, "talk", [("user", " ".join(chance.choices(WORDS, k=5))) for _ in range(20)])
    workspace.synced(EMBEDDER).close()


def store_of(workspace: Workspace) -> SqliteStore:
    return SqliteStore(workspace.root / "index.sqlite")


def packed(store: SqliteStore) -> IndexReaderManager:
    """Views of an index that is packed now."""
    views = IndexReaderManager(store, pack_passages=0)
    with store.reading():
        due = views.is_due()
    if due:
        views.pack()
    return views


def seen(store: SqliteStore, views: IndexReaderManager) -> IndexReader:
    with store.reading():
        return views.reader(EMBEDDER.dimensions)


def unpacked(store: SqliteStore) -> IndexReader:
    with store.reading():
        corpus = store.corpus(None)
        return IndexReader(store=store, corpus=corpus, matrix=load_matrix(store, corpus, EMBEDDER.dimensions, None))


def ranked(view: IndexReader, question: str, *, mode: Mode = "hybrid", kept: SearchFilter = SearchFilter()) -> Ranked:  # noqa: B008
    query = Query(text=question, limit=10, mode=mode, filter=kept, today=TODAY)
    vector = None if mode == "text" else EMBEDDER.embed_query(question)
    words = NO_TERMS if mode == "vector" else find_terms(view, question)
    with view.store.reading():
        return rank(view, query, words, vector, 1.0, PLAIN)


def scores(found: Ranked) -> dict[int, float]:
    """Scores by key, without what whole files tell: that is counted where nothing is packed."""
    own = found.scores - found.parts.get("file", 0.0)
    return dict(zip(found.candidates.keys.tolist(), own.tolist(), strict=True))


QUESTIONS = ["word1 word2 word3", "word77", "袋鼠 会议", "word5 word150 word9 word9 nobody"]
FILTERS = [
    SearchFilter(),
    SearchFilter(sources=("sessions",)),
    SearchFilter(since=dt.date(2026, 5, 1), until=dt.date(2026, 7, 31)),
    SearchFilter(path_prefix="memory/2026-1"),
    SearchFilter(without=(LineRange(path="memory/2026-03-01.md", start_line=1, end_line=20),)),
]


@pytest.mark.parametrize("mode", ["hybrid", "text", "vector"])
@pytest.mark.parametrize("kept", FILTERS)
def test_what_is_packed_is_found_as_what_is_not(workspace: Workspace, mode: Mode, kept: SearchFilter) -> None:
    fill(workspace, files=12, items=18)
    store = store_of(workspace)
    plain, view = unpacked(store), seen(store, packed(store))
    assert plain.packed_part is None
    assert view.packed_part is not None
    assert len(view.packed_part.segment) == len(plain) == len(view)
    for question in QUESTIONS:
        expected = scores(ranked(plain, question, mode=mode, kept=kept))
        found = scores(ranked(view, question, mode=mode, kept=kept))
        assert found == pytest.approx(expected, abs=0.05), question
    store.close()


@pytest.mark.parametrize("seed", range(4))
def test_what_is_written_after_the_packing_is_found_beside_it(workspace: Workspace, seed: int) -> None:
    fill(workspace, files=10, items=20, seed=seed)
    store = store_of(workspace)
    views = packed(store)
    chance = random.Random(seed)
    for number in range(5):
        edit(workspace, chance, number)
        workspace.write_items(f"memory/2027-01-0{number + 1}.md", [f"word{number} 袋鼠 fresh{number}", "word3 word4"])
        if number == 3:
            (workspace.root / "memory/2026-02-01.md").unlink()
        workspace.synced(EMBEDDER).close()
        view, plain = seen(store, views), unpacked(store)
        assert view.packed_part is not None
        for question in (*QUESTIONS, f"fresh{number}"):
            for mode in ("hybrid", "text", "vector"):
                expected = scores(ranked(plain, question, mode=mode))
                assert scores(ranked(view, question, mode=mode)) == pytest.approx(expected, abs=0.5), (
                    "counts of what was replaced are kept"
                )
    store.close()


def test_codes_and_short_lists_find_the_best(workspace: Workspace) -> None:
    fill(workspace, files=30, items=150)
    store = store_of(workspace)
    view, plain = seen(store, packed(store)), unpacked(store)
    with store.reading():
        share = recall(view, samples=30)
    assert share is not None
    assert share >= 0.99
    assert recall(plain, samples=30) == 1.0
    agreeing = []
    for question in QUESTIONS:
        for kept in (FILTERS[0], FILTERS[2], SearchFilter(sources=("memory",))):
            best = [
                sorted(all_scores, key=lambda key: -all_scores[key])[:10]
                for all_scores in (scores(ranked(each, question, kept=kept)) for each in (plain, view))
            ]
            agreeing.append(len(set(best[0]) & set(best[1])) / 10)
    assert np.mean(agreeing) >= 0.9
    store.close()


def test_a_read_does_not_see_a_packing_of_what_it_cannot_see(workspace: Workspace) -> None:
    fill(workspace, files=4, items=10)
    store, other = store_of(workspace), store_of(workspace)
    views = packed(store)
    with store.reading():
        before = views.reader(EMBEDDER.dimensions)
        workspace.write_items("memory/2027-02-02.md", ["a wombat"])
        workspace.synced(EMBEDDER).close()
        for path in workspace.root.glob("*.pack"):
            path.unlink()
        packed(other)
        again = views.reader(EMBEDDER.dimensions)
        assert len(again) == len(before)
        assert not ranked(again, "wombat", mode="text").candidates.keys.tolist()
    assert len(ranked(seen(store, views), "wombat", mode="text").candidates.keys) == 1
    store.close()
    other.close()


@pytest.mark.parametrize("damage", ["torn", "text", "gone", "other"])
def test_without_a_sound_packed_part_all_is_looked_at(workspace: Workspace, damage: str) -> None:
    fill(workspace, files=4, items=10)
    store = store_of(workspace)
    packed(store)
    path = store.segments.path()
    assert path is not None
    whole = path.read_bytes()
    if damage == "torn":
        path.write_bytes(whole[: len(whole) // 2])
    elif damage == "text":
        path.write_text("notes", "utf-8")
    elif damage == "gone":
        path.unlink()
    else:
        store.begin(Index(workspace.root, EMBEDDER).fingerprint)
        workspace.synced(EMBEDDER).close()
    view = seen(store, IndexReaderManager(store))
    assert view.packed_part is None
    assert len(view) == 41
    store.close()


def test_what_is_removed_leaves_the_packed_file(workspace: Workspace) -> None:
    fill(workspace, files=6, items=10)
    workspace.write_items("memory/2026-09-09.md", ["the secret is quokkasecret", "word1"])
    workspace.synced(EMBEDDER).close()
    store = store_of(workspace)
    views = packed(store)
    path, mark = store.segments.path(), term_hashes(["quokkasecret"]).astype("<u8").tobytes()
    assert path is not None
    assert mark in path.read_bytes()
    workspace.write_items("memory/2026-09-09.md", ["word1"])
    workspace.synced(EMBEDDER).close()
    views.scrub()
    assert mark not in path.read_bytes()
    segment = open_segment(path, store.head().generation)
    assert segment is not None
    assert "memory/2026-09-09.md" not in segment.paths
    view, plain = seen(store, views), unpacked(store)
    assert view.packed_part is not None
    for question in QUESTIONS:
        assert scores(ranked(view, question)) == pytest.approx(scores(ranked(plain, question)), abs=0.05)
    store.close()


def test_who_no_longer_speaks_is_no_speaker_under_another_name(workspace: Workspace) -> None:
    workspace.write_items("memory/a.md", ["Ana: word1", "Cleo: word2", "Ana: word3", "Cleo: word4"])
    workspace.write_items("memory/b.md", ["Bob: word5", "Bob: word6"])
    workspace.synced(EMBEDDER).close()
    store = store_of(workspace)
    views = packed(store)
    assert set(seen(store, views).speakers.values()) == {"Ana", "Bob", "Cleo"}
    (workspace.root / "memory/b.md").unlink()
    workspace.synced(EMBEDDER).close()
    # The name that is greeted gets the number that Bob's was.
    workspace.write_items("memory/c.md", ["Ana: Hi Zoe!", "Ana: Hello Zoe!"])
    workspace.synced(EMBEDDER).close()
    view, plain = seen(store, views), unpacked(store)
    assert view.packed_part is not None
    assert view.speakers == plain.speakers
    assert set(view.speakers.values()) == {"Ana", "Cleo"}
    store.close()


def test_what_changed_is_read_once_for_a_first_search(workspace: Workspace) -> None:
    fill(workspace, files=3, items=5)
    with watched_statements() as statements:
        index = workspace.index(EMBEDDER)
        index.search("word1")
        index.close()
    assert len([each for each in statements if each.startswith("SELECT file, path, source FROM files")]) == 1


def test_passages_without_vectors_are_found_by_words(workspace: Workspace) -> None:
    fill(workspace, files=3, items=10)
    store = SqliteStore(workspace.root / "words.sqlite")
    index = Index(workspace.root, None, store=store, pack_passages=0)
    index.sync()
    index.close()
    view = seen(store, packed(store))
    assert view.packed_part is not None
    assert view.packed_part.segment.codes is None
    assert len(ranked(view, "袋鼠", mode="text").candidates.keys)
    store.close()


class SlowSegments(SqliteSegments):
    """Reading words takes long; noted are whether work is known to run behind, and when the next words are read."""

    told: ClassVar[list[bool]] = [False]
    during: ClassVar[set[bool]] = set()
    rests: ClassVar[list[float]] = []

    def terms(self) -> Iterator[TermEntries]:
        for chunk in super().terms():
            self.during.add(self.told[-1])
            time.sleep(0.06)
            given = time.monotonic()
            yield chunk
            self.rests.append(time.monotonic() - given)


def test_a_packing_gives_way_and_is_known_as_work_behind(workspace: Workspace) -> None:
    fill(workspace, files=3, items=10)
    store = SqliteStore(workspace.root / "index.sqlite")
    store.segments = slow = SlowSegments(store.path, store._database)
    THROTTLE.on_work_behind(slow.told.append)
    try:
        with elsewhere(THROTTLE.foreground):
            packed(store)
    finally:
        THROTTLE.on_work_behind(lambda busy: None)
    assert slow.rests
    assert min(slow.rests) >= 0.04
    assert slow.during == {True}
    assert slow.told[-1] is False
    store.close()


def test_an_empty_index_is_not_packed(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "index.sqlite")
    packed(store)
    assert not list(tmp_path.iterdir())
    store.close()
