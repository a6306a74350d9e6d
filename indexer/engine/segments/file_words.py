"""Words of passages that were written since the last segment.

Invariants: they are derived by the rules that made the stored terms; an unchanged passage is not read again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from indexer.corpus import Corpus, CorpusFile, Ints
from indexer.engine.bm25 import Posting
from indexer.language.search_terms import passage_terms
from indexer.language.terms import Hashes, term_hashes
from indexer.stores.base import IndexStore


@dataclass(frozen=True, slots=True, kw_only=True)
class FileWords:
    """The words of one file: for every word of a passage its hash, the passage's place and how often."""

    file: CorpusFile
    hashes: Hashes
    places: Ints
    counts: Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class Recent:
    """Words of a corpus, in no order."""

    corpus: Corpus
    files: dict[str, FileWords]
    hashes: Hashes
    rows: Ints
    counts: Ints

    def postings(self, terms: Sequence[str]) -> list[Posting]:
        """Postings of terms that occur."""
        value = []
        for term, term_hash in zip(terms, term_hashes(terms), strict=True):
            # A pass over all beats keeping them sorted: they change with every write.
            at = np.flatnonzero(self.hashes == term_hash)
            if len(at):
                value.append(Posting(term=term, rows=self.rows[at], counts=self.counts[at]))
        return value


def load_recent(store: IndexStore, corpus: Corpus, previous: Recent | None) -> Recent:
    """The words of a corpus, reading only passages that `previous` does not hold."""
    known_words = previous.files if previous else {}
    files = {file.path: _words(store, file, known_words.get(file.path)) for file in corpus.files}
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


def _words(store: IndexStore, file: CorpusFile, before: FileWords | None) -> FileWords:
    """The words of a file; those of a passage that keeps its key are the same, wherever it stands now."""
    if before is None:
        return _read(store, file, np.arange(len(file.table)))
    if before.file is file:
        return before
    keys, rows = file.table[:, 0], before.file.table[:, 0]
    new = _read(store, file, np.flatnonzero(~np.isin(keys, rows)))
    order = np.argsort(keys)
    at = np.minimum(np.searchsorted(keys[order], rows), len(keys) - 1)
    stays = (keys[order[at]] == rows)[before.places]
    return FileWords(
        file=file,
        hashes=np.r_[before.hashes[stays], new.hashes],
        places=np.r_[order[at][before.places[stays]], new.places],
        counts=np.r_[before.counts[stays], new.counts],
    )


def _read(store: IndexStore, file: CorpusFile, rows: Ints) -> FileWords:
    """The words of some passages of a file."""
    keys = file.table[rows, 0].tolist()
    passages = store.passages(keys) if keys else {}
    terms, places, counts = list[str](), list[int](), list[int]()
    for place, key in zip(rows.tolist(), keys, strict=True):
        counted = Counter(passage_terms(passages[key].passage, passages[key].path))
        terms += counted
        places += [place] * len(counted)
        counts += counted.values()
    return FileWords(
        file=file, hashes=term_hashes(terms), places=np.array(places, np.int64), counts=np.array(counts, np.int64)
    )
