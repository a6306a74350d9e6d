"""Second hop of a question in a script without spaces: passages that share rare words with the best one.

Invariants: only words of texts count, not those of the place where they stand; to be called within a read.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from indexer.corpus import Floats, Ints
from indexer.engine.bm25 import RangeStatistics
from indexer.engine.reader import IndexReader, unpacked_postings
from indexer.engine.segments.postings import find
from indexer.language.terms import index_terms

# Weight of the signal beside those of words.
HOP_WEIGHT = 0.2
_HOP_TERMS = 12
_LEAST_PASSAGES, _MOST_SHARE = 2, 0.6
# Terms of the passage that are looked up: those of some hundred characters.
_LOOKED_UP = 256


def second_hop(view: IndexReader, best: int, keys: Ints, asked_texts: Collection[str]) -> Floats:
    """Inverse document frequencies of the rarest other terms of the best passage, where some passages have them.

    "The one whose post is president: when is the birthday?" is answered by two lines: "My boss is the president." and
    "My boss's birthday is in May.", of which the second shares one word with the question, another with the first.

    Source: MemDaily, evidence among the first five, without, by the best passage and by the best two: .910, .934, .927.
    In English it costs (LoCoMo .002 to .005, BEAM .012): there words alone do not say which line is meant.

    Args:
        view: The index, within a read.
        best: Key of the best passage.
        keys: Keys of the passages.
        asked_texts: Terms of the question.
    """
    passage = view.store.passages([best]).get(best)
    # Of its place, all passages around it have the words, too.
    own = dict.fromkeys(index_terms(passage.passage.text)) if passage else {}
    where = _passages_with(view, [term for term in own if term not in asked_texts][:_LOOKED_UP])
    n = len(view)
    telling = {term: rows for term, rows in where.items() if _LEAST_PASSAGES <= len(rows) <= _MOST_SHARE * n}
    rarest = sorted(telling, key=lambda term: (len(telling[term]), term))[:_HOP_TERMS]
    statistics = RangeStatistics(count=n, containing={term: len(telling[term]) for term in rarest})
    worth = np.zeros(len(keys))
    for term in rarest:
        worth[np.isin(keys, telling[term])] += statistics.idf(term)
    return worth


def _passages_with(view: IndexReader, terms: Sequence[str]) -> Mapping[str, Ints]:
    """Keys of the passages with each term."""
    if view.packed_part is None:
        return {posting.term: view.corpus.keys[posting.rows] for posting in unpacked_postings(view, terms)}
    where = {posting.term: view.corpus.keys[posting.rows] for posting in view.packed_part.recent.postings(terms)}
    segment = view.packed_part.segment
    for entry in find(segment.postings, terms):
        keys = segment.keys(entry.rows.astype(np.int64))
        where[entry.term] = np.concatenate([where.get(entry.term, keys[:0]), keys])
    return where
