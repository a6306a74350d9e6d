"""The index's SQL: passages, FTS5 terms and sqlite-vec vectors in one SQLite file, and its head.

Invariants: a passage is in `passages`, `terms` and (with a model) `vectors`, or in none of them; keys are
never used twice; the full-text table holds no text, so a removal names the terms that were stored. A revision of a
generation is given once; where an older file was put in the place of the index, whose revisions and keys will be given
again, it gets another generation before anything of it is told.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import secrets
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from indexer.corpus import Corpus, Floats, Ints
from indexer.errors import StoreCorrupt, StoreError, StoreLocked, StoreReplaced
from indexer.language.facts import FACT_RULES
from indexer.stores import sqlite_bulk
from indexer.stores.base import (
    NEAREST_LIMIT,
    FileState,
    FileWrite,
    Head,
    OfFile,
    OfRanges,
    OfSharedThings,
    OfTags,
    OfThings,
    SegmentSource,
    StoreCounts,
    StoredPassage,
    TermEntries,
    TermPosting,
    Unembedded,
    Version,
    Which,
    Written,
)
from indexer.stores.corpus_reader import CorpusReader, CorpusRows
from indexer.stores.row_values import (
    SPARE_NEIGHBOURS,
    fingerprint_json,
    fingerprint_of,
    measure_nearest,
    tag_posting,
)
from indexer.stores.sqlite_generations import SqliteBeside
from indexer.stores.sqlite_passages import select_passages
from indexer.stores.sqlite_rows import (
    FACTS,
    PASSAGE_COLUMNS,
    SCHEMA,
    STATE_COLUMNS,
    TABLES,
    VECTORS,
    apply,
    drop_tables,
    fill,
    passage_table,
    revisions_of,
    state_of,
    tag_conditions,
    vector_filter,
)
from indexer.types import AUTHORITY, ROLE_BITS, ROLES, Fingerprint, LineRange, SearchFilter, Vectors, short_path

if TYPE_CHECKING:
    from indexer.stores.sqlite_database import Database, Row


class SqliteHead:
    """The head of an index file.

    Args:
        path: The file.
        database: The same.
    """

    def __init__(self, path: Path, database: Database) -> None:
        self._path = path
        self._database = database
        self._seen = False
        # The file that each generation was seen in, and names of those that were seen in another one since.
        self._files: dict[str, tuple[int, ...]] = {}
        self._renamed: dict[tuple[str, tuple[int, ...]], str] = {}

    def has_tables(self) -> bool:
        """True if there is an index: looking makes no file, which appears when something is stored in it."""
        return self._database.exists() and bool(self._database.value("SELECT 1 FROM sqlite_schema WHERE name = 'meta'"))

    def require(self, made_with: Fingerprint) -> None:
        """Make sure that the index has a fingerprint.

        Raises:
            StoreReplaced: It has another one.
        """
        if self.now().fingerprint != made_with:
            raise StoreReplaced(
                f"The index {short_path(self._path)} was made anew by another process. "
                "Run `memory-service reindex` again."
            )

    def next_revision(self) -> int:
        """The revision of the write at hand."""
        revision = self.now().revision + 1
        self._database.run("UPDATE meta SET value = ? WHERE name = 'revision'", (revision,))
        now = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
        self._database.run("INSERT OR REPLACE INTO meta VALUES ('updated_at', ?)", (now,))
        return revision

    def refuse_foreign(self) -> None:
        """Make sure that the file is an index, or empty.

        Raises:
            StoreCorrupt: It is an SQLite file of something else.
        """
        tables = self._database.value("SELECT count(*) FROM sqlite_schema WHERE type = 'table'")
        if tables and not self.has_tables():
            raise StoreCorrupt(
                f"{short_path(self._path)} is an SQLite file of something else. "
                "Move it away and run `memory-service reindex`."
            )

    def now(self) -> Head:
        """The present head, without the files."""
        # One statement: a `begin` between two would give a head that never was.
        rows, file = self._rows(
            "SELECT name, value FROM meta WHERE name IN ('fingerprint', 'generation', 'revision', 'fact_rules')"
        )
        noted_rows: dict[str, Any] = dict(rows)
        generation = str(noted_rows.get("generation", ""))
        if generation and self._files.setdefault(generation, file) != file:
            generation = self._another_generation(generation, file)
        return Head(
            revision=int(noted_rows.get("revision", 0)),
            generation=generation,
            fingerprint=fingerprint_of(noted_rows["fingerprint"]) if "fingerprint" in noted_rows else None,
            fact_rules=str(noted_rows.get("fact_rules", "")),
        )

    def _another_generation(self, former: str, file: tuple[int, ...]) -> str:
        """Name of a generation that was seen in another file: this one is a copy, maybe an older one."""
        name = self._renamed.setdefault((former, file), secrets.token_hex(8))
        if not self._database.in_transaction:
            # Without write access, every process has a name of its own for it.
            with suppress(StoreError), self._database.writing():
                self._database.run("UPDATE meta SET value = ? WHERE name = 'generation' AND value = ?", (name, former))
                name = self._database.value("SELECT value FROM meta WHERE name = 'generation'")
                self._files[name] = file
        return name

    def _rows(self, query: str) -> tuple[list[Row], tuple[int, ...]]:
        """The result of a query of `meta`, and the file that it is of; nothing where nothing is stored."""
        # Looking for the tables first costs as much as the question itself: only before they were seen.
        if not self._seen and not self.has_tables():
            return [], ()
        try:
            rows = self._database.rows_and_file(query)
        except StoreError:
            if self.has_tables():
                raise
            self._seen = False
            return [], ()
        self._seen = True
        return rows

    def changes(self, revision: int) -> Head:
        """The present head, with the files that changed after a revision."""
        now = self.now()
        if not now.revision:
            return now
        files = self._database.rows("SELECT file, path, source FROM files WHERE revision > ?", (revision,))
        rows = self._database.rows("SELECT file FROM gone WHERE revision > ?", (revision,))
        return replace(now, files=tuple(files), gone=tuple(row[0] for row in rows))

    def highest_key(self) -> int:
        """The highest key that was given; 0 before the first."""
        if not self.has_tables():
            return 0
        return int(self._database.value("SELECT seq FROM sqlite_sequence WHERE name = 'passages'") or 0)


if TYPE_CHECKING:
    from indexer.stores.sqlite_database import Database

    pass


# While a generation is made, the one in use takes fewer revisions and keys than this.
_AHEAD = 1 << 32
_BATCH = 500
_GROWN_FILES = 256
# The first of the roles that have the lowest authority.
_LOWEST = next(number for number, role in enumerate(ROLES) if AUTHORITY[role] == min(AUTHORITY.values()))
_ROLE_MASK = (1 << ROLE_BITS) - 1
_STORED = f"p.key, f.path, f.source, p.ordinal, p.text_hash, {PASSAGE_COLUMNS}"
_NO_KEY = (1 << 63) - 1
_AMONG_PATHS = """ AND EXISTS (SELECT 1 FROM files f, json_each(?) j WHERE f.file = passages.file
    AND (f.path = j.value OR substr(f.path, 1, length(j.value) + 1) = j.value || '/'))"""
_POSTINGS = """
    SELECT place, group_concat(doc), group_concat(times) FROM (
        SELECT k.key AS place, p.doc, count(*) AS times FROM json_each(?) k CROSS JOIN postings p ON p.term = k.value
        GROUP BY k.key, p.doc)
    GROUP BY place"""


class SqliteStore:
    """An `IndexStore` in one file. See the protocol for what each method promises.

    Args:
        path: The file; made at the first write.
        busy_seconds: How long a writer waits for another process.
        after: The store that this one is to take the place of: its numbers stay below those given here.
    """

    schema = SCHEMA

    def __init__(self, path: Path, *, busy_seconds: float = 30.0, after: SqliteStore | None = None) -> None:
        # Here, so that `import indexer` loads no engine.
        from indexer.stores.sqlite_database import Database

        self.path = path
        self._database = Database(path, busy_seconds=busy_seconds)
        self._head = SqliteHead(path, self._database)
        self._corpus = CorpusReader(
            CorpusRows(
                head=lambda since: self._head.now() if since is None else self._head.changes(since),
                names=lambda: dict(self._database.rows("SELECT label, name FROM labels")),
                revisions=lambda files: revisions_of(self._database, files),
                table=lambda files, first: passage_table(self._database, files, first=first),
            )
        )
        self._after = after
        self.beside = SqliteBeside(path, self._database, lambda place: SqliteStore(place, after=self))
        self.segments = SqliteSegments(path, self._database)

    def begin(
        self, fingerprint: Fingerprint, *, only_missing: bool = False, keeping: Fingerprint | None = None
    ) -> Fingerprint:
        """See `IndexStore`."""
        with self._database.writing():
            self._head.refuse_foreign()
            stored_fingerprint = self._head.now().fingerprint
            if keeping is not None:
                return (
                    self._take_vectors(fingerprint) if stored_fingerprint == keeping else stored_fingerprint or keeping
                )
            if only_missing and stored_fingerprint is not None:
                return stored_fingerprint
            self._begin(fingerprint)
        return fingerprint

    def _begin(self, fingerprint: Fingerprint) -> None:
        # Other processes hold older revisions and keys in memory, maybe of a file that was deleted:
        # both go on from where they were, and from the clock (µs) where nothing tells where that was.
        now, after = time.time_ns() // 1000, self._after
        revision = max(now, self._head.now().revision + 1, after._head.now().revision + _AHEAD if after else 0)
        highest = max(now, self._head.highest_key(), after._head.highest_key() + _AHEAD if after else 0)
        drop_tables(self._database)
        self._database.run(TABLES)
        if fingerprint.dimensions:
            self._database.run(VECTORS.format(dimensions=fingerprint.dimensions))
        self._database.run(FACTS)
        self._database.run_many(
            "INSERT INTO meta VALUES (?, ?)",
            [
                ("fact_rules", FACT_RULES),
                ("fingerprint", fingerprint_json(fingerprint)),
                ("revision", revision),
                ("generation", secrets.token_hex(8)),
            ],
        )
        self._database.run("INSERT INTO sqlite_sequence VALUES ('passages', ?)", (highest,))

    def _take_vectors(self, fingerprint: Fingerprint) -> Fingerprint:
        self._database.run(VECTORS.format(dimensions=fingerprint.dimensions))
        self._database.run("UPDATE meta SET value = ? WHERE name = 'fingerprint'", (fingerprint_json(fingerprint),))
        return fingerprint

    def reading(self) -> AbstractContextManager[None]:
        """See `IndexStore`."""
        return self._database.reading() if self._database.exists() else nullcontext()

    def head(self, since: int | None = None) -> Head:
        """See `IndexStore`."""
        now = self._head.now()
        if since is None or now.revision == since:
            return now
        with self.reading():
            return self._head.changes(since)

    def file_states(self, paths: Collection[str] | None = None) -> dict[str, FileState]:
        """See `IndexStore`."""
        if not self._head.has_tables():
            return {}
        query = f"SELECT {STATE_COLUMNS} FROM files"
        if paths is None:
            rows = self._database.rows(query)
        else:
            among = " WHERE path IN (SELECT value FROM json_each(?))"
            rows = self._database.rows(query + among, (json.dumps(list(paths)),))
        return {row[0]: state_of(row) for row in rows}

    def file_versions(self, limit: int | None = None) -> dict[str, Version]:
        """See `IndexStore`."""
        if not self._head.has_tables():
            return {}
        # An index of an earlier version has none, and its status is told all the same.
        column = self._database.value("SELECT name FROM pragma_table_info('files') WHERE name = 'stat'") or "x''"
        most = -1 if limit is None else limit
        return dict(self._database.rows(f"SELECT path, {column} FROM files LIMIT ?", (most,)))

    def passages(self, value: Which) -> dict[int, StoredPassage]:
        """See `IndexStore`."""
        return select_passages(self._database, value) if self._holds(value) else {}

    def _holds(self, value: Which) -> bool:
        """False if there are no tables to select from; keys come from an index."""
        if isinstance(value, OfThings | OfSharedThings):
            return bool(self._head.now().fact_rules)
        return not isinstance(value, OfFile | OfRanges | Unembedded) or self._head.has_tables()

    def vectors_of_texts(self, text_hashes: Iterable[bytes]) -> dict[bytes, bytes]:
        """See `IndexStore`."""
        hexed_text = json.dumps([text_hash.hex() for text_hash in text_hashes])
        rows = self._database.rows(
            """SELECT unhex(j.value), v.embedding FROM json_each(?) j CROSS JOIN vectors v ON v.key =
               (SELECT p.key FROM passages p WHERE p.text_hash = unhex(j.value) AND p.embedded LIMIT 1)""",
            (hexed_text,),
        )
        return dict(rows)

    def write(
        self,
        writes: Sequence[FileWrite],
        *,
        vectors: Sequence[tuple[int, bytes]] = (),
        made_with: Fingerprint | None = None,
        fact_rules: str = "",
    ) -> Written:
        """See `IndexStore`."""
        with self._database.writing():
            if made_with is not None:
                self._head.require(made_with)
            self._database.run(FACTS)
            revision = self._head.next_revision()
            refused_texts = apply(self._database, writes, revision) if writes else []
            if vectors:
                fill(self._database, vectors, revision)
            if fact_rules:
                self._database.run("INSERT OR REPLACE INTO meta VALUES ('fact_rules', ?)", (fact_rules,))
        self._corpus.note(writes, refused_texts, revision)
        return Written(revision=revision, refused=tuple(refused_texts))

    def corpus(self, previous: Corpus | None, *, since: int = 0) -> Corpus:
        """See `IndexStore`."""
        with self.reading():
            return self._corpus.read(previous, since=since)

    def postings(
        self, terms: Collection[str] | OfTags | None, *, among: Collection[int] | None = None
    ) -> list[TermPosting]:
        """See `IndexStore`."""
        if not self._head.has_tables():
            return []
        if isinstance(terms, OfTags):
            text, bindings = tag_conditions(terms.tags)
            rows = self._database.rows(f"SELECT key FROM passages p WHERE {text}", bindings)
            return [tag_posting([key for (key,) in rows])]
        wanted_terms = list((terms or ()) if among is None else self._occurring(terms, among))
        postings = list[TermPosting]()
        # One row for each term: between two rows, SQLite gives every other thread its turn.
        for place, keys, counts in self._database.rows(_POSTINGS, (json.dumps(wanted_terms),)):
            table = np.array([np.fromstring(keys, np.int64, sep=","), np.fromstring(counts, np.int64, sep=",")])
            table = table[:, np.argsort(table[0], kind="stable")]
            if among is not None:
                table = table[:, np.isin(table[0], list(among))]
            postings.append(TermPosting(term=wanted_terms[place], keys=table[0], counts=table[1]))
        return postings

    def _occurring(self, terms: Collection[str] | None, keys: Collection[int]) -> Iterator[str]:
        """Those of some terms, or of all, that the full text has under one of some keys."""
        if terms is None:
            every = "SELECT DISTINCT term FROM postings WHERE doc IN (SELECT value FROM json_each(?))"
            yield from (row[0] for row in self._database.rows(every, (json.dumps([*keys]),)))
            return
        query = "SELECT rowid FROM terms WHERE terms MATCH ? AND rowid BETWEEN ? AND ?"
        low, high = min(keys, default=0), max(keys, default=0)
        # By FTS5 itself, which skips what lies outside: all postings of a common word would be most of the index.
        for term in terms if keys else ():
            rows = self._database.rows(query, ('"{}"'.format(term.replace('"', '""')), low, high))
            if any(row[0] in keys for row in rows):
                yield term

    def nearest(self, vector: Vectors, limit: int, filter: SearchFilter) -> tuple[Ints, Floats]:
        """See `IndexStore`."""
        # A few more neighbours cost nothing, where a set of all other keys costs as much as half the scan.
        keys_within = self._keys_within(filter.without)
        most = limit + SPARE_NEIGHBOURS + len(keys_within)
        if most <= NEAREST_LIMIT:
            filter = replace(filter, without=())
        else:
            most, keys_within = limit + SPARE_NEIGHBOURS, set()
        where, bindings = vector_filter(filter)
        with self.reading():
            rows = self._database.rows(
                f"SELECT key, distance FROM vectors WHERE embedding MATCH ? AND k = ?{where}",
                (vector.astype("<f4").tobytes(), min(most, NEAREST_LIMIT), *bindings),
            )
            rows = [row for row in rows if row[0] not in keys_within]
            keys, cosines = np.array([row[0] for row in rows], np.int64), 1.0 - np.array([row[1] for row in rows])
            keys, cosines = measure_nearest(keys, cosines, vector, lambda near: self.vectors(near.tolist()))
        return keys[:limit], cosines[:limit]

    def vectors(self, keys: Sequence[int] | None) -> tuple[Ints, Vectors]:
        """See `IndexStore`."""
        if keys is None:
            rows = self._database.rows("SELECT key, embedding FROM vectors")
        else:
            # One statement that looks each key up: vec0 answers `key IN (…)` with a scan of all.
            rows = self._database.rows(
                "SELECT v.key, v.embedding FROM json_each(?) k CROSS JOIN vectors v ON v.key = k.value",
                (json.dumps([int(key) for key in keys]),),
            )
        flat = np.frombuffer(b"".join(row[1] for row in rows), "<f4")
        return np.array([row[0] for row in rows], np.int64), flat.reshape(len(rows), -1) if rows else flat.reshape(0, 0)

    def counts(self) -> StoreCounts:
        """See `IndexStore`."""
        rows = self._database.rows(
            """SELECT (SELECT count(*) FROM files), (SELECT count(*) FROM files WHERE failure != ''),
                      (SELECT count(*) FROM passages), (SELECT count(*) FROM passages WHERE embedded),
                      (SELECT value FROM meta WHERE name = 'updated_at')"""
        )
        files, failed_value, passages, embedded_value, updated_value = rows[0]
        return StoreCounts(
            files=files,
            failed_files=failed_value,
            passages=passages,
            embedded=embedded_value,
            size_bytes=self._database.size_bytes(),
            updated_at=dt.datetime.fromisoformat(updated_value) if updated_value else None,
        )

    def check(self) -> None:
        """See `IndexStore`."""
        if not self._head.has_tables():
            return
        with self.reading():
            # FTS5 checks with the list of its segments that the connection last read, and takes those that another
            # process has merged since for missing (SQLite 3.54.1). A query reads the list anew.
            self._database.rows("SELECT rowid FROM terms WHERE terms MATCH 'a' LIMIT 1")
            answers = [row[0] for row in self._database.rows("PRAGMA quick_check(1)")]
        if answers != ["ok"]:
            raise StoreCorrupt(
                f"The index {short_path(self.path)} is damaged ({answers[0]}). "
                "Delete it and run `memory-service reindex`; no memory is lost."
            )

    def scrub(self) -> None:
        """See `IndexStore`."""
        # The log still holds pages from before the removal until it is written back and cut.
        if self._database.exists() and not self._database.cut_log():
            raise StoreLocked(
                f"Another process reads the index {short_path(self.path)}, so what was removed is still in its log. "
                "Wait for it to end, or stop it, and try again."
            )

    def close(self) -> None:
        """See `IndexStore`."""
        self._database.close()

    def _keys_within(self, ranges: Sequence[LineRange]) -> set[int]:
        """Keys of the passages that lie wholly within one of some ranges of lines."""
        query = """SELECT key FROM passages JOIN files USING (file)
                   WHERE path = ? AND start_line >= ? AND end_line <= ? AND embedded"""
        return {
            row[0]
            for lines in ranges
            for row in self._database.rows(query, (lines.path, lines.start_line, lines.end_line))
        }


class SqliteSegments(SegmentSource):
    """The material of a packed segment of an index file, which lies beside it; see `SegmentSource`."""

    def __init__(self, path: Path, database: Database) -> None:
        self._path = path
        self._database = database

    def path(self) -> Path | None:
        """See `SegmentSource`."""
        # Beside the file itself, not beside a link to it: another generation has another one.
        return Path(f"{os.path.realpath(self._path)}.pack")

    def sync(self) -> None:
        """See `SegmentSource`; commits alone need not survive a crash of the machine, a checkpoint does."""
        # The log is synced first, and that is enough where there is no room for more.
        with suppress(StoreError):
            self._database.rows("PRAGMA wal_checkpoint(PASSIVE)")

    def terms(self) -> Iterator[TermEntries]:
        """See `SegmentSource`."""
        return sqlite_bulk.term_entries(self._database)

    def vectors(self) -> Iterator[tuple[Ints, Vectors]]:
        """See `SegmentSource`."""
        return sqlite_bulk.vectors(self._database)
