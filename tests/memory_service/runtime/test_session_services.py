from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from memory_service.errors import Conflict, NotFound
from tests.memory_service.rooms import Room, S, user

Rooms = Callable[..., Room]


def test_a_session_is_opened_once_and_anew_when_it_was_erased(room: Room) -> None:
    services = room.sessions._services
    with pytest.raises(NotFound):
        services.session(S)
    made = services.get_or_create(S, model="gpt-4")
    assert services.session(S) is services.get_or_create(S) is made
    assert services.snapshot(S).options.model_name == "gpt-4"
    with pytest.raises(Conflict):
        services.create(S, model=None, context_window=None, settings={})
    services.delete(S)
    with pytest.raises(NotFound):
        services.session(S)
    assert services.get_or_create(S) is not made


def test_more_sessions_than_are_held_open_are_still_there(room: Room) -> None:
    for number in range(260):
        room.sessions._services.get_or_create(f"s{number}")
    room.sessions.append("s0", [user("还在")])
    assert len(room.sessions._services._sessions) == 256
    assert room.sessions.snapshot("s0").state.messages


def test_one_works_at_a_session_alone_and_may_go_in_twice(room: Room) -> None:
    room.say(user("x"))
    services, order = room.sessions._services, list[str]()

    def enter(session_id: str, name: str) -> threading.Thread:
        def work() -> None:
            with services.alone(session_id):
                order.append(name)

        thread = threading.Thread(target=work)
        thread.start()
        return thread

    with services.alone(S), services.alone(S, compacting=True):
        enter("another", "another session").join(60)
        waiting = enter(S, "other")
        room.say(user("appends go on"))
        waiting.join(0.1)
        order.append("first")
    waiting.join(60)
    assert order == ["another session", "first", "other"]


def test_what_was_erased_elsewhere_is_gone_here_too(rooms: Rooms) -> None:
    one, two = rooms(), rooms()
    one.say(user("x"))
    assert len(two.raw_log()) == 1
    two.sessions.store.delete(S)
    with pytest.raises(NotFound):
        one.sessions.store.summary(S)
    two.say(user("y"))
    assert [message["content"] for message in one.raw_log()] == ["y"]
