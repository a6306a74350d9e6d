"""Owns whether two texts state the same fact, so that it is stored once. Pure.

Invariants: symmetric; linear in the texts; when in doubt two texts are two facts, for a fact that is lost costs more
than one that stands there twice. Another number, day, name, negation, direction or time of a verb is another fact,
and so is one word in the place of another.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

from indexer.analysis import STOP_WORDS, fold, has_unspaced, query_terms

# Of the words of each, so many stand in the other one.
_COMMON_SHARE = 0.9
# A longer text is compared as a whole or not at all.
_MAX_CHARS = 4_000
# With fewer words behind it, what stands before a colon is needed to know what is spoken of.
_LEAST_WORDS = 4
_PROBES = 2
_LOOKED_BACK = 60

_MARKER = re.compile(r"(?:[-*+]|\d{1,3}[.)]) ")
_HANDLE = re.compile(r"\s{0,4}[(\[（【]\s{0,2}log:\d{1,12}[^()\[\]（）【】\n]{0,80}[)\]）】]")
_DATED = re.compile(
    r"\s{0,4}[(（]\s{0,2}(?:(?:on|said on|at)\s{1,2})?(\d{4}-\d{2}-\d{2})\s{0,2}[)）]\s{0,2}[.。]?\s{0,4}\Z"
)
_SPEAKER = re.compile(
    r"\s{0,4}(?P<name>[^\W\d_][\w.'’·-]{0,23}(?: [^\W\d_][\w.'’-]{0,23}){0,2})"
    r"(?: ?[(（](?P<day>\d{4}-\d{2}-\d{2})[)）])?[ \t]?[:：](?!//)[ \t]{0,4}(?=\S)"
)
_ROLES = frozenset("user assistant agent ai human bot customer 用户 用戶 助手 客户 智能体".split())
# Words before a colon that say what is spoken of, not who speaks.
_TOPICS = frozenset(
    """
    action address agenda alternative api app backend backup branch budget bug build cause ci client cloud config
    context database date deadline decision default dev development domain email end endpoint env environment
    error example exception file fix frontend goal host id idea important info issue key language limit link local
    location mobile model name next note open option owner path phone plan policy port preference prod production
    project question qa reason release reminder repo requirement result risk rule sandbox schedule server service
    solution staging start status step subject summary task team test testing time tip title todo token topic
    update url version warning web website abandoned avoid cancelled canceled declined deprecated disabled done
    draft false former maybe never no not obsolete old outdated planned previously proposed rejected unclear
    unconfirmed untrue was wrong
    """.split()
)
_CHINESE_TOPICS = re.compile(
    "[时時地]|注意|环境|測|测|生产|预算|端口|版本|[决規规]|[项任]|原因|截止|偏好|[问方目]|服务|备注|[前后]端|[否假误旧舊废廢弃棄错曾取未不别]|密"
)
_WEEKDAY = "mon(?:day)?|tue(?:s|sday)?|wed(?:nesday)?|thu(?:r|rs|rsday)?|fri(?:day)?|sat(?:urday)?|sun(?:day)?"
_MONTH = (
    "jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|june?|july?|aug(?:ust)?|sep(?:t|tember)?|oct(?:ober)?"
    "|nov(?:ember)?|dec(?:ember)?"
)
_TIME = re.compile(
    rf"\b(?:(?:{_WEEKDAY})s?|{_MONTH}|today|tonight|tomorrow|yesterday|daily|weekly|monthly|yearly|hourly"
    r"|mornings?|evenings?|afternoons?|nights?|noon|midnight|weekends?|weekdays?|am|pm"
    r"|(?:last|next|this|every) (?:week|month|year|day|quarter))\b"
    "|(?:周|星期|礼拜|禮拜)[一二三四五六日天末]|[今明昨后前]天|[今明去前后]年|[上下本]个?[周月]|每[天周月年日]|[早晚]上|上午|下午|中午|凌晨|傍晚"
)
# Numbers in figures and in words; the order of two of them matters.
_NUMBER = re.compile(
    r"(?<![\w.,])[-−+]?\d+(?:[.,:]\d+)*|\d+(?:[.,:]\d+)*"
    r"|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty|forty|fifty|sixty"
    r"|ninety|hundred|thousand|million|billion|dozen|half|once|twice|first|second|third|fourth|fifth|double|triple)\b"
    "|[零〇一二两兩三四五六七八九十百千万亿半]+"
)
# Signs that belong to what they stand at: C++, #12, 10%, a price, a task that is done, a text that is struck out.
_SIGNS = re.compile(r"\w{0,40}(?:[+#%$€£¥￥@&=<>^|\\]|~~)+\w{0,40}|\[[ x]\]|\?(?=\W*\Z)")
# Words of grammar that turn a statement into another one.
_TURNS = frozenset(
    """
    no not never none nobody nothing neither nor cannot without except unless only anymore longer instead former
    formerly ex stop stopped stops cancel cancelled canceled deprecated obsolete temporarily optional un non dont
    cant wont isnt will shall would should must may might can could ought going gonna plan plans planned planning
    want wants wanted was were had did already yet if before after above below under over up down off out from
    until till since than more most less least all each every some few any always sometimes often rarely against
    between by maybe perhaps probably almost about
    """.split()
)
_SHORTENED = ("n't", "n’t", "'ll", "’ll", "'d", "’d")
_CHINESE_TURNS = re.compile(
    "[不没沒未别別勿无無非莫否]|[将將会會要已了过過]|[可须須必能]|如果|除非|只|都|[前后後]|以[上下内外]|至[多少]|从|改"
)
_PERSONS = {
    word: person
    for person, words in enumerate(
        ("i i'm i've i'd me my mine we our ours us 我", "you your yours 你 您", "he him his 他", "she her hers 她",
         "they them their theirs")
    )
    for word in words.split()
}  # fmt: skip
_WORD = re.compile(r"[a-z0-9]+(?:['’][a-z]{1,3})?|[我你您他她]")
# Punctuation that says nothing; between two letters or digits it may.
_PUNCTUATION = re.compile(
    r"(?<!\w)(?:[,;:!'’\"`*_()\[\]{}…—–]|[.-](?!\d))++|[.,;:!'’\"`*_()\[\]{}…—–-]++(?!\w)|[“”‘’「」『』《》【】、。·]"
)
_RUN = re.compile("[0-9A-Za-z]+|[^\\W_0-9A-Za-z]+")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])")
_NAME = re.compile(r"(?<=[\w,;] )[A-Z][\w-]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A text as it is compared.

    Attributes:
        plain: The text without who said it, when, and where it is from.
        folded: The same without case, accents and punctuation.
        terms: Its words that carry content, each once, in order; of Chinese its characters.
        speaker: Who said it, folded; empty if that is not told, or is a role.
        day: The day in brackets at its end or behind the speaker.
    """

    plain: str
    folded: str
    terms: tuple[str, ...]
    speaker: str
    day: str


def read_fact(text: str) -> Fact:
    """A text as it is compared with others."""
    if len(text) > _MAX_CHARS:
        # Nothing else than the same text will be found equal to it.
        plain = " ".join(text.split())
        return Fact(plain=plain, folded=fold(plain), terms=(), speaker="", day="")
    plain = _bare(_HANDLE.sub("", text).strip())
    day = speaker = ""
    if dated := _DATED.search(plain[-40:]):
        day, plain = dated[1], plain[: len(plain) - len(dated[0])]
    named = _SPEAKER.match(plain)
    if named and _can_speak(named["name"]):
        role = named["name"].lower()
        speaker = "" if role in _ROLES else fold(named["name"])
        day = day or named["day"] or ""
        plain = plain[named.end() :]
    plain = " ".join(plain.split())
    lowered = fold(plain)
    folded = " ".join(_PUNCTUATION.sub(" ", lowered).split())
    return Fact(plain=plain, folded=folded or lowered, terms=_terms(lowered), speaker=speaker, day=day)


def same_fact(a: str, b: str) -> bool:
    """Whether two texts state the same fact.

    They do if they are equal but for case, punctuation, white space, speaker, day in brackets and handle; or if nine
    in ten words that carry content are in both, in the same order or with two halves exchanged, and nothing that
    would make another fact of it differs. Two speakers are two facts, and so are two days.
    """
    return same(read_fact(a), read_fact(b))


def same(a: Fact, b: Fact) -> bool:
    """See `same_fact`."""
    return _same(a, b, _turns)


def _same(a: Fact, b: Fact, turns_of: Callable[[str], object]) -> bool:
    if (a.day and b.day and a.day != b.day) or (a.speaker and b.speaker and a.speaker != b.speaker):
        return False
    if a.speaker != b.speaker and min(_words(a), _words(b)) < _LEAST_WORDS:
        return False
    if a.folded == b.folded:
        return True
    if max(len(a.plain), len(b.plain)) > _MAX_CHARS or not _alike(a.terms, b.terms):
        return False
    same_turns = turns_of(a.plain) == turns_of(b.plain)
    return same_turns and not _other_names(a.plain, b.plain) and not _other_persons(a.plain, b.plain)


def stands_in(fact: Fact, passage: str) -> bool:
    """Whether a passage states a fact: as a whole, or in one of its sentences."""
    whole = read_fact(passage)
    if same(fact, whole):
        return True
    if len(whole.folded) <= len(fact.folded) or fact.folded not in whole.folded or len(passage) > _MAX_CHARS:
        return False
    lines = [line.strip() for line in passage.splitlines()]
    # A line that announces others, or is struck out, turns what the others say.
    if "~~" in passage or any(line.endswith((":", "：")) for line in lines):
        return False
    # The day and the speaker of a text are those of its sentences.
    return any(
        piece.folded == fact.folded and _compatible(fact.day, whole.day) and _compatible(fact.speaker, whole.speaker)
        for line in lines
        for piece in map(read_fact, _SENTENCE_END.split(line))
    )


def probe(fact: Fact) -> str:
    """The few words of a fact by which a passage that states it is found: numbers and long words are rare ones.

    Source: two words found every fact again among 5,000 passages (our measurement, English and Chinese); each further
    one costs a third of a millisecond.
    """
    words: dict[str, None] = {}
    runs: list[str] = []
    for run in _RUN.findall(fold(fact.plain)):
        if has_unspaced(run):
            runs.append(run)
        elif run not in STOP_WORDS:
            words[run] = None
    rare = sorted(words, key=lambda word: (any(map(str.isdigit, word)), len(word)), reverse=True)[:_PROBES]
    text = "".join(runs)
    # Of Chinese, two characters in a row are what a word is; they are taken where a sentence names things.
    missing = _PROBES - len(rare) if text else 0
    rare += [text[at : at + 2] for at in (len(text) * part // (missing + 1) for part in range(1, missing + 1))]
    return " ".join(rare)


def holds_all(passage: str, words: str) -> bool:
    """Whether a passage has all words of a probe."""
    return set(query_terms(words)) <= set(query_terms(passage))


def first_of_each(facts: Sequence[Fact]) -> list[bool]:
    """Whether each fact is the first of those that say the same.

    One that differs in a word is compared with the last `_LOOKED_BACK` facts alone.
    """
    by_words: dict[frozenset[str], list[Fact]] = {}
    by_text: dict[str, list[Fact]] = {}
    longer: deque[Fact] = deque(maxlen=_LOOKED_BACK)
    turns_of = cache(_turns)
    first = []
    for fact in facts:
        alike = by_words.setdefault(frozenset(fact.terms), [])
        equal = by_text.setdefault(fact.folded, [])
        others = (*equal, *alike[-_LOOKED_BACK:], *(longer if _may_differ(fact) else ()))
        is_first = not any(_same(fact, other, turns_of) for other in others)
        first.append(is_first)
        if is_first:
            alike.append(fact)
            equal.append(fact)
            if _may_differ(fact):
                longer.append(fact)
    return first


def _may_differ(fact: Fact) -> bool:
    """Whether a fact has so many words that one more would not make another fact of it."""
    return len(fact.terms) >= _COMMON_SHARE * (len(fact.terms) + 1)


def _bare(text: str) -> str:
    """A text without the marker of a list item."""
    marker = _MARKER.match(text)
    return text[marker.end() :] if marker else text


def _words(fact: Fact) -> int:
    return len(fact.folded) * 2 // 3 if has_unspaced(fact.folded) else len(fact.folded.split())


def _compatible(a: str, b: str) -> bool:
    return not a or not b or a == b


def _can_speak(name: str) -> bool:
    """Whether what stands before a colon may be a name or a role."""
    words = name.lower().split()
    if " ".join(words) in _ROLES:
        return True
    if name.isascii():
        return all(word[0].isupper() for word in name.split()) and _TOPICS.isdisjoint(words)
    return len(name) <= 6 and not _CHINESE_TOPICS.search(name)


def _terms(lowered: str) -> tuple[str, ...]:
    """Words that carry content, without those of time and numbers, which are compared apart."""
    # Chinese goes on behind a word of time as if it were not there.
    timeless = _TIME.sub(lambda found: " " if found[0].isascii() else "", lowered)
    rest = _NUMBER.sub(" ", timeless)
    if not any(map(str.isalpha, rest)):
        return ()
    return tuple(term for term in query_terms(rest) if len(term) == 1 or not has_unspaced(term))


def _alike(a: tuple[str, ...], b: tuple[str, ...]) -> bool:
    """Whether one has the words of the other, nine in ten of its own at least, in order."""
    shorter, longer = (a, b) if len(a) <= len(b) else (b, a)
    known = set(shorter)
    common = [term for term in longer if term in known]
    # One word in the place of another is another fact, however many they share.
    if not shorter or len(common) != len(shorter) or len(common) < _COMMON_SHARE * len(longer):
        return False
    return _rotated(tuple(common), shorter)


def _rotated(a: tuple[str, ...], b: tuple[str, ...]) -> bool:
    """Whether two orders of the same distinct words are equal, or become so when two halves are exchanged."""
    at = b.index(a[0])
    return b[at:] + b[:at] == a


def _turns(plain: str) -> tuple[object, ...]:
    """What makes another fact of the same words; numbers and times in their order."""
    lowered = fold(plain)
    return (
        [found[:3] if found.isascii() else found for found in _TIME.findall(lowered)],
        [found.replace(",", "").replace("−", "-") for found in _NUMBER.findall(_TIME.sub(" ", lowered))],
        sorted(_SIGNS.findall(lowered)),
        {word for word in _WORD.findall(lowered) if word in _TURNS or word.endswith(_SHORTENED)},
        set(_CHINESE_TURNS.findall(lowered)) if not lowered.isascii() else set(),
    )


def _other_names(a: str, b: str) -> bool:
    """Whether one has a name that the other lacks."""
    return any(fold(name) not in fold(other) for one, other in ((a, b), (b, a)) for name in _NAME.findall(one))


def _other_persons(a: str, b: str) -> bool:
    mine, others = ({_PERSONS[word] for word in _WORD.findall(fold(text)) if word in _PERSONS} for text in (a, b))
    return bool(mine and others and mine != others)
