"""Owns the gist of a text: the terms by which two texts are compared for saying the same, and what must not differ.

Invariants: pure; linear; a term below a negation is another term than the same without it; numbers, days, names and
words that have an opposite are firm: a text that lacks one of them says something else.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Final

from indexer.analysis import STOP_WORDS, fold, has_unspaced, index_terms

NOT: Final = "¬"
MAX_CHARS = 100_000
# Texts with fewer terms are compared word for word.
FEW: Final = 3

# Scripts written without spaces between words, as `indexer.analysis` has them; goes between brackets in a pattern.
UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003ffff"
)
# Runs of such a script, numbers with what is between their digits, words, ends of clauses.
_TOKEN = re.compile(
    rf"[{UNSPACED}]+|\d++(?:[.:,/-]\d++)*+(?![^\W_{UNSPACED}])"
    rf"|[^\W_{UNSPACED}]++(?:['’][^\W_{UNSPACED}]++)*+|[.!?;:,\n。！？；：，]"
)
_ASCII_TOKEN = re.compile(r"\d++(?:[.:,/-]\d++)*+(?![A-Za-z])|[A-Za-z0-9]++(?:'[A-Za-z0-9]++)*+|[.!?;:,\n]")
_NEGATIONS = frozenset("not never no cannot cant dont wont without nor neither none nobody nothing".split())
# What a memory says around what was said: "The user decided that …".
_FRAME = frozenset("user assistant said says say told note noted remember decided decision please ok okay".split())
_FRAME_HAN = re.compile("用户|用戶|助手|我们|我們|决定|決定|请记住|記住|记住|注意|表示")
# Words of time, and words whose opposite is one letter or one word away.
_FIRM = frozenset(
    """
    monday tuesday wednesday thursday friday saturday sunday mondays tuesdays wednesdays thursdays fridays saturdays
    sundays mon tue tues wed thu thurs fri sat sun january february march april june july august september october
    november december today tomorrow yesterday tonight morning afternoon evening night noon midnight daily weekly
    monthly yearly hourly two three four five six seven eight nine ten eleven twelve twenty thirty fifty hundred
    thousand million second third last next half double before after
    enable enabled enables disable disabled disables allow allowed allows forbid forbidden deny denied accept accepted
    reject rejected approve approved true false success succeeded passed failed fails failure increase increased
    decrease decreased more less add added remove removed open opened close closed start started stop stopped always
    off left right minimum maximum
    """.split()
)
_FIRM_HAN = re.compile(
    "[每上下本]?(?:周|週|星期|礼拜|禮拜)[一二三四五六日天末]|[今明昨前后後]天|上午|下午|中午|晚上|早上|凌晨|[每上下本](?:天|日|周|週|月|年)"
    "|[〇零一二两兩三四五六七八九十百千万]{1,12}[点點号號日月年天周次个個元岁歲分秒小倍条條人台份]"
    "|开启|關閉|关闭|啟用|启用|停用|禁用|允许|允許|禁止|同意|拒绝|拒絕|增加|减少|減少|成功|失败|失敗|打开|通过|以前|以后|之前|之后"
)
_NOT_HAN = re.compile(
    "不(?![仅但过過错錯同断斷久管论論然])|没(?!关系|问题|事)|沒(?!關係|問題|事)|未(?![来來])|别(?![的人])|勿|无(?![论])"
)
# A negation reaches over so many terms, or characters of an unspaced script, of its clause.
_REACH, _REACH_HAN = 3, 8
_WORD, _FIRM_WORD, _NEGATION, _END, _NOTHING, _RUN = range(6)
_NEGATED, _RUN_OF = ("", _NEGATION), ("", _RUN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gist:
    """What a text says.

    Attributes:
        terms: Its content terms in reading order, repeats included; of unspaced scripts the bigrams.
        distinct: Each of them once.
        firm: Those of them that must not differ.
        words: All of its words, as one text, where it has too few terms to compare; else empty.
    """

    terms: tuple[str, ...]
    distinct: tuple[str, ...]
    firm: frozenset[str]
    words: str = ""


def gist_of(text: str) -> Gist:
    """The gist of a text; what lies beyond `MAX_CHARS` is not read."""
    text = text[:MAX_CHARS]
    tokens = (_ASCII_TOKEN if text.isascii() else _TOKEN).findall(text)
    sorted_ = list(map(_term, tokens))
    if _NEGATED in sorted_ or _RUN_OF in sorted_:
        terms, firm = _read(tokens, sorted_)
    else:
        terms = [term for term, sort in sorted_ if sort <= _FIRM_WORD]
        firm = {term for term, sort in sorted_ if sort == _FIRM_WORD}
    distinct = tuple(dict.fromkeys(terms))
    words = " ".join(_words(text)) if len(distinct) < FEW else ""
    return Gist(terms=tuple(terms), distinct=distinct, firm=frozenset(firm), words=words)


def _read(tokens: list[str], sorted_: list[tuple[str, int]]) -> tuple[list[str], set[str]]:
    """The terms of a text with negations or runs of an unspaced script, and those of them that are firm."""
    terms, firm, reach = list[str](), set[str](), 0
    for token, (term, sort) in zip(tokens, sorted_, strict=True):
        if sort <= _FIRM_WORD:
            if reach:
                term, reach = NOT + term, reach - 1
                firm.add(term)
            elif sort == _FIRM_WORD:
                firm.add(term)
            terms.append(term)
        elif sort == _NEGATION:
            reach = _REACH
        elif sort == _END:
            reach = 0
        elif sort == _RUN:
            # Such scripts have no case; full forms of their characters are most often what stands there.
            _add_unspaced(token if unicodedata.is_normalized("NFKC", token) else fold(token), terms, firm)
    return terms, firm


@lru_cache(maxsize=4_096)
def cached_gist(text: str) -> Gist:
    """The same for texts that come back, such as passages that are found again and again."""
    return gist_of(text)


@lru_cache(maxsize=65_536)
def _term(token: str) -> tuple[str, int]:
    """The term of a token, and what kind of token it is."""
    if has_unspaced(token[0]):
        return _RUN_OF
    if not token[0].isalnum():
        return "", _END
    folded = fold(token).replace("’", "'")
    stem = folded.partition("'")[0]
    if folded.endswith("n't") or folded in _NEGATIONS:
        return _NEGATED
    if stem in _FIRM:
        return index_terms(stem)[0], _FIRM_WORD
    if folded in _FRAME or stem in STOP_WORDS or not (terms := index_terms(stem)):
        return "", _NOTHING
    if any(map(str.isdigit, token)):
        return folded, _FIRM_WORD
    return "".join(terms), _FIRM_WORD if token[0].isupper() else _WORD


def _add_unspaced(run: str, terms: list[str], firm: set[str]) -> None:
    for part in _FRAME_HAN.split(run):
        pairs = [first + second for first, second in pairwise(part)] or list(part)
        firmly = {at for match in _FIRM_HAN.finditer(part) for at in range(match.start(), match.end() - 1)}
        for match in _NOT_HAN.finditer(part):
            for at in range(match.end(), min(len(pairs), match.end() + _REACH_HAN)):
                if pairs[at][0] != NOT:
                    pairs[at] = NOT + pairs[at]
                    firmly.add(at)
        terms += pairs
        firm.update(pairs[at] for at in firmly)


def _words(text: str) -> list[str]:
    return [token for token in _TOKEN.findall(fold(text[:1_000])) if token[0].isalnum()]
