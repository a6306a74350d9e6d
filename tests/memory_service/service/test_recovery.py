from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from memory_service.compaction.presets import RecoveryRules
from memory_service.llm.errors import ProviderFailure
from memory_service.prompts.overflows import RecoveryAttempts, _decide

TOKENS = ProviderFailure(kind="token_overflow")
BYTES = ProviderFailure(kind="byte_overflow")
RULES = RecoveryRules()


def ladder(failure: ProviderFailure, rules: RecoveryRules = RULES, **given: Any) -> list[str]:
    """Every step until it gives up."""
    tried, steps = RecoveryAttempts(), list[str]()
    for _ in range(50):
        made = _decide(failure, **{"failed_compaction": False, "attempts": tried, "rules": rules, **given})
        steps.append(made.remedy)
        tried = made.tried
        if made.remedy == "give_up":
            assert made.reason.endswith(".")
            return steps
    raise AssertionError(f"it never ends: {steps}")


def test_too_many_tokens() -> None:
    assert ladder(TOKENS) == ["compact"] * 3 + ["truncate"] + ["compact"] * 3 + ["give_up"]
    assert ladder(TOKENS, is_oversized=False) == ["compact"] * 3 + ["give_up"]
    assert ladder(TOKENS, compactible=False) == ["truncate", "give_up"]
    assert ladder(TOKENS, replace(RULES, attempts=1, truncates=False)) == ["compact", "give_up"]


def test_too_many_bytes_are_no_matter_of_tokens_at_first() -> None:
    assert ladder(BYTES)[:3] == ["strip_media", "strip_media", "compact"]
    assert ladder(BYTES, has_media=False)[0] == "compact"


def test_a_refused_order_is_sent_again_once() -> None:
    assert ladder(ProviderFailure(kind="malformed_history")) == ["drop_thinking", "give_up"]


def test_what_passes_is_waited_for() -> None:
    limited = ProviderFailure(kind="rate_limit", transient=True, retry_after_seconds=2.5)
    assert ladder(limited) == ["wait"] * 3 + ["give_up"]
    made = _decide(limited, failed_compaction=False, attempts=RecoveryAttempts(), rules=RULES)
    assert "2.5 seconds" in made.reason


@pytest.mark.parametrize("kind", ["auth", "quota", "content_filter", "unsupported", "other", "output_overflow"])
def test_nothing_else_is_an_overflow(kind: Any) -> None:
    assert ladder(ProviderFailure(kind=kind)) == ["give_up"]


def test_too_long_an_answer_names_the_limit() -> None:
    failure = ProviderFailure(kind="output_overflow", max_output_tokens=4_096)
    assert "4,096" in _decide(failure, failed_compaction=False, attempts=RecoveryAttempts(), rules=RULES).reason


@pytest.mark.parametrize("failure", [TOKENS, BYTES])
def test_a_failed_compaction_is_no_overflow(failure: ProviderFailure) -> None:
    assert ladder(failure, failed_compaction=True) == ["give_up"]


def test_a_new_message_begins_anew() -> None:
    tried = RecoveryAttempts(last_message=4, compactions=3, truncations=1)
    assert tried.at(4) is tried and tried.at(5) == RecoveryAttempts(last_message=5)


@pytest.mark.parametrize(
    ("made", "told"), [(0, "after 0 compactions"), (1, "after 1 compaction."), (3, "after 3 compactions")]
)
def test_it_tells_how_many_compactions_were_made(made: int, told: str) -> None:
    tried = RecoveryAttempts(compactions=3, compacted=made)
    failure = ProviderFailure(kind="token_overflow")
    rules = RecoveryRules(truncates=False)
    assert told in _decide(failure, failed_compaction=False, attempts=tried, rules=rules).reason
