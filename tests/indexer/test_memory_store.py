"""An index in memory gives the answers of one in SQLite, and leaves nothing behind."""

from __future__ import annotations

import datetime as dt
import gc
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from indexer import (
    Hit,
    Index,
    LineRange,
    Mode,
    SearchFilter,
    StoreBusy,
    StoreError,
    SyncCancelled,
    neighbours,
    recall,
)
from indexer.stores import STORES, open_store
from indexer.testing import HashEmbedder
from indexer.types import Fingerprint
from tests.indexer.memory_store import InMemoryStore
from tests.indexer.rebuilds import rebuild
from tests.indexer.talks import write_log
from tests.indexer.workspace import Workspace

QUESTIONS = (
    "word1 word2 word3",
    "word77 词7",
    "谁负责部署？",
    "who deploys on 2026-03-01?",
    "word5",
    "Ann word9",
    "词12 周二",
)
FILTERS = (
    SearchFilter(),
    SearchFilter(sources=("sessions",)),
    SearchFilter(since=dt.date(2026, 3, 1), until=dt.date(2026, 5, 1)),
    SearchFilter(path_prefix="memory/2026-0"),
    SearchFilter(without=(LineRange(path="memory/2026-02-01.md", start_line=2, end_line=20),)),
)
PACKED_FROM = 100


def write_all(workspace: Workspace, files: range, *, seed: int = 5) -> None:
    chance = np.random.default_rng(seed)
    words = [
        *(f"word{number}" for number in range(120)),
        *(f"词{number}" for number in range(40)),
        "Ann",
        "部署",
        "周二",
    ]
    for file in files:
        items = [" ".join(chance.choice(words, 7)) for _ in range(25)]
        workspace.write_items(f"memory/2026-{file + 1:02}-01.md", items)
    write_log(workspace.root, [("Ann", "Hey Kate! word5 word9"), ("Kate", "谁负责部署？ Ann 周二部署。")] * 3)


class Pair:
    """The indexes of one workspace in both stores."""

    def __init__(self, workspace: Workspace, *, packed: bool) -> None:
        most = PACKED_FROM if packed else 6_000
        self.workspace = workspace
        self.memory = InMemoryStore(packed=packed)
        self.indexes = [
            workspace.index(HashEmbedder(), store=store, pack_passages=most)
            for store in (open_store("sqlite", workspace.root), self.memory)
        ]

    def sync(self, *, full: bool = False) -> None:
        reports = [index.sync(full=full) for index in self.indexes]
        counted = [(each.added, each.changed, each.removed, each.unchanged, each.degraded) for each in reports]
        assert counted[0] == counted[1]

    def agree(self) -> None:
        statuses = [index.status() for index in self.indexes]
        held = [(each.counts.files, each.counts.passages, each.counts.embedded) for each in statuses if each.counts]
        assert held[0] == held[1]
        assert statuses[0].packed == statuses[1].packed
        for question in QUESTIONS:
            for mode in ("hybrid", "text", "vector"):
                for kept in FILTERS:
                    self.ask(question, mode, kept)

    def ask(self, question: str, mode: Mode, kept: SearchFilter) -> None:
        found = [index.search(question, mode=mode, filter=kept, limit=12, explain=True) for index in self.indexes]
        assert (found[0].mode, found[0].degraded) == (found[1].mode, found[1].degraded)
        assert [place(hit) for hit in found[0].hits] == [place(hit) for hit in found[1].hits], (question, mode, kept)
        for one, other in zip(found[0].hits, found[1].hits, strict=True):
            assert one.score == pytest.approx(other.score, abs=1e-5)
            assert one.signals == pytest.approx(other.signals, abs=1e-5)
            assert one.vector_score == pytest.approx(other.vector_score, abs=1e-5)

    def close(self) -> None:
        for index in self.indexes:
            index.close()


def place(hit: Hit) -> tuple[object, ...]:
    return hit.path, hit.source, hit.ordinal, hit.passage, hit.snippet


@pytest.fixture(params=[False, True], ids=["all", "packed"])
def pair(workspace: Workspace, request: pytest.FixtureRequest) -> Iterator[Pair]:
    made = Pair(workspace, packed=request.param)
    yield made
    made.close()


def test_answers_are_those_of_sqlite_whatever_happens(pair: Pair) -> None:
    workspace = pair.workspace
    write_all(workspace, range(8))
    pair.sync()
    pair.agree()
    workspace.write_items("memory/2026-02-01.md", ["word1 anew", "部署 周二 word77"])
    (workspace.root / "memory/2026-03-01.md").unlink()
    write_all(workspace, range(8, 10), seed=6)
    pair.sync()
    pair.agree()
    pair.sync(full=True)
    pair.agree()
    for index in pair.indexes:
        index.check()
        with index.reader() as view:
            assert recall(view, samples=10) == pytest.approx(1.0, abs=0.1)
            asked, right = neighbours(view)
        assert asked == right == 5


def test_what_is_erased_is_nowhere(pair: Pair) -> None:
    write_all(pair.workspace, range(6))
    secret = "memory/2026-01-01.md"
    pair.sync()
    rebuild_halfway(pair.indexes[1])
    assert pair.indexes[1].status().rebuild is not None
    for index in pair.indexes:
        before = index.passages_of([secret])
        assert len(before) == 25
        (pair.workspace.root / secret).unlink(missing_ok=True)
        index.sync([secret], missing_ok=True)
        assert index.scrub()
        found = index.erased_passages(before, [secret])
        assert (found.passages, found.left) == (25, ())
        assert {"rows", "full text", "vectors"} <= set(found.checked)
    unfinished = pair.memory.beside.unfinished_generation()
    assert unfinished is not None and secret not in unfinished.store.file_states()
    pair.agree()


def rebuild_halfway(index: Index) -> None:
    def stop(step: str) -> None:
        if step == "filled":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rebuild(index, stop)


def test_a_rebuild_is_one_at_a_time_and_goes_on(workspace: Workspace) -> None:
    write_all(workspace, range(3))
    store = InMemoryStore()
    index = workspace.synced(HashEmbedder(), store=store)
    before = index.search("word1 word2").hits
    with store.beside.hold_lock(), pytest.raises(StoreBusy, match="running"):
        index.sync(full=True)
    with pytest.raises(SyncCancelled):
        index.sync(full=True, cancelled=lambda: True)
    assert index.search("word1 word2").hits == before
    index.sync(full=True)
    assert index.status().rebuild is None
    assert [place(hit) for hit in index.search("word1 word2").hits] == [place(hit) for hit in before]


def test_a_reader_keeps_its_generation_while_another_takes_its_place(workspace: Workspace) -> None:
    write_all(workspace, range(3))
    store = InMemoryStore()
    index = workspace.synced(HashEmbedder(), store=store)
    generation = store.head().generation
    with store.reading():
        thread = threading.Thread(target=lambda: index.sync(full=True))
        thread.start()
        thread.join()
        assert store.head().generation == generation
    assert store.head().generation != generation


def test_it_makes_no_file(workspace: Workspace) -> None:
    write_all(workspace, range(2))
    before = sorted(workspace.root.rglob("*"))
    index = Index(workspace.root, HashEmbedder(), store=InMemoryStore())
    index.sync()
    assert index.search("word1 word2").hits
    index.sync(full=True)
    index.close()
    assert sorted(workspace.root.rglob("*")) == before
    other = Index(workspace.root, HashEmbedder(), store=InMemoryStore())
    assert other.is_missing, "another index in memory is another index"


def test_a_packed_part_goes_with_the_index(workspace: Workspace) -> None:
    write_all(workspace, range(8))
    index = workspace.synced(HashEmbedder(), store=InMemoryStore(packed=True), pack_passages=PACKED_FROM)
    pack = index._store.segments.path()
    assert pack is not None and pack.exists() and index.status().packed > PACKED_FROM
    index.sync(full=True)
    following = index._store.segments.path()
    assert following is not None and following.exists() and not pack.exists()
    index.close()
    del index
    gc.collect()
    assert not following.parent.exists()


def test_a_store_that_is_not_there_is_told_with_those_that_are(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=f"no store 'postgres'. Choose one of {', '.join(STORES)}"):
        Index(tmp_path, None, store="postgres")


def test_a_write_needs_a_beginning() -> None:
    store = InMemoryStore()
    with pytest.raises(StoreError, match="never begun"):
        store.write(())
    store.begin(Fingerprint(model="", dimensions=0, rules="r", schema=1))
    assert store.write(()).refused == ()
