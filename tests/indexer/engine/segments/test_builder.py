from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from indexer.engine.segments import builder
from indexer.engine.segments.builder import _columns, _reach
from tests.indexer.corpora import Row, corpus_of, rows


@settings(max_examples=40)
@given(rows(max_size=60))
def test_packed_steps_are_the_ranges_of_the_corpus(made: list[Row]) -> None:
    corpus = corpus_of(made)
    steps, every = _columns(corpus)["steps"], np.arange(len(made))
    for name in ("pairs", "triples", "windows"):
        low, high = _reach(steps, name, 0.0).of(every)
        expected = getattr(corpus, name)
        assert low.tolist() == expected[0].tolist() and high.tolist() == expected[1].tolist()


@pytest.mark.parametrize(
    ("values", "kind", "kept"),
    [
        ([], np.uint32, np.uint32),
        ([0, 2**32 - 1], np.uint32, np.uint32),
        ([0, 2**32], np.uint32, np.int64),
        ([2**31 - 1], np.int32, np.int32),
        ([2**31], np.int32, np.int64),
    ],
)
def test_numbers_are_small_where_they_fit(values: list[int], kind: type[np.integer], kept: type[np.integer]) -> None:
    small = builder._small(np.array(values, np.int64), kind)
    assert small.dtype == kept
    assert small.tolist() == values
