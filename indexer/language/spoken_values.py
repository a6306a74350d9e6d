"""Values in words: times of day as they are spoken, spelled numbers, marks of an estimate, days without a date. Pure.

Invariants: linear; a time is told in minutes of the half day, as `dates.clock_times_of` tells it; a spelled number is
the number, in the tens of English and in the first twelve of seven languages.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from indexer.common.patterns import lazy_regex
from indexer.language.dates import number_of
from indexer.language.tables import ANY

_HALF_DAY = 720
_FIRST_TWELVE = (
    "one two three four five six seven eight nine ten eleven twelve",
    "eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf",
    "une deux trois quatre cinq six sept huit neuf dix onze douze",
    "una dos tres cuatro cinco seis siete ocho nueve diez once doce",
    "uno due tre quattro cinque sei sette otto nove dieci undici dodici",
    "uma duas três quatro cinco seis sete oito nove dez onze doze",
    "één twee drie vier vijf zes zeven acht negen tien elf twaalf",
    "один два три четыре пять шесть семь восемь девять десять одиннадцать двенадцать",
)
_HOURS = {word: at for words in _FIRST_TWELVE for at, word in enumerate(words.split(), 1)} | {
    "ein": 1, "un": 1, "um": 1, "dois": 2, "zwo": 2, "mezzogiorno": 12, "mediodía": 12, "midi": 12, "noon": 12,
}  # fmt: skip
_TEENS = {word: at for at, word in enumerate(
    "thirteen fourteen fifteen sixteen seventeen eighteen nineteen".split(), 13)}  # fmt: skip
_TENS = {word: 10 * at for at, word in enumerate("twenty thirty forty fifty sixty seventy eighty ninety".split(), 2)}
_ENGLISH = {word: at for at, word in enumerate(_FIRST_TWELVE[0].split(), 1)} | _TEENS | _TENS
_SINGLE = _HOURS | _ENGLISH | {
    "zero": 0, "a": 1, "an": 1, "once": 1, "twice": 2, "half": 0.5, "hundred": 100, "thousand": 1_000,
}  # fmt: skip
_LARGE = {"hundred": 100, "thousand": 1_000, "million": 1_000_000, "billion": 1_000_000_000, "dozen": 12, "score": 20}
_HOUR = f"(?:{'|'.join(sorted(_HOURS, key=len, reverse=True))}|1[0-2]|0?[1-9])"
_MINUTE_WORDS = {"quarter": 15, "a quarter": 15, "half": 30, "five": 5, "ten": 10, "twenty": 20, "twenty-five": 25,
                 "twenty five": 25}  # fmt: skip
_MINUTE = f"(?:{'|'.join(sorted(_MINUTE_WORDS, key=len, reverse=True))}|[0-5]?[0-9])"
_SPOKEN = lazy_regex(
    rf"""(?ix)(?<![\w.,])(?:
      (?P<minute>{_MINUTE})(?:\s(?:minutes?|mins?))?\s(?P<way>past|after|to|before|till|until)\s(?P<hour>{_HOUR})\b
    | half\s(?P<british>{_HOUR})\b | (?P<oclock>{_HOUR})\s?o['’]?clock\b
    | (?P<plain>{_HOUR})[\s-](?P<plain_minute>oh[\s-]five|ten|fifteen|twenty|twenty[\s-]five|thirty|thirty[\s-]five
      |forty|forty[\s-]five|fifty|fifty[\s-]five)\b(?![\s-](?:percent|seconds?|minutes?|days?))
    | (?P<noon>noon|midday|midnight|mittags?|mitternachts?|midi|minuit|mediodía|medianoche|mezzogiorno|mezzanotte
      |meio-dia|meia-noite|полдень|полночь)\b
    | (?P<german>halb|viertel\snach|viertel\svor|dreiviertel|viertel)\s(?P<german_hour>{_HOUR})\b
    | (?P<uhr>2[0-4]|1?[0-9]|{_HOUR})\s?uhr(?:\s(?P<uhr_minute>[0-5]?[0-9]))?\b
    | (?P<french>2[0-4]|1?[0-9]|{_HOUR})\s?h(?:eures?)?\s?
      (?P<french_minute>[0-5][0-9]|et\squart|et\sdemie?|moins\sle\squart)?
      (?![\w])
    | (?P<southern>{_HOUR})\s(?P<southern_minute>y\scuarto|y\smedia|menos\scuarto|e\sun\squarto|e\smezza
      |meno\sun\squarto|e\smeia|e\squinze)\b
    | (?P<military>[01][0-9]|2[0-3])(?P<military_minute>[0-5][0-9])\s(?:hours|hrs)\b
    | (?P<dotted>2[0-3]|[01]?[0-9])\.(?P<dotted_minute>[0-5][0-9])
      (?:\s?(?:uhr|h|[ap]\.?m\b\.?)|(?!\d|[.,]\d|\s?[\w%€$£]))
    )"""
)
_HINT = lazy_regex(
    r"(?i)past|to|after|before|half|clock|noon|midday|midnight|uhr|halb|viertel|h\b|\dh|heure|cuarto|media|quarto|mezza"
    r"|meia|hours|hrs|\d\.[0-5]\d|mitt|midi|minuit|medio|mezz|пол|[-\s](?:ten|fifteen|thirty|forty|fifty|twenty)"
)
_PARTS = {
    "y cuarto": 15, "e un quarto": 15, "et quart": 15, "e quinze": 15, "y media": 30, "e mezza": 30, "et demie": 30,
    "et demi": 30, "e meia": 30, "menos cuarto": -15, "meno un quarto": -15, "moins le quart": -15,
    "viertel nach": 15, "viertel vor": -15, "halb": -30, "dreiviertel": -15, "viertel": -45,
}  # fmt: skip
_HAN_CLOCK = lazy_regex(
    r"(?P<before>差(?P<lack>一刻|[一二三四五十]{1,3}分钟?|\d{1,2}分钟?))?(?P<hour>[一二两兩三四五六七八九十]{1,3}|[01]?\d|2[0-4])\s?[点點时時]"
    r"(?:(?P<part>半|一刻|三刻|钟|鐘|整)|(?P<minute>[一二三四五]?十[一二三四五六七八九]?|零[一二三四五六七八九]|[0-5]?\d)分?)?"
)
_HAN_PARTS = {"半": 30, "一刻": 15, "三刻": 45}
_NUMBER_WORDS = lazy_regex(
    rf"(?i)\b(?:an?|{'|'.join([*_ENGLISH, *_LARGE, 'half'])})"
    rf"(?:[\s-](?:and[\s-])?(?:{'|'.join([*_ENGLISH, *_LARGE])})|[\s-]an?\b){{0,6}}\b"
)
_WORD = lazy_regex(r"[^\W\d_]+")
_ABOUT = lazy_regex(rf"(?i)(?:[~≈∼≲≳<>≤≥]|\b(?:{ANY.values.about})|{ANY.values.about_within})\s{{0,2}}[€$£¥]?\Z")
_ABOUT_BEHIND = lazy_regex(rf"(?i)\s?(?:{ANY.values.about_behind}|\+)")
_RELATIVE_DAY = lazy_regex(rf"(?i)\b(?:{ANY.days.near})\b|{ANY.days.near_within}")
_ORDINAL_DAY = lazy_regex(
    r"(?i)\b(?:the|on|am|den|le|el|il|o|dia|день)\s(\d{1,2})(?:st|nd|rd|th|\.|er|º)?(?![\d:.,]\d|\w)"
)


def spoken_times(text: str) -> Iterator[int]:
    """Times of day that a text says in words or with other signs than a colon, in minutes of the half day."""
    if _HINT.search(text):
        for match in _SPOKEN.finditer(text):
            yield from (minutes % _HALF_DAY for minutes in _minutes(match))
    if not text.isascii():
        for match in _HAN_CLOCK.finditer(text):
            hour = number_of(match["hour"])
            minute = _HAN_PARTS.get(match["part"] or "", 0)
            if match["minute"]:
                minute = number_of(match["minute"].removeprefix("零"))
            if match["before"]:
                lack = match["lack"].rstrip("钟分")
                minute = -(15 if lack == "一刻" else number_of(lack))
            yield (60 * hour + minute) % _HALF_DAY


def _minutes(match: re.Match[str]) -> Iterator[int]:
    part = {name: value.lower() for name, value in match.groupdict().items() if value}
    if "minute" in part:
        minute = _MINUTE_WORDS.get(part["minute"].strip()) or int(part["minute"]) if part["minute"] else 0
        sign = 1 if part["way"] in ("past", "after") else -1
        yield 60 * _hour(part["hour"]) + sign * minute
    elif "noon" in part:
        yield 0
    elif "plain" in part:
        words = part["plain_minute"].replace("-", " ").split()
        yield 60 * _hour(part["plain"]) + sum(_ENGLISH.get(word, 0) for word in words)
    elif "german" in part:
        yield 60 * _hour(part["german_hour"]) + _PARTS[" ".join(part["german"].split())]
    else:
        for name in ("british", "oclock", "uhr", "french", "southern", "military", "dotted"):
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
        elif word == "half":
            part += 0.5
        elif word in ("a", "an"):
            part = part or (1.0 if at == 0 and len(words) > 1 else part)
        else:
            part += _ENGLISH.get(word, 0)
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
