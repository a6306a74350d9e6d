"""Compact codes of vectors: sign bits find the nearest candidates, one byte per dimension gives their cosines.

Invariants: row i of every array belongs to row i of the corpus; codes are never changed, new ones take their place,
and their arrays may be read-only maps of a file; a passage without a vector has scale 0 and is never found; a coder
gives the same vectors the same codes on every machine, alone or in company; no cosine is NaN.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from indexer.corpus import Ints, Mask
from indexer.errors import EmbeddingError
from indexer.types import Vectors

Bits = NDArray[np.uint64]
Levels = NDArray[np.int8]
Halves = NDArray[np.float16]
_Distances = NDArray[np.uint16]

# Few dimensions give few different codes, so such vectors are turned several ways until they fill this many bits.
MIN_BITS = 384

# Bits of a word; the vectors are turned in groups of as many numbers.
_WORD = 64
_TOP_LEVEL = 127

# Rows of one step of a scan. Source: our measurement; .5 µs of every call is its own, and four planes and their
# buffers still fit into the second cache.
_SCAN_ROWS = 32_768

# Numbers of one step of other passes: 256 KB of float32 stay in the second cache.
_STEP_NUMBERS = 65_536

_ENCODE_NUMBERS = 262_144

# Up to here every passage is measured by its bytes, in 1.1 ms at 384 dimensions. Source: our measurement; with 4,000
# the recall of 5,000 passages from 1,000 clusters was .975.
_DIRECT_ROWS = 8_000

# Where fewer than this share of the rows is allowed, picking their bits is cheaper than to look at all.
_GATHER_SHARE = 0.5

# Shorter sums of neighbours are noise: their directions say nothing.
_SHORTEST_SUM = 0.05


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Coder:
    """Encoder for the vectors of one model. Codes of different coders do not compare.

    Attributes:
        dimensions: Length of the vectors.
        mean: Origin of their signs, float32 of shape (dimensions,). Vectors of many models lie in a narrow cone;
            without this nearly all of their sign bits would be the same.
    """

    dimensions: int
    mean: Vectors

    @classmethod
    def fit(cls, vectors: Vectors) -> Coder:
        """A coder for vectors like these, float32 of shape (m, dimensions); some thousands are enough."""
        usable = vectors[_usable(vectors)]
        dimensions = vectors.shape[1]
        mean = usable.mean(axis=0, dtype=np.float64) if len(usable) else np.zeros(dimensions)
        return cls(dimensions=dimensions, mean=mean.astype(np.float32))

    @property
    def words(self) -> int:
        """Number of 64-bit words of signs per vector."""
        return int(_signs(self.dimensions)[0].size) // _WORD

    def encode(self, vectors: Vectors) -> Codes:
        """Codes of unit vectors, float32 of shape (m, dimensions); a row of zeros, or with NaN, counts as no vector.

        Raises:
            EmbeddingError: The vectors have another length.
        """
        if vectors.ndim != 2 or vectors.shape[1] != self.dimensions:
            raise EmbeddingError(
                f"Vectors of shape {vectors.shape} do not fit an index of {self.dimensions} dimensions. "
                "Run `memory-service reindex --full`."
            )
        count = len(vectors)
        bits = np.zeros((self.words, count), np.uint64)
        levels = np.zeros(vectors.shape, np.int8)
        scales = np.zeros(count, np.float16)
        for rows in _steps(count, max(1, _ENCODE_NUMBERS // (_WORD * self.words))):
            block = vectors[rows].astype(np.float32)
            block[~_usable(block)] = 0
            bits[:, rows] = self.sign_bits(block)
            scales[rows] = _rounded_up(np.abs(block).max(axis=1) / _TOP_LEVEL)
            levels[rows] = np.rint(block / np.where(scales[rows] > 0, scales[rows], 1).astype(np.float32)[:, None])
        return Codes(coder=self, bits=bits, levels=levels, scales=scales)

    def sign_bits(self, vectors: Vectors) -> Bits:
        """Signs of the turned vectors: shape (words, m)."""
        turned_vectors = _rotate(vectors - self.mean)
        rows = np.packbits(turned_vectors > 0, axis=0, bitorder="little")
        words = rows.reshape(self.words, 8, len(vectors)).transpose(0, 2, 1)
        return np.ascontiguousarray(words).view(np.uint64)[:, :, 0]


@dataclass(frozen=True, kw_only=True, eq=False)
class Codes:
    """Codes of n passages.

    Attributes:
        bits: Sign bits as planes, uint64 of shape (words, n): a scan reads each plane from end to end.
        levels: The vectors in steps of `scales`, int8 of shape (n, dimensions).
        scales: float16 of shape (n,); 0 where a passage has no vector.
    """

    coder: Coder
    bits: Bits
    levels: Levels
    scales: Halves

    def __len__(self) -> int:
        """Number of passages."""
        return len(self.scales)

    @cached_property
    def present(self) -> Mask | None:
        """Mask of the passages with a vector; None where all have one."""
        present: Mask = self.scales > 0
        return None if present.all() else present


def nearest_rows(codes: Codes, query: Vectors, k: int, mask: Mask | None) -> tuple[Ints, Vectors]:
    """Rows that include the k nearest of a query, with their cosines by bytes.

    Such a cosine is off by at most half a step in every number: `scale / 2 · sum(|query|)`. Measured: .0004 as a rule
    and .002 at most with MiniLM, .006 at most with 8 dimensions and where one number outweighs all others.

    Args:
        codes: The codes to search.
        query: Vector of the question, float32 of shape (dimensions,).
        k: Number of nearest rows to include.
        mask: Rows that may be found, of shape (n,); None for all.

    Returns:
        Rows, ascending, and their cosines: about `_survivors(n, k)` of them, or all allowed ones where they are few.

    Raises:
        EmbeddingError: The query has another length, no direction, or is not finite.
    """
    unit = _unit(query, codes.coder)
    searched_mask = _intersection(codes.present, mask)
    count = len(codes) if searched_mask is None else int(np.count_nonzero(searched_mask))
    survivors = _survivors(count, k)
    if count <= max(_DIRECT_ROWS, survivors):
        rows = np.arange(count) if searched_mask is None else np.flatnonzero(searched_mask)
        return rows, _cosines(codes, unit, rows)
    word_bits = codes.coder.sign_bits(unit[None])[:, 0]
    farthest = _WORD * len(word_bits)
    if searched_mask is not None and count < _GATHER_SHARE * len(codes):
        among = np.flatnonzero(searched_mask)
        rows = among[_lowest(_distances(codes.bits, word_bits, among), survivors, farthest)]
    else:
        distances = _distances(codes.bits, word_bits, None)
        if searched_mask is not None:
            _shut_out(distances, searched_mask)
        rows = _lowest(distances, survivors, farthest)
    return rows, _cosines(codes, unit, rows)


def _survivors(count: int, k: int) -> int:
    """Number of rows, of `count`, that pass the sign bits.

    Source: our measurement; half as many had a recall of .997 on ReLU-like and sparse vectors, and cost .1 ms less. Of
    few rows the tenth nearest is often far off, and signs tell far ones apart badly: .988 of 10,000 with 2,000.
    """
    return max(2000 if 50_000 <= count < 500_000 else 4000, 20 * k)


def cosines(codes: Codes, query: Vectors, rows: Ints) -> Vectors:
    """Cosines of some rows by their bytes, float32 of shape (len(rows),); 0 where a passage has no vector.

    Raises:
        EmbeddingError: The query has another length, no direction, or is not finite.
    """
    return _cosines(codes, _unit(query, codes.coder), rows)


def triple_norms(codes: Codes, low: Ints, high: Ints) -> Halves:
    """Length of the sum of the vectors of rows low[i]..high[i], which are row i and at most one on either side.

    Returns:
        float16 of shape (n,), never under .05: what is shorter has been rounded away.
    """
    count = len(codes)
    lengths = np.zeros(count, np.float16)
    for rows in _steps(count, max(1, _STEP_NUMBERS // codes.coder.dimensions)):
        first, last = max(0, rows.start - 1), min(count, rows.stop + 1)
        block = codes.levels[first:last].astype(np.float32) * codes.scales[first:last, None]
        here = np.arange(rows.start, rows.stop)
        total = block[here - first]
        before, after = low[rows] < here, high[rows] > here
        total[before] += block[here[before] - 1 - first]
        total[after] += block[here[after] + 1 - first]
        lengths[rows] = np.maximum(np.sqrt(np.einsum("ij,ij->i", total, total)), _SHORTEST_SUM)
    return lengths


def _cosines(codes: Codes, unit: Vectors, rows: Ints) -> Vectors:
    values = np.empty(len(rows), np.float32)
    for step in _steps(len(rows), max(1, _STEP_NUMBERS // codes.coder.dimensions)):
        block = codes.levels.take(rows[step], axis=0).astype(np.float32)
        np.vecdot(block, unit, out=values[step])  # not `@`: see `Matrix.cosines`
    values *= codes.scales[rows]
    return values


def _distances(bits: Bits, word_bits: Bits, among: Ints | None) -> _Distances:
    """Number of bits of each row, or of each of some, that differ from the query's: shape (n,) or (len(among),)."""
    count = bits.shape[1] if among is None else len(among)
    distances = np.zeros(count, np.uint16)
    size = min(count, _SCAN_ROWS)
    differing, few, sums = np.empty(size, np.uint64), np.empty(size, np.uint8), np.empty(size, np.uint8)
    for rows in _steps(count, _SCAN_ROWS):
        length = rows.stop - rows.start
        out, this_rows, total = differing[:length], few[:length], sums[:length]
        for number, (plane, word) in enumerate(zip(bits, word_bits, strict=True)):
            np.bitwise_xor(plane[rows] if among is None else np.take(plane, among[rows]), word, out=out)
            # A byte holds the sum of three words.
            if number % 3 == 0:
                np.bitwise_count(out, out=total)
            else:
                np.bitwise_count(out, out=this_rows)
                total += this_rows
            if number % 3 == 2 or number == len(bits) - 1:
                distances[rows] += total
    return distances


def _shut_out(distances: _Distances, mask: Mask) -> None:
    """Put rows that are not searched farther than any other; changes `distances`."""
    for rows in _steps(len(distances), _SCAN_ROWS):
        # False becomes 65,535, True 0.
        distances[rows] |= mask[rows].astype(np.uint16) - np.uint16(1)


def _lowest(distances: _Distances, number: int, farthest: int) -> Ints:
    """Places of the lowest, ascending: at least `number`, and up to twice as many where they are as low as the last.

    Not fewer than `number` must be at most at `farthest`.
    """
    # The lowest limit that keeps enough, by bisection: counting is cheaper than a histogram, and than a partition.
    low, high = 0, farthest
    while low < high:
        middle = (low + high) // 2
        if np.count_nonzero(distances <= middle) >= number:
            high = middle
        else:
            low = middle + 1
    places: Ints = np.flatnonzero(distances <= low)
    if len(places) <= 2 * number:
        return places
    # So many ties are copies of one text; it is all the same which of them come.
    tied_value = distances[places] == low
    room = number - int(np.count_nonzero(~tied_value))
    mask: Mask = ~tied_value | (np.cumsum(tied_value) <= room)
    return places[mask]


def _intersection(mask: Mask | None, other_mask: Mask | None) -> Mask | None:
    return (
        mask & other_mask if mask is not None and other_mask is not None else mask if other_mask is None else other_mask
    )


def _unit(query: Vectors, coder: Coder) -> Vectors:
    length = float(np.linalg.norm(query.astype(np.float64)))
    if query.shape != (coder.dimensions,) or not np.isfinite(length) or not length:
        raise EmbeddingError(
            f"The question's vector, of shape {query.shape} and length {length:.3g}, cannot be compared with an index "
            f"of {coder.dimensions} dimensions. Check the embedding model, or search by text."
        )
    return (query / length).astype(np.float32)


def _rounded_up(scales: Vectors) -> Halves:
    """The next half-precision numbers that are not lower, so that no level is above the top one."""
    halves = scales.astype(np.float16)
    halves[halves < scales] = np.nextafter(halves[halves < scales], np.float16(np.inf))
    return halves


def _usable(vectors: Vectors) -> Mask:
    """Mask of the rows that are vectors: finite, and not zeros."""
    squares = np.einsum("ij,ij->i", vectors, vectors)
    usable: Mask = np.isfinite(squares) & (squares > 0)
    return usable


def _steps(count: int, size: int) -> Iterator[slice]:
    for start in range(0, count, size):
        yield slice(start, min(start + size, count))


def _rotate(vectors: Vectors) -> Vectors:
    """The vectors turned in fixed ways, one below the other: shape (64 · words, m).

    Three rounds of sign flips and Hadamard transforms of groups of 64 numbers, so that every number of the outcome
    depends on all of the vector. It only adds and subtracts, in a fixed order. Source: Andoni et al.,
    arXiv:1509.02897; after two rounds an eighth of the bits told some axes of 1,024 dimensions apart, not a half.
    """
    count, dimensions = vectors.shape
    size = _signs(dimensions).shape[1]
    columns = np.zeros((size, 1, count), np.float32)
    columns[:dimensions, 0] = vectors.T
    for signs in _signs(dimensions):
        flipped_values = (columns * signs).reshape(_WORD, size // _WORD, -1)
        # What stood together goes into different groups of the next round.
        columns = _hadamard(flipped_values).swapaxes(0, 1).reshape(size, -1, count)
    return columns.reshape(-1, count)


def _hadamard(rows: Vectors) -> Vectors:
    """The Hadamard transform, times 8, along the first axis, of length 64; writes over what it is given."""
    source, target = rows, np.empty_like(rows)
    half = 1
    while half < _WORD:
        pairs, new_rows = (vectors.reshape(_WORD // (2 * half), 2, half, -1) for vectors in (source, target))
        np.add(pairs[:, 0], pairs[:, 1], out=new_rows[:, 0])
        np.subtract(pairs[:, 0], pairs[:, 1], out=new_rows[:, 1])
        source, target = target, source
        half *= 2
    return source


@lru_cache(maxsize=8)
def _signs(dimensions: int) -> Vectors:
    """Signs of each round, float32 of shape (3, padded dimensions, turns, 1): the same everywhere, for ever."""
    size = -(-dimensions // _WORD) * _WORD
    shape = (3, size, -(-MIN_BITS // size), 1)
    coins = hashlib.shake_256(b"signs of codes, %d" % dimensions).digest(math.prod(shape) // 8)
    return np.unpackbits(np.frombuffer(coins, np.uint8)).reshape(shape).astype(np.float32) * 2 - 1
