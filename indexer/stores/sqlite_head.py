"""The head of an index file: its fingerprint, generation and revision, and which files changed since one.

Invariants: a revision of a generation is given once; where an older file was put in the place of the index, whose
revisions and keys will be given again, it gets another generation before anything of it is told.
"""

from __future__ import annotations

import datetime as dt
import secrets
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from indexer.errors import StoreCorrupt, StoreError, StoreReplaced
from indexer.stores.base import Head
from indexer.stores.row_values import fingerprint_of
from indexer.types import Fingerprint, short_path

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
