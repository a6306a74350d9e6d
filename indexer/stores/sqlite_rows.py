"""The tables of an index file: their rows as values and back, and the writes of a batch.

Invariants: a change of a table, or of what a column means, comes with another `SCHEMA`. Changes of files are written
within a transaction; a key or a file's number is given once and never again; a passage goes into, and out of, every
table together.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from struct import Struct
from typing import TYPE_CHECKING

from indexer.corpus import COLUMNS, Ints
from indexer.stores.base import FileState, FileWrite, NewPassage, Version
from indexer.stores.row_values import tags_text, titles_of, written_number
from indexer.types import SearchFilter

if TYPE_CHECKING:
    from indexer.stores.sqlite_database import Database, Row


SCHEMA = 7

# Small chunks make reading one vector cheaper (8 µs, with 64 rows a chunk 15, with 1,024 130) and a scan no slower;
# secure-delete takes a removed term out of the full-text index at once instead of at the next merge.
TABLES = """
    CREATE TABLE meta (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
    CREATE TABLE files (
        file INTEGER PRIMARY KEY AUTOINCREMENT, path TEXT NOT NULL UNIQUE, source TEXT NOT NULL,
        size_bytes INTEGER NOT NULL, mtime_ns INTEGER NOT NULL, ctime_ns INTEGER NOT NULL, inode INTEGER NOT NULL,
        checked_ns INTEGER NOT NULL, content_hash TEXT NOT NULL, failure TEXT NOT NULL, revision INTEGER NOT NULL,
        stat BLOB NOT NULL);
    CREATE INDEX files_revision ON files (revision);
    CREATE TABLE gone (file INTEGER PRIMARY KEY, revision INTEGER NOT NULL);
    CREATE INDEX gone_revision ON gone (revision);
    CREATE TABLE labels (label INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
    CREATE TABLE passages (
        key INTEGER PRIMARY KEY AUTOINCREMENT, file INTEGER NOT NULL, ordinal INTEGER NOT NULL,
        start_line INTEGER NOT NULL, end_line INTEGER NOT NULL, text TEXT NOT NULL, heading TEXT NOT NULL,
        opens_section INTEGER NOT NULL, day INTEGER NOT NULL, written INTEGER NOT NULL, label INTEGER NOT NULL,
        marks INTEGER NOT NULL, tags TEXT NOT NULL, greeted INTEGER NOT NULL, chars INTEGER NOT NULL,
        length INTEGER NOT NULL, text_hash BLOB NOT NULL, embedded INTEGER NOT NULL);
    CREATE INDEX passages_file ON passages (file, ordinal);
    CREATE INDEX passages_text ON passages (text_hash) WHERE embedded;
    CREATE INDEX passages_unembedded ON passages (file) WHERE NOT embedded;
    CREATE INDEX passages_label ON passages (label) WHERE label > 0;
    CREATE INDEX passages_tags ON passages (tags) WHERE tags <> '';
    CREATE INDEX passages_greeted ON passages (greeted) WHERE greeted > 0;
    CREATE VIRTUAL TABLE terms USING fts5 (body, content='', tokenize='ascii');
    INSERT INTO terms (terms, rank) VALUES ('secure-delete', 1);
    CREATE VIRTUAL TABLE postings USING fts5vocab (terms, instance);
"""
VECTORS = """
    CREATE VIRTUAL TABLE vectors USING vec0 (
        key INTEGER PRIMARY KEY, embedding FLOAT[{dimensions}] distance_metric=cosine,
        source TEXT, day INTEGER, chunk_size=16)
"""
# Made when an index of an earlier version is written to, whose tables are else the same.
FACTS = """
    CREATE TABLE IF NOT EXISTS facts (
        thing INTEGER NOT NULL, key INTEGER NOT NULL, PRIMARY KEY (thing, key)) WITHOUT ROWID;
    CREATE INDEX IF NOT EXISTS facts_key ON facts (key);
"""
PASSAGE_COLUMNS = (
    "p.start_line, p.end_line, p.text, p.heading, p.opens_section, p.day, p.written, coalesce(l.name, ''), p.marks, "
    "p.tags"
)
STATE_COLUMNS = "path, source, size_bytes, mtime_ns, ctime_ns, inode, checked_ns, content_hash, failure, revision"
# The version of a file on a disk: its size, times of change and inode, which have columns. One of another kind stands
# whole in the column of the first time.
_STAT = Struct("<qqqQ")
_MOST = (1 << 63) - 1


def state_of(row: Row) -> FileState:
    """The state of a file from its `STATE_COLUMNS`."""
    path, source, size_bytes, mtime_ns, ctime_ns, inode, *rest = row
    stat = mtime_ns if isinstance(mtime_ns, bytes) else _STAT.pack(size_bytes, mtime_ns, ctime_ns, inode)
    return FileState(path, source, size_bytes, stat, *rest)


def _state_row(state: FileState) -> tuple[str | int | bytes, ...]:
    """The `STATE_COLUMNS` of a file, all but the last one."""
    version = _version_columns(state.version, state.size_bytes)
    return (*state[:3], *version, *state[4:-1])


def _version_columns(version: Version, size_bytes: int) -> tuple[int | bytes, int, int]:
    if len(version) == _STAT.size:
        size, mtime_ns, ctime_ns, inode = _STAT.unpack(version)
        if size == size_bytes and inode <= _MOST:
            return mtime_ns, ctime_ns, inode
    return version, 0, 0


def tag_conditions(tags: Iterable[str]) -> tuple[str, list[object]]:
    """Conditions of passages `p` that have some tags, and their bindings."""
    conditions, bindings = ["p.tags <> ''"], list[object]()
    for tag in tags:
        conditions.append("(instr(p.tags, ?) OR instr(p.tags, ?))")
        bindings += [f" {tag} ", f" {tag}/"]
    return " AND ".join(conditions), bindings


def vector_filter(filter: SearchFilter) -> tuple[str, list[object]]:
    """A filter as conditions of a nearest-neighbour query, and their bindings."""
    where, bindings = "", list[object]()
    if filter.sources:
        where += f" AND source IN ({','.join('?' * len(filter.sources))})"
        bindings += filter.sources
    if filter.since or filter.until:
        where += " AND day BETWEEN ? AND ?"
        bindings += [filter.since.toordinal() if filter.since else 1, (filter.until or dt.date.max).toordinal()]
    # One set of keys for all that vec0 has no column for: it takes a single one, and looks keys up in it.
    text, bound_items = _of_rows(filter)
    if text:
        where += f" AND key IN (SELECT key FROM passages p JOIN files f USING (file) WHERE {text})"
    return where, bindings + bound_items


def _of_rows(filter: SearchFilter) -> tuple[str, list[object]]:
    conditions, bindings = list[str](), list[object]()
    if filter.path_prefix:
        # Each file is looked at once, not each of its passages.
        conditions.append("f.file IN (SELECT file FROM files WHERE substr(composed(path), 1, ?) = ?)")
        bindings += [len(filter.path_prefix), filter.path_prefix]
    if filter.tags:
        tagged_text, bound_items = tag_conditions(filter.tags)
        conditions.append(tagged_text)
        bindings += bound_items
    for lines in filter.without:
        conditions.append("NOT (f.path = ? AND p.start_line >= ? AND p.end_line <= ?)")
        bindings += [lines.path, lines.start_line, lines.end_line]
    return " AND ".join(conditions), bindings


_NEW_FILE = f"INSERT INTO files ({STATE_COLUMNS}, stat, file) VALUES (?,?,?,?,?,?,?,?,?,?,?,?)"
_OLD_FILE = f"UPDATE files SET ({STATE_COLUMNS}, stat) = (?,?,?,?,?,?,?,?,?,?,?) WHERE file = ?"
# What is known of a file changed, and none of its passages: nobody has to look at them again.
_SAME_FILE = f"UPDATE files SET ({STATE_COLUMNS}, stat) = (?,?,?,?,?,?,?,?,?,revision,?) WHERE file = ?"
_NEW_PASSAGE = """INSERT INTO passages (key, file, ordinal, start_line, end_line, text, heading, opens_section, day,
    written, label, marks, tags, greeted, chars, length, text_hash, embedded)
    VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"""
_MOVED_PASSAGE = """UPDATE passages SET ordinal = ?, start_line = ?, end_line = ?, heading = ?, opens_section = ?,
    marks = ?, tags = ?, label = ?, written = ? WHERE key = ?"""


def apply(database: Database, writes: Sequence[FileWrite], revision: int) -> list[str]:
    """Carry out writes.

    Args:
        database: In a write transaction.
        writes: In the order that they count in, should two be of one file.
        revision: What the files are marked with.

    Returns:
        Paths of the writes that were refused: the file's revision is not the expected one.
    """
    refused_value = []
    for batch in _distinct(writes):
        files = _known_files(database, [write.path for write in batch])
        kept_value = []
        for write in batch:
            stored_count = files[write.path][1] if write.path in files else 0
            if stored_count == write.expected_revision:
                kept_value.append(write)
            else:
                refused_value.append(write.path)
        _apply(database, kept_value, {path: file for path, (file, _) in files.items()}, revision)
    if any(write.removed or write.moved for write in writes):
        _forget_labels(database)
    return refused_value


def fill(database: Database, vectors: Sequence[tuple[int, bytes]], revision: int) -> None:
    """Give passages that lack one their vector, by key; their files are marked with a revision."""
    database.run_many(
        """INSERT INTO vectors (key, embedding, source, day)
           SELECT key, ?, source, day FROM passages JOIN files USING (file) WHERE key = ? AND NOT embedded""",
        [(vector, key) for key, vector in vectors],
    )
    keys = json.dumps([key for key, _ in vectors])
    among = "key IN (SELECT value FROM json_each(?))"
    database.run(
        f"UPDATE files SET revision = ? WHERE file IN (SELECT file FROM passages WHERE {among})", (revision, keys)
    )
    database.run(f"UPDATE passages SET embedded = 1 WHERE NOT embedded AND {among}", (keys,))


def drop_tables(database: Database) -> None:
    """Leave nothing in an index file, in a write transaction."""
    for kind in ("view", "table"):
        # Virtual tables first: they drop their own shadow tables.
        rows = database.rows(
            """SELECT name FROM sqlite_schema WHERE type = ? AND name NOT LIKE 'sqlite_%'
               ORDER BY sql NOT LIKE 'CREATE VIRTUAL%', name = 'terms'""",
            (kind,),
        )
        for (name,) in rows:
            database.run(f'DROP {kind} IF EXISTS "{name}"')


def _distinct(writes: Sequence[FileWrite]) -> Iterable[Sequence[FileWrite]]:
    """The writes in batches that have no path twice."""
    if len({write.path for write in writes}) == len(writes):
        return [writes]
    return [[write] for write in writes]


def _known_files(database: Database, paths: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Number and revision of those of some files that are known, by path."""
    query = "SELECT path, file, revision FROM files WHERE path IN (SELECT value FROM json_each(?))"
    return {path: (file, revision) for path, file, revision in database.rows(query, (json.dumps(paths),))}


def _apply(database: Database, writes: Sequence[FileWrite], files: dict[str, int], revision: int) -> None:
    _remove_passages(database, [pair for write in writes for pair in write.removed])
    numbers = [files[write.path] for write in writes if write.state is None and write.path in files]
    database.run_many("INSERT INTO gone VALUES (?, ?)", [(file, revision) for file in numbers])
    database.run_many("DELETE FROM files WHERE file = ?", [(file,) for file in numbers])
    there = [(write, write.state) for write in writes if write.state is not None]
    file_states = [state for write, state in there if not write.changes_passages and state.path in files]
    database.run_many(
        _SAME_FILE, [(*_state_row(state), state.known_version, files[state.path]) for state in file_states]
    )
    _put_states(
        database,
        [state for write, state in there if write.changes_passages or state.path not in files],
        files,
        revision,
    )
    labels = _labels(database, chain.from_iterable(_names(write) for write, _ in there))
    database.run_many(
        _MOVED_PASSAGE,
        [
            (
                ordinal, p.start_line, p.end_line, titles_of(p), p.opens_section, p.marks, tags_text(p),
                labels[p.label], written_number(p), key,
            )
            for write, _ in there
            for key, ordinal, p in write.moved
        ],
    )  # fmt: skip
    parts = [(files[state.path], state.source, new) for write, state in there for new in write.inserted]
    _insert_passages(database, parts, labels)
    pairs = [each_pair for write, _ in there for each_pair in write.stated]
    database.run_many("DELETE FROM facts WHERE key = ?", [(key,) for key, _ in pairs])
    _insert_facts(database, pairs)


def _insert_facts(database: Database, stated_pairs: Iterable[tuple[int, tuple[int, ...]]]) -> None:
    rows = [(thing, key) for key, things in stated_pairs for thing in things]
    if rows:
        database.run_many("INSERT OR IGNORE INTO facts VALUES (?, ?)", rows)


def _put_states(database: Database, states: Sequence[FileState], files: dict[str, int], revision: int) -> None:
    """Store the states of files; those that are new get a number, in `files` too."""
    old = [_file_row(state, revision, files) for state in states if state.path in files]
    if old:
        database.run_many(_OLD_FILE, old)
    file_states = [state for state in states if state.path not in files]
    if file_states:
        numbers = range(_highest(database, "files") + 1, 1 << 63)
        files.update(zip((state.path for state in file_states), numbers, strict=False))
        database.run_many(_NEW_FILE, [_file_row(state, revision, files) for state in file_states])


def _file_row(state: FileState, revision: int, files: dict[str, int]) -> tuple[str | int | bytes, ...]:
    return (*_state_row(state), revision, state.known_version, files[state.path])


def _insert_passages(
    database: Database, inserted_parts: Sequence[tuple[int, str, NewPassage]], labels: dict[str | None, int]
) -> None:
    """Store passages, each with the number and the source of its file."""
    if not inserted_parts:
        return
    passages, terms, vectors = [], [], []
    for key, (file, source, new) in enumerate(inserted_parts, _highest(database, "passages") + 1):
        p = new.passage
        day = p.date.toordinal() if p.date else 0
        passages.append(
            (
                key, file, new.ordinal, p.start_line, p.end_line, p.text, titles_of(p), p.opens_section, day,
                written_number(p), labels[p.label], p.marks, tags_text(p), labels[new.greeted or None], len(p.text),
                len(new.terms), new.text_hash, new.vector is not None,
            )
        )  # fmt: skip
        terms.append((key, " ".join(new.terms)))
        if new.vector is not None:
            vectors.append((key, new.vector, source, day))
    database.run_many(_NEW_PASSAGE, passages)
    database.run_many("INSERT INTO terms (rowid, body) VALUES (?, ?)", terms)
    database.run_many("INSERT INTO vectors VALUES (?, ?, ?, ?)", vectors)
    _insert_facts(database, ((row[0], new.things) for row, (_, _, new) in zip(passages, inserted_parts, strict=True)))


def _remove_passages(database: Database, removed_pairs: Sequence[tuple[int, tuple[str, ...]]]) -> None:
    if not removed_pairs:
        return
    keys = json.dumps([key for key, _ in removed_pairs])
    among = "key IN (SELECT value FROM json_each(?))"
    lengths: dict[int, int] = dict(database.rows(f"SELECT key, length FROM passages WHERE {among}", (keys,)))
    rows = database.rows(f"SELECT key FROM passages WHERE {among} AND embedded", (keys,))
    # Should these not be quite the ones that were put in, never more of them: a count that fell below zero would be
    # taken for damage. What is left belongs to no passage, and goes with the rebuild.
    database.run_many(
        "INSERT INTO terms (terms, rowid, body) VALUES ('delete', ?, ?)",
        [(key, " ".join(terms[: lengths.get(key, 0)])) for key, terms in removed_pairs],
    )
    database.run_many("DELETE FROM vectors WHERE key = ?", rows)
    database.run(f"DELETE FROM facts WHERE {among}", (keys,))
    database.run(f"DELETE FROM passages WHERE {among}", (keys,))


def _names(write: FileWrite) -> Iterator[str | None]:
    """Who speaks in a file's passages, and who is greeted."""
    yield from (passage.label for _, _, passage in write.moved)
    for new in write.inserted:
        yield new.passage.label
        yield new.greeted or None


def _labels(database: Database, wanted_texts: Iterable[str | None]) -> dict[str | None, int]:
    """The number of each name that occurs; 0 for none. Those that are new are stored."""
    names = [name for name in dict.fromkeys(wanted_texts) if name is not None]
    if not names:
        return {None: 0}
    database.run_many("INSERT OR IGNORE INTO labels (name) VALUES (?)", [(name,) for name in names])
    query = "SELECT label FROM labels WHERE name = ?"
    return {None: 0, **{name: int(database.value(query, (name,))) for name in names}}


def _forget_labels(database: Database) -> None:
    database.run(
        """DELETE FROM labels
           WHERE NOT EXISTS (SELECT 1 FROM passages p WHERE p.label = labels.label AND p.label > 0)
             AND NOT EXISTS (SELECT 1 FROM passages p WHERE p.greeted = labels.label AND p.greeted > 0)"""
    )


def _highest(database: Database, table: str) -> int:
    # SQLite keeps this number right when rows come with theirs.
    return int(database.value("SELECT seq FROM sqlite_sequence WHERE name = ?", (table,)) or 0)


def passage_table(database: Database, files: Sequence[int], *, first: int = 0) -> Ints:
    """Passages of some files by their numbers, int64 of shape (m, columns): the file's number, then `COLUMNS`.

    By ascending file, and by their order in it; without the first passages of each if `first` says so.
    """
    columns = ", ".join(f"p.{name}" for name in COLUMNS)
    return database.table(
        f"""SELECT p.file, {columns} FROM passages p WHERE p.file IN (SELECT value FROM json_each(?))
            AND p.ordinal >= ? ORDER BY p.file, p.ordinal""",
        (json.dumps(files), first),
        columns=1 + len(COLUMNS),
    )


def revisions_of(database: Database, files: Sequence[int]) -> dict[int, int]:
    """Revision of each of some files, by their numbers."""
    query = "SELECT file, revision FROM files WHERE file IN (SELECT value FROM json_each(?))"
    return dict(database.rows(query, (json.dumps(files),)))
