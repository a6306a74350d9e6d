from __future__ import annotations

import datetime as dt
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from indexer.testing import HashEmbedder
from memory_service.compaction.compactor import Compactor
from memory_service.compaction.draft import CompactionDraft, CompactionOptions
from memory_service.compaction.presets import budget_of
from memory_service.compaction.record import PinRecord, _apply_delta
from memory_service.compaction.view import project, shape_of
from memory_service.errors import CallCancelled, Incompressible, UpstreamFailed
from memory_service.llm.base import ChatModel
from memory_service.messages.shapes import text_of
from memory_service.runtime.session import SessionState, _extend_state
from memory_service.runtime.session_options import options_of
from memory_service.sessions.records import MessageRecord, Record, SessionHeader
from memory_service.testing import Reply, ScriptedModel
from tests.memory_service.rooms import calls, result, says, summary, user, words
from tests.serving import settings

HOME = Path("/nowhere")
NOW = dt.datetime(2026, 11, 20, 9, tzinfo=dt.UTC)
FAILURE = UpstreamFailed("the error quotes 机密", kind="timeout")


def state_of(said: list[dict[str, Any]], *more: Any, before: SessionState | None = None) -> SessionState:
    bodies = [*(MessageRecord(text=json.dumps(each, ensure_ascii=False)) for each in said), *more]
    begun = before or _extend_state(
        SessionState(), [Record(seq=1, ts="", kind="", body=SessionHeader(session_id="s", context_window=8_000))]
    )
    first = begun.last_seq + 1
    return _extend_state(begun, [Record(seq=seq, ts="", kind="", body=body) for seq, body in enumerate(bodies, first)])


def talk(count: int, first: int = 0) -> list[dict[str, Any]]:
    said = list[dict[str, Any]]()
    for at in range(first, first + count):
        said += [user(f"问题 {at} " + words(100)), says(f"answer {at} " + words(100))]
    return said


def draft(
    state: SessionState, model: ChatModel | None = None, *, preset: str = "default", **compaction_options: Any
) -> CompactionDraft:
    options = options_of(settings(HOME), state.header, state.learned, preset=preset)
    shape = shape_of(options)
    compactor = Compactor(model=model, embedder=HashEmbedder(), timeout_seconds=5)
    options = replace(options, fallback=compaction_options.pop("fallback", options.fallback))
    given = CompactionOptions(**{"force": True, **compaction_options})
    return compactor.draft(state, project(state, shape), shape, options, budget_of(options), given, now=NOW)


def committed(state: SessionState, made: CompactionDraft) -> SessionState:
    assert made.made is not None
    return state_of([], made.made, before=state)


def test_a_draft_is_what_the_record_comes_to() -> None:
    state = state_of(talk(30), PinRecord(pin_id="p", text="周五绝不部署"))
    made = draft(state)
    assert made.made is not None and made.summary is not None and made.summary.method == "extractive"
    after = committed(state, made)
    assert after.head.summary == made.head.summary == _apply_delta("", made.made.summary)
    assert after.head.ledger == made.head.ledger
    view = project(after, shape_of(options_of(settings(HOME), after.header, after.learned)))
    assert view == made.view and view.tokens == made.made.tokens_after < made.made.tokens_before
    assert "周五绝不部署" in text_of(view.messages[0])


def test_a_model_writes_with_what_was_known_before() -> None:
    model = ScriptedModel(summary("first"), summary("second"))
    state = state_of(talk(30))
    first = draft(state, model)
    assert first.made is not None and (first.made.method, first.made.model, first.made.calls) == (
        "model",
        "scripted",
        1,
    )
    state = state_of(talk(15, first=30), before=committed(state, first))
    second = draft(state, model)
    assert "first" in str(model.requests[1]) and "second" in second.head.summary
    assert "问题 0 " not in str(model.requests[1]), "what was covered is not read again"


def test_results_are_read_as_they_were_and_not_as_their_stubs() -> None:
    said = [user("看"), calls("a"), result("a", "unique-token-枇杷 " + words(900)), says("ok"), *talk(20)]
    state = state_of(said)
    model = ScriptedModel(summary())
    draft(state, model)
    assert "unique-token-枇杷" in str(model.requests[0])


@pytest.mark.parametrize(
    "answer",
    [FAILURE, "", Reply(text="half", finish_reason="length"), Reply(text="", tool_call="delete"), "no headings at all"],
)
def test_what_cannot_be_used_is_replaced_by_rules_or_fails(answer: Any) -> None:
    state = state_of(talk(30))
    made = draft(state, ScriptedModel(answer, answer, answer))
    assert made.made is not None and made.made.method == "extractive" and "机密" not in str(made)
    assert any("written by rules" in note for note in made.made.notes)
    with pytest.raises(UpstreamFailed):
        draft(state, ScriptedModel(answer, answer, answer), fallback="none")


def test_notes_of_several_rounds_become_one() -> None:
    state = state_of(talk(30))
    for first in (30, 45, 60):
        made = draft(state, ScriptedModel(*[FAILURE] * 4), preset="turns", fallback="note")
        assert made.made is not None and made.made.method == "note"
        state = state_of(talk(15, first=first), before=committed(state, made))
    assert state.head.summary.count("were left out here") == 1
    gone = sum(each.seq < state.head.tail_start for each in state.messages)
    assert f"[{gone} messages (log:2-" in state.head.summary


def test_who_cancels_gets_nothing_else() -> None:
    state = state_of(talk(30))
    options = options_of(settings(HOME), state.header, state.learned)
    shape = shape_of(options)
    compactor = Compactor(model=ScriptedModel(summary()))
    with pytest.raises(CallCancelled):
        compactor.draft(
            state,
            project(state, shape),
            shape,
            options,
            budget_of(options),
            CompactionOptions(force=True),
            now=NOW,
            cancelled=lambda: True,
        )


def test_what_does_not_fit_behind_it_is_an_error() -> None:
    pins = [PinRecord(pin_id=str(at), text=f"{at} " + words(1_900)) for at in range(4)]
    state = state_of([*talk(6), user(words(700))], *pins)
    with pytest.raises(Incompressible, match="pins"):
        draft(state)


def test_identifiers_may_be_left_out() -> None:
    model = ScriptedModel(summary())
    draft(state_of(talk(30)), model, identifier_policy="anonymize")
    assert "neutral name" in str(model.requests[0])
