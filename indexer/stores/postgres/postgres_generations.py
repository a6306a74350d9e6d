"""Generations of an index in PostgreSQL, by number: the one in use, the one being made, and leftovers.

Invariants: numbers only grow; one above that in use is being made, one below it is to be deleted. The switch is one
transaction. Whoever rebuilds holds a lock of the database on a connection of its own, which goes with it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final

from indexer.errors import StoreBusy, StoreError
from indexer.stores.base import BesideState, IndexStore, Unfinished
from indexer.stores.postgres.postgres_database import Transaction
from indexer.stores.postgres.postgres_heads import PostgresHeads
from indexer.types import Fingerprint

# The first half of the advisory locks of rebuilds; the other one is the number of the workspace.
_LOCK: Final = 1_769_235_301
_LOCK_SECONDS = 1.0
_POLL_SECONDS = 0.05


class PostgresBeside:
    """The next generation of an index; see `Beside`.

    Args:
        heads: The index.
        open_store: Opens the store of another generation.
    """

    def __init__(self, heads: PostgresHeads, open_store: Callable[[int], IndexStore]) -> None:
        self._heads = heads
        self._open_store = open_store
        self._next = 0
        self._is_held: Callable[[], bool] = lambda: False

    def state(self) -> BesideState:
        """See `Beside`."""
        ws = self._heads.number()
        if ws is None:
            return BesideState(running=False, others=False)
        with self._heads.database.transaction(ws, read_only=True) as transaction:
            row = transaction.row(
                """SELECT EXISTS (
                       SELECT FROM pg_locks WHERE locktype = 'advisory' AND classid = %(lock)s::bigint::oid AND granted
                       AND objid = %(ws)s::bigint::oid AND objsubid = 2
                       AND database = (SELECT oid FROM pg_database WHERE datname = current_database())),
                   EXISTS (SELECT FROM index_heads WHERE ws = %(ws)s AND NOT live)""",
                {"lock": _LOCK, "ws": ws},
            )
        return BesideState(*row) if row else BesideState(running=False, others=False)

    @contextmanager
    def hold_lock(self) -> Iterator[None]:
        """See `Beside`."""
        busy = (
            f"Another `reindex --full` of {self._heads.workspace} is running. "
            "Wait for it to end, or cancel it, and try again."
        )
        with hold_database_lock(self._heads, _LOCK, seconds=_LOCK_SECONDS, message=busy) as is_held:
            self._is_held = is_held
            self._delete_former()
            yield

    def unfinished_generation(self) -> Unfinished | None:
        """See `Beside`."""
        gen = self._unfinished_number()
        return Unfinished(f"generation {gen}", self._open_store(gen)) if gen else None

    def _unfinished_number(self) -> int:
        """Number of the generation that is being made; 0 for none."""
        ws = self._heads.number()
        if ws is None:
            return 0
        with self._heads.database.transaction(ws, read_only=True) as transaction:
            row = transaction.row(
                """SELECT max(gen) FROM index_heads WHERE ws = %(ws)s AND NOT live
                   AND gen > (SELECT gen FROM index_heads WHERE ws = %(ws)s AND live)""",
                {"ws": ws},
            )
        return int(row[0] or 0) if row else 0

    def next(self, fingerprint: Fingerprint) -> IndexStore:
        """See `Beside`."""
        gen = self._unfinished_number()
        if gen:
            store = self._open_store(gen)
            if store.head().fingerprint == fingerprint:
                self._next = gen
                return store
            self.remove()
        live = self._heads.row()
        # A number that was of a removed one is that of another generation with a name of its own.
        self._next = max(gen, live.gen if live else 0) + 1
        return self._open_store(self._next)

    def room(self) -> None:
        """See `Beside`; nobody here knows how much room the disk of a database has."""

    @contextmanager
    def switching(self) -> Iterator[Callable[[Callable[[str], None]], None]]:
        """See `Beside`; the switch is there when the block has ended."""
        with self._heads.writing() as (transaction, row):
            yield lambda reached: self._put_in_use(transaction, row.gen, reached)

    def _put_in_use(self, transaction: Transaction, former: int, reached: Callable[[str], None]) -> None:
        if not self._is_held():
            raise StoreError("The lock of the rebuild was lost. Run `memory-service reindex --full`.")
        key = {"ws": transaction.workspace, "former": former, "next": self._next}
        transaction.execute("UPDATE index_heads SET live = false WHERE ws = %(ws)s AND gen = %(former)s", key)
        reached("former one taken out of use")
        transaction.execute("UPDATE index_heads SET live = true WHERE ws = %(ws)s AND gen = %(next)s", key)
        reached("next one put in use")

    def remove(self) -> None:
        """See `Beside`."""
        self._delete("gen > (SELECT gen FROM index_heads WHERE ws = %(ws)s AND live)")

    def retire(self, reached: Callable[[str], None]) -> None:
        """See `Beside`; who reads it still goes on seeing it."""
        reached("switched")
        self._delete_former()

    def _delete_former(self) -> None:
        self._delete("gen < (SELECT gen FROM index_heads WHERE ws = %(ws)s AND live)")

    def _delete(self, which: str) -> None:
        ws = self._heads.number()
        if ws is not None:
            with self._heads.database.transaction(ws) as transaction:
                transaction.execute(f"DELETE FROM index_heads WHERE ws = %(ws)s AND NOT live AND {which}", {"ws": ws})


@contextmanager
def hold_database_lock(
    heads: PostgresHeads, lock: int, *, seconds: float, message: str
) -> Iterator[Callable[[], bool]]:
    """Hold an advisory lock of a workspace within the block, on a connection of its own, with which it is lost.

    The value of the block tells, while it runs, whether the lock is held.

    Raises:
        StoreBusy: Somebody else holds it, as the message says.
    """
    database = heads.database
    key = [lock, database.reserved_number(heads.workspace)]
    connection = database.connect()

    def try_lock() -> bool:
        with database.errors():
            row = connection.execute("SELECT pg_try_advisory_lock(%s::int, %s::int)", key).fetchone()
        return bool(row and row[0])

    try:
        deadline = time.monotonic() + seconds
        while not try_lock():
            if time.monotonic() >= deadline:
                raise StoreBusy(message)
            time.sleep(_POLL_SECONDS)
        yield try_lock
    finally:
        with suppress(Exception):
            connection.close()
