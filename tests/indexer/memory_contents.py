"""The contents of an index in memory, file by file, and the draft that a write makes of them.

Invariants: contents are never changed; what is derived of a file (columns, postings, vectors) is made when it is first
asked for, and stays until that file changes.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import zip_longest

import numpy as np

from indexer.corpus import COLUMNS, CorpusFile, Floats, Ints, Mask
from indexer.errors import StoreError
from indexer.stores.base import FileState, FileWrite, NewPassage, OfThings, StoredPassage, Unembedded
from indexer.types import Fingerprint, Passage, SearchFilter, Vectors, has_tags


@dataclass(frozen=True, slots=True, kw_only=True)
class PassageRow:
    """One passage with what it is found by; names are numbers, 0 for none."""

    stored: StoredPassage
    terms: Mapping[str, int]
    label: int
    greeted: int
    vector: bytes | None
    things: tuple[int, ...] = ()

    def has(self, tags: Sequence[str]) -> bool:
        """True if the passage has all of some tags."""
        return has_tags(self.stored.passage.tags, tags)

    def columns(self) -> tuple[int, ...]:
        """The passage in the order of `COLUMNS`."""
        p = self.stored.passage
        return (
            self.stored.key, len(p.text), sum(self.terms.values()), p.date.toordinal() if p.date else 0, p.marks,
            self.label, self.greeted, p.opens_section, p.start_line, p.end_line,
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class FileRows:
    """One file: its number, its state, its passages by key in reading order."""

    number: int
    state: FileState
    rows: Mapping[int, PassageRow] = field(default_factory=dict)

    @cached_property
    def columns(self) -> CorpusFile:
        """The passages as a corpus holds them."""
        table = np.array([row.columns() for row in self.rows.values()], np.int64).reshape(-1, len(COLUMNS))
        return CorpusFile(path=self.state.path, source=self.state.source, table=table, file=self.number)

    @cached_property
    def tagged_rows(self) -> tuple[PassageRow, ...]:
        """The passages that have a tag."""
        return tuple(row for row in self.rows.values() if row.stored.passage.tags)

    @cached_property
    def postings(self) -> Mapping[str, list[tuple[int, int]]]:
        """Key and count of each passage that a term occurs in, by term."""
        found = defaultdict[str, list[tuple[int, int]]](list)
        for key, row in self.rows.items():
            for term, times in row.terms.items():
                found[term].append((key, times))
        return found

    @cached_property
    def embedded_vectors(self) -> tuple[Mask, Vectors]:
        """Passages that have a vector, and those vectors."""
        vectors = [row.vector for row in self.rows.values()]
        flat = np.frombuffer(b"".join(filter(None, vectors)), "<f4")
        mask = np.array([vector is not None for vector in vectors], bool)
        return mask, flat.reshape(int(mask.sum()), -1) if len(flat) else flat.reshape(0, 0)

    @cached_property
    def unembedded_keys(self) -> tuple[int, ...]:
        """Keys of the passages that lack a vector."""
        return tuple(key for key, row in self.rows.items() if row.vector is None)

    @cached_property
    def vectors_by_text(self) -> Mapping[bytes, bytes]:
        """Vectors by the hash of their text."""
        return {row.stored.text_hash: row.vector for row in self.rows.values() if row.vector is not None}

    @cached_property
    def keys_by_thing(self) -> Mapping[int, list[int]]:
        """Keys of the passages that state a thing, by its number."""
        found = defaultdict[int, list[int]](list)
        for key, row in self.rows.items():
            for thing in row.things:
                found[thing].append(key)
        return found

    @cached_property
    def names(self) -> frozenset[int]:
        """Numbers of those who speak or are greeted."""
        return frozenset(name for row in self.rows.values() for name in (row.label, row.greeted) if name)

    @cached_property
    def size_bytes(self) -> int:
        """Room that texts and vectors take."""
        texts = (len(row.stored.passage.text.encode("utf-8", "surrogatepass")) for row in self.rows.values())
        return sum(texts) + self.embedded_vectors[1].nbytes

    def is_among(self, filter: SearchFilter) -> bool:
        """True if a filter lets passages of this file pass."""
        return bool(self.rows) and filter.reaches(self.state.source, self.state.path)

    def near(self, vector: Vectors, filter: SearchFilter) -> tuple[Ints, Floats]:
        """Keys of the passages that a filter lets pass, and their cosines."""
        mask, vectors = self.embedded_vectors
        table = self.columns.table[mask]
        allowed = self._allowed_rows(dict(zip(COLUMNS, table.T, strict=True)), filter)
        vectors, vector = vectors[allowed].astype(np.float64), vector.astype(np.float64)
        lengths = np.linalg.norm(vectors, axis=1) * np.linalg.norm(vector)
        return table[allowed, 0], np.vecdot(vectors, vector) / np.maximum(lengths, 1e-12)

    def _allowed_rows(self, columns: Mapping[str, Ints], filter: SearchFilter) -> Mask:
        days, first, last = columns["day"], columns["start_line"], columns["end_line"]
        allowed = np.ones(len(days), bool)
        if filter.since or filter.until:
            since = filter.since.toordinal() if filter.since else 1
            allowed &= (days >= since) & (days <= (filter.until or dt.date.max).toordinal())
        if filter.tags:
            allowed &= np.isin(columns["key"], [row.stored.key for row in self.tagged_rows if row.has(filter.tags)])
        for lines in filter.without:
            if lines.path == self.state.path:
                allowed &= ~((first >= lines.start_line) & (last <= lines.end_line))
        return allowed


@dataclass(frozen=True, kw_only=True)
class Contents:
    """All that an index holds at one moment.

    Attributes:
        files: By path.
        paths: Path of each passage's file, by key.
        gone: Revision at which a file was forgotten, by its number.
        labels: Number of each name.
    """

    revision: int = 0
    generation: str = ""
    fingerprint: Fingerprint | None = None
    files: Mapping[str, FileRows] = field(default_factory=dict)
    paths: Mapping[int, str] = field(default_factory=dict)
    gone: Mapping[int, int] = field(default_factory=dict)
    labels: Mapping[str, int] = field(default_factory=dict)
    updated_at: dt.datetime | None = None

    def changed_files(self, since: int) -> Iterator[tuple[str, FileRows]]:
        """Files that were written after a revision, by path."""
        return ((path, file) for path, file in self.files.items() if file.state.revision > since)

    def unembedded_keys(self, which: Unembedded) -> list[int]:
        """Keys of passages that lack a vector, the newest first."""
        folders = None if which.paths is None else [path.rstrip("/") for path in which.paths]
        keys = (
            key
            for path, file in self.files.items()
            if file.unembedded_keys
            and (folders is None or any(path == each or path.startswith(f"{each}/") for each in folders))
            for key in file.unembedded_keys
            if which.below is None or key < which.below
        )
        return sorted(keys, reverse=True)[: which.limit]

    def stating(self, which: OfThings) -> list[int]:
        """Keys of passages that state facts of things."""
        keys = list[int]()
        for thing, other in zip_longest(which.things, which.besides, fillvalue=0):
            among, beside = self._keys_by_thing(thing), self._keys_by_thing(other)
            if len(among) >= which.least and (beside or not other):
                keys += self._newest(among, which.limit)
        return keys

    def _keys_by_thing(self, thing: int) -> list[int]:
        return [key for file in self.files.values() for key in file.keys_by_thing.get(thing, ())]

    def sharing(self, limit: int, sources: Collection[str]) -> list[int]:
        """Keys of passages of some kinds of source that state what another one states, too."""
        keys = dict[int, set[int]]()
        for file in self.files.values():
            for thing, stating in file.keys_by_thing.items():
                keys.setdefault(thing, set()).update(stating)
        shared = sorted({key for among in keys.values() if len(among) > 1 for key in among}, reverse=True)
        return [key for key in shared if not sources or ((row := self.row(key)) and row.stored.source in sources)][
            :limit
        ]

    def _newest(self, keys: Sequence[int], limit: int) -> list[int]:
        stored = [row.stored for key in keys if (row := self.row(key))]
        dated = sorted((each for each in stored if each.passage.written), key=_newness)
        undated = sorted((each for each in stored if not each.passage.written), key=_newness)
        most = len(keys) if limit < 0 else limit
        return [each.key for part in (dated, undated) for each in part[::-1][:most]]

    def row(self, key: int) -> PassageRow | None:
        """The passage of a key."""
        path = self.paths.get(key)
        return self.files[path].rows[key] if path is not None else None


def _newness(stored: StoredPassage) -> tuple[int, dt.datetime, int]:
    """Order of statements: of the highest authority last, and there the newest."""
    written = stored.passage.written or dt.datetime.min
    return stored.passage.authority, written.replace(tzinfo=None), stored.ordinal


class Draft:
    """The next contents of an index while they are written: copies of what changes, all else shared."""

    def __init__(self, now: Contents, numbers: Iterator[int], revision: int) -> None:
        if now.fingerprint is None:
            raise StoreError("The index was never begun. Call `begin`, or `Index.sync`, before it is written to.")
        self._now = now
        self._numbers = numbers
        self._vector_bytes = 4 * now.fingerprint.dimensions
        self._files, self._paths = dict(now.files), dict(now.paths)
        self._gone, self._labels = dict(now.gone), dict(now.labels)
        self.revision = revision

    def apply(self, write: FileWrite) -> bool:
        """Take a change in; False where the file has another revision than the one expected."""
        known = self._files.get(write.path)
        if write.expected_revision != (known.state.revision if known else 0):
            return False
        if write.state is None:
            if known is not None:
                self._forget(known)
            return True
        rows = dict(known.rows) if known else {}
        for key, _ in write.removed:
            if rows.pop(key, None) is not None:
                del self._paths[key]
        for key, ordinal, passage in write.moved:
            if key in rows:
                rows[key] = self._move(rows[key], ordinal, passage)
        for key, things in write.stated:
            if key in rows:
                rows[key] = replace(rows[key], things=things)
        for new in write.inserted:
            row = self._insert(write.state, new)
            rows[row.stored.key] = row
            self._paths[row.stored.key] = write.path
        self._put(write, known, rows)
        return True

    def _put(self, write: FileWrite, known: FileRows | None, rows: Mapping[int, PassageRow]) -> None:
        assert write.state is not None
        same = known is not None and not write.changes_passages
        self._files[write.path] = FileRows(
            number=known.number if known else next(self._numbers),
            state=write.state._replace(revision=known.state.revision if known and same else self.revision),
            rows=dict(sorted(rows.items(), key=lambda each: each[1].stored.ordinal)),
        )

    def _forget(self, known: FileRows) -> None:
        del self._files[known.state.path]
        self._gone[known.number] = self.revision
        for key in known.rows:
            del self._paths[key]

    def _move(self, row: PassageRow, ordinal: int, passage: Passage) -> PassageRow:
        stored = row.stored._replace(ordinal=ordinal, passage=passage)
        return replace(row, stored=stored, label=self._label(passage.label))

    def _insert(self, state: FileState, new: NewPassage) -> PassageRow:
        stored = StoredPassage(
            key=next(self._numbers),
            path=state.path,
            source=state.source,
            ordinal=new.ordinal,
            passage=new.passage,
            text_hash=new.text_hash,
        )
        return PassageRow(
            stored=stored,
            terms=Counter(new.terms),
            label=self._label(new.passage.label),
            greeted=self._label(new.greeted or None),
            vector=self._check_vector(new.vector) if new.vector is not None else None,
            things=new.things,
        )

    def _label(self, name: str | None) -> int:
        if name is None:
            return 0
        if name not in self._labels:
            self._labels[name] = next(self._numbers)
        return self._labels[name]

    def _check_vector(self, vector: bytes) -> bytes:
        if not vector or len(vector) != self._vector_bytes:
            raise StoreError(
                f"A vector of {len(vector):,} bytes does not fit the index, whose vectors have {self._vector_bytes:,}. "
                "Build it anew with `Index.sync(full=True)`."
            )
        return vector

    def fill(self, vectors: Sequence[tuple[int, bytes]]) -> None:
        """Give passages that lack one their vector, by key; keys that are gone are passed over."""
        found = defaultdict[str, dict[int, PassageRow]](dict)
        for key, vector in vectors:
            path = self._paths.get(key)
            if path is not None and self._files[path].rows[key].vector is None:
                found[path][key] = replace(self._files[path].rows[key], vector=self._check_vector(vector))
        for path, rows in found.items():
            file = self._files[path]
            state = file.state._replace(revision=self.revision)
            self._files[path] = replace(file, state=state, rows={**file.rows, **rows})

    def contents(self) -> Contents:
        """The contents as they are after the write."""
        names = frozenset[int]().union(*(file.names for file in self._files.values()))
        return replace(
            self._now,
            revision=self.revision,
            files=self._files,
            paths=self._paths,
            gone=self._gone,
            labels={name: number for name, number in self._labels.items() if number in names},
            updated_at=dt.datetime.now(dt.UTC),
        )
