"""Words of time in a text: "yesterday", "last week", "5 May", "2019", "三天前".

Invariants: pure; linear in the length of the text; English and Chinese, other languages give no cue.
"""

from __future__ import annotations

import re

from indexer.common.patterns import lazy_regex
from indexer.language.dates import MONTH_NAMES, MONTH_NUMBERS, WEEKDAY_NAMES, WEEKDAY_SHORT

_WORD = lazy_regex(r"[a-z]+")
# "may" and "march" are verbs too.
_TIME_WORDS = frozenset(
    "yesterday today tomorrow tonight ago recently lately weekend weekends weekday weekdays noon midnight fortnight "
    "tues thurs".split()
) | {*WEEKDAY_NAMES, *(f"{name}s" for name in WEEKDAY_NAMES), *MONTH_NAMES} - {"may", "march"}
# Words that speak of time only in company; the patterns below run only where one of them occurs.
_UNITS = frozenset(
    "second seconds minute minutes hour hours day days night nights week weeks month months quarter quarters year "
    "years decade decades century morning mornings afternoon afternoons evening evenings summer winter spring "
    "autumn fall semester".split()
)
_COMPANIONS = frozenset(
    "last past next this previous coming following that same other earlier later few several couple before after from "
    "back in during over by since until at year years".split()
)
_SHORT_MONTHS = frozenset(name for name in MONTH_NUMBERS if len(name) <= 5) - {"april", "june", "july"}
_CALENDAR_WORDS = _SHORT_MONTHS | {name[:3] for name in WEEKDAY_NAMES} | {"am", "pm", "m"}
_UNIT = "(?:" + "|".join(sorted(_UNITS, reverse=True)) + r")\b"
_PHRASE = lazy_regex(
    r"\b(?:last|past|next|this|previous|coming|following|that|same|other|earlier|later)[ -]"
    rf"(?:\w{{1,12}} (?:of )?)?{_UNIT}"
    rf"|\b(?:few|several|couple|couple of)[ ]{_UNIT}"
    r"|\b(?:seconds?|minutes?|hours?|days?|weeks?|months?|years?|decades?|night|morning|evening)"
    r" (?:later|earlier|before|after|from now|back)\b"
    r"|\b(?:in|during|over|by|since|until|before|after)(?: the)?(?: early| late)?"
    r" (?:morning|afternoon|evening|night|summer|winter|spring|autumn|fall)s?\b"
    r"|\b(?:at night|years? of (?:19|20)\d\d)\b",
    re.IGNORECASE,
)
_MONTH = rf"(?:{'|'.join(sorted(map(str.title, _SHORT_MONTHS), key=len, reverse=True))})\b"
_DAY = rf"(?:{WEEKDAY_SHORT})\b"
_BEFORE = r"\b(?i:in|on|of|by|from|last|next|this|since|until|till|before|after|during|through|early|late|mid)[ -]"
_CALENDAR = lazy_regex(
    rf"{_BEFORE}(?:{_MONTH}|{_DAY})"
    rf"|\b(?:{_MONTH}|{_DAY})[.,]? ?\d"
    rf"|\d(?:st|nd|rd|th)?(?: of)?[ -]{_MONTH}"
    r"|\d ?(?i:[ap]\.?m)\b"
)
# The look-behind stands at the end so that the search can run from one digit to the next.
_YEAR = lazy_regex(r"[12](?:(?<=1)9|(?<=2)0)[0-9]{2}(?<![\w.,$€£#][0-9]{4})(?![0-9A-Za-z_%]|[.,:][0-9])")
_YEAR_AFTER_CJK = lazy_regex(r"[一-鿿](?:19|20)[0-9]{2}(?![0-9A-Za-z_%])")
# Each alternative of the pattern for Chinese has one of these characters; most texts have none.
_CHINESE_HINT = lazy_regex("[天日年月周週星礼禮季学學号號前后後点點早晨午晚夜近刚剛久]")
_NUMBER = "(?:[0-9]{1,4}|[〇零一二两兩三四五六七八九十百半几幾数數]{1,5})"
_CHINESE = lazy_regex(
    "[昨今明前后後]天|[昨今明]日|[昨今明当當][晚早晨夜]|[今明去前后後]年"
    "|[上下本这這][一个個]?(?:周|週|星期|礼拜|禮拜|月|季度|学期|學期)|[先来來][週月]"
    "|(?:周|週|星期|礼拜|禮拜)[一二三四五六日天末]"
    r"|[0-9]{1,4} ?[年月日号號]|[〇零一二三四五六七八九]{4}年|[一二三四五六七八九十]{1,2}月(?!饼|餅|亮)"
    f"|{_NUMBER}[多来來]?[个個]?(?:秒|分钟|分鐘|小时|小時|钟头|天|日|周|週|星期|礼拜|禮拜|月|季度|年)[之以]?[前后後]"
    "|[0-9一二两兩三四五六七八九十]{1,3}[点點][半钟鐘]"
    "|(?:早上|早晨|上午|中午|下午|傍晚|晚上|夜里|夜裡|凌晨|半夜)(?!好)"
    "|最近|近来|近來|近期|刚才|剛才|前几天|前幾天|前些天|前阵子|前陣子|不久前|过几天|過幾天|[月年][底初末]"
)


def has_time_words(text: str) -> bool:
    """True if a text speaks of a time: "yesterday", "last week", "5 May", "2019", "三天前"."""
    words = _WORD.findall(text.lower())
    if not _TIME_WORDS.isdisjoint(words) or _YEAR.search(text) is not None:
        return True
    if not (_UNITS.isdisjoint(words) or _COMPANIONS.isdisjoint(words)) and _PHRASE.search(text) is not None:
        return True
    if not _CALENDAR_WORDS.isdisjoint(words) and _CALENDAR.search(text) is not None:
        return True
    return not text.isascii() and _has_chinese_time_words(text)


def _has_chinese_time_words(text: str) -> bool:
    if _CHINESE_HINT.search(text) is not None and _CHINESE.search(text) is not None:
        return True
    return _YEAR_AFTER_CJK.search(text) is not None
