"""Selection of stored passages from an index in PostgreSQL, and of the columns of a corpus."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, LiteralString

import numpy as np

from indexer.corpus import COLUMNS, Ints
from indexer.language.facts import thing_number
from indexer.stores.base import OfFile, OfRanges, OfSharedThings, OfThings, StoredPassage, Unembedded, Which
from indexer.stores.postgres.postgres_heads import PostgresHeads, bytes_of, text_of
from indexer.stores.row_values import keys_of, passage_of

_STORED: Final[LiteralString] = (
    "p.key, f.path, f.source, p.ordinal, p.text_hash, p.start_line, p.end_line, p.text, p.heading, p.opens_section, "
    "p.day, p.written, l.name, p.marks, p.tags"
)
# By key, whatever the planner expects: for a few passages, a join would read all files of a workspace.
_FILE: Final[LiteralString] = """CROSS JOIN LATERAL (
    SELECT path, source FROM index_files WHERE ws = %(ws)s AND gen = %(gen)s AND file = p.file LIMIT 1) f"""
_LABEL: Final[LiteralString] = """LEFT JOIN LATERAL (
    SELECT name FROM index_labels WHERE ws = %(ws)s AND gen = %(gen)s AND label = p.label LIMIT 1) l ON p.label > 0"""
_OWN: Final[LiteralString] = "p.ws = %(ws)s AND p.gen = %(gen)s"
_BY_KEY: Final[LiteralString] = (
    f"SELECT {_STORED} FROM index_passages p {_FILE} {_LABEL} WHERE {_OWN} AND p.key = ANY(%(keys)s::bigint[])"
)
_OF_RANGES: Final[LiteralString] = f"""
    SELECT {_STORED} FROM
    unnest(%(paths)s::bytea[], %(firsts)s::int[], %(befores)s::int[]) WITH ORDINALITY t (path, first, before, place)
    JOIN index_files f ON f.ws = %(ws)s AND f.gen = %(gen)s AND f.path = t.path
    JOIN index_passages p ON {_OWN} AND p.file = f.file AND p.ordinal >= t.first AND p.ordinal < t.before {_LABEL}
    ORDER BY t.place, p.ordinal, p.key"""
_OF_THINGS: Final[LiteralString] = f"""
    SELECT {_STORED} FROM unnest(%(things)s::bigint[], %(besides)s::bigint[]) WITH ORDINALITY t (thing, beside, place)
    CROSS JOIN (VALUES (0), (1)) d (undated)
    CROSS JOIN LATERAL (
        SELECT x.key, row_number() OVER (ORDER BY x.role, x.written >> 1 DESC, x.ordinal DESC, x.key) AS rank
        FROM index_facts x
        WHERE x.ws = %(ws)s AND x.gen = %(gen)s AND x.thing = t.thing AND (x.written = 0) = (d.undated = 1)
        ORDER BY rank LIMIT %(limit)s) r
    JOIN index_passages p ON {_OWN} AND p.key = r.key {_FILE} {_LABEL}
    WHERE (SELECT count(*) FROM (
        SELECT FROM index_facts x WHERE x.ws = %(ws)s AND x.gen = %(gen)s AND x.thing = t.thing LIMIT %(least)s) c
    ) = %(least)s AND (coalesce(t.beside, 0) = 0 OR EXISTS (
        SELECT FROM index_facts x WHERE x.ws = %(ws)s AND x.gen = %(gen)s AND x.thing = t.beside))
    ORDER BY t.place, d.undated, r.rank"""

_OF_SHARED_THINGS: Final[LiteralString] = f"""
    SELECT {_STORED} FROM (
        SELECT DISTINCT x.key FROM index_facts x JOIN index_passages p ON {_OWN} AND p.key = x.key
        JOIN index_files f ON f.ws = %(ws)s AND f.gen = %(gen)s AND f.file = p.file
        WHERE x.ws = %(ws)s AND x.gen = %(gen)s AND (%(all)s OR f.source = ANY(%(sources)s::text[]))
        AND x.thing IN (
            SELECT thing FROM index_facts WHERE ws = %(ws)s AND gen = %(gen)s GROUP BY thing HAVING count(*) > 1)
        ORDER BY x.key DESC LIMIT %(limit)s) k
    JOIN index_passages p ON {_OWN} AND p.key = k.key {_FILE} {_LABEL} ORDER BY p.key DESC"""


def read_passages(heads: PostgresHeads, value: Which) -> dict[int, StoredPassage]:
    """Passages by key; see `IndexStore.passages`."""
    match value:
        case OfFile():
            rows: Iterable[tuple[Any, ...]] = _of_file(heads, value)
        case OfRanges():
            paths, firsts, befores = zip(*value.ranges, strict=True) if value.ranges else ((), (), ())
            rows = heads.rows(_OF_RANGES, paths=[*map(bytes_of, paths)], firsts=[*firsts], befores=[*befores])
        case Unembedded():
            rows = _unembedded_rows(heads, value)
        case OfThings():
            rows = heads.rows(
                _OF_THINGS,
                things=[*value.things],
                besides=[*value.besides],
                limit=None if value.limit < 0 else value.limit,
                least=value.least,
            )
        case OfSharedThings(limit=limit, sources=sources):
            rows = heads.rows(_OF_SHARED_THINGS, limit=limit, sources=list(sources), all=not sources)
        case _:
            rows = heads.rows(_BY_KEY, keys=[int(key) for key in value]) if len(value) else ()
    return {row[0]: _stored_passage(row) for row in rows}


def _stored_passage(row: tuple[Any, ...]) -> StoredPassage:
    key, path, source, ordinal, text_hash, start, end, text, heading, opens, day, written, label, marks, tags = row
    passage = passage_of(
        (
            start, end, text_of(text), text_of(heading), opens, day, written, text_of(label or b""), marks,
            text_of(tags),
        )
    )  # fmt: skip
    return StoredPassage(key, text_of(path), source, ordinal, passage, text_hash)


def _of_file(heads: PostgresHeads, value: OfFile) -> Sequence[tuple[Any, ...]]:
    query: LiteralString = f"""SELECT {_STORED} FROM index_files f
        JOIN index_passages p ON {_OWN} AND p.file = f.file {_LABEL}
        WHERE f.ws = %(ws)s AND f.gen = %(gen)s AND f.path = %(path)s"""
    if value.first < 0:
        return heads.rows(f"{query} ORDER BY p.ordinal DESC LIMIT 1", path=bytes_of(value.path))
    return heads.rows(
        f"{query} AND p.ordinal >= %(first)s ORDER BY p.ordinal, p.key", path=bytes_of(value.path), first=value.first
    )


def _unembedded_rows(heads: PostgresHeads, value: Unembedded) -> Sequence[tuple[Any, ...]]:
    among: LiteralString = ""
    if value.paths is not None:
        among = """AND EXISTS (SELECT FROM index_files f, unnest(%(paths)s::bytea[]) j (path)
            WHERE f.ws = %(ws)s AND f.gen = %(gen)s AND f.file = u.file
            AND (f.path = j.path OR substring(f.path FROM 1 FOR length(j.path) + 1) = j.path || '/'::bytea))"""
    return heads.rows(
        f"""SELECT {_STORED} FROM (
                SELECT u.key FROM index_unembedded u
                WHERE u.ws = %(ws)s AND u.gen = %(gen)s AND u.key < %(below)s {among}
                ORDER BY u.key DESC LIMIT %(limit)s) w
            JOIN index_passages p ON {_OWN} AND p.key = w.key {_FILE} {_LABEL} ORDER BY p.key DESC""",
        below=(1 << 63) - 1 if value.below is None else value.below,
        limit=value.limit,
        paths=[bytes_of(path.rstrip("/")) for path in value.paths or ()],
    )


def read_tagged_keys(heads: PostgresHeads, tags: Sequence[str]) -> Ints:
    """Keys of the passages that have all of some tags."""
    # The rest among the keys of one: that none is stored twice is known.
    others: LiteralString = """AND NOT EXISTS (
        SELECT FROM unnest(%(others)s::bigint[]) o (tag) WHERE NOT EXISTS (
            SELECT FROM index_tags b WHERE b.ws = %(ws)s AND b.gen = %(gen)s AND b.tag = o.tag AND b.key = t.key))"""
    numbers = [thing_number(tag) for tag in dict.fromkeys(tags)]
    return keys_of(
        heads.rows(
            f"""SELECT string_agg(int8send(t.key), '') FROM index_tags t
                WHERE t.ws = %(ws)s AND t.gen = %(gen)s AND t.tag = %(tag)s {others if len(numbers) > 1 else ""}""",
            tag=numbers[0],
            others=numbers[1:],
        )
    )


def read_passage_table(heads: PostgresHeads, files: Sequence[int], first: int) -> Ints:
    """Passages of some files by their numbers, from a position on, int64 of shape (m, columns).

    Columns are the number of the file, then `COLUMNS`; rows stand by ascending file, and by their order in it. The
    server makes one value of them: as rows, most of the time would go into whole numbers of Python.
    """
    columns = ("file", *COLUMNS)
    if not files:
        return np.empty((0, len(columns)), np.int64)
    packed: LiteralString = " || ".join(
        "int8send(" + (f"p.{name}::int::bigint" if name == "opens_section" else f"p.{name}::bigint") + ")"
        for name in columns
    )
    ((raw,),) = heads.rows(
        f"""SELECT coalesce(string_agg({packed}, '' ORDER BY p.file, p.ordinal, p.key), '') FROM index_passages p
            WHERE {_OWN} AND p.file = ANY(%(files)s::bigint[]) AND p.ordinal >= %(first)s""",
        files=[*files],
        first=first,
    )
    return np.frombuffer(raw, ">i8").astype(np.int64).reshape(-1, len(columns))
