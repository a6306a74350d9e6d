"""Exact nearest neighbours in an index in PostgreSQL, from its stored vectors; the process measures them."""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, Final, LiteralString, NamedTuple

import numpy as np

from indexer.corpus import Floats, Ints, Mask
from indexer.stores.base import NEAREST_LIMIT
from indexer.stores.postgres.postgres_heads import PostgresHeads, bytes_of, text_of
from indexer.stores.postgres.postgres_passages import read_tagged_keys
from indexer.stores.row_values import SPARE_NEIGHBOURS, keys_of, measure_nearest
from indexer.types import SearchFilter, SourceKind, Vectors

# Vectors that are read, and measured, at once.
_VECTORS, _SCAN_ROWS = 2_048, 8_192
# So many vectors, or this share of all, may be gone before all are read again.
_GONE, _GONE_SHARE = 4_096, 0.25
_NO_KEYS = np.empty(0, np.int64)
_OWN: Final[LiteralString] = "p.ws = %(ws)s AND p.gen = %(gen)s"
_PACKED_KEYS: Final[LiteralString] = "string_agg(int8send(p.key), '')"
_SELECT_KEYS: Final[LiteralString] = f"SELECT {_PACKED_KEYS} FROM index_passages p WHERE {_OWN}"
_SOME: Final[LiteralString] = """SELECT v.key, v.vector FROM index_vectors v
    WHERE v.ws = %(ws)s AND v.gen = %(gen)s AND v.key = ANY(%(keys)s::bigint[]) ORDER BY v.key"""
_EVERY: Final[LiteralString] = """SELECT v.key, v.vector FROM index_vectors v
    WHERE v.ws = %(ws)s AND v.gen = %(gen)s AND v.key > %(last)s ORDER BY v.key LIMIT %(count)s"""


class _Copy(NamedTuple):
    """Vectors of one state of an index: columns of shape (n,), and the rows of a file in the same order.

    Attributes:
        gone: Keys of passages that are no more.
        paths: Source and path of each file, by number.
    """

    generation: str = ""
    revision: int = 0
    last_key: int = 0
    keys: Ints = _NO_KEYS
    files: Ints = _NO_KEYS
    days: Ints = _NO_KEYS
    lengths: Vectors = np.empty(0, np.float32)
    vectors: Vectors = np.empty((0, 0), np.float32)
    gone: Ints = _NO_KEYS
    paths: Mapping[int, tuple[SourceKind, str]] = {}


class PostgresVectors:
    """Exact nearest neighbours in an index, from a copy of its vectors in a file that goes with the process.

    What is new is added at the end; memory holds 30 bytes a vector, and pages of the file as long as there is room.

    Args:
        heads: The index.
        scratch: Folder of the file.
    """

    def __init__(self, heads: PostgresHeads, scratch: Path) -> None:
        self._heads = heads
        self._scratch = scratch
        self._lock = threading.Lock()
        self._file: IO[bytes] | None = None
        self._copy = _Copy()

    def forget(self) -> None:
        """Give back the memory and the file."""
        with self._lock:
            self._reset()

    def nearest(self, vector: Vectors, limit: int, filter: SearchFilter) -> tuple[Ints, Floats]:
        """See `IndexStore.nearest`."""
        with self._heads.reading():
            with self._lock:
                copy = self._current()
            rows = np.flatnonzero(self._mask(copy, filter))
        cosines = np.empty(len(copy.keys))
        length = float(np.sqrt(np.vecdot(vector, vector)))
        for start in range(0, len(copy.keys), _SCAN_ROWS):
            part = slice(start, start + _SCAN_ROWS)
            products = np.vecdot(copy.vectors[part], vector)
            cosines[part] = products / np.maximum(copy.lengths[part] * length, 1e-12)
        most = min(limit + SPARE_NEIGHBOURS, NEAREST_LIMIT)
        best = rows[np.lexsort((copy.keys[rows], -cosines[rows]))[:most]]

        def read_vectors(near: Ints) -> tuple[Ints, Vectors]:
            places = best[np.isin(copy.keys[best], near)]
            return copy.keys[places], copy.vectors[places]

        keys, best_cosines = measure_nearest(copy.keys[best], cosines[best], vector, read_vectors)
        return keys[:limit], best_cosines[:limit]

    def _mask(self, copy: _Copy, filter: SearchFilter) -> Mask:
        """True for each vector that the read and a filter let through."""
        mask: Mask = copy.keys <= copy.last_key
        if len(copy.gone):
            mask &= ~np.isin(copy.keys, copy.gone)
        if filter.sources or filter.path_prefix:
            files = [file for file, (source, path) in copy.paths.items() if filter.reaches(source, path)]
            mask &= np.isin(copy.files, np.array(files, np.int64))
        if filter.since or filter.until:
            first = filter.since.toordinal() if filter.since else 1
            mask &= (copy.days >= first) & (copy.days <= (filter.until or dt.date.max).toordinal())
        if filter.tags:
            mask &= np.isin(copy.keys, read_tagged_keys(self._heads, filter.tags))
        for lines in filter.without:
            within = self._keys(
                f"""SELECT {_PACKED_KEYS} FROM index_files f JOIN index_passages p ON {_OWN} AND p.file = f.file
                    WHERE f.ws = %(ws)s AND f.gen = %(gen)s AND f.path = %(path)s
                    AND p.start_line >= %(first)s AND p.end_line <= %(last)s""",
                path=bytes_of(lines.path),
                first=lines.start_line,
                last=lines.end_line,
            )
            mask &= ~np.isin(copy.keys, within)
        return mask

    def _keys(self, query: LiteralString, **values: Any) -> Ints:
        return keys_of(self._heads.rows(query, **values))

    def _current(self) -> _Copy:
        """The vectors of the state that the read sees, and maybe some that are not of it any more."""
        now, copy = self._heads.row(), self._copy
        if now is None:
            return _Copy()
        if copy.generation != now.generation or len(copy.gone) > _GONE + _GONE_SHARE * len(copy.keys):
            self._reset()
            copy = self._add(_Copy(generation=now.generation), stored_vectors(self._heads))
            copy = copy._replace(paths=self._paths(None))
        elif copy.revision < now.revision:
            copy = self._update(copy)
        elif copy.revision > now.revision:
            standing = self._keys(f"{_SELECT_KEYS} AND p.key = ANY(%(keys)s::bigint[])", keys=copy.gone.tolist())
            return copy._replace(last_key=now.last_key, gone=np.setdiff1d(copy.gone, standing))
        else:
            return copy
        self._copy = copy = copy._replace(revision=now.revision, last_key=now.last_key)
        return copy

    def _update(self, copy: _Copy) -> _Copy:
        changes = self._heads.head(copy.revision)
        files = [*(file for file, _, _ in changes.files), *changes.gone]
        present = self._keys(
            f"""SELECT {_PACKED_KEYS} FROM index_passages p
                JOIN index_vectors v ON v.ws = %(ws)s AND v.gen = %(gen)s AND v.key = p.key
                WHERE {_OWN} AND p.file = ANY(%(files)s::bigint[])""",
            files=files,
        )
        known_keys = copy.keys[np.isin(copy.files, np.array(files, np.int64))]
        new = np.sort(np.setdiff1d(present, known_keys))
        if len(new):
            rows = self._heads.rows(_SOME, keys=new.tolist())
            copy = self._add(copy, [vectors_of(rows)])
        paths = {file: pair for file, pair in copy.paths.items() if file not in set(files)} | self._paths(files)
        return copy._replace(gone=np.union1d(copy.gone, np.setdiff1d(known_keys, present)), paths=paths)

    def _paths(self, files: Sequence[int] | None) -> dict[int, tuple[SourceKind, str]]:
        among: LiteralString = "" if files is None else "AND file = ANY(%(files)s::bigint[])"
        rows = self._heads.rows(
            f"SELECT file, source, path FROM index_files WHERE ws = %(ws)s AND gen = %(gen)s {among}", files=files
        )
        return {file: (source, text_of(path)) for file, source, path in rows}

    def _add(self, copy: _Copy, chunks: Iterable[tuple[Ints, Vectors]]) -> _Copy:
        """The same with more vectors."""
        keys, lengths, dimensions = [copy.keys], [copy.lengths], copy.vectors.shape[1]
        if self._file is None:
            self._scratch.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._file = TemporaryFile(dir=self._scratch)
        for added_keys, vectors in chunks:
            self._file.write(vectors.astype("<f4").tobytes())
            keys.append(added_keys)
            lengths.append(np.sqrt(np.vecdot(vectors, vectors)))
            dimensions = vectors.shape[1]
        self._file.flush()
        all_keys = np.concatenate(keys)
        if not len(all_keys):
            return copy
        new_keys = np.concatenate([_NO_KEYS, *keys[1:]])
        table = self._columns(new_keys)
        return copy._replace(
            keys=all_keys,
            files=np.r_[copy.files, table[:, 0]],
            days=np.r_[copy.days, table[:, 1]],
            lengths=np.concatenate(lengths),
            vectors=np.memmap(self._file, np.dtype("<f4"), "r", shape=(len(all_keys), dimensions)),
        )

    def _columns(self, keys: Ints) -> Ints:
        """File and day of some passages, ascending by key, shape (m, 2)."""
        rows = self._heads.rows(
            f"""SELECT string_agg(int8send(p.file) || int8send(p.day::bigint), '' ORDER BY p.key) FROM index_passages p
                WHERE {_OWN} AND p.key = ANY(%(keys)s::bigint[])""",
            keys=keys.tolist(),
        )
        return keys_of(rows).reshape(-1, 2)

    def _reset(self) -> None:
        # Whoever searches still has the file mapped.
        self._copy, file, self._file = _Copy(), self._file, None
        if file is not None:
            file.close()


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
