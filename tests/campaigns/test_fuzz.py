"""The campaign in small: wrong bodies are no defect, and wrong answers go on as they came."""

from __future__ import annotations

from pathlib import Path

from tests.campaigns import fuzz


def test_wrong_bodies_are_no_defect(tmp_path: Path) -> None:
    found = fuzz.fuzz_bodies(tmp_path, 60, seed=3, hang_seconds=200)
    assert found["faults"] == 0, found


def test_wrong_answers_go_on_as_they_came(tmp_path: Path) -> None:
    found = fuzz.fuzz_answers(tmp_path, 2, seed=3)
    assert (found["answers"], found["faults"]) == (12, 0), found
