from __future__ import annotations

from typing import get_args

import pytest

from memory_service.compaction.budget import budget_for, resolve_window
from memory_service.compaction.presets import PRESETS, Preset
from memory_service.config import PresetName


def test_the_presets_are_those_that_can_be_set() -> None:
    assert set(PRESETS) == set(get_args(PresetName))
    assert all(name == preset.name for name, preset in PRESETS.items())


def test_nobody_changes_them() -> None:
    with pytest.raises(TypeError):
        PRESETS["default"] = PRESETS["turns"]  # type: ignore[index]
    with pytest.raises(AttributeError):
        PRESETS["default"].role = "assistant"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("name", "window", "soft", "hard", "target"),
    [
        ("default", 128_000, 81_000, 97_200, 54_000),
        ("openclaw", 200_000, 176_000, 180_000, 90_000),
        ("openclaw", 32_768, 20_576, 24_576, 12_288),
        ("turns", 64_000, 41_600, 48_000, 32_000),
        ("ponybunny", 100_000, 70_000, 80_000, 30_000),
        ("opencode", 128_000, 91_800, 108_000, 54_000),
    ],
)
def test_the_numbers_of_each(name: str, window: int, soft: int, hard: int, target: int) -> None:
    budget = budget_for(resolve_window(session=window), PRESETS[name].thresholds)
    assert (budget.soft_tokens, budget.hard_tokens, budget.target_tokens) == (soft, hard, target)


@pytest.mark.parametrize(
    ("name", "attempts", "truncates", "replays", "fallback", "role"),
    [
        ("default", 3, True, False, "extractive", "user"),
        ("openclaw", 3, True, False, "note", "user"),
        ("turns", 2, False, False, "last_turns", "assistant"),
        ("ponybunny", 3, False, False, "note", "user"),
        ("opencode", 1, False, True, "none", "user"),
    ],
)
def test_what_each_does_when_something_fails(
    name: str, attempts: int, truncates: bool, replays: bool, fallback: str, role: str
) -> None:
    preset = PRESETS[name]
    rules = preset.recovery
    assert (rules.attempts, rules.truncates, rules.replays) == (attempts, truncates, replays)
    assert (preset.fallback, preset.role) == (fallback, role)


def test_shares_are_rounded_down() -> None:
    assert Preset(name="x").ledger_tokens(999) == 599 and Preset(name="x").request_tokens(1_001) == 250
