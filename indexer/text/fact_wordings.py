"""A table of wordings: lines that tell how facts are put, and those of them that may stand in a clause. Pure.

A line has a relation and a wording: `location!  S ~moved/relocated [from F] to/into V`. In it

- `S`, `V`, `F`, `O`, `N` are parts to read: a subject, its value, its former value, a thing, a noun phrase that names an
  attribute; each stands at most once;
- `a/b` are words of which one stands, `walk(s)` has an ending or none, `in_charge` is two words, `[...]` may be missing;
- `~` is before the word that the wording is looked up by; without it that is the first word;
- `be` and `have` are their forms, and "now", "just" and other adverbs may stand between any two;
- `!` behind a relation says that the wording tells of a change, `?` that there may be several at a time.

Only wordings whose word stands in a clause are tried, so that another line costs other clauses nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from indexer.text import lazy_regex

_ADVERBS = (
    r"(?:(?:now|currently|presently|officially|recently|just|finally|already|still|again|back|over|permanently|entirely"
    r"|fully|completely|only)\s+)*"
)
_GAP = rf"\s+{_ADVERBS}"
_FORMS = {"be": ("is", "are", "am", "was", "were", "been", "being"), "have": ("has", "have", "had")}
# "it's eu-west-1" tells what it is; "Ana's dog" does not, but "Ana's now in Porto" does.
_CONTRACTED = (
    r"['’](?:m|re)(?!\w)|(?:(?<=\bhe)|(?<=\bit)|(?<=\bshe)|(?<=\bthat))['’]s(?!\w)"
    r"|['’]s(?=\s+(?:now|currently|no longer)\b)"
)
_PARTS = {"F": r"(?P<f>[^,]{1,40}?)", "O": r"(?P<o>\S.{0,50}?)", "N": r"(?P<n>\S.{0,60}?)", "V": r"(?P<v>\S.{0,50}?)"}
_AUXILIARY = r"(?:['’](?:s|ve|re|m)|\s+(?:has|have|had|is|are|was|were|been|being|got|gets|will|be))*"
_ENDING = re.compile(r"\((\w+)\)")
_LETTERS = re.compile(r"[a-z]+")


class Wording(NamedTuple):
    """A line of a table.

    Attributes:
        relation: What it claims of.
        changes: True if it tells of a change.
        single: False if a subject can have several of them, so that only a change ends one.
        pattern: Finds it in a clause; its groups are the parts, and the subject stands before it.
    """

    relation: str
    changes: bool
    single: bool
    pattern: re.Pattern[str]


class Wordings:
    """A table of wordings.

    Args:
        lines: The table.
        words: Lists of words that lines name in braces.
    """

    def __init__(self, lines: str, **words: str) -> None:
        self._wordings = list[Wording]()
        self._of_word = dict[str, list[int]]()
        for line in lines.format(**words).strip().splitlines():
            relation, _, wording = line.partition(" ")
            if not wording:
                continue
            name = relation.rstrip("!?")
            marks = relation[len(name) :]
            for word in _looked_up_by(wording):
                self._of_word.setdefault(word, []).append(len(self._wordings))
            self._wordings.append(Wording(name, "!" in marks, "?" not in marks, _pattern(wording)))
        self._words = frozenset(self._of_word)

    def has_words_of(self, text: str) -> bool:
        """True if a text in small letters has a word that a wording is looked up by."""
        return not self._words.isdisjoint(_LETTERS.findall(text))

    def among(self, text: str) -> Iterator[Wording]:
        """Wordings of which a word stands in a text in small letters, in the order of the table."""
        found = self._words.intersection(_LETTERS.findall(text))
        for number in sorted({number for word in found for number in self._of_word[word]}):
            yield self._wordings[number]


def _pattern(wording: str) -> re.Pattern[str]:
    names = wording.split()
    regex = ""
    for place, name in enumerate(names):
        bare = name.strip("[]~")
        if bare == "S":
            continue
        opens, closes = "(?:" if name.startswith("[") else "", ")?" if name.endswith("]") else ""
        regex += opens + _part(bare, is_first=not regex, is_last=place == len(names) - 1) + closes
    return lazy_regex(regex, re.IGNORECASE)


def _part(name: str, *, is_first: bool, is_last: bool) -> str:
    """One word of a wording as a regular expression, with the blanks before it."""
    if name in _PARTS:
        part = rf"(?P<{name.lower()}>\S.*)" if is_last else _PARTS[name]
        return f"^{part}{_AUXILIARY}" if is_first else _GAP + part
    gap = r"\b" if is_first else _GAP
    words = gap + f"(?:{'|'.join(sorted(_spelt(name), key=len, reverse=True))})" + r"(?!\w)"
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


def _looked_up_by(wording: str) -> set[str]:
    """The words of which a clause in this wording has one."""
    names = wording.split()
    plain = [name for name in names if name.strip("[]") not in _PARTS and name != "S" and not name.startswith("[")]
    chosen = next((name for name in plain if name.startswith("~")), plain[0]).lstrip("~")
    contracted = {"s", "m", "re"} if "be" in chosen.split("/") else set[str]()
    return contracted | {max(_LETTERS.findall(word.replace(r"\s", " ")), key=len) for word in _spelt(chosen)}
