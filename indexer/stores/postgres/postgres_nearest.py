"""Exact nearest neighbours in an index in PostgreSQL, from its stored vectors; the process measures them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Any, Final, LiteralString

import numpy as np

from indexer.corpus import Floats, Ints
from indexer.stores.base import NEAREST_LIMIT
from indexer.stores.postgres.postgres_heads import PostgresHeads, bytes_of, text_of
from indexer.stores.postgres.postgres_passages import tags_condition
from indexer.stores.row_values import keys_of
from indexer.types import SearchFilter, Vectors

_VECTORS = 2_048
_EVERY: Final[LiteralString] = """SELECT v.key, v.vector FROM index_vectors v
    WHERE v.ws = %(ws)s AND v.gen = %(gen)s AND v.key > %(last)s ORDER BY v.key LIMIT %(count)s"""


def nearest_vectors(heads: PostgresHeads, vector: Vectors, limit: int, filter: SearchFilter) -> tuple[Ints, Floats]:
    """See `IndexStore.nearest`."""
    limit = min(limit, NEAREST_LIMIT)
    best_keys, best_cosines = np.empty(0, np.int64), np.empty(0)
    with heads.reading():
        mask_keys = None if filter == SearchFilter() else _allowed_keys(heads, filter)
        for keys, vectors in stored_vectors(heads):
            mask = slice(None) if mask_keys is None else np.isin(keys, mask_keys)
            cosines = _cosines(vectors[mask], vector)
            best_keys, best_cosines = np.r_[best_keys, keys[mask]], np.r_[best_cosines, cosines]
            order = np.lexsort((best_keys, -best_cosines))[:limit]
            best_keys, best_cosines = best_keys[order], best_cosines[order]
    return best_keys, best_cosines


def _cosines(vectors: Vectors, query: Vectors) -> Floats:
    """Cosine of each vector with another one."""
    lengths = np.sqrt(np.vecdot(vectors, vectors) * np.vecdot(query, query))
    cosines: Floats = (np.vecdot(vectors, query) / np.maximum(lengths, 1e-12)).astype(np.float64)
    return cosines


def stored_vectors(heads: PostgresHeads, *, count: int = _VECTORS) -> Iterator[tuple[Ints, Vectors]]:
    """Every stored vector: keys of shape (m,), ascending, float32 of shape (m, dimensions); within a read."""
    last = -1
    while True:
        rows = heads.rows(_EVERY, last=last, count=count)
        if rows:
            last = rows[-1][0]
            yield vectors_of(rows)
        if len(rows) < count:
            return


def vectors_of(rows: Any) -> tuple[Ints, Vectors]:
    """Keys and vectors of rows that have both."""
    flat = np.frombuffer(b"".join([row[1] for row in rows]), "<f4").astype(np.float32, copy=False)
    return np.array([row[0] for row in rows], np.int64), flat.reshape(len(rows), -1) if rows else flat.reshape(0, 0)


def _allowed_keys(heads: PostgresHeads, filter: SearchFilter) -> Ints:
    """Keys of the passages that a filter lets through."""
    conditions, values = list[LiteralString](["p.ws = %(ws)s AND p.gen = %(gen)s"]), dict[str, Any]()
    if filter.sources or filter.path_prefix:
        files = heads.rows("SELECT file, source, path FROM index_files WHERE ws = %(ws)s AND gen = %(gen)s")
        conditions.append("p.file = ANY(%(files)s::bigint[])")
        values["files"] = [file for file, source, path in files if filter.reaches(source, text_of(path))]
    if filter.since or filter.until:
        conditions.append("p.day BETWEEN %(since)s AND %(until)s")
        values["since"] = filter.since.toordinal() if filter.since else 1
        values["until"] = (filter.until or dt.date.max).toordinal()
    if filter.tags:
        condition, tag_values = tags_condition(filter.tags)
        conditions.append(condition)
        values |= tag_values
    for number, lines in enumerate(filter.without):
        conditions.append(
            f"""NOT (p.start_line >= %(start{number})s AND p.end_line <= %(end{number})s AND p.file IN (
                SELECT file FROM index_files WHERE ws = %(ws)s AND gen = %(gen)s AND path = %(path{number})s))"""
        )
        values |= {
            f"path{number}": bytes_of(lines.path),
            f"start{number}": lines.start_line,
            f"end{number}": lines.end_line,
        }
    rows = heads.rows(
        f"SELECT string_agg(int8send(p.key), '') FROM index_passages p WHERE {' AND '.join(conditions)}", **values
    )
    return keys_of(rows)
