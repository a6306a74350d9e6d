"""What `compaction.fallback` does when the model fails, with every preset; and without it, the preset's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from memory_service.compaction.presets import PRESETS
from memory_service.errors import UpstreamFailed
from memory_service.schemas.compaction import StatelessRequest
from memory_service.testing import ScriptedModel
from tests.memory_service.rooms import Room, S, refused_by_providers, says, turn, user

Rooms = Callable[..., Room]
OFF = {"mode": "off"}
METHODS = {"extractive": "extractive", "note": "note", "last_turns": "note"}


def broken() -> ScriptedModel:
    return ScriptedModel(*[UpstreamFailed("It quotes 机密.", kind="other")] * 99)


def talked(rooms: Rooms, preset: str, fallback: str, model: ScriptedModel | None = None) -> Room:
    compaction = {"preset": preset, "fallback": fallback}
    room = rooms(context_window=16_000, model=model or broken(), compaction=compaction, flush=OFF)
    room.say(user("第 0 个问题：备份放在 /srv/backup/nightly.tar。"), says("好的，记下了。"))
    room.talk(20, 300, first=1)
    return room


@pytest.mark.parametrize(
    ("preset", "fallback"),
    [
        (name, fallback)
        for name, preset in PRESETS.items()
        for fallback in ("preset", *METHODS)
        if (preset.fallback, fallback) != ("none", "preset")
    ],
)
def test_something_stands_in_for_the_summary(rooms: Rooms, preset: str, fallback: str) -> None:
    model = broken()
    room = talked(rooms, preset, fallback, model)
    wanted = PRESETS[preset].fallback if fallback == "preset" else fallback
    made = room.compact(force=True)
    assert made.applied and made.method == METHODS[wanted]
    assert (made.calls, made.model) == (len(model.requests), None) and made.calls > 0
    assert any("(other)" in note for note in made.notes)
    assert "机密" not in f"{made}{room.view_text()}" and "Question 20" in room.view_text()
    assert ("without a summary" in made.summary) is (made.method == "note")


@pytest.mark.parametrize("preset", PRESETS)
def test_with_none_nothing_changes_and_the_caller_is_told(rooms: Rooms, preset: str) -> None:
    room = talked(rooms, preset, "none")
    log, view = room.bytes(), room.view()
    with pytest.raises(UpstreamFailed):
        room.compact(force=True)
    assert (room.bytes(), room.view()) == (log, view)
    messages = [message for number in range(20) for message in turn(number, 300)]
    with pytest.raises(UpstreamFailed):
        room.service.compact_messages(StatelessRequest(messages=messages, context_window=16_000, force=True))


def test_a_session_may_set_its_own(rooms: Rooms) -> None:
    room = talked(rooms, "openclaw", "none")
    own: dict[str, Any] = {"compaction": {"fallback": "extractive"}}
    room.sessions.store.update(S, {"settings": own})
    assert room.compact(force=True).method == "extractive"


@pytest.mark.parametrize("preset", PRESETS)
def test_the_last_turns_stay_without_their_tools(rooms: Rooms, preset: str) -> None:
    own = {"preset": preset, "fallback": "last_turns"}
    room = rooms(context_window=16_000, model=broken(), compaction=own, pruning=OFF, flush=OFF)
    room.work(20, 300)
    before = room.view()
    made = room.compact(force=True)
    text = room.view_text()
    assert made.applied and made.method == "note" and "Answer 19" in text and "Question 19" in text
    assert not any(message.get("tool_calls") or message["role"] == "tool" for message in room.view())
    assert "calls of tools with their results and reasoning are left out" in text
    assert refused_by_providers(room.view()) == []
    room.work(20, 300, first=20)
    again = room.compact(force=True)
    assert again.applied and made.first_kept < again.first_kept
    room.undo(again.compaction_id)
    room.undo(made.compaction_id)
    assert room.view()[: len(before)] == before
