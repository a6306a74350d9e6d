from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indexer.corpus import Corpus
from indexer.engine.bm25 import _range_statistics
from indexer.engine.segments import postings as building
from indexer.engine.segments.postings import Postings, build, find, take
from indexer.language.terms import term_hashes
from indexer.stores.base import TermEntries
from tests.indexer.corpora import TERMS, Row, corpus_of, postings_of, rows

LETTERS = TERMS + "xyz"


def entries_of(made: Sequence[Row], seed: int) -> list[TermEntries]:
    """The words of passages in no order, in chunks of three; groups of one posting and of several."""
    found = [(term, i, row.terms.count(term)) for i, row in enumerate(made) for term in sorted(set(row.terms))]
    order = np.random.default_rng(seed).permutation(len(found))
    chunks = []
    for start in range(0, len(found), 3):
        part = sorted((found[i] for i in order[start : start + 3]), key=lambda entry: entry[0])
        terms = sorted({term for term, _, _ in part})
        chunks.append(
            TermEntries(
                terms=term_hashes(terms),
                sizes=np.array([sum(other == term for other, _, _ in part) for term in terms], np.int64),
                passages=np.array([row for _, row, _ in part], np.int64),
                counts=np.array([count for _, _, count in part], np.int64),
            )
        )
    return chunks


def built(made: Sequence[Row], seed: int = 0) -> Postings:
    corpus = corpus_of(list(made))
    return build(entries_of(made, seed), corpus.pairs, corpus.windows)


def same(a: Postings, b: Postings) -> bool:
    return all(
        np.array_equal(getattr(a, name), getattr(b, name)) and getattr(a, name).dtype == getattr(b, name).dtype
        for name in ("terms", "starts", "rows", "repeated", "counts", "containing")
    )


@settings(max_examples=40)
@given(rows(), st.integers(0, 9))
def test_every_term_is_found_where_it_occurs(made: list[Row], seed: int) -> None:
    postings = built(made, seed)
    found = {one.term: one for one in find(postings, [*LETTERS, "q"])}
    assert set(found) == set("".join(row.terms for row in made))
    for term, one in found.items():
        counts = [row.terms.count(term) for row in made]
        assert one.rows.tolist() == [i for i, count in enumerate(counts) if count]
        assert one.counts.tolist() == [count for count in counts if count]
    assert (np.diff(postings.terms.astype(object)) > 0).all()
    assert len(postings.rows) == postings.starts[-1] == sum(len(one.rows) for one in found.values())


@settings(max_examples=40)
@given(rows(max_size=60), st.sampled_from([1, 7, building._BLOCK]))
def test_containing_is_what_bm25_counts(made: list[Row], block: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(building, "_BLOCK", block)
        found = {one.term: one for one in find(built(made), list(LETTERS))}
    corpus = corpus_of(made)
    known = [
        _range_statistics(postings_of(made, LETTERS), corpus, ranges).containing
        for ranges in (corpus.units, corpus.pairs, corpus.windows)
    ]
    assert {term: (one.units, one.pairs, one.windows) for term, one in found.items()} == {
        term: tuple(counted[term] for counted in known) for term in known[0]
    }


@settings(max_examples=40)
@given(rows(), st.data())
def test_rows_that_go_take_their_words_with_them(made: list[Row], data: st.DataObject) -> None:
    files = sorted({row.file for row in made})
    order = data.draw(st.permutations(files))
    order = order[: data.draw(st.integers(0, len(order)))]
    kept = [i for file in order for i, row in enumerate(made) if row.file == file]
    left = [
        Row(file=order.index(made[i].file), chars=made[i].chars, terms=made[i].terms, opens=made[i].opens) for i in kept
    ]
    new_rows = np.full(len(made), -1, np.int64)
    new_rows[kept] = np.arange(len(kept))
    corpus = corpus_of(left) if left else Corpus(revision=0, files=(), label_names={})
    taken = take(built(made), new_rows, corpus.pairs, corpus.windows)
    assert same(taken, built(left) if left else build([], corpus.pairs, corpus.windows))


def test_no_row_has_no_terms() -> None:
    none = (np.empty(0, np.int64), np.empty(0, np.int64))
    postings = build([], none, none)
    assert len(postings.terms) == len(postings.rows) == 0
    assert postings.starts.tolist() == [0]
    assert find(postings, ["a"]) == []
    assert find(built([Row(terms="a")]), []) == []


def test_counts_stop_at_255() -> None:
    (one,) = find(built([Row(terms="a" * 300), Row(terms="ab")]), ["a"])
    assert one.counts.tolist() == [255, 1]


def test_found_rows_are_views() -> None:
    postings = built([Row(terms="ab"), Row(terms="b")])
    for one in find(postings, ["a", "b"]):
        assert np.shares_memory(one.rows, postings.rows)


def test_terms_are_known_by_the_same_hash_everywhere() -> None:
    assert term_hashes(["deploy", "部署"]).tolist() == [0x6E6B35E531F53B2, 0x9CC5E33187D2609E]


def test_what_cannot_be_numbered_is_refused() -> None:
    with pytest.raises(OverflowError, match="Split"):
        building._sort_postings([], np.array([0, 1], np.int64), 1 << 60)
