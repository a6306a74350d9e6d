"""A home in a database: workspaces, secrets, what is wrong with a database, and its migration."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest
from pydantic import SecretStr

from indexer.stores import PostgresDatabase
from memory_service.config import Settings
from memory_service.errors import InvalidName, InvalidRequest, NotFound, StorageFailed
from memory_service.storage.base import StorageCheck
from memory_service.storage.documents import Listing
from memory_service.storage.engines import migrate_storage
from memory_service.storage.postgres.postgres_storage import PostgresStorage, migrate_database
from memory_service.storage.record_store import RecordKind
from tests.postgres import PostgresServer, is_installed

# What two clocks of one machine may drift apart.
SKEW = dt.timedelta(seconds=1)


@pytest.fixture
def storage(migrated_database: str, tmp_path: Path) -> Iterator[PostgresStorage]:
    made = PostgresStorage(migrated_database, home=tmp_path)
    yield made
    made.close()


@pytest.fixture
def database(empty_database: str) -> Iterator[PostgresDatabase]:
    made = PostgresDatabase(empty_database)
    yield made
    made.close()


def wrong(checks: Sequence[StorageCheck]) -> list[StorageCheck]:
    return [check for check in checks if check.remedy]


def test_only_making_it_makes_a_workspace(storage: PostgresStorage, tmp_path: Path) -> None:
    assert storage.workspaces() == [] and not storage.contains("default")
    assert storage.workspace("default").documents.scan() == Listing(documents={})
    assert list(storage.workspace("default").records.keys(RecordKind.REPLY)) == []
    assert storage.workspaces() == [] and list(tmp_path.iterdir()) == []
    # An answer is noted before the workspace is there.
    storage.workspace("default").records.put(RecordKind.REPLY, "k", b"1")
    assert storage.workspaces() == [] and not storage.contains("default")
    with pytest.raises(NotFound):
        storage.contents("default")
    for name in ("default", "b", "a-b", "ab", "default"):
        storage.make(name)
    assert storage.contains("default") and storage.workspaces() == ["a-b", "ab", "b", "default"]
    found = storage.workspace("default").records.get(RecordKind.REPLY, "k")
    assert found is not None and found.raw == b"1"


def test_the_time_is_that_of_the_database(storage: PostgresStorage, migrated_database: str) -> None:
    database = PostgresDatabase(migrated_database)
    for _ in range(2):
        [(before,)] = database.run("SELECT clock_timestamp()").fetchall()
        now = storage.now()
        [(after,)] = database.run("SELECT clock_timestamp()").fetchall()
        assert before - SKEW <= now <= after + SKEW
    database.close()


def test_numbers_tell_of_a_workspace(storage: PostgresStorage) -> None:
    storage.make("w")
    empty = storage.contents("w")
    assert (empty.documents, empty.sessions, empty.project) == (0, 0, "")
    storage.workspace("w").documents.append("MEMORY.md", b"# x\n", expected=None)
    changed = storage.contents("w")
    assert changed.documents == 1 and changed.modified_at > empty.modified_at


@pytest.mark.parametrize("name", ["", ".a", ".temporary-1", "A", "a/b", "a\0", "\ud800", "a" * 65])
def test_a_name_that_is_none_is_refused(storage: PostgresStorage, name: str) -> None:
    for look in (storage.contains, storage.make, storage.workspace, storage.contents, storage.sweep):
        with pytest.raises(InvalidName):
            look(name)


def test_a_temporary_workspace_leaves_nothing(storage: PostgresStorage, migrated_database: str) -> None:
    with storage.temporary_workspace() as parts:
        parts.documents.append("MEMORY.md", b"# x\n", expected=None)
        parts.records.put(RecordKind.PROMPT, "talk", b"1")
        assert parts.documents.read("MEMORY.md").raw == b"# x\n" and parts.scratch.is_dir()
        assert storage.workspaces() == []
    assert not parts.scratch.exists()
    database = PostgresDatabase(migrated_database)
    with database.transaction() as transaction:
        for table in ("workspaces", "documents", "records"):
            assert transaction.connection.execute(f"SELECT count(*) FROM {table}".encode()).fetchone() == (0,)
    database.close()


def test_a_secret_is_made_once_by_whoever_asks_first(migrated_database: str, tmp_path: Path) -> None:
    with ExitStack() as stack:
        storages = [PostgresStorage(migrated_database, home=tmp_path) for _ in range(4)]
        for storage in storages:
            stack.callback(storage.close)
        with ThreadPoolExecutor(4) as threads:
            secrets = set(threads.map(lambda each: each.secret("seal.key", 32), storages))
        assert len(secrets) == 1 and len(secrets.pop()) == 32
        assert storages[0].secret("other.key", 16) != storages[0].secret("seal.key", 32)[:16]
        with pytest.raises(StorageFailed, match="damaged"):
            storages[0].secret("seal.key", 16)


def test_other_homes_are_not_joined(storage: PostgresStorage, tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="migrate --from"):
        storage.join(tmp_path)
    assert storage.other_homes() == []


def test_a_sound_database_passes_its_checks(storage: PostgresStorage) -> None:
    assert [check.name for check in storage.checks()] == ["database", "schema", "rights", "clock", "locks"]
    assert wrong(storage.checks()) == [] and storage.fault() is None
    assert "@" not in storage.place


def test_a_database_that_is_away_is_told_without_the_password(tmp_path: Path) -> None:
    storage = PostgresStorage("postgresql://eve:s3cret@127.0.0.1:1/x", home=tmp_path)
    for act in (storage.workspaces, lambda: storage.make("w"), lambda: storage.secret("k", 8)):
        with pytest.raises(StorageFailed, match="Start it, or correct database_url") as raised:
            act()
        assert "s3cret" not in str(raised.value) and "127.0.0.1:1/x" in str(raised.value)
    (check,) = storage.checks()
    assert check.remedy.startswith("Start it") and "s3cret" not in str(check)
    assert "s3cret" not in str(storage.fault()) and storage.place == "127.0.0.1:1/x"
    storage.close()


def test_a_role_without_rights_is_told_what_it_lacks(
    storage: PostgresStorage, migrated_database: str, tmp_path: Path
) -> None:
    storage.make("w")
    owner = PostgresDatabase(migrated_database)
    role = "reader_" + migrated_database.rpartition("_")[2]
    with owner.transaction() as transaction:
        transaction.connection.execute(f"CREATE ROLE {role} LOGIN".encode())
        transaction.connection.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {role}".encode())
    base, _, rest = migrated_database.rpartition("@")
    reader = PostgresStorage(f"postgresql://{role}@{rest}", home=tmp_path)
    try:
        assert base and reader.workspaces() == ["w"]
        with pytest.raises(StorageFailed, match="lacks rights"):
            reader.make("v")
        assert "its role may not write to its tables" in str(reader.fault())
        # Nothing is to be done for a role that may make no tables.
        assert migrate_database(f"postgresql://{role}@{rest}")[1] == []
        assert wrong(reader.checks()) == [
            StorageCheck(
                "rights", f"the role {role} may not DELETE in blob_refs", "Grant it that as the owner of the tables."
            )
        ]
        with owner.transaction() as transaction:
            for right in ("INSERT", "UPDATE", "DELETE"):
                transaction.connection.execute(f"GRANT {right} ON ALL TABLES IN SCHEMA public TO {role}".encode())
            transaction.connection.execute(f"ALTER ROLE {role} BYPASSRLS".encode())
        (rights,) = [check for check in reader.checks() if check.name == "rights"]
        assert rights.detail.endswith("past the wall between workspaces, as it has BYPASSRLS") and not rights.remedy
    finally:
        reader.close()
        with owner.transaction() as transaction:
            transaction.connection.execute(f"DROP OWNED BY {role}".encode())
            transaction.connection.execute(f"DROP ROLE {role}".encode())
        owner.close()


def test_an_empty_database_is_given_its_tables_and_a_newer_one_is_refused(
    database: PostgresDatabase, empty_database: str, tmp_path: Path
) -> None:
    settings = Settings(home=tmp_path, database_url=SecretStr(empty_database))
    steps = migrate_storage(settings).steps
    assert steps[0] == "index 0001 workspaces" and "storage 0003 records" in steps
    assert migrate_storage(settings) == (database.place, [])
    with database.transaction() as transaction:
        transaction.execute("DELETE FROM schema_migrations WHERE part = 'storage' AND number > 1")
    older = PostgresStorage(empty_database, home=tmp_path)
    with pytest.raises(StorageFailed, match="Run `memory-service migrate`"):
        older.workspaces()
    older.close()
    with database.transaction() as transaction:
        transaction.execute("INSERT INTO schema_migrations VALUES ('storage', 9999, 'later', 'x')")
    newer = PostgresStorage(empty_database, home=tmp_path)
    with pytest.raises(StorageFailed, match="version 9999, which a newer program made"):
        newer.workspaces()
    assert [check.name for check in newer.checks()] == ["database"]
    newer.close()
    with pytest.raises(StorageFailed, match="a newer program made"):
        migrate_storage(settings)


def test_files_need_no_migration(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="Set database_url"):
        migrate_storage(Settings(home=tmp_path))


@pytest.mark.skipif(not is_installed(), reason="there is no PostgreSQL")
def test_a_standby_as_the_address_is_named(tmp_path: Path) -> None:
    with ExitStack() as stack:
        primary = PostgresServer()
        stack.callback(primary.close)
        migrate_database(primary.address())
        standby = PostgresServer(primary=primary)
        stack.callback(standby.close)
        storage = PostgresStorage(standby.address(), home=tmp_path)
        stack.callback(storage.close)
        for act in (storage.workspaces, lambda: storage.make("w")):
            with pytest.raises(StorageFailed, match="as a standby does: set database_url to the primary"):
                act()
        fault = storage.fault()
        assert fault is not None and "set database_url to the primary" in fault.remedy


@pytest.mark.skipif(not is_installed(), reason="there is no PostgreSQL")
def test_too_few_connections_and_a_wrong_password_are_named(tmp_path: Path) -> None:
    server = PostgresServer(settings=("max_connections = 4", "superuser_reserved_connections = 1"))
    try:
        database = PostgresDatabase(server.address())
        with database.transaction() as transaction:
            transaction.execute("CREATE ROLE app LOGIN PASSWORD 'correct'")
            transaction.execute("GRANT ALL ON SCHEMA public TO app")
        with ExitStack() as stack:
            address = server.address(user="app")
            for _ in range(2):
                holder = PostgresDatabase(address)
                stack.callback(holder.close)
                stack.enter_context(holder.transaction()).execute("SELECT 1")
            storage = PostgresStorage(address, home=tmp_path)
            stack.callback(storage.close)
            with pytest.raises(StorageFailed, match="It has too few connections: raise its max_connections"):
                storage.workspaces()
        database.close()
        rules = server.data / "pg_hba.conf"
        rules.write_text("host all app 127.0.0.1/32 scram-sha-256\n" + rules.read_text())
        server.run("pg_ctl", "reload", "-D", server.data)
        storage = PostgresStorage(address.replace("app@", "app:wr0ng@"), home=tmp_path)
        with pytest.raises(StorageFailed, match=r"password authentication failed.*Correct user and password") as raised:
            storage.workspaces()
        assert "wr0ng" not in str(raised.value)
        storage.close()
    finally:
        server.close()
