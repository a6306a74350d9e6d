from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rank_bm25 import BM25Okapi

from indexer.corpus import Ints
from indexer.ranking import (
    K1,
    B,
    TextEvidence,
    VectorEvidence,
    age_share,
    blend,
    bm25,
    candidates,
    cue_bonus,
    diversified,
    fuse,
    named_labels,
    reciprocal_ranks,
    speaker_bonus,
    standardised,
    text_evidence,
    vector_evidence,
)
from indexer.types import Cue
from tests.indexer.corpora import TERMS, Row, corpus_of, postings_of, rows

QUESTIONS = st.text(alphabet=TERMS, min_size=1, max_size=4).map(lambda text: "".join(sorted(set(text))))


def naive_bm25(texts: list[str], question: str) -> list[float]:
    mean = sum(map(len, texts)) / len(texts)
    scores = []
    for text in texts:
        score = 0.0
        for term in question:
            containing = sum(term in other for other in texts)
            idf = math.log(1 + (len(texts) - containing + 0.5) / (containing + 0.5))
            count = text.count(term)
            score += idf * count * (K1 + 1) / (count + K1 * (1 - B + B * len(text) / mean))
        scores.append(score)
    return scores


@given(rows(), QUESTIONS)
def test_bm25_of_single_rows(made: list[Row], question: str) -> None:
    at = np.arange(len(made))
    scores = bm25(postings_of(made, question), corpus_of(made), (at, at))
    assert scores == pytest.approx(naive_bm25([row.terms for row in made], question))


@given(rows(), QUESTIONS)
def test_bm25_of_pairs_and_windows(made: list[Row], question: str) -> None:
    corpus = corpus_of(made)
    evidence = text_evidence(postings_of(made, question), corpus)
    for scores, (low, high) in ((evidence.pair, corpus.pairs), (evidence.window, corpus.windows)):
        joined = ["".join(row.terms for row in made[a : b + 1]) for a, b in zip(low, high, strict=True)]
        assert scores == pytest.approx(naive_bm25(joined, question))


@given(rows(), st.sampled_from(TERMS))
def test_bm25_has_the_saturation_of_rank_bm25(made: list[Row], term: str) -> None:
    theirs = BM25Okapi([list(row.terms) for row in made], k1=K1, b=B).get_scores([term])
    at = np.arange(len(made))
    ours = bm25(postings_of(made, term), corpus_of(made), (at, at))
    # Their idf differs and may be negative; with one term it is one factor for all.
    if np.abs(theirs).max() > 1e-9:
        assert np.abs(theirs) / np.abs(theirs).max() == pytest.approx(ours / ours.max(), abs=1e-9)


def test_bm25_without_postings_or_rows() -> None:
    nothing: Ints = np.empty(0, np.int64)
    assert bm25([], corpus_of([Row(terms="a")]), (nothing, nothing)).tolist() == [0]
    assert len(bm25([], corpus_of([]), (nothing, nothing))) == 0


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=60), st.integers(1, 20), st.randoms(use_true_random=False))
def test_candidates_hold_the_best_of_every_signal(signal: list[float], count: int, chance: object) -> None:
    values = np.array(signal)
    allowed = np.arange(len(values)) % 3 != 1
    chosen = candidates([values, -values], allowed, count)
    assert set(chosen) <= set(np.flatnonzero(allowed))
    assert chosen.tolist() == sorted(set(chosen.tolist()))
    rest = [row for row in np.flatnonzero(allowed) if row not in set(chosen)]
    if rest:
        assert sum(values[chosen] >= values[rest].max()) >= count
        assert sum(values[chosen] <= values[rest].min()) >= count


def test_standardised() -> None:
    values = standardised(np.array([1.0, 2.0, 3.0, 99.0]), np.array([0, 1, 2]))
    assert values.mean() == pytest.approx(0)
    assert values.std() == pytest.approx(1)
    assert standardised(np.array([5.0, 5.0]), np.array([0, 1])).tolist() == [0, 0]
    assert standardised(np.array([0.5, 0.5 + 6e-8]), np.array([0, 1])).tolist() == [0, 0], "rounding is no evidence"
    assert len(standardised(np.array([5.0]), np.empty(0, np.int64))) == 0


def test_the_best_of_a_section_counts_for_all_of_it() -> None:
    corpus = corpus_of([Row(file=0), Row(file=0), Row(file=0, opens=True), Row(file=1)])
    own = np.array([0.1, 0.9, 0.3, 0.2])
    assert vector_evidence(own, own, corpus).section.tolist() == [0.9, 0.9, 0.3, 0.2]


TEXT = TextEvidence(unit=np.array([3.0, 0, 1]), pair=np.array([3.0, 3, 1]), window=np.array([3.0, 3, 3]))
VECTOR = VectorEvidence(
    own=np.array([0.2, 0.9, 0.1]), triple=np.array([0.5, 0.6, 0.5]), section=np.array([0.9, 0.9, 0.1])
)
ALL = np.arange(3)


def test_fuse_weighs_standardised_signals() -> None:
    parts = fuse(TEXT, VECTOR, ALL, 0.5)
    assert set(parts) == {"vector", "neighbours", "section", "text", "window", "words"}
    assert parts["vector"] == pytest.approx(0.25 * standardised(VECTOR.own, ALL))
    assert parts["text"] == pytest.approx(0.275 * standardised(TEXT.pair, ALL))
    assert parts["words"] == pytest.approx(0.1 * standardised(TEXT.unit, ALL))
    assert parts["window"].tolist() == [0, 0, 0]
    assert fuse(TEXT, VECTOR, ALL, 1.0)["words"].tolist() == [0, 0, 0]
    assert set(fuse(None, VECTOR, ALL, 1.0)) == {"vector", "neighbours", "section"}
    assert set(fuse(TEXT, None, ALL, 1.0)) == {"text", "window", "words"}


def test_blend_is_seven_tenths_cosine_and_three_tenths_squeezed_bm25() -> None:
    parts = blend(TEXT, VECTOR, ALL)
    assert parts["vector"] == pytest.approx([0.14, 0.63, 0.07])
    assert parts["text"] == pytest.approx([0.3 * 0.75, 0, 0.15])


def test_reciprocal_ranks_give_a_row_without_words_no_lexical_rank() -> None:
    parts = reciprocal_ranks(TEXT, VECTOR, ALL)
    assert parts["vector"] == pytest.approx([1 / 62, 1 / 61, 1 / 63])
    assert parts["text"] == pytest.approx([1 / 61, 0, 1 / 62])


def speaking(*labels: int) -> list[Row]:
    return [Row(label=label) for label in labels]


NAMES = {1: "Anna", 2: "Bob", 3: "小明"}


@pytest.mark.parametrize(
    ("question", "named"),
    [
        ("What does Anna say?", {1}),
        ("What is anna's plan?", {1}),
        ("Annabel?", set()),
        ("Anna and Bob", {1, 2}),
        ("小明说了什么", {3}),
        ("nobody", set()),
    ],
)
def test_named_labels(question: str, named: set[int]) -> None:
    assert named_labels(corpus_of(speaking(1, 2, 3, 0), names=NAMES), question) == named


@pytest.mark.parametrize(
    ("labels", "question", "bonus"),
    [
        ((1, 2, 0), "Anna?", [1.5, -1.5, 0]),
        ((1, 2, 0), "Anna and Bob?", [0, 0, 0]),
        ((1, 2, 0), "who?", [0, 0, 0]),
        ((1, 1, 0), "Anna?", [0, 0, 0]),
    ],
)
def test_speaker_bonus(labels: tuple[int, ...], question: str, bonus: list[float]) -> None:
    assert speaker_bonus(corpus_of(speaking(*labels), names=NAMES), np.arange(3), question).tolist() == bonus


def test_cue_bonus() -> None:
    cues = [Cue.NONE, Cue.TIME, Cue.QUESTION, Cue.ANSWER, Cue.TIME | Cue.ANSWER]
    corpus = corpus_of([Row(cues=int(cue)) for cue in cues])
    assert cue_bonus(corpus, np.arange(5), False).tolist() == [0, 0, -0.4, 0.4, 0.4]
    assert cue_bonus(corpus, np.arange(5), True).tolist() == [0, 1, -0.4, 0.4, 1.4]


def test_age_share_halves_and_spares_what_is_evergreen() -> None:
    today = dt.date(2026, 11, 20)
    ages = [0, 30, 60, -5, None]
    dated = [Row(file=1, date=None if age is None else today - dt.timedelta(days=age)) for age in ages]
    evergreen = Row(file=0, date=dt.date(2020, 1, 1))
    corpus = corpus_of([evergreen, *dated], paths=["MEMORY.md", "memory/a.md"])
    shares = age_share(corpus, np.arange(6), today.toordinal(), 30.0)
    assert shares == pytest.approx([1, 1, 0.5, 0.25, 1, 1])


def test_only_the_files_of_that_name_at_the_top_are_evergreen() -> None:
    corpus = corpus_of([Row(date=dt.date(2020, 1, 1))], paths=["memory/MEMORY.md"])
    assert age_share(corpus, np.arange(1), dt.date(2026, 11, 20).toordinal(), 30.0)[0] < 0.01


def jaccard(a: frozenset[str], b: frozenset[str]) -> float:
    return len(a & b) / len(a | b) if a | b else 1.0


@pytest.mark.parametrize(("weight", "order"), [(1.0, [0, 1, 2]), (0.5, [0, 2, 1]), (0.0, [0, 2, 1])])
def test_diversified_puts_back_what_repeats(weight: float, order: list[int]) -> None:
    texts = [frozenset("abc"), frozenset("abc"), frozenset("xyz")]
    assert diversified(np.array([3.0, 2.9, 1.5]), texts, weight) == order


@given(
    st.lists(st.tuples(st.floats(-5, 5), st.frozensets(st.sampled_from("abcdef"))), min_size=1, max_size=12),
    st.floats(0, 1),
)
def test_diversified_against_loops(made: list[tuple[float, frozenset[str]]], weight: float) -> None:
    scores = [score for score, _ in made]
    spread = max(scores) - min(scores)
    relevance: Callable[[int], float] = lambda i: (scores[i] - min(scores)) / spread if spread else 1.0  # noqa: E731
    order = diversified(np.array(scores), [terms for _, terms in made], weight)
    assert sorted(order) == list(range(len(made)))
    for place, i in enumerate(order):

        def gain(j: int, before: list[int] = order[:place]) -> float:
            likeness = max((jaccard(made[j][1], made[k][1]) for k in before), default=0.0)
            return weight * relevance(j) - (1 - weight) * likeness

        assert gain(i) >= max(gain(j) for j in order[place:]) - 1e-9
