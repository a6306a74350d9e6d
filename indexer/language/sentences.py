"""Cutting of long texts, fenced code, and the snippet of a long passage that a hit shows.

A text is cut at the end of a paragraph, else of a line, else of a sentence, else at a space.

Invariants: pure; linear in the length of the text; no piece is empty or longer than asked for; joined, the pieces are
the text but for the white space at the cuts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from indexer.common.patterns import lazy_regex
from indexer.language.ornaments import ornament
from indexer.language.tables import ANY
from indexer.language.terms import index_terms

_SENTENCE_END = lazy_regex(r"[.!?…][\"'”’)\]]?(?=\s)|[。！？；][”’」』）]?")
# A bullet or number with a space after it, or one in signs of a script, which needs none.
LIST_ITEM = lazy_regex(
    r"(?:[-*+•·‣–]|\(?[0-9]{1,3}[.)]|#\.|\([a-z]\))(?:\s|$)|[0-9]{1,3}、"
    rf"|[（(]?(?:{ANY.clauses.item_numerals})[)）、．]"
)
_PARAGRAPH_END = lazy_regex(r"\n[ \t]*\n")


def pieces(text: str, max_chars: int) -> Iterator[str]:
    """Pieces of a text of at most `max_chars` characters; a text that fits is one piece."""
    at = 0
    while len(text) - at > max_chars:
        end = end_of_part(text, at, at + max_chars)
        if part := text[at:end].strip():
            yield part
        at = end
    if part := text[at:].strip():
        yield part


def parts_of(text: str, max_chars: int) -> list[str]:
    """The pieces of a text; cut anywhere where its sentences cannot be read."""
    texts = ornament("sentences", None, lambda: list(pieces(text, max_chars)))
    return [text[at : at + max_chars] for at in range(0, len(text), max_chars)] if texts is None else texts


def end_of_part(text: str, start: int, limit: int) -> int:
    """Best end of a part that begins at `start`, at most `limit`.

    A paragraph or a line ends a part only in its second half: a short first line is no reason for a short part.
    """
    half = start + (limit - start) // 2
    if end := _last_end(_PARAGRAPH_END, text, half, limit):
        return end
    line = text.rfind("\n", half, limit)
    if line >= 0:
        return line + 1
    if end := _last_end(_SENTENCE_END, text, start, limit):
        return end
    space = text.rfind(" ", start + 1, limit + 1)
    return space if space > start else limit


def _last_end(pattern: re.Pattern[str], text: str, start: int, limit: int) -> int:
    end = 0
    for match in pattern.finditer(text, start, limit):
        end = match.end()
    return end


SNIPPET_CHARS = 700
_BREAK = lazy_regex(r"(?<=[.!?…])\s+|(?<=[。！？；])|\n")


def snippet(text: str, terms: Iterable[str], *, max_chars: int = SNIPPET_CHARS) -> str:
    """The stretch of whole sentences with most of the terms, marked with … where it was cut."""
    if len(text) <= max_chars:
        return text
    wanted_terms = set(terms)
    sentences = _sentences(text)
    weights = [len(wanted_terms.intersection(index_terms(text[start:end]))) for start, end in sentences]
    best = weights.index(max(weights))
    start, end = sentences[best]
    low = high = best
    while True:
        before = sentences[low - 1][0] if low else None
        after = sentences[high + 1][1] if high + 1 < len(sentences) else None
        if after is not None and after - start <= max_chars:
            high, end = high + 1, after
        elif before is not None and end - before <= max_chars:
            low, start = low - 1, before
        else:
            break
    end = min(end, start + max_chars)
    return f"{'… ' if start else ''}{text[start:end].strip()}{' …' if end < len(text) else ''}"


def sentences_of(text: str) -> list[str]:
    """The sentences and lines of a text, each with the mark that ends it."""
    return [text[start:end].strip() for start, end in _sentences(text)]


def _sentences(text: str) -> list[tuple[int, int]]:
    starts = [0, *(match.end() for match in _BREAK.finditer(text))]
    ends = [*starts[1:], len(text)]
    return [(start, end) for start, end in zip(starts, ends, strict=True) if text[start:end].strip()] or [
        (0, len(text))
    ]


_PARTED = lazy_regex(r"""(?:[.!?](?=\s|["'”’<]|\Z)|[。！？;；\n|{}\[\]"“”]|</?[A-Za-z][^<>\n]{0,200}>|[:：]\s)+""")


def split_parts(text: str) -> list[str]:
    """The sentences of a text, out of tags, cells of a table, fields of JSON and what stands before a colon."""
    return [part.strip() for part in _PARTED.split(text) if part.strip()]


_SAYS = lazy_regex(
    rf"(?i)\b(?:{ANY.grammar.verbs})\b|[.!?。！？…][\"'”’)*_`]*\s*\Z|->|→|[=:：]\s?\S|{ANY.grammar.verbs_within}"
)
_LITTLE_WORDS = 8


def says_little(item: str) -> bool:
    """True if an item of a list tells nothing without the line above the list: "port forward 8080"."""
    return len(item.split()) <= _LITTLE_WORDS and _SAYS.search(item) is None
