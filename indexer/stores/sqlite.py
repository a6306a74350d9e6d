"""The index's SQL: passages, FTS5 terms and sqlite-vec vectors in one SQLite file.

Invariants: a passage is in `passages`, `terms` and (with a model) `vectors`, or in none of them; keys are
never used twice; the full-text table holds no text, so a removal names the terms that were stored.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import secrets
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from indexer.corpus import Corpus, Floats, Ints
from indexer.errors import StoreCorrupt, StoreError, StoreLocked, StoreReplaced
from indexer.stores import sqlite_rows
from indexer.stores.base import (
    NEAREST_LIMIT,
    Changes,
    FileState,
    FileWrite,
    KnownPassage,
    StoreCounts,
    StoredPassage,
    TermEntries,
    TermPosting,
    UnembeddedPassage,
    Written,
)
from indexer.stores.sqlite_rows import (
    PASSAGE_COLUMNS,
    STATE_COLUMNS,
    TABLES,
    VECTORS,
    apply,
    corpus_files,
    drop_tables,
    fill,
    passage_of,
    vector_filter,
)
from indexer.types import Fingerprint, LineRange, SearchFilter, Vectors, short_path

if TYPE_CHECKING:
    from indexer.stores.sqlite_database import Row


# While a generation is made, the one in use takes fewer revisions and keys than this.
_AHEAD = 1 << 32
_BATCH = 500
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
    """

    def __init__(self, path: Path, *, busy_seconds: float = 30.0) -> None:
        # Here, so that `import indexer` loads no engine.
        from indexer.stores.sqlite_database import Database

        self.path = path
        self._database = Database(path, busy_seconds=busy_seconds)
        self._seen = False

    def fingerprint(self) -> Fingerprint | None:
        """See `IndexStore`."""
        stored = self._meta_rows("SELECT value FROM meta WHERE name = 'fingerprint'")
        return Fingerprint(**json.loads(stored[0][0])) if stored else None

    def reset(self, fingerprint: Fingerprint, *, after: SqliteStore | None = None, only_missing: bool = False) -> None:
        """See `IndexStore`.

        Args:
            fingerprint: What it begins anew for.
            after: The store that this one takes the place of: its numbers stay below those given here.
            only_missing: Leave an index be that somebody else has begun meanwhile.
        """
        with self._database.writing():
            self._refuse_foreign()
            # Other processes hold older revisions and keys in memory, maybe of a file that was deleted:
            # both go on from where they were, and from the clock (µs) where nothing tells where that was.
            if only_missing and self.fingerprint() is not None:
                return
            now = time.time_ns() // 1000
            revision = max(now, self.revision() + 1, after.revision() + _AHEAD if after else 0)
            highest = max(now, self._highest_key(), after._highest_key() + _AHEAD if after else 0)
            drop_tables(self._database)
            self._database.run(TABLES)
            if fingerprint.dimensions:
                self._database.run(VECTORS.format(dimensions=fingerprint.dimensions))
            self._database.run_many(
                "INSERT INTO meta VALUES (?, ?)",
                [
                    ("fingerprint", _fingerprint_json(fingerprint)),
                    ("revision", revision),
                    ("generation", secrets.token_hex(8)),
                ],
            )
            self._database.run("INSERT INTO sqlite_sequence VALUES ('passages', ?)", (highest,))

    def writing(self) -> AbstractContextManager[None]:
        """Nobody else writes within the block; what this thread writes in it is one transaction."""
        return self._database.writing()

    def size_bytes(self) -> int:
        """What the file and its log take."""
        return self._database.size_bytes()

    def drop_stale(self) -> None:
        """Close connections to a file that another one has taken the place of."""
        self._database.drop_stale()

    def reading(self) -> AbstractContextManager[None]:
        """See `IndexStore`."""
        return self._database.reading() if self._database.exists() else nullcontext()

    def revision(self) -> int:
        """See `IndexStore`."""
        return self._now()[0]

    def generation(self) -> str:
        """See `IndexStore`."""
        return self._now()[1]

    def changed_since(self, revision: int) -> Changes:
        """See `IndexStore`."""
        now, generation = self._now()
        if now == revision:
            return Changes(revision=now, generation=generation)
        with self.reading():
            return self._changes(revision)

    def file_states(self, paths: Collection[str] | None = None) -> dict[str, FileState]:
        """See `IndexStore`."""
        if not self._has_tables():
            return {}
        query = f"SELECT {STATE_COLUMNS} FROM files"
        if paths is None:
            rows = self._database.rows(query)
        else:
            among = " WHERE path IN (SELECT value FROM json_each(?))"
            rows = self._database.rows(query + among, (json.dumps(list(paths)),))
        return {row[0]: FileState(*row) for row in rows}

    def file_stats(self) -> dict[str, bytes]:
        """See `IndexStore`."""
        if not self._has_tables():
            return {}
        # An index of an earlier version has none, and its status is told all the same.
        column = self._database.value("SELECT name FROM pragma_table_info('files') WHERE name = 'stat'") or "x''"
        return dict(self._database.rows(f"SELECT path, {column} FROM files"))

    def unembedded(
        self, limit: int, *, below: int | None = None, paths: Collection[str] | None = None
    ) -> list[UnembeddedPassage]:
        """See `IndexStore`."""
        if not self._has_tables():
            return []
        among, bound = (
            ("", ()) if paths is None else (_AMONG_PATHS, (json.dumps([path.rstrip("/") for path in paths]),))
        )
        # By that index, which is empty as a rule; by their keys, all passages would be looked at for a few.
        rows = self._database.rows(
            f"""SELECT key, text_hash, text FROM passages INDEXED BY passages_unembedded
                WHERE NOT embedded AND key < ?{among} ORDER BY key DESC LIMIT ?""",
            (_NO_KEY if below is None else below, *bound, limit),
        )
        return [UnembeddedPassage(key=key, text_hash=text_hash, text=text) for key, text_hash, text in rows]

    def begin_vectors(self, made: Fingerprint, fingerprint: Fingerprint) -> Fingerprint:
        """See `IndexStore`."""
        with self._database.writing():
            stored = self.fingerprint()
            if stored != made:
                return stored or made
            self._database.run(VECTORS.format(dimensions=fingerprint.dimensions))
            self._database.run(
                "UPDATE meta SET value = ? WHERE name = 'fingerprint'", (_fingerprint_json(fingerprint),)
            )
        return fingerprint

    def add_vectors(self, vectors: Sequence[tuple[int, bytes]], *, made_with: Fingerprint) -> None:
        """See `IndexStore`."""
        with self._database.writing():
            self._require(made_with)
            fill(self._database, vectors, self._next_revision())

    def known_passages(self, path: str, *, first: int = 0) -> list[KnownPassage]:
        """See `IndexStore`."""
        return self._known("f.path = ? AND p.ordinal >= ? ORDER BY p.ordinal", (path, first))

    def last_passage(self, path: str) -> KnownPassage | None:
        """See `IndexStore`."""
        return next(iter(self._known("f.path = ? ORDER BY p.ordinal DESC LIMIT 1", (path,))), None)

    def _known(self, which: str, bindings: tuple[str | int, ...]) -> list[KnownPassage]:
        rows = self._database.rows(
            f"""SELECT p.key, p.ordinal, p.text_hash, {PASSAGE_COLUMNS}
                FROM files f JOIN passages p USING (file) LEFT JOIN labels l USING (label) WHERE {which}""",
            bindings,
        )
        return [
            KnownPassage(key=key, ordinal=ordinal, text_hash=text_hash, passage=passage_of(rest))
            for key, ordinal, text_hash, *rest in rows
        ]

    def vectors_of_texts(self, text_hashes: Iterable[bytes]) -> dict[bytes, bytes]:
        """See `IndexStore`."""
        hexed = json.dumps([text_hash.hex() for text_hash in text_hashes])
        rows = self._database.rows(
            """SELECT unhex(j.value), v.embedding FROM json_each(?) j CROSS JOIN vectors v ON v.key =
               (SELECT p.key FROM passages p WHERE p.text_hash = unhex(j.value) AND p.embedded LIMIT 1)""",
            (hexed,),
        )
        return dict(rows)

    def write(self, writes: Sequence[FileWrite], *, made_with: Fingerprint | None = None) -> Written:
        """See `IndexStore`."""
        with self._database.writing():
            if made_with is not None:
                self._require(made_with)
            revision = self._next_revision()
            refused = apply(self._database, writes, revision)
        return Written(revision=revision, refused=tuple(refused))

    def corpus(self, previous: Corpus | None, *, since: int = 0) -> Corpus:
        """See `IndexStore`."""
        with self.reading():
            revision, generation = self._now()
            if previous is not None and (previous.generation, previous.since) != (generation, since):
                previous = None
            if previous is not None and previous.revision == revision:
                return previous
            if not revision:
                return Corpus(revision=0, files=(), label_names={}, since=since)
            if previous is not None and previous.revision > revision:
                previous = None
            changes = self._changes(since if previous is None else previous.revision)
            table = sqlite_rows.passage_table(self._database, [file for file, _, _ in changes.files])
            files = corpus_files(changes.files, table)
            names = {row[0]: row[1] for row in self._database.rows("SELECT label, name FROM labels")}
        if previous is not None:
            stale = {file for file, _, _ in changes.files}.union(changes.gone)
            files = [file for file in previous.files if file.file not in stale] + files
        files.sort(key=attrgetter("path"))
        return Corpus(revision=revision, files=tuple(files), label_names=names, generation=generation, since=since)

    def postings(self, terms: Sequence[str]) -> list[TermPosting]:
        """See `IndexStore`."""
        if not self._has_tables():
            return []
        # One row for each term: between two rows, SQLite gives every other thread its turn.
        rows = self._database.rows(_POSTINGS, (json.dumps(list(terms)),))
        found = list[TermPosting]()
        for place, keys, counts in rows:
            table = np.array([np.fromstring(keys, np.int64, sep=","), np.fromstring(counts, np.int64, sep=",")])
            table = table[:, np.argsort(table[0], kind="stable")]
            found.append(TermPosting(term=terms[place], keys=table[0], counts=table[1]))
        return found

    def found_by_terms(self, keys: Collection[int], terms: Collection[str]) -> bool:
        """See `IndexStore`."""
        if not keys or not self._has_tables():
            return False
        query = "SELECT rowid FROM terms WHERE terms MATCH ? AND rowid BETWEEN ? AND ?"
        low, high, wanted = min(keys), max(keys), set(keys)
        # By FTS5 itself, which skips what lies outside: all postings of a common word would be most of the index.
        rows = (
            row
            for term in terms
            for row in self._database.rows(query, ('"{}"'.format(term.replace('"', '""')), low, high))
        )
        return any(row[0] in wanted for row in rows)

    def nearest(self, vector: Vectors, limit: int, kept: SearchFilter) -> tuple[Ints, Floats]:
        """See `IndexStore`."""
        # A few more neighbours cost nothing, where a set of all other keys costs as much as half the scan.
        hidden = self._keys_within(kept.without)
        if limit + len(hidden) <= NEAREST_LIMIT:
            limit, kept = limit + len(hidden), replace(kept, without=())
        else:
            hidden = set()
        where, bindings = vector_filter(kept)
        rows = self._database.rows(
            f"SELECT key, distance FROM vectors WHERE embedding MATCH ? AND k = ?{where}",
            (vector.astype("<f4").tobytes(), min(limit, NEAREST_LIMIT), *bindings),
        )
        rows = [row for row in rows if row[0] not in hidden][: limit - len(hidden)]
        return np.array([row[0] for row in rows], np.int64), 1.0 - np.array([row[1] for row in rows], np.float64)

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

    def passages(self, keys: Sequence[int]) -> dict[int, StoredPassage]:
        """See `IndexStore`."""
        found: dict[int, StoredPassage] = {}
        for start in range(0, len(keys), _BATCH):
            part = [int(key) for key in keys[start : start + _BATCH]]
            rows = self._database.rows(
                f"""SELECT p.key, f.path, f.source, p.ordinal, {PASSAGE_COLUMNS}
                    FROM passages p JOIN files f USING (file) LEFT JOIN labels l USING (label)
                    WHERE p.key IN ({",".join("?" * len(part))})""",
                part,
            )
            for key, path, source, ordinal, *rest in rows:
                passage = passage_of(rest)
                found[key] = StoredPassage(key=key, path=path, source=source, ordinal=ordinal, passage=passage)
        return found

    def is_empty(self) -> bool:
        """See `IndexStore`."""
        return not self._has_tables() or not self._database.rows("SELECT 1 FROM files LIMIT 1")

    def counts(self) -> StoreCounts:
        """See `IndexStore`."""
        rows = self._database.rows(
            """SELECT (SELECT count(*) FROM files), (SELECT count(*) FROM files WHERE failure != ''),
                      (SELECT count(*) FROM passages), (SELECT count(*) FROM passages WHERE embedded),
                      (SELECT value FROM meta WHERE name = 'updated_at')"""
        )
        files, failed, passages, embedded, updated = rows[0]
        return StoreCounts(
            files=files,
            failed_files=failed,
            passages=passages,
            embedded=embedded,
            size_bytes=self._database.size_bytes(),
            updated_at=dt.datetime.fromisoformat(updated) if updated else None,
        )

    def term_entries(self) -> Iterator[TermEntries]:
        """See `IndexStore`."""
        return sqlite_rows.term_entries(self._database)

    def all_vectors(self) -> Iterator[tuple[Ints, Vectors]]:
        """See `IndexStore`."""
        fingerprint = self.fingerprint()
        return sqlite_rows.vectors(self._database) if fingerprint and fingerprint.dimensions else iter(())

    def pack_path(self) -> Path | None:
        """See `IndexStore`."""
        # Beside the file itself, not beside a link to it: another generation has another one.
        return Path(f"{os.path.realpath(self.path)}.pack")

    def check(self) -> None:
        """See `IndexStore`."""
        if not self._has_tables():
            return
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

    def _has_tables(self) -> bool:
        # Looking must not make the file: an index appears when something is stored in it.
        return self._database.exists() and bool(self._database.value("SELECT 1 FROM sqlite_schema WHERE name = 'meta'"))

    def _require(self, made_with: Fingerprint) -> None:
        if self.fingerprint() != made_with:
            raise StoreReplaced(
                f"The index {short_path(self.path)} was made anew by another process. "
                "Run `memory-service reindex` again."
            )

    def _next_revision(self) -> int:
        """The revision of the write at hand."""
        revision = self.revision() + 1
        self._database.run("UPDATE meta SET value = ? WHERE name = 'revision'", (revision,))
        now = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
        self._database.run("INSERT OR REPLACE INTO meta VALUES ('updated_at', ?)", (now,))
        return revision

    def _refuse_foreign(self) -> None:
        tables = self._database.value("SELECT count(*) FROM sqlite_schema WHERE type = 'table'")
        if tables and not self._has_tables():
            raise StoreCorrupt(
                f"{short_path(self.path)} is an SQLite file of something else. "
                "Move it away and run `memory-service reindex`."
            )

    def _now(self) -> tuple[int, str]:
        """The revision and the generation."""
        # One statement: a reset between two would give a pair that never was.
        noted: dict[str, Any] = dict(
            self._meta_rows("SELECT name, value FROM meta WHERE name IN ('generation', 'revision')")
        )
        return int(noted.get("revision", 0)), str(noted.get("generation", ""))

    def _meta_rows(self, query: str) -> list[Row]:
        """What a query of `meta` gives; nothing where nothing is stored."""
        # Looking for the tables first costs as much as the question itself: only before they were seen.
        if not self._seen and not self._has_tables():
            return []
        try:
            rows = self._database.rows(query)
        except StoreError:
            if self._has_tables():
                raise
            self._seen = False
            return []
        self._seen = True
        return rows

    def _changes(self, revision: int) -> Changes:
        now, generation = self._now()
        if not now:
            return Changes(revision=0, generation="")
        files = self._database.rows("SELECT file, path, source FROM files WHERE revision > ?", (revision,))
        gone = self._database.rows("SELECT file FROM gone WHERE revision > ?", (revision,))
        return Changes(revision=now, generation=generation, files=tuple(files), gone=tuple(row[0] for row in gone))

    def _highest_key(self) -> int:
        if not self._has_tables():
            return 0
        return int(self._database.value("SELECT seq FROM sqlite_sequence WHERE name = 'passages'") or 0)


def _fingerprint_json(fingerprint: Fingerprint) -> str:
    """A fingerprint as it is stored."""
    return json.dumps({name: getattr(fingerprint, name) for name in ("model", "dimensions", "rules", "schema")})
