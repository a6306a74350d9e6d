from __future__ import annotations

from collections.abc import Callable

import pytest

from memory_service.errors import NotFound
from memory_service.messages.sizes import Usage
from memory_service.messages.writing_anthropic import to_anthropic
from memory_service.schemas.compaction import OverflowRequest, SessionContextRequest
from tests.memory_service.rooms import Room, S, calls, result, says, system, tools, user

Rooms = Callable[..., Room]


def test_a_count_is_noted_beside_what_its_prompt_was_taken_for(room: Room) -> None:
    room.talk(3)
    tokens = room.context(system_prompt="You are 助手.", tools=tools(50)).prompt.tokens
    room.sessions.append(S, [says("ok")], usage=Usage(input_tokens=999))
    (counted,) = room.sessions.snapshot(S).state.usages
    assert counted.usage.estimated_tokens == tokens.system + tokens.tail + 50
    room.sessions.append(S, [says("more")], usage=Usage(input_tokens=999))
    assert room.sessions.snapshot(S).state.usages[-1].usage.estimated_tokens is None, "one prompt, one count"


def test_a_caller_may_know_better(room: Room) -> None:
    room.talk(3)
    room.context()
    room.sessions.append(S, [says("ok")], usage=Usage(input_tokens=9, estimated_tokens=8))
    assert room.sessions.snapshot(S).state.usages[0].usage.estimated_tokens == 8


def test_a_prompt_made_in_a_recovery_is_noted_too(room: Room) -> None:
    room.talk(24, 100)
    made = room.sessions.recover(S, OverflowRequest(error="prompt is too long: 9000 tokens > 7000 maximum"))
    assert made.context is not None
    room.sessions.append(S, [says("ok")], usage=Usage(input_tokens=999))
    tokens = made.context.prompt.tokens
    assert (
        room.sessions.snapshot(S).state.usages[0].usage.estimated_tokens
        == tokens.system + tokens.memory + tokens.summary + tokens.tail
    )


@pytest.mark.parametrize("ends", ["append", "give_up"])
def test_a_caller_can_wait_until_a_refused_prompt_is_settled(room: Room, ends: str) -> None:
    room.talk(24, 100)
    assert room.sessions.wait_idle(S, timeout_seconds=0)
    room.sessions.recover(S, OverflowRequest(error="prompt is too long: 9000 tokens > 7000 maximum"))
    assert not room.sessions.wait_idle(S, timeout_seconds=0), "it is to be tried again"
    if ends == "append":
        room.say(says("answered"))
    else:
        room.sessions.recover(S, OverflowRequest(error="Incorrect API key provided.", status=401))
    assert room.sessions.wait_idle(S, timeout_seconds=0)


def test_a_prompt_goes_over_the_wire_that_is_asked_for(room: Room) -> None:
    room.say(system("sys"), user("问"), calls("a"), result("a", "1"), says("ok"))
    messages = room.context().prompt.messages
    sent = room.sessions.to_wire(S, messages, "anthropic")
    assert sent.system == to_anthropic(messages)[0] and sent.messages[1]["role"] == "assistant"


def test_who_is_not_there_tells_nothing(room: Room) -> None:
    for ask in (
        lambda: room.sessions.events(S), lambda: room.sessions.snapshot(S), lambda: room.sessions.search(S, "x"),
        lambda: room.sessions.flush_prompt(S), lambda: room.sessions.context(S, SessionContextRequest()),
    ):  # fmt: skip
        with pytest.raises(NotFound):
            ask()


def test_two_workspaces_know_nothing_of_each_other(room: Room) -> None:
    room.say(user("枇杷膏"))
    other = room.service.sessions("other", make=True)
    with pytest.raises(NotFound):
        other.snapshot(S)
    other.append(S, [user("else")])
    assert len(room.raw_log()) == 1 and not other.search(S, "枇杷膏").results


def test_a_flush_prompt_tells_the_day(room: Room) -> None:
    room.say(user("x"))
    made = room.sessions.flush_prompt(S)
    assert f"{room.service.settings.now():%Y-%m-%d}" in made.prompt and "NO_REPLY" in made.prompt + made.system_prompt
