from __future__ import annotations

import datetime as dt
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexer.dates import DAY_BONUS, MONTH_BONUS, AskedDays, asked_days

FRIDAY = dt.date(2026, 11, 20)


def days(question: str) -> AskedDays:
    return asked_days(question, FRIDAY)


@pytest.mark.parametrize(
    ("question", "months", "years", "numbers"),
    [
        ("What happened in May?", {5}, set(), set()),
        ("What happened on 5 May 2023?", {5}, {2023}, {5}),
        ("What happened on May 5th, 2023?", {5}, {2023}, {5}),
        ("What did we decide on May 5.", {5}, set(), {5}),
        ("Between June and August 2023", {6, 8}, {2023}, set()),
        ("in Sep", {9}, set(), set()),
        ("At 10:30 in March", {3}, set(), set()),
        ("We grew by 5.5 % in March", {3}, set(), set()),
        ("11月20日发生了什么?", {11}, set(), {20}),
        ("2026年11月的计划", {11}, {2026}, set()),
        ("十一月二十日发生了什么?", {11}, set(), {20}),
        ("十二月二號", {12}, set(), {2}),
        ("三月三十一号到十月", {3, 10}, set(), {31}),
        ("2026年十月九日", {10}, {2026}, {9}),
        ("九月下旬", {9}, set(), set()),
        ("１１月２０日", {11}, set(), {20}),
        ("三个月之后", set(), set(), set()),
        ("八月饼", set(), set(), set()),
        ("二十一月", set(), set(), set()),
        ("13月", set(), set(), set()),
        ("You may march on", set(), set(), set()),
        ("May I deploy?", set(), set(), set()),
        ("mar the finish", set(), set(), set()),
        ("he decided in 2023", set(), set(), set()),
        ("room 5", set(), set(), set()),
    ],
)
def test_months_years_and_days(question: str, months: set[int], years: set[int], numbers: set[int]) -> None:
    asked = days(question)
    assert (set(asked.months), set(asked.years), set(asked.days)) == (months, years, numbers)


@pytest.mark.parametrize(
    ("question", "first", "last"),
    [
        ("What did I do yesterday?", "2026-11-19", "2026-11-19"),
        ("the day before yesterday", "2026-11-18", "2026-11-18"),
        ("today", "2026-11-20", "2026-11-20"),
        ("last week", "2026-11-09", "2026-11-15"),
        ("this week", "2026-11-16", "2026-11-22"),
        ("昨天吃了什么", "2026-11-19", "2026-11-19"),
        ("前天", "2026-11-18", "2026-11-18"),
        ("大前天", "2026-11-17", "2026-11-17"),
        ("上周的会议", "2026-11-09", "2026-11-15"),
        ("上個禮拜", "2026-11-09", "2026-11-15"),
        ("這週做了什麼", "2026-11-16", "2026-11-22"),
        ("on 2024-02-29", "2024-02-29", "2024-02-29"),
        ("on 2024/2/29", "2024-02-29", "2024-02-29"),
    ],
)
def test_stretches(question: str, first: str, last: str) -> None:
    stretch = (dt.date.fromisoformat(first).toordinal(), dt.date.fromisoformat(last).toordinal())
    assert days(question).ranges == (stretch,)


@pytest.mark.parametrize(
    ("question", "date", "bonus"),
    [
        ("上周三谁请假", "2026-11-11", DAY_BONUS),
        ("上个星期天", "2026-11-15", DAY_BONUS),
        ("上周三谁请假", "2026-11-14", MONTH_BONUS),
        ("上周三谁请假", "2026-11-17", 0.0),
        ("這週一的會", "2026-11-16", DAY_BONUS),
    ],
)
def test_a_day_of_a_week_says_more_than_the_week(question: str, date: str, bonus: float) -> None:
    assert days(question).bonus(dt.date.fromisoformat(date).toordinal()) == bonus


@pytest.mark.parametrize(
    "question",
    ["晚上周岚说了什么", "会上周岚提了什么", "on 2023-02-30", "what is our plan", "", "1999", "the yesterdays"],
)
def test_nothing_asked(question: str) -> None:
    assert not days(question)


@pytest.mark.parametrize(
    ("question", "date", "bonus"),
    [
        ("on 5 May 2023", "2023-05-05", DAY_BONUS),
        ("on 5 May 2023", "2023-05-06", DAY_BONUS),
        ("on 5 May 2023", "2023-05-07", MONTH_BONUS),
        ("on 5 May 2023", "2022-05-05", 0.0),
        ("on 5 May", "2022-05-05", DAY_BONUS),
        ("in May", "2022-06-01", 0.0),
        ("yesterday", "2026-11-19", DAY_BONUS),
        ("yesterday", "2026-11-17", 0.0),
        ("last week", "2026-11-12", MONTH_BONUS),
        ("last week", "2026-11-16", 0.0),
    ],
)
def test_bonus(question: str, date: str, bonus: float) -> None:
    assert days(question).bonus(dt.date.fromisoformat(date).toordinal()) == bonus


@given(st.text(), st.dates())
def test_any_text_has_an_answer(question: str, today: dt.date) -> None:
    asked = asked_days(question, today)
    assert all(1 <= month <= 12 for month in asked.months)
    assert asked.bonus(0) == 0.0
    assert asked.bonus(today.toordinal()) in (0.0, MONTH_BONUS, DAY_BONUS)


@pytest.mark.parametrize("part", ["may ", "5 ", "in  ", "march,", "11月", "5" + " " * 50, "2023-01-01 ", "before "])
def test_time_grows_with_the_length_of_the_question(part: str) -> None:
    def seconds(repeats: int) -> float:
        question = part * repeats + "may"
        best = float("inf")
        for _ in range(3):
            started = time.perf_counter()
            asked_days(question, FRIDAY)
            best = min(best, time.perf_counter() - started)
        return best

    assert seconds(2000) < 30 * max(seconds(200), 0.0005)
