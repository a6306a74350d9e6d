"""Two server processes on one home: operations, answers by key and events are those of both."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, Protocol

import httpx
import pytest
from pydantic import SecretStr

from memory_service.config import Settings
from memory_service.storage.engines import open_storage
from tests.serving import NO_TLS, W, events_of, own_process
from tests.waiting import PATIENCE_SECONDS

TALK = [
    {"role": role, "content": f"{word} number {number} of the long talk about parcels and ferns. " * 12}
    for number in range(40)
    for role, word in (("user", "Question"), ("assistant", "Answer"))
]


CLOCK = """
import datetime, time
of_machine, seconds, nanoseconds = datetime.datetime, time.time, time.time_ns
class other_clock(of_machine):
    @classmethod
    def now(cls, tz=None):
        return of_machine.now(tz) + datetime.timedelta(hours={hours})
datetime.datetime = other_clock
time.time = lambda: seconds() + {hours} * 3600
time.time_ns = lambda: nanoseconds() + {hours} * 3600 * 10**9
"""


@dataclass(frozen=True, slots=True)
class Server:
    """A server process, and a client of it."""

    http: httpx.Client
    pid: int

    def post(self, path: str, body: object, key: str = "") -> httpx.Response:
        return self.http.post(f"{W}{path}", json=body, headers={"Idempotency-Key": key} if key else {})

    def operation(self, operation_id: str) -> dict[str, Any]:
        found: dict[str, Any] = self.http.get(f"{W}/operations/{operation_id}").raise_for_status().json()
        return found


class Start(Protocol):
    """Starts a server, whose clock may be ahead of that of the machine, or behind it."""

    def __call__(self, hours_ahead: int = 0) -> Server: ...


def _clock(folder: Path, hours_ahead: int) -> str:
    """A folder from which Python loads another clock at its start."""
    folder.mkdir(exist_ok=True)
    (folder / "sitecustomize.py").write_text(CLOCK.format(hours=hours_ahead))
    return str(folder)


@contextmanager
def starting(folder: Path, database: str) -> Iterator[Start]:
    """Starts server processes on one home while a block runs."""
    environment = {
        "MEMORY_SERVICE_TIMEZONE": "UTC",
        "MEMORY_SERVICE_EMBEDDING_MODEL": "none",
        "MEMORY_SERVICE_DATABASE_URL": database,
    }
    numbers = count(1)
    with ExitStack() as stack:

        def started(hours_ahead: int = 0) -> Server:
            # In a database, each has a folder of its own.
            home = folder / f"home-{next(numbers)}" if database else folder
            clock = {"PYTHONPATH": _clock(folder / f"clock{hours_ahead}", hours_ahead)} if hours_ahead else {}
            url, pid = stack.enter_context(own_process(home, environment | clock))
            return Server(stack.enter_context(httpx.Client(base_url=url, timeout=120, verify=NO_TLS)), pid)

        yield started


def write_notes(folder: Path, database: str, notes_count: int) -> None:
    """A home whose index takes a moment, or seconds."""
    notes = {
        f"memory/note-{number:04}.md": f"# Note {number}\n\n- Parcel {number} goes out on Tuesday.\n"
        for number in range(notes_count)
    }
    if database:
        with closing(open_storage(Settings(home=folder, database_url=SecretStr(database)))) as storage:
            documents = storage.workspace("default").documents
            for path, text in notes.items():
                documents.append(path, text.encode(), expected=None)
        return
    (folder / "default" / "memory").mkdir(parents=True)
    for path, text in notes.items():
        (folder / "default" / path).write_text(text)


@pytest.fixture(scope="module", params=["files", "postgres"])
def start(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Start]:
    """Starts server processes on one home, whose index takes seconds; they end with the tests of an engine."""
    folder, database = tmp_path_factory.mktemp("servers"), ""
    if request.param == "postgres":
        databases = request.getfixturevalue("postgres_databases")
        database = databases.migrated()
    write_notes(folder, database, 1_200)
    with starting(folder, database) as started:
        yield started
    if database:
        databases.drop()


@pytest.fixture(scope="module")
def servers(start: Start) -> tuple[Server, Server]:
    """Two of them, which tests share."""
    return start(), start()


def soon(reached: Callable[[], Any], seconds: float = PATIENCE_SECONDS) -> Any:
    """The first value that holds; asked again and again."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if value := reached():
            return value
        time.sleep(0.02)
    raise TimeoutError


def test_an_operation_of_one_is_seen_and_cancelled_by_the_other(servers: tuple[Server, Server]) -> None:
    one, other = servers
    operation = one.post("/reindex", {"full": True}).json()["operation_id"]
    running = soon(lambda: (now := other.operation(operation))["rate"] > 0 and now)
    assert running["state"] == "running" and 0 < running["done"] <= running["total"]
    other.http.delete(f"{W}/operations/{operation}").raise_for_status()
    ended = soon(lambda: (now := one.operation(operation))["state"] != "running" and now)
    assert ended["state"] == "cancelled"
    assert soon(lambda: (now := other.operation(operation))["state"] != "running" and now) == ended

    again = other.post("/reindex", {}).json()["operation_id"]
    done = soon(lambda: (now := one.operation(again))["state"] == "done" and now)
    assert done["report"] == other.operation(again)["report"] and not done["report"]["failed"]


def test_an_operation_whose_process_was_killed_has_failed(start: Start, servers: tuple[Server, Server]) -> None:
    victim, other = start(), servers[1]
    operation = victim.post("/reindex", {"full": True}).json()["operation_id"]
    soon(lambda: other.operation(operation)["state"] == "running")
    os.kill(victim.pid, signal.SIGKILL)
    failed = soon(lambda: (now := other.operation(operation))["state"] != "running" and now)
    assert failed["state"] == "failed" and "ended" in failed["error"]
    assert start().operation(operation) == failed


def test_a_key_is_answered_by_both_as_by_the_first(servers: tuple[Server, Server]) -> None:
    one, other = servers
    before = len(one.http.get(f"{W}/sessions").json()["sessions"])
    first = one.post("/sessions", {"title": "parcels and ferns"}, "k1")
    again = other.post("/sessions", {"title": "parcels and ferns"}, "k1")
    assert (again.status_code, again.content) == (201, first.content)
    assert [each.headers.get("Idempotency-Replayed") for each in (first, again)] == [None, "true"]
    refused = other.post("/sessions", {"title": "another talk"}, "k1")
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "conflict")

    def both(number: int) -> list[httpx.Response]:
        with ThreadPoolExecutor(2) as threads:
            body, key = {"title": f"talk {number}"}, f"at-once-{number}"
            asked = [threads.submit(each.post, "/sessions", body, key) for each in (one, other)]
            return [each.result() for each in asked]

    for number in range(20):
        answers = both(number)
        assert answers[0].content == answers[1].content
        assert sorted(str(each.headers.get("Idempotency-Replayed")) for each in answers) == ["None", "true"]
    assert len(one.http.get(f"{W}/sessions").json()["sessions"]) == before + 21


def test_events_of_one_are_heard_at_the_other(servers: tuple[Server, Server]) -> None:
    one, other = servers
    one.post("/sessions/talk/messages", {"messages": TALK}).raise_for_status()
    with other.http.stream("GET", f"{W}/sessions/talk/events") as stream:
        lines = stream.iter_lines()
        assert next(lines).startswith("retry")
        one.post("/sessions/talk/compact", {"mode": "apply", "force": True}).raise_for_status()
        heard = events_of(lines)
        first = [next(heard) for _ in range(3)]
        other.post("/sessions/talk/compact", {"mode": "apply", "force": True}).raise_for_status()
        second = next(heard)
    ids = [int(event.id) for event in (*first, second)]
    assert [event.name for event in first] == ["flush", "compaction_start", "compaction_end"]
    assert ids == list(range(ids[0], ids[0] + 4))
    # A listener of either goes on where it was.
    with one.http.stream("GET", f"{W}/sessions/talk/events", params={"after": ids[0]}) as stream:
        again = events_of(stream.iter_lines())
        assert [int(next(again).id) for _ in range(3)] == ids[1:]
    assert one.http.get(f"{W}/sessions/talk/idle", params={"timeout_seconds": 5}).json()["idle"]


@pytest.mark.parametrize("hours", [30, -30])
def test_a_clock_that_is_off_takes_no_lease_and_loses_no_event(
    tmp_path: Path, migrated_database: str, hours: int
) -> None:
    write_notes(tmp_path, migrated_database, 200)
    with starting(tmp_path, migrated_database) as start:
        one, other = start(), start(hours)
        # What one answered a day and six hours ago by the clock of the other is still answered.
        first = one.post("/sessions", {"session_id": "talk"}, "k1")
        assert other.post("/sessions", {"session_id": "talk"}, "k1").content == first.content
        back = other.post("/sessions", {"session_id": "talk-2"}, "k2")
        assert one.post("/sessions", {"session_id": "talk-2"}, "k2").content == back.content
        # Work of each is neither taken over nor given up by the other.
        for at_work, looking in ((one, other), (other, one)):
            operation = at_work.post("/reindex", {"full": True}).json()["operation_id"]
            soon(lambda at=looking, name=operation: at.operation(name)["state"] == "running")  # type: ignore[misc]
            done = soon(lambda at=looking, name=operation: (now := at.operation(name))["state"] != "running" and now)  # type: ignore[misc]
            assert done["state"] == "done", done
        one.post("/sessions/talk/messages", {"messages": TALK}).raise_for_status()
        with one.http.stream("GET", f"{W}/sessions/talk/events") as here:
            with other.http.stream("GET", f"{W}/sessions/talk/events") as there:
                streams = [stream.iter_lines() for stream in (here, there)]
                for lines in streams:
                    assert next(lines).startswith("retry")
                for server in (one, other, one):
                    server.post("/sessions/talk/compact", {"mode": "apply", "force": True}).raise_for_status()
                heard = [events_of(lines) for lines in streams]
                ids = [[int(next(events).id) for _ in range(5)] for events in heard]
        assert ids[0] == ids[1] == list(range(ids[0][0], ids[0][0] + 5))
        # A key of a day holds at both for a day.
        new_key = {"name": "of a day", "role": "admin", "workspaces": ["*"], "days": 1}
        headers = dict[str, str]()
        for maker, user in ((one, other), (other, one)):
            answer = maker.http.post("/v1/keys", json=new_key, headers=headers).raise_for_status()
            headers = {"Authorization": f"Bearer {answer.json()['key']}"}
            user.http.get(f"{W}/memories", headers=headers).raise_for_status()
