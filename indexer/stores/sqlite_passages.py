"""Selection of stored passages from an index file: by key, file or thing, or those without a vector."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from indexer.stores.base import OfFile, OfRanges, OfSharedThings, OfThings, StoredPassage, Unembedded, Which
from indexer.stores.row_values import passage_of
from indexer.stores.sqlite_rows import PASSAGE_COLUMNS
from indexer.types import AUTHORITY, CUE_BITS, ROLE_BITS, ROLES

if TYPE_CHECKING:
    from indexer.stores.sqlite_database import Database, Row

_BATCH = 500
# The first of the roles that have the lowest authority.
_LOWEST = next(number for number, role in enumerate(ROLES) if AUTHORITY[role] == min(AUTHORITY.values()))
_ROLE_MASK = (1 << ROLE_BITS) - 1
_STORED = f"p.key, f.path, f.source, p.ordinal, p.text_hash, {PASSAGE_COLUMNS}"
_IN_FILES = f"SELECT {_STORED} FROM files f JOIN passages p USING (file) LEFT JOIN labels l USING (label)"
_NO_KEY = (1 << 63) - 1
_AMONG_PATHS = """ AND EXISTS (SELECT 1 FROM files f, json_each(?) j WHERE f.file = passages.file
    AND (f.path = j.value OR substr(f.path, 1, length(j.value) + 1) = j.value || '/'))"""


def select_passages(database: Database, value: Which) -> dict[int, StoredPassage]:
    """Passages by key; see `IndexStore.passages`.

    Args:
        database: An index with tables.
        value: Which of them.
    """
    match value:
        case OfFile():
            rows: Iterable[Row] = _of_file(database, value)
        case OfRanges():
            rows = _of_ranges(database, value)
        case Unembedded():
            rows = _unembedded_rows(database, value)
        case OfThings():
            rows = _of_things(database, value)
        case OfSharedThings():
            rows = _of_shared_things(database, value)
        case _:
            rows = _by_keys(database, value)
    return {
        key: StoredPassage(key, path, source, ordinal, passage_of(rest), text_hash)
        for key, path, source, ordinal, text_hash, *rest in rows
    }


def _by_keys(database: Database, keys: Sequence[int]) -> Iterator[Row]:
    for start in range(0, len(keys), _BATCH):
        part = [int(key) for key in keys[start : start + _BATCH]]
        yield from database.rows(
            f"""SELECT {_STORED} FROM passages p JOIN files f USING (file) LEFT JOIN labels l USING (label)
                WHERE p.key IN ({",".join("?" * len(part))})""",
            part,
        )


def _of_file(database: Database, file: OfFile) -> list[Row]:
    text = "AND p.ordinal >= ?2 ORDER BY p.ordinal" if file.first >= 0 else "ORDER BY p.ordinal DESC LIMIT -?2"
    return database.rows(f"{_IN_FILES} WHERE f.path = ?1 {text}", (file.path, file.first))


def _of_ranges(database: Database, value: OfRanges) -> Iterator[Row]:
    for path, first, before in value.ranges:
        yield from database.rows(
            f"{_IN_FILES} WHERE f.path = ? AND p.ordinal >= ? AND p.ordinal < ? ORDER BY p.ordinal",
            (path, first, before),
        )


def _unembedded_rows(database: Database, query: Unembedded) -> list[Row]:
    paths, below = query.paths, query.below
    among, bound_value = (
        ("", ()) if paths is None else (_AMONG_PATHS, (json.dumps([path.rstrip("/") for path in paths]),))
    )
    # By that index, which is empty as a rule; by their keys, all passages would be looked at for a few.
    return database.rows(
        f"""SELECT {_STORED} FROM (
                SELECT key FROM passages INDEXED BY passages_unembedded
                WHERE NOT embedded AND key < ?{among} ORDER BY key DESC LIMIT ?) w
            CROSS JOIN passages p ON p.key = w.key JOIN files f USING (file) LEFT JOIN labels l USING (label)
            ORDER BY p.key DESC""",
        (_NO_KEY if below is None else below, *bound_value, query.limit),
    )


def _of_things(database: Database, things: OfThings) -> Iterator[Row]:
    rows = database.rows(
        """SELECT j.value FROM json_each(?1) j LEFT JOIN json_each(?3) b USING (key) WHERE
           (SELECT count(*) FROM (SELECT 1 FROM facts WHERE thing = j.value LIMIT ?2)) = ?2
           AND (coalesce(b.value, 0) = 0 OR EXISTS (SELECT 1 FROM facts WHERE thing = b.value))""",
        (json.dumps(things.things), things.least, json.dumps(things.besides)),
    )
    for (thing,) in rows:
        for dated_kind in ("p.written > 0", "p.written = 0"):
            yield from database.rows(
                f"""SELECT {_STORED} FROM facts x JOIN passages p USING (key) JOIN files f USING (file)
                    LEFT JOIN labels l USING (label) WHERE x.thing = ? AND {dated_kind}
                    ORDER BY min(p.marks >> {CUE_BITS} & {_ROLE_MASK}, {_LOWEST}), p.written >> 1 DESC,
                    p.ordinal DESC LIMIT ?""",
                (thing, things.limit),
            )


def _of_shared_things(database: Database, value: OfSharedThings) -> list[Row]:
    joined = "JOIN passages USING (key) JOIN files USING (file) WHERE source IN (SELECT value FROM json_each(?))"
    return database.rows(
        f"""SELECT {_STORED} FROM (
                SELECT DISTINCT key FROM facts {joined if value.sources else "WHERE true"} AND thing IN (
                    SELECT thing FROM facts GROUP BY thing HAVING count(*) > 1)
                ORDER BY key DESC LIMIT ?)
            JOIN passages p USING (key) JOIN files f USING (file) LEFT JOIN labels l USING (label)
            ORDER BY p.key DESC""",
        (*((json.dumps(value.sources),) if value.sources else ()), value.limit),
    )
