from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rank_bm25 import BM25Okapi

from indexer.corpus import Ints
from indexer.engine.bm25 import K1, B, RangeStatistics, text_evidence, text_statistics
from tests.indexer.corpora import TERMS, Row, bm25, corpus_of, postings_of, rows

QUESTIONS = st.text(alphabet=TERMS, min_size=1, max_size=4).map(lambda text: "".join(sorted(set(text))))


def naivebm25(texts: list[str], question: str) -> list[float]:
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
    assert scores == pytest.approx(naivebm25([row.terms for row in made], question))


@given(rows(), QUESTIONS)
def test_bm25_of_pairs_and_windows(made: list[Row], question: str) -> None:
    corpus = corpus_of(made)
    evidence = text_evidence(postings_of(made, question), corpus)
    for scores, (low, high) in ((evidence.pair, corpus.pairs), (evidence.window, corpus.windows)):
        joined = ["".join(row.terms for row in made[a : b + 1]) for a, b in zip(low, high, strict=True)]
        assert scores == pytest.approx(naivebm25(joined, question))


@given(rows(), st.sampled_from(TERMS))
def test_bm25_has_the_saturation_of_rankbm25(made: list[Row], term: str) -> None:
    theirs = BM25Okapi([list(row.terms) for row in made], k1=K1, b=B).get_scores([term])
    at = np.arange(len(made))
    ours = bm25(postings_of(made, term), corpus_of(made), (at, at))
    # Their idf differs and may be negative; with one term it is one factor for all.
    if np.abs(theirs).max() > 1e-9:
        assert np.abs(theirs) / np.abs(theirs).max() == pytest.approx(ours / ours.max(), abs=1e-9)


def test_a_pair_of_han_characters_tells_half_of_what_a_word_as_rare_does() -> None:
    known = RangeStatistics(count=100, length=1000.0, containing={"部署": 7, "deploi": 7, "部": 7})
    assert known.idf("部署") == known.idf("deploi") / 2 > 0
    assert known.idf("部") == known.idf("deploi")


def test_bm25_without_postings_or_rows() -> None:
    nothing: Ints = np.empty(0, np.int64)
    assert bm25([], corpus_of([Row(terms="a")]), (nothing, nothing)).tolist() == [0]
    assert len(bm25([], corpus_of([]), (nothing, nothing))) == 0


@given(rows(), rows(), QUESTIONS)
def test_two_parts_score_as_one(first: list[Row], second: list[Row], question: str) -> None:
    later = [dataclasses.replace(row, file=row.file + 1 + first[-1].file) for row in second] if first else second
    whole = corpus_of([*first, *later])
    corpora = corpus_of(first), corpus_of(second)
    found = [postings_of(part, question) for part in (first, second)]
    known = text_statistics(found[0], corpora[0]).beside(text_statistics(found[1], corpora[1]))
    parts = [text_evidence(postings, corpus, known) for postings, corpus in zip(found, corpora, strict=True)]
    expected = text_evidence(postings_of([*first, *later], question), whole)
    for signal in ("unit", "pair", "window"):
        scores = np.concatenate([getattr(part, signal) for part in parts])
        assert scores == pytest.approx(getattr(expected, signal))
