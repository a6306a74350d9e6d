"""A second look reaches the block, by the real index and the bundled model: what it finds is packed."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from indexer import Hit, Index, MiniLM
from indexer.embeddings.reranking import Reranker, Scores
from memory_service.memories.block import RelevanceLimits, build_context, candidates_for
from memory_service.schemas.memories import Context

NOW = dt.datetime(2026, 11, 1, tzinfo=dt.UTC)
ENGLISH = [f"The garden club met on day {number} and spoke of roses, hedges and rain." for number in range(60)]
FLOWERS = ("玫瑰", "树篱", "雨水", "百合")
CHINESE = [f"花园俱乐部第{number}天开会，谈到{FLOWERS[number % 4]}。" for number in range(60)]


class Knows:
    """A reranker that was told which text answers."""

    name = "knows"
    at_once = 50

    def __init__(self, answer: str) -> None:
        self._answer = answer

    def score(self, query: str, texts: Sequence[str]) -> Scores:
        return np.array([float(self._answer in text) for text in texts])


def searched(root: Path, query: str, reranker: Reranker | None = None) -> tuple[Hit, ...]:
    index = Index(root, MiniLM(), reranker=reranker)
    index.sync()
    found = index.search(query, limit=candidates_for(200), snippets=False)
    assert found.degraded == () and all(hit.relevance is not None for hit in found.hits)
    index.close()
    return found.hits


def block(hits: Sequence[Hit], min_relevance: float = 0.0) -> Context:
    limits = RelevanceLimits(min_relevance=min_relevance)
    return build_context(hits, query="", budget_tokens=200, limits=limits, receipt_id="r", created_at=NOW)


@pytest.mark.parametrize(
    ("lines", "query"), [(ENGLISH, "When did the club speak of roses?"), (CHINESE, "花园俱乐部什么时候谈到玫瑰？")]
)
def test_what_a_second_look_finds_is_packed(tmp_path: Path, lines: list[str], query: str) -> None:
    (tmp_path / "MEMORY.md").write_text("".join(f"- {line}\n" for line in lines), "utf-8")
    before = searched(tmp_path, query)
    answer = before[30].passage.text
    assert answer not in block(before).block
    after = searched(tmp_path, query, Knows(answer))
    assert answer in block(after).block and len(after) == len(before)
    best = max(after, key=lambda hit: hit.relevance or 0.0)
    assert best.passage.text == answer and answer in block(after, best.relevance or 1.0).block
