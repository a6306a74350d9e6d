"""Answers by idempotency key, of several processes on one home."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import Any

import pytest

from memory_service.errors import Conflict, StorageFailed
from memory_service.runtime.keyed_answers import Attempt, KeyedAnswers
from memory_service.runtime.presence import Presence
from memory_service.storage.files.file_storage import FileCoordination
from memory_service.storage.files.shared_database import DatabaseRecords, SharedDatabase
from memory_service.storage.record_store import RecordKind, RecordVersion
from tests.memory_service.storage.in_memory_records import MemoryCoordination, MemoryRecords

ROUTE = "POST /v1/部署"
Opened = Callable[[], KeyedAnswers]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opened]:
    """Opens the answers of one home, as each of its processes has them."""
    with ExitStack() as stack:

        def replies() -> KeyedAnswers:
            database = SharedDatabase(tmp_path)
            stack.callback(database.close)
            coordination = FileCoordination(tmp_path, database)
            stack.callback(coordination.close)
            return KeyedAnswers(lambda workspace: DatabaseRecords(database, workspace), Presence(coordination))

        yield replies


def forbidden() -> bytes:
    raise AssertionError("it is done again")


def test_an_answer_is_that_of_all_processes(opened: Opened) -> None:
    one, other = opened(), opened()
    assert one.once("w", ROUTE, "k", b"content", lambda: b"done \0\xff") == (b"done \0\xff", False)
    for each in (one, other):
        assert each.once("w", ROUTE, "k", b"content", forbidden) == (b"done \0\xff", True)
        with pytest.raises(Conflict, match="another request"):
            each.once("w", ROUTE, "k", b"other", forbidden)
    assert other.once("v", ROUTE, "k", b"content", lambda: b"2") == (b"2", False)
    assert other.once("w", "POST /else", "k", b"content", lambda: b"3") == (b"3", False)


def test_what_is_being_done_is_not_done_twice(opened: Opened) -> None:
    one, other, meanwhile = opened(), opened(), list[object]()

    def act() -> bytes:
        for each in (one, other):
            meanwhile.append(each.once("w", ROUTE, "k", b"c", forbidden, session_id="s"))
            with pytest.raises(Conflict):
                each.once("w", ROUTE, "k", b"other", forbidden, session_id="s")
        return b"done"

    assert one.once("w", ROUTE, "k", b"c", act, session_id="s") == (b"done", False)
    assert meanwhile == [None, None]
    assert other.once("w", ROUTE, "k", b"c", forbidden, session_id="s") == (b"done", True)


def test_what_failed_may_be_tried_again(opened: Opened) -> None:
    one, other = opened(), opened()

    def fails() -> bytes:
        raise StorageFailed("The disk is full.")

    with pytest.raises(StorageFailed):
        one.once("w", ROUTE, "k", b"c", fails)
    assert other.once("w", ROUTE, "k", b"c", lambda: b"done") == (b"done", False)


class FailingRecords(MemoryRecords):
    """Records that a database keeps, which is away now and then."""

    is_away = False

    def put(self, *arguments: Any, **options: Any) -> RecordVersion | None:
        if self.is_away:
            raise StorageFailed("The database is away.")
        return super().put(*arguments, **options)


@pytest.mark.parametrize("stays_away", [False, True])
@pytest.mark.parametrize("fails", [False, True])
def test_what_a_storage_failed_is_gone_on_with_by_any_process(fails: bool, stays_away: bool) -> None:
    records, coordination = FailingRecords(), MemoryCoordination()
    one, other = (KeyedAnswers(lambda workspace: records, Presence(coordination)) for _ in range(2))
    attempts = list[Attempt]()

    def act(attempt: Attempt) -> bytes:
        attempts.append(attempt)
        if len(attempts) == 1:
            records.is_away = stays_away
            if fails:
                # Whether something was stored, nobody knows.
                raise StorageFailed("The connection broke.")
        return b"done"

    def ask(answers: KeyedAnswers) -> tuple[bytes, bool]:
        return answers.answer("w", ROUTE, "k", b"c", act, lambda: b"plan")

    with pytest.raises(StorageFailed) if fails else nullcontext():
        assert ask(one) == (b"done", False)
    records.is_away = False
    assert ask(other) == (b"done", not fails)
    assert attempts == [Attempt(b"plan", is_resumed=False), Attempt(b"plan", is_resumed=True)][: 1 + fails]
    assert ask(one) == (b"done", True)


KILLED = """
import sys, time
from pathlib import Path
from memory_service.runtime.presence import Presence
from memory_service.runtime.keyed_answers import KeyedAnswers
from memory_service.storage.files.file_storage import FileCoordination
from memory_service.storage.files.shared_database import DatabaseRecords, SharedDatabase

def act():
    print("begun", flush=True)
    time.sleep(600)

home = Path(sys.argv[1])
database = SharedDatabase(home)
presence = Presence(FileCoordination(home, database))
replies = KeyedAnswers(lambda workspace: DatabaseRecords(database, workspace), presence)
replies.once("w", "POST /v1/部署", "k", b"c", act)
"""


def test_a_key_whose_process_was_killed_is_free(opened: Opened, tmp_path: Path) -> None:
    other = opened()
    with subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline() == b"begun\n"
        assert other.once("w", ROUTE, "k", b"c", forbidden) is None
        os.kill(process.pid, signal.SIGKILL)
    assert other.once("w", ROUTE, "k", b"c", lambda: b"done") == (b"done", False)


@pytest.mark.parametrize(("most_answers", "most_bytes"), [(3, 10**6), (10**6, 3 * 120)])
def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch, most_answers: int, most_bytes: int) -> None:
    monkeypatch.setattr("memory_service.runtime.keyed_answers._TRIM_EVERY", 1)
    records = MemoryRecords()
    replies = KeyedAnswers(
        lambda workspace: records,
        Presence(MemoryCoordination()),
        most_answers=most_answers,
        most_bytes=most_bytes,
    )
    for number in range(10):
        assert replies.once("w", ROUTE, str(number), b"", lambda: b"x" * 100) == (b"x" * 100, False)
    assert len(list(records.keys(RecordKind.REPLY))) == 3
    for number in (9, 8, 7):
        assert replies.once("w", ROUTE, str(number), b"", forbidden) == (b"x" * 100, True)
    for _ in range(2):
        large = b"x" * (most_bytes + 1)
        assert replies.once("w", ROUTE, "large", b"", lambda large=large: large) == (large, False)  # type: ignore[misc]


def test_an_answer_is_not_stored_if_what_it_says_is_erased_meanwhile() -> None:
    records = MemoryRecords()
    replies = KeyedAnswers(lambda workspace: records, Presence(MemoryCoordination()))

    def act() -> bytes:
        records.erase(RecordKind.SESSION_REPLY)
        records.erase(RecordKind.REPLY)
        return b"heliotrope"

    assert replies.once("w", ROUTE, "k", b"", act, session_id="s") == (b"heliotrope", False)
    assert list(records.keys(RecordKind.SESSION_REPLY)) == []


def test_a_home_that_cannot_be_written_does_it_without_a_note(opened: Opened, tmp_path: Path) -> None:
    replies = opened()
    (tmp_path / ".shared").write_text("a file in the place of the folder")
    assert replies.once("w", ROUTE, "k", b"c", lambda: b"done") == (b"done", False)


def test_a_request_that_makes_the_home_has_a_key_too(tmp_path: Path) -> None:
    home = tmp_path / "home"
    database = SharedDatabase(home)
    coordination = FileCoordination(home, database)
    replies = KeyedAnswers(lambda workspace: DatabaseRecords(database, workspace), Presence(coordination))
    assert replies.once("w", ROUTE, "k", b"c", lambda: b"nothing") == (b"nothing", False)
    assert not home.exists()

    def makes() -> bytes:
        home.mkdir()
        return b"made"

    assert replies.once("w", ROUTE, "k", b"c", makes) == (b"made", False)
    assert replies.once("w", ROUTE, "k", b"c", forbidden) == (b"made", True)
    database.close()
