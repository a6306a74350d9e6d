"""Search of a packed segment: candidate rows of a question, and their signals.

Invariants: only allowed rows are found; a signal of a row is what it would be in memory, but for the rounding of the
codes (.003 of a cosine) and for neighbours far from anything else that was found.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from indexer.corpus import Floats, Ints, Mask, unique_rows
from indexer.engine.bm25 import RangeStatistics, TextEvidence, TextStatistics
from indexer.engine.candidates import Candidates
from indexer.engine.ranking import CANDIDATES, VectorEvidence, candidates
from indexer.engine.segments import quantizer as coding
from indexer.engine.segments.postings import Found
from indexer.engine.segments.quantizer import Codes
from indexer.engine.segments.segment import Segment
from indexer.engine.segments.shortlist import (
    Frequencies,
    bm25_of,
    candidate_rows,
    counts_at,
    frequencies,
    rows_in_ranges,
)
from indexer.types import Vectors

# About so many rows have their words scored exactly.
_SCORED = 1_000
# Postings that the first pass over words looks at. Source: our measurement, 1 ms per 100,000.
_POSTINGS = 150_000
# Of a pasted text, only the rarest words are scored: the others tell next to nothing.
_SCORED_TERMS = 24
# A filter that leaves so few rows has all of them scored exactly.
_FEW = 2_000
# So many nearest have to be found for certain; a thousand and more are looked at for them.
_NEAREST = 50
# Of the nearest passages, how many have their neighbours looked at as well.
_NEIGHBOURED = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentQuery:
    """A question to a segment.

    Attributes:
        entries: Postings of the question's terms; None where words are not searched.
        known_statistics: Statistics of those terms in all parts of the index.
        vector: The question's vector; None where vectors are not searched.
        allowed_mask: Rows that may be found; None for all.
        sought: Rows, ascending, that are candidates in any case, as they hold what the question names.
    """

    entries: tuple[Found, ...] | None
    known_statistics: TextStatistics
    vector: Vectors | None
    allowed_mask: Mask | None
    sought: Ints = field(default_factory=lambda: np.empty(0, np.int64))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Near:
    """Rows near a question, ascending, and their cosines; those of other rows on demand."""

    codes: Codes | None
    vector: Vectors
    rows: Ints
    cosines: Floats

    def best(self, count: int) -> Ints:
        if len(self.rows) <= count:
            return self.rows
        return self.rows[np.argpartition(-self.cosines, count)[:count]]

    def of(self, rows: Ints) -> Floats:
        """Cosines of any rows; 0 where a passage has no vector."""
        own = np.zeros(len(rows))
        if self.codes is None:
            return own
        at = np.searchsorted(self.rows, rows).clip(max=max(0, len(self.rows) - 1))
        known_values = self.rows[at] == rows if len(self.rows) else np.zeros(len(rows), bool)
        own[known_values] = self.cosines[at[known_values]]
        own[~known_values] = coding.cosines(self.codes, self.vector, rows[~known_values])
        return own


def search_segment(segment: Segment, query: SegmentQuery) -> Candidates:
    """The candidates of a segment, with their signals."""
    near = _near(segment, query.vector, query.allowed_mask) if query.vector is not None else None
    seeds = query.sought if query.allowed_mask is None else query.sought[query.allowed_mask[query.sought]]
    if near:
        seeds = unique_rows(np.concatenate([seeds, _seeds(segment, near, query.allowed_mask)]))
    rows, text = _rows(segment, query, seeds), None
    if query.entries is not None:
        text = _text(segment, query, rows)
        # A cosine costs more than the words of a row: only the best by words get one, and what is near anyway.
        chosen_rows = candidates([text.pair, text.window], np.ones(len(rows), bool), CANDIDATES)
        if len(seeds):
            chosen_rows = unique_rows(np.concatenate([chosen_rows, np.flatnonzero(_among(rows, seeds))]))
        rows, text = rows[chosen_rows], text.take(chosen_rows)
    return Candidates(
        keys=segment.keys(rows),
        days=segment.days[rows].astype(np.int64),
        marks=segment.marks[rows].astype(np.int64),
        labels=segment.labels[rows].astype(np.int64),
        evergreen=segment.evergreen(rows),
        files=segment.files_of(rows),
        folders=segment.folders(rows),
        spoken=segment.session_messages(rows),
        text=text,
        vector=_vector(segment, rows, near) if near else None,
    )


def _among(rows: Ints, wanted_rows: Ints) -> Mask:
    """Mask of some rows, ascending, that are among others, ascending."""
    at = np.searchsorted(wanted_rows, rows).clip(max=max(0, len(wanted_rows) - 1))
    return wanted_rows[at] == rows if len(wanted_rows) else np.zeros(len(rows), bool)


def _seeds(segment: Segment, near: _Near, mask: Mask | None) -> Ints:
    """The nearest rows, and the neighbours of the very nearest, ascending."""
    low, high = segment.triples.of(near.best(_NEIGHBOURED))
    rows = unique_rows(np.concatenate([near.best(CANDIDATES), low, high]))
    return rows if mask is None else rows[mask[rows]]


def _near(segment: Segment, vector: Vectors, mask: Mask | None) -> _Near:
    rows, cosines = np.empty(0, np.int64), np.empty(0)
    if segment.codes is not None:
        rows, vectors = coding.nearest_rows(segment.codes, vector, _NEAREST, mask)
        cosines = vectors.astype(np.float64)
    return _Near(codes=segment.codes, vector=vector, rows=rows, cosines=cosines)


def _rows(segment: Segment, query: SegmentQuery, seeds: Ints) -> Ints:
    """Rows to score exactly, ascending."""
    standing = _few(segment, query.allowed_mask)
    if standing is not None:
        return standing
    rows = seeds
    if query.entries:
        idfs = np.array(
            [_idfs(query.entries, query.known_statistics.pair), _idfs(query.entries, query.known_statistics.window)]
        )
        around = segment.around(query.known_statistics)
        worded_candidate_rows = candidate_rows(query.entries, idfs, around, _POSTINGS, _SCORED, query.allowed_mask)
        rows = unique_rows(np.concatenate([rows, worded_candidate_rows]))
    return rows


def _few(segment: Segment, mask: Mask | None) -> Ints | None:
    """All allowed rows, where they are so few that all of them can be scored."""
    if mask is None:
        return np.arange(len(segment)) if len(segment) <= _FEW else None
    return np.flatnonzero(mask) if np.count_nonzero(mask) <= _FEW else None


def _text(segment: Segment, query: SegmentQuery, rows: Ints) -> TextEvidence:
    """The lexical signals of some rows, ascending."""
    entries = sorted(query.entries or (), key=lambda entry: entry.units)[:_SCORED_TERMS]
    statistics, around = query.known_statistics, segment.around(query.known_statistics)
    windows, pairs = segment.windows.of(rows), segment.pairs.of(rows)
    # A pair is shorter than half of a window: its rows are among these too.
    every = rows_in_ranges(windows)
    counts = counts_at(entries, every)
    place = np.searchsorted(every, rows)
    alone = counts.take(place, axis=1).astype(np.int32)
    before = counts.take(np.maximum(place - 1, 0), axis=1)

    def score(frequency: Frequencies, ranges: tuple[Ints, Ints], of_kind: RangeStatistics) -> Floats:
        return bm25_of(frequency, around.lengths(ranges), _idfs(entries, of_kind), of_kind.mean_length)

    return TextEvidence(
        unit=score(alone, (rows, rows), statistics.unit),
        pair=score(alone + before * (pairs[0] < rows), pairs, statistics.pair),
        window=score(frequencies(counts, every, windows), windows, statistics.window),
    )


def _idfs(entries: Sequence[Found], statistics: RangeStatistics) -> Floats:
    return np.array([entry.weight * statistics.idf(entry.term) for entry in entries])


def _vector(segment: Segment, rows: Ints, near: _Near) -> VectorEvidence:
    """The vector signals of some rows."""
    low, high = segment.triples.of(rows)
    every = unique_rows(np.concatenate([low, rows, high]))
    cosines = near.of(every)
    own = cosines[np.searchsorted(every, rows)]
    total = own.copy()
    for end in (low, high):
        total += np.where(end == rows, 0.0, cosines[np.searchsorted(every, end)])
    return VectorEvidence(
        own=own,
        triple=total / segment.triple_norms[rows].astype(np.float64),
        section=_section_best(segment, rows, own, near),
    )


def _section_best(segment: Segment, rows: Ints, own: Floats, near: _Near) -> Floats:
    """The best cosine of each row's section, of all rows that were scored."""
    own_sections = segment.sections[rows].astype(np.int64)
    sections = unique_rows(own_sections)
    place = np.searchsorted(sections, own_sections)
    best = np.full(len(sections), -1.0)
    np.maximum.at(best, place, own)
    other_rows = segment.sections[near.rows]
    at = np.minimum(np.searchsorted(sections, other_rows), max(0, len(sections) - 1))
    known_values = sections[at] == other_rows if len(sections) else np.zeros(len(other_rows), bool)
    np.maximum.at(best, at[known_values], near.cosines[known_values])
    return best[place]
