"""Who is quicker to tell the nearest passages: sqlite-vec by its KNN, or numpy over vectors in memory.

`python -m tests.benchmarks.nearest [--passages 500 2000 5000] [--turns 7]`

In one process, in turns, medians; every figure is sqlite-vec's time as a multiple of numpy's: below 1 it is faster.

- `cold`: the index is opened, and one question answered with the signals that the ranking takes: by sqlite-vec with the
  neighbours read that it needs, or by reading all vectors and a pass over them.
- `cold_knn`: the same, where sqlite-vec tells the ten nearest and no neighbours are looked at.
- `warm`: another question; the vectors are in memory.
- `few`: another question under a filter that leaves so many passages.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

import numpy as np

from indexer import Index, SearchFilter
from indexer.engine.matrix import load_matrix
from indexer.engine.ranking import vector_candidates
from indexer.stores.sqlite import SqliteStore
from indexer.testing import HashEmbedder
from tests.benchmarks.index import write_notes

_FILE_PASSAGES = 20
_FEW = (20, 200, 2_000)
_EMBEDDER = HashEmbedder(384)


def ratio(ours: Callable[[], object], theirs: Callable[[], object], turns: int) -> float:
    """How many times as long the first takes."""
    took: tuple[list[float], list[float]] = ([], [])
    for _ in range(turns):
        for times, work in zip(took, (ours, theirs), strict=True):
            started = time.perf_counter()
            work()
            times.append(time.perf_counter() - started)
    return round(statistics.median(took[0]) / statistics.median(took[1]), 2)


def cold(path: Path, turns: int) -> dict[str, float]:
    """One question of a process."""
    vector = _EMBEDDER.embed_query("when do we deploy the database?")

    def by_matrix() -> None:
        with closing(SqliteStore(path)) as store, store.reading():
            corpus = store.corpus(None)
            load_matrix(store, corpus, _EMBEDDER.dimensions, None).cosines(vector)

    def by_store() -> None:
        with closing(SqliteStore(path)) as store, store.reading():
            corpus = store.corpus(None)
            vector_candidates(
                store, corpus, vector, SearchFilter(), np.ones(len(corpus), bool), [], np.empty(0, np.int64)
            )

    def by_knn() -> None:
        with closing(SqliteStore(path)) as store, store.reading():
            store.corpus(None)
            store.nearest(vector, 10, SearchFilter())

    return {"cold": ratio(by_store, by_matrix, turns), "cold_knn": ratio(by_knn, by_matrix, turns)}


def warm(path: Path, turns: int) -> dict[str, object]:
    """Another question."""
    vector = _EMBEDDER.embed_query("when do we deploy the database?")
    with closing(SqliteStore(path)) as store, store.reading():
        corpus = store.corpus(None)
        matrix = load_matrix(store, corpus, _EMBEDDER.dimensions, None)
        every = ratio(lambda: store.nearest(vector, 10, SearchFilter()), lambda: matrix.cosines(vector), turns)
        few = {}
        for count in (count for count in _FEW if count < len(corpus)):
            # The files are of one length and lie in the order of their names.
            kept = SearchFilter(path_prefix=_prefix(count))
            rows = np.flatnonzero([corpus.files[file].path.startswith(kept.path_prefix) for file in corpus.file])
            few[len(rows)] = ratio(
                partial(store.nearest, vector, 10, kept),
                partial(np.vecdot, matrix.held_vectors.rows[matrix.places[rows]], vector),
                turns,
            )
    return {"warm": every, "few": few}


def _prefix(passages: int) -> str:
    """What the paths of the first so many passages begin with."""
    digits = len(str(passages // _FILE_PASSAGES)) - 1
    return f"memory/note-{'0' * (5 - digits)}"


def main() -> None:
    """Measure each size and print a line of JSON for it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--passages", type=int, nargs="+", default=[500, 2_000, 5_000])
    parser.add_argument("--turns", type=int, default=7)
    arguments = parser.parse_args()
    for passages in arguments.passages:
        with tempfile.TemporaryDirectory() as name:
            write_notes(Path(name), passages // _FILE_PASSAGES, _FILE_PASSAGES)
            index = Index(Path(name), _EMBEDDER, pack_passages=10 * passages)
            index.sync()
            index.close()
            path = Path(name) / "index.sqlite"
            figures = cold(path, arguments.turns) | warm(path, arguments.turns)
        print(json.dumps({"passages": passages, **figures}))


if __name__ == "__main__":
    main()
