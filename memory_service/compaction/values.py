"""Owns what numbers, days and times of day in a text mean, so that two ways of writing one compare equal.

"30s", "30 s" and "30 seconds" are one amount; "Nov 20", "2026-11-20" and "11月20日" are one day; "10 pm" is "22:00".
Invariants: pure; linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, TypeAlias

Amount: TypeAlias = tuple[str, float]  # what is measured, and how much in its base unit; "" is a bare number
Day: TypeAlias = tuple[int, int, int]  # year, 0 if it is not said, month, day
ValueKind: TypeAlias = Literal["date", "time", "number"]

_TIME_UNITS = {
    0.001: "ms msec millisecond milliseconds 毫秒",
    1: "s sec secs second seconds 秒 秒钟",
    60: "min mins minute minutes 分钟",
    3_600: "h hr hrs hour hours 小时",
    86_400: "day days 天",
    604_800: "week weeks 周 星期",
    2_592_000: "month months 个月",
    31_536_000: "year years 年",
}
_SIZE_UNITS = {
    1: "bytes byte 字节",
    1e3: "KB", 1e6: "MB 兆", 1e9: "GB", 1e12: "TB",
    2.0**10: "KiB", 2.0**20: "MiB", 2.0**30: "GiB", 2.0**40: "TiB",
}  # fmt: skip
_COUNT_UNITS = {1: "", 1e3: "k K thousand", 1e6: "M million", 1e9: "billion", 1e4: "万", 1e8: "亿"}
_MONEY = {"eur": "€ EUR euro euros 欧元", "usd": "$ USD dollar dollars 美元", "cny": "¥ ￥ CNY RMB yuan 元 块 人民币",
          "gbp": "£ GBP"}  # fmt: skip
_OTHERS = (
    "% % percent pct 百分点|token tokens|char chars character characters 字|row rows|user users 人"
    "|request requests|connection connections|px|°C ℃|kg 公斤|g|km 公里|m 米|cm|mm|Hz|kHz|MHz|GHz"
    "|fps|qps QPS|rps|W|kW|V|台|倍|x|bps|Mbps"
    "|Gbps"
)


def _table() -> dict[str, tuple[str, float]]:
    table = {word: ("s", scale) for scale, words in _TIME_UNITS.items() for word in words.split()}
    table |= {word: ("b", scale) for scale, words in _SIZE_UNITS.items() for word in words.split()}
    table |= {word: ("", scale) for scale, words in _COUNT_UNITS.items() for word in words.split()}
    table |= {word: (code, 1.0) for code, words in _MONEY.items() for word in words.split()}
    table |= {f"{scale}元": ("cny", factor) for scale, factor in (("万", 1e4), ("亿", 1e8))}
    table |= {word: (group.split()[0], 1.0) for group in _OTHERS.split("|") for word in group.split()}
    return table


_UNITS = _table()
_UNITS_LOWER = {word.lower(): unit for word, unit in _UNITS.items() if len(word) > 1}
_OTHER = "|".join(
    sorted((re.escape(word) for word in _UNITS if not (word.isascii() and word[0].isalpha())), key=len)[::-1]
)

# A number starts once per run of digits, so that no run is read twice. It begins with a character, not with a look
# behind, since that is what the engine skips ahead by.
_NUMBER = re.compile(
    rf"""[0-9€$£¥￥](?:(?<=[€$£¥￥])[ ]?[0-9]|(?<=[0-9])(?<![A-Za-z0-9_.,/\\\#][0-9])(?<![0-9]:[0-9]))
    (?P<rest>\d{{0,2}}(?:,\d{{3}})++(?:\.\d++)?(?!\d)|\d*+(?:\.\d++)?(?!\.?\d))
    (?:[ \u00a0\u202f-]?(?P<unit>[A-Za-z]{{1,12}}(?![A-Za-z0-9_])|{_OTHER}))?""",
    re.VERBOSE,
)
_SIGNS = "€$£¥￥"
_MONTHS = {name: at for at, name in enumerate("jan feb mar apr may jun jul aug sep oct nov dec".split(), 1)}
_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}"
_DAY = re.compile(
    rf"""(?ix)(?<![0-9A-Za-z:])(?:
      (?P<y>\d{{4}})[-/.](?P<m>\d{{1,2}})[-/.](?P<d>\d{{1,2}})(?!\d)
    | (?:(?P<zy>\d{{4}})年)?(?P<zm>\d{{1,2}})月(?P<zd>\d{{1,2}})[日号]
    | (?P<a>\d{{1,2}})/(?P<b>\d{{1,2}})/(?P<ay>\d{{4}})(?!\d)
    | (?P<ed>\d{{1,2}})(?:st|nd|rd|th)?[ ](?:of[ ])?(?P<em>{_MONTH})(?![a-z])(?:,?[ ](?P<ey>\d{{4}}))?
    | (?P<um>{_MONTH})\.?[ ](?P<ud>\d{{1,2}})(?:st|nd|rd|th)?(?![\dA-Za-z:])(?:,?[ ](?P<uy>\d{{4}})(?!\d))?
    )"""
)
_CLOCK = re.compile(
    r"""(?ix)(?<![\d:.])(?:
      (?P<h>[01]?\d|2[0-4]):(?P<m>[0-5]\d)(?::[0-5]\d(?:\.\d{1,9})?)?(?![\d:])(?P<pm>[ ]?[ap]\.?m\b)?
    | (?P<eh>1[0-2]|0?\d)[ ]?(?P<epm>[ap]\.?m)\b
    | (?P<zh>[01]?\d|2[0-4])[ ]?[点时](?P<half>半|(?P<zm>[0-5]?\d)分?)?
    )"""
)
# Cheap signs that there may be a day or a time of day.
_DATE_HINT = re.compile("[0-9](?:[-/.][0-9]|[年月])")
_MONTH_NAMES = tuple(_MONTHS)
_MONTH_HINT = re.compile(rf"{_MONTH}\.? [0-9]|[0-9](?:st|nd|rd|th)? (?:of )?{_MONTH}")
_CLOCK_HINT = re.compile("[0-9](?::[0-5]| ?[apAP]\\.?[mM]| ?[点时])")
_NUMERALS = {word: at for at, word in enumerate(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty".split())} | {"thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "ninety": 90,
    "hundred": 100, "thousand": 1_000, "a": 1, "an": 1, "once": 1, "twice": 2, "half": 0.5}  # fmt: skip
_WORD = re.compile("[A-Za-z]+")
_HAN_DIGITS = {char: at for at, char in enumerate("零一二三四五六七八九")} | {"两": 2, "〇": 0, "半": 0.5}
_HAN_SCALES = {"十": 10, "百": 100, "千": 1_000, "万": 10_000, "亿": 100_000_000}
_HAN = re.compile("[零〇一二两三四五六七八九十百千万亿半]{1,12}")


def found_values(text: str) -> Iterator[tuple[ValueKind, int, int]]:
    """Where a text has days, times of day and numbers, with the end; those may overlap.

    Numbers of few digits without a unit are left out: they say little by themselves.
    """
    for match in _DAY.finditer(text) if _may_have_days(text) else ():
        yield "date", match.start(), match.end()
    for match in _CLOCK.finditer(text) if _CLOCK_HINT.search(text) else ():
        yield "time", match.start(), match.end()
    for match in _NUMBER.finditer(text):
        if match["unit"] and _unit(match["unit"]):
            yield "number", match.start(), match.end()
            continue
        number = match.string[match.start() : match.end("rest")]
        if not number.isdecimal() or _many_digits(number):
            yield "number", match.start(), match.end("rest")


def _may_have_days(text: str) -> bool:
    if _DATE_HINT.search(text):
        return True
    lowered = text.lower()
    return any(month in lowered for month in _MONTH_NAMES) and bool(_MONTH_HINT.search(lowered))


def _many_digits(value: str) -> bool:
    return len(value) > 3 and not (len(value) == 4 and value[:2] in ("19", "20"))


def amounts_of(text: str) -> Iterator[Amount]:
    """The numbers of a text, in figures, with what they measure."""
    for match in _NUMBER.finditer(text):
        yield _amount(match)


def values_of(text: str) -> Iterator[float]:
    """The numbers of a text, in figures, whatever they measure."""
    for match in _NUMBER.finditer(text):
        yield _rounded(_figures(match))


def _amount(match: re.Match[str]) -> Amount:
    value = _figures(match)
    family, scale = (_unit(match["unit"]) if match["unit"] else None) or ("", 1.0)
    if match[0][0] in _SIGNS:
        family = _UNITS[match[0][0]][0]
    return family, _rounded(value * scale)


def _figures(match: re.Match[str]) -> float:
    return float(match.string[match.start("rest") - 1 : match.end("rest")].replace(",", "")[:40])


def _unit(word: str) -> tuple[str, float] | None:
    return _UNITS.get(word) or _UNITS_LOWER.get(word.lower())


def _rounded(value: float) -> float:
    return float(f"{value:.9g}")


def spelled_amounts(text: str) -> Iterator[float]:
    """The numbers of a text that are written as words: "five", "三十"."""
    for word in _WORD.findall(text):
        if word.lower() in _NUMERALS:
            yield float(_NUMERALS[word.lower()])
    if not text.isascii():
        yield from map(_han_value, _HAN.findall(text))


def _han_value(word: str) -> float:
    total, section, digit = 0.0, 0.0, 0.0
    for char in word:
        if char in _HAN_DIGITS:
            digit = _HAN_DIGITS[char]
        elif _HAN_SCALES[char] < 10_000:
            section, digit = section + (digit or 1) * _HAN_SCALES[char], 0.0
        else:
            total, section, digit = total + (section + digit or 1) * _HAN_SCALES[char], 0.0, 0.0
    return total + section + digit


def same_amounts(amount: Amount) -> Iterator[Amount]:
    """The ways in which another text may have meant the same: with the unit, or bare in a unit near it."""
    family, value = amount
    yield amount
    scales = {"s": _TIME_UNITS, "b": _SIZE_UNITS, "": _COUNT_UNITS}.get(family, {1.0: "", 1e4: "", 1e8: ""})
    for scale in scales:
        yield "", _rounded(value / scale)
    if family == "b":  # KB for KiB is how most people write
        for power in (1, 2, 3, 4):
            yield family, _rounded(value / 1_000**power * 1_024**power)
            yield family, _rounded(value / 1_024**power * 1_000**power)
    if family == "%":
        yield "", _rounded(value / 100)


def days_of(text: str) -> Iterator[Day]:
    """The days of a text; both readings of one that can be read in two ways."""
    for match in _DAY.finditer(text):
        part = match.groupdict(default="0")
        if match["m"]:
            yield int(part["y"]), int(part["m"]), int(part["d"])
        elif match["zm"]:
            yield int(part["zy"]), int(part["zm"]), int(part["zd"])
        elif match["ay"]:
            yield int(part["ay"]), int(part["a"]), int(part["b"])
            yield int(part["ay"]), int(part["b"]), int(part["a"])
        elif match["em"]:
            yield int(part["ey"]), _MONTHS[part["em"][:3].lower()], int(part["ed"])
        else:
            yield int(part["uy"]), _MONTHS[part["um"][:3].lower()], int(part["ud"])


def clock_times_of(text: str) -> Iterator[int]:
    """The times of day of a text, in minutes of the half day: morning and afternoon are not told apart."""
    for match in _CLOCK.finditer(text):
        hour = int(match["h"] or match["eh"] or match["zh"])
        minute = int(match["m"] or match["zm"] or (30 if match["half"] == "半" else 0))
        yield (hour * 60 + minute) % 720
