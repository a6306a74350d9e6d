"""Reading of all of an index file: every term with its passages, and every vector.

Invariants: both are read in chunks of bounded size, each from a query that is over when the chunk is handed out; the
caller holds one `Database.reading()` around them all, or the chunks may not fit together.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from indexer.corpus import Ints
from indexer.language.terms import term_hashes
from indexer.stores.base import TermEntries
from indexer.types import Vectors

if TYPE_CHECKING:
    from indexer.stores.sqlite_database import Database, Row

# Some 10 ms each: who reads them gives way to searches in between.
_ENTRIES = 65_536
_VECTORS = 2_048
# Terms of the first chunk, and the most of any.
_FIRST_TERMS, _MOST_TERMS = 256, 65_536


def term_entries(database: Database, *, entries: int = _ENTRIES) -> Iterator[TermEntries]:
    """Every term with its passages; each term in one chunk.

    Args:
        database: The index.
        entries: About how many occurrences to read at once; one term alone may have more.

    Source: .16 µs an occurrence, nearly all of it inside SQLite without the interpreter's lock; one row
    of `postings` for each takes .36 and counting them by `GROUP BY term, doc` .71 (our measurement).
    """
    lowest, highest = database.rows("SELECT min(key), max(key) FROM passages")[0]
    if lowest is None:
        return
    # Hexadecimal digits of one key: the shorter they are, the faster.
    digits = 8 if highest - lowest < 1 << 32 else 16
    begin, terms = "", _FIRST_TERMS
    while True:
        rows = database.rows(
            """SELECT term, unhex(group_concat(format(?, doc - ?), '')) FROM postings
               WHERE term >= ? GROUP BY term LIMIT ?""",
            (f"%0{digits}x", lowest, begin, terms),
        )
        if not rows:
            return
        yield _count_occurrences(rows, digits // 2, lowest)
        if len(rows) < terms:
            return
        # The next term after this one: terms hold nothing that sorts before a space.
        begin = rows[-1][0] + " "
        read = sum(len(row[1]) for row in rows) * 2 // digits
        terms = max(1, min(_MOST_TERMS, 4 * terms, terms * entries // read))


def vectors(database: Database, *, count: int = _VECTORS) -> Iterator[tuple[Ints, Vectors]]:
    """Every stored vector: keys of shape (m,), ascending, float32 of shape (m, dimensions).

    Args:
        database: The index.
        count: About how many to read at once.

    Source: 3.9 µs a vector, looked up in the order of the keys; a scan of `vectors` takes 5.4, the tables that
    sqlite-vec keeps them in 2.8, but their layout is nothing it promises (384 dimensions, our measurement).
    """
    if not database.value("SELECT 1 FROM sqlite_schema WHERE name = 'vectors'"):
        return
    last = -1
    while True:
        rows = database.rows(
            """SELECT p.key, v.embedding FROM passages p JOIN vectors v ON v.key = p.key
               WHERE p.key > ? AND p.embedded ORDER BY p.key LIMIT ?""",
            (last, count),
        )
        if not rows:
            return
        values = np.frombuffer(b"".join(row[1] for row in rows), "<f4").reshape(len(rows), -1)
        yield np.array([row[0] for row in rows], np.int64), values.astype(np.float32, copy=False)
        last = rows[-1][0]


def _count_occurrences(rows: list[Row], width: int, lowest: int) -> TermEntries:
    """Occurrences as entries: a passage that has a term several times stands there as often, one after another."""
    occurrences = np.frombuffer(b"".join(row[1] for row in rows), f">u{width}")
    ends = np.cumsum([len(row[1]) // width for row in rows])
    new = np.ones(len(occurrences), bool)
    new[1:] = occurrences[1:] != occurrences[:-1]
    new[ends[:-1]] = True
    places = np.flatnonzero(new)
    return TermEntries(
        terms=term_hashes([row[0] for row in rows]),
        sizes=np.diff(np.searchsorted(places, np.r_[0, ends])),
        passages=occurrences[places].astype(np.int64) + lowest,
        counts=np.diff(np.r_[places, len(occurrences)]),
    )
