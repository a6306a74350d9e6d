"""Postings of an index in PostgreSQL: which passages have which terms, inverted in the process from what is stored.

The database keeps the terms of each passage; a search of an index that is not packed asks for those of a few terms. To
find these in rows would cost the database more than all else of a search, so each process holds them, in 20 bytes or so
a posting, and reads what is new.

Invariants: terms of a key never change, and keys grow in the order of commits: of a later state those above the last
key that is known are new. Blocks never change, so a reader of an earlier state leaves out what is later.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from indexer.corpus import Ints
from indexer.language.terms import term_hashes
from indexer.stores.base import TermEntries, TermPosting
from indexer.stores.postgres.postgres_heads import PostgresHeads, text_of
from indexer.stores.row_values import keys_of

# Passages whose terms are read at once, and postings that are handed out at once.
_PASSAGES, _ENTRIES = 2_000, 65_536
# So many passages, or this share of all, may be gone before everything is read again.
_GONE, _GONE_SHARE = 4_096, 0.25
_NO_KEYS = np.empty(0, np.int64)


class _Block(NamedTuple):
    """Postings, by the number of the term and by key."""

    terms: NDArray[np.int32]
    keys: Ints
    counts: NDArray[np.int32]


class _Words(NamedTuple):
    """Postings of one state of an index, and of which passages and files they are."""

    generation: str = ""
    revision: int = 0
    last_key: int = 0
    blocks: tuple[_Block, ...] = ()
    keys: Ints = _NO_KEYS
    files: Ints = _NO_KEYS
    gone: Ints = _NO_KEYS
    numbers: dict[str, int] = {}  # noqa: RUF012  (that of no state stays empty)


class PostgresWords:
    """Postings of an index, held for the searches of one process; safe to use from several threads.

    Args:
        heads: The index.
    """

    def __init__(self, heads: PostgresHeads) -> None:
        self._heads = heads
        self._lock = threading.Lock()
        self._words = _Words()

    def forget(self) -> None:
        """Give back the memory."""
        with self._lock:
            self._words = _Words()

    def postings(self, terms: Collection[str]) -> list[TermPosting]:
        """Passages of each term in the state that the read at hand sees; terms without any are left out."""
        with self._heads.reading():
            with self._lock:
                words = self._current()
            numbers = [(term, words.numbers[term]) for term in dict.fromkeys(terms) if term in words.numbers]
            places = [(term, _find(words, number)) for term, number in numbers]
        return [TermPosting(term=term, keys=keys, counts=counts) for term, (keys, counts) in places if len(keys)]

    def among(self, terms: Collection[str] | None, keys: Collection[int]) -> list[TermPosting]:
        """The same of some passages alone, from what is stored; None for all terms."""
        rows = self._heads.rows(
            """SELECT key, terms FROM index_passages
               WHERE ws = %(ws)s AND gen = %(gen)s AND key = ANY(%(keys)s::bigint[]) ORDER BY key""",
            keys=[*keys],
        )
        pairs_of = dict[str, list[tuple[int, int]]]()
        for key, raw in rows:
            for term, times in Counter(_terms_of(raw)).items():
                if terms is None or term in terms:
                    pairs_of.setdefault(term, []).append((key, times))
        tables = {term: np.array(pairs, np.int64) for term, pairs in pairs_of.items()}
        return [TermPosting(term=term, keys=table[:, 0], counts=table[:, 1]) for term, table in tables.items()]

    def every_term(self) -> list[str]:
        """All terms that occur in some state that was read."""
        with self._heads.reading(), self._lock:
            return [*self._current().numbers]

    def _current(self) -> _Words:
        """Postings of the state that the read sees."""
        now, words = self._heads.row(), self._words
        if now is None:
            return _Words()
        if words.generation != now.generation or len(words.gone) > _GONE + _GONE_SHARE * len(words.keys):
            words = self._read(_Words(generation=now.generation, numbers={}), [])
        elif words.revision < now.revision:
            changes = self._heads.head(words.revision)
            changed_files = np.array([*(file for file, _, _ in changes.files), *changes.gone], np.int64)
            words = self._read(self._without_gone(words, changed_files), changed_files.tolist())
        elif words.revision > now.revision:
            return self._earlier(words, now.last_key)
        else:
            return words
        self._words = words = words._replace(revision=now.revision, last_key=now.last_key)
        return words

    def _without_gone(self, words: _Words, changed_files: Ints) -> _Words:
        """The same without the passages that changed files have no more."""
        suspects = words.keys[np.isin(words.files, changed_files)]
        suspects = suspects[~np.isin(suspects, words.gone)]
        gone = np.setdiff1d(suspects, self._standing(suspects), assume_unique=True)
        return words._replace(gone=np.union1d(words.gone, gone)) if len(gone) else words

    def _earlier(self, words: _Words, last_key: int) -> _Words:
        """Postings of a state before the one that is held."""
        gone = np.setdiff1d(words.gone, self._standing(words.gone), assume_unique=True)
        return words._replace(last_key=last_key, gone=gone)

    def _standing(self, keys: Ints) -> Ints:
        """Those of some keys that are there."""
        if not len(keys):
            return keys
        rows = self._heads.rows(
            """SELECT string_agg(int8send(key), '') FROM index_passages
               WHERE ws = %(ws)s AND gen = %(gen)s AND key = ANY(%(keys)s::bigint[])""",
            keys=keys.tolist(),
        )
        return keys_of(rows)

    def _read(self, words: _Words, files: Sequence[int]) -> _Words:
        """The same with the passages that are new: of some files, or of all where nothing is known."""
        blocks, keys, numbers = [*words.blocks], [words.keys], [words.files]
        rows = _new_passages(self._heads, words.last_key, files) if words.last_key else _all_passages(self._heads)
        for chunk in rows:
            blocks.append(_block(words.numbers, [(key, raw) for key, _, raw in chunk]))
            keys.append(np.array([key for key, _, _ in chunk], np.int64))
            numbers.append(np.array([file for _, file, _ in chunk], np.int64))
            while len(blocks) > 1 and 2 * len(blocks[-1].keys) >= len(blocks[-2].keys):
                blocks[-2:] = [_merge(blocks[-2:])]
        return words._replace(blocks=tuple(blocks), keys=np.concatenate(keys), files=np.concatenate(numbers))


def stored_term_entries(heads: PostgresHeads, *, entries: int = _ENTRIES) -> Iterator[TermEntries]:
    """Every term with its passages; each term in one chunk; to be called within a read."""
    numbers = dict[str, int]()
    blocks = [_block(numbers, [(key, raw) for key, _, raw in chunk]) for chunk in _all_passages(heads)]
    if not blocks:
        return
    block, terms = _merge(blocks), [*numbers]
    ends = np.searchsorted(block.terms, np.arange(len(terms)), side="right")
    first = 0
    while first < len(terms):
        begin = int(ends[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(ends, begin + entries, side="right")))
        end = int(ends[last - 1])
        yield TermEntries(
            terms=term_hashes(terms[first:last]),
            sizes=np.diff(np.r_[begin, ends[first:last]]),
            passages=block.keys[begin:end],
            counts=block.counts[begin:end],
        )
        first = last


def _all_passages(heads: PostgresHeads) -> Iterator[Sequence[tuple[int, int, bytes]]]:
    """Key, file and terms of every passage by key, in chunks."""
    last = -1
    while True:
        rows = heads.rows(
            """SELECT key, file, terms FROM index_passages
               WHERE ws = %(ws)s AND gen = %(gen)s AND key > %(last)s ORDER BY key LIMIT %(limit)s""",
            last=last,
            limit=_PASSAGES,
        )
        if rows:
            yield rows
        if len(rows) < _PASSAGES:
            return
        last = rows[-1][0]


def _new_passages(
    heads: PostgresHeads, last_key: int, files: Sequence[int]
) -> Iterator[Sequence[tuple[int, int, bytes]]]:
    """The same of the passages of some files above a key, at once."""
    rows = heads.rows(
        """SELECT key, file, terms FROM index_passages
           WHERE ws = %(ws)s AND gen = %(gen)s AND key > %(last)s AND file = ANY(%(files)s::bigint[]) ORDER BY key""",
        last=last_key,
        files=[*files],
    )
    if rows:
        yield rows


def _terms_of(raw: bytes) -> list[str]:
    return text_of(raw).split(" ") if raw else []


def _block(numbers: dict[str, int], rows: Iterable[tuple[int, bytes]]) -> _Block:
    """Postings of passages by ascending key; new terms get a number."""
    keys, sizes, occurrences = list[int](), list[int](), list[int]()
    for key, raw in rows:
        terms = _terms_of(raw)
        keys.append(key)
        sizes.append(len(terms))
        occurrences += [numbers.setdefault(term, len(numbers)) for term in terms]
    places = np.repeat(np.arange(len(keys)), sizes)
    pairs, counts = np.unique(np.array(occurrences, np.int64) * max(1, len(keys)) + places, return_counts=True)
    terms_of_pairs, places = np.divmod(pairs, max(1, len(keys)))
    return _Block(terms_of_pairs.astype(np.int32), np.array(keys, np.int64)[places], counts.astype(np.int32))


def _merge(blocks: Sequence[_Block]) -> _Block:
    """Blocks as one; keys of each are above those of the one before."""
    terms = np.concatenate([block.terms for block in blocks])
    order = np.argsort(terms, kind="stable")
    keys = np.concatenate([block.keys for block in blocks])
    counts = np.concatenate([block.counts for block in blocks])
    return _Block(terms[order], keys[order], counts[order])


def _find(words: _Words, number: int) -> tuple[Ints, Ints]:
    """Keys of the passages with a term, ascending, and how often each has it."""
    keys, counts = [_NO_KEYS], [_NO_KEYS]
    for block in words.blocks:
        low, high = np.searchsorted(block.terms, [number, number + 1])
        keys.append(block.keys[low:high])
        counts.append(block.counts[low:high].astype(np.int64))
    all_keys, all_counts = np.concatenate(keys), np.concatenate(counts)
    stays = all_keys <= words.last_key
    if len(words.gone):
        stays &= ~np.isin(all_keys, words.gone)
    return all_keys[stays], all_counts[stays]
