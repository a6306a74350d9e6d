"""Writes of an index in PostgreSQL: a batch of changes of files, within a transaction that has locked the head.

Invariants: a key, a number of a file or of a label is given once; a passage goes into, and out of, every table
together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final, LiteralString, TypeAlias

from indexer.errors import StoreError
from indexer.language.facts import thing_number
from indexer.stores.base import FileState, FileWrite, NewPassage
from indexer.stores.postgres.postgres_database import Transaction
from indexer.stores.postgres.postgres_heads import HeadRow, bytes_of, text_of
from indexer.stores.row_values import tags_text, titles_of, written_number
from indexer.types import AUTHORITY, CUE_BITS, ROLE_BITS, ROLES, Passage

_OWN: Final[LiteralString] = "ws = %(ws)s AND gen = %(gen)s"
_FILE: Final[dict[LiteralString, LiteralString]] = {
    "file": "bigint", "revision": "bigint", "path": "bytea", "source": "text", "size_bytes": "bigint",
    "version": "bytea", "checked_ns": "bigint", "content_hash": "text", "failure": "text", "known_version": "bytea",
}  # fmt: skip
_PASSAGE: Final[dict[LiteralString, LiteralString]] = {
    "key": "bigint", "file": "bigint", "ordinal": "int", "start_line": "bigint", "end_line": "bigint", "text": "bytea",
    "heading": "bytea", "opens_section": "boolean", "day": "int", "written": "bigint", "label": "int", "marks": "int",
    "tags": "bytea", "greeted": "int", "chars": "int", "length": "int", "text_hash": "bytea", "terms": "bytea",
}  # fmt: skip
_MOVED: Final[dict[LiteralString, LiteralString]] = {
    "key": "bigint", "ordinal": "int", "start_line": "bigint", "end_line": "bigint", "heading": "bytea",
    "opens_section": "boolean", "marks": "int", "tags": "bytea", "label": "int", "written": "bigint",
}  # fmt: skip


# The place of a passage's role among those that orders statements of a thing, the lowest ones as one.
_ROLE: Final[LiteralString] = "least((p.marks >> %(cue_bits)s) & %(role_mask)s, %(lowest)s)"
_ROLE_VALUES: Final = {
    "cue_bits": CUE_BITS,
    "role_mask": (1 << ROLE_BITS) - 1,
    "lowest": next(n for n, role in enumerate(ROLES) if AUTHORITY[role] == min(AUTHORITY.values())),
}
# A key, and numbers of what the passage is found by.
_Numbers: TypeAlias = tuple[int, tuple[int, ...]]


@dataclass(slots=True)
class PostgresWrite:
    """A write at hand.

    Attributes:
        transaction: The transaction.
        row: The head as the write found it.
        revision: The revision that changed files are marked with.
    """

    transaction: Transaction
    row: HeadRow
    revision: int
    _key: int = field(init=False)
    _file: int = field(init=False)
    _label: int = field(init=False)

    def __post_init__(self) -> None:
        self._key, self._file, self._label = self.row.last_key, self.row.last_file, self.row.last_label

    def apply(self, writes: Sequence[FileWrite]) -> list[str]:
        """Carry out writes in the order that they count in; gives the paths of those that were refused."""
        refused_paths = list[str]()
        for batch in _distinct(writes):
            files = self._known_files([write.path for write in batch])
            current_writes = list[FileWrite]()
            for write in batch:
                if (files[write.path][1] if write.path in files else 0) == write.expected_revision:
                    current_writes.append(write)
                else:
                    refused_paths.append(write.path)
            if current_writes:
                self._apply(current_writes, {path: file for path, (file, _) in files.items()})
        return refused_paths

    def fill(self, vectors: Sequence[tuple[int, bytes]]) -> None:
        """Give passages that lack one their vector, by key."""
        self._check_vectors(vector for _, vector in vectors)
        self._run(
            f"""WITH lacking AS (
                    DELETE FROM index_unembedded WHERE {_OWN} AND key = ANY(%(keys)s::bigint[]) RETURNING key, file),
                filled AS (
                    INSERT INTO index_vectors (ws, gen, key, vector)
                    SELECT %(ws)s, %(gen)s, key, vector
                    FROM unnest(%(keys)s::bigint[], %(vectors)s::bytea[]) v (key, vector) JOIN lacking USING (key)
                    ON CONFLICT DO NOTHING)
                UPDATE index_files SET revision = %(revision)s
                WHERE {_OWN} AND file IN (SELECT file FROM lacking)""",
            keys=[key for key, _ in vectors],
            vectors=[vector for _, vector in vectors],
            revision=self.revision,
        )

    def end(self, fact_rules: str) -> None:
        """Note in the head what was given."""
        self._run(
            f"""UPDATE index_heads SET revision = %(revision)s, last_key = %(key)s, last_file = %(file)s,
                last_label = %(label)s, updated_at = now(), fact_rules = coalesce(%(rules)s, fact_rules)
                WHERE {_OWN}""",
            revision=self.revision,
            key=self._key,
            file=self._file,
            label=self._label,
            rules=fact_rules or None,
        )

    def _apply(self, writes: Sequence[FileWrite], files: dict[str, int]) -> None:
        there = [(write, write.state) for write in writes if write.state is not None]
        labels = self._labels(chain.from_iterable(_names(write) for write, _ in there))
        # Nothing that is sent from here on answers what is needed here.
        with self.transaction.connection.pipeline():
            self._remove_passages([key for write in writes for key, _ in write.removed])
            self._remove_files([files[write.path] for write in writes if write.state is None and write.path in files])
            self._put_states(there, files)
            self._move_passages(there, labels)
            self._insert_passages(
                [(files[state.path], new) for write, state in there for new in write.inserted], labels
            )
            self._replace_facts([pair for write, _ in there for pair in write.stated])
            if any(write.removed or write.moved for write in writes):
                self._forget_labels()

    def _run(self, query: LiteralString, **values: Any) -> None:
        self.transaction.execute(query, {"ws": self.transaction.workspace, "gen": self.row.gen, **values})

    def _rows(self, query: LiteralString, **values: Any) -> list[tuple[Any, ...]]:
        values |= {"ws": self.transaction.workspace, "gen": self.row.gen}
        return self.transaction.rows(query, values, binary=True)

    def _insert(
        self,
        table: LiteralString,
        types: dict[LiteralString, LiteralString],
        rows: Sequence[Sequence[Any]],
        end: LiteralString = "",
    ) -> None:
        if rows:
            names = ", ".join(types)
            self._run(
                f"""INSERT INTO {table} (ws, gen, {names})
                    SELECT %(ws)s, %(gen)s, {names} FROM unnest({_arrays(types)}) AS r ({names}) {end}""",
                **_columns(types, rows),
            )

    def _known_files(self, paths: Sequence[str]) -> dict[str, tuple[int, int]]:
        """Number and revision of those of some files that are known, by path."""
        rows = self._rows(
            f"SELECT path, file, revision FROM index_files WHERE {_OWN} AND path = ANY(%(paths)s::bytea[])",
            paths=[bytes_of(path) for path in paths],
        )
        return {text_of(path): (file, revision) for path, file, revision in rows}

    def _remove_files(self, numbers: Sequence[int]) -> None:
        if numbers:
            self._insert("index_gone", {"revision": "bigint", "file": "bigint"}, [(self.revision, n) for n in numbers])
            self._run(f"DELETE FROM index_files WHERE {_OWN} AND file = ANY(%(files)s::bigint[])", files=[*numbers])

    def _put_states(self, there: Sequence[tuple[FileWrite, FileState]], files: dict[str, int]) -> None:
        """Store the states of files; those that are new get a number, in `files` too."""
        rows = []
        for write, state in there:
            if state.path not in files:
                self._file += 1
                files[state.path] = self._file
                revision = self.revision
            else:
                # What is known of a file changed, and none of its passages: nobody has to look at them again.
                revision = self.revision if write.changes_passages else write.expected_revision
            rows.append(
                (
                    files[state.path], revision, bytes_of(state.path), state.source, state.size_bytes, state.version,
                    state.checked_ns, state.content_hash, state.failure, state.known_version,
                )
            )  # fmt: skip
        changes = ", ".join(f"{name} = excluded.{name}" for name in _FILE if name != "file")
        self._insert("index_files", _FILE, rows, f"ON CONFLICT (ws, gen, file) DO UPDATE SET {changes}")

    def _move_passages(self, there: Sequence[tuple[FileWrite, FileState]], labels: dict[str | None, int]) -> None:
        rows = [
            (
                key, ordinal, p.start_line, p.end_line, bytes_of(titles_of(p)), p.opens_section, p.marks,
                bytes_of(tags_text(p)), labels[p.label], written_number(p),
            )
            for write, _ in there
            for key, ordinal, p in write.moved
        ]  # fmt: skip
        if rows:
            changes, names = ", ".join(f"{name} = r.{name}" for name in _MOVED if name != "key"), ", ".join(_MOVED)
            self._run(
                f"""UPDATE index_passages p SET {changes} FROM unnest({_arrays(_MOVED)}) AS r ({names})
                    WHERE p.ws = %(ws)s AND p.gen = %(gen)s AND p.key = r.key""",
                **_columns(_MOVED, rows),
            )
            keys = [row[0] for row in rows]
            self._run(
                f"""UPDATE index_facts x SET written = p.written, ordinal = p.ordinal, role = {_ROLE}
                    FROM index_passages p WHERE p.ws = %(ws)s AND p.gen = %(gen)s AND p.key = ANY(%(keys)s::bigint[])
                    AND x.ws = p.ws AND x.gen = p.gen AND x.key = p.key
                    AND (x.written, x.ordinal, x.role) IS DISTINCT FROM (p.written, p.ordinal, {_ROLE})""",
                keys=keys,
                **_ROLE_VALUES,
            )
            self._delete("index_tags", keys)
            self._insert_tags((key, _tag_numbers(p)) for write, _ in there for key, _, p in write.moved)

    def _insert_passages(self, passages: Sequence[tuple[int, NewPassage]], labels: dict[str | None, int]) -> None:
        """Store passages, each with the number of its file."""
        if not passages:
            return
        rows, vectors, lacking = [], list[tuple[int, bytes]](), list[tuple[int, int]]()
        facts, tags = list[_Numbers](), list[_Numbers]()
        for file, new in passages:
            self._key += 1
            p, key = new.passage, self._key
            rows.append(
                (
                    key, file, new.ordinal, p.start_line, p.end_line, bytes_of(p.text), bytes_of(titles_of(p)),
                    p.opens_section, p.date.toordinal() if p.date else 0, written_number(p), labels[p.label], p.marks,
                    bytes_of(tags_text(p)), labels[new.greeted or None], len(p.text), len(new.terms), new.text_hash,
                    bytes_of(" ".join(new.terms)),
                )
            )  # fmt: skip
            facts.append((key, new.things))
            tags.append((key, _tag_numbers(p)))
            if new.vector is not None:
                vectors.append((key, new.vector))
            else:
                lacking.append((key, file))
        self._check_vectors(vector for _, vector in vectors)
        self._insert("index_passages", _PASSAGE, rows)
        self._insert("index_vectors", {"key": "bigint", "vector": "bytea"}, vectors)
        self._insert("index_unembedded", {"key": "bigint", "file": "bigint"}, lacking)
        self._insert_facts(facts)
        self._insert_tags(tags)

    def _insert_facts(self, things_of: Iterable[_Numbers]) -> None:
        """Store what passages state, which are there already."""
        rows = [(thing, key) for key, things in things_of for thing in things]
        if rows:
            self._run(
                f"""INSERT INTO index_facts (ws, gen, thing, key, written, ordinal, role)
                    SELECT p.ws, p.gen, r.thing, p.key, p.written, p.ordinal, {_ROLE}
                    FROM unnest(%(things)s::bigint[], %(keys)s::bigint[]) r (thing, key)
                    JOIN index_passages p ON p.ws = %(ws)s AND p.gen = %(gen)s AND p.key = r.key
                    ON CONFLICT DO NOTHING""",
                things=[thing for thing, _ in rows],
                keys=[key for _, key in rows],
                **_ROLE_VALUES,
            )

    def _replace_facts(self, things_of: Sequence[_Numbers]) -> None:
        if things_of:
            self._delete("index_facts", [key for key, _ in things_of])
            self._insert_facts(things_of)

    def _insert_tags(self, tags_of: Iterable[_Numbers]) -> None:
        rows = [(tag, key) for key, tags in tags_of for tag in tags]
        self._insert("index_tags", {"tag": "bigint", "key": "bigint"}, rows)

    def _delete(self, table: LiteralString, keys: Sequence[int]) -> None:
        self._run(f"DELETE FROM {table} WHERE {_OWN} AND key = ANY(%(keys)s::bigint[])", keys=[*keys])

    def _remove_passages(self, keys: Sequence[int]) -> None:
        if keys:
            among: LiteralString = f"{_OWN} AND key = ANY(%(keys)s::bigint[])"
            self._run(
                f"""WITH vectors AS (DELETE FROM index_vectors WHERE {among}),
                    lacking AS (DELETE FROM index_unembedded WHERE {among}),
                    facts AS (DELETE FROM index_facts WHERE {among}),
                    tags AS (DELETE FROM index_tags WHERE {among})
                    DELETE FROM index_passages WHERE {among}""",
                keys=[*keys],
            )

    def _labels(self, names: Iterable[str | None]) -> dict[str | None, int]:
        """The number of each name that occurs; 0 for none. Those that are new are stored."""
        wanted_names = [name for name in dict.fromkeys(names) if name is not None]
        if not wanted_names:
            return {None: 0}
        rows = self._rows(
            f"SELECT name, label FROM index_labels WHERE {_OWN} AND name = ANY(%(names)s::bytea[])",
            names=[bytes_of(name) for name in wanted_names],
        )
        labels: dict[str | None, int] = {None: 0, **{text_of(name): label for name, label in rows}}
        new = [name for name in wanted_names if name not in labels]
        for name in new:
            self._label += 1
            labels[name] = self._label
        self._insert(
            "index_labels", {"label": "int", "name": "bytea"}, [(labels[name], bytes_of(name)) for name in new]
        )
        return labels

    def _forget_labels(self) -> None:
        self._run(
            """DELETE FROM index_labels l WHERE l.ws = %(ws)s AND l.gen = %(gen)s
               AND NOT EXISTS (SELECT FROM index_passages p WHERE p.ws = %(ws)s AND p.gen = %(gen)s
                               AND p.label = l.label AND p.label > 0)
               AND NOT EXISTS (SELECT FROM index_passages p WHERE p.ws = %(ws)s AND p.gen = %(gen)s
                               AND p.greeted = l.label AND p.greeted > 0)"""
        )

    def _check_vectors(self, vectors: Iterable[bytes]) -> None:
        size = 4 * self.row.fingerprint.dimensions
        if any(len(vector) != size for vector in vectors):
            raise StoreError(
                f"A vector has not the {self.row.fingerprint.dimensions} dimensions of its index. "
                "Run `memory-service reindex --full`."
            )


def _distinct(writes: Sequence[FileWrite]) -> Iterable[Sequence[FileWrite]]:
    """The writes in batches that have no path twice."""
    if len({write.path for write in writes}) == len(writes):
        return [writes] if writes else []
    return [[write] for write in writes]


def _tag_numbers(passage: Passage) -> tuple[int, ...]:
    """Numbers of a passage's tags and of those above each, `ops/deploy` is one of `ops`, too."""
    tags = (tag[:end] for tag in passage.tags for end in (*_places(tag, "/"), len(tag)))
    return tuple(dict.fromkeys(map(thing_number, tags)))


def _places(text: str, sign: str) -> list[int]:
    return [place for place, character in enumerate(text) if character == sign]


def _names(write: FileWrite) -> Iterator[str | None]:
    """Who speaks in a file's passages, and who is greeted."""
    yield from (passage.label for _, _, passage in write.moved)
    for new in write.inserted:
        yield new.passage.label
        yield new.greeted or None


def _arrays(types: dict[LiteralString, LiteralString]) -> LiteralString:
    return ", ".join(f"%({name}_)s::{kind}[]" for name, kind in types.items())


def _columns(types: dict[LiteralString, LiteralString], rows: Sequence[Sequence[Any]]) -> dict[str, list[Any]]:
    return {f"{name}_": [*column] for name, column in zip(types, zip(*rows, strict=True), strict=True)}
