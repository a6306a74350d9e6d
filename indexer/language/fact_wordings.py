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
from indexer.language.base import Script

_ENDING = re.compile(r"\((\w+)\)")


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


class Wordings:
    """A table of wordings.

    Args:
        lines: The table.
        script: How its language is written.
    """

    def __init__(self, lines: str, script: Script) -> None:
        self._script = script
        self._be = lazy_regex(rf"\b(?:{'|'.join(script.forms.get('be', ()))})\b|{script.contracted}", re.IGNORECASE)
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

    def place_of_be(self, text: str) -> int:
        """Where the first form of "be" begins in a text; -1 for nowhere."""
        match = self._be.search(text)
        return match.start() if match else -1

    def words_of(self, text: str) -> list[str]:
        """The words of a text in small letters by which wordings can be looked up, and others."""
        return self._script.units.findall(text)

    def among(self, words: Iterable[str]) -> Iterator[Wording]:
        """Wordings that are looked up by one of some words, in the order of the table."""
        intersection = self._units.intersection(words)
        for number in sorted({number for unit in intersection for number in self._of_unit[unit]}):
            yield self._wordings[number]


def _with_words(lines: str) -> str:
    """A table with the words that its lines name in braces."""
    named_fields = dict[str, str]()
    for line in lines.splitlines():
        if line.startswith("@"):
            name, _, words = line[1:].partition(" ")
            named_fields[name] = "/".join(part for part in (named_fields.get(name), words) if part)
    return lines.format(**named_fields)


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
    words = f"{gap}(?:{'|'.join(sorted(_spelt(name, script), key=len, reverse=True))}){script.word_end}"
    return f"(?:{words}|{script.contracted})" if "be" in name.split("/") and script.contracted else words


def _spelt(name: str, script: Script) -> Iterator[str]:
    """The spellings of alternatives: "work(s)/is_on" is "work", "works" and "is on"."""
    for word in name.replace("_", r"\s+").split("/"):
        if word in script.forms:
            yield from script.forms[word]
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
    chosen_text = next((name for name in plain if name.startswith("~")), plain[0]).lstrip("~").removeprefix("V=")
    contractions = set(script.contractions) if "be" in chosen_text.split("/") else set[str]()
    return contractions | {
        max(script.units.findall(word.replace(r"\s", " ")), key=len) for word in _spelt(chosen_text, script)
    }
