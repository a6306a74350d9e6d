from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indexer.corpus import Corpus, Floats, Ints
from indexer.engine.bm25 import _range_statistics
from indexer.engine.segments import shortlist
from indexer.engine.segments.postings import Found, Ranges, find
from indexer.engine.segments.shortlist import (
    Surroundings,
    bm25_of,
    candidate_rows,
    counts_at,
    frequencies,
    rows_in_ranges,
)
from tests.indexer.corpora import Row, bm25, corpus_of, postings_of, rows
from tests.indexer.engine.segments.test_postings import LETTERS, built

QUESTIONS = st.lists(st.sampled_from(LETTERS + "q"), unique=True, max_size=6).map("".join)


def of(ranges: Ranges, chosen: Ints) -> Ranges:
    return ranges[0][chosen], ranges[1][chosen]


def surroundings(corpus: Corpus) -> Surroundings:
    totals = np.r_[0, np.cumsum(corpus.lengths)]
    pairs, windows = corpus.pairs, corpus.windows
    return Surroundings(
        totals=totals,
        pairs=lambda chosen: of(pairs, chosen),
        windows=lambda chosen: of(windows, chosen),
        pair_length=float((totals[pairs[1] + 1] - totals[pairs[0]]).mean()),
        window_length=float((totals[windows[1] + 1] - totals[windows[0]]).mean()),
    )


def idfs_of(made: list[Row], found: list[Found]) -> Floats:
    """What each term tells of pairs and of windows."""
    corpus = corpus_of(made)
    terms = postings_of(made, "".join(one.term for one in found))
    known = [_range_statistics(terms, corpus, ranges) for ranges in (corpus.pairs, corpus.windows)]
    return np.array([[one.idf(item.term) for item in found] for one in known]).reshape(2, len(found))


@settings(max_examples=40)
@given(rows(max_size=60), QUESTIONS, st.data())
def test_bm25_of_some_rows_is_that_of_all(made: list[Row], question: str, data: st.DataObject) -> None:
    corpus, around = corpus_of(made), surroundings(corpus_of(made))
    chosen = np.array(sorted(data.draw(st.sets(st.integers(0, len(made) - 1)))), np.int64)
    found = find(built(made), list(question))
    every = rows_in_ranges(around.windows(chosen))
    counts = counts_at(found, every)
    for ranges in (corpus.units, corpus.pairs, corpus.windows):
        known = _range_statistics(postings_of(made, question), corpus, ranges)
        idfs = np.array([known.idf(one.term) for one in found])
        wanted = of(ranges, chosen)
        scores = bm25_of(frequencies(counts, every, wanted), around.lengths(wanted), idfs, known.mean_length)
        expected = bm25(postings_of(made, question), corpus, ranges)[chosen]
        np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-9)


@settings(max_examples=40)
@given(rows(max_size=80), st.data())
def test_counts_at_any_rows(made: list[Row], data: st.DataObject) -> None:
    chosen = np.array(sorted(data.draw(st.sets(st.integers(0, len(made) - 1)))), np.int64)
    found = find(built(made), list(LETTERS))
    counts = counts_at(found, chosen)
    assert counts.shape == (len(found), len(chosen))
    for one, counted in zip(found, counts.tolist(), strict=True):
        assert counted == [made[row].terms.count(one.term) for row in chosen]


@settings(max_examples=40)
@given(rows(max_size=40), st.data())
def test_covered_against_loops(made: list[Row], data: st.DataObject) -> None:
    corpus = corpus_of(made)
    chosen = np.array(sorted(data.draw(st.sets(st.integers(0, len(made) - 1)))), np.int64)
    low, high = of(corpus.windows, chosen)
    expected = {row for first, last in zip(low, high, strict=True) for row in range(first, last + 1)}
    assert rows_in_ranges((low, high)).tolist() == sorted(expected)


@settings(max_examples=40)
@given(rows(max_size=60), QUESTIONS, st.integers(0, 3))
def test_with_room_for_all_each_row_with_a_word_is_there_and_those_around_it(
    made: list[Row], question: str, hidden: int
) -> None:
    found, corpus = find(built(made), list(question)), corpus_of(made)
    allowed = np.arange(len(made)) % (hidden + 1) > 0 if hidden else np.ones(len(made), bool)
    got = candidate_rows(
        found, idfs_of(made, found), surroundings(corpus), 10_000, 6 * len(made), allowed if hidden else None
    )
    assert (np.diff(got) > 0).all() and allowed[got].all()
    touched = np.array([allowed[i] and any(term in row.terms for term in question) for i, row in enumerate(made)])
    beside = np.r_[False, touched[:-1]]
    wanted = np.r_[rows_in_ranges(of(corpus.windows, np.flatnonzero(touched))), np.flatnonzero(touched | beside)]
    assert set(wanted[allowed[wanted]].tolist()) <= set(got.tolist())


def passages(n: int, *, words: int, seed: int) -> list[Row]:
    """Short passages of words as common as those of a language, in files of 50 and sections of 10."""
    chance = np.random.default_rng(seed)
    share = 1 / np.arange(1, words + 1)
    drawn = chance.choice(words, (n, 20), p=share / share.sum())
    sizes, chars = chance.integers(3, 20, n), chance.integers(20, 220, n)
    return [
        Row(
            file=i // 50,
            chars=int(chars[i]),
            terms="".join(chr(0x4E00 + word) for word in drawn[i, : sizes[i]]),
            opens=i % 10 == 0,
        )
        for i in range(n)
    ]


@pytest.mark.parametrize("first", [4, 40, 400])
def test_nearly_all_of_the_best_are_on_the_list(first: int) -> None:
    """Questions of common, less common and rare words."""
    made = passages(6_000, words=800, seed=1)
    corpus, postings = corpus_of(made), built(made)
    around, chance = surroundings(corpus), np.random.default_rng(first)
    missed = 0
    for _ in range(4):
        question = "".join(chr(0x4E00 + first + int(i)) for i in chance.choice(first + 8, 6, replace=False))
        found = find(postings, list(question))
        got = candidate_rows(found, idfs_of(made, found), around, 100_000, 1_000)
        assert len(got) < 13 / 6 * 1_000
        for ranges in (corpus.pairs, corpus.windows):
            best = np.argsort(-bm25(postings_of(made, question), corpus, ranges))[:80]
            missed += len(np.setdiff1d(best, got))
    assert missed <= 0.02 * 4 * 2 * 80


def test_a_filter_has_its_own_list() -> None:
    """What a filter hides takes no place on the list, yet still speaks for its neighbours."""
    made = [Row(terms="ab" if i % 2 else "c", chars=10) for i in range(600)]
    made[580] = Row(terms="ab", chars=10)
    found = find(built(made), ["a", "b"])
    allowed = np.arange(600) >= 580
    got = candidate_rows(found, idfs_of(made, found), surroundings(corpus_of(made)), 10_000, 60, allowed)
    assert got.tolist() == list(range(580, 600))


def test_common_words_beyond_the_budget_have_no_say() -> None:
    made = [Row(terms="a" if i != 70 else "b", chars=600) for i in range(100)]
    found = find(built(made), ["a", "b"])
    around, idfs = surroundings(corpus_of(made)), idfs_of(made, found)
    assert candidate_rows(found, idfs, around, 50, 60).tolist() == [69, 70, 71]
    assert len(candidate_rows(found, idfs, around, 100, 60)) > 10
    # The rarest is looked at whatever it costs.
    assert len(candidate_rows(found[:1], idfs[:, :1], around, 0, 60)) > 10


def test_ties_do_not_make_the_list_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shortlist, "_LENGTHS", 100)
    made = [Row(terms="a", chars=10, opens=True) for _ in range(3_000)]
    found = find(built(made), ["a"])
    assert len(candidate_rows(found, idfs_of(made, found), surroundings(corpus_of(made)), 10_000, 60)) <= 130


def test_many_repeats_within_a_window_do_not_overflow() -> None:
    made = [Row(terms="a" * 255, chars=10) for _ in range(20)]
    found = find(built(made), ["a"])
    got = candidate_rows(found, idfs_of(made, found), surroundings(corpus_of(made)), 100, 600)
    assert got.tolist() == list(range(20))
    assert counts_at(found, np.array([3, 9])).tolist() == [[255, 255]]


def test_without_terms_there_are_no_candidates() -> None:
    row, none = np.array([0]), np.empty((2, 0))
    assert candidate_rows([], none, surroundings(corpus_of([Row(terms="a")])), 100, 100).tolist() == []
    counts = counts_at([], row)
    assert counts.shape == (0, 1)
    assert bm25_of(frequencies(counts, row, (row, row)), np.array([1]), none[0], 1.0).tolist() == [0.0]


@settings(max_examples=40)
@given(rows(max_size=60), st.data())
def test_sums_within_windows_against_loops(made: list[Row], data: st.DataObject) -> None:
    low, high = corpus_of(made).windows
    chosen = np.array(sorted(data.draw(st.sets(st.integers(0, len(made) - 1), min_size=1))), np.int64)
    values = np.arange(1, len(chosen) + 1, dtype=np.float32)
    sums = shortlist._within(chosen, values, (low[chosen], high[chosen]))
    for row, total in zip(chosen.tolist(), sums.tolist(), strict=True):
        assert total == values[(chosen >= low[row]) & (chosen <= high[row])].sum()


def test_of_passages_with_the_same_word_the_shortest_are_on_the_list() -> None:
    made = [Row(terms="a" + "b" * (i % 100), chars=600, opens=True) for i in range(2_000)]
    found = find(built(made), ["a"])
    got = candidate_rows(found, idfs_of(made, found), surroundings(corpus_of(made)), 10_000, 60)
    assert set(range(0, 2_000, 100)) <= set(got.tolist())
