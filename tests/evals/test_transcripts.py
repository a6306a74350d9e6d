"""Floors of what is kept of agents' transcripts, without a model."""

from __future__ import annotations

import pytest

from indexer import multilingual_embedder
from tests.evals.transcripts import TranscriptFigures, kept_of, load_transcripts, sum_of


def test_half_of_the_transcripts_are_set_aside_and_five_agents_wrote_them() -> None:
    found = load_transcripts()
    assert len(found) >= 8 and sum(each.judged for each in found) == len(found) // 2
    assert all(each.summary and each.memory and each.request for each in found)


@pytest.fixture(scope="module")
def figures() -> list[tuple[bool, TranscriptFigures]]:
    embedder = multilingual_embedder()
    return [(each.judged, kept_of(each, embedder)) for each in load_transcripts()]


@pytest.mark.parametrize("judged", [True, False])
def test_summaries_and_memories_hold_what_is_labelled(
    figures: list[tuple[bool, TranscriptFigures]], judged: bool
) -> None:
    found = sum_of([each for is_judged, each in figures if is_judged is judged])
    assert found.useful_share >= 0.7, found
    assert found.worth_share >= 0.8 and found.junk_share <= 0.1, found
    assert found.found_share >= 0.4, found


def test_ledger_and_request_are_whole(figures: list[tuple[bool, TranscriptFigures]]) -> None:
    found = sum_of([each for _, each in figures])
    for held, wanted in (found.files, found.todos, found.answers, found.requests):
        assert held == wanted > 0, found
