from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

from indexer.corpus import Ints
from indexer.engine.segments import builder
from indexer.engine.segments.builder import _columns, _reach, open_segment, pack_store
from indexer.stores import sqlite_bulk
from indexer.stores.sqlite import SqliteSegments, SqliteStore
from indexer.types import Fingerprint, Vectors
from tests.indexer.corpora import Row, corpus_of, rows
from tests.indexer.engine.segments.test_quantizer import clustered, filled


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


# More than the coder is fitted to, and no whole number of blocks.
_ROWS, _FITTED_ROWS, _DIMENSIONS = 17_000, 16_384, 8


class _Chunked(SqliteSegments):
    """The material of a store's segment, whose chunks of vectors have so many rows."""

    def __init__(self, store: SqliteStore, rows: int) -> None:
        super().__init__(store.path, store._database)
        self._rows = rows

    def vectors(self) -> Iterator[tuple[Ints, Vectors]]:
        return sqlite_bulk.vectors(self._database, count=self._rows)


def test_a_segment_is_the_same_however_many_rows_a_chunk_of_vectors_has(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "index.sqlite")
    store.begin(Fingerprint(model="m", dimensions=_DIMENSIONS, rules="r", schema=1))
    made = clustered(_ROWS, _DIMENSIONS, lean=0.5, seed=3)
    store.write([filled("memory/a.md", "memory", made, np.arange(_ROWS))])
    path, packs = store.segments.path(), list[bytes]()
    assert path is not None
    for store.segments in [_Chunked(store, count) for count in (2_048, 1, 500, 4_096)]:
        assert pack_store(store, path) is not None
        packs.append(path.read_bytes())
    segment = open_segment(path, store.head().generation)
    assert segment is not None and segment.codes is not None
    mean = made[:_FITTED_ROWS].mean(axis=0, dtype=np.float64).astype(np.float32)
    assert np.array_equal(segment.codes.coder.mean, mean), "fitted to rows, not to all of them"
    assert len({*packs}) == 1
    store.close()


def test_a_segment_is_not_ahead_of_its_index_after_a_crash(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "index.sqlite")
    store.begin(Fingerprint(model="m", dimensions=_DIMENSIONS, rules="r", schema=1))
    store.write([filled("memory/a.md", "memory", clustered(9, _DIMENSIONS), np.arange(9))])
    path = store.segments.path()
    assert path is not None
    segment = pack_store(store, path)
    # What a machine that loses its power has for certain: the file without its log.
    (tmp_path / "after").mkdir()
    shutil.copy(tmp_path / "index.sqlite", tmp_path / "after")
    after = SqliteStore(tmp_path / "after" / "index.sqlite")
    assert segment is not None and after.head().revision == segment.revision > 0
    after.close()
    store.close()
