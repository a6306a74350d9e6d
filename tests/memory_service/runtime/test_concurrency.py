"""Several threads, and two services on one home, at one session: nothing is lost, out of order, or stuck."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable

import pytest

from memory_service.errors import Conflict
from memory_service.runtime.base import CompactionCall
from memory_service.schemas.compaction import CompactRequest, SessionContextRequest
from memory_service.service.short_term import WorkspaceSessions
from tests.memory_service.rooms import Room, S, refused_by_providers, says, user, words

Rooms = Callable[..., Room]
TURNS = 12
CALL = SessionContextRequest(recall="never", memory_budget_tokens=0)


class Crowd:
    """Threads that work at a session until all have ended; what fails in one of them fails the test."""

    def __init__(self) -> None:
        self._threads = list[threading.Thread]()
        self._failures = list[BaseException]()
        self.over = threading.Event()

    def add(self, work: Callable[[], None]) -> None:
        def run() -> None:
            try:
                work()
            except BaseException as error:
                self._failures.append(error)

        self._threads.append(threading.Thread(target=run, daemon=True))

    def run(self, writers: int) -> None:
        """Run all; the first `writers` decide how long."""
        for thread in self._threads:
            thread.start()
        for thread in self._threads[:writers]:
            thread.join(60)
        self.over.set()
        for thread in self._threads:
            thread.join(60)
        assert not any(thread.is_alive() for thread in self._threads), "somebody waits for ever"
        if self._failures:
            raise self._failures[0]


def writes(sessions: WorkspaceSessions, name: str, count: int) -> Callable[[], None]:
    def work() -> None:
        for number in range(count):
            text = f"{name} {number} 说： " + words(60)
            sessions.append(S, [user(text), says(f"{name} {number} 答")])

    return work


def compacts_and_undoes(sessions: WorkspaceSessions, crowd: Crowd, seed: int) -> Callable[[], None]:
    def work() -> None:
        rng = random.Random(seed)
        while not crowd.over.is_set():
            try:
                if rng.random() < 0.6:
                    sessions.compactions.compact(S, CompactionCall(request=CompactRequest(force=True)))
                elif active := [past for past in sessions.compactions.past(S) if past.active]:
                    sessions.compactions.undo(S, rng.choice(active).compaction_id or "")
            except Conflict:
                continue  # who comes second changes nothing

    return work


def asks(sessions: WorkspaceSessions, crowd: Crowd, seen: list[list[str]]) -> Callable[[], None]:
    def work() -> None:
        while not crowd.over.is_set():
            seen.append(refused_by_providers(sessions.context(S, CALL).prompt.messages))

    return work


def in_order(room: Room, name: str, count: int) -> None:
    mine = [message["content"] for message in room.raw_log() if message["content"].startswith(f"{name} ")]
    assert [text.split(" 说")[0].split(" 答")[0] for text in mine] == [
        f"{name} {number}" for number in range(count) for _ in range(2)
    ]


@pytest.mark.parametrize("services", [1, 2])
def test_nothing_is_lost_whoever_else_works_at_the_session(rooms: Rooms, services: int) -> None:
    given = {"context_window": 8_000, "flush": {"mode": "extractive"}}
    opened = [rooms(**given) for _ in range(services)]
    first, last = opened[0].sessions, opened[-1].sessions
    opened[0].say(user("Begin. 开始。"), says("Yes."))
    crowd, seen = Crowd(), list[list[str]]()
    for name, sessions in zip("abcd", (first, last, first, last), strict=True):
        crowd.add(writes(sessions, name, TURNS))
    crowd.add(compacts_and_undoes(first, crowd, 1))
    crowd.add(compacts_and_undoes(last, crowd, 2))
    crowd.add(asks(first, crowd, seen))
    crowd.add(asks(last, crowd, seen))
    crowd.run(writers=4)
    assert len(opened[0].raw_log()) == 2 + 4 * 2 * TURNS
    for name in "abcd":
        in_order(opened[0], name, TURNS)
    assert seen and not any(seen)
    states = [room.sessions.snapshot(S).state for room in opened]
    assert len({(state.last_seq, state.head.seq) for state in states}) == 1
    assert len({room.view_text() for room in opened}) == 1


def test_two_batches_are_never_mixed(room: Room) -> None:
    crowd = Crowd()
    for name in "abcd":
        crowd.add(writes(room.sessions, name, 25))
    crowd.run(writers=4)
    said = [message["content"].split(" 说")[0].split(" 答")[0] for message in room.raw_log()]
    assert all(said[at] == said[at + 1] for at in range(0, len(said), 2))


def test_the_same_key_at_once_appends_once(room: Room) -> None:
    crowd, made = Crowd(), list[bool]()
    for _ in range(4):
        crowd.add(lambda: made.append(room.sessions.append(S, [user("只有一次")], key="k").replayed))
    crowd.run(writers=4)
    assert sorted(made) == [False, True, True, True] and len(room.raw_log()) == 1
