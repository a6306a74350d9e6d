"""The folders that worlds live in: one long-term memory for all, an empty folder for each."""

from __future__ import annotations

import itertools
from pathlib import Path

from indexer import Index
from memory_service.memories.long_term import LongTermMemory
from memory_service.memories.store import MemoryStore
from memory_service.storage.files.document_files import FileDocuments
from memory_service.storage.files.log_folder import LogFolder
from tests.memory_service.storage.in_memory_records import erasures
from tests.properties.world import START, World
from tests.storages import LogCase


class Homes:
    """Makes worlds below a folder.

    Args:
        root: The folder.
        logs: Where their sessions are kept.
    """

    def __init__(self, root: Path, logs: LogCase) -> None:
        self._root = root
        self._logs = logs
        self._numbers = itertools.count()
        folder = root / "memory"
        folder.mkdir(parents=True)
        files, others = MemoryStore(FileDocuments(folder), now=lambda: START), LogFolder(folder / "sessions")
        self._memory = LongTermMemory(files, Index(folder, None), erasures(), lambda: others)

    def world(self, window: int) -> World:
        return World(self._root / f"world{next(self._numbers)}", window, self._memory, self._logs)

    def close(self) -> None:
        self._memory.close()
