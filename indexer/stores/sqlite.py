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
from functools import lru_cache
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from indexer.common.lru import LRU
from indexer.corpus import Corpus, CorpusFile, Floats, Ints
from indexer.errors import StoreCorrupt, StoreError, StoreLocked, StoreReplaced
from indexer.language.facts import FACT_RULES
from indexer.stores import sqlite_rows
from indexer.stores.base import (
    NEAREST_LIMIT,
    FileState,
    FileWrite,
    Head,
    OfFile,
    OfTags,
    OfThings,
    StoreCounts,
    StoredPassage,
    TermEntries,
    TermPosting,
    Unembedded,
    Version,
    Written,
)
from indexer.stores.sqlite_generations import SqliteBeside
from indexer.stores.sqlite_rows import (
    FACTS,
    PASSAGE_COLUMNS,
    SCHEMA,
    STATE_COLUMNS,
    TABLES,
    VECTORS,
    apply,
    corpus_files,
    drop_tables,
    fill,
    passage_of,
    passage_table,
    revisions_of,
    state_of,
    tag_conditions,
    vector_filter,
)
from indexer.types import (
    AUTHORITY,
    CUE_BITS,
    ROLE_BITS,
    ROLES,
    Fingerprint,
    LineRange,
    SearchFilter,
    SourceKind,
    Vectors,
    short_path,
)

if TYPE_CHECKING:
    from indexer.stores.sqlite_database import Database, Row


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


class _Growth(NamedTuple):
    """A stretch of a file's revisions in which passages were only added at its end.

    Attributes:
        since: The revision before the first of them.
        until: The last of them.
        start: Ordinal of the first passage that was added.
        end: Number of passages in the end.
    """

    since: int
    until: int
    start: int
    end: int

    def keeps(self, count: int, before: int, now: int) -> bool:
        """True if so many passages of an earlier revision are the first ones of a later one."""
        return self.since <= before <= now <= self.until and (before > self.since or count <= self.start)


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
        self._seen = False
        self._grown: LRU[str, _Growth] = LRU(_GROWN_FILES)
        self._after = after
        self.beside = SqliteBeside(path, self._database, lambda place: SqliteStore(place, after=self))
        self.segments = SqliteSegments(path, self._database)

    def begin(
        self, fingerprint: Fingerprint, *, only_missing: bool = False, keeping: Fingerprint | None = None
    ) -> Fingerprint:
        """See `IndexStore`."""
        with self._database.writing():
            self._refuse_foreign()
            stored = self._now().fingerprint
            if keeping is not None:
                return self._take_vectors(fingerprint) if stored == keeping else stored or keeping
            if only_missing and stored is not None:
                return stored
            self._begin(fingerprint)
        return fingerprint

    def _begin(self, fingerprint: Fingerprint) -> None:
        # Other processes hold older revisions and keys in memory, maybe of a file that was deleted:
        # both go on from where they were, and from the clock (µs) where nothing tells where that was.
        now, after = time.time_ns() // 1000, self._after
        revision = max(now, self._now().revision + 1, after._now().revision + _AHEAD if after else 0)
        highest = max(now, self._highest_key(), after._highest_key() + _AHEAD if after else 0)
        drop_tables(self._database)
        self._database.run(TABLES)
        if fingerprint.dimensions:
            self._database.run(VECTORS.format(dimensions=fingerprint.dimensions))
        self._database.run(FACTS)
        self._database.run_many(
            "INSERT INTO meta VALUES (?, ?)",
            [
                ("fact_rules", FACT_RULES),
                ("fingerprint", _fingerprint_json(fingerprint)),
                ("revision", revision),
                ("generation", secrets.token_hex(8)),
            ],
        )
        self._database.run("INSERT INTO sqlite_sequence VALUES ('passages', ?)", (highest,))

    def _take_vectors(self, fingerprint: Fingerprint) -> Fingerprint:
        self._database.run(VECTORS.format(dimensions=fingerprint.dimensions))
        self._database.run("UPDATE meta SET value = ? WHERE name = 'fingerprint'", (_fingerprint_json(fingerprint),))
        return fingerprint

    def reading(self) -> AbstractContextManager[None]:
        """See `IndexStore`."""
        return self._database.reading() if self._database.exists() else nullcontext()

    def head(self, since: int | None = None) -> Head:
        """See `IndexStore`."""
        now = self._now()
        if since is None or now.revision == since:
            return now
        with self.reading():
            return self._changes(since)

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
        return {row[0]: state_of(row) for row in rows}

    def file_versions(self, limit: int | None = None) -> dict[str, Version]:
        """See `IndexStore`."""
        if not self._has_tables():
            return {}
        # An index of an earlier version has none, and its status is told all the same.
        column = self._database.value("SELECT name FROM pragma_table_info('files') WHERE name = 'stat'") or "x''"
        most = -1 if limit is None else limit
        return dict(self._database.rows(f"SELECT path, {column} FROM files LIMIT ?", (most,)))

    def passages(self, which: Sequence[int] | OfFile | Unembedded | OfThings | OfTags) -> dict[int, StoredPassage]:
        """See `IndexStore`."""
        match which:
            case OfFile():
                rows: Iterable[Row] = self._of_file(which)
            case Unembedded():
                rows = self._unembedded(which)
            case OfThings():
                rows = self._of_things(which)
            case OfTags(tags=tags):
                rows = self._of_tags(tags)
            case _:
                rows = self._by_keys(which)
        return {
            key: StoredPassage(key, path, source, ordinal, passage_of(rest), text_hash)
            for key, path, source, ordinal, text_hash, *rest in rows
        }

    def _by_keys(self, keys: Sequence[int]) -> Iterator[Row]:
        for start in range(0, len(keys), _BATCH):
            part = [int(key) for key in keys[start : start + _BATCH]]
            yield from self._database.rows(
                f"""SELECT {_STORED} FROM passages p JOIN files f USING (file) LEFT JOIN labels l USING (label)
                    WHERE p.key IN ({",".join("?" * len(part))})""",
                part,
            )

    def _of_file(self, which: OfFile) -> list[Row]:
        if not self._has_tables():
            return []
        # Without an end, all have a smaller position.
        some = "AND p.ordinal >= ?2 AND p.ordinal < coalesce(?3, p.ordinal + 1) ORDER BY p.ordinal"
        if which.first < 0:
            some = "AND ?3 IS NULL ORDER BY p.ordinal DESC LIMIT -?2"
        return self._database.rows(
            f"""SELECT {_STORED} FROM files f JOIN passages p USING (file) LEFT JOIN labels l USING (label)
                WHERE f.path = ?1 {some}""",
            (which.path, which.first, which.before),
        )

    def _unembedded(self, which: Unembedded) -> list[Row]:
        if not self._has_tables():
            return []
        paths, below = which.paths, which.below
        among, bound = (
            ("", ()) if paths is None else (_AMONG_PATHS, (json.dumps([path.rstrip("/") for path in paths]),))
        )
        # By that index, which is empty as a rule; by their keys, all passages would be looked at for a few.
        return self._database.rows(
            f"""SELECT {_STORED} FROM (
                    SELECT key FROM passages INDEXED BY passages_unembedded
                    WHERE NOT embedded AND key < ?{among} ORDER BY key DESC LIMIT ?) w
                CROSS JOIN passages p ON p.key = w.key JOIN files f USING (file) LEFT JOIN labels l USING (label)
                ORDER BY p.key DESC""",
            (_NO_KEY if below is None else below, *bound, which.limit),
        )

    def _of_things(self, which: OfThings) -> Iterator[Row]:
        if not self._now().fact_rules:
            return
        spoken = self._database.rows(
            """SELECT j.value FROM json_each(?) j WHERE
               (SELECT count(*) FROM (SELECT 1 FROM facts WHERE thing = j.value LIMIT ?)) = ?""",
            (json.dumps(which.things), which.least, which.least),
        )
        for (thing,) in spoken:
            for dated in ("p.written > 0", "p.written = 0"):
                yield from self._database.rows(
                    f"""SELECT {_STORED} FROM facts x JOIN passages p USING (key) JOIN files f USING (file)
                        LEFT JOIN labels l USING (label) WHERE x.thing = ? AND {dated}
                        ORDER BY min(p.marks >> {CUE_BITS} & {_ROLE_MASK}, {_LOWEST}), p.written >> 1 DESC,
                        p.ordinal DESC LIMIT ?""",
                    (thing, which.limit),
                )

    def _of_tags(self, tags: Sequence[str]) -> list[Row]:
        if not self._has_tables():
            return []
        those, bindings = tag_conditions(tags)
        return self._database.rows(
            f"""SELECT {_STORED} FROM passages p JOIN files f USING (file) LEFT JOIN labels l USING (label)
                WHERE {those}""",
            bindings,
        )

    def vectors_of_texts(self, text_hashes: Iterable[bytes]) -> dict[bytes, bytes]:
        """See `IndexStore`."""
        hexed = json.dumps([text_hash.hex() for text_hash in text_hashes])
        rows = self._database.rows(
            """SELECT unhex(j.value), v.embedding FROM json_each(?) j CROSS JOIN vectors v ON v.key =
               (SELECT p.key FROM passages p WHERE p.text_hash = unhex(j.value) AND p.embedded LIMIT 1)""",
            (hexed,),
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
                self._require(made_with)
            self._database.run(FACTS)
            revision = self._next_revision()
            refused = apply(self._database, writes, revision) if writes else []
            if vectors:
                fill(self._database, vectors, revision)
            if fact_rules:
                self._database.run("INSERT OR REPLACE INTO meta VALUES ('fact_rules', ?)", (fact_rules,))
        self._note_growth(writes, refused, revision)
        return Written(revision=revision, refused=tuple(refused))

    def _note_growth(self, writes: Sequence[FileWrite], refused: Collection[str], revision: int) -> None:
        """Remember of each file between which of its revisions passages were only added at its end."""
        for write in writes:
            if write.state is None or write.moved or write.removed or write.path in refused:
                self._grown.pop(write.path)
            elif write.inserted:
                ordinals = [new.ordinal for new in write.inserted]
                before = self._grown.get(write.path)
                if before is None or before.until != write.expected_revision or min(ordinals) < before.end:
                    before = _Growth(write.expected_revision, 0, min(ordinals), 0)
                self._grown[write.path] = before._replace(until=revision, end=max(ordinals) + 1)

    def corpus(self, previous: Corpus | None, *, since: int = 0) -> Corpus:
        """See `IndexStore`."""
        with self.reading():
            now = self._now()
            revision, generation = now.revision, now.generation
            if previous is not None and (previous.generation, previous.since) != (generation, since):
                previous = None
            if previous is not None and previous.revision == revision:
                return previous
            if not revision:
                return Corpus(revision=0, files=(), label_names={}, since=since)
            if previous is not None and previous.revision > revision:
                previous = None
            changes = self._changes(since if previous is None else previous.revision)
            files = self._files(changes.files, previous.files if previous is not None else ())
            names = {row[0]: row[1] for row in self._database.rows("SELECT label, name FROM labels")}
        if previous is not None:
            stale = {file for file, _, _ in changes.files}.union(changes.gone)
            files = [file for file in previous.files if file.file not in stale] + files
        files.sort(key=attrgetter("path"))
        return Corpus(revision=revision, files=tuple(files), label_names=names, generation=generation, since=since)

    def _files(self, changed: Sequence[tuple[int, str, SourceKind]], known: Sequence[CorpusFile]) -> list[CorpusFile]:
        """Changed files as they are now; of those that only grew what is known is not read again."""
        known_of = {file.file: file for file in known}
        revisions = revisions_of(self._database, [number for number, _, _ in changed])
        grown = dict[int, Ints]()
        for number, path, _ in changed:
            before, growth = known_of.get(number), self._grown.get(path)
            if before and growth and growth.keeps(len(before.table), before.revision, revisions[number]):
                rest = passage_table(self._database, [number], first=len(before.table))
                grown[number] = np.concatenate([before.table, rest[:, 1:]])
        table = passage_table(self._database, [number for number, _, _ in changed if number not in grown])
        return corpus_files(changed, table, grown, revisions)

    def postings(self, terms: Collection[str] | None, *, among: Collection[int] | None = None) -> list[TermPosting]:
        """See `IndexStore`."""
        if not self._has_tables():
            return []
        wanted = list((terms or ()) if among is None else self._occurring(terms, among))
        found = list[TermPosting]()
        # One row for each term: between two rows, SQLite gives every other thread its turn.
        for place, keys, counts in self._database.rows(_POSTINGS, (json.dumps(wanted),)):
            table = np.array([np.fromstring(keys, np.int64, sep=","), np.fromstring(counts, np.int64, sep=",")])
            table = table[:, np.argsort(table[0], kind="stable")]
            if among is not None:
                table = table[:, np.isin(table[0], list(among))]
            found.append(TermPosting(term=wanted[place], keys=table[0], counts=table[1]))
        return found

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
        hidden = self._keys_within(filter.without)
        if limit + len(hidden) <= NEAREST_LIMIT:
            limit, filter = limit + len(hidden), replace(filter, without=())
        else:
            hidden = set()
        where, bindings = vector_filter(filter)
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

    def _has_tables(self) -> bool:
        # Looking must not make the file: an index appears when something is stored in it.
        return self._database.exists() and bool(self._database.value("SELECT 1 FROM sqlite_schema WHERE name = 'meta'"))

    def _require(self, made_with: Fingerprint) -> None:
        if self._now().fingerprint != made_with:
            raise StoreReplaced(
                f"The index {short_path(self.path)} was made anew by another process. "
                "Run `memory-service reindex` again."
            )

    def _next_revision(self) -> int:
        """The revision of the write at hand."""
        revision = self._now().revision + 1
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

    def _now(self) -> Head:
        # One statement: a `begin` between two would give a head that never was.
        noted: dict[str, Any] = dict(
            self._meta_rows(
                "SELECT name, value FROM meta WHERE name IN ('fingerprint', 'generation', 'revision', 'fact_rules')"
            )
        )
        return Head(
            revision=int(noted.get("revision", 0)),
            generation=str(noted.get("generation", "")),
            fingerprint=_fingerprint(noted["fingerprint"]) if "fingerprint" in noted else None,
            fact_rules=str(noted.get("fact_rules", "")),
        )

    def _meta_rows(self, query: str) -> list[Row]:
        """The result of a query of `meta`; nothing where nothing is stored."""
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

    def _changes(self, revision: int) -> Head:
        now = self._now()
        if not now.revision:
            return now
        files = self._database.rows("SELECT file, path, source FROM files WHERE revision > ?", (revision,))
        gone = self._database.rows("SELECT file FROM gone WHERE revision > ?", (revision,))
        return replace(now, files=tuple(files), gone=tuple(row[0] for row in gone))

    def _highest_key(self) -> int:
        if not self._has_tables():
            return 0
        return int(self._database.value("SELECT seq FROM sqlite_sequence WHERE name = 'passages'") or 0)


class SqliteSegments:
    """The material of a packed segment of an index file; see `SegmentSource`."""

    def __init__(self, path: Path, database: Database) -> None:
        self._path = path
        self._database = database

    def path(self) -> Path | None:
        """See `SegmentSource`."""
        # Beside the file itself, not beside a link to it: another generation has another one.
        return Path(f"{os.path.realpath(self._path)}.pack")

    def terms(self) -> Iterator[TermEntries]:
        """See `SegmentSource`."""
        return sqlite_rows.term_entries(self._database)

    def vectors(self) -> Iterator[tuple[Ints, Vectors]]:
        """See `SegmentSource`."""
        return sqlite_rows.vectors(self._database)


@lru_cache(maxsize=64)
def _fingerprint(stored: str) -> Fingerprint:
    return Fingerprint(**json.loads(stored))


def _fingerprint_json(fingerprint: Fingerprint) -> str:
    """A fingerprint as it is stored."""
    return json.dumps({name: getattr(fingerprint, name) for name in ("model", "dimensions", "rules", "schema")})
