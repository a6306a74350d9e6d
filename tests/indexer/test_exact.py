"""`mode=vector` in a packed index: sqlite-vec answers, by the stored float32."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from indexer import Index, Mode, SearchFilter, recall
from indexer.engine import reader_manager
from indexer.testing import HashEmbedder
from tests.indexer.workspace import TODAY, Workspace, watched_statements

EMBEDDER = HashEmbedder(32)
ANIMALS = ("quokka", "wombat", "numbat", "袋鼠", "袋熊")


@pytest.fixture
def packed(workspace: Workspace) -> Index:
    for day in range(1, 21):
        items = [f"{ANIMALS[(day + n) % 5]} number {n % 17} digs hole {day * 100 + n}" for n in range(100)]
        workspace.write_items(f"memory/2026-11-{day:02}.md", items)
    index = Index(workspace.root, EMBEDDER, pack_passages=100, today=lambda: TODAY)
    index.sync()
    index.pack()
    assert index.status().packed == 2000
    return index


def recall_of(index: Index, filter: SearchFilter = SearchFilter()) -> float | None:  # noqa: B008  (frozen)
    with index.reader() as view:
        return recall(view, filter=filter)


def test_without_vectors_there_is_no_recall(workspace: Workspace) -> None:
    workspace.write_items("MEMORY.md", ["A quokka digs."])
    assert recall_of(workspace.synced(None)) is None


@pytest.mark.parametrize("prefix", ["", "memory/2026-11-07"])
def test_the_exact_nearest_are_found_and_told_exactly(packed: Index, workspace: Workspace, prefix: str) -> None:
    files = [path for path in workspace.memories() if path.startswith(prefix)]
    texts = [line[2:] for path in files for line in workspace.memories()[path].decode().splitlines()]
    cosines = EMBEDDER.embed_documents(texts) @ np.stack([EMBEDDER.embed_query(query) for query in QUERIES]).T
    for number, query in enumerate(QUERIES):
        with watched_statements() as statements:
            found = packed.search(query, mode="vector", limit=60, filter=SearchFilter(path_prefix=prefix))
        assert (found.mode, found.degraded) == ("vector", ())
        exact = sorted(zip(cosines[:, number].tolist(), texts, strict=True), reverse=True)
        told = {hit.passage.text: hit.vector_score for hit in found.hits}
        by_text = dict(zip(texts, cosines[:, number].tolist(), strict=True))
        assert all(told[text] == pytest.approx(by_text[text], abs=1e-5) for text in told)
        assert {text for _, text in exact[:5]} <= told.keys()
        assert not statements or any("embedding MATCH" in statement for statement in statements)


QUERIES = ("quokka number 3 digs hole 1203", "袋鼠 digs", "numbat 16 hole 705", "wombat number 9")


def test_match_runs_for_vectors_alone(packed: Index, workspace: Workspace) -> None:
    packed.close()
    with watched_statements() as statements:
        other = Index(workspace.root, EMBEDDER, pack_passages=100, today=lambda: TODAY)
        other.search(QUERIES[0], mode="vector")
        assert sum("embedding MATCH" in statement for statement in statements) == 1
        other.search(QUERIES[0])
        assert sum("embedding MATCH" in statement for statement in statements) == 1, "codes are faster, and near enough"
        other.close()


def test_recall_is_measured_against_sqlite_vec_however_large_the_index(
    packed: Index, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (recall_of(packed) or 0.0) > 0.9
    assert recall_of(workspace.index(EMBEDDER)) == 1.0
    monkeypatch.setattr(reader_manager, "MATRIX_PASSAGES", 100)
    few = SearchFilter(path_prefix="memory/2026-11-07")
    assert recall_of(workspace.index(EMBEDDER)) == recall_of(workspace.index(EMBEDDER), few) == 1.0
    packed.close()


def matches(statements: list[str]) -> int:
    return sum("embedding MATCH" in statement for statement in statements)


def test_the_first_question_of_a_process_is_answered_by_sqlite_vec(workspace: Workspace) -> None:
    for day in range(1, 43):
        items = [f"{ANIMALS[(day + n) % 5]} number {n % 17} digs hole {day * 100 + n}" for n in range(100)]
        workspace.write_items(f"memory/{2000 + day}-11-01.md", items)
    workspace.index(EMBEDDER).sync()
    modes: tuple[Mode, Mode] = ("hybrid", "vector")
    for mode, kept in product(modes, (SearchFilter(), FEW)):
        with watched_statements() as statements:
            index = workspace.index(EMBEDDER)
            first = index.search(QUERIES[1], mode=mode, limit=30, filter=kept).hits
            assert matches(statements) == 1
            for other in ("wombat", QUERIES[1]):
                again = index.search(other, mode=mode, limit=30, filter=kept).hits
            assert matches(statements) == 1, "once they are in memory, a pass over all vectors is faster"
            index.search("quokka", mode="text")
            read = len(statements)
            index.search("numbat", mode=mode)
            assert not any("FROM vectors" in statement for statement in statements[read:]), (
                "a search by words keeps them"
            )
            index.close()
        both = {hit.passage.text for hit in first} & {hit.passage.text for hit in again}
        assert len(both) >= 0.9 * len(again) and first[0].passage == again[0].passage
        assert first and all(hit.path.startswith(kept.path_prefix) for hit in first)


FEW = SearchFilter(path_prefix="memory/2007")
