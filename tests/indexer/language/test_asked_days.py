from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexer.language.asked_days import BESIDE_BONUS, DAY_BONUS, MONTH_BONUS, AskedDays, asked_days, without_days
from tests.growth import assert_grows_at_most

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
    ("question", "stretches"),
    [
        # Weekdays
        ("Who was ill last Tuesday?", "2026-11-17"),
        ("what did we say LAST FRIDAY", "2026-11-13"),
        ("last Saturday's run", "2026-11-14"),
        ("this past Wednesday", "2026-11-18"),
        ("What happened last Tues.?", "2026-11-17"),
        ("the release of last Thu", "2026-11-19"),
        ("this Monday", "2026-11-16"),
        ("next Friday", "2026-11-27"),
        ("this coming Sunday", "2026-11-29"),
        ("on Tuesday of last week", "2026-11-10 2026-11-09/2026-11-15"),
        ("Monday morning last week", "2026-11-09 2026-11-09/2026-11-15"),
        ("What did we decide on Monday?", "2026-11-16"),
        ("Who was there on Friday?", "2026-11-13"),
        ("What do we do on Monday?", ""),
        ("Are deploys on Mondays?", ""),
        ("Where did we go over the weekend?", "2026-11-14/2026-11-15"),
        # Weeks, months, years
        ("last week", "2026-11-09/2026-11-15"),
        ("last week's bill", "2026-11-09/2026-11-15"),
        ("next week", "2026-11-23/2026-11-29"),
        ("What did we do last week in Rome?", "2026-11-09/2026-11-15"),
        ("last weekend", "2026-11-14/2026-11-15"),
        ("this weekend", "2026-11-21/2026-11-22"),
        ("last month", "2026-10-01/2026-10-31"),
        ("this month", "2026-11-01/2026-11-30"),
        ("next month", "2026-12-01/2026-12-31"),
        ("on the 5th of last month", "2026-10-05 2026-10-01/2026-10-31"),
        ("on the 31st of this month", "2026-11-01/2026-11-30"),
        ("last year", "2025-01-01/2025-12-31"),
        ("the past week", "2026-11-13/2026-11-20"),
        ("in the past three days", "2026-11-17/2026-11-20"),
        ("in the last 2 weeks", "2026-11-06/2026-11-20"),
        # So long ago
        ("two days ago", "2026-11-18"),
        ("10 days ago", "2026-11-10"),
        ("an hour ago", "2026-11-20"),
        ("a couple of days ago", "2026-11-18"),
        ("a few days ago", "2026-11-14/2026-11-18"),
        ("a week ago", "2026-11-10/2026-11-16"),
        ("three weeks ago", "2026-10-27/2026-11-02"),
        ("a month ago", "2026-10-01/2026-10-31"),
        ("eleven months ago", "2025-12-01/2025-12-31"),
        ("two years ago", "2024-01-01/2024-12-31"),
        ("the day after tomorrow", "2026-11-22"),
        ("tomorrow", "2026-11-21"),
        # In digits
        ("What was on 10.01.2024?", "2024-01-10"),
        ("in 3.5.2024 we moved", "2024-05-03"),
        ("on 10. 1. 2024", "2024-01-10"),
        ("(31.12.2023)", "2023-12-31"),
        ("on 01.13.2024", "2024-01-13"),
        ("on 14/3/2024", "2024-03-14"),
        ("on 3/14/2024", "2024-03-14"),
        ("on 3/4/2024", "2024-04-03 2024-03-04"),
        ("on 5/5/2024", "2024-05-05"),
        ("on 03-04-2024", "2024-04-03 2024-03-04"),
        ("2024.1.10", "2024-01-10"),
        ("on 29.02.2023", ""),
        # Chinese
        ("上周三谁请假", "2026-11-11 2026-11-09/2026-11-15"),
        ("上上周五", "2026-11-06 2026-11-02/2026-11-08"),
        ("下周一开会吗", "2026-11-23 2026-11-23/2026-11-29"),
        ("上周末去哪了", "2026-11-14/2026-11-15"),
        ("本週的計劃", "2026-11-16/2026-11-22"),
        ("下个星期", "2026-11-23/2026-11-29"),
        ("上个月的电费", "2026-10-01/2026-10-31"),
        ("上月的账单", "2026-10-01/2026-10-31"),
        ("這個月", "2026-11-01/2026-11-30"),
        ("上个月5号", "2026-10-05"),
        ("上上个月", "2026-09-01/2026-09-30"),
        ("去年搬家", "2025-01-01/2025-12-31"),
        ("前年的旅行", "2024-01-01/2024-12-31"),
        ("两天前说了什么", "2026-11-18"),
        ("10天之前", "2026-11-10"),
        ("十二天前", "2026-11-08"),
        ("三周前", "2026-10-27/2026-11-02"),
        ("兩個星期前", "2026-11-03/2026-11-09"),
        ("三个月前", "2026-08-01/2026-08-31"),
        ("一年前", "2025-01-01/2025-12-31"),
        ("几天前", "2026-11-14/2026-11-18"),
        ("前几天吃了什么", "2026-11-14/2026-11-18"),
        ("两小时前", "2026-11-20"),
        ("最近三天", "2026-11-17/2026-11-20"),
        ("过去一个月", "2026-10-21/2026-11-20"),
        ("明天", "2026-11-21"),
        ("后天的会", "2026-11-22"),
        ("大后天", "2026-11-23"),
    ],
)
def test_relative_days_and_days_in_digits(question: str, stretches: str) -> None:
    expected = tuple(
        tuple(dt.date.fromisoformat(day).toordinal() for day in (first, last or first))
        for first, _, last in (stretch.partition("/") for stretch in stretches.split())
    )
    assert days(question).ranges == expected


@pytest.mark.parametrize(
    ("question", "months", "years", "numbers"),
    [
        ("2024年1月10日", {1}, {2024}, {10}),
        ("1月10号", {1}, set(), {10}),
        ("二〇二四年一月十日", {1}, {2024}, {10}),
        ("去年5月的旅行", {5}, {2025}, set()),
        ("What did we plan in June last year?", {6}, {2025}, set()),
        ("this year in March", {3}, {2026}, set()),
        ("the last week of May", {5}, set(), set()),
        ("the last week in May", {5}, set(), set()),
    ],
)
def test_a_month_of_a_relative_year(question: str, months: set[int], years: set[int], numbers: set[int]) -> None:
    asked = days(question)
    assert (set(asked.months), set(asked.years), set(asked.days)) == (months, years, numbers)
    assert not asked.ranges


@pytest.mark.parametrize(
    "question",
    """You may march on|Give me a second|the second attempt|every second try|Is 10.01.2 released?|version v10.01.2024
    ping 10.1.20.24|ping 192.168.20.19|It costs $3.10.2000|room 3/14|a path such as a/3/4/2024|10-01-2024-7|3.5.20245
    Where did the sun rise?|Who last sat here?|last Sun Microsystems server|wed last in the chapel
    the last week of training
    how long did it last|what lasts for two days|ago|two days before the launch|next to the door|this is it|the weekend
    当前天气怎么样|然后天气变好|以前天天跑步|从前年轻时|晚上月亮很圆|网上月租多少|楼下周边有什么|提前三天|三天前端培训|出过去年会吗
    上周边店|透明天窗|三个月|五天的行程|今后""".replace("\n", "|").split("|"),
)
def test_traps(question: str) -> None:
    assert not days(question.strip())


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
        ("on 5 May 2023", "2023-05-06", BESIDE_BONUS),
        ("on 5 May 2023", "2023-05-07", MONTH_BONUS),
        ("on 5 May 2023", "2022-05-05", 0.0),
        ("on 5 May", "2022-05-05", DAY_BONUS),
        ("in May", "2022-06-01", 0.0),
        ("yesterday", "2026-11-19", DAY_BONUS),
        ("yesterday", "2026-11-20", BESIDE_BONUS),
        ("yesterday", "2026-11-17", 0.0),
        ("Was war am 25.11.?", "2025-11-25", DAY_BONUS),
        ("11월 25일에 뭐 했어?", "2025-11-25", DAY_BONUS),
        ("le 3 mars 2026", "2026-03-03", DAY_BONUS),
        ("el 3 de marzo", "2026-03-03", DAY_BONUS),
        ("am 3. März 2026", "2026-03-03", DAY_BONUS),
        ("What happened on May 7 and 8?", "2026-05-07", DAY_BONUS),
        ("What happened on 7, 8 and 9 May?", "2026-05-07", DAY_BONUS),
        ("2026\u201103\u201103", "2026-03-03", DAY_BONUS),
        ("31.2.2026", "2026-03-03", 0.0),
        ("Which 3 books did I read in March?", "2026-03-03", MONTH_BONUS),
        ("last week", "2026-11-12", MONTH_BONUS),
        ("last week", "2026-11-16", 0.0),
    ],
)
def test_bonus(question: str, date: str, bonus: float) -> None:
    assert days(question).bonus(dt.date.fromisoformat(date).toordinal()) == bonus


@pytest.mark.parametrize(
    ("question", "ago"),
    [
        ("Was habe ich gestern gemacht?", 1),
        ("vorgestern", 2),
        ("¿Qué hice ayer?", 1),
        ("anteayer", 2),
        ("qu'est-ce que j'ai fait hier ?", 1),
        ("avant-hier", 2),
        ("어제 뭐 했어?", 1),
        ("그저께는?", 2),
        ("きのう何をした？", 1),
        ("что было вчера?", 1),
    ],
)
def test_days_before_in_other_languages(question: str, ago: int) -> None:
    day = FRIDAY.toordinal() - ago
    assert days(question).ranges == ((day, day),)


def test_a_word_of_two_languages_is_read_in_that_of_the_question() -> None:
    assert not days("Wer war hier, und was ist das?")


@pytest.mark.parametrize(
    "question",
    [
        "What happened recently?",
        "latest bug fixed",
        "最近做了什么",
        "Was war zuletzt?",
        "최근에 뭐 했어?",
        "últimamente",
    ],
)
def test_what_is_new(question: str) -> None:
    assert days(question).latest


@pytest.mark.parametrize("question", ["最近三天", "the latest on May 5", "recently, last week", "What is late?"])
def test_a_day_says_more_than_what_is_new(question: str) -> None:
    assert not days(question).latest


@pytest.mark.parametrize(
    ("question", "words", "keys"),
    [
        ("What did I do on March 18?", "What did I do on ?", ("day0318",)),
        ("What happened on Wed, March 18, 2026?", "What on ?", ("day0318", "day20260318")),
        ("in the last 10 days", "in the", ()),
        ("The meeting of 25.11.2026 at 18:00", "The meeting of at 18:00", ("day1125", "day20261125")),
        ("5月16日发生了什么？", "？", ("day0516",)),
        ("十一月二十五日", "", ("day1125",)),
        ("11월 16일에 뭐 했어?", "뭐 했어?", ("day1116",)),
        ("3/4/2026", "", ("day0403", "day20260403", "day0304", "day20260304")),
        ("latest bug fixed", "bug fixed", ()),
        ("in May 2026", "in May 2026", ()),
        ("31.2.2026", "31.2.2026", ()),
        ("order 20261125", "order 20261125", ()),
    ],
)
def test_words_without_days(question: str, words: str, keys: tuple[str, ...]) -> None:
    asked = without_days(question)
    assert (" ".join(asked.text.split()), asked.keys) == (words, keys)


@given(st.text(), st.dates())
def test_any_text_has_an_answer(question: str, today: dt.date) -> None:
    asked = asked_days(question, today)
    assert all(1 <= month <= 12 for month in asked.months)
    assert asked.bonus(0) == 0.0
    assert len(without_days(question).text) == len(question)
    assert all(first <= last for first, last in asked.stretches(today.toordinal()))
    assert asked.bonus(today.toordinal()) in (0.0, MONTH_BONUS, BESIDE_BONUS, DAY_BONUS)


@pytest.mark.parametrize("part", ["may ", "5 ", "in  ", "march,", "11月", "5" + " " * 50, "2023-01-01 ", "before "])
def test_time_grows_with_the_length_of_the_question(part: str) -> None:
    assert_grows_at_most(30, lambda repeats: asked_days(part * repeats + "may", FRIDAY), 200, 2000)
