from __future__ import annotations

import pytest

from indexer.language.short_replies import is_assent, is_refusal


@pytest.mark.parametrize(
    "reply",
    ["Good.", "👍", "Perfect, thanks!", "passt so", "很好", "d'accord", "vale", "はい", "Good. Now do the other."],
)
def test_assents(reply: str) -> None:
    assert is_assent(reply)


@pytest.mark.parametrize(
    "reply", ["Good morning!", "Great question about it", "Not good.", "", "...", "why?", "No, ok."]
)
def test_what_is_none(reply: str) -> None:
    assert not is_assent(reply)


def test_refusals() -> None:
    for line in ("I'm sorry, but I can't", "很抱歉，我无法总结", "Es tut mir leid", "- I cannot help", "Lo siento"):
        assert is_refusal(line)
    for line in ("- User: I cannot log in", "The user is sorry", "部署在周二", ""):
        assert not is_refusal(line)
