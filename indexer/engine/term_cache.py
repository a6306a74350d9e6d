"""Where the terms of late questions occur, so that a write costs the next question its own passages alone.

Invariants: what is known is what the store would answer for the passages of the corpus; a bounded number of terms.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from indexer.corpus import Corpus
from indexer.lru import LRU
from indexer.stores.base import IndexStore, TermPosting
from indexer.text.terms import passage_terms

_TERMS = 128
# To read so many new passages takes as long as to ask for the terms of a question again.
_NEW_PASSAGES = 64
_NOWHERE = np.empty(0, np.int64)


class TermCache:
    """Where terms occur that were asked for, in one state of an index. Safe to use from several threads.

    Args:
        known: By term; without any passages for one that does not occur.
    """

    def __init__(self, known: Mapping[str, TermPosting] | None = None) -> None:
        self._known = LRU[str, TermPosting](_TERMS)
        for term, posting in (known or {}).items():
            self._known[term] = posting

    def postings(self, store: IndexStore, terms: Sequence[str]) -> list[TermPosting]:
        """The passages of each term; terms without any are left out. To be called within a read of that state."""
        found = {term: posting for term in terms if (posting := self._known.get(term))}
        missing = [term for term in terms if term not in found]
        if missing:
            found |= {term: TermPosting(term=term, keys=_NOWHERE, counts=_NOWHERE) for term in missing}
            found |= {posting.term: posting for posting in store.postings(missing)}
        for term in terms:
            self._known[term] = found[term]
        return [found[term] for term in terms if len(found[term].keys)]

    def after(self, store: IndexStore, before: Corpus, now: Corpus) -> TermCache:
        """The same for a later state, to be called within a read of it: only passages that are new are looked at."""
        last = int(before.keys.max()) if len(before) else 0
        new = np.sort(now.keys[now.keys > last]).tolist()
        if before.generation != now.generation or len(new) > _NEW_PASSAGES:
            return TermCache()
        known = dict(self._known.items())
        added = defaultdict[str, list[tuple[int, int]]](list)
        stored = store.passages(new) if known and new else {}
        for key in sorted(stored):
            for term, times in Counter(passage_terms(stored[key].passage)).items():
                if term in known:
                    added[term].append((key, times))
        gone = len(now) < len(before) + len(new)
        return TermCache(
            {
                term: _with(_without(posting, last, now if gone else None), added.get(term, ()))
                for term, posting in known.items()
            }
        )


def _without(posting: TermPosting, last: int, now: Corpus | None) -> TermPosting:
    """The same without passages that were written after the last one of its corpus, and without those that are gone."""
    # It may have been asked for later than its corpus was made.
    stays = posting.keys <= last if now is None else (posting.keys <= last) & now.rows(posting.keys)[1]
    return posting if stays.all() else replace(posting, keys=posting.keys[stays], counts=posting.counts[stays])


def _with(posting: TermPosting, added: Sequence[tuple[int, int]]) -> TermPosting:
    if not added:
        return posting
    table = np.array(added, np.int64)
    return replace(posting, keys=np.r_[posting.keys, table[:, 0]], counts=np.r_[posting.counts, table[:, 1]])
