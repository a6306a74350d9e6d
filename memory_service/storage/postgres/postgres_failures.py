"""The failures of a database, as those of a storage."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from indexer import StoreError
from memory_service.errors import StorageFailed


@contextmanager
def storage_failures() -> Iterator[None]:
    """Turns errors of the database, which say what failed and what to do, into `StorageFailed`."""
    try:
        yield
    except StoreError as error:
        raise StorageFailed(str(error)) from error
