"""The index of a workspace in PostgreSQL: rows of passages, their terms and vectors; ranking stays in the process.

Invariants: see `postgres_heads`. Nothing here needs an extension, a setting of a session, or a connection of its own
but the lock of a rebuild. All that a process holds of it is derived, and void with the generation.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Collection, Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import LiteralString

from indexer.corpus import Corpus, Floats, Ints
from indexer.errors import StoreCorrupt, StoreReplaced
from indexer.language.facts import FACT_RULES
from indexer.stores.base import (
    FileState,
    FileWrite,
    Head,
    OfTags,
    StoreCounts,
    StoredPassage,
    TermPosting,
    Version,
    Which,
    Written,
)
from indexer.stores.corpus_reader import CorpusReader, CorpusRows
from indexer.stores.postgres.postgres_database import PostgresDatabase, Transaction
from indexer.stores.postgres.postgres_generations import PostgresBeside
from indexer.stores.postgres.postgres_heads import HeadRow, PostgresHeads, bytes_of, text_of
from indexer.stores.postgres.postgres_nearest import PostgresVectors, vectors_of
from indexer.stores.postgres.postgres_packs import PostgresSegments
from indexer.stores.postgres.postgres_passages import read_passage_table, read_passages, read_tagged_keys
from indexer.stores.postgres.postgres_words import PostgresWords
from indexer.stores.postgres.postgres_writes import PostgresWrite
from indexer.stores.row_values import fingerprint_json, tag_posting
from indexer.types import Fingerprint, SearchFilter, Vectors

_SCHEMA = 1
# While a generation is made, the one in use takes fewer revisions and keys than this.
_AHEAD = 1 << 32


class PostgresIndex:
    """An `IndexStore` in a PostgreSQL database. See the protocol for what each method promises.

    Args:
        database: The database.
        workspace: Name of the workspace.
        scratch: Folder of this machine for what is derived, such as the packed part; of this database alone.
        gen: Number of the generation; None for the one in use.
    """

    schema = _SCHEMA

    def __init__(self, database: PostgresDatabase, workspace: str, scratch: Path, *, gen: int | None = None) -> None:
        self._database = database
        self._workspace = workspace
        self._gen = gen
        self._heads = heads = PostgresHeads(database, workspace, gen)
        self._words = PostgresWords(heads)
        self._vectors = PostgresVectors(heads, scratch)
        self._corpus = CorpusReader(
            CorpusRows(
                head=heads.head,
                names=self._label_names,
                revisions=self._revisions,
                table=lambda files, first: read_passage_table(heads, files, first),
            )
        )
        self.beside = PostgresBeside(heads, lambda other: PostgresIndex(database, workspace, scratch, gen=other))
        self.segments = PostgresSegments(heads, self._words, scratch)

    # Reads.

    def head(self, since: int | None = None) -> Head:
        """See `IndexStore`."""
        return self._heads.head(since)

    def file_states(self, paths: Collection[str] | None = None) -> dict[str, FileState]:
        """See `IndexStore`."""
        among: LiteralString = "" if paths is None else "AND path = ANY(%(paths)s::bytea[])"
        rows = self._heads.rows(
            f"""SELECT path, source, size_bytes, version, checked_ns, content_hash, failure, revision FROM index_files
                WHERE ws = %(ws)s AND gen = %(gen)s {among}""",
            paths=[bytes_of(path) for path in paths or ()],
        )
        return {text_of(path): FileState(text_of(path), *rest) for path, *rest in rows}

    def file_versions(self, limit: int | None = None) -> dict[str, Version]:
        """See `IndexStore`."""
        rows = self._heads.rows(
            "SELECT path, known_version FROM index_files WHERE ws = %(ws)s AND gen = %(gen)s LIMIT %(limit)s",
            limit=limit,
        )
        return {text_of(path): version for path, version in rows}

    def passages(self, which: Which) -> dict[int, StoredPassage]:
        """See `IndexStore`."""
        return read_passages(self._heads, which)

    def corpus(self, previous: Corpus | None, *, since: int = 0) -> Corpus:
        """See `IndexStore`."""
        with self._heads.reading():
            return self._corpus.read(previous, since=since)

    def postings(
        self, terms: Collection[str] | OfTags | None, *, among: Collection[int] | None = None
    ) -> list[TermPosting]:
        """See `IndexStore`."""
        if isinstance(terms, OfTags):
            return [tag_posting(read_tagged_keys(self._heads, terms.tags))]
        if among is not None:
            return self._words.among(terms, among)
        return self._words.postings(self._words.every_term() if terms is None else terms)

    def nearest(self, vector: Vectors, limit: int, filter: SearchFilter) -> tuple[Ints, Floats]:
        """See `IndexStore`."""
        return self._vectors.nearest(vector, limit, filter)

    def vectors(self, keys: Sequence[int] | None) -> tuple[Ints, Vectors]:
        """See `IndexStore`."""
        # One statement for both would be planned anew each time.
        among: LiteralString = "" if keys is None else "AND key = ANY(%(keys)s::bigint[])"
        rows = self._heads.rows(
            f"SELECT key, vector FROM index_vectors WHERE ws = %(ws)s AND gen = %(gen)s {among}",
            keys=[int(key) for key in keys or ()],
        )
        return vectors_of(rows)

    def counts(self) -> StoreCounts:
        """See `IndexStore`; the bytes are those of what is stored, without what the database adds."""
        rows = self._heads.rows(
            """SELECT (SELECT count(*) FROM index_files WHERE ws = %(ws)s AND gen = %(gen)s),
                      (SELECT count(*) FROM index_files WHERE ws = %(ws)s AND gen = %(gen)s AND failure <> ''),
                      count(*), coalesce(sum(200 + octet_length(text) + octet_length(terms)), 0)::bigint,
                      (SELECT count(*) FROM index_vectors WHERE ws = %(ws)s AND gen = %(gen)s),
                      (SELECT updated_at FROM index_heads WHERE ws = %(ws)s AND gen = %(gen)s)
               FROM index_passages WHERE ws = %(ws)s AND gen = %(gen)s"""
        )
        if not rows:
            return StoreCounts(files=0, passages=0, embedded=0, failed_files=0, size_bytes=0, updated_at=None)
        files, failed_files, passages, size, embedded, updated_at = rows[0]
        fingerprint = self.head().fingerprint
        size += embedded * (100 + 4 * fingerprint.dimensions if fingerprint else 0)
        return StoreCounts(
            files=files,
            passages=passages,
            embedded=embedded,
            failed_files=failed_files,
            size_bytes=size,
            updated_at=updated_at,
        )

    def vectors_of_texts(self, text_hashes: Iterable[bytes]) -> dict[bytes, bytes]:
        """See `IndexStore`."""
        rows = self._heads.rows(
            """SELECT DISTINCT ON (p.text_hash) p.text_hash, v.vector FROM index_passages p
               JOIN index_vectors v ON v.ws = p.ws AND v.gen = p.gen AND v.key = p.key
               WHERE p.ws = %(ws)s AND p.gen = %(gen)s AND p.text_hash = ANY(%(hashes)s::bytea[])""",
            hashes=[*text_hashes],
        )
        return dict(rows)

    # Writes.

    def begin(
        self, fingerprint: Fingerprint, *, only_missing: bool = False, keeping: Fingerprint | None = None
    ) -> Fingerprint:
        """See `IndexStore`."""
        ws = self._database.reserved_number(self._workspace)
        with self._database.transaction(ws) as transaction:
            row = self._heads.lock(transaction)
            stored_fingerprint = row.fingerprint if row else None
            if keeping is not None:
                if row is None or stored_fingerprint != keeping:
                    return stored_fingerprint or keeping
                transaction.execute(
                    "UPDATE index_heads SET fingerprint = %(text)s WHERE ws = %(ws)s AND gen = %(gen)s",
                    {"ws": ws, "gen": row.gen, "text": fingerprint_json(fingerprint)},
                )
                return fingerprint
            if only_missing and stored_fingerprint is not None:
                return stored_fingerprint
            if self._begin(transaction, fingerprint, row):
                return fingerprint
        # Another one was first.
        return self.begin(fingerprint, only_missing=only_missing)

    def _begin(self, transaction: Transaction, fingerprint: Fingerprint, row: HeadRow | None) -> bool:
        live = row if self._gen is None else PostgresHeads(self._database, self._workspace).row()
        # Others hold older revisions and keys in memory: both go on from where they were, and from the clock (µs).
        ahead, now = _AHEAD if self._gen is not None else 1, time.time_ns() // 1000
        revision = max(now, row.revision + 1 if row else 0, live.revision + ahead if live else 0)
        last_key = max(now, row.last_key if row else 0, live.last_key + ahead if live else 0)
        gen = row.gen if row else self._gen or 1
        key = {"ws": transaction.workspace, "gen": gen}
        # Whatever is of a generation goes with its head.
        transaction.execute("DELETE FROM index_heads WHERE ws = %(ws)s AND gen = %(gen)s", key)
        cursor = transaction.execute(
            """INSERT INTO index_heads (ws, gen, live, name, fingerprint, fact_rules, revision, last_key, last_file,
               last_label) VALUES (%(ws)s, %(gen)s, %(live)s, %(name)s, %(fingerprint)s, %(rules)s, %(revision)s,
               %(key)s, 0, 0) ON CONFLICT DO NOTHING""",
            {
                **key,
                "live": self._gen is None or bool(row and live and row.gen == live.gen),
                "name": secrets.token_hex(8),
                "fingerprint": fingerprint_json(fingerprint),
                "rules": FACT_RULES,
                "revision": revision,
                "key": last_key,
            },
        )
        return cursor.rowcount == 1

    def write(
        self,
        writes: Sequence[FileWrite],
        *,
        vectors: Sequence[tuple[int, bytes]] = (),
        made_with: Fingerprint | None = None,
        fact_rules: str = "",
    ) -> Written:
        """See `IndexStore`."""
        with self._heads.writing() as (transaction, row):
            if made_with is not None and row.fingerprint != made_with:
                raise StoreReplaced(
                    f"The index of {self._workspace} was made anew by another process. "
                    "Run `memory-service reindex` again."
                )
            work = PostgresWrite(transaction, row, row.revision + 1)
            refused_paths = work.apply(writes)
            if vectors:
                work.fill(vectors)
            work.end(fact_rules)
        self._corpus.note(writes, refused_paths, work.revision)
        return Written(revision=work.revision, refused=tuple(refused_paths))

    # Lifecycle.

    def reading(self) -> AbstractContextManager[None]:
        """See `IndexStore`."""
        return self._heads.reading()

    def check(self) -> None:
        """See `IndexStore`; every page of its rows is read, and each passage has to be whole."""
        rows = self._heads.rows(
            """SELECT count(*) FILTER (WHERE f.file IS NULL OR (v.key IS NULL AND u.key IS NULL AND %(embeds)s)
                   OR octet_length(v.vector) <> 4 * %(dimensions)s
                   OR get_byte(p.terms || p.text || '\\x00'::bytea, octet_length(p.terms) + octet_length(p.text)) <> 0),
                   count(*)
               FROM index_passages p
               LEFT JOIN index_files f ON f.ws = p.ws AND f.gen = p.gen AND f.file = p.file
               LEFT JOIN index_vectors v ON v.ws = p.ws AND v.gen = p.gen AND v.key = p.key
               LEFT JOIN index_unembedded u ON u.ws = p.ws AND u.gen = p.gen AND u.key = p.key
               WHERE p.ws = %(ws)s AND p.gen = %(gen)s""",
            **self._check_values(),
        )
        if rows and rows[0][0]:
            raise StoreCorrupt(
                f"The index of {self._workspace} in {self._database.place} is damaged ({rows[0][0]} passages are not "
                "whole). Run `memory-service reindex --full`; no memory is lost."
            )

    def _check_values(self) -> dict[str, int | bool]:
        fingerprint = self.head().fingerprint
        return {"dimensions": fingerprint.dimensions if fingerprint else 0, "embeds": True}

    def scrub(self) -> None:
        """See `IndexStore`; pages of the database that held what is gone are rewritten by its own maintenance."""
        self._words.forget()
        self._vectors.forget()

    def close(self) -> None:
        """See `IndexStore`; the connections are those of the database, which others use too."""
        self._words.forget()
        self._vectors.forget()

    def _label_names(self) -> dict[int, str]:
        rows = self._heads.rows("SELECT label, name FROM index_labels WHERE ws = %(ws)s AND gen = %(gen)s")
        return {label: text_of(name) for label, name in rows}

    def _revisions(self, files: Sequence[int]) -> dict[int, int]:
        rows = self._heads.rows(
            """SELECT file, revision FROM index_files
               WHERE ws = %(ws)s AND gen = %(gen)s AND file = ANY(%(files)s::bigint[])""",
            files=[*files],
        )
        return dict(rows)


def open_postgres_index(database: PostgresDatabase, workspace: str, scratch: Path) -> PostgresIndex:
    """The index of a workspace in a database, whose tables are there."""
    return PostgresIndex(database, workspace, scratch)
