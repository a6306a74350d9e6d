"""Writes into a PostgreSQL database that meet each other, or that break off in the middle."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, closing
from pathlib import Path

import pytest

from indexer.stores import PostgresDatabase, Transaction
from memory_service.config import Settings
from memory_service.errors import Conflict, StorageFailed
from memory_service.service import MemoryService
from memory_service.sessions.records import FlushRecord
from memory_service.storage.postgres.postgres_documents import PostgresDocuments
from memory_service.storage.postgres.postgres_logs import PostgresLogs
from tests.memory_service.storage.log_steps import begin, bodies, said, texts
from tests.memory_service.storage.postgres.concurrent_writers import BATCH
from tests.memory_service.storage.postgres_workspaces import PostgresWorkspaces
from tests.memory_service.storage.postgres_workspaces import postgres_workspaces as postgres_workspaces
from tests.memory_service.storage.test_logs_contract import picture

S = "support-42"
PAGE = "memory/2026-11-20.md"
MARK = FlushRecord(from_seq=2, to_seq=2, reason="asked for")


class Parts:
    """The documents and logs of one workspace, on one database."""

    def __init__(self, workspaces: PostgresWorkspaces) -> None:
        self.database: PostgresDatabase = workspaces.database()
        self.name = workspaces.name()
        self.documents = PostgresDocuments(self.database, self.name, lock=workspaces.lock())
        self.logs = PostgresLogs(self.database, self.name)

    def transaction(self) -> AbstractContextManager[Transaction]:
        """The transaction that its thread is in, or a new one."""
        return self.database.transaction(self.database.number(self.name, make=True) or 0)

    def flush(self, between: Callable[[], None] = lambda: None) -> None:
        """Stores a memory and the record of it, as a flush does."""
        log = self.logs.open(S)
        edition = log.follow().edition
        with self.logs.unit():
            with log.hold(edition), self.documents.writing():
                revision = self.documents.revision(PAGE)
                assert self.documents.append(PAGE, b"- Tuesdays.\n", expected=revision) is not None
            between()
            log.append([MARK], edition=edition)

    def is_flushed(self) -> tuple[bool, bool]:
        """Whether the memory is there, and whether the record is."""
        return self.documents.revision(PAGE) is not None, MARK in bodies(self.logs.open(S))


@pytest.fixture
def parts(postgres_workspaces: PostgresWorkspaces) -> Parts:
    made = Parts(postgres_workspaces)
    begin(made.logs, S).append([said("We deploy on Tuesdays.")])
    return made


def test_a_flush_that_is_cut_at_any_step_leaves_neither(parts: Parts, postgres_workspaces: PostgresWorkspaces) -> None:
    for at in range(1, 20):
        with postgres_workspaces.cutting(at):
            try:
                parts.flush()
            except StorageFailed:
                assert parts.is_flushed() == (False, False), at
            else:
                break
    assert at > 4 and parts.is_flushed() == (True, True)


def test_a_connection_that_is_killed_between_memory_and_record_leaves_neither(parts: Parts) -> None:
    def kill() -> None:
        with parts.transaction() as transaction:
            (pid,) = transaction.row("SELECT pg_backend_pid()") or (0,)
        with closing(parts.database.connect()) as connection:
            connection.execute("SELECT pg_terminate_backend(%s)", [pid])

    with pytest.raises(StorageFailed):
        parts.flush(kill)
    assert parts.is_flushed() == (False, False)
    parts.flush()
    assert parts.is_flushed() == (True, True)


def test_a_flush_that_fails_behind_its_memory_leaves_neither(parts: Parts) -> None:
    def fail() -> None:
        raise Conflict("The session was compacted meanwhile.")

    with pytest.raises(Conflict):
        parts.flush(fail)
    assert parts.is_flushed() == (False, False)


# The server ends the connection of whoever stores the record of a flush.
CUT = """
CREATE FUNCTION cut_flush() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); PERFORM pg_sleep(9); RETURN NEW; END $$;
CREATE TRIGGER cut BEFORE INSERT ON log_records FOR EACH ROW WHEN (NEW.kind = 'flush') EXECUTE FUNCTION cut_flush()"""


def test_the_flush_of_a_session_is_there_as_a_whole_or_not_at_all(migrated_database: str, tmp_path: Path) -> None:
    settings = {"home": tmp_path, "database_url": migrated_database, "embedding_model": "none"}
    database = PostgresDatabase(migrated_database)
    with MemoryService(Settings.model_validate(settings)) as service:
        service.append("w", S, [{"role": "user", "content": "Remember: the staging port is 7443."}])
        with closing(database.connect()) as connection:
            connection.execute(CUT)
        with pytest.raises(StorageFailed):
            service.flush("w", S)
        assert service.files("w") == [] and service.session_status("w", S).flushed_to == 0
        with closing(database.connect()) as connection:
            connection.execute("DROP FUNCTION cut_flush CASCADE")
        (memory,) = service.flush("w", S).written
        assert "7443" in service.get("w", memory.path).text
        assert service.flush("w", S).written == []


def test_of_eight_writers_in_two_processes_nothing_is_torn_or_doubled(
    postgres_workspaces: PostgresWorkspaces,
) -> None:
    workspace, batches = postgres_workspaces.name(), 15
    program = [sys.executable, "-m", "tests.memory_service.storage.postgres.concurrent_writers"]
    processes = [
        subprocess.Popen(
            [*program, postgres_workspaces.address, workspace, S, name, "4", str(batches)], stdout=subprocess.PIPE
        )
        for name in ("a", "b")
    ]
    answers = [answer for process in processes for answer in json.loads(process.communicate(timeout=120)[0])]
    log = PostgresLogs(postgres_workspaces.database(), workspace).open(S)
    records = {record.seq: record for record in log.read()}
    assert list(records) == list(range(1, 2 + 8 * batches * BATCH))
    assert len(answers) == 8 * batches and len(set(texts(log))) == 8 * batches * BATCH
    for first_text, first_seq, last_seq in answers:
        name = first_text.rpartition(".")[0]
        assert last_seq - first_seq == BATCH - 1
        for number, seq in enumerate(range(first_seq, last_seq + 1)):
            assert records[seq].body == said(f"{name}.{number}")


def test_a_picture_stays_while_a_log_names_it(parts: Parts) -> None:
    text = picture().text
    other = PostgresLogs(parts.database, parts.name)
    begin(parts.logs, "first").append([picture()])
    for number in range(60):
        before, after = ("first", "second")[:: 1 if number % 2 == 0 else -1]
        log = begin(other, after)
        threads = [
            threading.Thread(target=act)
            for act in (lambda: parts.logs.delete(before), lambda: log.append([picture()]))  # noqa: B023
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert log.message(2) == text
    other.delete(after)
    with parts.transaction() as transaction:
        assert transaction.rows("SELECT FROM blobs") == transaction.rows("SELECT FROM blob_refs") == []


def test_a_log_that_the_database_may_have_shortened_is_another_one(parts: Parts) -> None:
    log = parts.logs.open(S)
    edition = log.follow().edition
    assert log.follow(edition, 2).is_same
    with parts.logs.unit(), parts.transaction() as transaction:
        # What a standby that takes over says: it was started at another time.
        transaction.execute("CREATE SCHEMA elsewhere")
        transaction.execute(
            "CREATE FUNCTION elsewhere.pg_postmaster_start_time() RETURNS timestamptz LANGUAGE sql "
            "AS $$ SELECT pg_catalog.pg_postmaster_start_time() + interval '1 s' $$"
        )
        transaction.execute("SELECT set_config('search_path', 'elsewhere, pg_catalog, public', true)")
        again = log.follow(edition, 2)
        assert not again.is_same and [record.seq for record in again.records] == [1, 2]
        with pytest.raises(Conflict):
            log.append([said("b")], edition=edition)
        log.append([said("c")], edition=again.edition)
    assert texts(log) == ["We deploy on Tuesdays.", "c"]
