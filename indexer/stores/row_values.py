"""Passages, files of a corpus and fingerprints as the rows that stores keep, and back."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from indexer.corpus import CorpusFile, Floats, Ints
from indexer.stores.base import TermPosting
from indexer.types import CUE_BITS, ROLE_BITS, ROLES, Cue, Fingerprint, Passage, SourceKind, Vectors

_COLUMNS_SIGN = "\x1f"


def titles_of(passage: Passage) -> str:
    """A passage's titles as they are stored; behind them the columns of its table, with a sign that no text has."""
    titles = (*passage.heading, _COLUMNS_SIGN + passage.columns) if passage.columns else passage.heading
    return _titles(titles) if titles else ""


@lru_cache(maxsize=4096)
def _titles(heading: tuple[str, ...]) -> str:
    return json.dumps(heading, ensure_ascii=False)


# Flags and roles are looked up: to make a flag costs a tenth of what a row does.
_MARKS = {
    flags | (number | is_noted << ROLE_BITS) << CUE_BITS: (Cue(flags), role, is_noted)
    for number, role in enumerate(ROLES)
    for is_noted in (False, True)
    for flags in range(1 << CUE_BITS)
}
_FIRST_MOMENT = dt.datetime.min
_MILLISECOND = dt.timedelta(milliseconds=1)


def written_number(passage: Passage) -> int:
    """The moment of a passage as it is stored: milliseconds of the calendar, twice, and one more in UTC; 0 for none."""
    if passage.written is None:
        return 0
    elapsed_count = (passage.written.replace(tzinfo=None) - _FIRST_MOMENT) // _MILLISECOND
    return 2 * elapsed_count + (passage.written.tzinfo is not None)


@lru_cache(maxsize=4096)
def _moment_of(number: int) -> dt.datetime | None:
    if not number:
        return None
    moment = _FIRST_MOMENT + (number >> 1) * _MILLISECOND
    return moment.replace(tzinfo=dt.UTC) if number & 1 else moment


def tags_text(passage: Passage) -> str:
    """A passage's tags as they are stored: each between spaces, so that it is found by them."""
    return f" {' '.join(passage.tags)} " if passage.tags else ""


@lru_cache(maxsize=4096)
def _heading(titles: str) -> tuple[tuple[str, ...], str]:
    """The titles that were stored, and the columns."""
    # Passages of one section share it, and reading JSON is a third of what a row costs.
    heading = tuple(json.loads(titles)) if titles else ()
    if heading and heading[-1].startswith(_COLUMNS_SIGN):
        return heading[:-1], heading[-1][1:]
    return heading, ""


def passage_of(row: Sequence[Any]) -> Passage:
    """The passage in a row: its lines, text, titles, opening, day, moment, label, marks and tags."""
    start_line, end_line, text, heading, opens_section, day, written_value, label, marks, tags = row
    cues, role, is_noted = _MARKS[marks]
    above, columns = _heading(heading)
    return Passage(
        start_line=start_line,
        end_line=end_line,
        text=text,
        heading=above,
        opens_section=bool(opens_section),
        date=dt.date.fromordinal(day) if day else None,
        label=label or None,
        cues=cues,
        role=role,
        noted=is_noted,
        written=_moment_of(written_value),
        tags=tuple(tags.split()) if tags else (),
        columns=columns,
    )


def corpus_files(
    files: Sequence[tuple[int, str, SourceKind]], table: Ints, rows: Mapping[int, Ints], revisions: Mapping[int, int]
) -> list[CorpusFile]:
    """Files that have passages, those of `rows` tables among them.

    Args:
        files: Number, path and source of each.
        table: Rows of (file, *COLUMNS) by ascending file.
        rows: Tables of files that have no rows there, by number.
        revisions: Revision of each file, by number.
    """
    numbers = np.array([file for file, _, _ in files], np.int64)
    low = np.searchsorted(table[:, 0], numbers).tolist()
    high = np.searchsorted(table[:, 0], numbers, side="right").tolist()
    return [
        CorpusFile(
            path=path, source=source, table=rows.get(file, table[first:end, 1:]), file=file, revision=revisions[file]
        )
        for (file, path, source), first, end in zip(files, low, high, strict=True)
        if end > first or file in rows
    ]


@lru_cache(maxsize=64)
def fingerprint_of(stored_text: str) -> Fingerprint:
    """The fingerprint that was stored as a text."""
    return Fingerprint(**json.loads(stored_text))


def fingerprint_json(fingerprint: Fingerprint) -> str:
    """A fingerprint as it is stored."""
    return json.dumps({name: getattr(fingerprint, name) for name in ("model", "dimensions", "rules", "schema")})


def tag_posting(keys: Sequence[int] | Ints) -> TermPosting:
    """The passages that have some tags as those of one term."""
    return TermPosting(term="", keys=np.array(keys, np.int64), counts=np.ones(len(keys), np.int64))


def keys_of(rows: Sequence[tuple[bytes | None]]) -> Ints:
    """Keys that a server has put together, big-endian, in the only column of the only row."""
    return np.frombuffer((rows[0][0] if rows else None) or b"", ">i8").astype(np.int64)


# So many of the nearest are measured anew, which costs 10 µs each where SQLite looks their vectors up: 400 of them 4 ms
# beside a scan of 34 ms at 30,000 passages (our measurement).
_MEASURED = 512
# So many more than are wanted are looked at: two ways to sum a distance in 32 bits differ by up to 3e-6, so one of them
# may come before the last.
SPARE_NEIGHBOURS = 16


def measure_nearest(
    keys: Ints, cosines: Floats, vector: Vectors, read_vectors: Callable[[Ints], tuple[Ints, Vectors]]
) -> tuple[Ints, Floats]:
    """The nearest neighbours with the cosines and in the order that every store gives; equal ones by their keys.

    Args:
        keys: Their keys, nearest first.
        cosines: Their cosines, as the store measured them, which stay those of all but the nearest few hundred.
        vector: The vector whose neighbours they are.
        read_vectors: Gives stored vectors by their keys, in any order.
    """
    if not len(keys):
        return keys, cosines
    found_keys, vectors = read_vectors(keys[:_MEASURED])
    measured_cosines = _exact_cosines(vectors, vector)
    order = np.lexsort((found_keys, -measured_cosines))
    return np.r_[found_keys[order], keys[_MEASURED:]], np.r_[measured_cosines[order], cosines[_MEASURED:]]


def _exact_cosines(vectors: Vectors, vector: Vectors) -> Floats:
    """Cosines of some vectors with one, each by the same steps whatever stands beside it."""
    rows, wanted = vectors.astype(np.float64), vector.astype(np.float64)
    lengths = np.sqrt((rows * rows).sum(axis=1) * (wanted * wanted).sum())
    cosines: Floats = (rows * wanted).sum(axis=1) / np.maximum(lengths, 1e-12)
    return cosines
