"""The storages that properties and campaigns run on: an engine is one entry more of `STORAGES`.

Invariants: what a storage holds for a home is told by the home's folder, so that another process finds it; whatever is
looked for is looked for in all bytes that it holds.
"""

from __future__ import annotations

import atexit
import datetime as dt
import hashlib
import json
import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import apsw
import pytest

from memory_service.storage.base import Storage
from memory_service.storage.engines import open_storage
from memory_service.storage.files.log_folder import LogFolder
from memory_service.storage.logs import LogStore
from memory_service.storage.sample import copy_sample
from tests.disk import recorded
from tests.memory_service.storage.memory_logs import MemoryLogs
from tests.postgres import databases, is_installed
from tests.serving import settings

if TYPE_CHECKING:
    import psycopg

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


class Databases(StorageCase):
    """A home in a database of its own, on one server for the process; made when it is first asked for.

    What a table holds is looked for in its rows: that no page of the data folder has it once the database was
    rewritten, the tests of rewrites show.
    """

    def settings(self, home: Path) -> dict[str, object]:
        """See `StorageCase`."""
        name, (server, template) = self._name(home), _databases()
        with _connected(server) as connection:
            if connection.execute("SELECT FROM pg_database WHERE datname = %s", [name]).fetchone() is None:
                _copy_database(connection, template, name)
        return {"database_url": f"{server.rpartition('/')[0]}/{name}"}

    def copy(self, home: Path, target: Path) -> None:
        """See `StorageCase`."""
        if home.exists():
            shutil.copytree(home, target, symlinks=True)
        with _connected(_databases()[0]) as connection:
            _copy_database(connection, self._name(home), self._name(target))

    def remove(self, home: Path) -> None:
        """See `StorageCase`."""
        shutil.rmtree(home, ignore_errors=True)
        with _connected(_databases()[0]) as connection:
            connection.execute(f'DROP DATABASE "{self._name(home)}" WITH (FORCE)'.encode())

    def places(self, home: Path) -> Iterator[tuple[str, bytes]]:
        """See `StorageCase`."""
        yield from FILES.places(home)
        tables = (
            "SELECT table_name, string_agg(format(CASE data_type WHEN 'bytea' THEN '%I' ELSE '%I::text' END, "
            "column_name), ', ') FROM information_schema.columns WHERE table_schema = 'public' GROUP BY 1"
        )
        with _connected(f"{self.settings(home)['database_url']}") as connection:
            for table, columns in connection.execute(tables).fetchall():
                for row in connection.execute(f'SELECT {columns} FROM "{table}"'.encode()):
                    values = (value if isinstance(value, bytes) else f"{value}".encode() for value in row)
                    yield table, b"\0".join(values)

    @contextmanager
    def steps(self, home: Path, before: Callable[[], None]) -> Iterator[None]:
        """See `StorageCase`: calls of the file system, and each wait for the server."""
        from psycopg import Connection

        wait = Connection.wait

        def step(*arguments: Any, **named: Any) -> Any:
            before()
            return wait(*arguments, **named)

        with pytest.MonkeyPatch.context() as patch, recorded(home, lambda _: before()):
            patch.setattr(Connection, "wait", step)
            yield

    def _name(self, home: Path) -> str:
        return f"home_{hashlib.sha256(os.fsencode(os.path.realpath(home))).hexdigest()[:24]}"


@cache
def _databases() -> tuple[str, str]:
    """The address of a server that ends with this process, and the name of a database of it with all tables."""
    made = ExitStack()
    atexit.register(made.close)
    databases_made = made.enter_context(databases())
    address, _, template = databases_made.migrated().rpartition("/")
    return f"{address}/postgres", template


@contextmanager
def _connected(address: str) -> Iterator[psycopg.Connection[Any]]:
    import psycopg

    with psycopg.connect(address, autocommit=True) as connection:
        yield connection


def _copy_database(connection: psycopg.Connection[Any], source: str, name: str) -> None:
    """A database with all that another one holds; those who are connected to that are sent away."""
    connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [source])
    connection.execute(f'CREATE DATABASE "{name}" TEMPLATE "{source}" STRATEGY file_copy'.encode())


FILES = Files()
STORAGES: Mapping[str, StorageCase] = MappingProxyType(
    {"files": FILES, **({"postgres": Databases()} if is_installed() else {})}
)


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
