"""Floors of records: whatever looks alike in a list replaces nothing."""

from __future__ import annotations

import pytest

from tests.evals.records import WORDS, cases, marks_of


@pytest.mark.parametrize("language", WORDS)
def test_no_record_replaces_another(language: str) -> None:
    count = 0
    for layout, _, spread, files, questions, records in cases((language,)):
        count += records
        marked = [hit.passage.text for hit in marks_of(files, questions)]
        assert not marked, (layout, spread)
    assert count > 400
