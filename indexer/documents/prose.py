"""Owns the way from a plain text file to passages: paragraphs and list items, long ones cut after a sentence.

Invariants: pure; linear in the length of the text; every line with something on it is in one passage, and line
ranges are exact.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from indexer.documents.markdown import outlined, split_lines
from indexer.documents.sections import ITEM, Kind, Line, Outline, dedented
from indexer.types import Passage

# Who writes lines of this length has an editor that wraps them: each is a paragraph of its own.
_UNWRAPPED_CHARS = 160
_UNWRAPPED_WIDE_CHARS = 60
_WIDE = re.compile("[\u3000-\u9fff\uac00-\ud7a3\uff00-\uffef]")


def split_text(text: str, *, path: str) -> list[Passage]:
    """Splits a plain text file into passages.

    Args:
        text: The whole file; line ends may be of any kind.
        path: Where it lies; a date in its name dates the passages.

    Returns:
        The passages in the order of their lines; none for an empty file.
    """
    outline = Outline()
    for paragraph in _paragraphs(split_lines(text)):
        for kind, lines in _parts(paragraph):
            outline.add(kind, lines[0][0], lines[-1][0], dedented(lines))
    return outlined(outline, path=path)


def _paragraphs(lines: list[str]) -> Iterator[list[Line]]:
    """Runs of lines with nothing blank between them."""
    run: list[Line] = []
    for number, line in enumerate(lines, start=1):
        if line and not line.isspace():
            run.append((number, line.expandtabs(4) if "\t" in line else line))
        elif run:
            yield run
            run = []
    if run:
        yield run


def _parts(paragraph: list[Line]) -> Iterator[tuple[Kind, list[Line]]]:
    """The list items of a paragraph apart, and its lines where each is a paragraph of its own."""
    apart = any(_is_unwrapped(text) for _, text in paragraph)
    kind, part = Kind.TEXT, list[Line]()
    for number, text in paragraph:
        begins = ITEM.match(text.lstrip()) is not None
        if part and (begins or (apart and kind is Kind.TEXT)):
            yield kind, part
            kind, part = Kind.TEXT, []
        if begins:
            kind = Kind.ITEM
        part.append((number, text))
    yield kind, part


def _is_unwrapped(text: str) -> bool:
    if len(text) > _UNWRAPPED_CHARS:
        return True
    return len(text) > _UNWRAPPED_WIDE_CHARS and len(_WIDE.findall(text)) > len(text) // 2
