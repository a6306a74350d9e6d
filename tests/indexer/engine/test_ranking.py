from __future__ import annotations

import datetime as dt
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexer.engine.bm25 import TextEvidence
from indexer.engine.ranking import (
    MULTILINGUAL_WEIGHTS,
    VectorEvidence,
    age_share,
    blend,
    candidates,
    cue_bonus,
    fuse,
    mmr_order,
    reciprocal_ranks,
    role_bonus,
    speaker_bonus,
    spread,
    standardise,
    vector_evidence,
)
from indexer.types import ROLES, Cue
from tests.indexer.corpora import Row, corpus_of


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


def teststandardised() -> None:
    values = standardise(np.array([1.0, 2.0, 3.0]))
    assert values.mean() == pytest.approx(0)
    assert values.std() == pytest.approx(1)
    assert standardise(np.array([5.0, 5.0])).tolist() == [0, 0]
    assert standardise(np.array([0.5, 0.5 + 6e-8])).tolist() == [0, 0], "rounding is no evidence"
    assert len(standardise(np.empty(0))) == 0


def test_the_best_of_a_section_counts_for_all_of_it() -> None:
    corpus = corpus_of([Row(file=0), Row(file=0), Row(file=0, opens=True), Row(file=1)])
    own = np.array([0.1, 0.9, 0.3, 0.2])
    assert vector_evidence(own, own, corpus).section.tolist() == [0.9, 0.9, 0.3, 0.2]


TEXT = TextEvidence(unit=np.array([3.0, 0, 1]), pair=np.array([3.0, 3, 1]), window=np.array([3.0, 3, 3]))
VECTOR = VectorEvidence(
    own=np.array([0.2, 0.9, 0.1]), triple=np.array([0.5, 0.6, 0.5]), section=np.array([0.9, 0.9, 0.1])
)


def test_fuse_weighs_standardised_signals() -> None:
    parts = fuse(TEXT, VECTOR, 0.5, characters=True)
    assert set(parts) == {"vector", "neighbours", "section", "text", "window", "words"}
    assert parts["vector"] == pytest.approx(0.25 * standardise(VECTOR.own))
    assert parts["text"] == pytest.approx(0.1 * standardise(TEXT.pair))
    assert parts["words"] == pytest.approx(0.9 * standardise(TEXT.unit))
    assert parts["window"].tolist() == [0, 0, 0]
    assert fuse(TEXT, VECTOR, 1.0)["words"].tolist() == [0, 0, 0]
    assert set(fuse(None, VECTOR, 1.0)) == {"vector", "neighbours", "section"}
    assert set(fuse(TEXT, None, 1.0)) == {"text", "window", "words"}


def test_words_count_less_beside_multilingual_vectors_where_no_passage_has_rare_ones() -> None:
    one = 1.6 * np.log1p(3 / 1.5)
    for best, share in ((0.5 * one, 0.25), (one, 0.5), (2 * one, 1.0), (5 * one, 1.0), (0.0, 0.0)):
        text = TextEvidence(unit=np.array([best, 0, 0]), pair=TEXT.pair, window=TEXT.window)
        parts = fuse(text, VECTOR, 1.0, weights=MULTILINGUAL_WEIGHTS)
        assert parts["text"] == pytest.approx(share * 0.2 * standardise(TEXT.pair))
        assert parts["vector"] == pytest.approx(1.1 * standardise(VECTOR.own))
        # Without vectors nothing else tells passages apart.
        alone = fuse(text, None, 1.0, weights=MULTILINGUAL_WEIGHTS)
        assert alone["text"] == pytest.approx(0.25 * standardise(TEXT.pair))


@pytest.mark.parametrize(
    ("vector", "trust", "characters", "pair", "unit"),
    [
        (VECTOR, 1.0, False, 0.3, 0.0),
        (VECTOR, 0.2, False, 0.25, 0.2),
        (None, 1.0, False, 0.25, 0.2),
        (None, 0.2, True, 0.1, 0.9),
    ],
)
def test_words_weigh_more_where_vectors_say_less(
    vector: VectorEvidence | None, trust: float, characters: bool, pair: float, unit: float
) -> None:
    parts = fuse(TEXT, vector, trust, characters=characters)
    assert parts["text"] == pytest.approx(pair * standardise(TEXT.pair))
    assert parts["words"] == pytest.approx(unit * standardise(TEXT.unit))


def test_blend_is_seven_tenths_cosine_and_three_tenths_squeezed_bm25() -> None:
    parts = blend(TEXT, VECTOR)
    assert parts["vector"] == pytest.approx([0.14, 0.63, 0.07])
    assert parts["text"] == pytest.approx([0.3 * 0.75, 0, 0.15])


def test_reciprocal_ranks_give_a_row_without_words_no_lexical_rank() -> None:
    parts = reciprocal_ranks(TEXT, VECTOR)
    assert parts["vector"] == pytest.approx([1 / 62, 1 / 61, 1 / 63])
    assert parts["text"] == pytest.approx([1 / 61, 0, 1 / 62])


@pytest.mark.parametrize(
    ("labels", "named", "bonus"),
    [
        ((1, 2, 0), {1}, [1.5, -1.5, 0]),
        ((1, 2, 3), {1, 2}, [1.5, 1.5, -1.5]),
        ((1, 2, 0), {1, 2}, [0, 0, 0]),
        ((1, 2, 0), set(), [0, 0, 0]),
        ((1, 1, 0), {1}, [0, 0, 0]),
    ],
)
def test_speaker_bonus(labels: tuple[int, ...], named: set[int], bonus: list[float]) -> None:
    speakers = {label: str(label) for label in labels if label}
    assert speaker_bonus(np.array(labels), speakers, frozenset(named)).tolist() == bonus


def test_cue_bonus() -> None:
    cues = np.array([Cue.NONE, Cue.TIME, Cue.QUESTION, Cue.ANSWER, Cue.TIME | Cue.ANSWER], np.int64)
    assert cue_bonus(cues, False).tolist() == [0, 0, -0.4, 0.4, 0.4]
    assert cue_bonus(cues, True).tolist() == [0, 1, -0.4, 0.4, 1.4]


def test_age_share_halves_and_spares_what_is_evergreen() -> None:
    today = dt.date(2026, 11, 20)
    ages = [0, 30, 60, -5, None]
    dated = [Row(file=1, date=None if age is None else today - dt.timedelta(days=age)) for age in ages]
    evergreen = Row(file=0, date=dt.date(2020, 1, 1))
    corpus = corpus_of([evergreen, *dated], paths=["MEMORY.md", "memory/a.md"])
    shares = age_share(corpus.days, corpus.evergreen, today.toordinal(), 30.0)
    assert shares == pytest.approx([1, 1, 0.5, 0.25, 1, 1])


def test_only_the_files_of_that_name_at_the_top_are_evergreen() -> None:
    corpus = corpus_of([Row(date=dt.date(2020, 1, 1))], paths=["memory/MEMORY.md"])
    assert age_share(corpus.days, corpus.evergreen, dt.date(2026, 11, 20).toordinal(), 30.0)[0] < 0.01


def jaccard(a: frozenset[str], b: frozenset[str]) -> float:
    return len(a & b) / len(a | b) if a | b else 1.0


@pytest.mark.parametrize(("weight", "order"), [(1.0, [0, 1, 2]), (0.5, [0, 2, 1]), (0.0, [0, 2, 1])])
def test_diversified_puts_back_what_repeats(weight: float, order: list[int]) -> None:
    texts = [frozenset("abc"), frozenset("abc"), frozenset("xyz")]
    assert mmr_order(np.array([3.0, 2.9, 1.5]), texts, weight, 3) == order
    assert mmr_order(np.array([3.0, 2.9, 1.5]), texts, weight, 2) == order[:2]


@given(
    st.lists(st.tuples(st.floats(-5, 5), st.frozensets(st.sampled_from("abcdef"))), min_size=1, max_size=12),
    st.floats(0, 1),
)
def test_diversified_against_loops(made: list[tuple[float, frozenset[str]]], weight: float) -> None:
    scores = [score for score, _ in made]
    spread = max(scores) - min(scores)
    relevance: Callable[[int], float] = lambda i: (scores[i] - min(scores)) / spread if spread else 1.0  # noqa: E731
    order = mmr_order(np.array(scores), [terms for _, terms in made], weight, len(made))
    assert sorted(order) == list(range(len(made)))
    for place, i in enumerate(order):

        def gain(j: int, before: list[int] = order[:place]) -> float:
            likeness = max((jaccard(made[j][1], made[k][1]) for k in before), default=0.0)
            return weight * relevance(j) - (1 - weight) * likeness

        assert gain(i) >= max(gain(j) for j in order[place:]) - 1e-9


def test_a_list_shows_several_files() -> None:
    files = np.array([1, 1, 1, 1, 2, 1, 3, 1])
    order = np.arange(8)
    every = np.ones(8, bool)
    assert spread(order, files, every, 2).tolist() == [0, 1, 4, 6, 2, 3, 5, 7]
    assert spread(order, files, files != 1, 2).tolist() == [*range(8)], "messages of one session stay together"
    assert spread(order[::-1], files, every, 1).tolist() == [7, 6, 4, 5, 3, 2, 1, 0]
    assert spread(order[:0], files[:0], every[:0], 2).tolist() == []


def test_whose_word_counts() -> None:
    roles = np.array([ROLES.index(role) for role in ("user", "assistant", "tool", "pasted", "user")])
    spoken = np.array([True, True, True, True, False])
    assert role_bonus(roles, spoken, "user").tolist() == [0, -1.6, -0.8, 0, 0]
    assert role_bonus(roles, spoken, "assistant").tolist() == [-1.6, 0, -0.8, 0, 0]
    assert role_bonus(roles, spoken, "").tolist() == [0] * 5
