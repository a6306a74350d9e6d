from __future__ import annotations

import math
import re

import pytest

from memory_service.compaction.presets import PRESETS, Value, numbers_of, with_overrides
from tests.pages import code, table

DEFAULT = PRESETS["default"]


def test_the_page_of_sessions_lists_all_numbers() -> None:
    named = [name for cells in table("docs/sessions.md", "number") for name in code(cells[0])]
    assert sorted(named) == sorted(numbers_of(DEFAULT))


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_is_itself_without_overrides_and_with_its_own_numbers(name: str) -> None:
    preset = PRESETS[name]
    assert with_overrides(preset, {}) is preset
    own = {key: value for key, value in numbers_of(preset).items() if value is not None}
    assert with_overrides(preset, own) == preset


# Values that fit beside the other numbers of the preset; any other may be doubled.
FITTING: dict[str, Value] = {
    "trigger_share": 0.8,
    "flush_share": 0.6,
    "target_share": 0.4,
    "emergency_target_share": 0.3,
    "keep_least_tokens": 1_000,
    "least_summary_tokens": 100,
    "summary_min_chunk_ratio": 0.1,
    "summary_safety": 1.0,
    "guard_share": 0.2,
    "guard_clear_share": 0.5,
    "pruning_head_chars": 500,
    "pruning_tail_chars": 500,
    "ledger_share": 1,
    "summary_share": 0.3,
    "emergency_summary_share": 0.2,
    "max_history_share": 0.5,
}


@pytest.mark.parametrize("name", numbers_of(DEFAULT))
def test_every_number_can_be_changed_alone(name: str) -> None:
    before = numbers_of(DEFAULT)
    own = before[name]
    value = FITTING.get(name, not own if isinstance(own, bool) else (own or 2) * 2)
    after = numbers_of(with_overrides(DEFAULT, {name: value}))
    assert after == {**before, name: value} != before


@pytest.mark.parametrize(
    ("overrides", "told"),
    [
        ({"keep_colour": 1}, "'keep_colour' is no number"),
        ({"fallback": "none"}, "'fallback' is no number"),
        ({"keep_turns": -1}, "keep_turns is -1"),
        ({"keep_turns": 0}, "keep_turns is 0"),
        ({"keep_turns": 2.5}, "keep_turns is 2.5 and has to be a whole number"),
        ({"keep_turns": True}, "keep_turns is True and has to be a whole number"),
        ({"keep_turns": "3"}, "keep_turns is '3' and has to be a whole number"),
        ({"keep_turns": [3]}, "keep_turns is "),
        ({"reserve_tokens": None}, "reserve_tokens is None"),
        ({"reserve_tokens": 10**18}, "reserve_tokens is 1"),
        ({"auto": 1}, "auto is 1 and has to be true or false"),
        ({"target_share": math.nan}, "target_share is nan"),
        ({"target_share": math.inf}, "target_share is inf"),
        ({"target_share": -0.1}, "target_share is -0.1"),
        ({"target_share": 1.5}, "target_share is 1.5"),
        ({"target_share": 0.95}, "target_share: target_share is 0.95 and has to be less than trigger_share"),
        ({"target_share": 0.9}, "target_share: target_share is 0.9 and has to be less than trigger_share"),
        ({"trigger_share": 0.4}, "trigger_share: target_share is 0.5 and has to be less than trigger_share"),
        ({"trigger_share": 0.7, "flush_share": 0.75}, "flush_share: flush_share is 0.75 and has to be at most"),
        ({"emergency_target_share": 0.6}, "emergency_target_share: "),
        ({"keep_least_tokens": 30_000}, "keep_least_tokens: "),
        ({"pruning_head_chars": 5_000}, "pruning_head_chars: "),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(overrides: dict[str, object], told: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(told)}"):
        with_overrides(DEFAULT, overrides)


@pytest.mark.parametrize(
    ("overrides", "follower"),
    [
        ({"target_share": 0.3}, ("emergency_target_share", 0.3)),
        ({"trigger_share": 0.6}, ("flush_share", 0.6)),
        ({"keep_most_tokens": 1_000}, ("keep_least_tokens", 1_000)),
        ({"pruning_soft_trim_chars": 500}, ("pruning_tail_chars", 500)),
    ],
)
def test_what_nobody_named_follows(overrides: dict[str, Value], follower: tuple[str, Value]) -> None:
    numbers = numbers_of(with_overrides(DEFAULT, overrides))
    assert numbers[follower[0]] == follower[1] and overrides.items() <= numbers.items()


def test_none_takes_a_limit_away() -> None:
    assert with_overrides(PRESETS["turns"], {"keep_turns": None}).keep.turns is None
    assert with_overrides(DEFAULT, {"trigger_share": None}).thresholds.trigger_share is None


def test_a_target_is_below_all_that_is_usable_where_that_is_the_trigger() -> None:
    with pytest.raises(ValueError, match="target_share is 1 and has to be less than trigger_share, which is 1"):
        with_overrides(PRESETS["openclaw"], {"target_share": 1})
    assert with_overrides(PRESETS["openclaw"], {"target_share": 0.8}).thresholds.target_share == 0.8
