"""Identifiers and values in a text: paths, ids, commands, amounts in comparable form, handles of messages. Pure.

Invariants: linear in the text, whatever it holds; words are told apart by ASCII alone, so that Chinese text may stand
right beside an identifier; only quotes and commands hold other identifiers; "30s", "30 s" and "30 seconds" are one
amount.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from indexer.common import EAST_ASIAN, lazy_regex
from indexer.language import ANY, IdentifierKind, SpanOfKind, clock_spans, day_spans, identifier_spans, spelled_numbers

Amount: TypeAlias = tuple[str, float]  # what is measured, and how much in its base unit; "" is a bare number
ValueKind: TypeAlias = Literal["date", "time", "number"]

_WORDS = ANY.units
# Signs of units; the words of languages come along.
_TIME_UNITS = {
    0.001: "ms", 1: "s", 60: "", 3_600: "h", 86_400: "", 604_800: "", 2_592_000: "", 31_536_000: "",
}  # fmt: skip
_SIZE_UNITS = {
    1: "", 1e3: "KB", 1e6: "MB", 1e9: "GB", 1e12: "TB",
    2.0**10: "KiB", 2.0**20: "MiB", 2.0**30: "GiB", 2.0**40: "TiB",
}  # fmt: skip
_COUNT_UNITS = {1: "", 1e3: "k|K", 1e6: "M", 1e9: "", 1e4: "", 1e8: ""}
_MONEY = {"eur": "€|EUR", "usd": "$|USD", "cny": "¥|￥|CNY|RMB", "gbp": "£|GBP"}
_OTHERS = dict.fromkeys("% px kg g km m cm mm Hz kHz MHz GHz fps rps W kW V x bps Mbps Gbps".split(), "") | {
    "°C": "℃", "qps": "QPS",
}  # fmt: skip


def _table() -> dict[str, tuple[str, float]]:
    table: dict[str, tuple[str, float]] = {}
    scales = (("s", _TIME_UNITS, _WORDS.times), ("b", _SIZE_UNITS, _WORDS.sizes), ("", _COUNT_UNITS, _WORDS.counts))
    for family, signs, names in scales:
        for scale in signs:
            table |= dict.fromkeys(_split_words(signs[scale], names.get(scale, "")), (family, scale))
    for code, sign in _MONEY.items():
        table |= dict.fromkeys(_split_words(sign, _WORDS.money.get(code, "")), (code, 1.0))
    table |= _WORDS.large_money
    for unit in (*_OTHERS, *_WORDS.others):
        table |= dict.fromkeys(_split_words(_OTHERS.get(unit, ""), _WORDS.others.get(unit, "")), (unit, 1.0))
    return table | {unit: (unit, 1.0) for unit in _OTHERS}


def _split_words(*alternatives: str) -> list[str]:
    return [word for words in alternatives for word in words.split("|") if word]


_UNITS = _table()
_UNITS_LOWER = {word.lower(): unit for word, unit in _UNITS.items() if len(word) > 1}
_OTHER = "|".join(
    sorted((re.escape(word) for word in _UNITS if not (word.isascii() and word[0].isalpha())), key=len)[::-1]
)

# A number starts once per run of digits, so that no run is read twice. It begins with a character, not with a look
# behind, since that is what the engine skips ahead by.
_NUMBER = lazy_regex(
    rf"""[0-9€$£¥￥](?:(?<=[€$£¥￥])[ ]?[0-9]|(?<=[0-9])(?<![A-Za-z0-9_.,/\\\#][0-9])(?<![0-9]:[0-9]))
    (?P<rest>\d{{0,2}}(?:,\d{{3}})++(?:\.\d++)?(?!\d)|\d*+(?:\.\d++)?(?!\.?\d))
    (?:[ \u00a0\u202f-]?(?P<unit>[A-Za-z]{{1,12}}(?![A-Za-z0-9_])|{_OTHER}))?""",
    re.VERBOSE,
)
_SIGNS = "€$£¥￥"
_DIGIT_SIGNS = ANY.numerals.digit_signs
_SCALE_SIGNS = ANY.numerals.scale_signs
_SIGNED_NUMBER = lazy_regex(f"[{''.join([*_DIGIT_SIGNS, *_SCALE_SIGNS])}]{{1,12}}")


def _found_values(text: str) -> Iterator[tuple[ValueKind, int, int]]:
    """Spans of days, times of day and numbers in a text; they may overlap.

    Numbers of few digits without a unit are left out: they say little by themselves.
    """
    for start, end in day_spans(text):
        yield "date", start, end
    for start, end in clock_spans(text):
        yield "time", start, end
    for match in _NUMBER.finditer(text):
        if match["unit"] and _unit(match["unit"]):
            yield "number", match.start(), match.end()
            continue
        number = match.string[match.start() : match.end("rest")]
        if not number.isdecimal() or _many_digits(number):
            yield "number", match.start(), match.end("rest")


def _many_digits(value: str) -> bool:
    return len(value) > 3 and not (len(value) == 4 and value[:2] in ("19", "20"))


def amounts_of(text: str) -> Iterator[Amount]:
    """The numbers of a text, in figures, with what they measure."""
    for match in _NUMBER.finditer(text):
        yield _amount(match)


def values_of(text: str) -> Iterator[float]:
    """The numbers of a text, in figures, whatever they measure."""
    for match in _NUMBER.finditer(text):
        yield _round(_figures(match))


def _amount(match: re.Match[str]) -> Amount:
    value = _figures(match)
    family, scale = (_unit(match["unit"]) if match["unit"] else None) or ("", 1.0)
    if match[0][0] in _SIGNS:
        family = _UNITS[match[0][0]][0]
    return family, _round(value * scale)


def _figures(match: re.Match[str]) -> float:
    return float(match.string[match.start("rest") - 1 : match.end("rest")].replace(",", "")[:40])


@dataclass(frozen=True, slots=True, kw_only=True)
class Precision:
    """Precision of a number as it is written, in its base unit.

    Attributes:
        decimal: A step of its last figure: 0.1 for "1.3".
        significant: A step of its last figure before zeros: 100 for "300".
    """

    decimal: float
    significant: float


def precision_of(text: str) -> Iterator[Precision]:
    """Precision of each number of a text, in figures; see `amounts_of`."""
    for match in _NUMBER.finditer(text):
        written_text = match.string[match.start("rest") - 1 : match.end("rest")].replace(",", "")[:40]
        scale = ((_unit(match["unit"]) if match["unit"] else None) or ("", 1.0))[1]
        whole, _, decimals = written_text.partition(".")
        if decimals:
            step = 10.0 ** -len(decimals)
            yield Precision(decimal=step * scale, significant=step * scale)
        else:
            zeros = len(whole) - len(whole.rstrip("0")) if whole.strip("0") else 0
            yield Precision(decimal=scale, significant=10.0**zeros * scale)


def _unit(word: str) -> tuple[str, float] | None:
    return _UNITS.get(word) or _UNITS_LOWER.get(word.lower())


def _round(value: float) -> float:
    return float(f"{value:.9g}")


def spelled_amounts(text: str) -> Iterator[float]:
    """The numbers of a text that are written as words: "five", "三十"."""
    yield from spelled_numbers(text)
    if not text.isascii():
        yield from map(_value_of_signs, _SIGNED_NUMBER.findall(text))


def _value_of_signs(word: str) -> float:
    total, section, digit = 0.0, 0.0, 0.0
    for char in word:
        if char in _DIGIT_SIGNS:
            digit = _DIGIT_SIGNS[char]
        elif _SCALE_SIGNS[char] < 10_000:
            section, digit = section + (digit or 1) * _SCALE_SIGNS[char], 0.0
        else:
            total, section, digit = total + (section + digit or 1) * _SCALE_SIGNS[char], 0.0, 0.0
    return total + section + digit


def same_amounts(amount: Amount) -> Iterator[Amount]:
    """The ways in which another text may have meant the same: with the unit, or bare in a unit near it."""
    family, value = amount
    yield amount
    scales = {"s": _TIME_UNITS, "b": _SIZE_UNITS, "": _COUNT_UNITS}.get(family, {1.0: "", 1e4: "", 1e8: ""})
    for scale in scales:
        yield "", _round(value / scale)
    if family == "b":  # KB for KiB is how most people write
        for power in (1, 2, 3, 4):
            yield family, _round(value / 1_000**power * 1_024**power)
            yield family, _round(value / 1_024**power * 1_000**power)
    if family == "%":
        yield "", _round(value / 100)


@dataclass(frozen=True, slots=True, kw_only=True)
class Identifier:
    """An identifier.

    Attributes:
        kind: `address` is a host with its port; `code` is one word between backticks, `command` several.
        text: As it stands in the text, without the quotes around it.
        start: Where `text` begins, from 0.
        end: Where it is over.
    """

    kind: IdentifierKind
    text: str
    start: int
    end: int


_DIGIT = lazy_regex("[0-9]")
_FOLDER_END = lazy_regex(r"(?<![A-Za-z0-9/._~-])[A-Za-z0-9/._~-]++\Z")
_CJK_FILE = lazy_regex(rf"(?<=/)[{EAST_ASIAN}][\w-]{{0,80}}\.[A-Za-z0-9]{{1,5}}(?![A-Za-z0-9])")
# None holds its own opening sign, so that a run of those is not read again from each.
_QUOTE = lazy_regex(
    r"\"([^\"\n]{2,400})\"|“([^“”\n]{2,400})”|「([^「」\n]{2,400})」|『([^『』\n]{2,400})』|«([^«»\n]{2,400})»"
)
_TICKS = lazy_regex(r"(?<!`)`([^`\n]{2,400})`(?!`)")
_FENCE = lazy_regex(r"^[ \t]{0,3}```[ \t]*([A-Za-z]*)[^\n`]*$", re.MULTILINE)
_SHELLS = frozenset({"bash", "sh", "shell", "zsh", "console", "terminal", "powershell", "cmd"})


def find_identifiers(text: str) -> list[Identifier]:
    """All identifiers of a text, in the order in which they begin; an outer one before what it holds."""
    of_kinds: list[SpanOfKind] = []
    end = 0
    for span in sorted(_atoms(text)):
        if span[0] >= end:
            of_kinds.append(span)
            end = -span[1]
    outer = [*_quotes(text), *_commands(text)]
    spans = sorted([*outer, *of_kinds]) if outer else of_kinds
    return [Identifier(kind=kind, text=text[start:-end], start=start, end=-end) for start, end, kind in spans]


def _atoms(text: str) -> Iterator[SpanOfKind]:
    yield from identifier_spans(text)
    if _DIGIT.search(text):
        for value_kind, start, end in _found_values(text):
            yield start, -end, value_kind
    if not text.isascii():
        yield from _cjk_files(text)


def _cjk_files(text: str) -> Iterator[SpanOfKind]:
    """Files with a Chinese name in a folder without: `/tmp/报告.txt`."""
    for match in _CJK_FILE.finditer(text):
        folder = _FOLDER_END.search(text, max(0, match.start() - 200), match.start())
        if folder:
            yield folder.start(), -match.end(), "path"


def _quotes(text: str) -> Iterator[SpanOfKind]:
    """Quotes of two words or more; one word between quotes is often only a manner of speaking."""
    if '"' in text or not text.isascii():
        for match in _QUOTE.finditer(text):
            quote = match[match.lastindex or 0]
            if " " in quote.strip() or (not quote.isascii() and len(quote) > 3) or any(map(str.isdigit, quote)):
                yield match.start(match.lastindex or 0), -match.end(match.lastindex or 0), "quote"


def _commands(text: str) -> Iterator[SpanOfKind]:
    if "`" not in text:
        return
    for match in _TICKS.finditer(text):
        code = match[1].strip()
        if code:
            start = match.start(1) + match[1].index(code)
            yield start, -start - len(code), "command" if " " in code else "code"
    fences = list(_FENCE.finditer(text))
    for opening, closing in zip(fences[::2], [*fences[1::2], None], strict=False):
        if opening[1].lower() in _SHELLS:
            yield from _command_lines(text, opening.end() + 1, closing.start() if closing else len(text))


def _command_lines(text: str, start: int, end: int) -> Iterator[SpanOfKind]:
    at = start
    for line in text[start:end].splitlines(keepends=True):
        command = line.strip().removeprefix("$ ").strip()
        if command and not command.startswith("#") and len(command) <= 400:
            start_of_command = at + line.index(command)
            yield start_of_command, -start_of_command - len(command), "command"
        at += len(line)


_YEAR = lazy_regex(rf"(?:19|20)\d\d(?: ?(?:{ANY.days.year_signs}))?")


def is_year(number: str) -> bool:
    """True if a number is a year: "2026", "2026年"."""
    return _YEAR.fullmatch(number) is not None


# --- handles of messages -----------------------------------------------------------------------------------------

_HANDLE = lazy_regex(
    rf"[ \t]{{0,4}}[(\[（【]\s{{0,4}}(?:(?:{ANY.phrases.references}) )?"
    rf"(log:\d[\d\s,;、–—~&:log{''.join(sorted(ANY.phrases.reference_joints))}-]{{0,160}})[)\]）】]"
    r"|[ \t]{1,4}[—–-]{0,2}[ \t]{0,4}"
    r"((?:log:\d{1,12}(?:[ \t]?[-–][ \t]?(?:log:)?\d{1,12})?[,;、 ]{0,3}){1,12})[.。]?\Z",
    re.IGNORECASE,
)
_RANGE = lazy_regex(
    rf"(\d{{1,12}})(?:[ \t]?(?:[-–—~]|{ANY.phrases.ranges})[ \t]?(?:log:)?(\d{{1,12}}))?", re.IGNORECASE
)


def without_handles(line: str) -> tuple[str, list[tuple[int, int]]]:
    """A line without the handles of messages, and the numbers that they name, first and last."""
    ranges: list[tuple[int, int]] = []
    for match in _HANDLE.finditer(line):
        for first, last in _RANGE.findall(match[1] or match[2]):
            ranges.append((int(first), int(last or first)))
    return _HANDLE.sub("", line) if ranges else line, ranges


def is_range(text: str) -> bool:
    """True if a text is the number of a message, or those of a first and a last one."""
    return _RANGE.fullmatch(text) is not None


# --- what a number measures --------------------------------------------------------------------------------------

_MEASURE_CHARS, _MEASURE_WORDS = 40, 5
_MEASURE_WORD = lazy_regex(r"\S+")
# Where the words end that may say what a number measures: a clause, or what joins another one to it.
_MEASURE_END = lazy_regex(
    r"[\n,;:!?()\[\]{}|，。；：！？（）、\"'`*]|(?<!\d)\.|\.(?!\d)"
    rf"|\b(?:{ANY.clauses.conjunctions})\b|{ANY.clauses.conjunctions_within}",
    re.IGNORECASE,
)


def with_measure(text: str, number: Identifier) -> str:
    """A number with the few words before it that say what it measures: "timeout of 30 s"."""
    before = text[max(number.start - _MEASURE_CHARS, 0) : number.start]
    start = max((end.end() for end in _MEASURE_END.finditer(before)), default=0)
    words = list(_MEASURE_WORD.finditer(before, start))[-_MEASURE_WORDS:]
    # The first word may be the end of one that is cut.
    is_cut = not start and number.start > _MEASURE_CHARS and len(words) > 1 and before[0].isascii() and before[0] != " "
    if words:
        start = words[1 if is_cut and words[0].start() == 0 else 0].start()
    return (before[start:] + text[number.start : number.end]).strip()
