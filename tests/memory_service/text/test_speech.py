from __future__ import annotations

import datetime as dt

import pytest

from indexer.language.dates import full_day
from memory_service.messages.sizes import number_message
from memory_service.text.speech import read_speech, without_inserted
from tests.memory_service.flush.stretches import AT, stretch

DAYS = {
    "Monday 8 May 2023, 13:56": dt.date(2023, 5, 8),
    "May 8th, 2023": dt.date(2023, 5, 8),
    "2026-11-20": dt.date(2026, 11, 20),
    "2026/1/2 09:00": dt.date(2026, 1, 2),
    "2026年11月20日": dt.date(2026, 11, 20),
    "2026-13-40": None,
    "31 Foo 2026": None,
    "no day": None,
}
INSERTED = {
    "a <relevant_context>b</relevant_context> c": "a  c",
    "a <summary>b": "a ",
    "<system-reminder>b</system-reminder>c<ledger>d</ledger>": "c",
    "[Checkpoint: earlier messages were compacted]\nb": "",
    "[COMPACTED_CONTEXT]\nb": "",
    "[Old tool result content cleared]": "",
    "[旧的工具结果已清除] log:4": "",
    "## Conversation summary\nb": "",
    "对话摘要：我们用 Go。": "",
    "Checkpoint the log each hour.": "Checkpoint the log each hour.",
    "x < y and y > z": "x < y and y > z",
}


@pytest.mark.parametrize("text", DAYS)
def test_full_day(text: str) -> None:
    assert full_day(text) == DAYS[text]


@pytest.mark.parametrize("text", INSERTED)
def test_without_inserted(text: str) -> None:
    assert without_inserted(text) == INSERTED[text]


def test_names_are_those_that_come_back() -> None:
    said = read_speech(stretch("u Ingrid: a", "a 韩梅：b", "u Ingrid: c", "a 韩梅：d"))
    assert [(item.name, item.text) for item in said] == [("Ingrid", "a"), ("韩梅", "b"), ("Ingrid", "c"), ("韩梅", "d")]
    said = read_speech(stretch("u Hello", "a Berlin: a city", "u 注意：端口", "a https://example.com"))
    assert [item.name for item in said] == ["", "", "", ""]


def test_a_day_stated_before_the_stretch_holds_for_a_day_by_the_clock() -> None:
    before = [
        number_message({"role": "user", "content": "【2023年5月8日】Ingrid: a"}, 1, AT),
        number_message({"role": "assistant", "content": "韩梅：b"}, 2, AT),
    ]
    for at, day in (("2026-11-20T10:00:00Z", dt.date(2023, 5, 8)), ("2026-11-28T10:00:00Z", dt.date(2026, 11, 28))):
        later = [number_message({"role": "user", "content": "Ingrid: c"}, 3, at)]
        assert [item.day for item in read_speech(later, before=before)] == [day]
