"""Quality floors of contexts: what settings and rerankers put first is what a block of few tokens holds."""

from __future__ import annotations

import datetime as dt
import html
import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from indexer import Index, RankingSettings
from indexer.embeddings.reranking import RERANKED_HITS, Reranker, Scores
from indexer.engine.ranking import Fusion
from indexer.engine.reader_manager import PACK_PASSAGES
from indexer.language.terms import index_terms
from indexer.types import SearchFilter
from memory_service.memories.block import build_context, candidates_for
from memory_service.schemas import Context
from tests.evals.chinese import load, write_workspace
from tests.evals.models import minilm
from tests.storages import sample_folder

_SAMPLE = json.loads((Path(__file__).parent / "sample_questions.json").read_text("utf-8"))
_NOW = dt.datetime(2026, 11, 21, 12, 0, tzinfo=dt.UTC)
# A handful of passages: an order that gets lost shows.
_BUDGET_TOKENS = 256
Notes = Literal["sample", "chinese"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question and the words that its answer has."""

    question: str
    answer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A workspace whose index is up to date, and what is asked of it."""

    folder: Path
    asked: tuple[Asked, ...]


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[Notes, Place]]:
    chinese, folder = load("natural"), tmp_path_factory.mktemp("chinese")
    write_workspace(chinese, folder)
    pairs = chinese.half("held")[::3]
    made: dict[Notes, Place] = {
        "sample": Place(
            folder=sample_folder(tmp_path_factory.mktemp("sample")),
            asked=tuple(Asked(question=each["question"], answer=each["contains"]) for each in _SAMPLE),
        ),
        "chinese": Place(
            folder=folder, asked=tuple(Asked(question=pair.question, answer=pair.answer) for pair in pairs)
        ),
    }
    for place in made.values():
        index = Index(place.folder, minilm())
        index.sync()
        index.close()
    yield made


class Oracle:
    """The perfect reranker: knows the answers, but not how well the others do."""

    name = "oracle"
    at_once = RERANKED_HITS

    def __init__(self, asked: Sequence[Asked], *, sign: float = 1.0) -> None:
        self._answers = {each.question: each.answer for each in asked}
        self._sign = sign

    def score(self, query: str, texts: Sequence[str]) -> Scores:
        return np.array([self._sign * (self._answers[query] in text) for text in texts])


class Overlap:
    """A plain reranker: the share of the question's terms that a text has."""

    name = "overlap"
    at_once = RERANKED_HITS

    def score(self, query: str, texts: Sequence[str]) -> Scores:
        wanted = set(index_terms(query))
        return np.array([len(wanted & set(index_terms(text))) / len(wanted) for text in texts])


@cache
def held(place: Place, settings: RankingSettings, reranker: Reranker | None = None, *, packed: bool = False) -> float:
    """Share of the questions whose answer stands in the block."""
    most = 100 if packed else PACK_PASSAGES
    index = Index(place.folder, minilm(), ranking=settings, today=_NOW.date, reranker=reranker, pack_passages=most)
    if packed:
        assert index.pack() == () and index.status().packed > most
    found = [_answered(index, each) for each in place.asked]
    index.close()
    return sum(found) / len(found)


def _answered(index: Index, asked: Asked) -> bool:
    context = _block(index, asked.question, _BUDGET_TOKENS)
    seen = " ".join(html.unescape(context.block).split())
    return " ".join(asked.answer.split()) in seen


def _block(index: Index, question: str, budget_tokens: int) -> Context:
    """What the service does for a context."""
    kept = SearchFilter(sources=("memory",))
    hits = index.search(question, limit=candidates_for(budget_tokens), filter=kept, snippets=False).hits
    return build_context(hits, query=question, budget_tokens=budget_tokens, receipt_id="r1", created_at=_NOW)


_FUSIONS: list[tuple[Notes, RankingSettings, float]] = [
    ("sample", RankingSettings(), 0.9),
    ("sample", RankingSettings(fusion="blend"), 0.73),
    ("sample", RankingSettings(fusion="rrf"), 0.71),
    ("sample", RankingSettings(fusion="blend", recency_weight=0), 0.76),
    ("sample", RankingSettings(fusion="rrf", recency_weight=0), 0.75),
    ("sample", RankingSettings(mmr_lambda=0.8), 0.9),
    ("chinese", RankingSettings(), 0.97),
    ("chinese", RankingSettings(fusion="blend"), 0.84),
    ("chinese", RankingSettings(fusion="rrf"), 0.96),
    ("chinese", RankingSettings(mmr_lambda=0.8), 0.97),
]


@pytest.mark.parametrize(("notes", "settings", "floor"), _FUSIONS)
def test_every_ranking_fills_a_block(
    places: dict[Notes, Place], notes: Notes, settings: RankingSettings, floor: float
) -> None:
    """Measured .05 above the floors of the English sample, and .03 above those of the Chinese notes."""
    assert held(places[notes], settings) >= floor


@pytest.mark.parametrize("fusion", ["evidence", "blend", "rrf"])
def test_what_a_perfect_reranker_puts_first_is_in_the_block(places: dict[Notes, Place], fusion: Fusion) -> None:
    """It reads the first hits only: what is not among them it cannot save. Measured 1.0, .92 and .97."""
    place = places["sample"]
    assert held(place, RankingSettings(fusion=fusion), Oracle(place.asked)) >= 0.88


def test_what_a_reranker_puts_last_is_not(places: dict[Notes, Place]) -> None:
    """Measured .17, where .95 of the answers are without it: what the ranking is sure of may stay."""
    place = places["sample"]
    assert held(place, RankingSettings(), Oracle(place.asked, sign=-1.0)) <= 0.25


def test_a_reranker_by_shared_words_costs_what_its_order_costs(places: dict[Notes, Place]) -> None:
    """Its order is worse than that of the ranking, and reaches the block all the same: measured .833, from .95."""
    place = places["sample"]
    assert 0.75 <= held(place, RankingSettings(), Overlap()) < held(place, RankingSettings())


def test_variety_reaches_the_block(tmp_path: Path) -> None:
    """Of notes that repeat each other, few go in, and so others do; with relevance alone the repetitions fill it."""
    repeated = [f"- The gate code of the north garden is 4711, says Ida, note {n}\n" for n in range(12)]
    others = [f"- The gate of the {where} garden has no code\n" for where in ("rose", "herb", "moss")]
    (tmp_path / "MEMORY.md").write_text("".join(repeated + others), "utf-8")
    blocks = {}
    for weight in (1.0, 0.3):
        index = Index(tmp_path, minilm(), ranking=RankingSettings(mmr_lambda=weight), today=_NOW.date)
        index.sync()
        blocks[weight] = _block(index, "What is the gate code of the north garden?", 128).block
        index.close()
    others_in = {weight: sum(where in block for where in ("rose", "herb", "moss")) for weight, block in blocks.items()}
    assert others_in[0.3] > others_in[1.0]
    assert blocks[1.0].count("4711") > blocks[0.3].count("4711") >= 1


@pytest.mark.parametrize("notes", ["sample", "chinese"])
def test_a_packed_index_finds_what_one_in_memory_does(places: dict[Notes, Place], tmp_path: Path, notes: Notes) -> None:
    """Measured alike."""
    place = places[notes]
    copy = Place(folder=Path(shutil.copytree(place.folder, tmp_path / "copy")), asked=place.asked)
    assert held(copy, RankingSettings(), packed=True) >= held(place, RankingSettings()) - 0.02
