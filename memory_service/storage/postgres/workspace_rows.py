"""The rows of one workspace: its transactions, errors of the database as those of the service, numbers of states.

Invariants: looking at a workspace does not make it; a number that stands for a state is never given again, whatever a
restored backup or a standby has forgotten.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, LiteralString

from indexer import StoreError
from indexer.stores import PostgresDatabase, Transaction
from memory_service.errors import StorageFailed


@contextmanager
def storage_errors() -> Iterator[None]:
    """Turns what a database says into an error of the service."""
    try:
        yield
    except StoreError as error:
        raise StorageFailed(str(error)) from error


def new_state() -> int:
    """A number for a state, which no other one has."""
    return secrets.randbits(62) + 1


class WorkspaceRows:
    """The rows of one workspace, which need not be there.

    Args:
        database: The database.
        workspace: Name of the workspace.
    """

    def __init__(self, database: PostgresDatabase, workspace: str) -> None:
        self._database = database
        self._workspace = workspace

    @property
    def are_there(self) -> bool:
        """True if the workspace is there."""
        with storage_errors():
            return self._database.number(self._workspace) is not None

    def read(self, query: LiteralString, *values: object, **named_values: object) -> list[tuple[Any, ...]]:
        """The rows that one statement gives, whose first value, or `ws`, is the workspace; none where there is none.

        Raises:
            StorageFailed: The database does not answer.
        """
        with storage_errors():
            number = self._database.number(self._workspace)
            if number is None:
                return []
            values_given = {**named_values, "ws": number} if named_values else [number, *values]
            return self._database.run(query, values_given, workspace=number, read_only=True, binary=True).fetchall()

    def write(self, query: LiteralString, values: Mapping[str, object]) -> list[tuple[Any, ...]]:
        """The rows that one statement changes and returns, one of whose values is the workspace `ws`.

        They are durable, unless the thread is within a transaction.

        Raises:
            StorageFailed: The database did not take it.
        """
        with storage_errors():
            number = self._database.number(self._workspace, make=True)
            assert number is not None
            return self._database.run(query, {**values, "ws": number}, workspace=number).fetchall()

    @contextmanager
    def reading(self) -> Iterator[Transaction | None]:
        """A transaction that sees one state; None where there is no workspace.

        Raises:
            StorageFailed: The database does not answer.
        """
        with storage_errors():
            number = self._database.number(self._workspace)
            if number is None:
                yield None
                return
            with self._database.transaction(number, read_only=True) as transaction:
                yield transaction

    @contextmanager
    def writing(self) -> Iterator[Transaction]:
        """A transaction that changes rows, of a workspace that is made if need be; durable when the outermost ends.

        Raises:
            StorageFailed: The database did not take it; then nothing has changed.
        """
        with storage_errors():
            number = self._database.number(self._workspace, make=True)
            assert number is not None
            with self._database.transaction(number) as transaction:
                yield transaction
