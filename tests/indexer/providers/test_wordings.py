"""The wordings that the reader for chat models and the one for embedding models share."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from indexer.providers.error_numbers import _number_patterns, over_allowance, wait_seconds, whole
from indexer.providers.errors import read_failure
from indexer.providers.wordings import readable

CHAT_TABLE = Path(__file__).parents[2] / "memory_service" / "llm" / "provider_errors.json"
CHAT = [row for row in json.loads(CHAT_TABLE.read_text("utf-8"))["errors"] if row["kind"] in ("auth", "quota")]


@pytest.mark.parametrize("row", CHAT, ids=lambda row: row["text"][:50])
def test_a_key_or_an_account_is_refused_in_the_same_words(row: dict[str, str]) -> None:
    assert read_failure(row["text"]).kind == row["kind"]


def test_escapes_and_a_long_middle_are_gone() -> None:
    assert readable('{\\"error\\": \\"\\\\u8f93\\u5165\\n\\t过长\\"}') == '{"error": "输入 过长"}'
    assert len(readable("字" * 100_000)) < 17_000


@pytest.mark.parametrize(
    ("number", "value"), [("131072", 131072), ("131,072", 131072), ("128k", 128000), ("1m", 10**6)]
)
def test_numbers(number: str, value: int) -> None:
    (pattern,) = _number_patterns("at most <limit>, not <given>")
    found = pattern.search(f"AT MOST {number}, not 7")
    assert found and (whole(found["limit"]), whole(found["given"])) == (value, 7)


def test_waits() -> None:
    assert wait_seconds("Please retry in 43.394069735s.") == 43.394069735
    assert wait_seconds("请在 15 秒后重试") == 15
    assert wait_seconds("try again in " + "9" * 5_000 + "s") is None


def test_only_more_than_the_allowance_is_over_it() -> None:
    assert over_allowance("Limit 30,000, Requested 95,722") == (30_000, 95_722)
    assert over_allowance("Limit 30,000, Requested 2,000") is None
