"""Words of facts: attributes that have one value at a time, kinds of tools and tastes, states, values and subjects.

Invariants: pure; a subject is a set of words, so that "the price of the Pro plan", "Pro plan price" and "Pro price"
are one thing; a value is folded, and two values are the same where one only says more than the other.
"""

from __future__ import annotations

import re

from indexer.common.patterns import lazy_regex
from indexer.language.tables import ANY

# Subjects: the person of the notes, and the group that they speak for.
ME, WE = "@me", "@we"

ATTRIBUTES = {noun: attribute for attribute, nouns in ANY.nouns.attributes.items() for noun in nouns}
# Of what: alone on a line they tell nothing, as each task, meeting or person has its own.
NEEDS_SUBJECT = frozenset(
    "status day time name role size limit priority room age weight height plan number url host"
    " school department spouse "
    "partner birthday color password salary manager assignee location interval cadence threshold".split()
)
# Alone on a line they are of the person whose notes these are.
OF_PERSON = frozenset(
    "location employer timezone school department spouse partner birthday salary manager age weight height diet phone"
    " email address".split()
)
# With one of these before it, any noun has one value.
ONE_OF = ANY.nouns.one_of

_KINDS = ANY.nouns.kinds
# Attributes of which "favourite" tells no other thing: "my favourite editor" is my editor.
CHOSEN = frozenset(_KINDS) | {"framework", "provider", "model", "font"}
_KIND_OF = {word: kind for kind, words in _KINDS.items() for word in words.replace("|", " ").split()}
HOLDERS = frozenset("owner lead manager maintainer assignee oncall ceo cto cfo captain".split())

# Class words say what a thing is, not which: "the billing service" is "billing".
_CLASS = ANY.nouns.classes
# "The ticket PAY-9" is PAY-9, but "PR 9" and "bug 9" are two.
_ISSUES = ANY.nouns.issues
_CLASS_ENDS, _PARTICLES = ANY.nouns.class_ends, ANY.nouns.particles
_ISSUE_KEY = lazy_regex(r"(?<![a-z])[a-z]{2,8}-\d", re.IGNORECASE)
_STOP = ANY.nouns.stop_words
_ME = ANY.nouns.me
_TOKEN = lazy_regex(r"@\w+|[\w][\w.+\-]*|[$€£¥]", re.UNICODE)
_HAN = "\u4e00-\u9fff"
_SPLIT_TOKEN = lazy_regex(rf"[{_HAN}]+|[^{_HAN}\s]+")


def words_of(text: str) -> frozenset[str]:
    """The words that tell which subject is meant."""
    value = []
    for token in _TOKEN.findall(text.casefold().replace("’", "'").replace("'s", "").replace("-", " ")):
        if token in _ME:
            value.append(ME)
        elif token not in _STOP:
            value += [_singular(part) for part in _SPLIT_TOKEN.findall(token)]
    classes = _CLASS | _ISSUES if _ISSUE_KEY.search(text) else _CLASS
    telling = frozenset(word for word in value if word not in classes)
    return telling or frozenset(value)


def _singular(word: str) -> str:
    word = word.strip("._-").strip(_PARTICLES)
    for ending in _CLASS_ENDS:
        if len(word) > len(ending):
            word = word.removesuffix(ending)
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")) else word


def is_tool(text: str) -> bool:
    """True if a text names a tool, or something to choose among several of its kind."""
    return any(word.strip(_QUOTES) in _KIND_OF for word in text.casefold().split()[:3])


def kind_of(value: str) -> str:
    """The kind of tool or taste that a value is of; that of its last word where the value is several; else empty."""
    if text := _KIND_OF.get(value) or _KIND_OF.get(value.replace(" ", "-")):
        return text
    words = value.split()
    if len(words) > 3:
        return ""
    return next((_KIND_OF[word] for word in words if word in _KIND_OF), words[-1] if len(words) > 1 else "")


# --- sorts of values ---------------------------------------------------------------------------------------------

# Words of which one holds at a time, whatever they are said of.
_SORT_OF = {word: sort for sort, words in ANY.nouns.one_at_a_time.items() for word in words.replace("|", " ").split()}
_AMOUNT = lazy_regex(
    rf"(?:(?:{ANY.values.least_or_most})\s*)?(?P<money>[$€£¥￥]\s?)?(?:\d[\d.,]*|{ANY.values.numerals})\s*(?P<scal"
    rf"e>{ANY.values.scales})?\s*(?P<unit>%|°?[a-z]+|[\u4e00-\u9fff]{{1,2}})?(?P<of>\s+(?:{ANY.values.of}) [a-z]+)?"
    rf"(?:\s*(?:/"
    rf"|{ANY.values.per})\s*[a-z\u4e00-\u9fff]+)?$"
)
_EACH = lazy_regex(ANY.values.each)
_PERIOD = lazy_regex(ANY.values.periods)
_ASIDE = lazy_regex(rf"\s+(?:{ANY.values.asides})\s.*$")
_DATE = lazy_regex(r"\d{1,2}\. ?\d{1,2}\. ?\d{4}|\d{4}\.\d{1,2}\.\d{1,2}")
_VERSION = lazy_regex(rf"(?:(?:{ANY.values.versions}) )?v?\d+(?:\.\d+)+(?:[-.]\w+)?$")
_NUMBERED = lazy_regex(r"v?\d[\d.]*(?: lts)?")
_MONEY = ANY.nouns.money
SEVERAL = ANY.nouns.several


# What somebody is, though it is written as a name is.
_NOT_A_NAME = lazy_regex(ANY.nouns.described)


def sort_of(value: str) -> tuple[str, str]:
    """The sort of a value of which a thing has one at a time, an amount, a version, a state or a tool, and the value.

    The sort is empty where it is none of them.
    """
    bare = _ASIDE.sub("", value)
    if _DATE.fullmatch(value):
        return "", value
    if text := _SORT_OF.get(bare):
        return text, bare
    if _VERSION.match(value):
        return "version", value
    if match := _AMOUNT.match(_EACH.sub("", value)):
        unit = match["unit"] or ""
        return "price" if match[
            "money"
        ] or unit in _MONEY else f"amount {_singular(unit)}{match['of'] or ''}".strip(), value
    first, _, rest = value.partition(" ")
    return _KIND_OF.get(value if not _NUMBERED.fullmatch(rest) else first, ""), value


# --- values ------------------------------------------------------------------------------------------------------

# Behind it stands the former value, or one that does not hold: the value before it is a correction.
_CORRECTS = lazy_regex(ANY.values.corrects, re.IGNORECASE | re.DOTALL)
_THOUSANDS = lazy_regex(r"(?<=\d),(?=\d{3}(?!\d))")
_ARROW = lazy_regex("->|=>|→")
_CUT = lazy_regex(
    rf"\s*(?:[,;(（，；。!！]|{''.join(f'(?<!{title})' for title in ANY.values.titles)}[.](?=\s|$)"
    rf"|\s[-–—]\s|\b(?:{ANY.values.cuts})\b).*$",
    re.IGNORECASE | re.DOTALL,
)
_FRESH = lazy_regex(
    rf"^(?:(?P<now>{ANY.values.fresh})|(?:{ANY.values.lead}))\s*[:：]?\s*(?=\S)",
    re.IGNORECASE,
)
_LATE = lazy_regex(rf"\s+(?:{ANY.values.late})$", re.IGNORECASE)
_WHEN = lazy_regex(
    rf"\s+(?:{ANY.values.when})$",
    re.IGNORECASE,
)
_QUOTES = "\"'“”‘’「」『』《》`*_ .:：。!！~"
_NO_VALUE = ANY.nouns.no_values
_DENIALS, _NOT_YET, _DONE_SIGNS = ANY.values.denials, ANY.values.not_yet, ANY.values.done_signs
_PART = lazy_regex(rf"[{_HAN}]+|[a-z0-9]+(?:[.:/@+\-][a-z0-9]+)*")
_HAS_DAY = lazy_regex(
    rf"\b(?:{ANY.values.months})(?:[a-z]{{0,6}})\.? ?\d{{1,2}}|\b\d{{4}}-\d\d?-\d\d?\b|\b\d{{1,2}}/\d{{1,2}}\b"
    f"|{ANY.values.days}",
    re.IGNORECASE,
)
_HAS_TIME = lazy_regex(rf"(?<![a-z\d])\d{{1,2}}[:.]\d\d(?![a-z\d])|{ANY.values.hours}", re.IGNORECASE)


def is_holder(noun: str) -> bool:
    """True if a noun phrase names somebody by what they are for somebody: 「我的牙医」."""
    return _HOLDER.search(noun) is not None


_HOLDER = lazy_regex(ANY.nouns.holders_within)


def leads_with_day(value: str) -> bool:
    """True if a value begins with a day: "Monday at 9", and not "the dentist on Monday"."""
    match = _HAS_DAY.search(value)
    return match is not None and _BEFORE_DAY.fullmatch(value[: match.start()]) is not None


def leads_with_time(value: str) -> bool:
    """True if a value begins with a time of the day."""
    match = _HAS_TIME.search(value)
    return match is not None and _BEFORE_DAY.fullmatch(value[: match.start()]) is not None


_BEFORE_DAY = lazy_regex(
    rf"(?:(?:{ANY.values.before_day})[\s-]*+|\d++(?:[-/]|{ANY.values.day_signs})?[\s,]*+)*",
    re.IGNORECASE,
)


def is_written_as_name(text: str) -> bool:
    """True if a value is written with capitals, as names are: "Dr. Silva"."""
    words = _CUT.sub("", text).strip(_QUOTES).removesuffix(" now").split()
    return 0 < len(words) <= 4 and all(word[0].isupper() for word in words) and not _NOT_A_NAME.search(text)


def is_day(value: str) -> bool:
    """True if a value tells a day."""
    return _HAS_DAY.search(value) is not None


def is_time(value: str) -> bool:
    """True if a value tells a time of the day."""
    return _HAS_TIME.search(value) is not None


def value_of(text: str, *, keeps_days: bool = False) -> tuple[str, bool]:
    """A value as it is compared, and whether its words say that it is new; empty where it is none."""
    text = _THOUSANDS.sub("", text) if "," in text else text
    newest = _ARROW.split(text)[-1] if ">" in text or "→" in text else text
    corrected_text = _CORRECTS.sub("", newest)
    changes, value = corrected_text != text, corrected_text.strip(_QUOTES)
    value = _CUT.sub("", value) if not keeps_days else re.sub(r"\s*[;；。(（].*$", "", value, flags=re.DOTALL)
    while fresh := _FRESH.match(value):
        changes, value = changes or bool(fresh["now"]), value[fresh.end() :]
    while late := _LATE.search(value) or (None if keeps_days else _WHEN.search(value)):
        value = value[: late.start()]
    value = value.strip(_QUOTES).removesuffix(_DONE_SIGNS).casefold().strip(_QUOTES)
    value = " ".join(value.replace("’", "'").split())
    if not value or len(value) > 60 or len(value.split()) > 8 or value in _NO_VALUE or value.startswith(_DENIALS):
        return "", changes
    return value, changes


def is_same(first: str, second: str) -> bool:
    """True if two values are one, or one of them only says more: "Lisbon" and "Lisbon, Portugal"."""
    if first == second:
        return True
    if first.startswith(_NOT_YET) != second.startswith(_NOT_YET):
        return False
    parts, other_parts = _parts(first), _parts(second)
    if not parts or not other_parts:
        return False
    if parts <= other_parts or other_parts <= parts:
        return True
    if first.isascii() or second.isascii():
        return False
    return len(parts) == len(other_parts) == 1 and (first in second or second in first)


def is_beside(first: str, second: str) -> bool:
    """True if two amounts hold beside each other: a price by the month and one by the year."""
    keys, other_keys = (frozenset("".join(match) for match in _PERIOD.findall(value)) for value in (first, second))
    return bool(keys and other_keys) and keys != other_keys


def _parts(value: str) -> frozenset[str]:
    return frozenset(re.sub(r"^v(?=\d)", "", part) for part in _PART.findall(value))
