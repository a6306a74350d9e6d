"""Text in cells of a terminal: how wide it is, and cut or filled to a width.

Invariants: a character that a terminal shows over two cells counts for two; text of a conversation can neither move
the cursor nor leave its column. `rich.cells` counts nothing for a letter behind a joiner, so hostile text would.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    pass


def columns(rows: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Names and values in two columns."""
    listed_rows = list(rows)
    width = max((len(name) for name, _ in listed_rows), default=0)
    for name, value in listed_rows:
        yield f"{name:<{width}}  {value}"


_JOINER = "\u200d"


def width(text: str) -> int:
    """Number of terminal cells of a text."""
    return len(text) if text.isascii() else sum(map(_cells, text))


def _cells(char: str) -> int:
    if char.isascii():
        return 1
    if char == _JOINER or unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def fit_to_cells(text: str, cells: int) -> str:
    """Beginning of a text in at most so many cells; a cut one ends in an ellipsis."""
    used_count = cut_at = 0
    # Marks take no cell, and hostile text may be nothing but marks.
    for at, char in enumerate(text[: 8 * cells]):
        if used_count < cells:
            cut_at = at
        used_count += _cells(char)
        if used_count > cells:
            return f"{text[:cut_at]}…"
    return text if len(text) <= 8 * cells else f"{text[:cut_at]}…"


def pad_text(text: str, cells: int, *, right: bool = False) -> str:
    """A text with spaces up to a width."""
    space = " " * max(cells - width(text), 0)
    return space + text if right else text + space
