"""Grounding of identifiers and of claimed consents in a source text, tolerant where two spellings mean the same.

Invariants: pure; a source is read once; what it does not hold is mostly told by a look-up, the rest by one search.
Generous means: thousands separators, blanks before units, ways of writing a day or saying a time, a number rounded to
fewer decimals, or to fewer digits where a word says so ("about"), durations in other units, the share that two numbers
make, a quotation that leaves words out, case of hosts and hex digits, kinds of quotes. Never generous about digits: 12
is not in 112.
"""

from __future__ import annotations

import datetime as dt
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from functools import cached_property

from indexer.common import COMMON_HAN, lazy_regex
from indexer.language import (
    ANY,
    LANGUAGES,
    Day,
    clock_times_of,
    days_of,
    language_of,
    names_relative_day,
    ordinal_days,
    spoken_times,
)
from memory_service.text.identifiers import (
    Amount,
    Identifier,
    Precision,
    amounts_of,
    find_identifiers,
    precision_of,
    same_amounts,
    spelled_amounts,
    values_of,
)

_ATOM = lazy_regex("[A-Za-z0-9_]+")
_HOST = lazy_regex(r"(?<=://)[^\s/]{1,255}")
_BLANKS = lazy_regex(r"\s+")
_QUOTE_SIGNS = str.maketrans("“”‘’「」『』«»，。！？：；（）", '""\'\'"""""",.!?:;()')
_EMPHASIS = str.maketrans("", "", "*`")
_ELLIPSIS = lazy_regex(r"\s*(?:\.{3,}|…+)\s*")
# A version's dots, a path's and a number's commas go on: "1.2" is not in "1.2.3", "/tmp/a" not in "/tmp/a.txt".
_GOES_ON = lazy_regex(r"[A-Za-z0-9_]|[.,][0-9]|\.[A-Za-z]")
_NEAR = dt.timedelta(days=40)
_WORDS = lazy_regex(r"[^\W_]+")
_SHORTENED_LINES = 200
_SLACK = 1 + 1e-9
_UNIT_OF_TIME = f"(?:h|s|ms|{ANY.values.durations})"
_COMPOUND = lazy_regex(
    rf"(?<![\w.,])\d{{1,6}}[ ]?{_UNIT_OF_TIME}"
    rf"(?:,?(?: (?:{ANY.values.duration_joints}))?[ ]?\d{{1,6}}[ ]?{_UNIT_OF_TIME}\b){{1,3}}"
)
_SHARE = lazy_regex(rf"(?<![\w./])(\d{{1,9}})(?: ?/ ?|{ANY.numerals.shares})(\d{{1,9}})(?![\w/]|\.\d)")


class SourceText:
    """Texts that identifiers are looked for in.

    Args:
        texts: The texts.
        days: When they were written; a relative day such as "tomorrow" may be any near one.
    """

    def __init__(self, *texts: str, days: Iterable[dt.date] = ()) -> None:
        joined_text = "\n".join(texts)
        self._raw = joined_text
        self._text = _plain(joined_text)
        self._written = frozenset(days)
        self._answers: dict[tuple[str, str], bool] = {}

    def holds(self, identifier: Identifier | str) -> bool:
        """True if the texts hold an identifier; a string may be of any kind."""
        if isinstance(identifier, str):
            return self._holds_text(identifier)
        key = (identifier.kind, identifier.text)
        if key not in self._answers:
            self._answers[key] = self._looked_up(identifier.kind, identifier.text)
        return self._answers[key]

    def _holds_text(self, text: str) -> bool:
        whole = [identifier for identifier in find_identifiers(text) if identifier.text == text.strip()]
        return any(map(self.holds, whole)) if whole else self._holds_words(text)

    def _looked_up(self, kind: str, text: str) -> bool:
        match kind:
            case "number":
                return all(map(self._holds_amount, amounts_of(text))) or self._holds_rounded(text)
            case "date":
                return self._holds_words(text) or self._holds_days(text)
            case "time":
                return self._holds_words(text) or self._holds_times(text)
            case "quote":
                return self._holds_quote(text) or f"`{text}`" in self._raw or self._holds_shortened(text)
            case "command" | "code":
                # Letters may stand right behind the last backtick, which is no border of words.
                return self._holds_quote(text) or f"`{text}`" in self._raw
            case "path":
                return self._holds_path(text)
            case "uuid" | "hash" | "email":
                return _stands_alone(self._lower_text, text.lower(), self._lowered_atoms)
            case "version":
                return any(map(self._holds_words, {text, text.removeprefix("v"), f"v{text}"}))
            case "id" if text[0] == "#":
                return self._holds_words(text[1:])
            case "url":
                return self._holds_words(text.rstrip("/")) or self._holds_words(f"{text.rstrip('/')}/")
            case _:
                return self._holds_words(text)

    def holds_nearly(self, identifier: Identifier) -> bool:
        """True if the texts hold a number that comes to this one in as many digits as it has before its zeros."""
        return identifier.kind == "number" and any(
            self._has_between(family, value, number.significant)
            for (family, value), number in _with_precision(identifier.text)
        )

    def _holds_rounded(self, text: str) -> bool:
        """True if the texts have a number with more decimals that is this one when it is rounded; never 0 or 100 %."""
        figures = list(_with_precision(text))
        return bool(figures) and all(
            amount not in (("%", 0), ("%", 100)) and self._has_between(*amount, number.decimal, decimals_only=True)
            for amount, number in figures
            if not self._holds_amount(amount)
        )

    def _has_between(self, family: str, value: float, step: float, *, decimals_only: bool = False) -> bool:
        """True if a number of the texts is within half a step of a value, and is no whole step where that counts."""
        if not step or (decimals_only and value < 10 * step):
            return False
        for known_text in {family, ""}:
            numbers = self._sorted_amounts.get(known_text, [])
            at = bisect_left(numbers, value - step / 2 * _SLACK)
            while at < len(numbers) and numbers[at] <= value + step / 2 * _SLACK:
                if not decimals_only or abs(numbers[at] / step - round(numbers[at] / step)) > 1e-6:
                    return True
                at += 1
        return False

    def _holds_times(self, text: str) -> bool:
        return all(time in self._clock_times or time in self._spoken_times for time in clock_times_of(text))

    def _holds_shortened(self, text: str) -> bool:
        """True if one line of the texts has all words of a quotation, in their order."""
        words = _WORDS.findall(_plain_speech(text))
        if len(words) < 3 or not all(word in self._line_words for word in words):
            return False
        lines = self._line_words[min(words, key=lambda word: len(self._line_words[word]))]
        return any(_is_within(words, self._lines[at]) for at in lines[:_SHORTENED_LINES])

    def _holds_words(self, text: str) -> bool:
        return _stands_alone(self._text, _plain(text).strip(), self._atoms)

    def _holds_amount(self, amount: Amount) -> bool:
        if any(same in self._amounts for same in same_amounts(amount)):
            return True
        family, value = amount
        if not value or (not family and value in self._values):
            return True
        if any(bare in self._spelled_amounts for bare_family, bare in same_amounts(amount) if not bare_family):
            return True
        return amount in self._durations if family == "s" else family == "%" and self._holds_share(value)

    def _holds_share(self, percent: float) -> bool:
        return any(abs(100 * share - percent) <= 0.5 for share in self._shares)

    def _holds_days(self, text: str) -> bool:
        days = set(days_of(text))
        return bool(days) and all(self._holds_time_of(text)) and any(map(self._holds_day, days))

    def _holds_time_of(self, text: str) -> list[bool]:
        times = clock_times_of(text.replace("T", " "))
        return [time in self._clock_times or time in self._spoken_times for time in times]

    def _holds_day(self, day: Day) -> bool:
        year, month, date = day
        if day in self._days or (0, month, date) in self._days:
            return True
        if not year and (month, date) in self._yearless:
            return True
        if date in self._ordinal_days and any(
            self._is_near(day, written_day, is_named=True) for written_day in self._written
        ):
            return True
        return any(self._is_near(day, written_day) for written_day in self._written)

    def _is_near(self, day: Day, written_day: dt.date, *, is_named: bool = False) -> bool:
        year, month, date = day
        try:
            meant_day = dt.date(year or written_day.year, month, date)
        except ValueError:
            return False
        return meant_day == written_day or (
            (is_named or self._has_relative_days) and abs(meant_day - written_day) <= _NEAR
        )

    def _holds_path(self, text: str) -> bool:
        path = text.removeprefix("./").rstrip("/\\")
        if self._holds_words(path):
            return True
        # A folder and a file in it that were named apart: `cd /srv/app`, then `src/a.py`.
        if path[:1] not in ("/", "~") or len(path) > 400:
            return False
        cuts = [at for at, char in enumerate(path) if char == "/" and at > 1]
        return any(self._holds_words(path[:at]) and self._starts_path(path[at + 1 :]) for at in cuts)

    def _starts_path(self, path: str) -> bool:
        return _stands_alone(self._text, path, self._atoms, not_after="/\\")

    def _holds_quote(self, text: str) -> bool:
        pieces = [_plain_speech(piece).strip(" .,!?;:\"'") for piece in _ELLIPSIS.split(text)]
        return all(
            _stands_alone(self._spoken_text, piece, self._lowered_atoms, strict=False) for piece in pieces if piece
        )

    @cached_property
    def _atoms(self) -> frozenset[str]:
        return frozenset(_ATOM.findall(self._text))

    @cached_property
    def _lower_text(self) -> str:
        return self._text.lower()

    @cached_property
    def _lowered_atoms(self) -> frozenset[str]:
        return frozenset(_ATOM.findall(self._lower_text))

    @cached_property
    def _spoken_text(self) -> str:
        return _plain_speech(self._raw)

    @cached_property
    def _amounts(self) -> frozenset[Amount]:
        return frozenset(amounts_of(self._raw))

    @cached_property
    def _sorted_amounts(self) -> dict[str, list[float]]:
        """The numbers of the texts by what they measure, rising; without it, by all that they might be."""
        numbers: dict[str, list[float]] = {"": sorted(self._values)}
        for family, value in sorted(self._amounts):
            if family:
                numbers.setdefault(family, []).append(value)
        return numbers

    @cached_property
    def _values(self) -> frozenset[float]:
        return frozenset(values_of(self._raw))

    @cached_property
    def _spelled_amounts(self) -> frozenset[float]:
        return frozenset(spelled_amounts(self._raw))

    @cached_property
    def _durations(self) -> frozenset[Amount]:
        """Durations of the texts in parts ("1 h 30 min" for "90 minutes"), and as sums of parts that stand together."""
        parts = set[Amount]()
        for family, value in self._amounts:
            if family == "s":
                hours, minutes = value // 3_600, value // 60
                parts |= {("s", 3_600 * hours), ("s", value % 3_600), ("s", 60 * minutes), ("s", value % 60)}
                parts |= {("s", 60 * (minutes % 60))}
        for match in _COMPOUND.finditer(self._raw):
            parts.add(("s", sum(value for family, value in amounts_of(match[0]) if family == "s")))
        return frozenset(parts)

    @cached_property
    def _shares(self) -> frozenset[float]:
        """Shares that two numbers of the texts make: "12 of 48"."""
        pairs = ((int(part), int(whole)) for part, whole in _SHARE.findall(self._raw))
        return frozenset(part / whole for part, whole in pairs if 0 < part <= whole)

    @cached_property
    def _spoken_times(self) -> frozenset[int]:
        return frozenset(spoken_times(self._raw))

    @cached_property
    def _ordinal_days(self) -> frozenset[int]:
        return frozenset(ordinal_days(self._raw))

    @cached_property
    def _lines(self) -> list[list[str]]:
        return [_WORDS.findall(line) for line in _spoken_lines(self._raw)]

    @cached_property
    def _line_words(self) -> dict[str, list[int]]:
        """The lines of each word."""
        lines: dict[str, list[int]] = {}
        for at, words in enumerate(self._lines):
            for word in set(words):
                lines.setdefault(word, []).append(at)
        return lines

    @cached_property
    def _days(self) -> frozenset[Day]:
        return frozenset(days_of(self._raw))

    @cached_property
    def _yearless(self) -> frozenset[tuple[int, int]]:
        return frozenset((month, date) for _, month, date in self._days)

    @cached_property
    def _clock_times(self) -> frozenset[int]:
        return frozenset(clock_times_of(self._raw.replace("T", " ")))

    @cached_property
    def _has_relative_days(self) -> bool:
        return names_relative_day(self._raw)


def occurs(identifier_text: str, source_text: str) -> bool:
    """True if an identifier stands in a text; for many look-ups in one text, ask a `SourceText`."""
    return SourceText(source_text).holds(identifier_text)


def _plain(text: str) -> str:
    """A text with hosts in lower case and single backslashes: JSON doubles them."""
    if "://" in text:
        text = _HOST.sub(lambda match: match[0].lower(), text)
    return text.replace("\\\\", "\\")


def _plain_speech(text: str) -> str:
    return _BLANKS.sub(" ", text.translate(_QUOTE_SIGNS).translate(_EMPHASIS)).lower()


def _with_precision(text: str) -> Iterator[tuple[Amount, Precision]]:
    return zip(amounts_of(text), precision_of(text), strict=True)


def _spoken_lines(text: str) -> list[str]:
    return [_plain_speech(line) for line in text.split("\n")]


def _is_within(words: list[str], line: list[str]) -> bool:
    """True if all words stand in a line, in their order."""
    rest = iter(line)
    return all(word in rest for word in words)


def _stands_alone(text: str, words: str, atoms: frozenset[str], *, not_after: str = "", strict: bool = True) -> bool:
    """True if words stand in a text with borders on both sides; none if the words end in a sign.

    Args:
        text: The text.
        words: What is looked for.
        atoms: The words of the text, by which most that is not there is told at once.
        not_after: What may not stand before them besides.
        strict: Whether a dot or comma may carry the last word on.
    """
    if not words or not all(atom in atoms for atom in _ATOM.findall(words)):
        return False
    at = text.find(words)
    while at >= 0:
        end = at + len(words)
        before, after = text[at - 1 : at], text[end : end + 2]
        is_opened = not (_is_word(words[0]) and _is_word(before)) and (not before or before not in not_after)
        number = words[0].isdigit() and before in (".", ",") and text[at - 2 : at - 1].isdigit()
        goes_on = _is_word(words[-1]) and (_GOES_ON.match(after) if strict else _is_word(after[:1]))
        if is_opened and not number and not goes_on:
            return True
        at = text.find(words, at + 1)
    return False


def _is_word(char: str) -> bool:
    return char.isascii() and (char.isalnum() or char == "_")


# --- consents ----------------------------------------------------------------------------------------------------

_USER = lazy_regex(ANY.statements.user_words, re.IGNORECASE)
_CLAIM = lazy_regex(f"(?ix){ANY.statements.consents}")
_ONLY_ASKED = lazy_regex(f"(?ix){ANY.statements.only_asked}")
_LATER_WITHIN = lazy_regex(ANY.statements.later_within)
_WORD = lazy_regex(r"[a-z]{4,}|[a-z]*[0-9][a-z0-9]*")
_HAN = lazy_regex(f"[{COMMON_HAN}]+")
_COMMON = ANY.statements.consent_words
_COMMON_WITHIN = ANY.statements.consent_words_within


def claims_of(text: str) -> Iterator[str]:
    """The lines of a text that say the user agreed to something."""
    for line in text.split("\n"):
        if any(map(_is_claim, _CLAIM.finditer(line))):
            yield line.strip()


def _is_claim(match: re.Match[str]) -> bool:
    line, start = match.string, match.start()
    asked_match = _ONLY_ASKED.search(line[max(0, start - 40) : start])
    return not asked_match and not _LATER_WITHIN.match(line, match.end())


def names_user(text: str) -> bool:
    """True if a text names the user, so that a claim in it is the user's."""
    return _USER.search(text) is not None


_NAME = lazy_regex(r"(?<![\w.@/-])[A-ZÀ-ÞА-Я][a-zà-ÿа-я]{2,}(?![\w@/-]|\.\w)")
_BEGUN = lazy_regex(r"[^\W\d_]{3,}")
_CAPITAL_NOUNS = frozenset(language.name for language in LANGUAGES if language.capitalises_nouns)
# Also where nothing stands before it.
_BEFORE_FIRST = '.!?:;"“(*'
_NO_NAMES = ANY.names.no_capitals


def capitalised_names(text: str) -> list[str]:
    """Names in a text by their capitals, in order; none in a language that writes nouns so."""
    if language_of(text) in _CAPITAL_NOUNS:
        return []
    matches = [match for match in _NAME.finditer(text) if match[0].lower() not in _NO_NAMES]
    # The first word of a sentence has a capital whatever it is.
    inside = (match for match in matches if text[: match.start()].rstrip()[-1:] not in _BEFORE_FIRST)
    return [match[0] for match in inside]


def begun_words(text: str) -> frozenset[str]:
    """The beginnings of the words of a text, in lower case."""
    return frozenset(word[:4].lower() for word in _BEGUN.findall(text))


def topics_of(text: str) -> set[str]:
    """Topics of a text: its longer words by their beginning, its Chinese characters in pairs."""
    lowered_text = text.lower()
    topics = {word[:5] for word in _WORD.findall(lowered_text) if word not in _COMMON}
    for run in _HAN.findall(lowered_text):
        topics |= {run[at : at + 2] for at in range(len(run) - 1)} - _COMMON_WITHIN
    return topics
