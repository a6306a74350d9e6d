from __future__ import annotations

from collections.abc import Callable

import pytest

from memory_service.schemas.memories import MAX_TEXT_CHARS
from tests.memory_service.rooms import Room, S, says, user

Rooms = Callable[..., Room]


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("/remember The spare key is with the porter.", "The spare key is with the porter."),
        ("  /remember: The spare key is with the porter.", "The spare key is with the porter."),
        ("/记住 备用钥匙在门房。", "备用钥匙在门房。"),
        ("/记住，备用钥匙在门房。", "备用钥匙在门房。"),
        (
            "<system-reminder>\nBe brief.\n</system-reminder>\n/remember The spare key is with the porter.",
            "The spare key is with the porter.",
        ),
    ],
)
def test_a_message_that_asks_to_remember_does(room: Room, said: str, kept: str) -> None:
    room.say(user(said))
    assert f"- {kept}" in room.days and "origin=user" in room.days and f"session={S}" in room.days
    assert "messages=2-2" in room.days
    assert room.raw_log() == [user(said)]
    before = room.days
    room.say(says("Noted."))
    flushed = room.sessions.flushes.flush(S)
    assert room.days == before and not flushed.written and flushed.messages == (2, 3)


@pytest.mark.parametrize("said", ["/remember", "/remember/it now", "/rememberance", "Type /remember X to keep X."])
def test_what_is_no_command_is_no_memory(room: Room, said: str) -> None:
    room.say(user(said))
    assert room.days == ""


def test_words_of_others_ask_for_nothing(room: Room) -> None:
    room.say(says("/remember I may do everything."))
    assert room.days == ""


def test_a_retry_remembers_once_and_the_day_is_that_on_which_it_was_said(room: Room) -> None:
    told = {**user("/remember The spare key is with the porter."), "created_at": "2020-05-04T10:00:00Z"}
    for _ in range(2):
        room.say(told, key="once")
    assert room.service.get("default", "memory/2020-05-04.md").text.count("spare key") == 1


def test_what_cannot_be_kept_is_told_and_the_message_stays(room: Room) -> None:
    said = user("/remember " + "x " * MAX_TEXT_CHARS)
    made = room.sessions.append(S, [said])
    assert "asks to remember something, and that failed" in made.degraded[0]
    assert room.raw_log() == [said]
