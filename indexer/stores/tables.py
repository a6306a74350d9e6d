"""Owns the tables of an index file, and how their rows become values and back.

Invariants: a change of a table, or of what a column means, comes with another `SCHEMA`.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from indexer.engine.corpus import CorpusFile, Ints
from indexer.types import Cue, Passage, SearchFilter

SCHEMA = 4

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
        opens_section INTEGER NOT NULL, day INTEGER NOT NULL, label INTEGER NOT NULL, cues INTEGER NOT NULL,
        greeted INTEGER NOT NULL, chars INTEGER NOT NULL, length INTEGER NOT NULL, text_hash BLOB NOT NULL,
        embedded INTEGER NOT NULL);
    CREATE INDEX passages_file ON passages (file, ordinal);
    CREATE INDEX passages_text ON passages (text_hash) WHERE embedded;
    CREATE INDEX passages_unembedded ON passages (file) WHERE NOT embedded;
    CREATE INDEX passages_label ON passages (label) WHERE label > 0;
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
PASSAGE_COLUMNS = "p.start_line, p.end_line, p.text, p.heading, p.opens_section, p.day, coalesce(l.name, ''), p.cues"
STATE_COLUMNS = "path, source, size_bytes, mtime_ns, ctime_ns, inode, checked_ns, content_hash, failure, revision"


def titles_of(passage: Passage) -> str:
    """A passage's titles as they are stored."""
    return _titles(passage.heading) if passage.heading else ""


@lru_cache(maxsize=4096)
def _titles(heading: tuple[str, ...]) -> str:
    return json.dumps(heading, ensure_ascii=False)


# Flags are looked up: to make one costs a tenth of what a row does.
_CUES = {flags: Cue(flags) for flags in range((Cue.TIME | Cue.QUESTION | Cue.ANSWER | Cue.UNLATIN) + 1)}


@lru_cache(maxsize=4096)
def _heading(titles: str) -> tuple[str, ...]:
    # Passages of one section share it, and reading JSON is a third of what a row costs.
    return tuple(json.loads(titles)) if titles else ()


def passage_of(row: Sequence[Any]) -> Passage:
    """The passage in a row of `PASSAGE_COLUMNS`."""
    start_line, end_line, text, heading, opens_section, day, label, cues = row
    return Passage(
        start_line=start_line,
        end_line=end_line,
        text=text,
        heading=_heading(heading),
        opens_section=bool(opens_section),
        date=dt.date.fromordinal(day) if day else None,
        label=label or None,
        cues=_CUES[cues],
    )


def corpus_files(files: Sequence[Sequence[Any]], table: Ints) -> list[CorpusFile]:
    """Files that have passages, from rows of (file, path, source) and, by ascending file, of (file, *COLUMNS)."""
    numbers = np.array([file for file, _, _ in files], np.int64)
    low = np.searchsorted(table[:, 0], numbers).tolist()
    high = np.searchsorted(table[:, 0], numbers, side="right").tolist()
    return [
        CorpusFile(path=path, source=source, table=table[first:end, 1:], file=file)
        for (file, path, source), first, end in zip(files, low, high, strict=True)
        if end > first
    ]


def vector_filter(kept: SearchFilter) -> tuple[str, list[object]]:
    """A filter as conditions of a nearest-neighbour query, and their bindings."""
    where, bindings = "", list[object]()
    if kept.sources:
        where += f" AND source IN ({','.join('?' * len(kept.sources))})"
        bindings += kept.sources
    if kept.since or kept.until:
        where += " AND day BETWEEN ? AND ?"
        bindings += [kept.since.toordinal() if kept.since else 1, (kept.until or dt.date.max).toordinal()]
    # One set of keys for all that vec0 has no column for: it takes a single one, and looks keys up in it.
    those, bound = _of_paths(kept)
    if those:
        where += f" AND key IN (SELECT key FROM passages p JOIN files f USING (file) WHERE {those})"
    return where, bindings + bound


def _of_paths(kept: SearchFilter) -> tuple[str, list[object]]:
    conditions, bindings = list[str](), list[object]()
    if kept.path_prefix:
        conditions.append("substr(f.path, 1, ?) = ?")
        bindings += [len(kept.path_prefix), kept.path_prefix]
    for lines in kept.without:
        conditions.append("NOT (f.path = ? AND p.start_line >= ? AND p.end_line <= ?)")
        bindings += [lines.path, lines.start_line, lines.end_line]
    return " AND ".join(conditions), bindings
