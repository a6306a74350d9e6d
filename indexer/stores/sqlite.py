"""Owns the index's SQL: passages, FTS5 terms and sqlite-vec vectors in one SQLite file.

Invariants: a passage is in `passages`, `terms` and (with a model) `vectors`, or in none of them; keys are
never used twice; the full-text table holds no text, so a removal names the terms that were stored.
"""

from __future__ import annotations

import datetime as dt
import json
import time
from collections.abc import Collection, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path

import numpy as np

from indexer.corpus import COLUMNS, Corpus, CorpusFile, Floats, Ints
from indexer.errors import StoreCorrupt, StoreLocked, StoreOutdated
from indexer.stores.base import (
    FileState,
    FileWrite,
    KnownPassage,
    NewPassage,
    StoreCounts,
    StoredPassage,
    TermPosting,
    Written,
)
from indexer.stores.tables import (
    PASSAGE_COLUMNS,
    STATE_COLUMNS,
    TABLES,
    VECTORS,
    corpus_files,
    passage_of,
    state_of,
    titles_of,
    vector_filter,
)
from indexer.types import Fingerprint, LineRange, Passage, SearchFilter, Vectors

# sqlite-vec takes at most this many neighbours in one query.
NEAREST_LIMIT = 4096
_BATCH = 500


class SqliteStore:
    """An `IndexStore` in one file. See the protocol for what each method promises.

    Args:
        path: The file; made at the first write.
        busy_seconds: How long a writer waits for another process.
    """

    def __init__(self, path: Path, *, busy_seconds: float = 30.0) -> None:
        # Here, so that `import indexer` loads no engine.
        from indexer.stores.database import Database

        self.path = path
        self._database = Database(path, busy_seconds=busy_seconds)

    def fingerprint(self) -> Fingerprint | None:
        """See `IndexStore`."""
        if not self._has_tables():
            return None
        stored = self._database.value("SELECT value FROM meta WHERE name = 'fingerprint'")
        return Fingerprint(**json.loads(stored)) if stored else None

    def reset(self, fingerprint: Fingerprint) -> None:
        """See `IndexStore`."""
        made = {name: getattr(fingerprint, name) for name in ("model", "dimensions", "rules", "schema")}
        with self._database.writing():
            self._refuse_foreign()
            # Other processes hold older revisions and keys in memory, maybe of a file that was deleted:
            # both go on from where they were, and from the clock (µs) where nothing tells where that was.
            now = time.time_ns() // 1000
            revision = max(now, self.revision() + 1)
            highest = max(now, self._highest_key())
            for kind in ("view", "table"):
                self._drop_all(kind)
            self._database.run(TABLES)
            if fingerprint.dimensions:
                self._database.run(VECTORS.format(dimensions=fingerprint.dimensions))
            self._database.run_many(
                "INSERT INTO meta VALUES (?, ?)", [("fingerprint", json.dumps(made)), ("revision", revision)]
            )
            self._database.run("INSERT INTO sqlite_sequence VALUES ('passages', ?)", (highest,))

    def reading(self) -> AbstractContextManager[None]:
        """See `IndexStore`."""
        return self._database.reading() if self._database.exists() else nullcontext()

    def revision(self) -> int:
        """See `IndexStore`."""
        if not self._has_tables():
            return 0
        return int(self._database.value("SELECT value FROM meta WHERE name = 'revision'") or 0)

    def file_states(self, paths: Collection[str] | None = None) -> dict[str, FileState]:
        """See `IndexStore`."""
        if not self._has_tables():
            return {}
        query = f"SELECT {STATE_COLUMNS} FROM files"
        if paths is None:
            rows = self._database.rows(query)
        else:
            rows = [row for path in paths for row in self._database.rows(f"{query} WHERE path = ?", (path,))]
        return {row[0]: state_of(row) for row in rows}

    def unembedded_paths(self) -> set[str]:
        """See `IndexStore`."""
        if not self._has_tables():
            return set()
        rows = self._database.rows(
            "SELECT path FROM files WHERE file IN (SELECT file FROM passages WHERE NOT embedded)"
        )
        return {row[0] for row in rows}

    def known_passages(self, path: str) -> list[KnownPassage]:
        """See `IndexStore`."""
        rows = self._database.rows(
            f"""SELECT p.key, p.ordinal, p.text_hash, p.embedded, {PASSAGE_COLUMNS}
                FROM files f JOIN passages p USING (file) LEFT JOIN labels l USING (label)
                WHERE f.path = ? ORDER BY p.ordinal""",
            (path,),
        )
        return [
            KnownPassage(
                key=key, ordinal=ordinal, text_hash=text_hash, embedded=bool(embedded), passage=passage_of(rest)
            )
            for key, ordinal, text_hash, embedded, *rest in rows
        ]

    def vectors_of_texts(self, text_hashes: Iterable[bytes]) -> dict[bytes, bytes]:
        """See `IndexStore`."""
        found: dict[bytes, bytes] = {}
        for text_hash in text_hashes:
            row = self._database.rows(
                """SELECT v.embedding FROM passages p JOIN vectors v ON v.key = p.key
                   WHERE p.text_hash = ? AND p.embedded LIMIT 1""",
                (text_hash,),
            )
            if row:
                found[text_hash] = row[0][0]
        return found

    def write(self, writes: Sequence[FileWrite], *, made_with: Fingerprint | None = None) -> Written:
        """See `IndexStore`."""
        refused = []
        with self._database.writing():
            if made_with is not None and self.fingerprint() != made_with:
                raise StoreOutdated(
                    f"The index {self.path} was made anew by another process. Run `memory-service reindex` again."
                )
            revision = self.revision() + 1
            self._database.run("UPDATE meta SET value = ? WHERE name = 'revision'", (revision,))
            now = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
            self._database.run("INSERT OR REPLACE INTO meta VALUES ('updated_at', ?)", (now,))
            for write in writes:
                stored = self._database.value("SELECT revision FROM files WHERE path = ?", (write.path,)) or 0
                if stored != write.expected_revision:
                    refused.append(write.path)
                else:
                    self._apply(write, revision)
            if any(write.removed or write.moved for write in writes):
                self._forget_labels()
        return Written(revision=revision, refused=tuple(refused))

    def corpus(self, previous: Corpus | None) -> Corpus:
        """See `IndexStore`."""
        with self.reading():
            revision = self.revision()
            if previous and previous.revision == revision:
                return previous
            if not revision:
                return Corpus(revision=0, files=(), label_names={})
            if previous and previous.revision > revision:
                previous = None
            kept = self._unchanged(previous)
            changed = self._tables_since(previous.revision if previous else 0)
            names = {row[0]: row[1] for row in self._database.rows("SELECT label, name FROM labels")}
        files = sorted((kept | changed).values(), key=lambda file: file.path)
        return Corpus(revision=revision, files=tuple(file for file in files if len(file.table)), label_names=names)

    def postings(self, terms: Sequence[str]) -> list[TermPosting]:
        """See `IndexStore`."""
        found = list[TermPosting]()
        for term in terms if self._has_tables() else ():
            rows = self._database.rows("SELECT doc, count(*) FROM postings WHERE term = ? GROUP BY doc", (term,))
            if rows:
                table = np.array(rows, np.int64)
                found.append(TermPosting(term=term, keys=table[:, 0], counts=table[:, 1]))
        return found

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
            rows = [
                row
                for key in keys
                for row in self._database.rows("SELECT key, embedding FROM vectors WHERE key = ?", (key,))
            ]
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

    def check(self) -> None:
        """See `IndexStore`."""
        if not self._has_tables():
            return
        answers = [row[0] for row in self._database.rows("PRAGMA quick_check(1)")]
        if answers != ["ok"]:
            raise StoreCorrupt(
                f"The index {self.path} is damaged ({answers[0]}). Delete it and run `memory-service reindex`; "
                "no memory is lost."
            )

    def scrub(self) -> None:
        """See `IndexStore`."""
        # The log still holds pages from before the removal until it is written back and cut.
        if not self._database.exists():
            return
        blocked, *_ = self._database.rows("PRAGMA wal_checkpoint(TRUNCATE)")[0]
        if blocked:
            raise StoreLocked(
                f"Another process reads the index {self.path}, so what was removed is still in its log. "
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

    def _refuse_foreign(self) -> None:
        tables = self._database.value("SELECT count(*) FROM sqlite_schema WHERE type = 'table'")
        if tables and not self._has_tables():
            raise StoreCorrupt(
                f"{self.path} is an SQLite file of something else. Move it away and run `memory-service reindex`."
            )

    def _drop_all(self, kind: str) -> None:
        # Virtual tables first: they drop their own shadow tables.
        rows = self._database.rows(
            """SELECT name FROM sqlite_schema WHERE type = ? AND name NOT LIKE 'sqlite_%'
               ORDER BY sql NOT LIKE 'CREATE VIRTUAL%', name = 'terms'""",
            (kind,),
        )
        for (name,) in rows:
            self._database.run(f'DROP {kind} IF EXISTS "{name}"')

    def _unchanged(self, previous: Corpus | None) -> dict[str, CorpusFile]:
        if previous is None:
            return {}
        paths = {
            row[0] for row in self._database.rows("SELECT path FROM files WHERE revision <= ?", (previous.revision,))
        }
        return {file.path: file for file in previous.files if file.path in paths}

    def _tables_since(self, revision: int) -> dict[str, CorpusFile]:
        files = self._database.rows("SELECT file, path, source FROM files WHERE revision > ?", (revision,))
        rows = self._database.rows(
            f"""SELECT p.file, {", ".join(f"p.{name}" for name in COLUMNS)} FROM passages p
               WHERE p.file IN (SELECT file FROM files WHERE revision > ?) ORDER BY p.file, p.ordinal""",
            (revision,),
        )
        return corpus_files(files, rows)

    def _apply(self, write: FileWrite, revision: int) -> None:
        for key, terms in write.removed:
            self._remove_passage(key, terms)
        if write.state is None:
            self._database.run("DELETE FROM files WHERE path = ?", (write.path,))
            return
        file = self._put_state(write.state, revision)
        self._database.run_many(
            """UPDATE passages SET ordinal = ?, start_line = ?, end_line = ?, heading = ?, opens_section = ?, cues = ?,
               label = ? WHERE key = ?""",
            [
                (ordinal, p.start_line, p.end_line, titles_of(p), p.opens_section, int(p.cues), self._label(p), key)
                for key, ordinal, p in write.moved
            ],
        )
        for new in write.inserted:
            self._insert_passage(file, write.state.source, new)

    def _put_state(self, state: FileState, revision: int) -> int:
        known = self._database.value("SELECT file FROM files WHERE path = ?", (state.path,))
        row = (
            state.path, state.source, state.size_bytes, state.mtime_ns, state.ctime_ns, state.inode,
            state.checked_ns, state.content_hash, state.failure, revision,
        )  # fmt: skip
        if known is None:
            return self._database.insert(f"INSERT INTO files ({STATE_COLUMNS}) VALUES (?,?,?,?,?,?,?,?,?,?)", row)
        self._database.run(f"UPDATE files SET ({STATE_COLUMNS}) = (?,?,?,?,?,?,?,?,?,?) WHERE file = ?", (*row, known))
        return int(known)

    def _insert_passage(self, file: int, source: str, new: NewPassage) -> None:
        passage = new.passage
        day = passage.date.toordinal() if passage.date else 0
        key = self._database.insert(
            """INSERT INTO passages (file, ordinal, start_line, end_line, text, heading, opens_section, day, label,
               cues, chars, length, text_hash, embedded) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?)""",
            (
                file, new.ordinal, passage.start_line, passage.end_line, passage.text, titles_of(passage),
                passage.opens_section, day, self._label(passage), int(passage.cues), len(passage.text),
                len(new.terms), new.text_hash, new.vector is not None,
            ),
        )  # fmt: skip
        self._database.run("INSERT INTO terms (rowid, body) VALUES (?, ?)", (key, " ".join(new.terms)))
        if new.vector is not None:
            self._database.run("INSERT INTO vectors VALUES (?, ?, ?, ?)", (key, new.vector, source, day))

    def _remove_passage(self, key: int, terms: Sequence[str]) -> None:
        self._database.run("INSERT INTO terms (terms, rowid, body) VALUES ('delete', ?, ?)", (key, " ".join(terms)))
        if self._database.value("SELECT embedded FROM passages WHERE key = ?", (key,)):
            self._database.run("DELETE FROM vectors WHERE key = ?", (key,))
        self._database.run("DELETE FROM passages WHERE key = ?", (key,))

    def _highest_key(self) -> int:
        if not self._has_tables():
            return 0
        return int(self._database.value("SELECT seq FROM sqlite_sequence WHERE name = 'passages'") or 0)

    def _forget_labels(self) -> None:
        self._database.run(
            """DELETE FROM labels
               WHERE NOT EXISTS (SELECT 1 FROM passages p WHERE p.label = labels.label AND p.label > 0)"""
        )

    def _label(self, passage: Passage) -> int:
        if passage.label is None:
            return 0
        self._database.run("INSERT OR IGNORE INTO labels (name) VALUES (?)", (passage.label,))
        return int(self._database.value("SELECT label FROM labels WHERE name = ?", (passage.label,)))
