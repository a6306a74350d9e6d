"""The measuring of a workspace's own index: what it says, and that it leaves everything as it was."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from indexer import Embedder, EmbeddingError, Index, SourceMissing, StoreOutdated
from indexer.embeddings.base import CachedEmbedder
from indexer.stores import open_store
from indexer.stores.sqlite import SqliteStore
from indexer.testing import HashEmbedder
from indexer.types import Vectors
from memory_service.health.benchmark import Benchmark, measure, questions

SECONDS = 0.1
WORDS = "deploy stand-up Tuesday courier invoice shipment greenhouse supplier rollback latency budget printer".split()


class Counting(HashEmbedder):
    """Counts what it embeds, and fails when told to."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []
        self.broken = False

    def embed_query(self, text: str) -> Vectors:
        self.asked.append(text)
        return super().embed_query(text)

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        if self.broken:
            raise EmbeddingError("The model is gone. Bring it back.")
        return HashEmbedder().embed_documents(texts)


def notes(root: Path, files: int, lines: int) -> Path:
    (root / "memory").mkdir(parents=True)
    for file in range(files):
        body = [
            f"- {WORDS[(file + line) % 12]} {WORDS[line * 5 % 12]} note{file} line{line}, 周二部署第{line}次。\n"
            for line in range(lines)
        ]
        (root / "memory" / f"{file:03}.md").write_text("".join(body), "utf-8")
    return root


def measured(root: Path, embedder: Embedder | None, *, pack_passages: int = 20_000) -> Benchmark:
    def opened(place: Path = root) -> Index:
        return Index(root, embedder, store=open_store("sqlite", place), pack_passages=pack_passages)

    index = opened()
    try:
        return measure(index, opened, embedder, seconds=SECONDS)
    finally:
        index.close()


def indexed(root: Path, embedder: Embedder | None) -> None:
    index = Index(root, embedder)
    index.sync()
    index.close()


def contents(root: Path) -> dict[str, bytes]:
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_a_small_workspace_is_measured_and_stays_as_it_is(tmp_path: Path) -> None:
    root = notes(tmp_path, 10, 20)
    indexed(root, HashEmbedder())
    before = contents(root)
    found = measured(root, HashEmbedder())
    assert contents(root) == before
    assert (found.passages, found.packed, found.mode, found.recall, found.degraded) == (200, 0, "hybrid", 1.0, ())
    assert found.searches > 0 and found.searches_per_second > 0
    assert [stage.name for stage in found.stages] == ["whole", "view", "words", "embed", "rank", "fetch"]
    assert all(0 <= stage.p50_ms <= stage.p99_ms for stage in found.stages)
    assert found.stages[0].p50_ms > max(stage.p50_ms for stage in found.stages[1:])
    assert 0 < found.indexed <= 200
    assert found.indexing_per_second and found.embedding_per_second


def test_a_packed_workspace_is_compared_with_the_exact_nearest(tmp_path: Path) -> None:
    root = notes(tmp_path, 20, 20)
    indexed(root, HashEmbedder())
    before = contents(root)
    found = measured(root, HashEmbedder(), pack_passages=100)
    after = contents(root)
    assert found.packed == 400
    assert found.recall is not None and found.recall > 0.95
    assert {name: after[name] for name in before} == before
    assert set(after) - set(before) <= {"index.sqlite.pack", ".index.sqlite.pack.lock"}


def test_what_keeps_a_large_index_from_being_packed_is_told(tmp_path: Path) -> None:
    root = notes(tmp_path, 2, 20)
    indexed(root, None)
    (root / "index.sqlite.pack").mkdir()
    found = measured(root, None, pack_passages=10)
    assert found.packed == 0 and any("could not be packed" in line for line in found.degraded)


def test_no_question_is_asked_twice_so_that_each_is_embedded(tmp_path: Path) -> None:
    root, embedder = notes(tmp_path, 1, 2), Counting()
    indexed(root, embedder)
    embedder.asked.clear()
    found = measured(root, CachedEmbedder(embedder))
    assert len(set(embedder.asked)) == len(embedder.asked) >= found.searches


def test_without_a_model_words_alone_are_measured(tmp_path: Path) -> None:
    root = notes(tmp_path, 2, 5)
    indexed(root, None)
    found = measured(root, None)
    assert (found.mode, found.recall, found.embedding_per_second, found.degraded) == ("text", None, None, ())
    assert found.indexed == 10 and found.indexing_per_second


@pytest.mark.parametrize("with_files", [False, True])
def test_what_holds_nothing_is_named_and_no_index_is_made(tmp_path: Path, with_files: bool) -> None:
    if with_files:
        notes(tmp_path, 1, 1)
    before = contents(tmp_path)
    with pytest.raises(SourceMissing, match=r"nothing to measure.*`memory-service reindex`"):
        measured(tmp_path, HashEmbedder())
    assert contents(tmp_path) == before


def test_an_index_of_another_model_is_measured_by_words_and_says_so(tmp_path: Path) -> None:
    root = notes(tmp_path, 2, 5)
    indexed(root, HashEmbedder())
    for pack_passages in (20_000, 1):
        found = measured(root, HashEmbedder(32), pack_passages=pack_passages)
        assert found.mode == "text" and any("reindex --full" in line for line in found.degraded)


def test_an_index_of_another_version_is_refused_with_the_remedy(tmp_path: Path) -> None:
    root = notes(tmp_path, 1, 2)
    indexed(root, None)
    store = SqliteStore(root / "index.sqlite")
    with store._database.writing():
        store._database.run("UPDATE meta SET value = json_set(value, '$.schema', 1) WHERE name = 'fingerprint'")
    store.close()
    with pytest.raises(StoreOutdated, match="`memory-service reindex`"):
        measured(root, None)


def test_a_model_that_fails_is_told_and_the_rest_is_measured(tmp_path: Path) -> None:
    root, embedder = notes(tmp_path, 2, 5), Counting()
    indexed(root, embedder)
    embedder.broken = True
    found = measured(root, embedder)
    assert found.embedding_per_second is None and found.indexed == 10
    assert any("The model is gone" in line for line in found.degraded)


@given(st.lists(st.text(), min_size=1, max_size=5))
@example(["", "3"])
def test_questions_can_be_asked_and_are_never_the_same(texts: list[str]) -> None:
    asked = list(islice(questions(texts), 50))
    assert len(set(asked)) == 50
    assert all(0 < len(question.strip()) <= 70 for question in asked)
