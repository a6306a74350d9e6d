"""The storages that properties and campaigns run on: an engine is one entry more of `STORAGES`.

Invariants: what a storage holds for a home is told by the home's folder, so that another process finds it; whatever is
looked for is looked for in all bytes that it holds.
"""

from __future__ import annotations

import datetime as dt
import json
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

import apsw

from memory_service.storage.base import Storage
from memory_service.storage.engines import open_storage
from memory_service.storage.files.log_folder import LogFolder
from memory_service.storage.logs import LogStore
from memory_service.storage.sample import copy_sample
from tests.disk import recorded
from tests.memory_service.storage.memory_logs import MemoryLogs
from tests.serving import settings

Clock = Callable[[], dt.datetime]


def sample_folder(home: Path, **options: Any) -> Path:
    """A copy of the bundled sample in a home on the disk; gives the folder of its workspace."""
    with closing(open_storage(settings(home))) as storage:
        copy_sample(storage, **options)
    return home / "default"


def write_documents(home: Path, texts: Mapping[str, str], workspace: str = "default") -> None:
    """Write memory files as somebody beside the service does, on whichever engine."""
    with closing(open_storage(settings(home))) as storage:
        storage.make(workspace)
        documents = storage.workspace(workspace).documents
        for path, text in texts.items():
            assert documents.replace(path, text.encode(), expected=documents.revision(path))


def read_documents(home: Path, workspace: str = "default") -> dict[str, str]:
    """All memory files, on whichever engine."""
    with closing(open_storage(settings(home))) as storage:
        documents = storage.workspace(workspace).documents
        return {path: documents.read(path).raw.decode() for path in sorted(documents.scan().documents)}


class StorageCase(ABC):
    """An engine of storage, for tests that run on each."""

    @abstractmethod
    def settings(self, home: Path) -> dict[str, object]:
        """The settings that choose it for a home."""

    @abstractmethod
    def copy(self, home: Path, target: Path) -> None:
        """All that it holds for a home, for another one that is not there yet."""

    @abstractmethod
    def remove(self, home: Path) -> None:
        """Removes all that it holds for a home."""

    @abstractmethod
    def places(self, home: Path) -> Iterator[tuple[str, bytes]]:
        """The places that hold bytes for a home, and these; another process may be at work on them."""

    @abstractmethod
    def steps(self, home: Path, before: Callable[[], None]) -> AbstractContextManager[None]:
        """Calls something before each step that a block of this process takes; connections that are open already do
        not count."""

    def open(self, home: Path) -> Storage:
        """The storage of a home, as the service opens it."""
        return open_storage(settings(home, **self.settings(home)))

    def environment(self, home: Path) -> dict[str, str]:
        """The variables that choose it in another process."""
        return {f"MEMORY_SERVICE_{name.upper()}": f"{value}" for name, value in self.settings(home).items()}

    def found(self, home: Path, text: str) -> list[str]:
        """The places that hold a text, as it is or in JSON."""
        words = [word for part in text.split() for word in (part.encode(), json.dumps(part)[1:-1].encode())]
        return [place for place, raw in self.places(home) if any(word in raw for word in words)]


class Files(StorageCase):
    """A home on the disk."""

    def settings(self, home: Path) -> dict[str, object]:
        """See `StorageCase`."""
        return {}

    def copy(self, home: Path, target: Path) -> None:
        """See `StorageCase`."""
        shutil.copytree(home, target, symlinks=True)

    def remove(self, home: Path) -> None:
        """See `StorageCase`."""
        shutil.rmtree(home)

    def places(self, home: Path) -> Iterator[tuple[str, bytes]]:
        """See `StorageCase`."""
        for path in sorted(home.rglob("*")):
            if path.is_file() and not path.is_symlink():
                yield str(path.relative_to(home)), path.read_bytes()

    @contextmanager
    def steps(self, home: Path, before: Callable[[], None]) -> Iterator[None]:
        """See `StorageCase`: calls of the file system, and statements of SQLite."""

        def watch(connection: apsw.Connection) -> None:
            connection.trace_v2(apsw.SQLITE_TRACE_STMT, lambda _: before())

        apsw.connection_hooks.append(watch)
        try:
            with recorded(home, lambda _: before()):
                yield
        finally:
            apsw.connection_hooks.remove(watch)


FILES = Files()
STORAGES: Mapping[str, StorageCase] = MappingProxyType({"files": FILES})


class LogCase(ABC):
    """A store of logs with a clock of its own, for tests of sessions in one process."""

    @abstractmethod
    def open(self, home: Path, now: Clock) -> LogStore:
        """The logs of a home, each time as another process would open them."""


class FileLogs(LogCase):
    """Logs below `sessions/`."""

    def open(self, home: Path, now: Clock) -> LogStore:
        """See `LogCase`."""
        return LogFolder(home / "sessions", now=now)


class LogsInMemory(LogCase):
    """Logs that go with the process."""

    def __init__(self) -> None:
        self._logs: dict[Path, MemoryLogs] = {}

    def open(self, home: Path, now: Clock) -> LogStore:
        """See `LogCase`."""
        return self._logs.setdefault(home, MemoryLogs(now=now))


LOGS: Mapping[str, type[LogCase]] = MappingProxyType({"files": FileLogs, "memory": LogsInMemory})
