"""Chosen options and answers through a tool, as memories of the user's words."""

from __future__ import annotations

import pytest

from memory_service.flush.candidates import find_candidates
from memory_service.flush.notes import join_sentences
from memory_service.messages.shapes import Message
from memory_service.messages.sizes import number_message
from tests.memory_service.compaction.work import called, said

OPTIONS = "I looked at both.\n\nWhich cache should we use?\n1. Redis on its own server\n2. In-memory LRU per process"


def notes(messages: list[Message]) -> list[str]:
    found = find_candidates(
        [number_message(each, at, "2026-11-26T10:00:00+00:00") for at, each in enumerate(messages, 1)]
    )
    return [each.text for each in found]


@pytest.mark.parametrize("reply", ["2", "the second one", "option 2"])
def test_a_choice_is_one_line_and_the_other_options_are_none(reply: str) -> None:
    found = notes([said("user", "We need a cache."), said("assistant", OPTIONS), said("user", reply)])
    assert [text for text in found if "cache should" in text] == [
        'User, asked "Which cache should we use?": In-memory LRU per process'
    ]
    assert not any("Redis" in text for text in found)


def test_what_a_choice_says_beside_its_label_stays() -> None:
    (found,) = notes([said("assistant", OPTIONS), said("user", "2, but with a TTL of 5 min")])
    assert found.endswith("In-memory LRU per process (2, but with a TTL of 5 min)")


def test_an_answer_through_a_tool_is_the_users() -> None:
    asked = {"questions": [{"question": "Which database?", "options": [{"label": "SQLite"}, {"label": "Postgres"}]}]}
    result = 'User has answered your questions: "Which database?"="SQLite". You can now continue.'
    assert notes(called("AskUserQuestion", asked, result, "c")) == ['User, asked "Which database?": SQLite']


def test_items_of_one_list_are_told_with_its_line_once() -> None:
    items = ["Keep these: VPN on 51820", "Keep these: lease 10.0.0.9 for the NAS", "Thanks: all."]
    assert join_sentences(items) == "Keep these: VPN on 51820; lease 10.0.0.9 for the NAS Thanks: all."


def test_letters_keep_their_case_and_emoji_stay() -> None:
    (found,) = notes([said("user", "Oh, npm run build:prod is how we always build. The 🚀rocket team owns deploys.")])
    assert "npm run build:prod" in found and "🚀rocket" in found and "Npm" not in found
