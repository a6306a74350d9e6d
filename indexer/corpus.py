"""Passages of a workspace as columns in memory, in reading order: the input of ranking.

Invariants: row i-1 and row i+1 are the neighbours of row i when they have the same `file`; a corpus never changes, a
new one takes its place. It holds no text and, per passage, under 100 bytes beside its vector. Greetings count only
in files with exactly two speakers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from indexer.types import EVERGREEN, EXTRA_MARK, SourceKind

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Greetings:
    """Passages that greet somebody, as columns of shape (m,).

    Attributes:
        rows: Their rows.
        speakers: Numbers of the labels of those who greet.
        others: Numbers of the labels of the only other speaker of the file.
        names: Numbers of the names.
    """

    rows: Ints
    speakers: Ints
    others: Ints
    names: Ints

    def with_names(
        self, names: Mapping[int, str], standing: NDArray[np.bool_] | None = None
    ) -> Iterator[tuple[int, int, str]]:
        """Speaker, other and name of each greeting; only of rows in the mask `standing`, if given."""
        rows = slice(None) if standing is None else standing[self.rows]
        columns = self.speakers[rows].tolist(), self.others[rows].tolist(), self.names[rows].tolist()
        for speaker, other_value, name in zip(*columns, strict=True):
            if name in names:
                yield speaker, other_value, names[name]


def find_greetings(starts: Ints, labels: NDArray[np.integer], greeted_rows: NDArray[np.integer]) -> Greetings:
    """The greetings among some rows.

    Args:
        starts: First row of each file, and the number of rows.
        labels: Number of the label of each row; 0 for none.
        greeted_rows: Number of the name that each row greets; 0 for none.
    """
    rows = np.flatnonzero((greeted_rows > 0) & (labels > 0))
    other_rows = _other_speakers(starts, labels, rows) if len(rows) else rows
    known_rows = other_rows > 0
    rows = rows[known_rows]
    return Greetings(
        rows=rows,
        speakers=labels[rows].astype(np.int64),
        others=other_rows[known_rows],
        names=greeted_rows[rows].astype(np.int64),
    )


def _other_speakers(starts: Ints, labels: NDArray[np.integer], rows: Ints) -> Ints:
    """Label of the only other speaker of each row's file; 0 where there is none, or more than one."""
    spoken_rows = np.flatnonzero(labels > 0)
    files = np.searchsorted(starts, spoken_rows, "right") - 1
    base = int(labels.max()) + 1
    speakers = unique_rows(files * base + labels[spoken_rows])
    count = np.bincount(speakers // base, minlength=len(starts))
    total = np.bincount(speakers // base, weights=speakers % base, minlength=len(starts)).astype(np.int64)
    here = np.searchsorted(starts, rows, "right") - 1
    other_rows: Ints = np.where(count[here] == 2, total[here] - labels[rows], 0)
    return other_rows


def unique_rows(rows: Ints) -> Ints:
    """Rows ascending, each once. `np.unique` does more around its sorting, and imports `numpy.ma` at its first use."""
    ordered_rows = np.sort(rows)
    kept_values = np.empty(len(ordered_rows), bool)
    kept_values[:1] = True
    np.not_equal(ordered_rows[1:], ordered_rows[:-1], out=kept_values[1:])
    return ordered_rows[kept_values]


Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

# Caps keep neighbour evidence to short lines that belong together; long prose stands alone.
# Source: LoCoMo and XQuAD, our measurement. A reach of 5, 6, or 6 with 1,500 characters gave .893, .892 and .891 of
# LoCoMo's evidence in 1,024 tokens and .930, .928 and .928 in 2,048, where 4 gives .893 and .931.
PAIR_CHARS = 500
TRIPLE_CHARS = 1000
WINDOW_CHARS = 1300
WINDOW_REACH = 4


def folder_number(path: str) -> int:
    """Number of the folder that a file is known by, the same for all files of it; 0 for the workspace's own.

    An extra folder is one, and so is each folder within `memory/`: what lies in another tells nothing of how much a
    passage bears on a question.
    """
    parts = path.split("/")
    if path.startswith(EXTRA_MARK):
        return crc32(parts[0].encode("utf-8", "surrogatepass")) + 1
    return crc32(parts[1].encode("utf-8", "surrogatepass")) + 1 if len(parts) > 2 and parts[0] == "memory" else 0


def sizes_by_folder(folders: Ints, sizes: Ints) -> Mapping[int, int]:
    """Number of passages of each folder, from the folder and the number of passages of each file."""
    counted_defaultdict: dict[int, int] = defaultdict(int)
    for folder, size in zip(folders.tolist(), sizes.tolist(), strict=True):
        counted_defaultdict[folder] += size
    return dict(counted_defaultdict)


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusFile:
    """One file of a corpus: its passages as a table of integers, one row each, in `COLUMNS` order.

    Attributes:
        file: The store's number of the file; never used twice within a generation of the index.
        revision: The store's revision of the file that this shows.
    """

    path: str
    source: SourceKind
    table: Ints
    file: int = 0
    revision: int = 0


COLUMNS = ("key", "chars", "length", "day", "marks", "label", "greeted", "opens_section", "start_line", "end_line")


def _column(name: str) -> cached_property[Ints]:
    return cached_property(lambda corpus: corpus._columns[name])


@dataclass(frozen=True, kw_only=True)
class Corpus:
    """Columns over n passages, files in the order of their paths.

    Attributes:
        revision: The store's revision that this shows.
        label_names: Names that `labels` and `greeted` count in, by the store's number of the label.
        generation: Generation of the index that this shows.
        since: Only files written after this revision are in it.
    """

    revision: int
    files: tuple[CorpusFile, ...]
    label_names: dict[int, str]
    generation: str = ""
    since: int = 0

    keys = _column("key")  # the store's key of each passage: distinct, in no order
    chars = _column("chars")  # characters of each passage's text
    lengths = _column("length")  # terms of each passage
    days = _column("day")  # date of each passage as a proleptic ordinal; 0 for undated
    marks = _column("marks")  # see `Passage.marks`
    labels = _column("label")  # number of each passage's label; 0 for none
    greeted = _column("greeted")  # number of the name that each passage begins by greeting; 0 for none
    start_lines = _column("start_line")  # first line of each passage
    end_lines = _column("end_line")  # last line of each passage, inclusive

    @cached_property
    def _columns(self) -> dict[str, Ints]:
        tables = [file.table for file in self.files]
        whole = np.concatenate(tables).T.copy() if tables else np.empty((len(COLUMNS), 0), np.int64)
        return dict(zip(COLUMNS, whole, strict=True))

    @cached_property
    def totals(self) -> Ints:
        """Terms of all passages before each one, and of all; shape (n + 1,)."""
        return np.concatenate([[0], np.cumsum(self.lengths)])

    @cached_property
    def file(self) -> Ints:
        """Position of each passage's file in `files`."""
        return np.repeat(np.arange(len(self.files)), [len(file.table) for file in self.files])

    @cached_property
    def evergreen(self) -> Mask:
        """True for each passage of a file that does not age."""
        files: Mask = np.array([file.path in EVERGREEN for file in self.files], bool)
        return files[self.file]

    @cached_property
    def session_messages(self) -> Mask:
        """True for each message of a session."""
        files: Mask = np.array([file.source == "sessions" for file in self.files], bool)
        return files[self.file]

    @cached_property
    def folders(self) -> Ints:
        """Number of each passage's folder; see `folder_number`."""
        return self._folder_numbers[self.file]

    @cached_property
    def folder_sizes(self) -> Mapping[int, int]:
        """Number of passages of each folder, by its number."""
        return sizes_by_folder(self._folder_numbers, np.array([len(file.table) for file in self.files], np.int64))

    @cached_property
    def _folder_numbers(self) -> Ints:
        return np.array([folder_number(file.path) for file in self.files], np.int64)

    @cached_property
    def files_of(self) -> Ints:
        """The store's number of each passage's file."""
        return np.array([file.file for file in self.files], np.int64)[self.file]

    def __len__(self) -> int:
        """Number of passages."""
        return len(self.keys)

    @cached_property
    def speakers(self) -> dict[int, str]:
        """Names of the labels that occur, by number."""
        return {int(label): self.label_names[int(label)] for label in np.flatnonzero(np.bincount(self.labels)) if label}

    @cached_property
    def greetings(self) -> Greetings:
        """Greetings of one speaker by another."""
        starts = np.cumsum([0, *(len(file.table) for file in self.files)])
        return find_greetings(starts, self.labels, self.greeted)

    @cached_property
    def row_of(self) -> tuple[Ints, Ints]:
        """Sorted keys and the row of each, for `rows`."""
        order = np.argsort(self.keys)
        return self.keys[order], order

    def rows(self, keys: Ints) -> tuple[Ints, Mask]:
        """Rows of the known ones among some keys, and the mask of those keys."""
        rows, order = self.row_of
        if not len(rows):
            return np.empty(0, np.int64), np.zeros(len(keys), bool)
        at = np.minimum(np.searchsorted(rows, keys), len(rows) - 1)
        mask: Mask = rows[at] == keys
        return order[at[mask]], mask

    @cached_property
    def section_starts(self) -> Ints:
        """First row of each section: a stretch of a file below one heading."""
        if not len(self):
            return np.empty(0, np.int64)
        return np.flatnonzero(np.r_[True, (self.file[1:] != self.file[:-1]) | (self._columns["opens_section"][1:] > 0)])

    @cached_property
    def bounds(self) -> tuple[Ints, Ints]:
        """First and last row of each passage's section; beyond them neighbours are about something else."""
        starts = self.section_starts
        ends = np.r_[starts[1:], len(self)] - 1 if len(self) else starts
        sizes = ends - starts + 1
        return np.repeat(starts, sizes), np.repeat(ends, sizes)

    @cached_property
    def units(self) -> tuple[Ints, Ints]:
        """Row range of each passage alone."""
        rows = np.arange(len(self))
        return rows, rows

    @cached_property
    def pairs(self) -> tuple[Ints, Ints]:
        """Row range of each passage with the one before it, where both are short."""
        first, _ = self.bounds
        rows = np.arange(len(self))
        before = np.maximum(rows - 1, first)
        joined_rows = self.chars + np.where(before < rows, self.chars[before], 0) <= PAIR_CHARS
        return np.where(joined_rows, before, rows), rows

    @cached_property
    def triples(self) -> tuple[Ints, Ints]:
        """Row range of each passage with its two neighbours, as far as they are short."""
        first, last = self.bounds
        rows = np.arange(len(self))
        before, after = np.maximum(rows - 1, first), np.minimum(rows + 1, last)
        size = self.chars + np.where(before < rows, self.chars[before], 0)
        low = np.where(size <= TRIPLE_CHARS, before, rows)
        size = np.where(low < rows, size, self.chars) + np.where(after > rows, self.chars[after], 0)
        return low, np.where(size <= TRIPLE_CHARS, after, rows)

    @cached_property
    def windows(self) -> tuple[Ints, Ints]:
        """Row range of each passage with up to four on either side, half of the characters each side."""
        first, last = self.bounds
        rows = np.arange(len(self))
        total = np.r_[0, np.cumsum(self.chars)]
        room = WINDOW_CHARS // 2
        # The farthest start whose text up to the passage fits into half the room, and the same ahead.
        low = np.searchsorted(total, total[rows] - room, side="left")
        high = np.searchsorted(total, total[rows + 1] + room, side="right") - 2
        low = np.clip(low, np.maximum(first, rows - WINDOW_REACH), rows)
        high = np.clip(high, rows, np.minimum(last, rows + WINDOW_REACH))
        return low, high
