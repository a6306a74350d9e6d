"""Owns the outline of a Markdown file: its sections, and the blocks that were found in them.

Invariants: blocks keep the order of their lines; a heading above at least one block is in that block's
path; one above none becomes a block itself, so that no title is lost.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

Line = tuple[int, str]
# A bullet or number with a space after it, or a Chinese one, which needs none.
ITEM = re.compile(
    r"(?:[-*+•·‣–]|\(?[0-9]{1,3}[.)]|#\.|\([a-z]\))(?:\s|$)|[（(]?[一二三四五六七八九十]{1,3}[)）、．]|[0-9]{1,3}、"
)


class Kind(Enum):
    """What a block is."""

    NONE = 0
    TEXT = 1
    ITEM = 2
    ROW = 3
    CODE = 4
    TITLE = 5  # a heading with nothing below it


@dataclass(slots=True, eq=False)
class Section:
    """A heading and what is below it.

    Attributes:
        path: The titles from the outermost heading to this one, without empty ones.
        lines: First and last line of the heading itself.
        used: Whether any block was found below it yet.
    """

    level: int
    title: str
    path: tuple[str, ...]
    lines: tuple[int, int]
    parent: Section | None
    used: bool = False


class Block(NamedTuple):
    """One block of text.

    Attributes:
        section: The innermost heading above it.
        opens: Whether it is the first block below that heading.
        start: First line in the file, with an opening fence.
        end: Last line, inclusive, with a closing fence.
        lines: Number and text of each line of text; one of them, at least, is not empty.
    """

    kind: Kind
    section: Section
    opens: bool
    start: int
    end: int
    lines: list[Line]


class Outline:
    """Collects the blocks of a file and knows the section that the next one belongs to.

    Attributes:
        blocks: What was found so far.
        section: The innermost heading at this place; of level 0 above the first one.
        titled: Whether a heading of level 1 was met.
    """

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self.section = Section(0, "", (), (0, 0), None)
        self.titled = False

    def begin(self, level: int, title: str, lines: tuple[int, int]) -> None:
        """Begins the section below a heading, and ends those that the heading ends."""
        self.leave(level)
        above = self.section.path
        self.section = Section(level, title, (*above, title) if title else above, lines, self.section)
        self.titled = self.titled or (level == 1 and bool(title))

    def leave(self, level: int) -> None:
        """Ends the open sections of this level and below; one without content becomes a block."""
        while (parent := self.section.parent) is not None and self.section.level >= level:
            empty = self.section
            self.section = parent
            if empty.title and not empty.used:
                self.add(Kind.TITLE, *empty.lines, [(empty.lines[0], empty.title)])

    def add(self, kind: Kind, start: int, end: int, lines: list[Line]) -> None:
        """Adds a block to the section, unless it has no text: a fence may be empty."""
        if not lines[0][1] and not any(text for _, text in lines):
            return
        self.blocks.append(Block(kind, self.section, not self.section.used, start, end, lines))
        above: Section | None = self.section
        while above is not None and not above.used:
            above.used = True
            above = above.parent


def dedented(lines: list[Line]) -> list[Line]:
    """Lines without the space that all of them begin with."""
    margin = min((len(text) - len(text.lstrip()) for _, text in lines if text.strip()), default=0)
    return [(number, text[margin:].rstrip()) for number, text in lines]
