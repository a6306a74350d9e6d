"""Selection of stored passages from an index in PostgreSQL, and of the columns of a corpus."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, LiteralString

import numpy as np

from indexer.corpus import COLUMNS, Ints
from indexer.stores.base import OfFile, OfSharedThings, OfTags, OfThings, StoredPassage, Unembedded, Which
from indexer.stores.postgres.postgres_heads import PostgresHeads, bytes_of, text_of
from indexer.stores.row_values import passage_of
from indexer.types import AUTHORITY, CUE_BITS, ROLE_BITS, ROLES

# The first of the roles that have the lowest authority.
_LOWEST = next(number for number, role in enumerate(ROLES) if AUTHORITY[role] == min(AUTHORITY.values()))
_ROLE_MASK = (1 << ROLE_BITS) - 1
_STORED: Final[LiteralString] = (
    "p.key, f.path, f.source, p.ordinal, p.text_hash, p.start_line, p.end_line, p.text, p.heading, p.opens_section, "
    "p.day, p.written, l.name, p.marks, p.tags"
)
_FILE: Final[LiteralString] = "JOIN index_files f ON f.ws = %(ws)s AND f.gen = %(gen)s AND f.file = p.file"
_LABEL: Final[LiteralString] = "LEFT JOIN index_labels l ON l.ws = %(ws)s AND l.gen = %(gen)s AND l.label = p.label"
_OWN: Final[LiteralString] = "p.ws = %(ws)s AND p.gen = %(gen)s"
_BY_KEY: Final[LiteralString] = (
    f"SELECT {_STORED} FROM index_passages p {_FILE} {_LABEL} WHERE {_OWN} AND p.key = ANY(%(keys)s::bigint[])"
)
_OF_THINGS: Final[LiteralString] = f"""
    SELECT {_STORED} FROM unnest(%(things)s::bigint[]) WITH ORDINALITY t (thing, place)
    CROSS JOIN (VALUES (0), (1)) d (undated)
    CROSS JOIN LATERAL (
        SELECT p.*, least((p.marks >> %(cue_bits)s) & %(mask)s, %(lowest)s) AS role
        FROM index_facts x JOIN index_passages p ON {_OWN} AND p.key = x.key
        WHERE x.ws = %(ws)s AND x.gen = %(gen)s AND x.thing = t.thing AND (p.written = 0) = (d.undated = 1)
        ORDER BY role, p.written >> 1 DESC, p.ordinal DESC, p.key LIMIT %(limit)s) p
    {_FILE} {_LABEL}
    WHERE (SELECT count(*) FROM (
        SELECT FROM index_facts x WHERE x.ws = %(ws)s AND x.gen = %(gen)s AND x.thing = t.thing LIMIT %(least)s) c
    ) = %(least)s
    ORDER BY t.place, d.undated, p.role, p.written >> 1 DESC, p.ordinal DESC, p.key"""

_OF_SHARED_THINGS: Final[LiteralString] = f"""
    SELECT {_STORED} FROM (
        SELECT DISTINCT x.key FROM index_facts x WHERE x.ws = %(ws)s AND x.gen = %(gen)s AND x.thing IN (
            SELECT thing FROM index_facts WHERE ws = %(ws)s AND gen = %(gen)s GROUP BY thing HAVING count(*) > 1)
        ORDER BY x.key DESC LIMIT %(limit)s) k
    JOIN index_passages p ON {_OWN} AND p.key = k.key {_FILE} {_LABEL} ORDER BY p.key DESC"""


def read_passages(heads: PostgresHeads, value: Which) -> dict[int, StoredPassage]:
    """Passages by key; see `IndexStore.passages`."""
    match value:
        case OfFile():
            rows: Iterable[tuple[Any, ...]] = _of_file(heads, value)
        case Unembedded():
            rows = _unembedded_rows(heads, value)
        case OfThings():
            rows = heads.rows(
                _OF_THINGS,
                things=[*value.things],
                cue_bits=CUE_BITS,
                mask=_ROLE_MASK,
                lowest=_LOWEST,
                limit=None if value.limit < 0 else value.limit,
                least=value.least,
            )
        case OfSharedThings(limit=limit):
            rows = heads.rows(_OF_SHARED_THINGS, limit=limit)
        case OfTags(tags=tags):
            condition, tag_values = tags_condition(tags)
            rows = heads.rows(
                f"SELECT {_STORED} FROM index_passages p {_FILE} {_LABEL} WHERE {_OWN} AND {condition}", **tag_values
            )
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
        f"{query} AND p.ordinal >= %(first)s AND p.ordinal < %(before)s ORDER BY p.ordinal, p.key",
        path=bytes_of(value.path),
        first=value.first,
        before=(1 << 31) - 1 if value.before is None else value.before,
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


def tags_condition(tags: Iterable[str]) -> tuple[LiteralString, dict[str, bytes]]:
    """Conditions of passages `p` that have some tags, and their values."""
    conditions, values = list[LiteralString](["p.tags <> ''"]), dict[str, bytes]()
    for number, tag in enumerate(tags):
        conditions.append(
            f"(position(%(tag{number})s::bytea IN p.tags) > 0 OR position(%(above{number})s::bytea IN p.tags) > 0)"
        )
        values |= {f"tag{number}": bytes_of(f" {tag} "), f"above{number}": bytes_of(f" {tag}/")}
    return " AND ".join(conditions), values


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
