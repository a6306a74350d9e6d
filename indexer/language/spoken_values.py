"""Values in words: times of day as they are spoken, spelled numbers, marks of an estimate, days without a date. Pure.

Invariants: linear; a time is told in minutes of the half day, as `dates.clock_times_of` tells it; a spelled number is
the number, in the tens of English and in the first twelve of seven languages.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from indexer.common.patterns import lazy_regex
from indexer.language.dates import number_of
from indexer.language.tables import ANY, LANGUAGES

_HALF_DAY = 720
_WORDS = ANY.numerals
_HOURS = {word: at for words in _WORDS.first_twelve for at, word in enumerate(words.split(), 1)} | dict(_WORDS.others)
# Numbers that may be put together, of languages that have tens.
_COUNTED = (
    {
        word: at
        for language in LANGUAGES
        if language.numerals.tens
        for words in language.numerals.first_twelve
        for at, word in enumerate(words.split(), 1)
    }
    | dict(_WORDS.teens)
    | dict(_WORDS.tens)
)
_SINGLE = _HOURS | _COUNTED | dict(_WORDS.single)
_LARGE = _WORDS.scales
_HOUR = f"(?:{'|'.join(sorted(_HOURS, key=len, reverse=True))}|1[0-2]|0?[1-9])"
_MINUTE_WORDS = ANY.numerals.minute_words
_MINUTE = f"(?:{'|'.join(sorted(_MINUTE_WORDS, key=len, reverse=True))}|[0-5]?[0-9])"


def _alternatives(parts: Iterable[str]) -> str:
    return "|".join(part.replace(" ", r"\s") for part in parts)


_SPOKEN = lazy_regex(
    rf"""(?ix)(?<![\w.,])(?:
      (?P<minute>{_MINUTE})(?:\s(?:{_WORDS.minute_units}))?\s(?P<way>{"|".join(_WORDS.minute_ways)})\s(?P<hour>{_HOUR})\b
    | (?:{_WORDS.half_hours})\s(?P<british>{_HOUR})\b | (?P<oclock>{_HOUR})\s?(?:{_WORDS.full_hours})\b
    | (?P<plain>{_HOUR})[\s-](?P<plain_minute>{_WORDS.minutes_behind})\b
      (?![\s-](?:{_WORDS.no_hours}))
    | (?P<noon>{_WORDS.noon})\b
    | (?P<before>{_alternatives(_WORDS.before_hour)})\s(?P<hour_behind>{_HOUR})\b
    | (?P<signed>2[0-4]|1?[0-9]|{_HOUR})\s?(?:{_WORDS.hour_signs})(?:\s(?P<signed_minute>[0-5]?[0-9]))?\b
    | (?P<with_unit>2[0-4]|1?[0-9]|{_HOUR})\s?(?:{_WORDS.hour_units})\s?
      (?P<with_unit_minute>[0-5][0-9]|{_alternatives(_WORDS.behind_unit)})?
      (?![\w])
    | (?P<bare>{_HOUR})\s(?P<bare_minute>{_alternatives(_WORDS.behind_hour)})\b
    | (?P<military>[01][0-9]|2[0-3])(?P<military_minute>[0-5][0-9])\s(?:{_WORDS.day_hours})\b
    | (?P<dotted>2[0-3]|[01]?[0-9])\.(?P<dotted_minute>[0-5][0-9])
      (?:\s?(?:{_WORDS.hour_signs}|h|[ap]\.?m\b\.?)|(?!\d|[.,]\d|\s?[\w%€$£]))
    )"""
)
_HINT = lazy_regex(f"(?i){_WORDS.clock_hints}")
_PARTS = dict(_WORDS.before_hour) | dict(_WORDS.behind_hour) | dict(_WORDS.behind_unit)
_CLOCK_WITHIN = lazy_regex(ANY.numerals.clock_within)
_CLOCK_PARTS = ANY.numerals.clock_parts
_NUMBER_WORDS = lazy_regex(
    rf"(?i)\b(?:{_WORDS.articles}|{'|'.join([*_COUNTED, *_LARGE, *_WORDS.halves])})"
    rf"(?:[\s-](?:(?:{_WORDS.joints})[\s-])?(?:{'|'.join([*_COUNTED, *_LARGE])})|[\s-](?:{_WORDS.articles})\b){{0,6}}\b"
)
_WORD = lazy_regex(r"[^\W\d_]+")
_ABOUT = lazy_regex(rf"(?i)(?:[~≈∼≲≳<>≤≥]|\b(?:{ANY.values.about})|{ANY.values.about_within})\s{{0,2}}[€$£¥]?\Z")
_ABOUT_BEHIND = lazy_regex(rf"(?i)\s?(?:{ANY.values.about_behind}|\+)")
_RELATIVE_DAY = lazy_regex(rf"(?i)\b(?:{ANY.days.near})\b|{ANY.days.near_within}")
_ORDINAL_DAY = lazy_regex(rf"(?i)\b(?:{_WORDS.day_leads})\s(\d{{1,2}})(?:{_WORDS.day_ends}|\.)?(?![\d:.,]\d|\w)")


def spoken_times(text: str) -> Iterator[int]:
    """Times of day that a text says in words or with other signs than a colon, in minutes of the half day."""
    if _HINT.search(text):
        for match in _SPOKEN.finditer(text):
            yield from (minutes % _HALF_DAY for minutes in _minutes(match))
    if not text.isascii():
        for match in _CLOCK_WITHIN.finditer(text):
            hour = number_of(match["hour"])
            minute = _CLOCK_PARTS.get(match["part"] or "", 0)
            if match["minute"]:
                minute = number_of(match["minute"].removeprefix("零"))
            if match["before"]:
                lack = match["lack"].rstrip("钟分")
                minute = -(_CLOCK_PARTS.get(lack) or number_of(lack))
            yield (60 * hour + minute) % _HALF_DAY


def _minutes(match: re.Match[str]) -> Iterator[int]:
    part = {name: value.lower() for name, value in match.groupdict().items() if value}
    if "minute" in part:
        minute = _MINUTE_WORDS.get(part["minute"].strip()) or int(part["minute"]) if part["minute"] else 0
        yield 60 * _hour(part["hour"]) + _WORDS.minute_ways[part["way"]] * minute
    elif "noon" in part:
        yield 0
    elif "plain" in part:
        words = part["plain_minute"].replace("-", " ").split()
        yield 60 * _hour(part["plain"]) + sum(_COUNTED.get(word, 0) for word in words)
    elif "before" in part:
        yield 60 * _hour(part["hour_behind"]) + _PARTS[" ".join(part["before"].split())]
    else:
        for name in ("british", "oclock", "signed", "with_unit", "bare", "military", "dotted"):
            if name in part:
                minute_text = " ".join(part.get(f"{name}_minute", "").split())
                minute = int(minute_text) if minute_text.isdecimal() else _PARTS.get(minute_text, 0)
                yield 60 * _hour(part[name]) + (30 if name == "british" else minute)


def _hour(word: str) -> int:
    return int(word) if word.isdecimal() else _HOURS[word]


def spelled_numbers(text: str) -> Iterator[float]:
    """Numbers of a text that are written as words, and each word of them by itself: "five", "twenty-five", "zwölf"."""
    for match in _NUMBER_WORDS.finditer(text):
        yield _sum_of_words(match[0].lower().replace("-", " ").split())
    for word in _WORD.findall(text):
        if (value := _SINGLE.get(word.lower())) is not None:
            yield float(value)


def _sum_of_words(words: list[str]) -> float:
    total, part = 0.0, 0.0
    for at, word in enumerate(words):
        if word in _LARGE:
            scale = _LARGE[word]
            if scale == 100 or scale in (12, 20):
                part = (part or 1) * scale
            else:
                total, part = total + (part or 1) * scale, 0.0
        elif word in _WORDS.halves:
            part += 0.5
        elif word in _COUNTED:
            part += _COUNTED[word]
        else:
            part = part or (1.0 if at == 0 and len(words) > 1 else part)
    return total + part


def is_estimate(text: str, start: int, end: int) -> bool:
    """True if the words beside a number of a text say that it is not exact: "~1.3 s", "300 左右", "rund 40"."""
    before = text[max(0, start - 16) : start]
    return _ABOUT.search(before) is not None or _ABOUT_BEHIND.match(text, end) is not None


def names_relative_day(text: str) -> bool:
    """True if a text names a day by today or by its place in the week."""
    return _RELATIVE_DAY.search(text) is not None


def ordinal_days(text: str) -> Iterator[int]:
    """Days of a month that a text names without the month: "the 25th", "am 3."."""
    return (day for match in _ORDINAL_DAY.findall(text) if 1 <= (day := int(match)) <= 31)
