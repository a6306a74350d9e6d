from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexer.providers.errors import EmbeddingFailure, read_failure
from tests.growth import at_most_readings

ROWS: list[dict[str, Any]] = json.loads((Path(__file__).parent / "provider_errors.json").read_text("utf-8"))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["text"][:50])
def test_what_providers_say(row: dict[str, Any]) -> None:
    assert row["source"]
    assert read_failure(row["text"], status=row.get("status")) == EmbeddingFailure(
        kind=row["kind"], limit=row.get("limit"), given=row.get("given"), wait_seconds=row.get("wait_seconds")
    )


def test_a_header_goes_before_the_text() -> None:
    assert read_failure("Please try again in 20s.", status=429, wait_seconds=3.0).wait_seconds == 3.0


@given(st.text(max_size=400), st.sampled_from([None, 400, 401, 404, 413, 429, 500]))
def test_any_text_is_read(text: str, status: int | None) -> None:
    read_failure(text, status=status)


@pytest.mark.parametrize(
    "text",
    ["9" * 1_000_000, "\\" * 1_000_000, "max " * 250_000, "batch size 1 " * 80_000, "input " * 170_000, "1.1.1 ms" * 9],
    ids=["digits", "backslashes", "max", "batch", "input", "waits"],
)
def test_a_long_text_takes_no_time(text: str) -> None:
    with at_most_readings(40):
        read_failure("try again in " + text, status=400)
