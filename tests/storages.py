"""Storages for tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from memory_service.storage.files.file_storage import FileStorage
from memory_service.storage.sample import copy_sample


def sample_folder(home: Path, **options: Any) -> Path:
    """A copy of the bundled sample in a home on the disk; gives the folder of its workspace."""
    copy_sample(FileStorage(home), **options)
    return home / "default"
