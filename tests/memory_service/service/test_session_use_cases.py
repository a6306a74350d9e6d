"""Sessions in process: what the client can do over HTTP, a program does with `MemoryService` and the same values."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import pytest

from memory_service import schemas
from memory_service.client._session import Session
from memory_service.errors import Conflict, InvalidName, InvalidRequest, NotFound
from memory_service.service import MemoryService
from tests.memory_service.rooms import Room, S, W, says, user

# What is named otherwise in process: long-term memory has the name, the session is named by its id, or there is a
# method of the client alone, which calls the others.
NAMED = {
    "context": "session_context", "search": "session_search", "status": "session_status", "update": "update_session",
    "delete": "delete_session", "events": "session_events",
    "erase": "erase_messages",
}  # fmt: skip
CLIENTS_OWN = {"complete", "plan", "preview"}


def test_every_method_of_the_client_is_one_of_the_service() -> None:
    wanted = {name for name, _ in inspect.getmembers(Session, inspect.isfunction) if not name.startswith("_")}
    for name in wanted - CLIENTS_OWN:
        method = getattr(MemoryService, NAMED.get(name, name))
        assert [*inspect.signature(method).parameters][1:3] == ["workspace", "session_id"], name


def test_a_session_from_its_beginning_to_its_end(room: Room) -> None:
    service = room.service
    begun = service.create_session(W, schemas.NewSession(session_id="talk", context_window=16_000))
    assert type(begun) is schemas.Session
    assert begun.context_window.source == "session"
    appended = service.append(W, "talk", [user("When do we deploy?"), says("On Tuesdays.")], key="k")
    assert (appended.first_seq, appended.last_seq, appended.pressure) == (2, 3, "ok")
    assert service.append(W, "talk", [user("When do we deploy?"), says("On Tuesdays.")], key="k").replayed
    pinned = service.pin(W, "talk", "Never on Fridays.")
    assert service.pins(W, "talk").pins == [pinned]
    found = service.session_search(W, "talk", "deploy")
    assert [hit.seq for hit in found.results] == [2]
    logged = service.messages(W, "talk", "log")
    assert (logged.seqs, logged.messages[0]) == ([2, 3], user("When do we deploy?"))
    assert json.loads(service.message(W, "talk", 3)) == says("On Tuesdays.")
    assert service.unpin(W, "talk", pinned.pin_id).pin_id == pinned.pin_id
    assert service.update_session(W, "talk", model="gpt-4o").model == "gpt-4o"
    assert [each.session_id for each in service.list_sessions(W).sessions] == ["talk"]
    assert service.trim(W, "talk", 0).backup
    assert service.messages(W, "talk", "log").messages == []
    service.restore(W, "talk")
    assert service.session_status(W, "talk").messages == 2
    assert service.delete_session(W, "talk").session_id == "talk"
    with pytest.raises(NotFound):
        service.session_status(W, "talk")


def test_a_prompt_has_the_shape_that_was_asked_for(room: Room) -> None:
    room.say({"role": "system", "content": "只说中文。"}, user("什么时候部署？"))
    request = schemas.SessionContextRequest(system_prompt="You are 助手.", recall="never", format="anthropic")
    made = room.service.session_context(W, S, request)
    assert type(made) is schemas.SessionContext
    assert made.messages[-1] == {"role": "user", "content": [{"type": "text", "text": "什么时候部署？"}]}
    assert "You are 助手." in str(made.system)
    assert made.tokens.total == sum((made.tokens.system, made.tokens.memory, made.tokens.summary, made.tokens.tail))


def test_a_compaction_is_planned_made_listed_and_undone(room: Room) -> None:
    room.talk(40)
    before = room.service.messages(W, S)
    plan = room.service.compact(W, S, schemas.CompactRequest(mode="plan", force=True))
    assert not plan.applied and plan.steps
    made = room.service.compact(W, S, schemas.CompactRequest(force=True))
    assert type(made) is schemas.CompactionReceipt
    assert made.applied
    assert room.service.compactions(W, S).compactions[0].compaction_id == made.compaction_id
    assert room.service.compaction(W, S, made.compaction_id or "").summary == made.summary
    assert room.service.undo(W, S).compaction_id == made.compaction_id
    assert room.service.messages(W, S) == before
    with pytest.raises(NotFound, match="no compaction that counts"):
        room.service.undo(W, S)
    with pytest.raises(Conflict):
        room.service.undo(W, S, made.compaction_id)


def test_a_refused_prompt_is_made_to_fit(room: Room) -> None:
    room.talk(24)
    error = "prompt is too long: 9000 tokens > 7000 maximum"
    done = room.service.overflow(W, S, schemas.OverflowRequest(error=error, system_prompt="Be brief."))
    assert (done.action, done.remedy, done.learned_window) == ("retry", "compact", 7_000)
    assert done.messages[0] == {"role": "system", "content": "Be brief."}
    assert not room.service.wait_idle(W, S, 0), "it is to be tried again"
    usage = schemas.UsageReport(prompt_tokens=5_000, completion_tokens=10)
    assert room.service.append(W, S, [says("Done.")], usage=usage).source == "usage"
    assert room.service.wait_idle(W, S, 0)


def test_what_was_said_is_flushed_and_told(room: Room) -> None:
    room.say(user("Remember: deploys always go out on Tuesdays after the stand-up."))
    with room.service.session_events(W, S) as events:
        done = room.service.flush(W, S)
        assert [event.kind for event in events.take()] == ["flush"]
    assert type(done) is schemas.Flush
    assert done.written
    assert "NO_REPLY" in room.service.flush_prompt(W, S).prompt


def test_usage_that_says_nothing_is_named(room: Room) -> None:
    made = room.service.append(W, S, [user("Hi.")], usage=schemas.UsageReport())
    assert made.degraded == ["usage: none of its numbers is known; nothing was counted."]


@pytest.mark.parametrize(
    ("call", "arguments"),
    [
        ("append", ("talk", [])),
        ("append", ("talk", [{"role": ""}])),
        ("append", ("../talk", [user("Hi.")])),
        ("pin", ("talk", " ")),
        ("create_session", (schemas.NewSession(session_id="talk", settings={"unknown": 1}),)),
        ("create_session", (schemas.NewSession(session_id="../talk"),)),
    ],
)
def test_what_cannot_be_written_makes_no_workspace(room: Room, call: str, arguments: tuple[Any, ...]) -> None:
    with pytest.raises((InvalidRequest, InvalidName)):
        getattr(room.service, call)("new", *arguments)
    assert room.service.workspaces() == [W]


def test_a_name_that_the_disk_does_not_know_is_not_found(tmp_path: Path) -> None:
    with MemoryService.open(tmp_path, embedding_model="none") as service, pytest.raises(NotFound):
        service.session_context("default", "talk")
