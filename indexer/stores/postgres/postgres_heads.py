"""The head of an index in PostgreSQL: which generation a read or a write is of, and what may be given next.

Invariants: a write locks the head first, so that revisions, keys and numbers are given in the order of commits; within
one read the head is asked once. The name of a generation tells the incarnation of the database too: where a failover,
a crash or a restored copy may have taken something back, all that is known is void.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, LiteralString, NamedTuple

from indexer.errors import StoreReplaced
from indexer.stores.base import Head
from indexer.stores.postgres.postgres_database import INCARNATION, PostgresDatabase, Transaction
from indexer.stores.row_values import fingerprint_of
from indexer.types import Fingerprint

# A database that was restored, or copied, under the same name is another one, and so is a table that was filled anew.
_PLACE: Final[LiteralString] = (
    "(SELECT oid FROM pg_database WHERE datname = current_database()) || '/' || pg_relation_filenode('index_heads')"
)
_COLUMNS: Final[LiteralString] = (
    "gen, name, fingerprint, fact_rules, revision, last_key, last_file, last_label, "
    f"{_PLACE} || '/' || {INCARNATION} AS incarnation"
)
_LIVE: Final[LiteralString] = f"SELECT {_COLUMNS} FROM index_heads WHERE ws = %(ws)s AND live"
_FIXED: Final[LiteralString] = f"SELECT {_COLUMNS} FROM index_heads WHERE ws = %(ws)s AND gen = %(gen)s"
_ROUNDS = 100


class HeadRow(NamedTuple):
    """The row of a generation, and the incarnation of the database that it was read in."""

    gen: int
    name: str
    fingerprint_text: str
    fact_rules: str
    revision: int
    last_key: int
    last_file: int
    last_label: int
    incarnation: str

    @property
    def generation(self) -> str:
        """The name of the generation, as long as nothing of it can have been taken back."""
        return f"{self.name}-{hashlib.blake2b(self.incarnation.encode(), digest_size=6).hexdigest()}"

    @property
    def fingerprint(self) -> Fingerprint:
        """The fingerprint of the generation."""
        return fingerprint_of(self.fingerprint_text)


class _Reads(threading.local):
    depth = 0
    is_known = False
    row: HeadRow | None = None


class PostgresHeads:
    """The head of one generation of an index, or of the one in use, and the queries of its rows.

    Args:
        database: The database.
        workspace: Name of the workspace.
        gen: Number of the generation; None for the one in use.
    """

    def __init__(self, database: PostgresDatabase, workspace: str, gen: int | None = None) -> None:
        self.database = database
        self.workspace = workspace
        self.gen = gen
        self._reads = _Reads()

    def number(self) -> int | None:
        """Number of the workspace; None as long as it has none."""
        return self.database.number(self.workspace)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """One state for all reads of this thread within the block; blocks may nest."""
        ws = self.number() if self._reads.depth == 0 else None
        if ws is None:
            yield
            return
        self._reads.depth, self._reads.is_known = 1, False
        try:
            with self.database.transaction(ws, read_only=True):
                yield
        finally:
            self._reads.depth, self._reads.is_known, self._reads.row = 0, False, None

    def row(self) -> HeadRow | None:
        """The present row; None of a generation that was never begun."""
        if self._reads.is_known:
            return self._reads.row
        ws = self.number()
        if ws is None:
            return None
        with self.database.transaction(ws, read_only=True) as transaction:
            row = self._select(transaction, "")
        if self._reads.depth:
            self._reads.is_known, self._reads.row = True, row
        return row

    def head(self, since: int | None) -> Head:
        """See `IndexStore.head`."""
        now = self.row()
        if now is None:
            return Head(revision=0, generation="")
        head = Head(
            revision=now.revision,
            generation=now.generation,
            fingerprint=now.fingerprint,
            fact_rules=now.fact_rules,
        )
        if since is None or since == now.revision:
            return head
        with self.reading():
            return self._changes(since)

    def _changes(self, since: int) -> Head:
        now = self.row()
        assert now is not None
        files = self.rows(
            "SELECT file, path, source FROM index_files WHERE ws = %(ws)s AND gen = %(gen)s AND revision > %(since)s",
            since=since,
        )
        gone = self.rows(
            "SELECT file FROM index_gone WHERE ws = %(ws)s AND gen = %(gen)s AND revision > %(since)s", since=since
        )
        return Head(
            revision=now.revision,
            generation=now.generation,
            fingerprint=now.fingerprint,
            fact_rules=now.fact_rules,
            files=tuple((file, text_of(path), source) for file, path, source in files),
            gone=tuple(file for (file,) in gone),
        )

    def rows(self, query: LiteralString, **values: Any) -> Sequence[tuple[Any, ...]]:
        """Rows of a query about the generation, whose number is its `gen`; none where there is none."""
        with self.reading():
            now, ws = self.row(), self.number()
            if now is None or ws is None:
                return []
            with self.database.transaction(ws, read_only=True) as transaction:
                return transaction.rows(query, {"ws": ws, "gen": now.gen, **values}, binary=True)

    @contextmanager
    def writing(self) -> Iterator[tuple[Transaction, HeadRow]]:
        """A write of the generation, whose head no other changes meanwhile.

        Raises:
            StoreReplaced: It was never begun, or is gone.
        """
        ws = self.number()
        if ws is not None:
            with self.database.transaction(ws) as transaction:
                row = self.lock(transaction)
                if row is not None:
                    self._reads.is_known = False
                    yield transaction, row
                    self._reads.is_known = False
                    return
        raise StoreReplaced(
            f"The index of the workspace {self.workspace} is no more what it was. Run `memory-service reindex` again."
        )

    def lock(self, transaction: Transaction) -> HeadRow | None:
        """The present row, locked until the transaction ends; None of a generation that was never begun."""
        for _ in range(_ROUNDS):
            row = self._select(transaction, " FOR UPDATE")
            # Whoever waited for a row that is not the one any more is shown none: there may be another one.
            if row is not None or self._select(transaction, "") is None:
                return row
        raise StoreReplaced(f"The index of the workspace {self.workspace} is replaced again and again. Try again.")

    def row_of(self, transaction: Transaction) -> HeadRow | None:
        """The row as a transaction sees it now."""
        return self._select(transaction, "")

    def _select(self, transaction: Transaction, clause: LiteralString) -> HeadRow | None:
        if self.gen is None:
            row = transaction.row(_LIVE + clause, {"ws": transaction.workspace}, binary=True)
        else:
            row = transaction.row(_FIXED + clause, {"ws": transaction.workspace, "gen": self.gen}, binary=True)
        return HeadRow(*row) if row else None


def text_of(raw: bytes) -> str:
    """A text that is stored as bytes."""
    return raw.decode("utf-8", "surrogatepass")


def bytes_of(text: str) -> bytes:
    """A text as it is stored."""
    return text.encode("utf-8", "surrogatepass")
