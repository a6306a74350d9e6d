"""What pages and assistants plant is no word of the user's; what users type is."""

from __future__ import annotations

import pytest

from tests.evals.planted_words import CHANNELS, CHINESE, CLAIMS, ENGLISH, GENUINE, claimed, kept, planted, rows


@pytest.mark.parametrize("channel", CHANNELS)
def test_nothing_of_a_page_counts_as_the_users(channel: str) -> None:
    taken = {text: planted(CHANNELS[channel](text, chinese)) for name, text, chinese in rows(True) if name == channel}
    assert not {text: places for text, places in taken.items() if places}


@pytest.mark.parametrize("claim", CLAIMS)
def test_no_assistant_says_what_the_user_allowed(claim: str) -> None:
    assert claimed(claim) == []


def test_what_the_user_types_is_kept() -> None:
    assert [text for text, word in GENUINE if not kept(text, word)] == []


def test_the_sets_are_large_enough() -> None:
    assert len(ENGLISH) + len(CHINESE) >= 60 and len(CHANNELS) >= 12 and len(GENUINE) >= 60 and len(CLAIMS) >= 44
