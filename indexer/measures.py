"""Owns measures of an index on its own passages: some of them, and how right its fast path is.

Invariants: reading only; the same index gives the same sample.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence

import numpy as np

from indexer.engine.corpus import Ints
from indexer.engine.view import View
from indexer.plan import passage_terms
from indexer.search import nearest
from indexer.stores.base import KnownPassage
from indexer.types import ErasedPassages, SearchFilter


def sampled_texts(view: View, count: int) -> list[str]:
    """Texts of some passages, spread over all of them."""
    keys = _sampled(view, count)
    stored = view.store.passages(keys.tolist())
    return [found.passage.text for found in stored.values()]


def recall(view: View, limit: int, samples: int, kept: SearchFilter) -> float | None:
    """Share of the exact nearest passages of some stored vectors that a search finds; None where there is none.

    The exact ones are sqlite-vec's, also where the search looks at all vectors itself.
    """
    _, vectors = view.store.vectors(_sampled(view, samples).tolist())
    shares = []
    for vector in vectors:
        exact, cosines = view.store.nearest(vector, limit, kept)
        found, found_cosines = nearest(view, vector, limit, kept)
        # Passages as near as the last exact one are as good as it.
        good = len(set(found.tolist()) & set(exact.tolist()))
        ties = int(np.count_nonzero(found_cosines >= cosines[-1] - 1e-6)) if len(cosines) else 0
        shares.append(max(good, min(ties, len(exact))) / max(1, len(exact)))
    return float(np.mean(shares)) if shares else None


def neighbours(view: View, samples: int) -> tuple[int, int]:
    """Of how many stored vectors sqlite-vec was asked for the nearest, and how many it answered with an equal."""
    _, vectors = view.store.vectors(_sampled(view, samples).tolist())
    found = [view.store.nearest(vector, 1, SearchFilter())[1] for vector in vectors]
    return len(found), sum(len(cosines) > 0 and cosines[0] > 1 - 1e-4 for cosines in found)


def erased(view: View, before: Sequence[KnownPassage], after: Collection[int]) -> ErasedPassages:
    """Look for passages that were erased.

    Args:
        view: The index as it is now.
        before: The passages of some files before the erasure.
        after: Keys of those that stay.
    """
    gone = [known for known in before if known.key not in after]
    keys = np.array([known.key for known in gone], np.int64)
    terms = sorted({term for known in gone for term in passage_terms(known.passage)})
    found = {
        "rows": bool(view.store.passages(keys.tolist())),
        "full text": view.store.found_by_terms(keys.tolist(), terms),
    }
    made = view.store.fingerprint()
    if made is not None and made.dimensions:
        found["vectors"] = bool(len(view.store.vectors(keys.tolist())[0]))
    if view.packed:
        segment = view.packed.segment
        found["pack"] = bool(np.isin(segment.keys(np.arange(len(segment))), keys).any())
    left = tuple(place for place, is_there in found.items() if is_there)
    return ErasedPassages(passages=len(gone), checked=tuple(found), left=left)


def _sampled(view: View, count: int) -> Ints:
    packed = view.packed.segment.keys(np.arange(len(view.packed.segment))) if view.packed else view.corpus.keys[:0]
    keys = np.concatenate([view.corpus.keys, packed])
    chosen = random.Random(len(keys)).sample(range(len(keys)), min(count, len(keys)))
    return np.sort(keys[chosen])
