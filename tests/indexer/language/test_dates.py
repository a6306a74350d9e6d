from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexer.language.dates import day_keys, day_of_name, heading_day, written_days
from tests.growth import assert_grows_at_most

DAY = dt.date(2026, 11, 25)


@pytest.mark.parametrize(
    "title",
    [
        "2026-11-25",
        "2026/11/25",
        "2026_11_25",
        "2026.11.25",
        "2026.11.25 (수)",
        "2026. 11. 25.",
        "20261125",
        "25.11.2026",
        "25-11-2026",
        "25/11/2026",
        "11/25/2026",
        "2026\u201111\u201125",
        "25 November 2026",
        "25. November 2026",
        "25th of November, 2026",
        "Wed, Nov 25, 2026",
        "Wednesday, November\u00a025th, 2026",
        "25-Nov-2026",
        "25 de noviembre de 2026",
        "25 novembre 2026",
        "25 ноября 2026",
        "2026年11月25日",
        "2026 年 11 月 25 日 星期三",
        "二〇二六年十一月二十五日",
        "2026년 11월 25일",
        "Sprint review, 2026-11-25",
        "2026-11-25T18:30:00Z",
    ],
)
def test_day_of_a_title(title: str) -> None:
    assert heading_day(title) == DAY
    assert heading_day(f"## {title}") == DAY


@pytest.mark.parametrize(
    "title",
    [
        "31.2.2026",
        "2026-02-31",
        "2026-13-01",
        "3/4/2026",
        "November 2026",
        "25 November",
        "Release 2024.10.1",
        "v1.2.2024",
        "v2026.11.25",
        "10.0.25.2026",
        "$1.10.2026",
        "120261125",
        "20269999",
        "2026-1",
        "Room 11 25 2026",
    ],
)
def test_titles_without_a_day(title: str) -> None:
    assert heading_day(title) is None


@pytest.mark.parametrize(
    "path",
    [
        "2026_11_25.md",
        "20261125 Meeting.md",
        "2026.11.25.md",
        "[2026.11.25] Review.md",
        "25-11-2026.md",
        "25.11.2026.md",
        "memory/2026-11-25.md",
        "memory/2026-11-25-notes.md",
        "memory/notes_2026-11-25_1830.md",
        "2026/11/25.md",
        "journal/2026/11-November/25 Wednesday.md",
        "journal/2026-11/25.md",
        "journal\\2026\\11\\25.md",
        "2026年11月25日.md",
        "2026-11-25",
    ],
)
def test_day_of_a_file_name(path: str) -> None:
    assert day_of_name(path) == DAY


@pytest.mark.parametrize(
    "path",
    ["MEMORY.md", "2026/notes.md", "2026/11/notes.md", "2026/13/25.md", "2026-11-25/notes.md", "25.md", "1.2.3.md"],
)
def test_names_without_a_day(path: str) -> None:
    assert day_of_name(path) is None


def test_two_orders_in_one_file_leave_what_can_be_both_without_a_day() -> None:
    assert [heading_day(title) for title in ("25/11/2026", "11/26/2026", "5/6/2026", "5/5/2026")] == [
        DAY,
        dt.date(2026, 11, 26),
        None,
        dt.date(2026, 5, 5),
    ]


@pytest.mark.parametrize(
    "text", ["11月25日", "十一月二十五日", "11월 25일", "25 November", "Nov 25th", "on November 25"]
)
def test_one_day_has_one_key(text: str) -> None:
    assert day_keys(text) == ["day1125"]


def test_keys_of_a_day_with_its_year() -> None:
    assert day_keys("due 25.11.2026") == ["day1125", "day20261125"]
    assert day_keys("3/4/2026") == ["day0403", "day20260403", "day0304", "day20260304"]
    assert day_keys("module 10 at 18:00, order 20261125") == []


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    for each in written_days(text):
        assert 0 <= each.start < each.end <= len(text)
        assert each.days


@pytest.mark.parametrize("part", ["2026-", "1.", "25 ", "nov ", "11月", "20", "1/"])
def test_time_grows_with_the_length_of_the_text(part: str) -> None:
    assert_grows_at_most(30, lambda repeats: list(written_days(part * repeats + "25 nov")), 200, 2000)
