from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from memory_service.errors import Conflict, NotFound
from tests.memory_service.service.rooms import Room, S, user

Rooms = Callable[..., Room]


def test_a_session_is_opened_once_and_anew_when_it_was_erased(room: Room) -> None:
    bench = room.sessions._bench
    with pytest.raises(NotFound):
        bench.session(S)
    made = bench.ensured(S, model="gpt-4")
    assert bench.session(S) is bench.ensured(S) is made
    assert bench.look(S).options.model_name == "gpt-4"
    with pytest.raises(Conflict):
        bench.created(S, model=None, context_window=None, settings={})
    bench.deleted(S)
    with pytest.raises(NotFound):
        bench.session(S)
    assert bench.ensured(S) is not made


def test_more_sessions_than_are_held_open_are_still_there(room: Room) -> None:
    for number in range(260):
        room.sessions._bench.ensured(f"s{number}")
    room.sessions.append("s0", [user("还在")])
    assert len(room.sessions._bench._sessions) == 256
    assert room.sessions.look("s0").state.messages


def test_one_works_at_a_session_alone_and_may_go_in_twice(room: Room) -> None:
    room.say(user("x"))
    bench, order = room.sessions._bench, list[str]()

    def enter(session_id: str, name: str) -> threading.Thread:
        def work() -> None:
            with bench.alone(session_id):
                order.append(name)

        thread = threading.Thread(target=work)
        thread.start()
        return thread

    with bench.alone(S), bench.alone(S, compacting=True):
        enter("another", "another session").join(10)
        waiting = enter(S, "other")
        room.say(user("appends go on"))
        waiting.join(0.1)
        order.append("first")
    waiting.join(10)
    assert order == ["another session", "first", "other"]


def test_what_was_erased_elsewhere_is_gone_here_too(rooms: Rooms) -> None:
    one, two = rooms(), rooms()
    one.say(user("x"))
    assert len(two.raw_log()) == 1
    two.sessions.talks.delete(S)
    with pytest.raises(NotFound):
        one.sessions.talks.summary(S)
    two.say(user("y"))
    assert [message["content"] for message in one.raw_log()] == ["y"]
