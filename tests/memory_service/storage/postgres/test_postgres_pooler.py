"""A database behind a pooler in transaction mode, which gives each transaction another connection."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import mkdtemp
from urllib.parse import urlsplit

import pytest

from indexer.stores import PostgresDatabase
from memory_service.config import Settings
from memory_service.errors import StorageFailed
from memory_service.service import MemoryService
from memory_service.storage.postgres.postgres_coordination import PostgresCoordination
from memory_service.storage.postgres.postgres_storage import PostgresStorage
from memory_service.storage.record_store import RecordKind

PGBOUNCER = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
pytestmark = pytest.mark.skipif(PGBOUNCER is None, reason="there is no pgbouncer: apt-get install pgbouncer")


@pytest.fixture
def pooled(migrated_database: str) -> Iterator[str]:
    """The address of the database through a pooler of three connections."""
    with pooler(migrated_database, "transaction") as address:
        yield address


@contextmanager
def pooler(migrated_database: str, mode: str) -> Iterator[str]:
    """The address of a database through a pooler of three connections in some mode, while a block runs."""
    assert PGBOUNCER is not None
    server = urlsplit(migrated_database)
    folder = Path(mkdtemp(prefix="pooler-"))
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    (folder / "users").write_text('"postgres" ""\n')
    (folder / "pgbouncer.ini").write_text(
        f"[databases]\n* = host={server.hostname} port={server.port}\n[pgbouncer]\nlisten_addr = 127.0.0.1\n"
        f"listen_port = {port}\nunix_socket_dir =\nauth_type = trust\nauth_file = {folder / 'users'}\n"
        f"pool_mode = {mode}\ndefault_pool_size = 3\nmax_client_conn = 100\n"
    )
    as_user: dict[str, int] = {}
    if os.geteuid() == 0:
        entry = pwd.getpwnam("nobody")
        as_user = {"user": entry.pw_uid, "group": entry.pw_gid}
        folder.chmod(0o755)
    process = subprocess.Popen([PGBOUNCER, str(folder / "pgbouncer.ini")], stderr=-3, **as_user)  # type: ignore[call-overload]
    try:
        for _ in range(6_000):
            with socket.socket() as asked:
                if not asked.connect_ex(("127.0.0.1", port)):
                    break
            time.sleep(0.02)
        yield migrated_database.replace(f":{server.port}/", f":{port}/")
    finally:
        process.terminate()
        process.wait(60)
        shutil.rmtree(folder)


def test_everything_works_through_a_pooler(pooled: str, migrated_database: str, tmp_path: Path) -> None:
    settings = {"database_url": pooled, "database_direct_url": migrated_database, "embedding_model": "none"}
    with (
        MemoryService(Settings.model_validate({"home": tmp_path / "a", **settings})) as one,
        MemoryService(Settings.model_validate({"home": tmp_path / "b", **settings})) as other,
    ):

        def remembers(number: int) -> None:
            service = (one, other)[number % 2]
            workspace = f"w{number % 3}"
            service.remember(workspace, f"Parcel {number} goes to Graz.")
            service.append(workspace, f"talk-{number}", [{"role": "user", "content": f"Where is parcel {number}?"}])

        # Each prepares its statements, and the connections are those of all of them.
        with ThreadPoolExecutor(8) as threads:
            list(threads.map(remembers, range(24)))
        for number in range(24):
            results = other.search(f"w{number % 3}", f"parcel {number} Graz").results
            assert any(f"Parcel {number} goes" in result.text for result in results)
        assert all(check.ok for check in one.examine("w0") if check.name != "home")


def test_a_lock_is_not_taken_through_a_pooler(pooled: str, migrated_database: str, tmp_path: Path) -> None:
    storage = PostgresStorage(pooled, home=tmp_path)
    with pytest.raises(StorageFailed, match="Set database_direct_url"), storage.coordination.lock("a"):
        pass
    assert [check.remedy for check in storage.checks()] == [
        "Set database_direct_url to the address of the server itself."
    ]
    storage.close()
    with ExitStack() as stack:
        ways = list[PostgresCoordination]()
        for _ in range(2):
            database = PostgresDatabase(pooled, direct_address=migrated_database)
            stack.callback(database.close)
            ways.append(PostgresCoordination(database))
            stack.callback(ways[-1].close)
        with ways[0].lock("a"), pytest.raises(StorageFailed), ways[1].lock("a", timeout_seconds=0.1):
            pass


def test_a_pooler_of_statements_and_a_direct_address_elsewhere_are_named(
    pooled: str, migrated_database: str, empty_database: str, tmp_path: Path
) -> None:
    with pooler(migrated_database, "statement") as address:
        storage = PostgresStorage(address, direct_address=migrated_database, home=tmp_path)
        with pytest.raises(StorageFailed, match="Set the pooler to pool_mode = transaction"):
            storage.make("w")
        storage.close()
    for direct_address, fault in (
        (empty_database, "lead to different databases"),
        ("postgresql://eve:s3cret@127.0.0.1:1/x", "The database 127.0.0.1:1/x failed.*correct database_direct_url"),
    ):
        storage = PostgresStorage(pooled, direct_address=direct_address, home=tmp_path)
        with pytest.raises(StorageFailed, match=fault) as raised:
            storage.make("w")
        assert "s3cret" not in str(raised.value)
        storage.close()


def test_no_workspace_sees_that_of_the_transaction_before(pooled: str, migrated_database: str, tmp_path: Path) -> None:
    storage = PostgresStorage(pooled, direct_address=migrated_database, home=tmp_path)

    def works(number: int) -> None:
        records = storage.workspace(f"w{number % 5}").records
        records.put(RecordKind.REPLY, str(number), b"%d" % number)
        assert all(int(key) % 5 == number % 5 for key in records.keys(RecordKind.REPLY))

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(works, range(200)))
    storage.close()
