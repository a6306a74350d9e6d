"""Two server processes on one home: operations, answers by key and events are those of both."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import SecretStr

from memory_service.config import Settings
from memory_service.storage.engines import open_storage
from tests.serving import NO_TLS, W, events_of, own_process

TALK = [
    {"role": role, "content": f"{word} number {number} of the long talk about parcels and ferns. " * 12}
    for number in range(40)
    for role, word in (("user", "Question"), ("assistant", "Answer"))
]


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


Start = Callable[[], Server]


@pytest.fixture(params=["files", "postgres"])
def database(request: pytest.FixtureRequest) -> str:
    """The address of a database; empty for files."""
    return str(request.getfixturevalue("migrated_database")) if request.param == "postgres" else ""


@pytest.fixture
def start(tmp_path: Path, database: str) -> Iterator[Start]:
    """Starts server processes on one home; they end with the test."""
    environment = {
        "MEMORY_SERVICE_TIMEZONE": "UTC",
        "MEMORY_SERVICE_EMBEDDING_MODEL": "none",
        "MEMORY_SERVICE_DATABASE_URL": database,
    }
    numbers = count(1)
    with ExitStack() as stack:

        def started() -> Server:
            # In a database, each has a folder of its own.
            home = tmp_path / f"home-{next(numbers)}" if database else tmp_path
            url, pid = stack.enter_context(own_process(home, environment))
            return Server(stack.enter_context(httpx.Client(base_url=url, timeout=60, verify=NO_TLS)), pid)

        yield started


@pytest.fixture
def large(tmp_path: Path, database: str) -> Path:
    """A home whose index takes some seconds."""
    notes = {
        f"memory/note-{number:04}.md": f"# Note {number}\n\n- Parcel {number} goes out on Tuesday.\n"
        for number in range(2_000)
    }
    if database:
        with closing(open_storage(Settings(home=tmp_path, database_url=SecretStr(database)))) as storage:
            documents = storage.workspace("default").documents
            for path, text in notes.items():
                documents.append(path, text.encode(), expected=None)
        return tmp_path
    (tmp_path / "default" / "memory").mkdir(parents=True)
    for path, text in notes.items():
        (tmp_path / "default" / path).write_text(text)
    return tmp_path


def soon(reached: Callable[[], Any], seconds: float = 60.0) -> Any:
    """The first value that holds; asked again and again."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if value := reached():
            return value
        time.sleep(0.02)
    raise TimeoutError


def test_an_operation_of_one_is_seen_and_cancelled_by_the_other(start: Start, large: Path) -> None:
    one, other = start(), start()
    operation = one.post("/reindex", {"full": True}).json()["operation_id"]
    running = soon(lambda: (now := other.operation(operation))["done"] and now)
    assert (running["state"], running["total"]) == ("running", running["total"]) and running["rate"] > 0
    other.http.delete(f"{W}/operations/{operation}").raise_for_status()
    ended = soon(lambda: (now := one.operation(operation))["state"] != "running" and now)
    assert ended["state"] == "cancelled"
    assert soon(lambda: (now := other.operation(operation))["state"] != "running" and now) == ended

    again = other.post("/reindex", {}).json()["operation_id"]
    done = soon(lambda: (now := one.operation(again))["state"] == "done" and now)
    assert done["report"] == other.operation(again)["report"] and not done["report"]["failed"]


def test_an_operation_whose_process_was_killed_has_failed(start: Start, large: Path) -> None:
    one, other = start(), start()
    operation = one.post("/reindex", {"full": True}).json()["operation_id"]
    soon(lambda: other.operation(operation)["state"] == "running")
    os.kill(one.pid, signal.SIGKILL)
    failed = soon(lambda: (now := other.operation(operation))["state"] != "running" and now, seconds=20)
    assert failed["state"] == "failed" and "ended" in failed["error"]
    assert start().operation(operation) == failed


def test_a_key_is_answered_by_both_as_by_the_first(start: Start) -> None:
    one, other = start(), start()
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
    assert len(one.http.get(f"{W}/sessions").json()["sessions"]) == 21


def test_events_of_one_are_heard_at_the_other(start: Start) -> None:
    one, other = start(), start()
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
