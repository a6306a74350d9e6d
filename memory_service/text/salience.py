"""Salience: how much of a sentence is specific, and how much a statement is worth keeping.

Invariants: pure; linear; the same for a sentence and for the line of an earlier summary that quotes it. English and
Chinese are read for the same marks (decision, preference, event, id, applause); the word lists are common words of the
two languages and name no person, product or topic. The worth is a number from these marks, higher is better; the same
words get the same worth whoever says them, but for the role: what an assistant says without a name is kept only if it
brings a fact.

Source: a logistic regression on whether a turn of a long talk between two people is asked for later, each talk judged
by what was learned from the others (area under the curve .82 to .89); rounded by hand. Marks of work (decision, rule,
identifier, outcome) hardly occur there and were weighed by judgement.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Literal, get_args

from indexer.common import HAN, HANGUL, KANA, lazy_regex
from indexer.language import ANY, STOP_WORDS, has_time_words, has_unspaced

_WORDS = ANY.salience
# In this order: what one has found, the next does not see. Most sentences have nothing that an expression begins
# with, so that they need not be searched for it: `0` stands for any digit, `None` for no hint.
_PARTICULARS: tuple[tuple[str, str | None, re.Pattern[str]], ...] = (
    ("code", "`", lazy_regex(r"`[^`]{2,80}`")),
    ("link", "://", lazy_regex(r"\w{2,10}://\S+")),
    ("link", "@", lazy_regex(r"[\w.+-]+@[\w-]+\.\w+")),
    ("path", "/", lazy_regex(r"(?<![\w/])(?:~|\.{1,2})?/?[\w.@-]+(?:/[\w.@-]+)++/?")),
    ("path", ".", lazy_regex(r"[\w-]+\.(?:py|tsx?|js|go|rs|java|md|json|ya?ml|toml|sql|sh|csv|txt|log)\b")),
    ("id", "_", lazy_regex(r"[a-zA-Z]+_\w+")),
    ("id", "--", lazy_regex(r"--[a-z][\w-]+")),
    ("id", "#", lazy_regex(r"#\d+")),
    ("id", None, lazy_regex(r"[A-Z]{2,}[-_]?\d[\w-]*|[a-z][A-Z]\w+")),
    ("id", "0", lazy_regex(r"\b(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,40}\b")),
    (
        "number",
        "0",
        lazy_regex(rf"\d[\d.,:/-]*+ ?(?:%|°|[a-zA-Zµ]{{1,12}}\b|{_WORDS.unit_signs})?"),
    ),
    ("name", None, lazy_regex(r"[a-z,;] ([A-Z][a-zà-ÿ]+(?: [A-Z][a-zà-ÿ]+)*)")),
)
_DIGIT = lazy_regex(r"\d")
_PARTICULARS_WITHIN = tuple((kind, lazy_regex(pattern)) for kind, pattern in _WORDS.particulars.items())
_IDENTIFIERS = ("link", "path", "id")
_WEIGHTS = {"link": 1.4, "path": 1.2, "code": 0.8, "id": 1.2, "number": 0.8, "count": 0.5, "name": 0.8}
# A second number in a sentence says less than the first.
_DECAY = 0.5
_LEAST = 0.4
_WORD = lazy_regex(r"[a-z]+(?:['’]m)?")
_PERSONAL_WITHIN = lazy_regex(_WORDS.personal_within)
_INTRODUCED = lazy_regex(_WORDS.introduced)
_INTRODUCTIONS = _WORDS.introductions
_STRESSED_WITHIN = lazy_regex(_WORDS.stressed_within)
_ONLY_LISTED = lazy_regex(r"[\s,;，、|/`'\"()\[\]{}:*•-]+")


def particulars(text: str) -> dict[str, int]:
    """Counts of links, paths, codes, ids, numbers, counts and names in a text, by kind."""
    return _find_specifics(text)[0]


def _find_specifics(text: str) -> tuple[dict[str, int], str]:
    """Specifics of a text by kind, and the text without its codes, links, paths and ids."""
    fields: dict[str, int] = {}
    digits = _DIGIT.search(text) is not None
    for kind, hint, pattern in _PARTICULARS:
        if hint is not None and not (digits if hint == "0" else hint in text):
            continue
        if kind in ("number", "name"):
            count = len(pattern.findall(text))
        else:
            text, count = pattern.subn(" ", text)
        if count:
            fields[kind] = fields.get(kind, 0) + count
    if not text.isascii():
        for kind, pattern in _PARTICULARS_WITHIN:
            if count := len(pattern.findall(text)):
                fields[kind] = fields.get(kind, 0) + count
    return fields, text


def worth(text: str) -> float:
    """Specificity of a sentence, from 0.4 to about 8."""
    total = _LEAST
    for kind, count in particulars(text).items():
        total += _WEIGHTS[kind] * (1 + _DECAY * (min(count, 3) - 1))
    lower = text.lower()
    if _may_introduce(lower) and _INTRODUCED.search(text):
        total += 4.0
    words = frozenset(_WORD.findall(lower))
    is_ascii = lower.isascii()
    if not words.isdisjoint(_WORDS.personal) or (not is_ascii and _PERSONAL_WITHIN.search(lower)):
        total += 0.7
    is_stressed = not words.isdisjoint(_WORDS.stressed) or any(phrase in lower for phrase in _WORDS.stressed_phrases)
    if is_stressed or (not is_ascii and _STRESSED_WITHIN.search(lower)):
        total += 1.0
    return total


def _may_introduce(lower: str) -> bool:
    # A plain loop takes half the time of `any`, and every sentence comes through here.
    for hint in _INTRODUCTIONS:
        if hint in lower:
            return True
    return False


def has_identifiers(text: str) -> bool:
    """True if a text names a link, an address, a path or an id."""
    return not set(_IDENTIFIERS).isdisjoint(particulars(text))


def is_bare_list(text: str) -> bool:
    """True if a text is nothing but paths, links or ids, which are kept elsewhere."""
    if any(map(str.isalpha, text.split())):
        return False
    fields, rest = _find_specifics(text)
    return not fields.keys().isdisjoint((*_IDENTIFIERS, "code")) and not _ONLY_LISTED.sub("", rest)


Mark = Literal[
    "time",
    "number",
    "identifier",
    "quote",
    "name",
    "decision",
    "rule",
    "preference",
    "plan",
    "event",
    "outcome",
    "open",
    "relation",
    "other",
    "applause",
    "feeling",
]

_NOTE_WORD = lazy_regex(r"[a-z0-9]+(?:['’][a-z]+)?")
_HAN_RUN = lazy_regex(f"[{HAN}{KANA}{HANGUL}]+")
_MARK_PATTERNS: dict[Mark, re.Pattern[str]] = {
    mark: lazy_regex(_WORDS.marks[mark]) for mark in get_args(Mark) if mark in _WORDS.marks
}
_NUMBER = lazy_regex(f"[0-9]+|{_WORDS.numbers}")
_MARKS_OF_WORDS: dict[str, tuple[Mark, ...]] = {
    word: tuple(mark for mark in get_args(Mark) if word in _WORDS.mark_words.get(mark, ()))
    for word in frozenset[str]().union(*_WORDS.mark_words.values())
}
# Each alternative of the pattern below has one of these characters.
_IDENTIFIER_HINT = lazy_regex("[0-9`/@._#-]")
_IDENTIFIER = lazy_regex(
    r"https?://|`[^`\n]{2,80}`|(?<!\w)#[0-9]{1,8}\b|\b[A-Z][A-Z0-9]{1,9}-[0-9]{1,8}\b|[\w.+-]{1,64}@[\w-]{1,64}\.\w"
    r"|(?<![\w/])(?:~|\.{1,2})?/[\w.-]{1,80}/[\w./-]|\b\w{1,64}\.(?:py|js|ts|tsx|go|rs|java|c|cpp|h|md|json|ya?ml|toml"
    r"|sql|sh|txt|csv|pdf|html|env|cfg|ini|lock)\b|\bv?\d{1,8}\.\d{1,8}\.\d|\b[0-9a-f]{8}-[0-9a-f]{4}-"
    r"|\b(?=[0-9a-f]{0,40}\d)(?=\d{0,40}[a-f])[0-9a-f]{7,40}\b|[^\W_]_\w|(?<![\w-])--[a-z][\w-]"
)
_QUOTE = lazy_regex('["“「『《][^"“”「」『』《》\n]{2,80}["”」』》]')
_CAPITALISED = lazy_regex(r"(?<=[a-z0-9,;:] )[A-Z][\w'’-]+")
_NAME_WITHIN = lazy_regex(_WORDS.names)
_LIMITS: dict[Mark, int] = {"number": 2, "name": 3, "event": 3, "feeling": 4, "applause": 3, "other": 3, "plan": 2}


def words_of(text: str) -> list[str]:
    """The words of a text in lower case; of Chinese, the runs cut in pairs of characters."""
    words = _NOTE_WORD.findall(text.lower().replace("’", "'"))
    if not text.isascii():
        for run in _HAN_RUN.findall(text):
            words.extend(run[at : at + 2] for at in range(max(1, len(run) - 1)))
    return words


def content_of(words: Iterable[str]) -> set[str]:
    """The words that carry content."""
    return {word for word in words if word.partition("'")[0] not in STOP_WORDS and word not in _WORDS.grammar_pairs}


def marks_of(text: str, words: list[str], names: tuple[str, ...]) -> Counter[Mark]:
    """Counts of each mark in a text.

    Args:
        text: One or more statements.
        words: Its words, see `words_of`.
        names: The speakers of the stretch: who is spoken to is no name that the text brings in.
    """
    counts = Counter(mark for word in words if word in _MARKS_OF_WORDS for mark in _MARKS_OF_WORDS[word])
    counts["time"] = int(has_time_words(text))
    counts["number"] += len(_NUMBER.findall(text))
    counts["identifier"] = int(_IDENTIFIER_HINT.search(text) is not None and _IDENTIFIER.search(text) is not None)
    counts["quote"] = int(_QUOTE.search(text) is not None)
    counts["name"] = sum(name not in names and name[:2] not in ("I'", "I’") for name in _CAPITALISED.findall(text))
    if not text.isascii() and has_unspaced(text):
        for mark, pattern in _MARK_PATTERNS.items():
            counts[mark] += len(pattern.findall(text))
        counts["name"] += len(_NAME_WITHIN.findall(text))
    return +counts


def limit_marks(*values: Mapping[Mark, int]) -> dict[Mark, int]:
    """The marks of several statements together; a mark counts a few times, not as often as it occurs."""
    total: Counter[Mark] = Counter()
    for marks in values:
        total.update(marks)
    return {mark: min(count, _LIMITS.get(mark, 2)) for mark, count in total.items()}


_BIAS = -3.2
_LENGTH = 0.9  # for the logarithm of the number of content words
_ANSWER = 2.2  # it answers a question
_ANSWER_LENGTH = -0.4  # of which long answers need less
_PICTURE = 0.6
WEIGHTS: dict[Mark, float] = {
    "time": 1.3,
    "number": 0.4,
    "identifier": 0.8,
    "quote": 0.9,
    "name": 0.35,
    "decision": 0.8,
    "rule": 0.5,
    "preference": 0.4,
    "plan": 0.1,
    "event": 0.2,
    "outcome": 0.4,
    "open": 0.4,
    "relation": 0.2,
    "other": -0.25,
    "applause": -0.25,
    "feeling": -0.2,
}
FACTS: frozenset[Mark] = frozenset(WEIGHTS) - {"other", "applause", "feeling"}


def worth_of(marks: Mapping[Mark, int], content: int, *, answers: bool = False, picture: bool = False) -> float:
    """The worth of one or more statements, as a log-odds.

    Args:
        marks: See `marks_of`.
        content: How many content words they have.
        answers: Whether they follow a question.
        picture: Whether they come with a picture.
    """
    length = math.log1p(content)
    worth = _BIAS + _LENGTH * length + sum(WEIGHTS[mark] * count for mark, count in marks.items())
    if answers:
        worth += _ANSWER + _ANSWER_LENGTH * length
    return worth + _PICTURE * picture


def chance(worth: float) -> float:
    """A worth as a number from 0 to 1."""
    return 1 / (1 + math.exp(-max(-30.0, min(30.0, worth))))
