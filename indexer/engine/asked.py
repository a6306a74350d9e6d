"""The vector signals of a corpus whose vectors are not in memory: sqlite-vec tells the nearest by the stored float32.

Invariants: the signals of a candidate are those that a pass over all vectors gives, as long as the corpus is not larger
than what the store tells at once; above that, passages that it does not tell count as no nearer than the last it does.
Who is a candidate may differ at the far end, which changes all scores a little.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from indexer.engine.corpus import Corpus, Floats, Ints, Mask
from indexer.ranking import CANDIDATES, VectorEvidence, candidates, vector_evidence
from indexer.stores.base import NEAREST_LIMIT, IndexStore
from indexer.types import SearchFilter, Vectors

# The length of a sum of n unit vectors with cosines of .4 is about n to this power: good enough for a long list.
_LENGTH_POWER = 0.75
# Rows on that list; with as many as candidates, the order of the first twenty changes for one question in ten.
_LONG_LIST = 2 * CANDIDATES


def asked(
    store: IndexStore, corpus: Corpus, vector: Vectors, kept: SearchFilter, allowed: Mask, lexical: Sequence[Floats]
) -> tuple[Ints, VectorEvidence]:
    """Candidates of a question, ascending, and the vector signals of all rows: exact for the candidates.

    Args:
        store: Holds the vectors.
        corpus: The passages.
        vector: The question's.
        kept: Which passages may be found.
        allowed: The same, by row.
        lexical: Signals of words; the best rows by each are candidates too.
    """
    own = _cosines(store, corpus, vector, kept)
    low, high = corpus.triples
    rough = _sums(own, low, high) / (high - low + 1) ** _LENGTH_POWER
    listed = np.zeros(len(corpus), bool)
    listed[candidates([*lexical, own], allowed)] = True
    listed[candidates([rough], allowed, _LONG_LIST)] = True
    rows = np.flatnonzero(listed)
    triple = np.full(len(corpus), -np.inf)
    triple[rows] = _triples(store, corpus, vector, rows, own)
    return candidates([*lexical, own, triple], allowed & listed), vector_evidence(own, triple, corpus)


def _triples(store: IndexStore, corpus: Corpus, vector: Vectors, rows: Ints, own: Floats) -> Floats:
    """Cosine of each of some rows among its neighbours; writes the exact cosines of all these into `own`."""
    low, high = (ends[rows] for ends in corpus.triples)
    beside = np.zeros(len(corpus), bool)
    beside[low] = beside[rows] = beside[high] = True
    near = np.flatnonzero(beside)
    vectors = _vectors(store, corpus, near, len(vector))
    own[near] = np.vecdot(vectors, vector)
    sums = vectors[np.searchsorted(near, rows)]
    for ends in (low, high):
        others = np.flatnonzero(ends != rows)
        sums[others] += vectors[np.searchsorted(near, ends[others])]
    lengths = np.sqrt(np.maximum(np.vecdot(sums, sums).astype(np.float64), 1e-12))
    triples: Floats = _sums(own, low, high) / lengths
    return triples


def _cosines(store: IndexStore, corpus: Corpus, vector: Vectors, kept: SearchFilter) -> Floats:
    """The cosine of each row, as far as the store tells."""
    # What a filter leaves out still counts as a neighbour; where not all can be told, those that it leaves matter.
    all_told = len(corpus) <= NEAREST_LIMIT
    keys, cosines = store.nearest(vector, min(len(corpus), NEAREST_LIMIT), SearchFilter() if all_told else kept)
    rows, known = corpus.rows(keys)
    own = np.full(len(corpus), 0.0 if all_told or not len(cosines) else float(cosines.min()))
    own[rows] = cosines[known]
    return own


def _vectors(store: IndexStore, corpus: Corpus, rows: Ints, dimensions: int) -> Vectors:
    """The vectors of some rows, ascending; zeros where a passage has none."""
    vectors = np.zeros((len(rows), dimensions), np.float32)
    keys, stored = store.vectors(corpus.keys[rows].tolist())
    found, known = corpus.rows(keys)
    if len(found):
        vectors[np.searchsorted(rows, found)] = stored[known]
    return vectors


def _sums(values: Floats, low: Ints, high: Ints) -> Floats:
    """Sums of the values from `low` to `high`, both included."""
    running = np.r_[0.0, np.cumsum(values)]
    sums: Floats = running[high + 1] - running[low]
    return sums
