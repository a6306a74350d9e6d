"""Owns the days that a question speaks of: "on 5 May", "in June 2023", "yesterday", "上周三", "十一月二十日".

Invariants: pure; a day that a question states raises dated passages, it never filters (a caller who
wants a filter says so).

Source: +3 for the month and +6 for the day, in standard deviations, chosen on LoCoMo.
"""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass

MONTH_BONUS = 3.0
DAY_BONUS = 6.0

_NAMES = "january february march april may june july august september october november december".split()
_MONTHS = {name: number for number, name in enumerate(_NAMES, 1)} | {
    name[:3]: number for number, name in enumerate(_NAMES, 1) if name != "may"
}
_MONTH = re.compile(r"\b(" + "|".join(sorted(_MONTHS, key=len, reverse=True)) + r")\b\.?", re.IGNORECASE)
# "may" and "march" are verbs too: as months they stand beside a number or behind a preposition.
_VERBS = {"may", "march", "mar"}
_BESIDE = re.compile(
    r"(?:\b(?:in|on|of|since|until|by|during|last|next|this|early|late|mid|before|after)|\d(?:st|nd|rd|th)?)\s*$", re.I
)
_BESIDE_CHARS = 24
_BEHIND = re.compile(r"\s*(?:\d|,\s*\d)")
_YEAR = re.compile(r"(?<!\d)((?:19|20)\d\d)(?!\d)")
_DAY_NUMBER = re.compile(r"(?<![\d:.-])(\d{1,2})(?:st|nd|rd|th)?(?![\d:%]|\.\d)", re.IGNORECASE)
_ISO = re.compile(r"(?<!\d)((?:19|20)\d\d)[-/.](\d{1,2})[-/.](\d{1,2})(?!\d)")
_DIGITS = "〇一二三四五六七八九"
# Not the months of a stretch of time, as in "三个月", nor moon cakes.
_CHINESE = re.compile(
    r"(?:((?:19|20)\d\d)\s*年\s*)?(?<![\d一二三四五六七八九十])(\d{1,2}|十[一二]?|[一二三四五六七八九])\s*月(?![饼餅亮])"
    r"(?:\s*(\d{1,2}|[一二三]?十[一二三四五六七八九]?|[一二三四五六七八九])\s*[日号號])?"
)
# In "晚上周岚说" there is no week.
_WEEK = "个?個?(?:周|週|星期|礼拜|禮拜)"
_LAST, _THIS = "(?<![晚早会會上])上", "[这這本]"

_RELATIVE: tuple[tuple[re.Pattern[str], int, int], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), first, last)
    for pattern, first, last in (
        ("大前天", -3, -3),
        (r"\b(?:the day before yesterday)\b|(?<!大)前天", -2, -2),
        (r"(?<!before )\byesterday\b|\blast night\b|昨[天晚日]", -1, -1),
        (r"\b(?:today|this morning|tonight)\b|今[天早晚日]", 0, 0),
    )
)
_WEEKS: tuple[tuple[re.Pattern[str], int], ...] = (
    (re.compile(rf"\blast week\b|{_LAST}{_WEEK}", re.IGNORECASE), -1),
    (re.compile(rf"\bthis week\b|{_THIS}{_WEEK}", re.IGNORECASE), 0),
)
_WEEKDAYS: tuple[tuple[re.Pattern[str], int], ...] = tuple(
    (re.compile(f"{which}{_WEEK}([一二三四五六日天])"), weeks) for which, weeks in ((_LAST, -1), (_THIS, 0))
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedDays:
    """Days that a question means. A year or a day that it does not state matches every one.

    Attributes:
        ranges: First and last day of stretches it names outright, as proleptic ordinals.
    """

    months: frozenset[int] = frozenset()
    years: frozenset[int] = frozenset()
    days: frozenset[int] = frozenset()
    ranges: tuple[tuple[int, int], ...] = ()

    def __bool__(self) -> bool:
        """Whether the question speaks of any day at all."""
        return bool(self.months or self.ranges)

    def bonus(self, ordinal: int) -> float:
        """What a passage of that day (a proleptic ordinal, 0 for undated) gains."""
        if not ordinal:
            return 0.0
        for first, last in self.ranges:
            if first == last and abs(ordinal - first) <= 1:
                return DAY_BONUS
            if first <= ordinal <= last:
                return MONTH_BONUS
        if not self.months:
            return 0.0
        day = dt.date.fromordinal(ordinal)
        if day.month not in self.months or (self.years and day.year not in self.years):
            return 0.0
        return DAY_BONUS if any(abs(day.day - asked) <= 1 for asked in self.days) else MONTH_BONUS


def asked_days(question: str, today: dt.date) -> AskedDays:
    """Read the days out of a question."""
    months, years, days = set[int](), set[int](), set[int]()
    ranges = _outright(question) + _relative(question, today)
    for year, month, day in _CHINESE.findall(question):
        months.add(_number(month))
        years |= {int(year)} if year else set()
        days |= {_number(day)} if day else set()
    if named := _named_months(question):
        months |= named
        years |= {int(year) for year in _YEAR.findall(question)}
        days |= {int(day) for day in _DAY_NUMBER.findall(question) if 1 <= int(day) <= 31}
    valid = frozenset(month for month in months if 1 <= month <= 12)
    return AskedDays(months=valid, years=frozenset(years), days=frozenset(days), ranges=ranges)


def _number(text: str) -> int:
    """A number below a hundred, in digits or in Chinese."""
    if text.isdecimal():
        return int(text)
    tens, ten, ones = text.rpartition("十")
    return 10 * (_DIGITS.index(tens) if tens else len(ten)) + (_DIGITS.index(ones) if ones else 0)


def _named_months(question: str) -> set[int]:
    found = set()
    for match in _MONTH.finditer(question):
        word = match[1].lower()
        before = question[max(0, match.start() - _BESIDE_CHARS) : match.start()]
        beside = _BESIDE.search(before) or _BEHIND.match(question, match.end())
        if beside or (word not in _VERBS and (len(word) > 3 or match[1][0].isupper())):
            found.add(_MONTHS[word])
    return found


def _outright(question: str) -> tuple[tuple[int, int], ...]:
    found = []
    for year, month, day in _ISO.findall(question):
        try:
            ordinal = dt.date(int(year), int(month), int(day)).toordinal()
        except ValueError:
            continue
        found.append((ordinal, ordinal))
    return tuple(found)


def _relative(question: str, today: dt.date) -> tuple[tuple[int, int], ...]:
    now = today.toordinal()
    found = [(now + first, now + last) for pattern, first, last in _RELATIVE if pattern.search(question)]
    monday = now - today.weekday()
    # A day before its week: the bonus is that of the first stretch that has the passage.
    for pattern, weeks in _WEEKDAYS:
        for weekday in pattern.findall(question):
            day = monday + 7 * weeks + "一二三四五六日".index(weekday.replace("天", "日"))
            found.append((day, day))
    found += [(monday + 7 * weeks, monday + 7 * weeks + 6) for pattern, weeks in _WEEKS if pattern.search(question)]
    return tuple(found)
