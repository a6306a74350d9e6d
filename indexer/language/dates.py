"""Days that are written down: in titles, names of files, properties, in a text and at its beginning; and words of time.

Invariants: pure; linear; with dots the day stands before the month, and in a title with dashes too, where the year is
last; of a date with slashes that can be read in two ways a title has none, and a text both; what is on no calendar is
no date.

Of a stamp ("[Monday 8 May 2023, 13:56] Anna: …", "【2026年11月20日】") no more than the beginning of a text is looked
at; a sentence that only happens to begin with a date ("8 May 2023 was a fine day") has none.

Patterns differ for a reason: a stamp must end as one, a title dates all below it and so wants a year, and what is
compared is read generously, without blanks that could join two numbers. A word of time is a cue alone ("yesterday",
"last week", "5 May", "2019", "三天前").
"""

from __future__ import annotations

import calendar
import datetime as dt
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeAlias

from indexer.common.patterns import lazy_regex
from indexer.language.tables import ANY, LANGUAGES

Day: TypeAlias = tuple[int, int, int]  # year, 0 if it is not said, month, day
# A day that a message states holds no longer than this by the clock: what follows a week later is of that day.
STATED_HOLDS = dt.timedelta(hours=24)

MONTH_NAMES = tuple(LANGUAGES[0].days.months[0].split())
WEEKDAY_NAMES = tuple(name for name in LANGUAGES[0].days.weekdays if name.endswith("day"))
MONTH_NUMBERS = LANGUAGES[0].days.lone_months
WEEKDAY_SHORT = ANY.days.short_weekdays
_WEEK = f"(?:{ANY.days.week})"

# --- numbers with signs of their own -----------------------------------------------------------------------------

_DIGITS = ANY.days.digits
NUMERAL = f"(?:{ANY.days.numerals})"
YEAR_NUMERAL = f"(?:{ANY.days.year_numerals})"


def number_of(text: str) -> int:
    """Value of a number below a hundred, in digits or in signs of a script."""
    if text.isdecimal():
        return int(text)
    tens, ten, this_text = text.replace("两", "二").replace("兩", "二").rpartition("十")
    return 10 * (_DIGITS.index(tens) if tens else len(ten)) + (_DIGITS.index(this_text) if this_text else 0)


def year_of_signs(text: str) -> int:
    """A year, in digits or in signs of a script."""
    if text.isdecimal():
        return int(text)
    return int("".join(str(_DIGITS.index("〇" if digit in "零○" else digit)) for digit in text))


_LOOK_CHARS = 96

_MONTH_NAME = f"(?:{'|'.join(sorted(MONTH_NUMBERS, key=len, reverse=True))})"
_DAY_NAME = (
    rf"(?:(?:{'|'.join((*WEEKDAY_NAMES, WEEKDAY_SHORT))})\b\.?,?[ ]"
    rf"|{_WEEK}(?:{ANY.days.weekday_signs})[ ,，]?)"
)
_ORDINAL_END, _OF_MONTH = f"(?:{ANY.days.ordinal_ends})", f"(?:{ANY.days.of_month})"
_YEAR_SIGN, _MONTH_SIGN = f"(?:{ANY.days.year_signs})", f"(?:{ANY.days.month_signs})"
_DAY_SIGN, _STAMP_SIGN = f"(?:{ANY.days.day_signs})", f"(?:{ANY.days.stamp_signs})"
_CLOCK = r"(?:[0-9]{1,2}[:：][0-9]{2}(?:[:：][0-9]{2})?(?:[ ]?[ap]\.?m\b\.?)?)"
_ZONE = r"(?:Z|[ ]?[+-][0-9]{2}:?[0-9]{2})"
_DAY = (
    r"(?:(?P<y1>[0-9]{4})-(?P<m1>[0-9]{1,2})-(?P<d1>[0-9]{1,2})(?![0-9])"
    r"|(?P<y2>[0-9]{4})/(?P<m2>[0-9]{1,2})/(?P<d2>[0-9]{1,2})(?![0-9])"
    rf"|(?P<y3>[0-9]{{4}})[ ]?{_YEAR_SIGN}[ ]?(?P<m3>[0-9]{{1,2}})[ ]?{_MONTH_SIGN}"
    rf"[ ]?(?P<d3>[0-9]{{1,2}})[ ]?{_STAMP_SIGN}"
    rf"|(?P<d4>[0-9]{{1,2}}){_ORDINAL_END}?[ ](?:{_OF_MONTH}[ ])?(?P<m4>{_MONTH_NAME})\.?,?"
    r"[ ](?P<y4>[0-9]{4})(?![0-9])"
    rf"|(?P<m5>{_MONTH_NAME})\.?[ ](?P<d5>[0-9]{{1,2}}){_ORDINAL_END}?,?[ ](?P<y5>[0-9]{{4}})(?![0-9]))"
)
_BRACKETED = lazy_regex(
    rf"\s*[\[(（【〔](?:{_CLOCK}(?:,|[ ](?:{ANY.days.clock_joints}))?[ ])?{_DAY_NAME}?{_DAY}"
    r"[^\])）】〕\n]{0,40}[\])）】〕]",
    re.IGNORECASE,
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
        date = dt.date(int(year), int(month) if month.isdigit() else MONTH_NUMBERS[month.lower()], int(day))
    except ValueError:
        return None
    after = _APART.match(head, match.end())
    return Stamp(date, after.end() if after else match.end())


# --- days that a text states -------------------------------------------------------------------------------------

# Months by all names that may stand behind the number of a day.
_MONTHS_BEHIND = {name: number for names in ANY.days.months for number, name in enumerate(names.split(), 1)} | dict(
    MONTH_NUMBERS
)
# Hyphens that are no minus, and blanks that do not break a line: one character for one, so that spans stay.
_PLAIN_SIGNS = str.maketrans("\u2010\u2011\u00a0\u202f", "--  ")


def _names(months: Iterable[str]) -> str:
    return "|".join(sorted(months, key=len, reverse=True))


# None begins by looking back, so that the engine skips to the first digit; `_apart` looks there.
_NUMBERED_DAY = lazy_regex(
    r"""(?x)(?P<year>(?:19|20)\d\d)(?:
      (?P<sign>[-/_])(?P<month>\d{1,2})(?P=sign)(?P<day>\d{1,2})(?!\d|[/.]\d)
    | \.(?P<gap>[ ]?)(?P<dotted_month>\d{1,2})\.(?P=gap)(?P<dotted_day>\d{1,2})(?!\d|[-/.]\d)
    | (?P<bare_month>0[1-9]|1[0-2])(?P<bare_day>0[1-9]|[12]\d|3[01])(?![0-9A-SU-Za-z]|[.,]\d))
    | (?P<first>\d{1,2})(?:\.(?P<space>[ ]?)(?P<second>\d{1,2})\.(?P=space)|(?P<line>[/_-])(?P<other>\d{1,2})(?P=line))
      (?P<last_year>(?:19|20)\d\d)(?![0-9A-Za-z]|[-/.][0-9A-Za-z])"""
)
_NAMED_DAY = lazy_regex(
    rf"""(?ix)(?P<day>\d{{1,2}})(?:{ANY.days.ordinal_ends}|{ANY.days.other_ends}|\.)?[ -]
      (?:(?:{_OF_MONTH}|{ANY.days.before_month})[ ])?(?P<month>{_names(_MONTHS_BEHIND)})
      (?![^\W\d_])\.?(?:,?[ -](?:(?:{ANY.days.before_year})[ ])?(?P<year>(?:19|20)\d\d)(?!\d))?
    | (?P<month_before>{_names(MONTH_NUMBERS)})(?:\.|,)?[ -](?:(?:{ANY.days.articles})[ ])?
      (?P<day_behind>\d{{1,2}}){_ORDINAL_END}?
      (?![\d%A-Za-z]|[:.,]\d|-\d)(?:,?[ -](?P<year_behind>(?:19|20)\d\d)(?!\d))?"""
)
_NO_NUMERAL = rf"(?<![\d{ANY.days.numeral_signs}])"
# The year and the month of a day whose parts have signs.
SIGNED_MONTH = (
    rf"(?:(?P<year>{YEAR_NUMERAL})\s*(?:{ANY.days.year_marks})\s*)?{_NO_NUMERAL}"
    rf"(?P<month>{ANY.days.month_numerals})\s*(?:{ANY.days.month_marks})"
)
_SIGNED_DAY = lazy_regex(rf"{SIGNED_MONTH}\s*(?P<day>{NUMERAL})\s*(?:{ANY.days.day_marks})")
_NUMBERED_HINT = lazy_regex(r"[0-9][-/._][ ]?[0-9]|(?:19|20)[0-9]{6}")
_LETTERS = lazy_regex(r"[^\W\d_]+")
_NAMED_HINT = lazy_regex(rf"[0-9][a-zº.]{{0,2}}[ -][^\W\d_]|[^\W\d_][.,]?[ -](?:(?:{ANY.days.articles}) )?[0-9]")


class WrittenDay(NamedTuple):
    """A date within a text.

    Attributes:
        start: Where it begins, from 0.
        end: Where it is over.
        days: Its readings, at least one; the year is 0 where it is not written.
        clear: True if it can be nothing but this day: it has a year, and one reading.
        bare: True for eight digits.
        numbered: True if the month is a number with signs beside it.
    """

    start: int
    end: int
    days: tuple[Day, ...]
    clear: bool = True
    bare: bool = False
    numbered: bool = False


def written_days(text: str) -> Iterator[WrittenDay]:
    """The dates of a text that are on the calendar, in whatever way people write them; a month alone is none."""
    plain = text.translate(_PLAIN_SIGNS) if not text.isascii() else text
    if _NUMBERED_HINT.search(plain):
        for match in _NUMBERED_DAY.finditer(plain):
            if _apart(plain, match.start(), year_first=bool(match["year"])):
                yield from _numbered_day(match)
    if _NAMED_HINT.search(plain) and not _MONTHS_BEHIND.keys().isdisjoint(_LETTERS.findall(plain.lower())):
        for match in _NAMED_DAY.finditer(plain):
            if _apart(plain, match.start(), year_first=True):
                month = match["month"] or match["month_before"]
                year, day = match["year"] or match["year_behind"], match["day"] or match["day_behind"]
                yield from _whole(match, (int(year or 0), _MONTHS_BEHIND[month.lower()], int(day)))
    if not text.isascii():
        for match in _SIGNED_DAY.finditer(plain):
            year = year_of_signs(match["year"]) if match["year"] else 0
            yield from _whole(match, (year, number_of(match["month"]), number_of(match["day"])))


def _apart(text: str, start: int, *, year_first: bool) -> bool:
    """True if a date does not go on from a word, a price, a version or a path before it."""
    before = text[start - 1 : start]
    return not before or not (
        (before.isascii() and before.isalnum()) or before in (".$€£¥" if year_first else ".$€£¥/-")
    )


def _numbered_day(match: re.Match[str]) -> Iterator[WrittenDay]:
    if match["year"]:
        month, day = next((match[f"{kind}month"], match[f"{kind}day"]) for kind in ("", "dotted_", "bare_")
                          if match[f"{kind}month"])  # fmt: skip
        # 2024.10.1 is the name of a release.
        is_release = match["gap"] == "" and len(month + day) < 4
        yield from _whole(match, (int(match["year"]), int(month), int(day)), clear=not is_release, is_numbered=True)
        return
    year, first, second = int(match["last_year"]), int(match["first"]), int(match["second"] or match["other"])
    day_first, month_first = (year, second, first), (year, first, second)
    days = [day for day in dict.fromkeys((day_first, month_first)) if is_on_calendar(day)]
    if match["line"] is None:
        days = days[:1]
    if days:
        clear = len(days) == 1 or match["line"] != "/"
        yield WrittenDay(match.start(), match.end(), tuple(days), clear, numbered=True)


def _whole(match: re.Match[str], day: Day, *, clear: bool = True, is_numbered: bool = False) -> Iterator[WrittenDay]:
    if is_on_calendar(day):
        bare = is_numbered and match["bare_day"] is not None
        yield WrittenDay(match.start(), match.end(), (day,), clear and day[0] > 0, bare, is_numbered)


def is_on_calendar(day: Day) -> bool:
    """True if there is such a day; without a year, in a leap year."""
    year, month, number = day
    return 1 <= month <= 12 and 1 <= number <= calendar.monthrange(year or 2024, month)[1]


def heading_day(text: str) -> dt.date | None:
    """First day of a title or a property that can be nothing else."""
    return _first(day for day in written_days(text) if day.clear)


def _first(days: Iterable[WrittenDay]) -> dt.date | None:
    first = min(days, default=None)
    return dt.date(*first.days[0]) if first else None


_DAY_OF_FOLDERS = lazy_regex(
    r"(?:^|/)((?:19|20)\d\d)[-/_](?:\1[-_])?(\d{1,2})(?:[-_. ]+[^\W\d_]+)?/(\d{1,2})(?![\w.-]*\d)[^/]*$"
)
_EXTENSION = lazy_regex(r"\.[A-Za-z][A-Za-z0-9]{0,7}$")


def day_of_name(path: str) -> dt.date | None:
    """Day in the name of a file, or in those of its folders: `2026/11/15.md`."""
    path = _EXTENSION.sub("", path.replace("\\", "/"))
    if named_heading_day := heading_day(path.rpartition("/")[2]):
        return named_heading_day
    match = _DAY_OF_FOLDERS.search(path)
    return _on_calendar(match[1], int(match[2]), match[3]) if match else None


def full_day(text: str) -> dt.date | None:
    """First day that a text states in full: 2026-11-20, 20 November 2026, November 20, 2026, 2026年11月20日."""
    return _first(day for day in written_days(text) if day.days[0][0] and not day.bare)


def day_keys(text: str) -> list[str]:
    """Words that the days of a text are found by, with and without the year."""
    return [
        key for each_day in written_days(text) if not each_day.bare for day in each_day.days for key in keys_of_day(day)
    ]


def keys_of_day(day: Day) -> tuple[str, ...]:
    """Words that a day is found by, with and without the year."""
    year, month, number = day
    bare = f"day{month:02}{number:02}"
    return (bare, f"day{year}{month:02}{number:02}") if year else (bare,)


def _on_calendar(year: str, month: int, day: str) -> dt.date | None:
    try:
        return dt.date(int(year), month, int(day))
    except ValueError:
        return None


_LEAD = lazy_regex(
    rf"""(?ix)[\[(（【]?\s*(?:{ANY.days.leads})?\s*
    (?:(?P<y1>(?:19|20)\d\d)\s*(?P<s>[-/.])\s*(?P<m1>\d{{1,2}})(?:(?P=s)(?P<d1>\d{{1,2}}))?(?!\d)
    | (?P<y2>{YEAR_NUMERAL})\s*{_YEAR_SIGN}\s*
      (?:(?P<m2>{NUMERAL})\s*{_MONTH_SIGN}(?:\s*(?P<d2>{NUMERAL})\s*{_STAMP_SIGN})?)?
    | (?P<a>\d{{1,2}})(?P<t>[-/.])(?P<b>\d{{1,2}})(?P=t)(?P<y3>(?:19|20)\d\d)(?!\d)
    | (?:(?P<d4>\d{{1,2}}){_ORDINAL_END}?\ (?:{_OF_MONTH}\ )?)?(?P<m4>{_MONTH_NAME})\.?
      (?:\ (?P<d5>\d{{1,2}}){_ORDINAL_END}?(?!\d))?,?\ (?P<y4>(?:19|20)\d\d)(?!\d))
    (?:[T ]\d{{1,2}}:\d{{2}}(?::\d{{2}})?Z?)?
    \s*(?:{ANY.days.onwards})?\s*[\])）】]?\s*[:：,，|—–-]*\s*"""
)


def leading_day(text: str) -> tuple[dt.date, int] | None:
    """The day that a clause begins by naming with its year, and the end of those words; of a month its first day."""
    match = _LEAD.match(text[:_LOOK_CHARS])
    if match is None:
        return None
    if match["y1"]:
        parts = match["y1"], int(match["m1"]), match["d1"]
    elif match["y2"]:
        parts = str(year_of_signs(match["y2"])), number_of(match["m2"] or "1"), str(number_of(match["d2"] or "1"))
    elif match["y3"]:
        first, second = int(match["a"]), int(match["b"])
        month, day = (first, second) if second > 12 or (match["t"] == "/" and first <= 12) else (second, first)
        parts = match["y3"], month, str(day)
    else:
        parts = match["y4"], MONTH_NUMBERS[match["m4"].lower()], match["d4"] or match["d5"]
    found_day = _on_calendar(parts[0], parts[1], parts[2] or "1")
    return (found_day, match.end()) if found_day else None


# --- days and hours in comparable form ---------------------------------------------------------------------------

_SHORT_MONTHS = tuple(name[:3] for name in MONTH_NAMES)
_ANY_MONTH = rf"(?:{'|'.join(_SHORT_MONTHS)})[a-z]{{0,6}}"
_ANY_DAY = lazy_regex(
    rf"""(?ix)(?<![0-9A-Za-z:])(?:
      (?P<y>\d{{4}})[-/.](?P<m>\d{{1,2}})[-/.](?P<d>\d{{1,2}})(?!\d)
    | (?:(?P<zy>\d{{4}}){_YEAR_SIGN})?(?P<zm>\d{{1,2}}){_MONTH_SIGN}(?P<zd>\d{{1,2}}){_DAY_SIGN}
    | (?P<a>\d{{1,2}})/(?P<b>\d{{1,2}})/(?P<ay>\d{{4}})(?!\d)
    | (?P<ed>\d{{1,2}}){_ORDINAL_END}?[ ](?:{_OF_MONTH}[ ])?(?P<em>{_ANY_MONTH})(?![a-z])(?:,?[ ](?P<ey>\d{{4}}))?
    | (?P<um>{_ANY_MONTH})\.?[ ](?P<ud>\d{{1,2}}){_ORDINAL_END}?(?![\dA-Za-z:])(?:,?[ ](?P<uy>\d{{4}})(?!\d))?
    )"""
)
_ANY_CLOCK = lazy_regex(
    rf"""(?ix)(?<![\d:.])(?:
      (?P<h>[01]?\d|2[0-4]):(?P<m>[0-5]\d)(?::[0-5]\d(?:\.\d{{1,9}})?)?(?![\d:])(?P<pm>[ ]?[ap]\.?m\b)?
    | (?P<eh>1[0-2]|0?\d)[ ]?(?P<epm>[ap]\.?m)\b
    | (?P<zh>[01]?\d|2[0-4])[ ]?(?:{ANY.days.clock_signs})
      (?P<half>{ANY.days.half_signs}|(?P<zm>[0-5]?\d)(?:{ANY.days.minute_signs})?)?
    )"""
)
# Cheap signs that there may be a day or a time of day.
_DAY_HINT = lazy_regex(f"[0-9](?:[-/.][0-9]|{_YEAR_SIGN}|{_MONTH_SIGN})")
_MONTH_HINT = lazy_regex(rf"{_ANY_MONTH}\.? [0-9]|[0-9]{_ORDINAL_END}? (?:{_OF_MONTH} )?{_ANY_MONTH}")
_CLOCK_HINT = lazy_regex(rf"[0-9](?::[0-5]| ?[apAP]\.?[mM]| ?(?:{ANY.days.clock_signs}))")


def day_spans(text: str) -> Iterator[tuple[int, int]]:
    """Spans of the days of a text."""
    return (match.span() for match in (_ANY_DAY.finditer(text) if _may_have_days(text) else ()))


def clock_spans(text: str) -> Iterator[tuple[int, int]]:
    """Spans of the times of day of a text."""
    return (match.span() for match in (_ANY_CLOCK.finditer(text) if _CLOCK_HINT.search(text) else ()))


def _may_have_days(text: str) -> bool:
    if _DAY_HINT.search(text):
        return True
    lowered_text = text.lower()
    return any(month in lowered_text for month in _SHORT_MONTHS) and bool(_MONTH_HINT.search(lowered_text))


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
        minute = int(match["m"] or match["zm"] or (30 if match["half"] else 0))
        yield (hour * 60 + minute) % 720


_WORD = lazy_regex(r"[a-z]+")
_AMBIGUOUS = ANY.days.ambiguous_months
_TIME_WORDS = ANY.days.time_words | {*WEEKDAY_NAMES, *(f"{name}s" for name in WEEKDAY_NAMES), *MONTH_NAMES} - _AMBIGUOUS
# Words that speak of time only in company; the patterns below run only where one of them occurs.
_UNITS, _COMPANIONS = ANY.days.time_units, ANY.days.time_companions
_SHORT_MONTH_WORDS = {name for name in MONTH_NUMBERS if len(name) <= 5} - (frozenset(MONTH_NAMES) - _AMBIGUOUS)
_CALENDAR_WORDS = _SHORT_MONTH_WORDS | {name[:3] for name in WEEKDAY_NAMES} | ANY.days.hour_words
_PHRASE = lazy_regex(ANY.days.time_phrases, re.IGNORECASE)
_MONTH = rf"(?:{'|'.join(sorted(map(str.title, _SHORT_MONTH_WORDS), key=len, reverse=True))})\b"
_WEEKDAY = rf"(?:{WEEKDAY_SHORT})\b"
_BEFORE = rf"\b(?i:{ANY.days.calendar_leads})[ -]"
_CALENDAR = lazy_regex(
    rf"{_BEFORE}(?:{_MONTH}|{_WEEKDAY})"
    rf"|\b(?:{_MONTH}|{_WEEKDAY})[.,]? ?\d"
    rf"|\d{_ORDINAL_END}?(?: {_OF_MONTH})?[ -]{_MONTH}"
    r"|\d ?(?i:[ap]\.?m)\b"
)
# The look-behind stands at the end so that the search can run from one digit to the next.
_YEAR = lazy_regex(r"[12](?:(?<=1)9|(?<=2)0)[0-9]{2}(?<![\w.,$€£#][0-9]{4})(?![0-9A-Za-z_%]|[.,:][0-9])")
_YEAR_AFTER_CJK = lazy_regex(r"[一-鿿](?:19|20)[0-9]{2}(?![0-9A-Za-z_%])")
# Each alternative of the pattern behind it has one of these characters; most texts have none.
_TIME_SIGN = lazy_regex(ANY.days.time_signs)
_TIME_WORDS_WITHIN = lazy_regex(ANY.days.time_words_within)


def has_time_words(text: str) -> bool:
    """True if a text speaks of a time: "yesterday", "last week", "5 May", "2019", "三天前"."""
    words = _WORD.findall(text.lower())
    if not _TIME_WORDS.isdisjoint(words) or _YEAR.search(text) is not None:
        return True
    if not (_UNITS.isdisjoint(words) or _COMPANIONS.isdisjoint(words)) and _PHRASE.search(text) is not None:
        return True
    if not _CALENDAR_WORDS.isdisjoint(words) and _CALENDAR.search(text) is not None:
        return True
    return not text.isascii() and _has_time_words_within(text)


def _has_time_words_within(text: str) -> bool:
    if _TIME_SIGN.search(text) is not None and _TIME_WORDS_WITHIN.search(text) is not None:
        return True
    return _YEAR_AFTER_CJK.search(text) is not None
