"""Grammar of days: calendar names, days that a question asks for, a text begins with, states or compares. Pure.

Invariants: the day of a question ("last Tuesday", "10.01.2024", "上周三") raises dated passages and never filters;
relative days count from the day that the caller gives; weeks begin on Monday; "last Tuesday" is the latest one before
today, "next Friday" that of next week; with dots the day stands before the month; with slashes or dashes a date that
can be read both ways raises both days.

Source: +3 for the month and +6 for the day, in standard deviations, chosen on LoCoMo.

Of a stamp ("[Monday 8 May 2023, 13:56] Anna: …", "【2026年11月20日】") no more than the beginning of a text is looked
at; a sentence that only happens to begin with a date ("8 May 2023 was a fine day") has none.

Four patterns differ for a reason: a question may lack the year and mean a month, a stamp must end as one, a heading is
read strictly, since it dates all below it, and what is compared is read generously, without blanks that could join
two numbers.
"""

from __future__ import annotations

import calendar
import datetime as dt
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from indexer.text import lazy_regex

MONTH_BONUS = 3.0
DAY_BONUS = 6.0
# A day that a message states holds no longer than this by the clock: what follows a week later is of that day.
STATED_HOLDS = dt.timedelta(hours=24)

MONTH_NAMES = tuple("january february march april may june july august september october november december".split())
WEEKDAY_NAMES = tuple("monday tuesday wednesday thursday friday saturday sunday".split())
MONTH_NUMBERS = (
    {name: number for number, name in enumerate(MONTH_NAMES, 1)}
    | {name[:3]: number for number, name in enumerate(MONTH_NAMES, 1)}
    | {"sept": 9}
)
# Written with a capital only: "sat" and "sun" are words.
WEEKDAY_SHORT = "Mon|Tues?|Wed|Thu(?:rs?)?|Fri|Sat|Sun"
CHINESE_WEEK = "(?:周|週|星期|礼拜|禮拜)"

Stretch = tuple[int, int]

_MONTH = lazy_regex(r"\b(" + "|".join(sorted(MONTH_NUMBERS, key=len, reverse=True)) + r")\b\.?", re.IGNORECASE)
# "may" and "march" are verbs too: as months they stand beside a number or behind a preposition.
_VERBS = {"may", "march", "mar"}
_BESIDE = lazy_regex(
    r"(?:\b(?:in|on|of|since|until|by|during|last|next|this|early|late|mid|before|after)|\d(?:st|nd|rd|th)?)\s*$", re.I
)
_BESIDE_CHARS = 24
_BEHIND = lazy_regex(r"\s*(?:\d|,\s*\d)")
_YEAR = lazy_regex(r"(?<!\d)((?:19|20)\d\d)(?!\d)")
_DAY_NUMBER = lazy_regex(r"(?<![\d:.-])(\d{1,2})(?:st|nd|rd|th)?(?![\d:%]|\.\d)", re.IGNORECASE)

# --- dates in digits ---------------------------------------------------------------------------------------------

_YEAR_FIRST = lazy_regex(r"(?<![\d.])((?:19|20)\d\d)([-/.])(\d{1,2})\2(\d{1,2})(?![\d]|[-/.]\d)")
# The look-arounds keep versions, addresses, paths and prices apart: 10.01.2, 10.1.20.24, v1.2.2024, $1.10.2024.
_YEAR_LAST = lazy_regex(
    r"(?<![\w.$€£¥/-])(\d{1,2})(?:\.( ?)(\d{1,2})\.\2|([/-])(\d{1,2})\4)((?:19|20)\d\d)(?!\w|[-/.]\w)"
)

# --- Chinese -----------------------------------------------------------------------------------------------------

_DIGITS = "〇一二三四五六七八九"
_NUMERAL = r"(?:\d{1,2}|[一二三]?十[一二三四五六七八九]?|[一二三四五六七八九])"
_CHINESE_YEAR = "(?:(?:19|20)\\d\\d|[一二][〇零○一二三四五六七八九]{3})"
# Not the months of a stretch of time, as in "三个月", nor moon cakes.
_CHINESE = lazy_regex(
    rf"(?:({_CHINESE_YEAR})\s*年\s*)?(?<![\d一二三四五六七八九十])(\d{{1,2}}|十[一二]?|[一二三四五六七八九])\s*月(?![饼餅亮])"
    rf"(?:\s*({_NUMERAL})\s*[日号號])?"
)
# In "晚上周岚说", "网上月租" and "楼下周边" there is no week and no month.
_CHINESE_SHIFT = "(?P<shift>(?<![晚早会會网網线線以上])上{1,2}|[这這本]|(?<![天楼樓地以如底之脚当當])下)"
_CHINESE_SHIFTS = {"上上": -2, "上": -1, "下": 1}
_CHINESE_YEARS = {"大前年": -3, "前年": -2, "去年": -1, "今年": 0, "明年": 1}

# --- English -----------------------------------------------------------------------------------------------------

_SHIFTS = {"last": -1, "past": -1, "previous": -1, "coming": 1, "upcoming": 1, "next": 1}
_SHIFT = r"(?:(?:the |this )?(?P<shift>last|previous|coming|upcoming|next)|this)"
_WEEKDAY_SHIFT = _SHIFT.replace("last|", "last|past|")
_WEEKDAY = rf"(?P<weekday>(?i:{'|'.join(WEEKDAY_NAMES)})|(?:{WEEKDAY_SHORT})\b\.?(?!\s[A-Z]))(?!\w)"
_PART_OF_DAY = r"(?:['’]s)?(?: morning| afternoon| evening| night)?"
# Of "the last week of May" today does not tell.
_NOT_OF = f"(?! of | in (?:{'|'.join(name[:3] for name in MONTH_NAMES)}))"
_WORDS = "one two three four five six seven eight nine ten eleven twelve".split()
_COUNTS = (
    {word: (number, number) for number, word in enumerate(_WORDS, 1)}
    | dict.fromkeys(("a", "an"), (1, 1))
    | dict.fromkeys(("a couple of", "a couple", "couple of"), (2, 2))
    | dict.fromkeys(("a few", "few", "several", "几", "幾", "数", "數"), (2, 6))
)
_COUNT = r"(?P<count>\d{1,3}|" + "|".join(sorted((w for w in _COUNTS if w.isascii()), key=len, reverse=True)) + ")"
_CHINESE_COUNT = r"(?P<count>\d{1,3}|[一二两兩三四五六七八九十]{1,3}|[几幾数數])\s*"
_CHINESE_UNIT = rf"(?P<unit>天|日(?!期)|个?個?(?:{CHINESE_WEEK}|月)|年|个?個?(?:小时|小時|钟头|鐘頭|分钟|分鐘))"
_UNITS = {"day": "day", "night": "day", "week": "week", "fortnight": "fortnight", "month": "month", "year": "year"} | {
    "天": "day", "日": "day", "周": "week", "週": "week", "期": "week", "拜": "week", "月": "month", "年": "year"
}  # fmt: skip
_UNIT_DAYS = {"hour": 0, "day": 1, "week": 7, "fortnight": 14, "month": 30, "year": 365}
# A bare weekday is one gone by where the question speaks of what was.
_PAST = lazy_regex(r"\b(?:did|was|were|had|happened|said|went)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedDays:
    """Days that a question speaks of. A year or a day that it does not state matches every one.

    Attributes:
        ranges: First and last day of stretches it names outright, as proleptic ordinals.
    """

    months: frozenset[int] = frozenset()
    years: frozenset[int] = frozenset()
    days: frozenset[int] = frozenset()
    ranges: tuple[Stretch, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.months or self.ranges)

    def bonus(self, ordinal: int) -> float:
        """Bonus of a passage of that day (a proleptic ordinal, 0 for undated)."""
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
    """The days that a question speaks of.

    Args:
        question: English or Chinese.
        today: The day that "yesterday" counts from.
    """
    months, years, days = set[int](), set[int](), set[int]()
    for year, month, day in _CHINESE.findall(question):
        months.add(_number(month))
        years |= {_chinese_year(year)} if year else set()
        days |= {_number(day)} if day else set()
    if named := _named_months(question):
        months |= named
        years |= {int(year) for year in _YEAR.findall(question)}
        days |= {int(day) for day in _DAY_NUMBER.findall(question) if 1 <= int(day) <= 31}
    valid = frozenset(month for month in months if 1 <= month <= 12)
    ranges = [*_outright(question), *_relative(question, today)]
    relative_years = [_year_stretch(today.year + shift) for shift in _shifted_years(question)]
    if valid:
        years |= {dt.date.fromordinal(first).year for first, _ in relative_years}
    else:
        ranges += relative_years or ([] if ranges else _gone_by(question, today))
    # A day before its week: the bonus is that of the first stretch that has the passage.
    ranges.sort(key=lambda stretch: stretch[1] - stretch[0])
    return AskedDays(months=valid, years=frozenset(years), days=frozenset(days), ranges=tuple(dict.fromkeys(ranges)))


def _number(text: str) -> int:
    """Value of a number below a hundred, in digits or in Chinese."""
    if text.isdecimal():
        return int(text)
    tens, ten, ones = text.replace("两", "二").replace("兩", "二").rpartition("十")
    return 10 * (_DIGITS.index(tens) if tens else len(ten)) + (_DIGITS.index(ones) if ones else 0)


def _chinese_year(text: str) -> int:
    if text.isdecimal():
        return int(text)
    return int("".join(str(_DIGITS.index("〇" if digit in "零○" else digit)) for digit in text))


def _named_months(question: str) -> set[int]:
    found = set()
    for match in _MONTH.finditer(question):
        word = match[1].lower()
        before = question[max(0, match.start() - _BESIDE_CHARS) : match.start()]
        beside = _BESIDE.search(before) or _BEHIND.match(question, match.end())
        if beside or (word not in _VERBS and (len(word) > 3 or match[1][0].isupper())):
            found.add(MONTH_NUMBERS[word])
    return found


def _outright(question: str) -> Iterator[Stretch]:
    """Days given in digits."""
    for year, _, month, day in _YEAR_FIRST.findall(question):
        yield from _days((int(year), int(month), int(day)))
    for first, _, dotted, _, other, year in _YEAR_LAST.findall(question):
        a, b = int(first), int(dotted or other)
        day_first, month_first = (int(year), b, a), (int(year), a, b)
        yield from list(_days(day_first, *([] if dotted else [month_first]))) or list(_days(month_first))


def _days(*dates: tuple[int, int, int]) -> Iterator[Stretch]:
    """The days among some dates that are on the calendar."""
    for year, month, day in dict.fromkeys(dates):
        if 1 <= month <= 12 and 1 <= day <= calendar.monthrange(year, month)[1]:
            ordinal = dt.date(year, month, day).toordinal()
            yield ordinal, ordinal


# --- relative days -----------------------------------------------------------------------------------------------


def _relative(question: str, today: dt.date) -> Iterator[Stretch]:
    for pattern, read in _RELATIVE_ENGLISH if question.isascii() else _RELATIVE:
        for match in pattern.finditer(question):
            stretch = read(match, today)
            if stretch is not None and stretch[0] > 0 and stretch[1] <= dt.date.max.toordinal():
                yield stretch


def _gone_by(question: str, today: dt.date) -> list[Stretch]:
    """The latest of bare weekdays and weekends that a question about the past names."""
    if not _PAST.search(question):
        return []
    return [_latest(match, today) for match in _BARE.finditer(question)]


def _latest(match: re.Match[str], today: dt.date) -> Stretch:
    now = today.toordinal()
    if match["weekday"] is None:
        saturday = now - (today.weekday() - 5) % 7
        return saturday, saturday + 1
    day = now - ((today.weekday() - _weekday(match["weekday"]) - 1) % 7 + 1)
    return day, day


def _shift(match: re.Match[str]) -> int:
    word = (match["shift"] or "").lower()
    return _SHIFTS.get(word, _CHINESE_SHIFTS.get(word, 0))


def _weekday(name: str) -> int:
    if name in "一二三四五六日天":
        return "一二三四五六日".index(name.replace("天", "日"))
    return next(at for at, full in enumerate(WEEKDAY_NAMES) if full.startswith(name[:3].lower()))


def _monday(today: dt.date, weeks: int) -> int:
    return today.toordinal() - today.weekday() + 7 * weeks


def _named_weekday(match: re.Match[str], today: dt.date) -> Stretch:
    """Day of "last Tuesday", the latest before today; of "this" and "next Tuesday" by the week."""
    if _shift(match) < 0:
        return _latest(match, today)
    return _day_of_week(match, today)


def _day_of_week(match: re.Match[str], today: dt.date) -> Stretch:
    """Day of "Tuesday of last week" and "上周三"."""
    day = _monday(today, _shift(match)) + _weekday(match["weekday"])
    return day, day


def _week(match: re.Match[str], today: dt.date) -> Stretch:
    first = _monday(today, _shift(match))
    return first, first + 6


def _weekend(match: re.Match[str], today: dt.date) -> Stretch:
    first = _monday(today, _shift(match)) + 5
    return first, first + 1


def _month(match: re.Match[str], today: dt.date) -> Stretch:
    return _month_stretch(today, _shift(match))


def _day_of_month(match: re.Match[str], today: dt.date) -> Stretch | None:
    first, last = _month_stretch(today, _shift(match))
    day = first + _number(match["day"]) - 1
    return (day, day) if first <= day <= last else None


def _month_stretch(today: dt.date, months: int) -> Stretch:
    year, month = divmod(12 * today.year + today.month - 1 + months, 12)
    year = min(max(year, 1), 9999)
    first = dt.date(year, month + 1, 1).toordinal()
    return first, first + calendar.monthrange(year, month + 1)[1] - 1


def _year_stretch(year: int) -> Stretch:
    year = min(max(year, 1), 9999)
    return dt.date(year, 1, 1).toordinal(), dt.date(year, 12, 31).toordinal()


def _shifted_years(question: str) -> list[int]:
    english = [_shift(match) for match in _SHIFTED_YEAR.finditer(question)]
    return english + [_CHINESE_YEARS[word] for word in _CHINESE_SHIFTED_YEAR.findall(question)]


def _count(text: str) -> tuple[int, int]:
    """Least and most of a number or a word such as "a few"."""
    known = _COUNTS.get(text.lower())
    return known or (_number(text), _number(text))


def _unit(match: re.Match[str]) -> str:
    unit = match["unit"].lower()
    return _UNITS.get(unit) or _UNITS.get(unit[-1], "hour")


def _ago(match: re.Match[str], today: dt.date) -> Stretch:
    """Day of "two days ago"; of weeks, months and years the one around it."""
    (low, high), unit, now = _count(match["count"]), _unit(match), today.toordinal()
    if unit == "month":
        return _month_stretch(today, -high)[0], _month_stretch(today, -low)[1]
    if unit == "year":
        return _year_stretch(today.year - high)[0], _year_stretch(today.year - low)[1]
    around = 3 if _UNIT_DAYS[unit] >= 7 else 0
    return now - high * _UNIT_DAYS[unit] - around, now - low * _UNIT_DAYS[unit] + around


def _until_now(match: re.Match[str], today: dt.date) -> Stretch:
    """Days of "in the last three days"."""
    most = _count(match["count"] or "a")[1]
    return today.toordinal() - most * _UNIT_DAYS[_unit(match)], today.toordinal()


def _fixed(days: int) -> Callable[[re.Match[str], dt.date], Stretch]:
    return lambda _, today: (today.toordinal() + days, today.toordinal() + days)


_ENGLISH_UNIT = "(?P<unit>day|night|week|fortnight|month|year|hour|minute)"
_BARE = lazy_regex(rf"\bon {_WEEKDAY}|\b(?:over|on|at) the weekend\b")
_SHIFTED_YEAR = lazy_regex(rf"\b{_SHIFT} year\b(?! of )", re.IGNORECASE)
_CHINESE_SHIFTED_YEAR = lazy_regex("大前年|(?<![以之从從目大])前年(?![轻輕龄齡少])|(?<![过過])去年|今年|(?<![透])明年")
_RELATIVE: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], dt.date], Stretch | None]], ...] = tuple(
    (lazy_regex(pattern), read)
    for pattern, read in (
        ("大前天", _fixed(-3)),
        (r"(?i:\bthe day before yesterday\b)|(?<![大以之当當目从從])前天(?![天气氣])", _fixed(-2)),
        (r"(?i:(?<!before )\byesterday\b|\blast night\b)|昨[天晚日]", _fixed(-1)),
        (r"(?i:\b(?:today|this (?:morning|afternoon|evening)|tonight)\b)|今[天早晚日]", _fixed(0)),
        (r"(?i:(?<!after )\btomorrow\b)|(?<![透])明[天早晚日]", _fixed(1)),
        (r"(?i:\bthe day after tomorrow\b)|(?<![大然以之最先])[后後]天(?![天气氣性])", _fixed(2)),
        ("大[后後]天", _fixed(3)),
        (rf"\b(?i:{_WEEKDAY_SHIFT}) {_WEEKDAY}", _named_weekday),
        (rf"\b{_WEEKDAY}{_PART_OF_DAY}(?: of)? (?i:{_SHIFT}) week\b", _day_of_week),
        (rf"(?i:\b{_SHIFT} weekend\b)", _weekend),
        (rf"(?i:\b{_SHIFT} week\b{_NOT_OF})", _week),
        (rf"(?i:\b(?P<day>[0-9]{{1,2}})(?:st|nd|rd|th)? (?:of )?{_SHIFT} month\b)", _day_of_month),
        (rf"(?i:\b{_SHIFT} month\b{_NOT_OF})", _month),
        (rf"(?i:\b{_COUNT} {_ENGLISH_UNIT}s? ago\b)", _ago),
        (rf"(?i:\b(?:last|past) {_COUNT} {_ENGLISH_UNIT}s?\b)", _until_now),
        (rf"(?i:\bpast(?P<count>) {_ENGLISH_UNIT}\b)", _until_now),
        (rf"{_CHINESE_SHIFT}个?個?{CHINESE_WEEK}(?P<weekday>[一二三四五六日天])", _day_of_week),
        (rf"{_CHINESE_SHIFT}个?個?{CHINESE_WEEK}末", _weekend),
        (rf"{_CHINESE_SHIFT}个?個?{CHINESE_WEEK}(?![末边邊围圍刊])", _week),
        (rf"{_CHINESE_SHIFT}个?個?月(?P<day>{_NUMERAL})[日号號]", _day_of_month),
        (rf"{_CHINESE_SHIFT}个?個?月(?!{_NUMERAL}[日号號]|[亮饼餅球光色])", _month),
        (rf"(?<![第\d]){_CHINESE_COUNT}{_CHINESE_UNIT}[之以]?前(?![端台臺后後景提])", _ago),
        (rf"(?:[过過]去|最近|(?<![最附])近|[这這]){_CHINESE_COUNT}{_CHINESE_UNIT}(?![之以]?[前后後])", _until_now),
        (r"前(?P<count>[几幾两兩])(?P<unit>天)", _ago),
    )
)
# Those that are not Chinese alone: compiling the others takes as long as a search. English letters stand in `(?i:`.
_RELATIVE_ENGLISH = tuple((pattern, read) for pattern, read in _RELATIVE if "(?i:" in pattern.pattern)


_LOOK_CHARS = 96

_MONTH_NAME = f"(?:{'|'.join(sorted(MONTH_NUMBERS, key=len, reverse=True))})"
_DAY_NAME = (
    rf"(?:(?:{'|'.join((*WEEKDAY_NAMES, WEEKDAY_SHORT))})\b\.?,?[ ]"
    rf"|{CHINESE_WEEK}[一二三四五六日天][ ,，]?)"
)
_CLOCK = r"(?:[0-9]{1,2}[:：][0-9]{2}(?:[:：][0-9]{2})?(?:[ ]?[ap]\.?m\b\.?)?)"
_ZONE = r"(?:Z|[ ]?[+-][0-9]{2}:?[0-9]{2})"
_DAY = (
    r"(?:(?P<y1>[0-9]{4})-(?P<m1>[0-9]{1,2})-(?P<d1>[0-9]{1,2})(?![0-9])"
    r"|(?P<y2>[0-9]{4})/(?P<m2>[0-9]{1,2})/(?P<d2>[0-9]{1,2})(?![0-9])"
    r"|(?P<y3>[0-9]{4})[ ]?年[ ]?(?P<m3>[0-9]{1,2})[ ]?月[ ]?(?P<d3>[0-9]{1,2})[ ]?[日号號]"
    rf"|(?P<d4>[0-9]{{1,2}})(?:st|nd|rd|th)?[ ](?:of[ ])?(?P<m4>{_MONTH_NAME})\.?,?[ ](?P<y4>[0-9]{{4}})(?![0-9])"
    rf"|(?P<m5>{_MONTH_NAME})\.?[ ](?P<d5>[0-9]{{1,2}})(?:st|nd|rd|th)?,?[ ](?P<y5>[0-9]{{4}})(?![0-9]))"
)
_BRACKETED = lazy_regex(
    rf"\s*[\[(（【〔](?:{_CLOCK}(?:,|[ ]on)?[ ])?{_DAY_NAME}?{_DAY}[^\])）】〕\n]{{0,40}}[\])）】〕]", re.IGNORECASE
)
# Without brackets, digits alone are clear; where the month has a name, the date must end as a stamp does.
_NUMBERED_END = (
    rf"(?:[T ]{_CLOCK}(?:\.[0-9]{{1,9}})?{_ZONE}?|[ ]?{_DAY_NAME}(?:{_CLOCK})?)?(?=[\s:：,，.。;；|—–-]|$|(?<=\s))"
)
_NAMED_END = rf"(?:,?[ ]{_CLOCK})?[ ]?(?=[\n:：|—–-]|$)"
_UNMARKED = lazy_regex(rf"\s*{_DAY_NAME}?{_DAY}(?(d4){_NAMED_END}|(?(d5){_NAMED_END}|{_NUMBERED_END}))", re.IGNORECASE)
_APART = lazy_regex(r"[\s:：,，.。;；|—–-]*")


class Stamp(NamedTuple):
    """Date at the beginning of a text, and the index of the text after it."""

    day: dt.date
    end: int


def leading_stamp(text: str) -> Stamp | None:
    """The date that a text begins with; None without one that is on the calendar."""
    head = text[:_LOOK_CHARS]
    match = _BRACKETED.match(head) or _UNMARKED.match(head)
    if match is None:
        return None
    kind = next(number for number in "12345" if match[f"y{number}"])
    year, month, day = match[f"y{kind}"], match[f"m{kind}"], match[f"d{kind}"]
    try:
        found = dt.date(int(year), int(month) if month.isdigit() else MONTH_NUMBERS[month.lower()], int(day))
    except ValueError:
        return None
    after = _APART.match(head, match.end())
    return Stamp(found, after.end() if after else match.end())


# --- days that a text states -------------------------------------------------------------------------------------

_ISO = lazy_regex(r"(?<![0-9])([0-9]{4})-([0-9]{2})-([0-9]{2})(?![0-9])")
_HEADING_DAY = lazy_regex(
    r"(?<![0-9])([0-9]{4})"
    r"(?:-([0-9]{2})-([0-9]{2})|/([0-9]{1,2})/([0-9]{1,2})| ?年 ?([0-9]{1,2}) ?月 ?([0-9]{1,2}) ?日)(?![0-9])"
)
_FULL_NUMBERED = lazy_regex(r"(?<!\d)((?:19|20)\d\d)\s*[-/.年]\s*(\d{1,2})\s*[-/.月]\s*(\d{1,2})(?!\d)")
_FULL_DAY_FIRST = lazy_regex(r"(?<!\d)(\d{1,2})(?:st|nd|rd|th)? ([A-Za-z]{3,9})\.?,? ((?:19|20)\d\d)(?!\d)")
_FULL_MONTH_FIRST = lazy_regex(r"\b([A-Za-z]{3,9})\.? (\d{1,2})(?:st|nd|rd|th)?,? ((?:19|20)\d\d)(?!\d)")


def heading_day(text: str) -> dt.date | None:
    """First day of a heading or a field that is on the calendar."""
    return _first_day(_HEADING_DAY, text)


def day_of_name(path: str) -> dt.date | None:
    """Day in the name of a file."""
    return _first_day(_ISO, path.replace("\\", "/").rpartition("/")[2])


def _first_day(pattern: re.Pattern[str], text: str) -> dt.date | None:
    for match in pattern.finditer(text):
        year, month, day = (group for group in match.groups() if group)
        if found := _on_calendar(year, int(month), day):
            return found
    return None


def full_day(text: str) -> dt.date | None:
    """First day that a text states in full: 2026-11-20, 20 November 2026, November 20, 2026, 2026年11月20日."""
    if match := _FULL_NUMBERED.search(text):
        return _on_calendar(match[1], int(match[2]), match[3])
    if match := _FULL_DAY_FIRST.search(text):
        return _on_calendar(match[3], MONTH_NUMBERS.get(match[2][:3].lower(), 0), match[1])
    if match := _FULL_MONTH_FIRST.search(text):
        return _on_calendar(match[3], MONTH_NUMBERS.get(match[1][:3].lower(), 0), match[2])
    return None


def _on_calendar(year: str, month: int, day: str) -> dt.date | None:
    try:
        return dt.date(int(year), month, int(day))
    except ValueError:
        return None


_MONTH_NAMED = "(?:" + "|".join(sorted(MONTH_NUMBERS, key=len, reverse=True)) + ")"
_LEAD = lazy_regex(
    rf"""(?ix)[\[(（【]?\s*(?:as\ of|since|effective(?:\ (?:from|as\ of))?|starting|beginning|from|on|by|for|in
    |截至|截止|自从?|从|于|在|到)?\s*
    (?:(?P<y1>(?:19|20)\d\d)\s*(?P<s>[-/.])\s*(?P<m1>\d{{1,2}})(?:(?P=s)(?P<d1>\d{{1,2}}))?(?!\d)
    | (?P<y2>{_CHINESE_YEAR})\s*年\s*(?:(?P<m2>{_NUMERAL})\s*月(?:\s*(?P<d2>{_NUMERAL})\s*[日号號])?)?
    | (?P<a>\d{{1,2}})(?P<t>[-/.])(?P<b>\d{{1,2}})(?P=t)(?P<y3>(?:19|20)\d\d)(?!\d)
    | (?:(?P<d4>\d{{1,2}})(?:st|nd|rd|th)?\ (?:of\ )?)?(?P<m4>{_MONTH_NAMED})\.?
      (?:\ (?P<d5>\d{{1,2}})(?:st|nd|rd|th)?(?!\d))?,?\ (?P<y4>(?:19|20)\d\d)(?!\d))
    (?:[T ]\d{{1,2}}:\d{{2}}(?::\d{{2}})?Z?)?
    \s*(?:onwards?|on|起|开始|以后|之后)?\s*[\])）】]?\s*[:：,，|—–-]*\s*"""
)


def leading_day(text: str) -> tuple[dt.date, int] | None:
    """The day that a clause begins by naming with its year, and the end of those words; of a month its first day."""
    match = _LEAD.match(text[:_LOOK_CHARS])
    if match is None:
        return None
    if match["y1"]:
        parts = match["y1"], int(match["m1"]), match["d1"]
    elif match["y2"]:
        parts = str(_chinese_year(match["y2"])), _number(match["m2"] or "1"), str(_number(match["d2"] or "1"))
    elif match["y3"]:
        first, second = int(match["a"]), int(match["b"])
        month, day = (first, second) if second > 12 or (match["t"] == "/" and first <= 12) else (second, first)
        parts = match["y3"], month, str(day)
    else:
        parts = match["y4"], MONTH_NUMBERS[match["m4"].lower()], match["d4"] or match["d5"]
    found = _on_calendar(parts[0], parts[1], parts[2] or "1")
    return (found, match.end()) if found else None


# --- days and hours in comparable form ---------------------------------------------------------------------------

Day: TypeAlias = tuple[int, int, int]  # year, 0 if it is not said, month, day

_SHORT_MONTHS = tuple(name[:3] for name in MONTH_NAMES)
_ANY_MONTH = rf"(?:{'|'.join(_SHORT_MONTHS)})[a-z]{{0,6}}"
_ANY_DAY = lazy_regex(
    rf"""(?ix)(?<![0-9A-Za-z:])(?:
      (?P<y>\d{{4}})[-/.](?P<m>\d{{1,2}})[-/.](?P<d>\d{{1,2}})(?!\d)
    | (?:(?P<zy>\d{{4}})年)?(?P<zm>\d{{1,2}})月(?P<zd>\d{{1,2}})[日号]
    | (?P<a>\d{{1,2}})/(?P<b>\d{{1,2}})/(?P<ay>\d{{4}})(?!\d)
    | (?P<ed>\d{{1,2}})(?:st|nd|rd|th)?[ ](?:of[ ])?(?P<em>{_ANY_MONTH})(?![a-z])(?:,?[ ](?P<ey>\d{{4}}))?
    | (?P<um>{_ANY_MONTH})\.?[ ](?P<ud>\d{{1,2}})(?:st|nd|rd|th)?(?![\dA-Za-z:])(?:,?[ ](?P<uy>\d{{4}})(?!\d))?
    )"""
)
_ANY_CLOCK = lazy_regex(
    r"""(?ix)(?<![\d:.])(?:
      (?P<h>[01]?\d|2[0-4]):(?P<m>[0-5]\d)(?::[0-5]\d(?:\.\d{1,9})?)?(?![\d:])(?P<pm>[ ]?[ap]\.?m\b)?
    | (?P<eh>1[0-2]|0?\d)[ ]?(?P<epm>[ap]\.?m)\b
    | (?P<zh>[01]?\d|2[0-4])[ ]?[点时](?P<half>半|(?P<zm>[0-5]?\d)分?)?
    )"""
)
# Cheap signs that there may be a day or a time of day.
_DAY_HINT = lazy_regex("[0-9](?:[-/.][0-9]|[年月])")
_MONTH_HINT = lazy_regex(rf"{_ANY_MONTH}\.? [0-9]|[0-9](?:st|nd|rd|th)? (?:of )?{_ANY_MONTH}")
_CLOCK_HINT = lazy_regex("[0-9](?::[0-5]| ?[apAP]\\.?[mM]| ?[点时])")


def day_spans(text: str) -> Iterator[tuple[int, int]]:
    """Spans of the days of a text."""
    return (match.span() for match in (_ANY_DAY.finditer(text) if _may_have_days(text) else ()))


def clock_spans(text: str) -> Iterator[tuple[int, int]]:
    """Spans of the times of day of a text."""
    return (match.span() for match in (_ANY_CLOCK.finditer(text) if _CLOCK_HINT.search(text) else ()))


def _may_have_days(text: str) -> bool:
    if _DAY_HINT.search(text):
        return True
    lowered = text.lower()
    return any(month in lowered for month in _SHORT_MONTHS) and bool(_MONTH_HINT.search(lowered))


def days_of(text: str) -> Iterator[Day]:
    """Days of a text; both readings of one that can be read in two ways."""
    for match in _ANY_DAY.finditer(text):
        part = match.groupdict(default="0")
        if match["m"]:
            yield int(part["y"]), int(part["m"]), int(part["d"])
        elif match["zm"]:
            yield int(part["zy"]), int(part["zm"]), int(part["zd"])
        elif match["ay"]:
            yield int(part["ay"]), int(part["a"]), int(part["b"])
            yield int(part["ay"]), int(part["b"]), int(part["a"])
        elif match["em"]:
            yield int(part["ey"]), MONTH_NUMBERS[part["em"][:3].lower()], int(part["ed"])
        else:
            yield int(part["uy"]), MONTH_NUMBERS[part["um"][:3].lower()], int(part["ud"])


def clock_times_of(text: str) -> Iterator[int]:
    """Times of day of a text, in minutes of the half day: morning and afternoon are not told apart."""
    for match in _ANY_CLOCK.finditer(text):
        hour = int(match["h"] or match["eh"] or match["zh"])
        minute = int(match["m"] or match["zm"] or (30 if match["half"] == "半" else 0))
        yield (hour * 60 + minute) % 720
