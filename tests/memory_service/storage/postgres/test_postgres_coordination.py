"""Coordination by a database whose connections, notices and holders are lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from indexer.stores import PostgresDatabase
from memory_service.errors import CallCancelled, StorageFailed, TooManyRequests
from memory_service.runtime.locks import SessionLocks
from memory_service.storage.postgres.postgres_coordination import PostgresCoordination
from memory_service.storage.postgres.postgres_storage import PostgresStorage
from tests.waiting import until

# Who was stopped, killed or cut off has lost a lock after so many seconds; on a loaded machine that is noticed later.
SECONDS = 3.0
SLACK = 30.0

PROGRAM = """
import sys
from indexer.stores import PostgresDatabase
from memory_service.errors import StorageFailed
from memory_service.storage.postgres.postgres_coordination import PostgresCoordination
database = PostgresDatabase(sys.argv[1])
own = PostgresCoordination(database)
assert own.lease("holder")
try:
    with own.lock("w/.locks/a"):
        print("held", flush=True)
        sys.stdin.readline()
except StorageFailed as error:
    print(error, flush=True)
else:
    print("given back", flush=True)
"""


@pytest.fixture
def database(migrated_database: str) -> Iterator[PostgresDatabase]:
    made = PostgresDatabase(migrated_database, connections=4)
    yield made
    made.close()


@contextmanager
def coordination_of(database: PostgresDatabase) -> Iterator[PostgresCoordination]:
    made = PostgresCoordination(database)
    try:
        yield made
    finally:
        made.close()


@contextmanager
def holder(address: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen([sys.executable, "-c", PROGRAM, address], stdin=-1, stdout=-1, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()


def cut(database: PostgresDatabase) -> None:
    """End all other connections to the database."""
    with database.transaction() as transaction:
        transaction.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


def test_a_stopped_holder_loses_its_lock_and_learns_it(database: PostgresDatabase, migrated_database: str) -> None:
    with coordination_of(database) as own, holder(migrated_database) as process:
        start = time.monotonic()
        os.kill(process.pid, signal.SIGSTOP)
        with own.lock("w/.locks/a", timeout_seconds=SECONDS + SLACK):
            assert time.monotonic() - start < SECONDS + SLACK
            os.kill(process.pid, signal.SIGCONT)
            assert process.stdin is not None and process.stdout is not None
            process.stdin.write("\n")
            process.stdin.flush()
            assert "was lost" in process.stdout.readline()


def test_a_killed_holder_has_gone_in_seconds(database: PostgresDatabase, migrated_database: str) -> None:
    with coordination_of(database) as own, holder(migrated_database) as process:
        assert own.is_leased("holder") and own.lease("holder") is None
        with pytest.raises(StorageFailed, match="Others kept"), own.lock("w/.locks/a", timeout_seconds=0.2):
            pass
        os.kill(process.pid, signal.SIGKILL)
        process.wait(60)
        with own.lock("w/.locks/a", timeout_seconds=SLACK):
            pass
        until(lambda: not own.is_leased("holder"))
        assert own.lease("holder") is not None


def test_a_lock_that_was_lost_is_an_error_and_the_next_is_none(database: PostgresDatabase) -> None:
    with coordination_of(database) as own:
        with pytest.raises(StorageFailed, match="was lost"), own.lock("a"):
            cut(database)
        with own.lock("a"):
            pass
        with pytest.raises(ZeroDivisionError), own.lock("a"):
            cut(database)
            raise ZeroDivisionError


def test_a_lease_outlives_a_lost_connection(database: PostgresDatabase, migrated_database: str) -> None:
    with coordination_of(database) as own, coordination_of(database) as other:
        give_back = own.lease("process")
        assert give_back is not None
        for _ in range(3):
            cut(database)
            end = time.monotonic() + 1.0
            while time.monotonic() < end:
                with suppress(StorageFailed):
                    assert other.is_leased("process")
                    assert other.lease("process") is None
                time.sleep(0.05)
        give_back()
        assert not other.is_leased("process")


def test_locks_go_to_threads_in_the_order_in_which_they_came(database: PostgresDatabase) -> None:
    order, threads = list[int](), list[threading.Thread]()
    with coordination_of(database) as own, coordination_of(database) as other:

        def works(number: int) -> None:
            with own.lock("a"):
                order.append(number)

        with other.lock("a"):
            for number in range(8):
                threads.append(threading.Thread(target=works, args=[number]))
                threads[-1].start()
                until(lambda: len(own._turns._queues.get("a", ())) == len(threads))
        for thread in threads:
            thread.join()
    assert order == list(range(8))


def test_two_processes_are_never_in_one_lock(database: PostgresDatabase) -> None:
    inside, most = list[int](), list[int]()
    with coordination_of(database) as own, coordination_of(database) as other:

        def works(coordination: PostgresCoordination, number: int) -> None:
            for _ in range(10):
                with coordination.lock("a"):
                    inside.append(number)
                    most.append(len(inside))
                    time.sleep(0.001)
                    inside.remove(number)

        threads = [threading.Thread(target=works, args=[each, at]) for at, each in enumerate((own, other, own, other))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert most == [1] * 40


def test_two_servers_are_never_in_one_session(database: PostgresDatabase) -> None:
    inside, most = list[int](), list[int]()
    key = ("w", "talk")
    with coordination_of(database) as own, coordination_of(database) as other:
        servers = SessionLocks(coordination=own), SessionLocks(coordination=other)

        def works(locks: SessionLocks, number: int) -> None:
            for _ in range(5):
                # A compaction within a turn goes on in the same lane.
                with locks.session(key), locks.compaction(key):
                    inside.append(number)
                    most.append(len(inside))
                    time.sleep(0.001)
                    inside.remove(number)

        with ThreadPoolExecutor(8) as threads:
            for done in [threads.submit(works, servers[number % 2], number) for number in range(8)]:
                done.result()
        assert most == [1] * 40
        refused, cancelled = pytest.raises(TooManyRequests, match="another server"), pytest.raises(CallCancelled)
        with servers[0].session(key):
            with refused, servers[1].session(key, timeout_seconds=0.2):
                pass
            with cancelled, servers[1].session(key, cancelled=lambda: True):
                pass
            with servers[1].session(("w", "other"), timeout_seconds=0):
                pass


def test_a_follower_hears_of_a_message_without_any_notice(database: PostgresDatabase) -> None:
    heard = threading.Event()
    with coordination_of(database) as own:
        assert own.publish("a", b"first") == 1
        end = own.follow("a", heard.set)
        assert heard.wait(SECONDS + SLACK)
        for connection_is_lost in (False, True):
            heard.clear()
            with database.transaction() as transaction:
                transaction.execute("UPDATE channels SET last_number = last_number + 1")
                transaction.execute("INSERT INTO channel_messages (channel, number, raw) "
                                    "SELECT channel, last_number, 'x' FROM channels")  # fmt: skip
            if connection_is_lost:
                cut(database)
            assert heard.wait(SECONDS + SLACK)
        end()
        assert [message.number for message in own.messages("a")] == [1, 2, 3]


def test_numbers_that_a_database_may_have_taken_back_are_not_given_again(database: PostgresDatabase) -> None:
    with coordination_of(database) as own:
        assert [own.publish("a", b"x") for _ in range(3)] == [1, 2, 3]
        # As after a failover to a standby that has the first message alone.
        with database.transaction() as transaction:
            transaction.execute("DELETE FROM channel_messages WHERE number > 1")
            transaction.execute("UPDATE channels SET last_number = 1, incarnation = 'another server'")
        before = time.time_ns() // 1000 - 10**7
        after = own.publish("a", b"x")
        assert after > before
        assert own.publish("a", b"x") == after + 1


def test_numbers_of_a_channel_are_given_once_by_many(database: PostgresDatabase) -> None:
    numbers = list[int]()
    with coordination_of(database) as own, coordination_of(database) as other:

        def publishes(coordination: PostgresCoordination) -> None:
            numbers.extend(coordination.publish("a", b"x") for _ in range(20))

        threads = [threading.Thread(target=publishes, args=[each]) for each in (own, other, own, other)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(numbers) == list(range(1, 81))


def test_a_message_within_a_transaction_is_told_at_once(database: PostgresDatabase) -> None:
    with coordination_of(database) as own:
        with pytest.raises(ZeroDivisionError), database.transaction() as transaction:
            transaction.execute("SELECT 1")
            own.publish("a", b"x")
            raise ZeroDivisionError
        assert [message.raw for message in own.messages("a")] == [b"x"]


def test_an_engine_whose_locks_are_stubs_is_refused(
    database: PostgresDatabase, migrated_database: str, tmp_path: Path
) -> None:
    with database.transaction() as transaction:
        transaction.execute("CREATE SCHEMA stubs")
        transaction.execute(
            "CREATE FUNCTION stubs.pg_try_advisory_lock(bigint) RETURNS boolean LANGUAGE sql AS 'SELECT true'"
        )
        transaction.execute(
            "CREATE FUNCTION stubs.pg_try_advisory_xact_lock(bigint) RETURNS boolean LANGUAGE sql AS 'SELECT true'"
        )
    stubs = PostgresStorage(f"{migrated_database}?options=-csearch_path%3Dstubs,pg_catalog,public", home=tmp_path)
    for act in (stubs.workspaces, lambda: stubs.make("w"), lambda: stubs.coordination.lease("a")):
        with pytest.raises(StorageFailed, match=r"is PostgreSQL 1.*, whose advisory locks exclude nobody"):
            act()
    stubs.close()
