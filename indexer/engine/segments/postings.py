"""Postings of a packed segment: the rows with each term, as flat arrays.

Invariants: rows count from 0 in reading order; the rows of a term ascend; terms are known by their hash and ascend by
it; a term without rows is not there. Nothing here is changed in place, so the arrays may be mapped from a file; all of
it is derived from the store. The frequency of a term in a row is held up to 255, and only where it is more than one:
that is one posting in fourteen.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from indexer.corpus import Ints
from indexer.language.terms import Hashes, term_hashes
from indexer.stores.base import TermEntries

Rows = NDArray[np.int32]
Counts = NDArray[np.uint8]
Ranges = tuple[Ints, Ints]

MAX_COUNT = 255
_COUNT_BITS = 8
# So many postings at a time are looked at while building: 30 MB of scratch.
_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Postings:
    """All terms of a segment with their rows.

    Attributes:
        terms: Hash of each term, ascending, shape (t,).
        starts: The postings of term i are those from starts[i] to starts[i + 1], shape (t + 1,).
        rows: Row of each posting, shape (p,).
        repeated: Places in `rows` where the term occurs more than once, ascending, shape (q,).
        counts: Its frequency there, at most 255, shape (q,).
        containing: Number of pairs and windows with each term, shape (t, 2).
    """

    terms: Hashes
    starts: NDArray[np.integer]
    rows: Rows
    repeated: NDArray[np.uint32]
    counts: Counts
    containing: NDArray[np.int32]

    def counts_of(self, low: int, high: int) -> Counts:
        """Frequencies in the rows of the postings from place `low` to before `high`."""
        # Numbers of another type would have the whole array copied.
        first, last = np.searchsorted(self.repeated, np.array([low, high], np.uint32)).tolist()
        counts = np.ones(high - low, np.uint8)
        counts[self.repeated[first:last] - np.uint32(low)] = self.counts[first:last]
        return counts


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Postings of one term of a question: rows, ascending, as a view of the postings, and the frequency in each.

    Attributes:
        units: Number of rows with it.
        pairs: Number of pairs with it.
        windows: Number of windows with it.
        weight: How much it counts in the question.
    """

    term: str
    rows: Rows
    counts: Counts
    units: int
    pairs: int
    windows: int
    weight: float = 1.0


def build(chunks: Iterable[TermEntries], pairs: Ranges, windows: Ranges) -> Postings:
    """The postings of a segment, from entries in any order; a term may have several, but each of its rows once.

    Args:
        chunks: Each is given up once it is taken in; memory in all is about 30 bytes a posting at its highest.
        pairs: Inclusive row range of each row's pair, see `Corpus.pairs`; its length is the number of rows.
        windows: Inclusive row range of each row's window.

    Raises:
        OverflowError: Terms times rows are too many for 56 bits, or postings for 32.
    """
    parts, terms, sizes = list[tuple[Rows, Counts, Ints]](), [np.empty(0, np.uint64)], [np.empty(0, np.int64)]
    for chunk in chunks:
        terms.append(chunk.terms)
        sizes.append(chunk.sizes)
        counts = np.minimum(chunk.counts, MAX_COUNT).astype(np.uint8)
        parts.append((chunk.passages.astype(np.int32), counts, chunk.sizes))
    distinct, rank = np.unique(np.concatenate(terms), return_inverse=True)
    starts = np.zeros(len(distinct) + 1, np.int64)
    np.add.at(starts, rank + 1, np.concatenate(sizes))
    np.cumsum(starts, out=starts)
    rows, repeated_rows, counts = _unpack_postings(_sort_postings(parts, rank, len(pairs[0])), len(pairs[0]))
    containing = np.stack([_containing(rows, starts, pairs), _containing(rows, starts, windows)], axis=1)
    kept_rows = np.diff(starts) > 0
    if not kept_rows.all():
        distinct, containing, starts = distinct[kept_rows], containing[kept_rows], starts[np.r_[kept_rows, True]]
    return Postings(
        terms=distinct, starts=starts, rows=rows, repeated=repeated_rows, counts=counts, containing=containing
    )


def take(postings: Postings, new_rows: Ints, pairs: Ranges, windows: Ranges) -> Postings:
    """A segment with some rows dropped, the others moved.

    Args:
        postings: The former segment.
        new_rows: The new number of each of its rows, in any order; -1 for a dropped one.
        pairs: As for `build`, for the new rows.
        windows: The same.
    """
    return build(_move_entries(postings, new_rows), pairs, windows)


def find(postings: Postings, terms: Sequence[str]) -> list[Found]:
    """Postings of each term, in the order of the terms; unknown terms are left out."""
    hashes = term_hashes(terms)
    places = np.searchsorted(postings.terms, hashes).tolist()
    entries = list[Found]()
    for term, wanted_hash, place in zip(terms, hashes, places, strict=True):
        if place < len(postings.terms) and postings.terms[place] == wanted_hash:
            low, high = postings.starts[place : place + 2].tolist()
            pairs, windows = postings.containing[place].tolist()
            rows, counts = postings.rows[low:high], postings.counts_of(low, high)
            entries.append(Found(term=term, rows=rows, counts=counts, units=high - low, pairs=pairs, windows=windows))
    return entries


def _move_entries(postings: Postings, moved_rows: Ints) -> Iterator[TermEntries]:
    """The entries of a segment, each row moved to its new number where that is not -1."""
    for low, high in _blocks(postings.starts):
        first, last = int(postings.starts[low]), int(postings.starts[high])
        rows, counts = postings.rows[first:last], postings.counts_of(first, last)
        places = postings.starts[low : high + 1] - postings.starts[low]
        new = moved_rows[rows]
        stays = new >= 0
        sizes = np.diff(np.r_[0, np.cumsum(stays)][places])
        yield TermEntries(terms=postings.terms[low:high], sizes=sizes, passages=new[stays], counts=counts[stays])


def _blocks(starts: NDArray[np.integer]) -> Iterator[tuple[int, int]]:
    """Ranges of terms, each of about `_BLOCK` postings, or of one term that has more."""
    if len(starts) > 1:
        cuts = np.searchsorted(starts, np.arange(0, int(starts[-1]), _BLOCK)).tolist()
        edges = sorted({*cuts, 0, len(starts) - 1})
        yield from pairwise(edges)


def _sort_postings(taken_parts: list[tuple[Rows, Counts, Ints]], rank: Ints, rows: int) -> Hashes:
    """Postings as numbers of rank, row, count from the highest bit down, ascending. Empties `taken_parts`.

    One sort of plain numbers is several times faster than any that returns an order.
    """
    shift = _COUNT_BITS + rows.bit_length()
    size = sum(len(part) for part, _, _ in taken_parts)
    if int(rank.max(initial=0)).bit_length() + shift > 64 or size >= 1 << 32:
        raise OverflowError(
            f"{rows} rows with {int(rank.max()) + 1} terms, {size} times, do not fit. Split the segment."
        )
    packed_values = np.empty(size, np.uint64)
    group, end = len(rank), len(packed_values)
    while taken_parts:
        part, counts, sizes = taken_parts.pop()
        into = packed_values[end - len(part) : end]
        into[:] = np.repeat(rank[group - len(sizes) : group].astype(np.uint64) << np.uint64(shift), sizes)
        into |= part.astype(np.uint64) << np.uint64(_COUNT_BITS)
        into |= counts
        group, end = group - len(sizes), end - len(part)
    packed_values.sort()
    return packed_values


def _unpack_postings(hashes: Hashes, rows: int) -> tuple[Rows, NDArray[np.uint32], Counts]:
    """Rows of the postings, places of those with a frequency above one, and these frequencies."""
    mask = np.uint64((1 << rows.bit_length()) - 1)
    unpacked_values = np.empty(len(hashes), np.int32)
    ds, counts = [np.empty(0, np.uint32)], [np.empty(0, np.uint8)]
    for low in range(0, len(hashes), _BLOCK):
        part = hashes[low : low + _BLOCK]
        unpacked_values[low : low + _BLOCK] = (part >> np.uint64(_COUNT_BITS)) & mask
        often = (part & np.uint64(MAX_COUNT)).astype(np.uint8)
        places = np.flatnonzero(often > 1)
        ds.append((places + low).astype(np.uint32))
        counts.append(often[places])
    return unpacked_values, np.concatenate(ds), np.concatenate(counts)


def _containing(rows: Rows, starts: NDArray[np.integer], ranges: Ranges) -> NDArray[np.int32]:
    """Number of ranges with each term: the same as `text_statistics` counts, for all terms at once.

    The ranges that hold a row are consecutive, from `first` to `last`; along the rows of a term both only grow, so each
    row adds those of its ranges that lie beyond the last one of the row before.
    """
    low, high = ranges
    every = np.arange(len(low))
    first = np.searchsorted(high, every, "left").astype(np.int32)
    last = (np.searchsorted(low, every, "right") - 1).astype(np.int32)
    counted_values = np.zeros(len(starts) - 1, np.int32)
    for begin, end in _blocks(starts):
        part = rows[starts[begin] : starts[end]]
        opens = starts[begin:end] - starts[begin]
        from_, to = first[part], last[part]
        incomplete = np.r_[np.int32(-1), to[:-1]]
        filled_rows = np.diff(starts[begin : end + 1]) > 0
        incomplete[opens[filled_rows]] = -1
        added_rows = np.maximum(to - np.maximum(from_, incomplete + 1) + 1, 0)
        counted_values[begin:end][filled_rows] = (
            np.add.reduceat(added_rows, opens[filled_rows]) if len(added_rows) else 0
        )
    return counted_values
