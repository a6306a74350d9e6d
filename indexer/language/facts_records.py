"""Of what a line in a record tells: its label, its caption, the first line of its block. Pure; linear.

Lists of people, servers or offers have the same keys again and again: "Phone: …" tells of whoever stands before it.
That may be a label in the same line ("Van – price: 9000 €", "| Oven | Cost: 1141 € |", "web01: Port: 8080"), the line
that a block begins with ("Mia Berg", "Name: Mia Berg", "[web01]"), or something in brackets behind the value.

Invariants: a number of a list, a day and an hour are no label; titles of versions ("## 2.0") and files of changes have
the newest first, so that nothing in them tells what holds now.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import PurePosixPath

from indexer.common.patterns import lazy_regex
from indexer.language.fact_words import words_of
from indexer.language.tables import ANY

# The number of a list item, which names nothing: "6、", "(1)", "3)", "Step 2:".
LIST_NUMBER = lazy_regex(
    r"^(?:[(（\[]?(?:\d{1,3}|[a-zA-Z]|[ivx]{1,4}|[一二三四五六七八九十]{1,3})[)）\]]\s*|\d{1,3}[.．]\s+|\d{1,3}[、．]\s*"
    r"|[①-⓿❶-➓]\s*|第?[一二三四五六七八九十]{1,3}、\s*|第[一二三四五六七八九十\d]{1,3}[，,：:点]\s*|[#№]\s?\d{1,3}[:.]\s+)+(?=\S)"
)
_KEY = r"[^:：=→\n]{1,60}?\s*(?:[:：=→]|->|=>)(?!//)"
KEYED = lazy_regex(rf"^\s*{_KEY}\s*\S")
_LABELLED = lazy_regex(rf"^\s*(?P<label>[^:：=→\n]{{1,40}}?)\s*(?:[:：→]\s+|：|->\s*|=>\s*|/\s+)(?={_KEY}\s*\S)")
_NO_LABEL = lazy_regex(r"[\W\d_]*(?:[ap]m|uhr|h)?[\W\d_]*", re.IGNORECASE)
_SENTENCE = lazy_regex(r"[.!?。！？;；]\s*\S|[,，].*[,，]|[。！？?!;；]$")
_MOST_LABEL_CHARS, _MOST_LABEL_WORDS = 60, 6
_BRACKETS = lazy_regex(r"[(（](?P<aside>[^()（）]{1,40})[)）]\s*[.。]?$")
# In brackets behind a value: when it holds, or what it was, and not of whom it is.
_OF_VALUE = lazy_regex(rf"\W*(?:[\d\W]+(?:\w{{0,3}}\W*)?$|{ANY.clauses.of_value})", re.IGNORECASE)
_VERSION_TITLE = lazy_regex(
    r"(?:\W*(?:version|release|v)\W*)?\[?v?\d+\.\d+(?:\.\w+)*(?:[-+]\w[\w.]*)?\]?(?:\W.*)?|\W*unreleased\W*",
    re.IGNORECASE,
)
_HOUR = lazy_regex(r"(?:[01]?\d|2[0-3])[.:][0-5]\d(?:\D.*)?")
_CHANGES_FILE = lazy_regex(f"(?:{ANY.clauses.change_logs})", re.IGNORECASE)


def is_newest_first(heading: tuple[str, ...], path: str) -> bool:
    """True for what stands in a list of changes, of which the newest stand first."""
    if path and _CHANGES_FILE.fullmatch(PurePosixPath(path).stem):
        return True
    return any(
        _CHANGES_FILE.fullmatch(title.strip()) or (_VERSION_TITLE.fullmatch(title) and not _HOUR.fullmatch(title))
        for title in heading
    )


def label_before(text: str) -> tuple[str, str]:
    """The label before a line of a key and a value, and the line without it: "web01", "Port: 8080"."""
    match = _LABELLED.match(text)
    return (match["label"], text[match.end() :]) if match and is_label(match["label"]) else ("", text)


def is_label(text: str) -> bool:
    """True for a few words that make no sentence and have no key."""
    plain = text.strip(" \t*_:：-–—|>[]")
    return (
        0 < len(plain) <= _MOST_LABEL_CHARS
        and len(plain.split()) <= _MOST_LABEL_WORDS
        and _NO_LABEL.fullmatch(plain) is None
        and _SENTENCE.search(plain) is None
        and KEYED.match(plain) is None
    )


def words_of_label(text: str) -> frozenset[str]:
    """The words of a label; empty where there are too many for one."""
    words = words_of(LIST_NUMBER.sub("", text.strip(" \t*_:：-–—|>[]")))
    return words if len(words) <= _MOST_LABEL_WORDS else frozenset()


def first_line(text: str) -> tuple[str, frozenset[str]]:
    """The line that a block of keys and values begins with, and the words that the others belong to; empty for none."""
    first, line_break, rest = text.partition("\n")
    if not line_break or not any(KEYED.match(line) for line in rest.split("\n")[:40]):
        return "", frozenset()
    if is_label(first):
        return first, words_of_label(first)
    if KEYED.match(first):
        return first, words_of_label(re.split(r"[:：=→]|->|=>", first, maxsplit=1)[1])
    return "", frozenset()


def names_another(text: str) -> bool:
    """True if brackets behind a value name whom or what it is of: "Phone: 0664 111 (Mia)"."""
    match = _BRACKETS.search(text)
    return match is not None and _OF_VALUE.match(match["aside"]) is None


def caption(above: Iterable[str]) -> frozenset[str]:
    """Words of whatever a line of a key and a value belongs to, by the lines above it, the nearest first.

    Those are the nearest labels, one above the other, or the value of the nearest key "Name".
    """
    words = frozenset[str]()
    for text in above:
        if is_label(text):
            words |= words_of_label(text)
            continue
        if words or not KEYED.match(text):
            break
        key, value = re.split(r"[:：=→]|->|=>", text, maxsplit=1)
        if key.strip().casefold() in ANY.nouns.names:
            return words_of_label(value)
    return words
