"""Direct tests of plans; that nothing falls between, whatever a session is, `tests/properties` hold."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memory_service.compaction.budget import ContextBudget, budget_for, resolve_window
from memory_service.compaction.checkpoint import frame_tokens
from memory_service.compaction.plan import Plan, plan_compaction
from memory_service.compaction.plan_sizes import LEAST_PROGRESS
from memory_service.compaction.presets import PRESETS, Preset
from memory_service.compaction.snapshot import Snapshot
from memory_service.errors import Incompressible
from memory_service.messages.sizes import Numbered
from tests.memory_service.compaction.talk import calls, chat, log, result, says, user
from tests.memory_service.rooms import words

NOW = dt.datetime(2026, 11, 20, 9, tzinfo=dt.UTC)
DEFAULT = PRESETS["default"]


def budget(window: int = 8_000, preset: Preset = DEFAULT, scale: float = 1.0) -> ContextBudget:
    return budget_for(resolve_window(session=window), preset.thresholds, scale=scale)


def snapshot(tail: tuple[Numbered, ...], **more: object) -> Snapshot:
    made = Snapshot(tail=tail, fixed_tokens=20, summary_tokens=0, now=NOW)
    return replace(made, **more)  # type: ignore[arg-type]


def talk(tokens: int, each: int = 100, *, chinese: bool = False) -> tuple[Numbered, ...]:
    said = [
        user(words(each, chinese=chinese)) if at % 2 == 0 else says(words(each, chinese=chinese))
        for at in range(tokens // each)
    ]
    return log(*said)


def consistent(plan: Plan, tail: tuple[Numbered, ...]) -> None:
    """What every plan that makes a summary holds to."""
    covered = [each.seq for each in (*plan.covered, *plan.prefix)]
    assert covered == [each.seq for each in tail if each.seq < plan.tail_start]
    assert plan.tokens_after <= plan.tokens_before * (1 - LEAST_PROGRESS)


def test_an_empty_view_has_nothing_to_compact() -> None:
    plan = plan_compaction(snapshot(()), DEFAULT, budget(), force=True)
    assert plan.stage == "none" and "no messages" in plan.reason


@pytest.mark.parametrize("trigger", ["threshold", "safeguard"])
def test_below_the_threshold_nothing_happens_unless_it_is_forced(trigger: str) -> None:
    tail = talk(5_000)
    plan = plan_compaction(snapshot(tail), DEFAULT, budget(), trigger=trigger)  # type: ignore[arg-type]
    assert plan.stage == "none" and "compaction begins at 5400" in plan.reason
    forced = plan_compaction(snapshot(tail), DEFAULT, budget(), trigger=trigger, force=True)  # type: ignore[arg-type]
    assert forced.stage == "summary"
    consistent(forced, tail)


@pytest.mark.parametrize(("size", "chinese"), [(5_800, False), (6_500, True)])
def test_a_full_view_comes_below_its_target(size: int, chinese: bool) -> None:
    tail = talk(size, chinese=chinese)
    plan = plan_compaction(snapshot(tail), DEFAULT, budget(), trigger="threshold")
    assert plan.stage == "summary" and plan.tokens_after <= plan.target_tokens == 3_000
    assert plan.summary_tokens > 0 and plan.ledger_tokens == DEFAULT.ledger_tokens(plan.summary_tokens)
    consistent(plan, tail)
    assert plan.steps[-1].tokens_after == plan.tokens_after


def test_old_results_may_be_enough() -> None:
    tail = chat(12, chars=1_600)
    plan = plan_compaction(snapshot(tail), DEFAULT, budget(), trigger="overflow")
    big = log(
        *[m for at in range(6) for m in (user(f"{at}"), calls(f"c{at}"), result(f"c{at}", words(1_000)), says("好"))]
    )
    pruned = plan_compaction(snapshot(big), DEFAULT, budget(), trigger="threshold")
    assert pruned.stage == "prune" and pruned.tail_start == 0 and pruned.covered == ()
    assert pruned.tokens_after <= pruned.target_tokens and set(pruned.cleared) <= {3, 7, 11, 15, 19, 23}
    assert plan.stage == "summary"


def test_who_asks_for_a_summary_gets_one() -> None:
    big = log(
        *[m for at in range(6) for m in (user(f"{at}"), calls(f"c{at}"), result(f"c{at}", words(900)), says("好"))]
    )
    plan = plan_compaction(snapshot(big), DEFAULT, budget(), trigger="manual")
    assert plan.stage == "summary" and all(seq >= plan.tail_start for seq in plan.cleared)
    consistent(plan, big)


def test_a_cold_cache_is_pruned_and_never_summarised() -> None:
    openclaw = PRESETS["openclaw"]
    big = log(
        *[m for at in range(24) for m in (user(f"{at}"), calls(f"c{at}"), result(f"c{at}", words(2_000)), says("ok"))]
    )
    cold = snapshot(big, last_used_at=NOW - dt.timedelta(hours=1))
    plan = plan_compaction(cold, openclaw, budget(64_000, openclaw), trigger="cache_ttl")
    assert plan.stage == "prune" and plan.cleared
    warm = snapshot(big, last_used_at=NOW)
    plan = plan_compaction(warm, openclaw, budget(64_000, openclaw), trigger="cache_ttl")
    assert plan.stage == "none" and "old enough" in plan.reason


def test_without_news_nothing_is_done_again_but_for_a_reason() -> None:
    tail = talk(3_000)
    settled = snapshot(tail, settled=True)
    assert plan_compaction(settled, DEFAULT, budget()).reason == "Nothing was said since the last compaction."
    for more in ({"force": True}, {"target_tokens": 1_500}, {"trigger": "overflow"}):
        assert plan_compaction(settled, DEFAULT, budget(), **more).stage == "summary"
    assert plan_compaction(settled, DEFAULT, budget(), target_tokens=9_000).stage == "none"


def test_an_own_target_and_an_emergency_count() -> None:
    tail = talk(5_500)
    assert plan_compaction(snapshot(tail), DEFAULT, budget(), target_tokens=1_500).tokens_after <= 1_500
    plan = plan_compaction(snapshot(tail), DEFAULT, budget(), trigger="overflow")
    assert plan.target_tokens == int(0.35 * 6_000) >= plan.tokens_after


def test_plans_estimate_and_budgets_do_not() -> None:
    tail = talk(4_000)
    assert plan_compaction(snapshot(tail), DEFAULT, budget(), trigger="threshold").stage == "none"
    plan = plan_compaction(snapshot(tail), DEFAULT, budget(scale=1.5), trigger="threshold")
    assert plan.stage == "summary" and plan.target_tokens == 2_000


def test_the_last_turn_is_split_where_it_is_too_long() -> None:
    said = [user("读完所有模块")]
    for at in range(30):
        said += [calls(f"c{at}", text="看看"), result(f"c{at}", words(150))]
    tail = log(*said)
    plan = plan_compaction(snapshot(tail), DEFAULT, budget(), trigger="manual", force=True)
    assert plan.stage == "summary" and plan.covered == () and plan.prefix[0].seq == 1
    assert plan.steps[-1].name == "split_turn"
    consistent(plan, tail)


def test_the_request_counts_where_it_has_to_stand_in_the_checkpoint() -> None:
    tail = log(user(words(900)), *[says(words(300)) for _ in range(18)])
    plan = plan_compaction(snapshot(tail), DEFAULT, budget())
    fixed = plan.summary_tokens + plan.ledger_tokens + 20
    kept = sum(each.tokens for each in tail if each.seq >= plan.tail_start)
    assert plan.tokens_after >= fixed + kept + 900


def test_a_newest_unit_over_the_window_is_cut_down() -> None:
    tail = log(*[each.message for each in talk(600)], user("看"), calls("a"), result("a", words(20_000)))
    plan = plan_compaction(snapshot(tail), DEFAULT, budget(), trigger="threshold")
    assert plan.stage == "hard" and set(plan.cleared) == {9} and plan.tokens_after <= 6_000
    assert "log:9" in plan.cleared[9]


def test_a_last_request_over_the_window_is_covered_as_a_whole() -> None:
    tail = log(*[each.message for each in talk(600)], user(words(9_000)))
    plan = plan_compaction(snapshot(tail), DEFAULT, budget(), trigger="threshold")
    assert plan.stage == "hard" and plan.tail_start == 8 and plan.tokens_after <= 6_000
    assert [each.seq for each in plan.covered] == list(range(1, 8))


@pytest.mark.parametrize("last", [says(words(9_000)), calls("a", arguments='{"text": "' + "长" * 9_000 + '"}')])
def test_what_cannot_be_cut_down_is_an_error_that_names_the_largest_part(last: object) -> None:
    tail = log(user("x"), last)  # type: ignore[arg-type]
    with pytest.raises(Incompressible, match="nothing is left to compact: last_unit") as refused:
        plan_compaction(snapshot(tail), DEFAULT, budget(), trigger="threshold")
    assert next(iter(refused.value.parts)) == "last_unit"


def test_what_runs_stays_and_what_is_pinned_is_not_cleared() -> None:
    said = [user("x"), calls("live"), user("y")]
    for at in range(12):
        said += [says(words(400)), user(f"{at}")]
    tail = log(*said)
    plan = plan_compaction(snapshot(tail, live=frozenset({"live"})), DEFAULT, budget())
    assert plan.stage == "none" or plan.tail_start <= 2
    big = log(
        *[m for at in range(6) for m in (user(f"{at}"), calls(f"c{at}"), result(f"c{at}", words(1_000)), says("o"))]
    )
    plan = plan_compaction(snapshot(big, protected=frozenset({3})), DEFAULT, budget(), trigger="overflow")
    assert 3 not in plan.cleared


def test_too_little_progress_is_none() -> None:
    tail = log(user("短"), says("short"), user(words(1_800)), says(words(100)))
    plan = plan_compaction(snapshot(tail), DEFAULT, budget())
    assert plan.stage == "none" and "nothing left to compact" in plan.reason


def test_counted_messages_that_are_too_large_stay_as_many_as_fit() -> None:
    ponybunny = PRESETS["ponybunny"]
    tail = talk(200_000, 1_600)
    plan = plan_compaction(snapshot(tail), ponybunny, budget(200_000, ponybunny))
    assert 0.9 * 152_000 < plan.tokens_after <= 152_000, "95 % of where the next compaction begins"
    kept = len(tail) - plan.tail_start + 1
    assert plan.fewer == f"{kept} of 100 messages stay: more would leave too little of the window to go on."
    consistent(plan, tail)


def test_what_is_counted_stays_above_the_target() -> None:
    ponybunny = PRESETS["ponybunny"]
    tail = talk(160_000, 1_000)
    plan = plan_compaction(snapshot(tail), ponybunny, budget(200_000, ponybunny))
    assert len(tail) - plan.tail_start + 1 == 100 and 100_000 < plan.tokens_after and plan.notes == ()
    assert 45_000 < plan.summary_tokens <= 60_000
    named = plan_compaction(snapshot(tail), ponybunny, budget(200_000, ponybunny), target_tokens=50_000)
    assert named.tokens_after <= 50_000, "who names a target gets it"
    consistent(plan, tail)


def test_the_same_snapshot_gives_the_same_plan() -> None:
    tail = talk(5_800, chinese=True)
    first, second = (plan_compaction(snapshot(tail), DEFAULT, budget(), trigger="threshold") for _ in range(2))
    assert first == second


SIZES = st.lists(st.integers(5, 3_000), min_size=1, max_size=40)


def _asking(sizes: list[int], request_tokens: int, steps: list[int]) -> tuple[Numbered, ...]:
    """Messages of some sizes, then a request, and tools at work on it."""
    said = [user("w " * (2 * size)) if at % 2 == 0 else says("w " * (2 * size)) for at, size in enumerate(sizes)]
    said += [says("Go on.")] if len(said) % 2 else []
    said.append(user("r " * (2 * request_tokens)))
    for at, size in enumerate(steps):
        said += [calls(f"s{at}"), result(f"s{at}", "t " * (2 * size))]
    return log(*said)


@given(
    st.sampled_from([*PRESETS]),
    st.sampled_from([8_000, 16_000, 32_000, 64_000, 200_000]),
    SIZES,
    st.floats(0.01, 1.0),
    st.lists(st.integers(10, 2_000), max_size=30),
    st.sampled_from(["threshold", "manual", "overflow"]),
)
@example("opencode", 32_000, [5], 0.9765625, [10] * 5, "manual")
def test_what_fits_is_never_cut(
    name: str, window: int, sizes: list[int], share: float, steps: list[int], trigger: str
) -> None:
    preset = PRESETS[name]
    room = budget(window, preset)
    tail = _asking(sizes, max(1, int(share * room.usable_tokens)), steps)
    view = snapshot(tail, most_request_tokens=preset.request_tokens(room.usable_tokens))
    asked = next(each for each in reversed(tail) if each.message["role"] == "user")
    forced = trigger == "overflow"
    try:
        plan = plan_compaction(view, preset, room, trigger=trigger, force=forced)  # type: ignore[arg-type]
    except Incompressible:
        assert asked.tokens > room.usable_tokens // 2 or tail[-1].tokens > room.usable_tokens // 2
        return
    least = view.fixed_tokens + frame_tokens() + 4 + preset.least_summary_tokens
    if plan.stage in ("summary", "hard") and asked.seq < plan.tail_start and not plan.whole_request:
        fits = asked.tokens + least + tail[-1].tokens + tail[-2].tokens <= room.usable_tokens
        assert asked.tokens <= view.most_request_tokens or (not fits and plan.cuts)
    if plan.stage == "summary":
        assert plan.tokens_after <= room.usable_tokens


@given(st.integers(1, 6), st.integers(50, 900), st.sampled_from(["manual", "overflow"]))
def test_what_the_preset_counts_is_left_where_there_is_room(turns: int, size: int, trigger: str) -> None:
    tail = log(*(each for at in range(turns) for each in (user(f"{at}? " + "w " * size), says("w " * size))))
    preset = PRESETS["turns"]
    plan = plan_compaction(snapshot(tail), preset, budget(64_000, preset), trigger=trigger, force=True)  # type: ignore[arg-type]
    assert plan.stage == "none" and "all there is, is what the preset keeps" in plan.reason


def test_a_number_between_all_that_count_and_none_is_tried() -> None:
    preset = PRESETS["ponybunny"]
    tail = log(*(each for at in range(55) for each in (user(f"{at}? " + "w " * 3_000), says("w " * 3_000))))
    plan = plan_compaction(snapshot(tail), preset, budget(200_000, preset), trigger="threshold")
    kept = len(tail) - plan.tail_start + 1
    assert 75 <= kept < 100 and plan.shortfalls and plan.tokens_after <= 152_000


def test_the_summary_gets_shorter_before_the_last_request_does() -> None:
    tail = _asking([500] * 60, 43_000, [])
    plan = plan_compaction(snapshot(tail), DEFAULT, budget(64_000), trigger="threshold")
    assert plan.stage == "summary" and plan.cuts == () and plan.tail_start == tail[-1].seq
    assert plan.tokens_after <= 48_000 and plan.ledger_limit_tokens is not None
    alone = plan_compaction(snapshot(tail[-1:]), DEFAULT, budget(48_000 + 10_000), trigger="threshold")
    assert alone.stage == "none", "one message that fits is left alone"
