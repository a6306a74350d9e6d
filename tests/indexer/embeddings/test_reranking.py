from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from indexer.embeddings.reranking import READ_CHARACTERS, RERANKED_HITS, Reranker, Reranking, Scores
from indexer.errors import EmbedderUnavailable
from indexer.index import Index
from indexer.language.terms import index_terms
from indexer.testing import HashEmbedder
from indexer.types import Hit, Passage
from tests.evals.relevance import calibration_error
from tests.waiting import until


class Overlap:
    """Scores a text by the share of its terms that the question has: short answers first."""

    name = "overlap"
    at_once = 10

    def __init__(self, score: Callable[[str, Sequence[str]], Scores] | None = None) -> None:
        self.asked: list[list[str]] = []
        self._score = score or self._shares

    def score(self, query: str, texts: Sequence[str]) -> Scores:
        self.asked.append(list(texts))
        return self._score(query, texts)

    def _shares(self, query: str, texts: Sequence[str]) -> Scores:
        wanted = set(index_terms(query))
        return np.array([len(wanted & set(index_terms(text))) / max(1, len(index_terms(text))) for text in texts])


def hit(text: str, *, explained: bool = False) -> Hit:
    return Hit(
        path="MEMORY.md", source="memory", passage=Passage(start_line=1, end_line=1, text=text), ordinal=0,
        snippet=text, score=1.0, text_score=1.0, vector_score=None, signals={"text": 1.0} if explained else {},
    )  # fmt: skip


def hits(count: int) -> tuple[Hit, ...]:
    return tuple(hit(f"key {'word ' * (count - number)}") for number in range(count))


def texts(found: Sequence[Hit]) -> list[str]:
    return [one.passage.text for one in found]


def test_the_best_by_the_second_look_go_first_and_keep_their_scores() -> None:
    found, problem = Reranking(Overlap()).rerank(hits(5), "key")
    assert not problem
    assert texts(found) == texts(hits(5)[::-1])
    assert {one.score for one in found} == {1.0} and {len(one.signals) for one in found} == {0}


def test_an_explanation_has_its_score() -> None:
    found, _ = Reranking(Overlap()).rerank((hit("a b", explained=True), hit("a", explained=True)), "a")
    assert [one.signals for one in found] == [{"text": 1.0, "rerank": 1.0}, {"text": 1.0, "rerank": 0.5}]


def test_equals_stay_in_order_and_the_rest_comes_after() -> None:
    reranker = Overlap(lambda _, texts: np.zeros(len(texts)))
    many = hits(RERANKED_HITS + 30)
    found, problem = Reranking(reranker).rerank(many, "key")
    assert (found, problem) == (many, "")
    assert sum(map(len, reranker.asked)) == RERANKED_HITS


def test_long_texts_are_read_in_part_and_few_hits_not_at_all() -> None:
    reranker = Overlap()
    Reranking(reranker).rerank((hit("long " * 10_000), hit("short")), "x")
    assert [len(text) for text in reranker.asked[0]] == [READ_CHARACTERS, 5]
    reranker.asked.clear()
    assert Reranking(reranker).rerank((hit("one"),), "x") == ((hit("one"),), "")
    assert reranker.asked == []


def failing(_: str, __: Sequence[str]) -> Scores:
    raise EmbedderUnavailable("The model x is not there. Put it back.")


def broken(_: str, __: Sequence[str]) -> Scores:
    raise ZeroDivisionError


@pytest.mark.parametrize(
    ("score", "told"),
    [
        (failing, "rerank: The model x is not there. Put it back."),
        (broken, r"rerank: the model overlap failed (ZeroDivisionError). Choose another rerank_model."),
        (lambda _, texts: sys.exit(3), r"rerank: the model overlap failed (SystemExit). Choose another rerank_model."),
        (lambda _, texts: np.zeros(len(texts) - 1), "gave 4 scores for 5 texts"),
        (lambda _, texts: np.full(len(texts), np.nan), "scores that are not finite for 5 texts"),
    ],
)
def test_where_it_fails_the_order_stands(score: Callable[[str, Sequence[str]], Scores], told: str) -> None:
    found, problem = Reranking(Overlap(score)).rerank(hits(5), "key")
    assert found == hits(5)
    assert told in problem and problem.startswith("rerank: ")


def test_what_takes_too_long_is_left_and_stops() -> None:
    go_on = threading.Event()
    done = threading.Event()

    def score(_: str, texts: Sequence[str]) -> Scores:
        go_on.wait(60)
        done.set()
        return np.zeros(len(texts))

    reranker = Overlap(score)
    reranking = Reranking(reranker, deadline_seconds=0.05)
    for _ in range(4):
        found, problem = reranking.rerank(hits(30), "key")
        assert found == hits(30) and "took longer than 0.05 s" in problem
    _, problem = reranking.rerank(hits(30), "key")
    assert "is busy" in problem, "no thread is added to those that hang"
    assert not done.is_set(), "what hangs is not waited for"
    go_on.set()
    assert done.wait(60)
    until(lambda: "busy" not in Reranking.rerank(reranking, hits(2), "key")[1])
    assert len(reranker.asked) <= 4 + 1 + 1, "what was left does not go on with the rest"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    lines = [f"- The key {'and more words ' * (9 - number)}number {number}.\n" for number in range(9)]
    (tmp_path / "MEMORY.md").write_text("".join(lines))
    return tmp_path


def test_a_search_is_reranked_before_it_is_cut(root: Path) -> None:
    seam: Reranker = Overlap()
    index, plain = Index(root, HashEmbedder(), reranker=seam), Index(root, HashEmbedder())
    index.sync()
    found, unlike = index.search("key", limit=2, explain=True), plain.search("key", limit=9)
    assert texts(found.hits) == [f"The key {'and more words ' * more}number {9 - more}." for more in (1, 2)]
    assert found.degraded == () and all("rerank" in one.signals for one in found.hits)
    assert {one.passage.text: one.score for one in unlike.hits}.items() >= {
        one.passage.text: one.score for one in found.hits
    }.items()
    index.close()
    plain.close()


def test_a_search_without_its_reranker_says_so(root: Path) -> None:
    index = Index(root, HashEmbedder(), reranker=Overlap(failing))
    index.sync()
    found = index.search("key", limit=2)
    assert len(found.hits) == 2 and found.degraded == ("rerank: The model x is not there. Put it back.",)
    index.close()


def judged(relevance: Sequence[float]) -> tuple[Hit, ...]:
    return tuple(
        replace(hit(f"note {number}"), score=-float(number), relevance=round(each, 4))
        for number, each in enumerate(relevance)
    )


def told(scores: Sequence[float]) -> Reranking:
    """A reranking of the hits of `judged` by scores of each."""
    return Reranking(Overlap(lambda _, texts: np.array([scores[int(text.split()[1])] for text in texts])))


def together(found: Sequence[Hit]) -> float:
    return sum(one.relevance or 0.0 for one in found)


def test_what_the_model_says_is_weighed_against_relevance() -> None:
    before = judged([0.6, 0.5, 0.4, 0.001, 0.001])
    found, problem = told([0.1, 0.0, 0.9, 0.1, 0.2]).rerank(before, "which?")
    assert not problem and together(found) == pytest.approx(together(before), abs=1e-3)
    assert texts(found)[:2] == ["note 2", "note 0"] and (found[0].relevance or 0.0) > 0.7
    found, _ = told([0.1, 0.0, 0.0, 0.9, 0.1]).rerank(before, "which?")
    assert texts(found)[0] == "note 0", "a preference does not undo all that the ranking knows"
    assert (found[0].relevance or 0.0) > 0.4 and {one.score for one in found} == {one.score for one in before}


@pytest.mark.parametrize("change", [lambda s: s * 1e300, lambda s: s * 1e-9 + 7, lambda s: 1 / (1 + np.exp(-s))])
def test_the_scale_of_scores_makes_no_difference(change: Callable[[Scores], Scores]) -> None:
    scores, before = np.array([0.01, 0.03, 0.02, 0.04]), judged([0.7, 0.6, 0.2, 0.1])
    wanted, other = (told(each.tolist()).rerank(before, "?")[0] for each in (scores, change(scores)))
    assert texts(other) == texts(wanted)
    assert [one.relevance for one in other] == pytest.approx([one.relevance for one in wanted], abs=0.01)


def test_equal_scores_change_nothing() -> None:
    before = judged([0.9, 0.0, 0.4, 1.0, 0.0])
    assert told([3.0] * 5).rerank(before, "which?") == (before, "")


def test_the_least_sure_are_looked_at() -> None:
    before = judged([0.99, 0.98, *(0.001 for _ in range(RERANKED_HITS)), 0.3, 0.6])
    reranker = Overlap(lambda _, texts: np.arange(len(texts), dtype=float))
    found, _ = Reranking(reranker).rerank(before, "which?")
    asked = {text for part in reranker.asked for text in part}
    assert len(asked) == RERANKED_HITS and {"note 0", "note 1", "note 52", "note 53"} <= asked
    unread = [one for one in found if one.passage.text not in asked]
    assert [one.relevance for one in unread] == [0.001] * 4 and len(set(texts(found))) == len(before)


@pytest.mark.parametrize("apart", [0.0, 1.0, 3.0, 100.0])
def test_relevance_stays_a_probability_whatever_the_model_is_worth(apart: float) -> None:
    random = np.random.default_rng(5)
    said, true = list[float](), list[bool]()
    for _ in range(200):
        chances = np.sort(random.beta(0.15, 3.0, 60))[::-1]
        answers = random.random(60) < chances
        scores = apart * answers + random.normal(size=60)
        found, _ = told(scores.tolist()).rerank(judged(chances.tolist()), "which?")
        said += [one.relevance or 0.0 for one in found]
        true += [bool(answers[int(one.passage.text.split()[1])]) for one in found]
    error, _ = calibration_error(np.array(said), np.array(true))
    assert error <= 0.02


@pytest.mark.parametrize(
    "scores",
    [np.full(5, np.inf), np.full(5, np.nan), np.zeros(4), np.zeros((5, 1)), np.array([None] * 5), np.array(["x"] * 5)],
)
def test_nonsense_changes_neither_order_nor_relevance(scores: Scores) -> None:
    before = judged([0.9, 0.5, 0.4, 0.01, 0.01])
    found, problem = Reranking(Overlap(lambda *_: scores)).rerank(before, "which?")
    assert found == before and problem.startswith("rerank: the model overlap ")


def unjudged(count: int) -> tuple[Hit, ...]:
    return tuple(replace(hit(f"line {place}"), score=-place / 10) for place in range(count))


def test_without_relevance_the_model_is_weighed_against_the_ranking() -> None:
    sure = Overlap(lambda _, texts: np.array([float(text == "line 40") for text in texts]))
    found, _ = Reranking(sure).rerank(unjudged(60), "key")
    assert texts(found)[:3] == ["line 40", "line 0", "line 1"]
    # Noise that favours the end of the list a little does not turn it upside down.
    unsure = Overlap(lambda _, texts: np.array([place % 2 + place / 100 for place in range(len(texts))]))
    found, _ = Reranking(unsure).rerank(unjudged(60), "key")
    places = {text: place for place, text in enumerate(texts(found))}
    assert places["line 1"] < places["line 49"] and {one.relevance for one in found} == {None}


@pytest.mark.parametrize(
    ("lines", "query"),
    [
        (["- The key lies in drawer 1.", "- The key lies in the hall.", "- Keys are cut in May."], "Where is the key?"),
        (["- 备用钥匙在第一个抽屉。", "- 钥匙挂在门厅。", "- 钥匙五月配的。"], "钥匙在哪里？"),
    ],
)
@pytest.mark.parametrize(
    "scores", [[np.nan, 1, 2], [np.inf, 0, 1], [None, 1, 2], [1, 2], [1, 2, 3, 4], [[1, 2]] * 3, None, "high"]
)
def test_a_search_is_as_it_was_where_the_model_gives_nonsense(
    tmp_path: Path, lines: list[str], query: str, scores: object
) -> None:
    (tmp_path / "MEMORY.md").write_text("\n".join(lines), "utf-8")
    nonsense: Callable[..., Scores] = lambda *_: scores  # type: ignore[assignment]  # noqa: E731
    index, plain = Index(tmp_path, HashEmbedder(), reranker=Overlap(nonsense)), Index(tmp_path, HashEmbedder())
    index.sync()
    found = index.search(query)
    assert len(found.hits) > 1 and found.hits == plain.search(query).hits
    assert [each.split(":")[0] for each in found.degraded] == ["rerank"]
    index.close()
    plain.close()
