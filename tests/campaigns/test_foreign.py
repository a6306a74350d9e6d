"""The campaign in small: every door with text of every kind, and a server that does not mind."""

from __future__ import annotations

from pathlib import Path

from tests.campaigns import foreign


def test_foreign_text_breaks_nothing() -> None:
    found = foreign.measure([Path(__file__).resolve().parents[2] / "data"], 0.27, file_chars=15_000)
    assert foreign.is_clean(found), found
    assert found["requests"] > 30 and found["notes"] and found["passages"] > 200 and found["failed_files"] == [], found
