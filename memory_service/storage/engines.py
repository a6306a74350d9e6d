"""Engines of storage: the one place that a new engine is added to."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from memory_service.errors import InvalidRequest

if TYPE_CHECKING:
    from memory_service.config import Settings
    from memory_service.storage.base import Storage


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
