"""The numbers of every seed, and what holds for all windows, overheads and thresholds."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from memory_service.compaction.budget import (
    DEFAULT_THRESHOLDS,
    MIN_GAP_SHARE,
    OPENCLAW,
    OPENCODE,
    PONYBUNNY,
    TURNS,
    ContextBudget,
    Thresholds,
    budget_for,
    resolve_window,
)
from memory_service.errors import Incompressible
from memory_service.schemas.sessions import ContextWindow

PRESETS = {
    "default": DEFAULT_THRESHOLDS,
    "openclaw": OPENCLAW,
    "turns": TURNS,
    "ponybunny": PONYBUNNY,
    "opencode": OPENCODE,
}
presets = st.sampled_from(list(PRESETS.values()))
known = st.none() | st.integers(1, 2_000_000)


def window(tokens: int) -> ContextWindow:
    return resolve_window(session=tokens)


def budget(tokens: int, thresholds: Thresholds, **options: int) -> ContextBudget:
    return budget_for(window(tokens), thresholds, **options)


# --- the window ----------------------------------------------------------------------------------------------------


def test_the_order_of_sources_is_explicit_and_reported() -> None:
    said = {"session": 32_000, "settings": 48_000, "model": 200_000, "preset": 64_000}
    for left in range(5):
        asked = dict(list(said.items())[left:])
        decided = resolve_window(**asked)
        assert (decided.source, decided.tokens) == next(iter(asked.items()), ("default", 128_000))
        assert tuple(decided.considered.items()) == (
            ("session", asked.get("session")),
            ("learned", None),
            ("settings", asked.get("settings")),
            ("model", asked.get("model")),
            ("preset", asked.get("preset")),
            ("default", 128_000),
        )


@pytest.mark.parametrize(
    ("learned", "source", "tokens"),
    [(None, "session", 32_000), (8_192, "learned", 8_192), (32_000, "session", 32_000), (64_000, "session", 32_000)],
)
def test_a_learned_window_only_lowers(learned: int | None, source: str, tokens: int) -> None:
    decided = resolve_window(session=32_000, learned_count=learned, model=200_000)
    assert (decided.source, decided.tokens) == (source, tokens)
    assert decided.considered["learned"] == learned


@pytest.mark.parametrize("nothing", [0, -1])
def test_what_is_not_positive_says_nothing(nothing: int) -> None:
    decided = resolve_window(session=nothing, learned_count=nothing, settings=nothing, model=nothing, preset=9_000)
    assert (decided.source, decided.tokens) == ("preset", 9_000)


@given(known, known, known, known, known, st.integers(0, 40_000), st.integers(0, 40_000))
def test_a_window_is_one_of_those_considered(
    session: int | None,
    learned: int | None,
    configured: int | None,
    model: int | None,
    preset: int | None,
    refuse: int,
    warn: int,
) -> None:
    decided = resolve_window(
        session=session,
        learned_count=learned,
        settings=configured,
        model=model,
        preset=preset,
        refuse_below=refuse,
        warn_below=warn,
    )
    assert decided.considered[decided.source] == decided.tokens
    assert learned is None or decided.tokens <= learned
    assert (decided.problem == "refuse") == (decided.tokens < refuse and decided.source != "learned")
    assert (decided.problem == "") == (decided.tokens >= max(refuse, warn))
    assert bool(decided.message) == bool(decided.problem)


@pytest.mark.parametrize(
    ("tokens", "problem"), [(15_999, "refuse"), (16_000, "warn"), (31_999, "warn"), (32_000, ""), (200_000, "")]
)
@pytest.mark.parametrize("preset", [OPENCLAW, PONYBUNNY])
def test_the_guard_of_the_seeds(tokens: int, problem: str, preset: Thresholds) -> None:
    decided = resolve_window(model=tokens, refuse_below=preset.refuse_below, warn_below=preset.warn_below)
    assert decided.problem == problem


@pytest.mark.parametrize(("tokens", "problem"), [(1_023, "refuse"), (1_024, "warn"), (4_096, "warn"), (8_192, "")])
def test_our_own_guard_lets_small_local_models_work(tokens: int, problem: str) -> None:
    decided = resolve_window(
        model=tokens, refuse_below=DEFAULT_THRESHOLDS.refuse_below, warn_below=DEFAULT_THRESHOLDS.warn_below
    )
    assert decided.problem == problem


def test_a_refusal_says_what_to_do() -> None:
    refused = resolve_window(session=8_000, refuse_below=16_000, warn_below=32_000)
    for part in (
        "8,000",
        "16,000",
        "the session",
        "GPT-4o",
        "Claude",
        "context_window",
        "compaction.refuse_below_tokens",
    ):
        assert part in refused.message
    warned = resolve_window(model=20_000, refuse_below=16_000, warn_below=32_000)
    assert "32,000" in warned.message
    assert "compaction.warn_below_tokens" in warned.message


def test_a_refusal_names_only_models_that_are_large_enough() -> None:
    message = resolve_window(model=128_000, refuse_below=500_000).message
    assert "Gemini (1M)" in message
    assert "GPT-4o" not in message
    assert "(" not in resolve_window(model=128_000, refuse_below=5_000_000).message.partition("Use")[2]


def test_a_learned_window_is_warned_of_and_never_refused() -> None:
    decided = resolve_window(session=64_000, learned_count=8_000, refuse_below=16_000)
    assert decided.problem == "warn" and "below the 16,000" in decided.message
    assert "set context_window of the session if the model takes more" in decided.message


# --- the numbers of the seeds --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tokens", "flush", "compaction"),
    [(200_000, 176_000, 180_000), (32_768, 20_576, 24_576), (128_000, 104_000, 108_000), (16_000, 8_000, 12_000)],
)
def test_openclaw(tokens: int, flush: int, compaction: int) -> None:
    made = budget(tokens, OPENCLAW)
    assert (made.soft_tokens, made.hard_tokens) == (flush, compaction)
    assert made.reserve_tokens == min(20_000, tokens // 4) == tokens - compaction
    assert budget(tokens, OPENCLAW, max_output_tokens=1_000) == made


def test_openclaw_takes_half_of_what_is_left_where_that_is_less() -> None:
    made = budget(8_192, OPENCLAW)
    assert (made.soft_tokens, made.hard_tokens) == (3_072, 6_144)


def test_turns() -> None:
    made = budget_for(resolve_window(preset=TURNS.window_tokens), TURNS)
    assert made.window.tokens == 64_000
    assert (made.hard_tokens, made.target_tokens) == (48_000, 32_000)


@pytest.mark.parametrize(
    ("tokens", "compaction", "target", "emergency"),
    [
        (16_000, 12_800, 4_800, 3_200),
        (32_000, 25_600, 9_600, 6_400),
        (64_000, 51_200, 19_200, 12_800),
        (128_000, 102_400, 38_400, 25_600),
        (200_000, 160_000, 60_000, 40_000),
    ],
)
def test_ponybunny(tokens: int, compaction: int, target: int, emergency: int) -> None:
    made = budget(tokens, PONYBUNNY)
    assert (made.hard_tokens, made.target_tokens, made.emergency_target_tokens) == (compaction, target, emergency)


def test_shares_of_the_window_shrink_together_where_the_overhead_leaves_less() -> None:
    made = budget(200_000, PONYBUNNY, overhead_tokens=100_000)
    assert (made.usable_tokens, made.hard_tokens, made.soft_tokens, made.target_tokens) == (
        80_000,
        80_000,
        70_000,
        30_000,
    )


def test_a_share_is_not_a_token_short() -> None:
    assert int(0.29 * 100) == 28
    assert budget(100, Thresholds(reserve_tokens=0, trigger_share=0.29)).hard_tokens == 29


@pytest.mark.parametrize(
    ("tokens", "output", "compaction"),
    [(200_000, 64_000, 180_000), (128_000, 16_384, 111_616), (128_000, 4_096, 123_904), (272_000, None, 252_000)],
)
def test_opencode(tokens: int, output: int | None, compaction: int) -> None:
    made = budget_for(window(tokens), OPENCODE, max_output_tokens=output)
    assert made.hard_tokens == made.usable_tokens == compaction


@pytest.mark.parametrize(
    ("tokens", "overhead", "usable", "numbers"),
    [
        (128_000, 0, 108_000, (81_000, 97_200, 54_000)),
        (128_000, 8_000, 100_000, (75_000, 90_000, 50_000)),
        (8_192, 0, 6_144, (4_608, 5_529, 3_072)),
        (220_000, 0, 200_000, (150_000, 180_000, 100_000)),
        # Over that, the flush stays where it is and the target with it.
        (1_020_000, 0, 1_000_000, (150_000, 900_000, 100_000)),
    ],
)
def test_default(tokens: int, overhead: int, usable: int, numbers: tuple[int, int, int]) -> None:
    made = budget(tokens, DEFAULT_THRESHOLDS, overhead_tokens=overhead)
    assert made.usable_tokens == usable
    assert (made.soft_tokens, made.hard_tokens, made.target_tokens) == numbers


def test_a_model_of_short_answers_needs_a_smaller_reserve() -> None:
    assert budget(128_000, DEFAULT_THRESHOLDS, max_output_tokens=4_096).reserve_tokens == 4_096
    assert budget(128_000, DEFAULT_THRESHOLDS, max_output_tokens=64_000).reserve_tokens == 20_000
    assert budget(128_000, DEFAULT_THRESHOLDS, max_output_tokens=0).reserve_tokens == 20_000


# --- what always holds ---------------------------------------------------------------------------------------------


def check(made: ContextBudget) -> None:
    assert (
        0
        <= made.emergency_target_tokens
        <= made.target_tokens
        < made.soft_tokens
        <= made.hard_tokens
        <= made.usable_tokens
        <= made.window.tokens
    )
    assert made.usable_tokens + made.reserve_tokens + made.overhead_tokens == made.window.tokens
    assert made.reserve_tokens >= 0


@settings(max_examples=100)
@given(presets, st.integers(0, 2_000_000), st.floats(0, 1), st.none() | st.integers(1, 400_000))
def test_numbers_are_in_order(thresholds: Thresholds, more: int, share: float, output: int | None) -> None:
    tokens = thresholds.refuse_below + more
    # Of what the reserve leaves, any part may be overhead, as long as something is left.
    free = budget_for(window(tokens), thresholds, max_output_tokens=output).usable_tokens
    made = budget_for(
        window(tokens), thresholds, max_output_tokens=output, overhead_tokens=min(int(share * free), free - 1)
    )
    check(made)
    capped = thresholds.flush_most_tokens is not None and made.soft_tokens == thresholds.flush_most_tokens
    if made.usable_tokens > 20 and not capped:
        assert made.soft_tokens - made.target_tokens >= MIN_GAP_SHARE * made.usable_tokens
    if capped:
        assert made.soft_tokens - made.target_tokens >= MIN_GAP_SHARE * made.soft_tokens


@settings(max_examples=100)
@given(
    st.builds(
        Thresholds,
        reserve_tokens=st.integers(0, 50_000),
        reserve_share=st.floats(0, 1),
        reserve_follows_output=st.booleans(),
        base=st.sampled_from(["window", "usable"]),
        trigger_share=st.none() | st.floats(0.001, 2),
        flush_share=st.none() | st.floats(0.001, 2),
        flush_margin_tokens=st.none() | st.integers(0, 50_000),
        target_share=st.floats(0, 2),
        emergency_target_share=st.floats(0, 2),
        flush_most_tokens=st.none() | st.integers(1, 300_000),
    ),
    st.integers(1, 300_000),
    st.integers(0, 300_000),
)
def test_they_are_whatever_the_settings_say(thresholds: Thresholds, tokens: int, overhead: int) -> None:
    try:
        made = budget(tokens, thresholds, overhead_tokens=overhead)
    except Incompressible:
        assume(False)
    check(made)


@given(presets, st.integers(16_000, 1_000_000), st.integers(0, 1_000_000))
def test_more_overhead_never_leaves_more(thresholds: Thresholds, tokens: int, overhead: int) -> None:
    free = budget(tokens, thresholds)
    assume(overhead < free.usable_tokens)
    made = budget(tokens, thresholds, overhead_tokens=overhead)
    assert made.usable_tokens == free.usable_tokens - overhead
    assert made.hard_tokens <= free.hard_tokens
    assert made.soft_tokens <= free.soft_tokens
    assert made.target_tokens <= free.target_tokens


@given(presets, st.integers(16_000, 1_000_000), st.integers(0, 1_000_000))
def test_pressure_changes_at_the_thresholds(thresholds: Thresholds, size: int, tokens: int) -> None:
    made = budget(size, thresholds)
    assert made.pressure(made.hard_tokens) == "hard"
    assert made.pressure(made.hard_tokens - 1) == ("soft" if made.soft_tokens < made.hard_tokens else "ok")
    assert made.pressure(made.soft_tokens) == ("soft" if made.soft_tokens < made.hard_tokens else "hard")
    assert made.pressure(made.soft_tokens - 1) == "ok"
    assert made.pressure(made.target_tokens) == "ok"
    levels = ["ok", "soft", "hard"]
    assert levels.index(made.pressure(tokens)) <= levels.index(made.pressure(tokens + 1))


@given(st.integers(0, 1_000_000), st.floats(0.6, 2.5))
def test_plans_are_made_in_estimates(tokens: int, scale: float) -> None:
    estimate = replace(budget(128_000, DEFAULT_THRESHOLDS), scale=scale).to_estimate(tokens)
    assert estimate * scale <= tokens + 1e-6 < (estimate + 1) * scale + 2e-6


# --- nothing is left -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("overhead", "tools", "parts"),
    [
        (40_000, 30_000, {"tools": 30_000, "system": 10_000}),
        (24_576, 0, {"system": 24_576, "tools": 0}),
        (30_000, 90_000, {"tools": 30_000, "system": 0}),
    ],
)
def test_an_overhead_that_fills_the_window_is_named(overhead: int, tools: int, parts: dict[str, int]) -> None:
    with pytest.raises(Incompressible) as refused:
        budget(32_768, OPENCLAW, overhead_tokens=overhead, tools_tokens=tools)
    assert list(refused.value.parts.items()) == list(parts.items())
    for name, tokens in parts.items():
        assert (f"{name} {tokens:,}" in str(refused.value)) == (tokens > 0)
    assert "32,768" in str(refused.value)
    assert "8,192" in str(refused.value)


def test_one_token_less_still_works() -> None:
    made = budget(32_768, OPENCLAW, overhead_tokens=24_575)
    assert (made.usable_tokens, made.hard_tokens, made.soft_tokens, made.target_tokens) == (1, 1, 1, 0)
