"""Engines of storage: the one place that a new engine is added to."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from memory_service.errors import Conflict, InvalidRequest
from memory_service.home import check_format, server_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from memory_service.config import Settings
    from memory_service.storage.base import Storage
    from memory_service.storage.home_move import HomeMove

_DATABASES = ("postgresql://", "postgres://")


class StorageMigration(NamedTuple):
    """The steps by which the tables of a database came to this version.

    Attributes:
        database: Where it is.
        steps: Names of those that were missing, in order; empty if none was.
    """

    database: str
    steps: list[str]


def open_storage(settings: Settings) -> Storage:
    """The storage of the home that the settings name; the code of its engine alone is loaded."""
    if address := settings.database_url.get_secret_value():
        from memory_service.storage.postgres.postgres_storage import PostgresStorage

        return PostgresStorage(
            address, direct_address=settings.database_direct_url.get_secret_value(), home=settings.home
        )
    from memory_service.storage.files.file_storage import FileStorage

    return FileStorage(settings.home, index_store=settings.store, extra_paths=settings.extra_paths)


def migrate_storage(settings: Settings) -> StorageMigration:
    """Brings the tables of the database that the settings name to this version.

    Raises:
        InvalidRequest: They name none.
        StorageFailed: The database is newer, or does not do it; the steps before stay.
    """
    address = settings.database_url.get_secret_value()
    if not address:
        raise InvalidRequest(
            f"The home {settings.home} is in files, which need no migration. Set database_url to migrate a database."
        )
    from memory_service.storage.postgres.postgres_storage import migrate_database

    return StorageMigration(*migrate_database(address, settings.database_direct_url.get_secret_value()))


def rewrite_storage(settings: Settings) -> StorageMigration:
    """Takes what was erased out of the files of the database that the settings name; the tables that were rewritten.

    Raises:
        InvalidRequest: They name none.
        StorageFailed: A table could not be rewritten.
    """
    if not settings.database_url.get_secret_value():
        raise InvalidRequest(
            f"The home {settings.home} is in files, where nothing is left of what is erased. There is nothing to do."
        )
    with closing(open_storage(settings)) as storage:
        return StorageMigration(storage.place, list(storage.rewrite()))


def move_storage(
    settings: Settings, source: str, target: str, *, progress: Callable[[str, int, int], object] = lambda *_: None
) -> HomeMove:
    """Moves a home from one place to another: the folder of a home, the address of a database, or that of the settings.

    Args:
        settings: The settings.
        source: Where it is; empty for the storage that the settings name.
        target: Where it goes; the same.
        progress: Is told the workspace at hand, and how many of its items are copied and are to be.

    Raises:
        InvalidRequest: A place is none, or nothing is there.
        Conflict: A server works on one of the two, or the target has something else.
        StorageFailed: One of the two cannot be read or written; the same again goes on.
    """
    from memory_service.storage.home_move import move_home

    with closing(_storage_at(settings, source)) as origin, closing(_storage_at(settings, target)) as goal:
        return move_home(origin, goal, receipt_days=settings.receipt_days, progress=progress)


def _storage_at(settings: Settings, place: str) -> Storage:
    """The storage of a folder or an address."""
    address = place if place.startswith(_DATABASES) else "" if place else settings.database_url.get_secret_value()
    if address:
        from indexer.stores import is_address
        from memory_service.storage.postgres.postgres_storage import PostgresStorage

        if not is_address(address):
            raise InvalidRequest(
                "The address of the database cannot be read. Write it as database_url has it, "
                "postgresql://user:password@host:5432/name."
            )
        direct = settings.database_direct_url if address == settings.database_url.get_secret_value() else None
        direct_address = direct.get_secret_value() if direct else ""
        return PostgresStorage(address, direct_address=direct_address, home=settings.home)
    if "://" in place:
        raise InvalidRequest(
            f"A home is in a folder or at an address postgresql://…, not at {place.partition(':')[0]}:."
        )
    from memory_service.storage.files.file_storage import FileStorage

    folder = Path(place).expanduser().absolute() if place else settings.home
    check_format(folder)
    if server := server_of(folder):
        raise Conflict(f"A server works on {folder}, at {server.url}. Stop it, and move then.")
    return FileStorage(folder, index_store=settings.store)
