"""What was forgotten is gone from the files of a database once its tables are rewritten, and an answer says when."""

from __future__ import annotations

import datetime as dt
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from memory_service.config import Settings
from memory_service.errors import InvalidRequest, StorageFailed
from memory_service.service import MemoryService, rewrite_storage
from memory_service.storage.postgres.postgres_storage import PostgresStorage
from memory_service.storage.postgres.table_rewrites import CONTENT_TABLES
from memory_service.storage.record_store import RecordKind
from tests.postgres import NO_SERVER, PostgresServer, is_installed, programs
from tests.waiting import until

MEMORY, MESSAGE, VERSION = "zubrowkamarker", "quetzalmarker", "yarrowmarker"
MARKERS = (MEMORY, MESSAGE, VERSION)


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    if not is_installed() or programs() is None:
        pytest.skip(NO_SERVER)
    made = PostgresServer(settings=("autovacuum = off", "min_wal_size = 32MB", "max_wal_size = 32MB"))
    yield made
    made.close()


def settings_of(address: str, home: Path) -> Settings:
    return Settings.model_validate({"home": home, "database_url": address, "embedding_model": "none"})


def files_with(marker: str, folder: Path) -> list[str]:
    return [
        str(path.relative_to(folder))
        for path in sorted(folder.rglob("*"))
        if path.is_file() and marker.encode() in path.read_bytes()
    ]


def test_no_byte_of_what_was_forgotten_is_left_after_a_rewrite(server: PostgresServer, tmp_path: Path) -> None:
    settings = settings_of(server.address(), tmp_path)
    with (
        MemoryService(settings) as service,
        psycopg.connect(server.address(), autocommit=True) as admin,
    ):
        memory = service.remember("default", f"The vault opens with {VERSION}.")
        service.edit("default", memory.memory_id, text=f"The vault opens with {MEMORY}.")
        service.remember("default", "The bakery opens at seven.")
        said = [f"My word is {MESSAGE}.", "Thank you."]
        service.append("default", "support-42", [{"role": "user", "content": text} for text in said])
        assert service.search("default", MEMORY).results and service.search("default", MESSAGE).results
        admin.execute("ANALYZE")
        admin.execute("CHECKPOINT")
        for marker in MARKERS:
            assert files_with(marker, server.data / "base") and files_with(marker, server.data / "pg_wal")
        assert memory.memory_id is not None
        before = dt.datetime.now(dt.UTC)
        forgotten = service.forget("default", memory.memory_id)
        message = service.forget("default", "sessions/support-42.jsonl#L2")
        for proof in (forgotten.erased, message.erased):
            assert proof is not None
            tables, log, backups = proof.pending
            assert tables.until is not None and "tables" in tables.place
            assert dt.timedelta(0) < tables.until - before <= dt.timedelta(hours=24, minutes=1)
            assert log.until is None and "max_wal_size 32MB" in log.place
            assert backups.until is None and "backups" in backups.place
        admin.execute("VACUUM")
        admin.execute("CHECKPOINT")
        assert files_with(MEMORY, server.data / "base"), "a rewrite that nothing needs would be tested"
        assert rewrite_storage(settings).steps == list(CONTENT_TABLES)
        for marker in MARKERS:
            assert files_with(marker, server.data / "base") == []
        # The segments of the log are used again, one after another.
        for _ in range(6):
            admin.execute("SELECT pg_logical_emit_message(false, 'filler', repeat('x', 16000000))")
            admin.execute("SELECT pg_switch_wal()")
            admin.execute("CHECKPOINT")
        for marker in MARKERS:
            assert files_with(marker, server.data) == []
        assert not service.search("default", MEMORY).results or MEMORY not in str(service.search("default", MEMORY))
        assert "bakery" in str(service.search("default", "When does the bakery open?"))


def test_searches_wait_for_a_table_that_is_rewritten_and_go_on(migrated_database: str, tmp_path: Path) -> None:
    settings = settings_of(migrated_database, tmp_path)
    with MemoryService(settings) as service:
        service.remember("default", "The bakery opens at seven.")
        assert service.search("default", "bakery").results
        answers, is_over = list[bool](), threading.Event()

        def search() -> None:
            while not is_over.is_set():
                answers.append("seven" in str(service.search("default", "When does the bakery open?")))

        thread = threading.Thread(target=search)
        thread.start()
        try:
            for _ in range(3):
                rewrite_storage(settings)
        finally:
            is_over.set()
            thread.join(60)
        assert len(answers) > 3 and all(answers)


def test_what_an_open_transaction_sees_is_not_said_to_be_gone(migrated_database: str, tmp_path: Path) -> None:
    with closing(PostgresStorage(migrated_database, home=tmp_path)) as storage:
        storage.make("w")
        storage.workspace("w").records.put(RecordKind.PROMPT, "p", b"1")
        with psycopg.connect(migrated_database) as reader:
            reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            reader.execute("SELECT count(*) FROM workspaces")
            storage.workspace("w").records.erase(RecordKind.PROMPT)
            storage.note_erasure()
            with pytest.raises(StorageFailed, match="records: a transaction that began before"):
                storage.rewrite()
            assert len(list(storage.records.keys(RecordKind.REWRITE))) == 1
        assert storage.rewrite() == list(CONTENT_TABLES)
        assert list(storage.records.keys(RecordKind.REWRITE)) == []


def test_a_rewrite_that_another_process_is_at_or_that_the_role_may_not_do_is_refused(
    migrated_database: str, tmp_path: Path
) -> None:
    role = "guest_" + migrated_database.rpartition("_")[2]
    guest_address = f"postgresql://{role}@{migrated_database.rpartition('@')[2]}"
    with (
        psycopg.connect(migrated_database, autocommit=True) as admin,
        closing(PostgresStorage(migrated_database, home=tmp_path)) as storage,
        closing(PostgresStorage(guest_address, home=tmp_path)) as guest,
    ):
        admin.execute(f"CREATE ROLE {role} LOGIN".encode())
        admin.execute(f"GRANT ALL ON SCHEMA public TO {role}".encode())
        admin.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {role}".encode())
        try:
            give_back = storage.coordination.lease("rewrite")
            assert give_back is not None
            with pytest.raises(StorageFailed, match="are being rewritten"):
                guest.rewrite()
            give_back()
            storage.note_erasure()
            with pytest.raises(StorageFailed, match="index_packs: the role may not rewrite it; run `memo") as raised:
                guest.rewrite()
            assert str(raised.value).count("the role may not rewrite it") == 1 and "documents" in str(raised.value)
            assert len(list(storage.records.keys(RecordKind.REWRITE))) == 1
        finally:
            guest.close()
            admin.execute(f"DROP OWNED BY {role}".encode())
            admin.execute(f"DROP ROLE {role}".encode())


def test_a_service_rewrites_within_a_day(
    migrated_database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memory_service.storage.postgres.table_rewrites._FIRST_LOOK_SECONDS", 0.05)
    monkeypatch.setattr("memory_service.storage.postgres.table_rewrites._LOOK_SECONDS", 0.05)
    with closing(PostgresStorage(migrated_database, home=tmp_path)) as storage:
        storage.make("w")
        storage.note_erasure()
        storage.sweep("w")
        time.sleep(0.5)
        assert len(list(storage.records.keys(RecordKind.REWRITE))) == 1, "for one erasure alone nothing is rewritten"
        long_ago = dt.datetime.now(dt.UTC) - dt.timedelta(hours=23, minutes=1)
        storage.records.put(RecordKind.REWRITE, f"{long_ago.isoformat()} x", b"")
        until(lambda: not list(storage.records.keys(RecordKind.REWRITE)))


def test_on_files_nothing_is_pending_and_nothing_is_to_be_rewritten(tmp_path: Path) -> None:
    settings = settings_of("", tmp_path)
    with MemoryService(settings) as service:
        memory_id = service.remember("default", f"The vault opens with {MEMORY}.").memory_id
        assert memory_id is not None
        erased = service.forget("default", memory_id).erased
        assert erased is not None and erased.pending == []
        assert service.storage.rewrite() == []
    assert files_with(MEMORY, tmp_path) == []
    with pytest.raises(InvalidRequest, match="is in files, where nothing is left of what is erased"):
        rewrite_storage(settings)
