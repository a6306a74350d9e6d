"""Cues in the wording of a text: words of time, a question, a question about time.

Invariants: pure; linear in the length of the text; the same functions judge passages when they are indexed and
questions when they are searched. English and Chinese; other languages give no cue.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from indexer.common.patterns import lazy_regex
from indexer.language.dates import MONTH_NAMES, MONTH_NUMBERS, WEEKDAY_NAMES, WEEKDAY_SHORT
from indexer.language.tables import ANY

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
# "[shares a picture: …]" or "(see below)" behind a sentence does not change what the sentence is.
_ASIDE = lazy_regex(r"(?<=[?？])[ \t]*(?:\[[^\[\]\n]*\]|\([^()\n]*\)|（[^（）\n]*）)[ \t]*\Z")
_ASKING_WHEN = lazy_regex(ANY.questions.asking_when, re.IGNORECASE)

# A text that asks and is longer says something, too. Source: the evidence of foreign data sets, at no limit, 600, 400,
# 250, 150 and without the cue: .329, .354, .360, .357, .370, .370 in long talks with an assistant, .511, .512, .508,
# .513, .523, .522 in dialogues at work; of LoCoMo's within 1,024 tokens .853, .853, .853, .854, .855, .845.
SHORT_CHARS = 150
_MARK = lazy_regex("[?\uff1f\u061f\u037e]")

_REQUEST = lazy_regex(ANY.questions.requests, re.IGNORECASE)


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


def asks(text: str) -> bool:
    """True if the last sentence of a text is a question.

    Quotes, emoji or an aside in brackets may follow its question mark, but no words. In Chinese a final 吗 or 呢 asks
    without one.
    """
    if text.isascii() and "?" not in text:
        return False
    text = _ASIDE.sub("", text)
    mark = max(text.rfind("?"), text.rfind("？"))
    for index in range(len(text) - 1, mark, -1):
        if text[index].isalnum():
            return text[index] in "吗嗎呢"
    return mark >= 0


def asks_shortly(text: str) -> bool:
    """True if a text asks and says little else: a longer one tells what its question is about."""
    return len(text) <= SHORT_CHARS and asks(text)


def requests(text: str) -> bool:
    """True if a text begins by asking somebody to do something: "please find …", "帮我查一下…"."""
    return _REQUEST.match(text) is not None


def asks_when(query: str) -> bool:
    """True if a question asks for a time: when, what date, how long ago, 什么时候, 多久."""
    return _ASKING_WHEN.search(query) is not None


# Who speaks of himself, in the languages that assistants are asked in most.
_OF_ASKER = lazy_regex(
    r"\b(?:i|me|my|mine|myself|we|us|our|ours|ourselves"
    r"|ich|mich|mir|mein\w{0,2}|wir|uns|unser\w{0,2}|je|moi|mon|mes|nous|notre|nos|yo|mis?|nuestr\w{1,2}"
    r"|eu|meus?|minhas?|nosso\w?|nossa\w?|mio|mia|miei|nostr\w|я|меня|мне|мой|моя|мо[её]|мои|мы|нас|нам|наш\w{0,3})\b"
    "|\\bj['’]|[我咱]|[私僕俺]|(?:나는|내가|나의|저는|제가|우리)",
    re.IGNORECASE,
)
_OF_ASSISTANT = lazy_regex(
    r"\b(?:did|had|have|were|what|which|how|when|why|where|whether)\b[^.?!\n]{0,60}\byou(?:['’]ve|['’]d)?\b[^.?!\n]{0,24}"
    r"\b(?:sa(?:y|id)|tell|told|suggest\w{0,3}|recommend\w{0,3}|advis\w{1,3}|propos\w{1,3}|explain\w{0,3}|mention\w{0,3}"
    r"|write|wrote|written|g[ai]ve|given|answer\w{0,3}|repl(?:y|ied)|list|listed|outline|outlined|provide|provided)\b"
    r"|\byou (?:said|told|suggested|recommended|advised|proposed|explained|mentioned|wrote|gave|answered|listed)\b"
    r"|\byour (?:own )?(?:advice|answers?|suggestions?|recommendations?|repl(?:y|ies)|proposals?|explanations?)\b"
    r"|\b(?:hast du|haben sie|habt ihr)\b[^.?!\n]{0,60}\b(?:gesagt|empfohlen|vorgeschlagen|geraten|erklärt|erwähnt)\b"
    r"|\b(?:dein|ihr)e? (?:rat|antwort|vorschlag|empfehlung)\b|\b(?:as-tu|tu as|avez-vous|vous avez)\b[^.?!\n]{0,30}"
    r"\b(?:dit|conseillé|suggéré|recommandé|proposé)\b|\b(?:dijiste|recomendaste|sugeriste|aconsejaste|propusiste)\b"
    "|[你您](?:之前|以前|上次|刚才|当时|曾|曾经)?(?:给我)?(?:说|建议|推荐|告诉|提到|回答|解释|列出)[过的了我]"
    "|[你您]的(?:建议|回答|推荐|答复|意见)",
    re.IGNORECASE,
)
_OVERVIEW = lazy_regex(
    r"\b(?:summar\w{1,6}|overview|recap|zusammenfass\w{0,5}|überblick|résum\w{1,4}|aperçu|resum\w{1,4}|riassu\w{1,5})\b"
    "|总结|總結|概括|概述|综述|回顾|回顧|梳理|要約|まとめ|요약",
    re.IGNORECASE,
)


def whose_word(question: str) -> Literal["user", "assistant", ""]:
    """Whose messages answer a question: those of the user, where he asks about himself, or of the assistant.

    Neither where it asks for an overview, which both have a part in, or asks nothing.
    """
    if not (_MARK.search(question) or asks(question) or requests(question)) or _OVERVIEW.search(question):
        return ""
    if _OF_ASSISTANT.search(question):
        return "assistant"
    return "user" if _OF_ASKER.search(question) else ""


def only_ask(sentences: Sequence[str], *, requesting: bool = False) -> bool:
    """True if each of some sentences asks something, or, if so, asks somebody to do something."""
    return all(asks(sentence) or (requesting and requests(sentence)) for sentence in sentences)
