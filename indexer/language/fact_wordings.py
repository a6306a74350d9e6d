"""A table of wordings: lines that tell how facts are put, and those of them that may stand in a clause. Pure.

A line has a relation and a wording: `location!  S ~moved/relocated [from F] to/into V`. In it

- `S`, `V`, `F`, `O`, `N` are parts to read: a subject, its value, its former value, a thing, a noun phrase that names
  an attribute; each stands at most once;
- `a/b` are words of which one stands, `walk(s)` has an ending or none, `in_charge` is two words, `[...]` may miss;
- `V=a/b` is a value that is one of several words;
- `~` is before the word that the wording is looked up by; without it that is the first word;
- `?a/b` at the end are other words to look it up by;
- `be` and `have` are their forms, and "now", "just" and other adverbs may stand between any two;
- `!` behind a relation says that the wording tells of a change, `?` that there may be several at a time.

Only wordings whose word stands in a clause are tried, so that another line costs other clauses nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from indexer.common.patterns import lazy_regex

_ENDING = re.compile(r"\((\w+)\)")
_FORMS = {"be": ("is", "are", "am", "was", "were", "been", "being"), "have": ("has", "have", "had")}
# "it's eu-west-1" tells what it is; "Ana's dog" does not, but "Ana's now in Porto" does.
_CONTRACTED = (
    r"['’](?:m|re)(?!\w)|(?:(?<=\bhe)|(?<=\bit)|(?<=\bshe)|(?<=\bthat))['’]s(?!\w)"
    r"|['’]s(?=\s+(?:now|currently|no longer)\b)"
)

_BE = lazy_regex(rf"\b(?:is|are|am|was|were)\b|{_CONTRACTED}", re.IGNORECASE)


class Script(NamedTuple):
    """How a language is written.

    Attributes:
        gap: What may stand between two parts.
        first_gap: What may stand before the first word, where no part is read before it.
        word_end: What may stand behind a word.
        parts: The parts of a wording; those of `firsts` and `lasts` instead at its beginning and end.
        end: What may stand behind the last part.
        units: What a text is cut into to look wordings up.
    """

    gap: str
    first_gap: str
    word_end: str
    parts: dict[str, str]
    firsts: dict[str, str]
    lasts: dict[str, str]
    end: str
    units: re.Pattern[str]


_ADVERBS = (
    r"(?:(?:now|currently|presently|officially|recently|just|finally|already|still|again|back|over|permanently|entirely"
    r"|fully|completely|only)\s+)*"
)
_AUXILIARY = r"(?:['’](?:s|ve|re|m)|\s+(?:has|have|had|is|are|was|were|been|being|got|gets|will|be))*"
_ENGLISH_PARTS = {
    "F": r"(?P<f>[^,]{1,40}?)",
    "O": r"(?P<o>\S.{0,50}?)",
    "N": r"(?P<n>\S.{0,60}?)",
    "V": r"(?P<v>\S.{0,50}?)",
}
ENGLISH_SCRIPT = Script(
    gap=rf"\s+{_ADVERBS}",
    first_gap=r"\b",
    word_end=r"(?!\w)",
    parts=_ENGLISH_PARTS,
    # The subject is whatever stands before the first word.
    firsts={"S": "", **{name: f"^{part}{_AUXILIARY}" for name, part in _ENGLISH_PARTS.items()}},
    lasts={name: rf"(?P<{name.lower()}>\S.*)" for name in _ENGLISH_PARTS},
    end="",
    units=re.compile(r"[a-z]+|\d"),
)
_TIMES = (
    "(?:现在|目前|如今|已经?|刚刚?|最近|上周|上个?月|去年|今年|昨天|今天|以后|今后|从现在起|从今天起|一直|统一|都|正式|马上|又|就|全部"
    r"|全家|后来|决定|我已|被|再|已被|起|每次|本季度|从?\d{4}年(?:\d+月)?起?|从[\d一二三四五六七八九十]+月(?:份|\d+[日号])?起?|[\d一二三四五六七八九十]+月份?起|\s)*"
)
CHINESE_SCRIPT = Script(
    gap=_TIMES,
    first_gap="^",
    word_end="了?",
    parts={
        "F": "(?P<f>[^，,。；;]{1,20}?)",
        "O": "(?P<o>[^，,。；;]{1,20}?)",
        "N": "(?P<n>[^，,。；;：:]{1,25}?)",
        "V": "(?P<v>[^，,。；;：:]{1,20}?)",
    },
    firsts={
        "S": "^(?P<s>[^，,。；;：:]{0,20}?)",
        "F": "^(?P<f>[^，,。；;：:]{1,25}?)",
        "O": "^(?P<o>[^，,。；;：:]{1,20}?)",
        "N": "^(?P<n>[^，,。；;：:]{1,25}?)",
        "V": "^(?P<v>[^，,。；;：:的]{1,12}?)",
    },
    lasts={name: f"(?P<{name.lower()}>[^，,。；;！!]{{1,40}}?)" for name in "FONV"},
    end="(?:了|啦|吧|呢)?[。！!]?$",
    units=re.compile("[\u4e00-\u9fff]"),
)


class Wording(NamedTuple):
    """A line of a table.

    Attributes:
        relation: What it claims of.
        changes: True if it tells of a change.
        single: False if a subject can have several of them, so that only a change ends one.
        pattern: Finds it in a clause; its groups are the parts, and the subject stands before it.
        is_behind_be: True if it begins with a form of "be", which is looked for once for all of those.
    """

    relation: str
    changes: bool
    single: bool
    pattern: re.Pattern[str]
    is_behind_be: bool

    def found_in(self, text: str, be: int) -> re.Match[str] | None:
        """The wording in a text in which the first form of "be" is at a place, -1 for none."""
        if not self.is_behind_be:
            return self.pattern.search(text)
        return self.pattern.match(text, be) if be >= 0 else None


def place_of_be(text: str) -> int:
    """Where the first form of "be" begins in an English text; -1 for nowhere."""
    found = _BE.search(text)
    return found.start() if found else -1


class Wordings:
    """A table of wordings.

    Args:
        lines: The table.
        script: How its language is written.
    """

    def __init__(self, lines: str, script: Script) -> None:
        self._script = script
        self._wordings = list[Wording]()
        self._of_unit = dict[str, list[int]]()
        for line in _with_words(lines).splitlines():
            relation, _, wording = line.partition(" ")
            if not wording or line.startswith("@"):
                continue
            for unit in _looked_up_by(wording, script):
                self._of_unit.setdefault(unit, []).append(len(self._wordings))
            name = relation.rstrip("!?")
            marks = relation[len(name) :]
            self._wordings.append(
                Wording(
                    name, "!" in marks, "?" not in marks, _pattern(wording, script), wording.split()[:2] == ["S", "be"]
                )
            )
        self._units = frozenset(self._of_unit)

    def words_of(self, text: str) -> list[str]:
        """The words of a text in small letters by which wordings can be looked up, and others."""
        return self._script.units.findall(text)

    def among(self, words: Iterable[str]) -> Iterator[Wording]:
        """Wordings that are looked up by one of some words, in the order of the table."""
        found = self._units.intersection(words)
        for number in sorted({number for unit in found for number in self._of_unit[unit]}):
            yield self._wordings[number]


def _with_words(lines: str) -> str:
    """A table with the words that its lines name in braces."""
    named = dict[str, str]()
    for line in lines.splitlines():
        if line.startswith("@"):
            name, _, words = line[1:].partition(" ")
            named[name] = "/".join(part for part in (named.get(name), words) if part)
    return lines.format(**named)


def _pattern(wording: str, script: Script) -> re.Pattern[str]:
    names = [name for name in wording.split() if not name.startswith("?")]
    regex = ""
    for place, name in enumerate(names):
        opens, closes = "(?:" if name.startswith("[") else "", ")?" if name.endswith("]") else ""
        regex += opens + _part(name.strip("[]~"), script, not regex, place == len(names) - 1) + closes
    return lazy_regex(regex + script.end, re.IGNORECASE)


def _part(name: str, script: Script, is_first: bool, is_last: bool) -> str:
    """One word of a wording as a regular expression, with what may stand before it."""
    if is_first and name in script.firsts:
        return script.firsts[name]
    if name in script.parts:
        return script.gap + (script.lasts if is_last else script.parts)[name]
    gap = script.first_gap if is_first else script.gap
    if name.startswith("V="):
        return f"{gap}(?P<v>{name[2:].replace('/', '|')}){script.word_end}"
    words = f"{gap}(?:{'|'.join(sorted(_spelt(name), key=len, reverse=True))}){script.word_end}"
    return f"(?:{words}|{_CONTRACTED})" if "be" in name.split("/") else words


def _spelt(name: str) -> Iterator[str]:
    """The spellings of alternatives: "work(s)/is_on" is "work", "works" and "is on"."""
    for word in name.replace("_", r"\s+").split("/"):
        if word in _FORMS:
            yield from _FORMS[word]
            continue
        yield _ENDING.sub("", word)
        if "(" in word:
            yield _ENDING.sub(r"\1", word)


def _looked_up_by(wording: str, script: Script) -> set[str]:
    """The words of which a clause in this wording has one: the longest of each alternative, or its first sign."""
    names = wording.split()
    if names[-1].startswith("?"):
        return set(names[-1][1:].split("/"))
    plain = [name for name in names if name not in script.parts and name != "S" and not name.startswith("[")]
    chosen = next((name for name in plain if name.startswith("~")), plain[0]).lstrip("~").removeprefix("V=")
    contracted = {"s", "m", "re"} if "be" in chosen.split("/") else set[str]()
    return contracted | {max(script.units.findall(word.replace(r"\s", " ")), key=len) for word in _spelt(chosen)}
