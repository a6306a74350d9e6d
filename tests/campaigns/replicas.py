"""Two server processes on one PostgreSQL database, which has a standby when one is wanted; all of it can be killed.

The first replica reaches the database by a path that is led to the present primary, as a proxy does; the second one by
an address that names both servers, of which libpq takes the one that writes.
"""

from __future__ import annotations

import os
import signal
import socket
import time
from contextlib import ExitStack, suppress
from pathlib import Path

import httpx

from memory_service.storage.postgres.postgres_storage import migrate_database
from tests.network_path import NetworkPath
from tests.postgres import PostgresServer
from tests.serving import NO_TLS, own_process

DATABASE = "memory"
_SETTINGS = ("max_wal_size = '128MB'", "wal_retrieve_retry_interval = '200ms'", "wal_keep_size = '64MB'")
_WAIT_SECONDS = 60.0


class Replica:
    """A `memory-service serve` of its own on the database.

    Args:
        home: Its folder, of what is derived.
        address: The database, as it reaches it.
        log: The file that it writes its warnings into.
    """

    def __init__(self, home: Path, address: str, log: Path) -> None:
        self.address = address
        self._home, self._log = home, log
        self._process = ExitStack()
        self.url = ""
        self.pid = 0

    def start(self) -> None:
        """Start it, and wait until it answers."""
        environment = {
            "MEMORY_SERVICE_DATABASE_URL": self.address,
            "MEMORY_SERVICE_TIMEZONE": "UTC",
            "MEMORY_SERVICE_EMBEDDING_MODEL": "none",
        }
        self.url, self.pid = self._process.enter_context(own_process(self._home, environment, log=self._log))

    def kill(self) -> None:
        """End it with SIGKILL."""
        os.kill(self.pid, signal.SIGKILL)
        self._process.close()

    def stop(self) -> None:
        """Stop it, as SIGSTOP does."""
        os.kill(self.pid, signal.SIGSTOP)

    def wake(self) -> None:
        """Let it go on."""
        os.kill(self.pid, signal.SIGCONT)

    def close(self) -> None:
        """End it."""
        with suppress(ProcessLookupError):
            self.wake()
        self._process.close()


class Cluster:
    """A primary, the path to it, and two replicas.

    Args:
        folder: Where the replicas have their homes.
    """

    def __init__(self, folder: Path) -> None:
        # Nobody else is given the port of a server that is not there.
        self._reserved = [_reserved_port(), _reserved_port()]
        self._ports = [int(reserved.getsockname()[1]) for reserved in self._reserved]
        self.primary = PostgresServer(is_durable=True, settings=_SETTINGS, port=self._ports[0])
        self.standby: PostgresServer | None = None
        self.primary.execute(f"CREATE DATABASE {DATABASE}")
        migrate_database(self.primary.address(DATABASE))
        self.path = NetworkPath(self.primary.port)
        hosts = ",".join(f"127.0.0.1:{port}" for port in self._ports)
        self.addresses = (
            f"postgresql://postgres@127.0.0.1:{self.path.port}/{DATABASE}",
            f"postgresql://postgres@{hosts}/{DATABASE}?target_session_attrs=read-write",
        )
        self.replicas = [
            Replica(folder / f"home-{number}", address, folder / f"replica-{number}.log")
            for number, address in enumerate(self.addresses, start=1)
        ]
        for replica in self.replicas:
            replica.start()

    def rows(self, statement: str) -> list[tuple[object, ...]]:
        """Rows of the database, as its administrator reads them."""
        return self.primary.execute(statement, DATABASE)

    def add_standby(self) -> None:
        """Have a standby, which every commit waits for."""
        [port] = {*self._ports} - {self.primary.port}
        self.standby = PostgresServer(is_durable=True, primary=self.primary, port=port, settings=_SETTINGS)
        _configure(self.primary, synchronous_standby_names="*")
        self._await("SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'")

    def leave_standby_behind(self) -> None:
        """Have no commit wait for the standby, which gets none from now on."""
        assert self.standby is not None
        _configure(self.primary, synchronous_standby_names="")
        _configure(self.standby, primary_conninfo="")
        self._await("SELECT 1 WHERE NOT EXISTS (SELECT FROM pg_stat_replication)")

    def fail_over(self) -> None:
        """Kill the primary, and make the standby the primary."""
        former, standby = self.primary, self.standby
        assert standby is not None
        former.kill()
        standby.promote()
        self.primary, self.standby = standby, None
        self.path.lead_to(standby.port)
        former.close()

    def restart_database(self) -> None:
        """Kill the primary, and start it again."""
        self.primary.kill()
        self.path.cut()
        self.primary.start()

    def kill_process(self, pid: int) -> None:
        """End one process of the primary with SIGKILL."""
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)

    def close(self) -> None:
        """End all of it."""
        for replica in self.replicas:
            replica.close()
        self.path.close()
        for server in (self.primary, self.standby):
            if server is not None:
                server.close()
        for reserved in self._reserved:
            reserved.close()

    def _await(self, statement: str) -> None:
        end = time.monotonic() + _WAIT_SECONDS
        while not self.primary.execute(statement):
            assert time.monotonic() < end, statement
            time.sleep(0.02)


def client() -> httpx.Client:
    """A client of any replica."""
    return httpx.Client(timeout=40, trust_env=False, verify=NO_TLS)


def _reserved_port() -> socket.socket:
    """A socket that keeps a port from all others but a server that is told to listen there."""
    reserved = socket.socket()
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    reserved.bind(("127.0.0.1", 0))
    return reserved


def _configure(server: PostgresServer, **values: str) -> None:
    """Change settings of a server that runs."""
    for name, value in values.items():
        server.execute(f"ALTER SYSTEM SET {name} = '{value}'")
    server.execute("SELECT pg_reload_conf()")
