"""Block structure of Markdown: lines in, blocks out, each with its section and its exact lines.

Invariants: one pass over the lines, linear in their length; what is no heading, marker, rule, table separator, fence
or comment is in the text of exactly one block, unless it has no words, such as an image; blocks keep the order of their
lines; a heading with a block below it is in the path of that block, one without becomes a block itself, so that no
title is lost.

CommonMark decides, except where notes are written more loosely: list items may be indented too far, table rows need
no separator row, and a number of four digits is a year, not a list marker. An HTML comment that is never closed is
text and hides nothing; one inside a code span is code. The lines of a comment are emptied, never removed, so line
numbers stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from indexer.common.patterns import lazy_regex
from indexer.documents.comments import COVERED, remove_comments

Line = tuple[int, str]


class Kind(Enum):
    """Kind of a block."""

    NONE = 0
    TEXT = 1
    ITEM = 2
    ROW = 3
    CODE = 4
    TITLE = 5  # a heading with nothing below it
    HEADER = 6  # the first row of a table, above its separator


@dataclass(slots=True, eq=False)
class Section:
    """A heading and the text below it.

    Attributes:
        path: The titles from the outermost heading to this one, without empty ones.
        lines: First and last line of the heading itself.
        used: True once a block was found below it.
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
        opens: True for the first block below that heading.
        start: First line in the file, with an opening fence.
        end: Last line, inclusive, with a closing fence.
        lines: Number and text of each line; at least one is not empty.
        depth: Number of list items that it stands in, itself included.
    """

    kind: Kind
    section: Section
    opens: bool
    start: int
    end: int
    lines: list[Line]
    depth: int = 0


class Outline:
    """The blocks of a file so far, and the section of the next one.

    Attributes:
        section: The innermost heading at this place; of level 0 above the first one.
        titled: True once a heading of level 1 was met.
    """

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self.section = Section(0, "", (), (0, 0), None)
        self.titled = False

    def begin(self, level: int, title: str, lines: tuple[int, int]) -> None:
        """Begin the section below a heading; sections of its level and deeper end."""
        self.leave(level)
        above = self.section.path
        self.section = Section(level, title, (*above, title) if title else above, lines, self.section)
        self.titled = self.titled or (level == 1 and bool(title))

    def leave(self, level: int) -> None:
        """End the open sections of this level and deeper; one without content becomes a block."""
        while (parent := self.section.parent) is not None and self.section.level >= level:
            empty = self.section
            self.section = parent
            if empty.title and not empty.used:
                self.add(Kind.TITLE, *empty.lines, [(empty.lines[0], empty.title)])

    def add(self, kind: Kind, start: int, end: int, lines: list[Line], depth: int = 0) -> None:
        """Add a block to the section, unless it has no text: a fence may be empty."""
        if not lines[0][1] and not any(text for _, text in lines):
            return
        self.blocks.append(Block(kind, self.section, not self.section.used, start, end, lines, depth))
        above: Section | None = self.section
        while above is not None and not above.used:
            above.used = True
            above = above.parent

    def mark_header(self, line: int) -> None:
        """Take the row that ends on a line for the header of the table below it."""
        if self.blocks and self.blocks[-1].kind is Kind.ROW and self.blocks[-1].end == line:
            self.blocks[-1] = self.blocks[-1]._replace(kind=Kind.HEADER)


def dedent_lines(lines: list[Line]) -> list[Line]:
    """Lines without the space that all of them begin with."""
    margin = min((len(text) - len(text.lstrip()) for _, text in lines if text.strip()), default=0)
    return [(number, text[margin:].rstrip()) for number, text in lines]


_MARKER = lazy_regex(r"([-*+]|[0-9]{1,3}[.)])(?:[ \t]+|$)")
_BULLET = lazy_regex(r"([-*+])(?:[ \t]+|$)")
_QUOTE = lazy_regex(r"[ \t]*>(?:[ \t]{0,4}>)*+[ \t]?")
_QUOTE_MARK = lazy_regex(r"[ \t]{0,4}>[ \t]?")
# Longer text above "---" was meant as a paragraph with a rule below it, and so were several lines: records are written
# with rules between them.
_LONGEST_SETEXT = 200
_DEEPEST_LINE = 64  # list markers read on one line; more of them is no list that a person wrote


def read_blocks(lines: list[str], first: int = 0) -> Outline:
    """The blocks of a Markdown file.

    Args:
        lines: All lines, without their ends and control characters; comments are taken out of them.
        first: Index of the first line below the front matter.
    """
    reader = _Reader(lines, first)
    reader.read()
    return reader.outline


class _OpenItems(list[int]):
    """Columns at which the contents of the open list items begin."""

    __slots__ = ()

    def base(self, column: int) -> int:
        """Column of the innermost item's contents that reaches to a column; 0 if none."""
        for content in reversed(self):
            if content <= column:
                return content
        return 0

    def leave(self, column: int) -> None:
        """Close the items whose contents begin behind a column."""
        while self and self[-1] > column:
            self.pop()


class _Reader:
    """Reader of lines, one by one, into the open block; `at` is the number of the present line."""

    __slots__ = (
        "at", "depth", "end", "kind", "level", "lines", "lists", "open", "outline", "prose", "start", "table",
    )  # fmt: skip

    def __init__(self, lines: list[str], first: int) -> None:
        self.lines = lines
        self.at = first
        self.outline = Outline()
        self.lists = _OpenItems()
        self.depth = 0  # of block quotes
        self.kind = Kind.NONE
        self.level = 0  # how many list items were open where the block began
        self.start = self.end = 0
        self.open: list[Line] = []
        self.prose = False  # the next line of text would continue the paragraph
        self.table = False

    def read(self) -> None:
        lines = self.lines
        count = len(lines)
        while self.at < count:
            line = lines[self.at]
            if "<!--" in line and not self._in_code(line):
                line = remove_comments(lines, self.at)
            self.at += 1
            body = line.strip()
            if body:
                self._read_line(line, body)
            elif line != COVERED:
                self.prose = self.table = False
        self._close()
        self.outline.leave(1)

    def _read_line(self, line: str, body: str) -> None:
        column = 0 if line[0] == body[0] else _column(line)
        if body[0] == ">" or self.depth:
            quoted_text = self._unquote(column, body)
            if quoted_text is None:
                return
            if quoted_text is not body:
                body = quoted_text.strip()
                column = max(_column(quoted_text), column if self.lists and not self.depth else 0)
        if column and column - self.lists.base(column) >= 4 and self._read_indented(column, body):
            return
        handler = _HANDLERS.get(body[0])
        if handler is None or not handler(self, column, body):
            self._read_text(column, body)

    def _read_indented(self, column: int, body: str) -> bool:
        """Read a line indented as code; False for a list item that is merely indented too far."""
        if not self.prose:
            self._read_code(column, body)
        elif self.lists and self.kind is Kind.ITEM and _BULLET.match(body):
            return False
        else:
            self._add(body)
        return True

    def _read_text(self, column: int, body: str) -> None:
        if self.table and "|" in body:
            self._add_row(body)
        elif self.prose:
            self._add(body)
        else:
            self.lists.leave(column)
            if not self._in_item():
                self._begin(Kind.TEXT)
            self._add(body)

    def _read_code(self, column: int, body: str) -> None:
        self.lists.leave(column)
        base = self.lists.base(column)
        if not self._in_item():
            if self.kind is not Kind.CODE or self.level != len(self.lists):
                self._begin(Kind.CODE)
            elif self.open:
                self.open.extend((number, "") for number in range(self.open[-1][0] + 1, self.at))
        self._add(" " * (column - base - 4) + body)
        self.prose = False

    def _read_heading(self, column: int, body: str) -> bool:
        level = len(body) - len(body.lstrip("#"))
        if level > 6 or body[level : level + 1] not in ("", " ", "\t") or self.lists.base(column):
            return False
        title = body[level:].strip()
        bare = title.rstrip("#")
        if not bare or bare[-1] in " \t":
            title = bare.rstrip()
        if self.depth:
            self._begin(Kind.TEXT)
            if title:
                self._add(title)
            self._close()
        else:
            self._begin_section(level, title, self.at)
        return True

    def _read_dash(self, column: int, body: str) -> bool:
        if body[-1] in "-|: " and not body.strip("-|: \t"):
            if "|" in body or ":" in body:
                return self._read_separator(column, body)
            if len(body) > 1:
                return self._read_underline(column, body) or self._read_rule(column, body)
        return self._read_item(column, body)

    def _read_star(self, column: int, body: str) -> bool:
        return self._read_rule(column, body) or self._read_item(column, body)

    def _read_rule(self, column: int, body: str) -> bool:
        mark = body[0]
        if body[-1] != mark or body.strip(mark + " \t") or body.count(mark) < 3:
            return False
        self._close()
        self.lists.leave(column)
        return True

    def _read_underline(self, column: int, body: str) -> bool:
        title = self.prose and self.kind is Kind.TEXT and not (self.depth or self.level or self.lists.base(column))
        if not title or len(body) < 2 or body.strip(body[0]):
            return False
        lines = len(self.open)
        if sum(len(text) for _, text in self.open) > _LONGEST_SETEXT or (body[0] == "-" and lines > 1):
            self._close()
            return True
        text, start = " ".join(text for _, text in self.open), self.start
        self.open.clear()
        self._begin_section(1 if body[0] == "=" else 2, text, start)
        return True

    def _read_pipe(self, column: int, body: str) -> bool:
        if not body.strip("-|: \t"):
            return self._read_separator(column, body)
        if body[-1] != "|" or len(body) < 2:
            return False
        if not self.prose:
            self.lists.leave(column)
        self._add_row(body)
        return True

    def _read_separator(self, column: int, body: str) -> bool:
        """Read the line below a table's header row, which may have been taken for a paragraph."""
        if body.strip("|-: \t") or "-" not in body or "|" not in body or _BULLET.match(body):
            return body[0] == "-" and self._read_item(column, body)
        if self.prose and self.kind is Kind.TEXT and "|" in self.open[-1][1]:
            header = self.open.pop()
            self.end = self.open[-1][0] if self.open else 0
            self._begin(Kind.HEADER)
            self.open.append(header)
            self.start = self.end = header[0]
        self._close()
        self.outline.mark_header(self.at - 1)
        self.table = True
        return True

    def _add_row(self, body: str) -> None:
        table = self.table
        self._begin(Kind.ROW)
        self._add(body)
        self._close()
        self.table = table

    def _read_item(self, column: int, body: str) -> bool:
        marker = _MARKER.match(body)
        if marker is None or (self.prose and not self._interrupts(column, marker)):
            return False
        self._close()
        self.lists.leave(column)
        while marker is not None:
            column += _width(marker, column, len(body))
            self.lists.append(column)
            at = marker.end()
            marker = _BULLET.match(body, at) if len(self.lists) < _DEEPEST_LINE else None
        self._begin(Kind.ITEM)
        text = body[at:]
        if text[:1] == ">":
            text = text[_end_of_quote(text) :]
        is_fence = text[:3] in ("```", "~~~") and self._read_fence(column, text)
        if text and not is_fence:
            self._add(text)
        return True

    def _interrupts(self, column: int, marker: re.Match[str]) -> bool:
        """True if a list may begin in the middle of a paragraph: "14. July" in one is no list."""
        if self.level and column < self.lists[self.level - 1]:
            return True
        return marker.end() < len(marker.string) and marker[1] in ("-", "*", "+", "1.", "1)")

    def _read_fence(self, column: int, body: str) -> bool:
        mark = body[0]
        run = len(body) - len(body.lstrip(mark))
        if run < 3 or (mark == "`" and mark in body[run:]):
            return False
        self.lists.leave(column)
        if not self._in_item():
            self._begin(Kind.CODE)
        self.end = self.at
        self._read_fenced(column, mark * run)
        self.prose = False
        if self.kind is Kind.CODE:
            self._close()
        return True

    def _read_fenced(self, indent: int, fence: str) -> None:
        """Read the lines of a fence up to the closing fence, or the end of the quote or item around it."""
        base = self.lists.base(indent)
        for number in range(self.at + 1, len(self.lines) + 1):
            line = _inside_quotes(self.lines[number - 1], self.depth)
            if line is None:
                return
            body = line.strip()
            column = _column(line)
            if body and column < base:
                return
            self.at = number
            if body.startswith(fence) and column - base < 4 and not body.strip(fence[0]):
                self.end = number
                return
            if body:
                self.end = number
            code = " " * (column - indent) + body if indent else line  # a negative count gives no space
            self.open.append((number, code.rstrip()))

    def _unquote(self, column: int, body: str) -> str | None:
        """Text of a line inside its block quotes; None if nothing more is to be read in it."""
        inside = body[_end_of_quote(body) :] if body[0] == ">" and (column < 4 or self.lists) else body
        if not self.depth and self.lists.base(column):
            depth = 0  # a quote inside a list item is text of that item
        else:
            depth = body.count(">", 0, len(body) - len(inside))
        text = inside.strip()
        if depth < self.depth and self.prose and text and text[0] not in _HANDLERS:
            self._add(text)
            return None
        if depth != self.depth:
            self._close()
            self.lists.clear()
            self.depth = depth
        if not text:
            self.prose = self.table = False
            return None
        return inside

    def _begin(self, kind: Kind) -> None:
        self._close()
        self.kind = kind
        self.level = len(self.lists)
        self.start = self.end = self.at

    def _add(self, text: str) -> None:
        self.open.append((self.at, text))
        self.end = self.at
        self.prose = True

    def _close(self) -> None:
        if self.open:
            from indexer.language.markup import has_words  # with patterns that what only names blocks does not need

            if self.kind is Kind.CODE or has_words("\n".join(text for _, text in self.open)):
                self.outline.add(self.kind, self.start, self.end, self.open, self.level)
            self.open = []
        self.kind = Kind.NONE
        self.prose = self.table = False

    def _begin_section(self, level: int, title: str, start: int) -> None:
        self._close()
        self.lists.clear()
        self.outline.begin(level, title, (start, self.at))

    def _in_item(self) -> bool:
        return self.kind is Kind.ITEM and self.level == len(self.lists)

    def _in_code(self, line: str) -> bool:
        if self.prose or line[0] not in " \t":
            return False
        column = _column(line)
        return column - self.lists.base(column) >= 4


_HANDLERS: dict[str, Callable[[_Reader, int, str], bool]] = {
    "#": _Reader._read_heading,
    "-": _Reader._read_dash,
    "*": _Reader._read_star,
    "_": _Reader._read_rule,
    "=": _Reader._read_underline,
    "|": _Reader._read_pipe,
    ":": _Reader._read_separator,
    "`": _Reader._read_fence,
    "~": _Reader._read_fence,
    **dict.fromkeys("+0123456789", _Reader._read_item),
}


def _column(line: str) -> int:
    return len(line[: len(line) - len(line.lstrip())].expandtabs(4))


def _width(marker: re.Match[str], column: int, length: int) -> int:
    text, mark = marker[0], len(marker[1])
    if marker.end() == length:
        return mark + 1
    wide = len((" " * (column % 4) + text).expandtabs(4)) - column % 4 if "\t" in text else len(text)
    return wide if wide <= mark + 4 else mark + 1


def _inside_quotes(line: str, depth: int) -> str | None:
    """A line without the marks of so many open quotes; None outside of them."""
    at = 0
    for _ in range(depth):
        mark = _QUOTE_MARK.match(line, at)
        if mark is None:
            return None
        at = mark.end()
    return line[at:]


def _end_of_quote(text: str) -> int:
    match = _QUOTE.match(text)
    return match.end() if match else 0
