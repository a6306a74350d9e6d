from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from memory_service.errors import Conflict, InvalidRequest, NotFound, UpstreamFailed
from memory_service.hooks import Refused
from memory_service.runtime.models import Models
from memory_service.testing import ScriptedModel
from tests.memory_service.rooms import Room, S, W, says, user, words

Rooms = Callable[..., Room]
FACT = "请记住：发布永远在周二上午 10 点之后。"


@pytest.fixture
def rooms(rooms: Rooms) -> Rooms:
    """Rooms in which a judge tells what lasts."""
    return partial(rooms, embedding_model="auto")


def flushed(room: Room, **given: Any) -> Any:
    return room.sessions.flushes.flush(S, **given)


def due(room: Room) -> str:
    snapshot = room.sessions.snapshot(S)
    return room.sessions.flushes.due(snapshot, snapshot.reading().tokens, snapshot.budget())


def test_rules_find_what_is_to_be_kept_and_the_next_search_finds_it(room: Room) -> None:
    room.say(user(FACT), says("好的。"), user("Remember: the staging port is 7443."), says("Noted."))
    made = flushed(room)
    assert (made.method, made.messages, made.duplicates) == ("extractive", (2, 5), 0)
    assert made.path is not None and made.path.startswith("memory/") and len(made.written) >= 2
    assert "周二上午 10 点" in room.days and "7443" in room.days and f"session={S}" in room.days
    found = room.service.search(W, "staging port").results
    assert any("7443" in hit.text for hit in found)
    assert all(memory.memory_id in room.days for memory in made.written)


@pytest.mark.parametrize(
    ("fact", "question", "again", "changed"),
    [
        (
            "We decided: deploys go out on Tuesdays at 10:00, never on Fridays.",
            "When do we deploy?",
            "As I remember, deploys are on Tuesdays at 10:00.",
            "As I remember, deploys are on Wednesdays at 10:00.",
        ),
        (
            "记住：我住在上海，以后快递都放在门卫室。",
            "快递放在哪里？",
            "根据我的记忆，您住在上海，快递都放在门卫室。",
            "根据我的记忆，您住在北京，快递都放在门卫室。",
        ),
    ],
)
def test_what_an_assistant_repeats_of_a_memory_is_no_fact_of_its_own(
    room: Room, fact: str, question: str, again: str, changed: str
) -> None:
    room.say(user(fact), says(again))
    assert len(flushed(room).written) == 1, "said again in the same stretch"
    room.say(user(question), says(again))
    assert flushed(room).written == []
    # Neither is a memory that it repeats wrongly.
    room.say(user(question), says(changed))
    assert flushed(room).written == []


def test_a_stretch_is_searched_once_and_a_fact_stored_once(room: Room) -> None:
    room.say(user(FACT), says("好的。"))
    flushed(room)
    before = room.days
    assert flushed(room).reason == "nothing was said since the last flush"
    room.say(user(FACT), says("知道。"))
    again = flushed(room)
    assert again.messages == (5, 6) or again.messages == (6, 7) or again.messages is not None
    assert again.written == [] and room.days == before
    assert room.sessions.snapshot(S).state.flushed_to == again.messages[1]


def test_nothing_to_note_is_noted(room: Room) -> None:
    room.say(user("hi"), says("hello"))
    made = flushed(room)
    assert (made.written, made.path, made.messages) == ([], None, (2, 3)) and made.reason
    assert room.sessions.snapshot(S).state.flushed_to == 3


def test_who_is_not_there_is_not_flushed(room: Room) -> None:
    with pytest.raises(NotFound):
        flushed(room)


def test_it_is_due_once_for_a_compaction_and_again_after_it(room: Room) -> None:
    assert room.sessions.append(S, [user(FACT)]).pressure == "ok" and due(room) == ""
    room.talk(22, 100)
    assert "before a compaction" in due(room)
    flushed(room)
    room.talk(1, 100, first=22)
    assert due(room) == ""
    room.compact(force=True)
    assert due(room) == ""
    room.talk(14, 100, first=23)
    assert "before a compaction" in due(room), "never flushed in this cycle"


def test_a_log_that_has_grown_much_is_flushed_whatever_its_window_is(rooms: Rooms) -> None:
    room = rooms(context_window=1_000_000, flush={"force_bytes": 20_000})
    room.say(user(words(4_000)))
    assert due(room) == ""
    room.say(user(words(1_500, chinese=True)))
    assert "bytes since the last flush" in due(room)
    flushed(room)
    assert due(room) == ""


def test_off_is_off(rooms: Rooms) -> None:
    room = rooms(context_window=8_000, flush={"mode": "off"})
    room.talk(40, 100)
    assert due(room) == "" and room.context().flush is None


@pytest.mark.parametrize("reply", ["NO_REPLY", " no_reply.", ""])
def test_an_agent_may_have_nothing_to_note(room: Room, reply: str) -> None:
    room.say(user(FACT), says("好的。"))
    made = flushed(room, reply=reply)
    assert (made.method, made.written) == ("agent", []) and room.days == ""
    assert flushed(room).reason == "nothing was said since the last flush"


def test_an_agents_notes_are_kept(room: Room) -> None:
    room.say(user(FACT), says("好的。"))
    made = flushed(room, reply="- 发布在周二上午 10 点之后。\n- The staging port is 7443.")
    assert [memory.text for memory in made.written] == ["发布在周二上午 10 点之后。", "The staging port is 7443."]


def test_a_model_finds_memories_and_rules_stand_in_for_it(rooms: Rooms) -> None:
    model = ScriptedModel(UpstreamFailed("down", kind="unavailable"))
    room = rooms(context_window=8_000, models=Models(memories=model))
    room.say(user(FACT), says("好的。"))
    made = flushed(room)
    assert made.method == "extractive" and made.written and "model failed (unavailable)" in made.degraded[0]


def test_what_a_model_found_and_is_of_the_moment_is_dropped(rooms: Rooms) -> None:
    found = "- The user said good morning.\n- The user lives in Graz.\n- The build is red right now."
    said = user("Good morning! I live in Graz. The build is red right now."), says("Good morning.")
    room = rooms(context_window=8_000, embedding_model="auto", models=Models(memories=ScriptedModel(found)))
    room.say(*said)
    made = flushed(room)
    assert [memory.text for memory in made.written] == ["The user lives in Graz."]
    assert made.method == "model" and made.reason.endswith("2 of the moment were dropped") and made.degraded == []


def test_without_a_judge_all_that_a_model_found_is_kept(rooms: Rooms) -> None:
    room = rooms(
        context_window=8_000,
        embedding_model="none",
        models=Models(memories=ScriptedModel("- The build is red right now.")),
    )
    room.say(user("The build is red right now."), says("OK."))
    assert len(flushed(room).written) == 1


def test_where_the_model_is_asked_for_nothing_stands_in(rooms: Rooms) -> None:
    broken = Models(memories=ScriptedModel(*[UpstreamFailed("down", kind="timeout")] * 3))
    room = rooms(context_window=8_000, models=broken, flush={"mode": "model"})
    room.say(user(FACT), says("好的。"))
    with pytest.raises(UpstreamFailed):
        flushed(room)
    assert room.sessions.snapshot(S).state.flushed_to == 0, "the stretch is left for the next flush"
    room.talk(22, 100)
    made = room.context()
    assert made.flush is not None and made.flush.degraded[0].startswith("flush: ")
    without = rooms(context_window=8_000, flush={"mode": "model"})
    with pytest.raises(InvalidRequest, match="no llm_model"):
        flushed(without)


def test_a_flush_that_fails_never_keeps_a_session_from_being_compacted(rooms: Rooms) -> None:
    broken = Models(memories=ScriptedModel(*[UpstreamFailed("down", kind="timeout")] * 3))
    room = rooms(context_window=8_000, models=broken, flush={"mode": "model"})
    room.talk(30, 100)
    made = room.context()
    assert made.flush is not None and made.flush.degraded and made.compaction is not None


def test_a_hook_may_refuse(room: Room) -> None:
    room.service.hooks.before_flush(lambda intent: Refused(reason="not on weekends"))
    room.say(user(FACT))
    with pytest.raises(Conflict, match="not on weekends"):
        flushed(room)
    assert room.days == "" and room.sessions.snapshot(S).state.flushed_to == 0


def test_summaries_and_checkpoints_are_never_taken_for_something_said(room: Room) -> None:
    room.say(user("请记住：端口是 7443。"), says("好的。"))
    flushed(room)
    room.talk(30, 100)
    before = room.days
    for first in (30, 40):
        room.compact(force=True)  # flushes what was said since
        assert "7443" not in room.days[len(before) :]
        room.talk(10, 100, first=first)
    made = flushed(room)
    assert "7443" not in room.days[len(before) :]
    assert made.messages is not None and made.messages[0] > 3


def test_a_note_has_the_day_that_was_stated_before_the_last_flush(room: Room) -> None:
    room.say(user("[Monday 8 May 2023] My name is Ana and I live in Graz."), says("Noted."))
    flushed(room)
    room.say(user("Yesterday I adopted a cat called Miso from the shelter."), says("Nice."))
    flushed(room)
    assert "(2023-05-08)" in next(line for line in room.days.splitlines() if "Miso" in line)
