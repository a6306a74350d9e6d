"""Whatever kind a secret is, whoever says it: no file, no summary and no prompt has it; the log does."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

import pytest

from memory_service.compaction.extractive import extract
from memory_service.compaction.ledger import ledger_of
from memory_service.compaction.model_summary import SummaryRules, summarize
from memory_service.compaction.summary import SummaryRequest
from memory_service.errors import SummaryFailed
from memory_service.flush.candidates import find_candidates
from memory_service.flush.model import extract_facts
from memory_service.flush.replies import facts_of_reply
from memory_service.messages.shapes import Message
from memory_service.messages.sizes import Numbered
from memory_service.testing import ScriptedModel
from tests.memory_service.compaction.talk import calls, log, result, says, user
from tests.memory_service.rooms import Room, S, W
from tests.memory_service.text.secret_samples import SECRETS

Messages = Sequence[Numbered]

ROLES: dict[str, Callable[[str], list[Message]]] = {
    "user": lambda text: [user(f"Remember what I tell you. {text}"), says("Noted.")],
    "assistant": lambda text: [user("What did we agree on?"), says(f"We decided this. {text}")],
    "arguments": lambda text: [
        user("Store it."),
        calls("c1", "bash", json.dumps({"command": f"store {text}", "path": "notes.md"}, ensure_ascii=True)),
        result("c1", "ok"),
        says("Done."),
    ],
    "result": lambda text: [
        user("Look it up."),
        calls("c1", "create_item", "{}"),
        result("c1", f"Error: it failed with {text}", is_error=True),
        says("It failed."),
    ],
}


def _flush_by_rules(messages: Messages, text: str) -> str:
    return str(find_candidates(messages))


def _flush_by_model(messages: Messages, text: str) -> str:
    model = ScriptedModel(f"- User: {text}\n- The port is 8123.", "NO_REPLY")
    found = extract_facts(messages, model)
    return f"{model.requests}\n{found}"


def _flush_by_agent(messages: Messages, text: str) -> str:
    return str(facts_of_reply(f"- {text}\n- The port is 8123.", messages))


def _summary_by_rules(messages: Messages, text: str) -> str:
    return extract(SummaryRequest(messages=tuple(messages))).text


def _summary_by_model(messages: Messages, text: str) -> str:
    model = ScriptedModel(f"The user said: {text}", "Nothing.")
    try:
        made = summarize(SummaryRequest(messages=tuple(messages)), SummaryRules(), model, window_tokens=30_000).text
    except SummaryFailed:
        made = ""
    return f"{model.requests}\n{made}"


def _ledger(messages: Messages, text: str) -> str:
    return str(ledger_of(messages))


WAYS = {
    "flush by rules": _flush_by_rules,
    "flush by model": _flush_by_model,
    "flush by agent": _flush_by_agent,
    "summary by rules": _summary_by_rules,
    "summary by model": _summary_by_model,
    "ledger": _ledger,
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("role", ROLES)
def test_no_kind_of_secret_is_kept(role: str, way: str) -> None:
    leaked = []
    for name, text, parts in SECRETS:
        messages = log(*ROLES[role](text), user("The port is 8123, and the host is alpha."), says("Good."))
        made = WAYS[way](messages, text)
        leaked += [name for part in parts if part in made]
    assert leaked == []


@pytest.mark.parametrize("role", ROLES)
def test_checkpoint_and_files_have_none_and_the_log_has_all(room: Room, role: str) -> None:
    for _, text, _ in SECRETS:
        room.say(*map(dict, ROLES[role](text)))
    room.sessions.flushes.flush(S)
    room.talk(20)
    room.compact(force=True)
    text = room.view_text()
    assert "[Checkpoint" in text
    assert [name for name, _, parts in SECRETS for part in parts if part in text or part in room.days] == []
    log_text = room.bytes().decode()
    assert "hunter2tulip" in log_text and "4111 1111 1111 1111" in log_text


def test_a_request_in_a_checkpoint_has_none(room: Room) -> None:
    room.talk(20)
    room.say(dict(user("Publish it. The password of the registry: hunter2tulip")))
    for at in range(8):
        call, answer = calls(f"c{at}"), result(f"c{at}", "made " + "it well " * 400)
        room.say(dict(call), dict(answer))
    room.compact(force=True)
    assert "<current-request" in room.view_text() and "Publish it." in room.view_text()
    assert "hunter2tulip" not in room.view_text()


def test_what_is_asked_to_be_remembered_is_the_users_own_will(room: Room) -> None:
    room.service.remember(W, "The door code is 8264.")
    assert "8264" in room.days
