"""The tables of a database: what a shard by workspace and the wall between workspaces ask of each."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from indexer.errors import StoreError
from indexer.stores import PostgresDatabase
from memory_service.config import Settings
from memory_service.service import MemoryService
from memory_service.storage.record_store import RecordKind
from tests.waiting import eventually

# Of the home itself.
HOME = {"workspaces", "schema_migrations", "channels", "channel_messages", "leases", "secrets"}
UNIQUE_KEYS = """
SELECT t.relname, i.relname, (SELECT attname FROM pg_attribute WHERE attrelid = t.oid AND attnum = x.indkey[0])
FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid JOIN pg_class t ON t.oid = x.indrelid
WHERE x.indisunique AND t.relnamespace = 'public'::regnamespace ORDER BY 1, 2"""
WALLS = """
SELECT relname, relrowsecurity AND relforcerowsecurity AND
    EXISTS (SELECT FROM pg_policy WHERE polrelid = pg_class.oid AND polcmd = '*'
            AND pg_get_expr(polqual, polrelid) LIKE '%%app.ws%%')
FROM pg_class WHERE relkind IN ('r', 'p') AND relnamespace = 'public'::regnamespace ORDER BY 1"""


@pytest.fixture
def owned(empty_database: str) -> Iterator[str]:
    """The address of a database as a role that owns it, and is no superuser: rows are walled from it, too."""
    database = PostgresDatabase(empty_database)
    role = "owner_" + empty_database.rpartition("_")[2]
    with database.transaction() as transaction:
        transaction.connection.execute(f"CREATE ROLE {role} LOGIN".encode())
        transaction.connection.execute(f"ALTER SCHEMA public OWNER TO {role}".encode())
    yield f"postgresql://{role}@{empty_database.rpartition('@')[2]}"
    with database.transaction() as transaction:
        transaction.connection.execute(f"REASSIGN OWNED BY {role} TO current_user".encode())
        transaction.connection.execute(f"DROP OWNED BY {role}".encode())
        transaction.connection.execute(f"DROP ROLE {role}".encode())
    database.close()


def test_each_unique_key_begins_with_the_workspace_and_each_table_has_a_wall(migrated_database: str) -> None:
    database = PostgresDatabase(migrated_database)
    with database.transaction(read_only=True) as transaction:
        keys = [row for row in transaction.rows(UNIQUE_KEYS) if row[0] not in HOME]
        walls = {table: is_sound for table, is_sound in transaction.rows(WALLS) if table not in HOME}
    database.close()
    assert {table for table, *_ in keys} == set(walls)
    assert [(table, key) for table, key, column in keys if column != "ws"] == []
    assert [table for table, is_sound in walls.items() if not is_sound] == []


def test_everything_works_as_a_role_that_the_wall_stops(owned: str, tmp_path: Path) -> None:
    settings = Settings.model_validate({"home": tmp_path, "database_url": owned, "embedding_model": "none"})
    with MemoryService(settings) as service:

        def works(number: int) -> None:
            workspace = f"w{number % 3}"
            service.remember(workspace, f"Parcel {number} goes to Graz.")
            service.append(workspace, "talk", [{"role": "user", "content": f"Where is parcel {number}?"}])
            service.session_context(workspace, "talk")
            service.flush(workspace, "talk")

        with ThreadPoolExecutor(6) as threads:
            list(threads.map(works, range(12)))
        for number in range(12):
            results = service.search(f"w{number % 3}", f"parcel {number} Graz").results
            assert any(f"Parcel {number} goes" in result.text for result in results)
            assert not any(f"Parcel {number + 1} goes" in result.text for result in results)
        # The log of the session is indexed beside all else.
        assert eventually(lambda: service.status("w0").dirty == 0)
        assert [check for check in service.examine("w0") if not check.ok and check.name != "home"] == []
        service.delete_session("w0", "talk")


def test_a_row_of_another_workspace_is_not_seen_and_not_written(owned: str, tmp_path: Path) -> None:
    settings = Settings.model_validate({"home": tmp_path, "database_url": owned, "embedding_model": "none"})
    with MemoryService(settings) as service:
        for workspace in ("one", "other"):
            service.storage.make(workspace)
            service.storage.workspace(workspace).records.put(RecordKind.REPLY, workspace, b"x")
    database = PostgresDatabase(owned)
    one, other = database.number("one"), database.number("other")
    assert one is not None and other is not None
    with database.transaction(one) as transaction:
        assert transaction.rows("SELECT ws FROM records") == [(one,)]
        assert transaction.execute("DELETE FROM records WHERE ws = %s", [other]).rowcount == 0
    with database.transaction() as transaction:
        assert transaction.rows("SELECT ws FROM records") == []
    with pytest.raises(StoreError, match="row-level security"), database.transaction(one) as transaction:
        transaction.execute("UPDATE records SET ws = %s", [other])
    database.close()
