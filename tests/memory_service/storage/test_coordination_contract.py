"""The contract of `Coordination`, on every implementation."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from indexer.stores import PostgresDatabase
from memory_service.errors import StorageFailed
from memory_service.storage.coordination import KEPT_MESSAGES, Coordination
from memory_service.storage.files.file_storage import FileCoordination
from memory_service.storage.files.shared_database import SharedDatabase
from memory_service.storage.postgres.postgres_coordination import PostgresCoordination
from tests.memory_service.storage.in_memory_records import MemoryCoordination

# Several calls give that of the same home, as several processes have it.
Opened = Callable[[], Coordination]


@pytest.fixture(params=["files", "memory", "postgres"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opened]:
    if request.param == "memory":
        kept = MemoryCoordination()
        yield lambda: kept
        return
    with ExitStack() as stack:
        address = request.getfixturevalue("migrated_database") if request.param == "postgres" else ""

        def of_a_database() -> Coordination:
            database = PostgresDatabase(address, connections=2)
            stack.callback(database.close)
            made = PostgresCoordination(database)
            stack.callback(made.close)
            return made

        def coordination() -> Coordination:
            database = SharedDatabase(tmp_path)
            stack.callback(database.close)
            made = FileCoordination(tmp_path, database)
            stack.callback(made.close)
            return made

        yield of_a_database if address else coordination


def test_a_lock_is_held_by_one(opened: Opened) -> None:
    one, other = opened(), opened()
    with one.lock("w/.locks/a"):
        with pytest.raises(StorageFailed), other.lock("w/.locks/a", timeout_seconds=0.05):
            pass
        with other.lock("w/.locks/b", timeout_seconds=0.05):
            pass
    with other.lock("w/.locks/a", timeout_seconds=0.05):
        pass


def test_who_waits_for_a_lock_gets_it(opened: Opened) -> None:
    one, other, order = opened(), opened(), list[str]()

    def waits() -> None:
        with other.lock("a"):
            order.append("other")

    with one.lock("a"):
        thread = threading.Thread(target=waits)
        thread.start()
        thread.join(0.1)
        order.append("one")
    thread.join()
    assert order == ["one", "other"]


def test_a_lease_is_had_by_one_until_it_is_given_back(opened: Opened) -> None:
    one, other = opened(), opened()
    assert not one.is_leased("reindex")
    give_back = one.lease("reindex")
    assert give_back is not None
    assert one.is_leased("reindex") and other.is_leased("reindex")
    assert other.lease("reindex") is None and one.lease("reindex") is None
    assert other.lease("another") is not None
    give_back()
    give_back()
    assert not one.is_leased("reindex") and not other.is_leased("reindex")
    assert other.lease("reindex") is not None and one.is_leased("reindex")


HOLDER = """
import sys
from pathlib import Path
from memory_service.storage.files.file_storage import FileCoordination
from memory_service.storage.files.shared_database import SharedDatabase
home = Path(sys.argv[1])
assert FileCoordination(home, SharedDatabase(home)).lease("holder")
print("held", flush=True)
sys.stdin.read()
"""


def test_a_killed_holder_is_noticed_at_once(tmp_path: Path) -> None:
    own = FileCoordination(tmp_path, SharedDatabase(tmp_path))
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path)], stdin=-1, stdout=-1) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert own.is_leased("holder") and own.lease("holder") is None
        os.kill(process.pid, signal.SIGKILL)
        process.wait(60)
        assert not own.is_leased("holder")
        assert own.lease("holder") is not None
    own.close()


def test_numbers_of_messages_rise_by_one(opened: Opened) -> None:
    one, other = opened(), opened()
    numbers = [each.publish("a", b"%d" % at, first=7 + at) for at, each in enumerate((one, other, other, one))]
    assert numbers == [7, 8, 9, 10]
    assert one.publish("b", b"else", behind=7) == 1 and other.publish("b", b"else", behind=7) == 8
    assert [tuple(each) for each in other.messages("a", numbers[1])] == [(numbers[2], b"2"), (numbers[3], b"3")]
    assert len(one.messages("a")) == 4 and one.messages("c") == []


def test_the_newest_messages_are_kept(opened: Opened) -> None:
    one = opened()
    numbers = [one.publish("a", b"x") for _ in range(KEPT_MESSAGES + 20)]
    assert [each.number for each in one.messages("a")] == numbers[20:]


def test_a_follower_hears_of_messages_of_all(opened: Opened) -> None:
    one, other, heard = opened(), opened(), threading.Event()
    calls = list[str]()

    def note() -> None:
        calls.append("a")
        heard.set()

    end = one.follow("a", note)
    for publisher in (other, one, other):
        heard.clear()
        publisher.publish("a", b"x")
        assert heard.wait(60)
    end()
    end_other = one.follow("b", heard.set)
    heard.clear()
    before = len(calls)
    other.publish("a", b"x")
    other.publish("b", b"x")
    assert heard.wait(60)
    end_other()
    assert len(calls) == before


def test_looking_makes_nothing(tmp_path: Path) -> None:
    home = tmp_path / "home"
    own = FileCoordination(home, SharedDatabase(home))
    end = own.follow("a", lambda: None)
    assert not own.is_leased("a") and own.messages("a") == []
    end()
    own.close()
    assert not home.exists()
