"""Measures of a workspace's own index: what they say, and that they leave everything as it was."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from indexer import CachedEmbedder, Embedder, Index, Vectors
from indexer.testing import HashEmbedder
from memory_service.health import measures
from memory_service.health.measures import measure_recall, measure_searches, questions

WORDS = "deploy stand-up Tuesday courier invoice shipment greenhouse supplier rollback latency budget printer".split()


class Counting(HashEmbedder):
    """Notes what it embeds."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    def embed_query(self, text: str) -> Vectors:
        self.asked.append(text)
        return super().embed_query(text)


def notes(root: Path, files: int, lines: int) -> Path:
    (root / "memory").mkdir(parents=True)
    for file in range(files):
        body = [
            f"- {WORDS[(file + line) % 12]} {WORDS[line * 5 % 12]} note{file} line{line}, 周二部署第{line}次。\n"
            for line in range(lines)
        ]
        (root / "memory" / f"{file:03}.md").write_text("".join(body), "utf-8")
    return root


@contextmanager
def opened(root: Path, embedder: Embedder | None, *, pack_passages: int = 20_000) -> Iterator[Index]:
    index = Index(root, embedder, pack_passages=pack_passages)
    try:
        yield index
    finally:
        index.close()


def indexed(root: Path, embedder: Embedder | None) -> None:
    with opened(root, embedder) as index:
        index.sync()


def contents(root: Path) -> dict[str, bytes]:
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_a_small_workspace_is_measured_and_stays_as_it_is(tmp_path: Path) -> None:
    root = notes(tmp_path, 10, 20)
    indexed(root, HashEmbedder())
    before = contents(root)
    with opened(root, HashEmbedder()) as index:
        detail, figures = measure_searches(index)
        assert measure_recall(index)[1] == {"passages": 200, "packed": 0, "recall": 1.0}
    assert contents(root) == before
    assert f"{figures['searches']:.0f} hybrid searches: p50 " in detail and "view " in detail
    stages = ("view", "words", "embed", "rank", "fetch")
    assert all(0 <= figures[f"{stage}_p50_ms"] <= figures[f"{stage}_p99_ms"] for stage in stages)
    assert figures["p50_ms"] > max(figures[f"{stage}_p50_ms"] for stage in stages)
    assert figures["searches_per_second"] > 0


def test_a_packed_workspace_is_compared_with_the_exact_nearest(tmp_path: Path) -> None:
    root = notes(tmp_path, 20, 20)
    indexed(root, HashEmbedder())
    before = contents(root)
    with opened(root, HashEmbedder(), pack_passages=100) as index:
        measure_searches(index)
        detail, figures = measure_recall(index)
    after = contents(root)
    assert figures["packed"] == 400 and "400 packed" in detail
    assert figures["recall"] > 0.95
    assert {name: after[name] for name in before} == before
    assert set(after) - set(before) <= {"index.sqlite.pack", ".index.sqlite.pack.lock"}


def test_a_pack_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    root = notes(tmp_path, 2, 20)
    indexed(root, None)
    (root / "index.sqlite.pack").mkdir()
    with opened(root, None, pack_passages=10) as index:
        assert "could not be packed" in measure_searches(index)[0]
        assert measure_recall(index)[1]["packed"] == 0


def test_no_question_is_asked_twice_so_that_each_is_embedded(tmp_path: Path) -> None:
    root, embedder = notes(tmp_path, 1, 2), Counting()
    indexed(root, embedder)
    embedder.asked.clear()
    with opened(root, CachedEmbedder(embedder)) as index:
        _, figures = measure_searches(index)
    assert len(set(embedder.asked)) == len(embedder.asked) >= figures["searches"]


def test_a_slow_index_is_measured_by_what_the_time_allows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = notes(tmp_path, 1, 2)
    indexed(root, None)
    monkeypatch.setattr(measures, "_SECONDS", 0.0001)
    with opened(root, None) as index:
        assert measure_searches(index)[1]["searches"] == 1


def test_without_a_model_words_alone_are_measured(tmp_path: Path) -> None:
    root = notes(tmp_path, 2, 5)
    indexed(root, None)
    with opened(root, None) as index:
        assert " text searches: " in measure_searches(index)[0]
        assert measure_recall(index) == (
            "10 passages without vectors, found by words alone",
            {"passages": 10, "packed": 0},
        )


def test_an_index_without_a_passage_has_nothing_to_measure(tmp_path: Path) -> None:
    (tmp_path / "memory").mkdir()
    indexed(tmp_path, HashEmbedder())
    with opened(tmp_path, HashEmbedder()) as index:
        assert measure_searches(index) == measure_recall(index) == (measures.NOTHING, {})


def test_an_index_of_another_model_is_measured_by_words_and_says_so(tmp_path: Path) -> None:
    root = notes(tmp_path, 2, 5)
    indexed(root, HashEmbedder())
    for pack_passages in (20_000, 1):
        with opened(root, HashEmbedder(32), pack_passages=pack_passages) as index:
            detail, _ = measure_searches(index)
        assert " text searches: " in detail and "reindex --full" in detail


@given(st.lists(st.text(), min_size=1, max_size=5))
@example(["", "3"])
def test_questions_can_be_asked_and_are_never_the_same(texts: list[str]) -> None:
    asked = list(islice(questions(texts), 50))
    assert len(set(asked)) == 50
    assert all(0 < len(question.strip()) <= 200 for question in asked)
