"""Days that a question asks for, and its words without them. Pure.

Invariants: the day of a question ("last Tuesday", "10.01.2024", "上周三") raises dated passages and never filters;
relative days count from the day that the caller gives; weeks begin on Monday; "last Tuesday" is the latest one before
today, "next Friday" that of next week; with dots the day stands before the month; with slashes a date that can be read
both ways raises both days; the digits of a date are no words, but the date as a whole is one.

Source: +3 for the month and +6 for the days beside the asked one, in standard deviations, chosen on LoCoMo, where who
speaks of a day mostly does it on the next.
"""

from __future__ import annotations

import calendar
import datetime as dt
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from indexer.common.patterns import lazy_regex
from indexer.language.dates import (
    SIGNED_MONTH,
    WEEKDAY_NAMES,
    WEEKDAY_SHORT,
    Day,
    WrittenDay,
    is_on_calendar,
    keys_of_day,
    number_of,
    written_days,
    year_of_signs,
)
from indexer.language.languages import language_of
from indexer.language.tables import ANY, LANGUAGES

if TYPE_CHECKING:
    from indexer.language.base import Language

MONTH_BONUS = 3.0
BESIDE_BONUS = 6.0
DAY_BONUS = 12.0
# Of the newest passage, where a question asks for what is new, and after how many days half of it is left: beside what
# else it asks for, and where it asks for nothing else.
LATEST_BESIDE = (6.0, 14.0)
LATEST_ALONE = (12.0, 7.0)
_YEARS_BACK = 30

Stretch = tuple[int, int]
_Reader = Callable[[re.Match[str], dt.date], Stretch | None]


_LONE_MONTHS = ANY.days.lone_months
_MONTH = lazy_regex(r"\b(" + "|".join(sorted(_LONE_MONTHS, key=len, reverse=True)) + r")\b\.?", re.IGNORECASE)
# "may" and "march" are verbs too: as months they stand beside a number or behind a preposition.
_VERBS = ANY.days.ambiguous_months
_BESIDE = lazy_regex(rf"(?:\b(?:{ANY.days.before_months})|\d(?:{ANY.days.ordinal_ends})?)\s*$", re.I)
_BESIDE_CHARS = 24
_BEHIND = lazy_regex(r"\s*(?:\d|,\s*\d)")
_YEAR = lazy_regex(r"(?<!\d)((?:19|20)\d\d)(?!\d)")
# More days of one month: "May 7 and 8", "on 7, 8 and 9 May".
_AND, _END = f"(?:,|{ANY.days.day_joints}|&|-|–)", f"(?:{ANY.days.ordinal_ends})"
_DAYS_BEHIND = lazy_regex(rf"\s?{_AND}\s?(\d{{1,2}}){_END}?(?![\d%A-Za-z]|[:.]\d)")
_DAYS_BEFORE = lazy_regex(rf"(?<![\d:.-])(\d{{1,2}}){_END}?\s?{_AND}\s?\Z")
_SHORT_DAY = lazy_regex(
    rf"(?<![\w.,])(\d{{1,2}})\. ?(\d{{1,2}})\.(?!\w)|\b(?:{ANY.days.short_leads}) (\d{{1,2}})/(\d{{1,2}})(?![\w/])"
)

# --- parts with signs ------------------------------------------------------------------------------------------

# Months alone. Not those of a stretch of time, as in "三个月", nor moon cakes.
_SIGNED_MONTH = lazy_regex(SIGNED_MONTH)
_UNIT_DAYS = {"hour": 0, "day": 1, "week": 7, "fortnight": 14, "month": 30, "year": 365}
# A bare weekday is one gone by where the question speaks of what was.
_PAST = lazy_regex(rf"\b(?:{ANY.days.past})\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedDays:
    """Days that a question speaks of. A year or a day that it does not state matches every one.

    Attributes:
        ranges: First and last day of stretches it names outright, as proleptic ordinals.
        latest: True if it asks for what is new ("recently", "latest", 最近) and names no day.
    """

    months: frozenset[int] = frozenset()
    years: frozenset[int] = frozenset()
    days: frozenset[int] = frozenset()
    ranges: tuple[Stretch, ...] = ()
    latest: bool = False

    def __bool__(self) -> bool:
        return bool(self.months or self.ranges)

    def stretches(self, newest: int) -> list[Stretch]:
        """First and last day of all that is asked for, up to the year of the newest passage and some years before."""
        stretches = list(self.ranges)
        last = dt.date.fromordinal(newest).year if newest > 0 else 0
        for year in sorted(self.years) or range(last - _YEARS_BACK, last + 1):
            if dt.MINYEAR <= year <= dt.MAXYEAR:
                for month in self.months:
                    first, end = _month_stretch(dt.date(year, month, 1), 0)
                    days = [first + day - 1 for day in self.days if day <= end - first + 1]
                    stretches += [(day, day) for day in days] if self.days else [(first, end)]
        return stretches

    def bonus(self, ordinal: int) -> float:
        """Bonus of a passage of that day (a proleptic ordinal, 0 for undated)."""
        if not ordinal:
            return 0.0
        for first, last in self.ranges:
            if first == last and abs(ordinal - first) <= 1:
                return DAY_BONUS if ordinal == first else BESIDE_BONUS
            if first <= ordinal <= last:
                return MONTH_BONUS
        if not self.months:
            return 0.0
        day = dt.date.fromordinal(ordinal)
        if day.month not in self.months or (self.years and day.year not in self.years):
            return 0.0
        if day.day in self.days:
            return DAY_BONUS
        return BESIDE_BONUS if any(abs(day.day - asked_day) == 1 for asked_day in self.days) else MONTH_BONUS


def asked_days(question: str, today: dt.date) -> AskedDays:
    """The days that a question speaks of.

    Args:
        question: In any language; words such as "yesterday" are known in some.
        today: The day that "yesterday" counts from.
    """
    months, years, days = set[int](), set[int](), set[int]()
    ranges = list[Stretch]()
    for each_day in written_days(question):
        if each_day.numbered:
            ranges += [(day, day) for day in map(_ordinal, each_day.days) if day]
            continue
        ((year, month, _),) = each_day.days
        months.add(month)
        years |= {year} if year else set()
        days |= {day for _, _, day in _days_of(question, each_day)}
    for match in _SIGNED_MONTH.finditer(question):
        months.add(number_of(match["month"]))
        years |= {year_of_signs(match["year"])} if match["year"] else set()
    for first, second in _short_days(question):
        months.add(second)
        days.add(first)
    if named_months := _named_months(question):
        months |= named_months
        years |= {int(year) for year in _YEAR.findall(question)}
    valid = frozenset(month for month in months if 1 <= month <= 12)
    ranges += _relative(question, today)
    relative_years = [_year_stretch(today.year + shift) for shift in _shifted_years(question)]
    if valid:
        years |= {dt.date.fromordinal(first).year for first, _ in relative_years}
    else:
        ranges += relative_years or ([] if ranges else _gone_by(question, today))
    # A day before its week: the bonus is that of the first stretch that has the passage.
    ranges.sort(key=lambda stretch: stretch[1] - stretch[0])
    return AskedDays(
        months=valid,
        years=frozenset(years),
        days=frozenset(days),
        ranges=tuple(dict.fromkeys(ranges)),
        latest=not valid and not ranges and _LATEST.search(question) is not None,
    )


def _ordinal(day: Day) -> int:
    return dt.date(*day).toordinal() if day[0] else 0


def _days_of(question: str, written_day: WrittenDay) -> list[Day]:
    """A day with the name of its month, and the others that share it."""
    ((year, month, day),) = written_day.days
    numbers, end, start = [day], written_day.end, written_day.start
    while behind := _DAYS_BEHIND.match(question, end):
        numbers.append(int(behind[1]))
        end = behind.end()
    while before := _DAYS_BEFORE.search(question[max(0, start - 12) : start]):
        numbers.append(int(before[1]))
        start -= len(before[0])
    parts = [(year, month, number) for number in numbers]
    return [each_parts for each_parts in parts if is_on_calendar(each_parts)]


def _short_days(question: str) -> Iterator[tuple[int, int]]:
    """Day and month of dates without a year: "am 25.11.", "on 3/18"; the latter may be read both ways."""
    for match in _SHORT_DAY.finditer(question):
        if match[1] and is_on_calendar((0, int(match[2]), int(match[1]))):
            yield int(match[1]), int(match[2])
        for day, month in ((match[3], match[4]), (match[4], match[3])) if match[3] else ():
            if is_on_calendar((0, int(month), int(day))):
                yield int(day), int(month)


class AskedWords(NamedTuple):
    """Words of a question without the days that it names.

    Attributes:
        text: The question; blanks stand for the days, and for the words that ask what there was on a day.
        keys: Words that the days are found by where a text states them.
        dated: True if the question names any days, or asks for what is new.
    """

    text: str
    keys: tuple[str, ...]
    dated: bool


@lru_cache(maxsize=256)
def without_days(question: str) -> AskedWords:
    """The words of a question without the days that it names, whose digits would find hours and other numbers."""
    spans, keys = list[Stretch](), list[str]()
    for each_day in written_days(question):
        if each_day.bare:
            continue
        days = [*each_day.days] if each_day.numbered else _days_of(question, each_day)
        keys += [key for day in days for key in keys_of_day(day)]
        spans.append(_widen(question, each_day, len(days) > 1))
    for match in _SHORT_DAY.finditer(question):
        spans.append(match.span())
    keys += [key for day, month in _short_days(question) for key in keys_of_day((0, month, day))]
    for pattern, _ in _RELATIVE_SPACED if question.isascii() else _RELATIVE:
        spans += [match.span() for match in pattern.finditer(question)]
    spans += [match.span() for match in _DAY_WORD.finditer(question)]
    if not spans:
        spans = [match.span() for match in _LATEST.finditer(question)]
    if not spans:
        return AskedWords(question, (), False)
    spans += [match.span() for match in _HAPPENING.finditer(question)]
    for start, end in spans:
        question = question[:start] + " " * (end - start) + question[end:]
    return AskedWords(question, tuple(dict.fromkeys(keys)), True)


_WEEKDAY_BEFORE = lazy_regex(
    rf"\b(?:{'|'.join((*WEEKDAY_NAMES, WEEKDAY_SHORT))})\.?,? (?:(?:{ANY.days.articles}) )?\Z", re.IGNORECASE
)
_MOST_BEFORE = 24
_PARTICLE = lazy_regex(f"(?:{ANY.days.particles})")


def _widen(question: str, day: WrittenDay, more: bool) -> Stretch:
    """Span of a date with its weekday, and with the other days of its month."""
    start, end = day.start, day.end
    if more:
        while behind := _DAYS_BEHIND.match(question, end):
            end = behind.end()
        while before := _DAYS_BEFORE.search(question[max(0, start - 12) : start]):
            start -= len(before[0])
    before = _WEEKDAY_BEFORE.search(question[max(0, start - _MOST_BEFORE) : start])
    particle = _PARTICLE.match(question, end)
    return start - len(before[0]) if before else start, particle.end() if particle else end


def _named_months(question: str) -> set[int]:
    value = set()
    for match in _MONTH.finditer(question):
        word = match[1].lower()
        before = question[max(0, match.start() - _BESIDE_CHARS) : match.start()]
        beside = _BESIDE.search(before) or _BEHIND.match(question, match.end())
        if beside or (word not in _VERBS and (len(word) > 3 or match[1][0].isupper())):
            value.add(_LONE_MONTHS[word])
    return value


# --- relative days -----------------------------------------------------------------------------------------------


def _relative(question: str, today: dt.date) -> Iterator[Stretch]:
    for pattern, read in _RELATIVE_SPACED if question.isascii() else _RELATIVE:
        for match in pattern.finditer(question):
            stretch = read(match, today)
            if stretch is not None and stretch[0] > 0 and stretch[1] <= dt.date.max.toordinal():
                yield stretch
    for match in _DAY_WORD.finditer(question):
        word = match[0].lower()
        if word not in _AMBIGUOUS or language_of(question) == _AMBIGUOUS[word]:
            day = today.toordinal() + _DAY_WORDS[word]
            yield day, day


def _gone_by(question: str, today: dt.date) -> list[Stretch]:
    """The latest of bare weekdays and weekends that a question about the past names."""
    if not _PAST.search(question):
        return []
    return [_latest(match, today) for pattern in _BARE for match in pattern.finditer(question)]


def _latest(match: re.Match[str], today: dt.date) -> Stretch:
    now = today.toordinal()
    if match["weekday"] is None:
        saturday = now - (today.weekday() - 5) % 7
        return saturday, saturday + 1
    day = now - ((today.weekday() - _weekday(match["weekday"]) - 1) % 7 + 1)
    return day, day


def _shift(match: re.Match[str]) -> int:
    return ANY.days.shifts.get((match["shift"] or "").lower(), 0)


def _weekday(name: str) -> int:
    return ANY.days.weekdays[name.lower().rstrip(".")]


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
    day = first + number_of(match["day"]) - 1
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
    matches = [match for pattern in _SHIFTED_YEARS for match in pattern.finditer(question)]
    years = ANY.days.years
    return [years[word] if (word := match[0].lower()) in years else _shift(match) for match in matches]


def _count(text: str) -> tuple[int, int]:
    """Least and most of a number or a word such as "a few"."""
    known_count = ANY.days.counts.get(text.lower())
    return known_count or (number_of(text), number_of(text))


def _unit(match: re.Match[str]) -> str:
    unit = match["unit"].lower()
    return ANY.days.units.get(unit) or ANY.days.units.get(unit[-1], "hour")


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


def _fixed_day(days: int) -> Callable[[re.Match[str], dt.date], Stretch]:
    return lambda _, today: (today.toordinal() + days, today.toordinal() + days)


# Readers of relative days, by the names that the tables of languages give them.
_READERS: dict[str, _Reader] = {
    "weekday": _named_weekday,
    "day of week": _day_of_week,
    "week": _week,
    "weekend": _weekend,
    "month": _month,
    "day of month": _day_of_month,
    "ago": _ago,
    "until now": _until_now,
} | {str(days): _fixed_day(days) for days in range(-3, 4)}
_BARE = tuple(map(lazy_regex, ANY.days.bare_weekdays))
_SHIFTED_YEARS = tuple(map(lazy_regex, ANY.days.shifted_years))


def _relative_of(languages: Iterable[Language]) -> tuple[tuple[re.Pattern[str], _Reader], ...]:
    return tuple(
        (lazy_regex(pattern), _READERS[reader]) for language in languages for pattern, reader in language.days.relative
    )


_RELATIVE = _relative_of(LANGUAGES)
# Those that an ASCII text may have: compiling the others takes as long as a search.
_RELATIVE_SPACED = _relative_of(language for language in LANGUAGES if language.is_spaced)


# --- words for days ----------------------------------------------------------------------------------------------

_DAY_WORDS = ANY.days.day_words
# Words of other languages, too: each with the language that it is a day in.
_AMBIGUOUS = {word: language.name for language in LANGUAGES for word in language.days.ambiguous}
# The longest first; what is written without spaces has particles behind it.
_DAY_WORD = lazy_regex(
    r"(?i)(?<!\w)(?:"
    + "|".join(sorted((word for word in _DAY_WORDS if word[-1] < "\u3000"), key=len, reverse=True))
    + r")(?!\w)|"
    + "|".join(sorted((word for word in _DAY_WORDS if word[-1] >= "\u3000"), key=len, reverse=True))
)
# What is asked for where only the newest can be meant.
_LATEST = lazy_regex(rf"(?i)(?<!\w)(?:{ANY.days.latest})(?!\w)|{ANY.days.latest_within}")
# Words that only ask what there was.
_HAPPENING = lazy_regex(rf"(?i)\b(?:{ANY.days.happening})(?!\w)|{ANY.days.happening_within}")
