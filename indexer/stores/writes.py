"""Owns how the changes of files become rows: a statement for each table, run over all rows of a batch.

Invariants: called within a write transaction; a key or a file's number is given once and never again; a
passage goes into, and out of, every table together.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from indexer.stores.base import FileState, FileWrite, NewPassage
from indexer.stores.tables import STATE_COLUMNS, titles_of

if TYPE_CHECKING:
    from indexer.stores.database import Database

_NEW_FILE = f"INSERT INTO files ({STATE_COLUMNS}, stat, file) VALUES (?,?,?,?,?,?,?,?,?,?,?,?)"
_OLD_FILE = f"UPDATE files SET ({STATE_COLUMNS}, stat) = (?,?,?,?,?,?,?,?,?,?,?) WHERE file = ?"
# What is known of a file changed, and none of its passages: nobody has to look at them again.
_SAME_FILE = f"UPDATE files SET ({STATE_COLUMNS}, stat) = (?,?,?,?,?,?,?,?,?,revision,?) WHERE file = ?"
_NEW_PASSAGE = """INSERT INTO passages (key, file, ordinal, start_line, end_line, text, heading, opens_section, day,
    label, cues, greeted, chars, length, text_hash, embedded) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"""
_MOVED_PASSAGE = """UPDATE passages SET ordinal = ?, start_line = ?, end_line = ?, heading = ?, opens_section = ?,
    cues = ?, label = ? WHERE key = ?"""


def apply(database: Database, writes: Sequence[FileWrite], revision: int) -> list[str]:
    """Carry out writes.

    Args:
        database: In a write transaction.
        writes: In the order that they count in, should two be of one file.
        revision: What the files are marked with.

    Returns:
        Paths of the writes that were refused: the file's revision is not the expected one.
    """
    refused = []
    for batch in _distinct(writes):
        known = _known_files(database, [write.path for write in batch])
        kept = []
        for write in batch:
            stored = known[write.path][1] if write.path in known else 0
            if stored == write.expected_revision:
                kept.append(write)
            else:
                refused.append(write.path)
        _apply(database, kept, {path: file for path, (file, _) in known.items()}, revision)
    if any(write.removed or write.moved for write in writes):
        _forget_labels(database)
    return refused


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
    _remove_passages(database, [removed for write in writes for removed in write.removed])
    gone = [files[write.path] for write in writes if write.state is None and write.path in files]
    database.run_many("INSERT INTO gone VALUES (?, ?)", [(file, revision) for file in gone])
    database.run_many("DELETE FROM files WHERE file = ?", [(file,) for file in gone])
    there = [(write, write.state) for write in writes if write.state is not None]
    noted = [state for write, state in there if not write.changes_passages and state.path in files]
    database.run_many(_SAME_FILE, [(*state[:-1], state.stat, files[state.path]) for state in noted])
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
            (ordinal, p.start_line, p.end_line, titles_of(p), p.opens_section, int(p.cues), labels[p.label], key)
            for write, _ in there
            for key, ordinal, p in write.moved
        ],
    )
    inserted = [(files[state.path], state.source, new) for write, state in there for new in write.inserted]
    _insert_passages(database, inserted, labels)


def _put_states(database: Database, states: Sequence[FileState], files: dict[str, int], revision: int) -> None:
    """Store the states of files; those that are new get a number, in `files` too."""
    old = [_file_row(state, revision, files) for state in states if state.path in files]
    if old:
        database.run_many(_OLD_FILE, old)
    added = [state for state in states if state.path not in files]
    if added:
        numbers = range(_highest(database, "files") + 1, 1 << 63)
        files.update(zip((state.path for state in added), numbers, strict=False))
        database.run_many(_NEW_FILE, [_file_row(state, revision, files) for state in added])


def _file_row(state: FileState, revision: int, files: dict[str, int]) -> tuple[str | int | bytes, ...]:
    return (*state._replace(revision=revision), state.stat, files[state.path])


def _insert_passages(
    database: Database, inserted: Sequence[tuple[int, str, NewPassage]], labels: dict[str | None, int]
) -> None:
    """Store passages, each with the number and the source of its file."""
    if not inserted:
        return
    passages, terms, vectors = [], [], []
    for key, (file, source, new) in enumerate(inserted, _highest(database, "passages") + 1):
        p = new.passage
        day = p.date.toordinal() if p.date else 0
        passages.append(
            (
                key, file, new.ordinal, p.start_line, p.end_line, p.text, titles_of(p), p.opens_section, day,
                labels[p.label], int(p.cues), labels[new.greeted or None], len(p.text), len(new.terms), new.text_hash,
                new.vector is not None,
            )
        )  # fmt: skip
        terms.append((key, " ".join(new.terms)))
        if new.vector is not None:
            vectors.append((key, new.vector, source, day))
    database.run_many(_NEW_PASSAGE, passages)
    database.run_many("INSERT INTO terms (rowid, body) VALUES (?, ?)", terms)
    database.run_many("INSERT INTO vectors VALUES (?, ?, ?, ?)", vectors)


def _remove_passages(database: Database, removed: Sequence[tuple[int, tuple[str, ...]]]) -> None:
    if not removed:
        return
    keys = json.dumps([key for key, _ in removed])
    among = "key IN (SELECT value FROM json_each(?))"
    lengths: dict[int, int] = dict(database.rows(f"SELECT key, length FROM passages WHERE {among}", (keys,)))
    embedded = database.rows(f"SELECT key FROM passages WHERE {among} AND embedded", (keys,))
    # Where other rules made the terms these are not quite the ones that were put in. Never more of them: a count
    # that fell below zero would be taken for damage. What is left belongs to no passage, and goes with the rebuild.
    database.run_many(
        "INSERT INTO terms (terms, rowid, body) VALUES ('delete', ?, ?)",
        [(key, " ".join(terms[: lengths.get(key, 0)])) for key, terms in removed],
    )
    database.run_many("DELETE FROM vectors WHERE key = ?", embedded)
    database.run(f"DELETE FROM passages WHERE {among}", (keys,))


def _names(write: FileWrite) -> Iterator[str | None]:
    """Who speaks in a file's passages, and who is greeted."""
    yield from (passage.label for _, _, passage in write.moved)
    for new in write.inserted:
        yield new.passage.label
        yield new.greeted or None


def _labels(database: Database, wanted: Iterable[str | None]) -> dict[str | None, int]:
    """The number of each name that occurs; 0 for none. Those that are new are stored."""
    names = [name for name in dict.fromkeys(wanted) if name is not None]
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
