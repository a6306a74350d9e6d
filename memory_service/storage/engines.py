"""Engines of storage: the one place that a new engine is added to."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memory_service.config import Settings
    from memory_service.storage.base import Storage


def open_storage(settings: Settings) -> Storage:
    """The storage of the home that the settings name; the code of its engine alone is loaded."""
    from memory_service.storage.files.file_storage import FileStorage

    return FileStorage(settings.home, index_store=settings.store, extra_paths=settings.extra_paths)
