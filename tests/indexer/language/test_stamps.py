from __future__ import annotations

import datetime as dt

import pytest

from indexer.language.dates import leading_stamp
from tests.growth import at_most_readings

MAY = dt.date(2023, 5, 8)
NOVEMBER = dt.date(2026, 11, 20)


@pytest.mark.parametrize(
    ("text", "day", "rest"),
    [
        ("[Monday 8 May 2023, 13:56] Caroline: Hey", MAY, "Caroline: Hey"),
        ("[1:56 pm on 8 May, 2023] Caroline: Hey", MAY, "Caroline: Hey"),
        ("(Mon, May 8th, 2023) Hey", MAY, "Hey"),
        ("[2023-05-08 13:56] Hey", MAY, "Hey"),
        ("[2023/5/8] Hey", MAY, "Hey"),
        ("8 May 2023: Hey", MAY, "Hey"),
        ("May 8, 2023 - Hey", MAY, "Hey"),
        ("Monday 8 May 2023, 13:56\nHey", MAY, "Hey"),
        ("2026-11-20 Hey", NOVEMBER, "Hey"),
        ("2026-11-20: Hey", NOVEMBER, "Hey"),
        ("2026-11-20T14:32:00Z Hey", NOVEMBER, "Hey"),
        ("  2026-11-20 14:32:00 +0100 Hey", NOVEMBER, "Hey"),
        ("2026-11-20", NOVEMBER, ""),
        ("【2026年11月20日 星期五 14:30】小明：早", NOVEMBER, "小明：早"),
        ("[2026年11月20日] 小明：早", NOVEMBER, "小明：早"),
        ("（2026/11/20）早", NOVEMBER, "早"),
        ("2026年11月20日 小明：早", NOVEMBER, "小明：早"),
        ("2026年11月20日，早", NOVEMBER, "早"),
        ("2026-11-20 星期五 小明：早", NOVEMBER, "小明：早"),
        ("2026 年 11 月 20 日：早", NOVEMBER, "早"),
    ],
)
def test_what_a_text_begins_with(text: str, day: dt.date, rest: str) -> None:
    stamp = leading_stamp(text)
    assert stamp is not None
    assert (stamp.day, text[stamp.end :]) == (day, rest)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Hey",
        "8 May 2023 was a fine day",
        "May 8, 2023 was a fine day",
        "On 2026-11-20 we deploy",
        "2026-13-40 Hey",
        "[2023-02-30] Hey",
        "12026-11-20 Hey",
        "2026-11-20x Hey",
        "2026-11-201 Hey",
        "[notes](2026-11-20)",
        "May I ask?",
        "[Monday]",
        "2026年11月20日我们部署了",
        "我们在2026年11月20日部署",
        "[2026年13月20日] 早",
    ],
)
def test_what_is_no_stamp(text: str) -> None:
    assert leading_stamp(text) is None


@pytest.mark.parametrize("part", ["[", "2026-", " ", "Monday ", "[8 May 2023 ", "年", "[2026年", ": ", "\n"])
def test_hostile_texts_take_no_time(part: str) -> None:
    text = part * (1_000_000 // len(part))
    with at_most_readings(200):
        for _ in range(20):
            leading_stamp(text)
            leading_stamp("2026-11-20 " + text)
