from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from memory_service.compaction.presets import budget_of, preset_named
from memory_service.compaction.view import shape_of
from memory_service.errors import Incompressible, InvalidRequest
from memory_service.runtime.session import SessionState, _extend_state
from memory_service.runtime.session_options import options_of
from memory_service.sessions.records import Learned, Record, SessionHeader
from tests.serving import settings

HOME = Path("/nowhere")


def state(*bodies: Any) -> SessionState:
    return _extend_state(
        SessionState(), [Record(seq=seq, ts="", kind="", body=body) for seq, body in enumerate(bodies, 1)]
    )


def header(**given: Any) -> SessionHeader:
    return SessionHeader(session_id="s", **given)


@pytest.mark.parametrize(
    ("service", "session", "tokens", "source"),
    [
        ({}, {}, 128_000, "default"),
        ({}, {"model": "gpt-4"}, 8_192, "model"),
        ({"context_window": 50_000}, {"model": "gpt-4"}, 50_000, "settings"),
        ({"context_window": 50_000, "context_windows": {"m": 9_000}}, {"model": "m"}, 9_000, "settings"),
        ({"context_window": 50_000}, {"context_window": 7_000}, 7_000, "session"),
        ({"compaction": {"preset": "turns"}}, {}, 64_000, "preset"),
        ({}, {"settings": {"compaction": {"preset": "turns"}}}, 64_000, "preset"),
    ],
)
def test_where_the_window_comes_from(service: Any, session: Any, tokens: int, source: str) -> None:
    window = options_of(settings(HOME, **service), header(**session)).window
    assert (window.tokens, window.source) == (tokens, source)


def test_what_an_error_told_lowers_the_window_of_its_model_alone() -> None:
    learned = Learned(context_window=4_000, model="gpt-4")
    assert options_of(settings(HOME), header(model="gpt-4"), learned).window.tokens == 4_000
    assert options_of(settings(HOME), header(model="gpt-4o"), learned).window.tokens == 128_000
    higher = options_of(settings(HOME, context_window=3_000), header(model="gpt-4"), learned).window
    assert (higher.tokens, higher.source) == (3_000, "settings")


def test_a_session_sets_for_itself_what_it_names() -> None:
    service = settings(HOME, compaction={"instructions": "看数字"}, flush={"mode": "off"})
    own = {
        "compaction": {"preset": "opencode", "fallback": "extractive"},
        "pruning": {"mode": "off", "deny": ["skill*"]},
    }
    made = options_of(service, header(settings=own))
    assert (made.preset.name, made.instructions, made.flush.mode) == ("opencode", "看数字", "off")
    assert made.fallback == "extractive" and made.preset.pruning_mode == "off"
    assert made.preset.pruning.deny_tools[-1] == "skill*"
    assert options_of(service, None, preset="turns").fallback == "last_turns"


def test_an_unknown_preset_names_those_there_are() -> None:
    with pytest.raises(InvalidRequest, match="default, openclaw, turns, ponybunny, opencode"):
        preset_named("best\n")


@pytest.mark.parametrize(("preset", "window", "problem"), [
    ("default", 1_023, "refuse"), ("default", 4_096, "warn"), ("default", 8_192, ""), ("openclaw", 15_999, "refuse"),
    ("openclaw", 31_999, "warn"), ("openclaw", 32_000, ""), ("ponybunny", 15_000, "refuse"),
])  # fmt: skip
def test_windows_that_are_too_small(preset: str, window: int, problem: str) -> None:
    made = options_of(settings(HOME, context_window=window, compaction={"preset": preset}), None)
    assert made.window.problem == problem
    if problem == "refuse":
        assert "larger window" in made.window.message and "GPT" in made.window.message
        with pytest.raises(InvalidRequest, match="larger window"):
            budget_of(made)


def test_the_bounds_of_the_guard_are_settings() -> None:
    given = {"refuse_below_tokens": 9_000, "warn_below_tokens": 20_000}
    made = options_of(settings(HOME, context_window=8_999, compaction=given), None)
    assert made.window.problem == "refuse"
    assert options_of(settings(HOME, context_window=9_000, compaction=given), None).window.problem == "warn"


def test_a_longest_prompt_needs_no_reserve() -> None:
    made = options_of(settings(HOME, context_window=32_000), None)
    assert budget_of(made).usable_tokens == 24_000
    assert budget_of(made, most_tokens=10_000).usable_tokens == 10_000
    assert budget_of(made, most_tokens=90_000) == budget_of(made)


def test_overhead_is_scaled_and_may_leave_nothing() -> None:
    made = options_of(settings(HOME, context_window=32_000), None)
    assert budget_of(made, scale=1.5, overhead_tokens=1_000).usable_tokens == 22_500
    with pytest.raises(Incompressible):
        budget_of(made, overhead_tokens=24_000, tools_tokens=20_000)


def test_the_flush_can_be_set_earlier() -> None:
    made = options_of(settings(HOME, context_window=32_000, flush={"soft_tokens": 10_000}), None)
    assert budget_of(made).soft_tokens == 14_000


@pytest.mark.parametrize("window", [1_024, 8_000, 128_000, 1_000_000])
def test_the_parts_of_a_view_leave_room_for_the_rest(window: int) -> None:
    shape = shape_of(options_of(settings(HOME, context_window=window), None))
    assert shape.ledger_tokens + shape.request_chars // 4 < window * 0.5 and shape.window_tokens == window
