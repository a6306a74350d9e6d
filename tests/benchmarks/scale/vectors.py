"""The vectors of the generated texts, and which of them are truly nearest.

Invariants: seeded; row i is the same in every size; all rows have length 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import islice

import numpy as np

from indexer.types import Vectors
from tests.benchmarks.scale.texts import SEED, Asking
from tests.benchmarks.scale.values import FIRST, Rows

DIMENSIONS = 384
CLUSTERS = 2000
CHUNK = 1000
# Cosine of a passage with the middle of its cluster, and of a question with its passage.
_TO_CENTRE = 0.7
_TO_PASSAGE = 0.7
_EMBEDDED_AT_ONCE = 256
_SCORED_AT_ONCE = 20_000


def clustered(chunk: int) -> Vectors:
    """Passages of one chunk of a clustered corpus, shape (1000, 384)."""
    chance = np.random.default_rng([SEED, 5, chunk])
    return _near(_centres()[chance.integers(CLUSTERS, size=CHUNK)], _TO_CENTRE, chance)


def clustered_chunks(count: int) -> Iterable[Vectors]:
    """All passages of a clustered corpus, in chunks."""
    for chunk in range(-(-count // CHUNK)):
        yield clustered(chunk)[: count - chunk * CHUNK]


def clustered_questions(asked: Sequence[Asking]) -> Vectors:
    """A vector near the passage of each question."""
    chance = np.random.default_rng([SEED, 7])
    rows = np.stack([clustered(asking.row // CHUNK)[asking.row % CHUNK] for asking in asked])
    return _near(rows, _TO_PASSAGE, chance)


def embedded_chunks(texts: Iterable[str], embed: Callable[[Sequence[str]], Vectors]) -> Iterable[Vectors]:
    """The vectors that a model gives, in chunks."""
    waiting = iter(texts)
    while chunk := list(islice(waiting, _EMBEDDED_AT_ONCE)):
        yield embed(chunk)


def cosines_of(vectors: Vectors, questions: Vectors) -> Iterable[Vectors]:
    """Cosines of all passages with all questions, a stretch of passages at a time: shape (questions, passages)."""
    for start in range(0, len(vectors), _SCORED_AT_ONCE):
        yield questions @ vectors[start : start + _SCORED_AT_ONCE].T


def lowest_of_first(vectors: Vectors, questions: Vectors, first: int = FIRST) -> Vectors:
    """The cosine of the last of each question's `first` nearest passages, shape (questions,)."""
    best = np.empty((len(questions), 0), np.float32)
    for part in cosines_of(vectors, questions):
        both = np.concatenate([best, part], axis=1)
        best = np.partition(both, max(0, both.shape[1] - first), axis=1)[:, -first:]
    lowest: Vectors = best.min(axis=1)
    return lowest


def recall(rows: Sequence[Sequence[int]], vectors: Vectors, questions: Vectors, lowest: Vectors) -> float:
    """Share of the nearest ten that was found, over the questions that were answered.

    A passage as near as the tenth counts, whichever of them the exact order names; one named twice counts once.
    """
    shares = []
    for number, found in enumerate(rows):
        first: Rows = np.unique(np.asarray(found[:FIRST], np.int64))
        near = vectors[first] @ questions[number] >= lowest[number] - 1e-6
        shares.append(min(1.0, float(near.sum()) / min(FIRST, len(vectors))))
    return float(np.mean(shares))


@cache
def _centres() -> Vectors:
    return _units(np.random.default_rng([SEED, 6]), CLUSTERS)


def _units(chance: np.random.Generator, count: int) -> Vectors:
    drawn = chance.standard_normal((count, DIMENSIONS), dtype=np.float32)
    units: Vectors = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
    return units


def _near(rows: Vectors, cosine: float, chance: np.random.Generator) -> Vectors:
    """Unit vectors about that cosine from others: in 384 dimensions a random one stands nearly upright on them."""
    mixed = cosine * rows + np.sqrt(1 - cosine**2) * _units(chance, len(rows))
    near: Vectors = (mixed / np.linalg.norm(mixed, axis=1, keepdims=True)).astype(np.float32)
    return near
