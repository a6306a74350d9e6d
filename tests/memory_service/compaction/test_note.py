from __future__ import annotations

import pytest

from memory_service.compaction.note import with_note
from memory_service.compaction.summary import SummaryRequest
from memory_service.messages.sizes import count_tokens
from tests.memory_service.compaction.talk import chat, log, says, user


def note(request: SummaryRequest) -> str:
    return with_note(request, "timeout", window_tokens=10_000).text


def test_it_says_how_much_was_there_and_where() -> None:
    made = with_note(SummaryRequest(messages=chat(20), previous="旧的摘要"), "timeout", window_tokens=10_000)
    assert made.method == "note" and made.model is None
    assert made.text == "旧的摘要\n\n[80 messages (log:1-80) were left out here without a summary.]"
    assert made.notes == ("No summary could be written (timeout); a note stands for 80 messages.",)


def test_what_was_very_large_is_counted() -> None:
    large = log(user("中" * 6_000), says("x"), user("word " * 6_000))
    assert "[3 messages (log:1-3; 2 very large) were left out" in note(SummaryRequest(messages=large))


def test_notes_of_several_rounds_become_one() -> None:
    first = note(SummaryRequest(messages=log(user("中" * 6_000), says("x")), previous="Before.\n\nMore."))
    second = note(SummaryRequest(messages=log(user("a"), says("b"), first=3), previous=first))
    assert second == ("Before.\n\nMore.\n\n[4 messages (log:1-4; 1 very large) were left out here without a summary.]")


@pytest.mark.parametrize("fill", ["word " * 900, "部署。" * 400])
def test_it_is_never_longer_than_asked_for(fill: str) -> None:
    lines = "\n".join([fill[:90]] * 60)
    text = note(SummaryRequest(messages=chat(2), previous=lines, target_tokens=200))
    assert count_tokens(text) <= 200 and text.endswith("without a summary.]")
