"""The campaign in small: some facts, some channels, some dates."""

from __future__ import annotations

import pytest

from indexer.testing import HashEmbedder
from tests.campaigns import authority


@pytest.mark.parametrize("channel", ["tool wordy", "assistant", "pasted in quotes", "extra folder", "agent's note"])
def test_no_lower_word_displaces_what_was_noted(channel: str) -> None:
    with authority.desks(HashEmbedder()) as new_desk:
        rows = authority.facts("open")[:2] + authority.facts("open")[3:5] + authority.facts("closed")[-2:]
        outcome = authority.try_channel(new_desk(), channel, rows)
    assert (outcome.cases >= 5, outcome.failed) == (True, [])


def test_the_user_corrects_what_was_noted() -> None:
    with authority.desks(HashEmbedder()) as new_desk:
        rows = [fact for fact in authority.facts("open") if fact.value in ("Tuesday", "星期二", "Weiss")]
        outcome = authority.try_correction(new_desk(), "message", rows)
    assert (outcome.cases, outcome.failed) == (3, [])
