"""Names of the sections of a record of work, in the languages of `tables`. Pure.

Invariants: a name belongs to one subject; names are compared without case, numbers, signs and pictures around them; a
heading that holds more words than a name is known by the longest name in it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import cache

from indexer.common.patterns import lazy_regex
from indexer.language.tables import ANY

# What a section is about, and the subjects that its lines go to where nobody asked for that one.
_NEXT_BEST = {
    "goal": ("context",),
    "constraints": ("decisions", "context"),
    "decisions": ("constraints", "context"),
    "progress": ("done", "in progress"),
    "done": ("progress", "context"),
    "in progress": ("todos", "progress", "next", "context"),
    "failed": ("blocked", "context", "done"),
    "blocked": ("failed", "asks", "in progress", "context"),
    "asks": ("todos", "next", "blocked", "context"),
    "todos": ("in progress", "next", "asks"),
    "next": ("todos", "in progress", "asks"),
    "files": ("identifiers", "context"),
    "identifiers": ("context", "files"),
    "context": ("identifiers", "files", "done"),
}  # fmt: skip
_SIGNS = lazy_regex(r"[\W\d_]+")
_ASIDE = lazy_regex(r"[(（\[【][^()（）\[\]【】]{0,80}[)）\]】]\s*[:：]?\s*\Z")
_LONGEST_CHARS = 60


@cache
def _subjects() -> dict[str, str]:
    return {name: subject for subject, names in ANY.sections.names.items() for name in map(_plain, names.split("|"))}


@cache
def _phrases() -> re.Pattern[str]:
    """The names of two words, or of one that is long, within a heading."""
    long = [name for name in _subjects() if len(name) > (4 if name.isascii() else 1)]
    names = "|".join(sorted(map(re.escape, long), key=len, reverse=True))
    return re.compile(rf"(?<![^\W\d_])(?:{names})(?![^\W\d_])")


def _plain(heading: str) -> str:
    text = unicodedata.normalize("NFKC", heading).casefold().replace("&", " and ")
    return _SIGNS.sub(" ", text).strip()


def section_subject(heading: str, *, whole: bool = False) -> str:
    """Subject of a heading, such as "done"; empty for one that nobody knows.

    Args:
        heading: In any of the languages, with whatever stands around its words.
        whole: Whether the heading has to be a name and nothing else.
    """
    if len(heading) > _LONGEST_CHARS:
        return ""
    plain = _plain(_ASIDE.sub("", heading)) or _plain(heading)
    subject = _subjects().get(plain, "")
    if subject or whole:
        return subject
    named_match = max(_phrases().findall(plain), key=len, default="")
    return _subjects().get(named_match, "")


def next_subjects(subject: str) -> Iterator[str]:
    """A subject, and those that its lines go to where nobody asked for it, the best first."""
    if subject:
        yield subject
        yield from _NEXT_BEST[subject]
