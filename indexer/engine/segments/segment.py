"""Packed segment of an index: passages as columns, vector codes, postings.

Invariants: a segment is never changed; a mask beside it says which of its rows nothing has replaced. Rows of a file
follow one another in reading order. Nothing in it is text, and all of it is derived from the store.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from indexer.corpus import Greetings, Ints, Mask, find_greetings, folder_number, sizes_by_folder
from indexer.engine.bm25 import RangeStatistics, TextStatistics
from indexer.engine.segments.postings import Found, Postings
from indexer.engine.segments.quantizer import Codes
from indexer.engine.segments.shortlist import Surroundings
from indexer.types import EVERGREEN, SearchFilter, SourceKind

Steps = NDArray[np.uint16]
Running = NDArray[np.int32] | NDArray[np.int64]
Offsets = NDArray[np.uint32] | NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """Extent of one kind of range around each row: rows before it, and rows after it.

    Attributes:
        steps: Those of all kinds, a few bits each.
        shift: First bit of this kind: first the rows before, then those after.
        bits: Number of bits of each of the two.
        length: Terms of all ranges of this kind together.
    """

    steps: Steps
    shift: int
    bits: int
    length: float

    def of(self, rows: Ints) -> tuple[Ints, Ints]:
        """First and last row of the ranges of some rows."""
        steps, most = self.steps[rows] >> self.shift, (1 << self.bits) - 1
        return rows - (steps & most), rows + ((steps >> self.bits) & most)


@dataclass(frozen=True, kw_only=True)
class Segment:
    """Columns over n rows.

    Attributes:
        generation: Generation of the index that this was packed from.
        revision: The revision of the store that this shows.
        files: The store's numbers of the files, ascending.
        starts: First row of each file, and n.
        first_key: The lowest of the store's keys.
        key_offsets: Difference of each row's key to that.
        totals: Terms of all rows before each one, and of all; shape (n + 1,).
        sections: Number of the section of each row.
        triple_norms: Length of the sum of each row's vector and its neighbours'.
        codes: None where the index has no vectors.
    """

    generation: str
    revision: int
    files: Ints
    starts: Ints
    paths: tuple[str, ...]
    sources: tuple[SourceKind, ...]
    first_key: int
    key_offsets: Offsets
    days: NDArray[np.int32]
    marks: NDArray[np.uint16]
    labels: NDArray[np.uint16] | NDArray[np.int64]
    greeted: NDArray[np.uint16] | NDArray[np.int64]
    start_lines: NDArray[np.int32] | NDArray[np.int64]
    end_lines: NDArray[np.int32] | NDArray[np.int64]
    totals: Running
    sections: NDArray[np.int32]
    pairs: Reach
    triples: Reach
    windows: Reach
    triple_norms: NDArray[np.float16]
    speakers: frozenset[int]
    postings: Postings
    codes: Codes | None

    def __len__(self) -> int:
        """Number of rows, replaced ones too."""
        return len(self.key_offsets)

    def keys(self, rows: Ints) -> Ints:
        """The store's keys of some rows."""
        return self.key_offsets[rows].astype(np.int64) + self.first_key

    def evergreen(self, rows: Ints) -> Mask:
        """Mask of some rows: True for files that do not age."""
        evergreen: Mask = self._evergreen_files[np.searchsorted(self.starts, rows, "right") - 1]
        return evergreen

    def files_of(self, rows: Ints) -> Ints:
        """The store's number of the file of some rows."""
        files: Ints = self.files[np.searchsorted(self.starts, rows, "right") - 1]
        return files

    def session_messages(self, rows: Ints) -> Mask:
        """Mask of some rows: True for messages of sessions."""
        mask: Mask = self._session_files[np.searchsorted(self.starts, rows, "right") - 1]
        return mask

    def folders(self, rows: Ints) -> Ints:
        """Number of the folder of some rows; see `folder_number`."""
        folders: Ints = self._folder_numbers[np.searchsorted(self.starts, rows, "right") - 1]
        return folders

    @cached_property
    def folder_sizes(self) -> Mapping[int, int]:
        """Number of rows of each folder, by its number."""
        return sizes_by_folder(self._folder_numbers, np.diff(self.starts))

    @cached_property
    def _folder_numbers(self) -> Ints:
        return np.array([folder_number(path) for path in self.paths], np.int64)

    @cached_property
    def _session_files(self) -> Mask:
        return np.array([source == "sessions" for source in self.sources], bool)

    @cached_property
    def _evergreen_files(self) -> Mask:
        return np.array([path in EVERGREEN for path in self.paths], bool)

    def standing(self, replaced_numbers: Sequence[int]) -> Mask | None:
        """Mask of the rows that nothing has replaced, given rewritten and removed files; None for all."""
        rows = self._positions(replaced_numbers)
        if not len(rows):
            return None
        mask = np.ones(len(self), bool)
        for position in rows.tolist():
            mask[self.starts[position] : self.starts[position + 1]] = False
        return mask

    def speaking(self, standing: Mask | None) -> frozenset[int]:
        """Labels of the rows in a mask; None for all. Those of others may be other names by now."""
        if standing is None:
            return self.speakers
        return frozenset(np.flatnonzero(np.bincount(self.labels[standing])).tolist()) - {0}

    @cached_property
    def greetings(self) -> Greetings:
        """Greetings of one speaker by another."""
        return find_greetings(self.starts, self.labels, self.greeted)

    def around(self, statistics: TextStatistics) -> Surroundings:
        """Ranges around its rows, by the statistics of all parts of the index."""
        return Surroundings(
            totals=self.totals,
            pairs=self.pairs.of,
            windows=self.windows.of,
            pair_length=statistics.pair.mean_length,
            window_length=statistics.window.mean_length,
        )

    def _positions(self, files: Sequence[int]) -> Ints:
        rows = np.array(sorted(files), np.int64)
        if not len(rows) or not len(self.files):
            return np.empty(0, np.int64)
        at = np.minimum(np.searchsorted(self.files, rows), len(self.files) - 1)
        known_rows: Ints = at[self.files[at] == rows]
        return known_rows

    def allowed_rows(self, filter: SearchFilter, standing: Mask | None, rows: Ints | None = None) -> Mask | None:
        """Mask of the rows that a filter leaves of those that nothing has replaced; None for all.

        Args:
            filter: The filter.
            standing: Mask of the rows that nothing has replaced; None for all.
            rows: Keys of the passages that have the tags of the filter, where it has any.
        """
        mask = standing
        if rows is not None:
            mask = _intersection(mask, np.isin(self.keys(np.arange(len(self))), rows))
        if filter.sources or filter.path_prefix:
            files = zip(self.sources, self.paths, strict=True)
            chosen_rows = np.array([filter.reaches(source, path) for source, path in files], bool)
            mask = _intersection(mask, np.repeat(chosen_rows, np.diff(self.starts)))
        if filter.since or filter.until:
            first = filter.since.toordinal() if filter.since else 1
            last = (filter.until or dt.date.max).toordinal()
            mask = _intersection(mask, (self.days >= first) & (self.days <= last))
        if filter.without:
            mask = self._left_out(filter, mask)
        return mask

    def _left_out(self, filter: SearchFilter, mask: Mask | None) -> Mask:
        mask = np.ones(len(self), bool) if mask is None else mask.copy()
        for lines in filter.without:
            if lines.path in self._position_of:
                position = self._position_of[lines.path]
                rows = slice(self.starts[position], self.starts[position + 1])
                mask[rows] &= ~((self.start_lines[rows] >= lines.start_line) & (self.end_lines[rows] <= lines.end_line))
        return mask

    @cached_property
    def _position_of(self) -> dict[str, int]:
        return {path: position for position, path in enumerate(self.paths)}

    def statistics(self, entries: Sequence[Found]) -> TextStatistics:
        """Statistics of some terms here, for BM25."""
        n = len(self)
        return TextStatistics(
            unit=RangeStatistics(
                count=n, length=float(self.totals[-1]), containing={entry.term: entry.units for entry in entries}
            ),
            pair=RangeStatistics(
                count=n, length=self.pairs.length, containing={one_entry.term: one_entry.pairs for one_entry in entries}
            ),
            window=RangeStatistics(
                count=n, length=self.windows.length, containing={entry.term: entry.windows for entry in entries}
            ),
        )


def _intersection(mask: Mask | None, other_mask: Mask) -> Mask:
    return other_mask if mask is None else mask & other_mask
