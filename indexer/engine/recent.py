"""Owns the words of passages that were written since the index was packed, in memory.

Invariants: derived from the stored passages, by the rules that made the stored terms; what a file said
before is not read again while it stays as it was.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from indexer.engine.bm25 import Posting
from indexer.engine.corpus import Corpus, CorpusFile, Ints
from indexer.engine.postings import term_hashes
from indexer.plan import passage_terms
from indexer.stores.base import IndexStore

Hashes = NDArray[np.uint64]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileWords:
    """The words of one file: for every word of a passage its hash, the passage's place and how often."""

    file: CorpusFile
    hashes: Hashes
    places: Ints
    counts: Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class Recent:
    """The words of a corpus, in no order."""

    corpus: Corpus
    files: dict[str, FileWords]
    hashes: Hashes
    rows: Ints
    counts: Ints

    def postings(self, terms: Sequence[str]) -> list[Posting]:
        """Where terms occur; those that do not are left out."""
        found = []
        for term, wanted in zip(terms, term_hashes(terms), strict=True):
            # A pass over all beats keeping them sorted: they change with every write.
            at = np.flatnonzero(self.hashes == wanted)
            if len(at):
                found.append(Posting(term=term, rows=self.rows[at], counts=self.counts[at]))
        return found


def load_recent(store: IndexStore, corpus: Corpus, previous: Recent | None) -> Recent:
    """The words of a corpus, reading only files that `previous` does not hold as they are."""
    known = previous.files if previous else {}
    files = {}
    for file in corpus.files:
        before = known.get(file.path)
        files[file.path] = before if before and before.file is file else _read(store, file)
    starts = np.cumsum([0, *(len(file.table) for file in corpus.files)])
    rows = [words.places + start for words, start in zip(files.values(), starts, strict=False)]
    empty = np.empty(0, np.int64)
    return Recent(
        corpus=corpus,
        files=files,
        hashes=np.concatenate([np.empty(0, np.uint64), *(words.hashes for words in files.values())]),
        rows=np.concatenate([empty, *rows]),
        counts=np.concatenate([empty, *(words.counts for words in files.values())]),
    )


def _read(store: IndexStore, file: CorpusFile) -> FileWords:
    keys = file.table[:, 0].tolist()
    stored = store.passages(keys)
    terms, places, counts = list[str](), list[int](), list[int]()
    for place, key in enumerate(keys):
        counted = Counter(passage_terms(stored[key].passage))
        terms += counted
        places += [place] * len(counted)
        counts += counted.values()
    return FileWords(
        file=file, hashes=term_hashes(terms), places=np.array(places, np.int64), counts=np.array(counts, np.int64)
    )
