"""Owns the date that a message begins with: "[Monday 8 May 2023, 13:56] Anna: …", "2026-11-20 …", "【2026年11月20日】".

Invariants: pure; no more than the beginning of a text is looked at, so a long one costs no more than a short
one; a sentence that only happens to begin with a date ("8 May 2023 was a fine day") has none.
"""

from __future__ import annotations

import datetime as dt
import re
from typing import NamedTuple

from indexer.dates import CHINESE_WEEK, MONTH_NUMBERS, WEEKDAY_NAMES, WEEKDAY_SHORT

_LOOK_CHARS = 96

_MONTH = f"(?:{'|'.join(sorted(MONTH_NUMBERS, key=len, reverse=True))})"
_WEEKDAY = (
    rf"(?:(?:{'|'.join((*WEEKDAY_NAMES, WEEKDAY_SHORT))})\b\.?,?[ ]"
    rf"|{CHINESE_WEEK}[一二三四五六日天][ ,，]?)"
)
_CLOCK = r"(?:[0-9]{1,2}[:：][0-9]{2}(?:[:：][0-9]{2})?(?:[ ]?[ap]\.?m\b\.?)?)"
_ZONE = r"(?:Z|[ ]?[+-][0-9]{2}:?[0-9]{2})"
_DAY = (
    r"(?:(?P<y1>[0-9]{4})-(?P<m1>[0-9]{1,2})-(?P<d1>[0-9]{1,2})(?![0-9])"
    r"|(?P<y2>[0-9]{4})/(?P<m2>[0-9]{1,2})/(?P<d2>[0-9]{1,2})(?![0-9])"
    r"|(?P<y3>[0-9]{4})[ ]?年[ ]?(?P<m3>[0-9]{1,2})[ ]?月[ ]?(?P<d3>[0-9]{1,2})[ ]?[日号號]"
    rf"|(?P<d4>[0-9]{{1,2}})(?:st|nd|rd|th)?[ ](?:of[ ])?(?P<m4>{_MONTH})\.?,?[ ](?P<y4>[0-9]{{4}})(?![0-9])"
    rf"|(?P<m5>{_MONTH})\.?[ ](?P<d5>[0-9]{{1,2}})(?:st|nd|rd|th)?,?[ ](?P<y5>[0-9]{{4}})(?![0-9]))"
)
_BRACKETED = re.compile(
    rf"\s*[\[(（【〔](?:{_CLOCK}(?:,|[ ]on)?[ ])?{_WEEKDAY}?{_DAY}[^\])）】〕\n]{{0,40}}[\])）】〕]", re.IGNORECASE
)
# Without brackets, digits alone are clear; where the month has a name, the date must end as a stamp does.
_NUMBERED_END = (
    rf"(?:[T ]{_CLOCK}(?:\.[0-9]{{1,9}})?{_ZONE}?|[ ]?{_WEEKDAY}(?:{_CLOCK})?)?(?=[\s:：,，.。;；|—–-]|$|(?<=\s))"
)
_NAMED_END = rf"(?:,?[ ]{_CLOCK})?[ ]?(?=[\n:：|—–-]|$)"
_BARE = re.compile(rf"\s*{_WEEKDAY}?{_DAY}(?(d4){_NAMED_END}|(?(d5){_NAMED_END}|{_NUMBERED_END}))", re.IGNORECASE)
_APART = re.compile(r"[\s:：,，.。;；|—–-]*")


class Stamp(NamedTuple):
    """A date at the beginning of a text, and where the text goes on behind it."""

    day: dt.date
    end: int


def leading_stamp(text: str) -> Stamp | None:
    """The date that a text begins with; None if it begins with none that is on the calendar."""
    head = text[:_LOOK_CHARS]
    match = _BRACKETED.match(head) or _BARE.match(head)
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
