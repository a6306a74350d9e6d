"""Owns the way from source code to passages: definitions with what belongs to them, cut to a readable size.

Invariants: pure; linear in the length of the text; passages keep the order of their lines and share none, unless a
single line is too long for one; every line with something on it is in a passage; ranges are exact; no passage is
longer than `MAX_CHARS` or `MAX_LINES`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import accumulate

from indexer.documents.definitions import BLANK, Language, belongs_below, continues, depths, title
from indexer.documents.markdown import day_of_name, split_lines
from indexer.documents.pieces import pieces
from indexer.types import Passage

__all__ = ["MAX_CHARS", "MAX_LINES", "Language", "split_code"]

MAX_CHARS = 1_500
MAX_LINES = 60
# Neighbours are put together up to here, and smaller ones in any case.
_GOOD_CHARS = 900
_SMALL_CHARS = 200
# Definitions inside of definitions that are told apart.
_DEEPEST = 6


@dataclass(slots=True)
class _Block:
    """A definition, or the whole file: lines from `start` up to `end`, and the definitions in it."""

    start: int
    depth: int
    title: str = ""
    end: int = 0
    inner: list[_Block] = field(default_factory=list)


@dataclass(slots=True)
class _Chunk:
    """Lines that become one passage; `opens` if they begin the definition that `titles` ends with."""

    start: int
    end: int
    titles: tuple[str, ...]
    opens: bool


def split_code(text: str, *, path: str, language: Language) -> list[Passage]:
    """Splits source code into passages.

    Args:
        text: The whole file; line ends may be of any kind.
        path: Where it lies; a date in its name dates the passages.
        language: How its blocks are told apart.

    Returns:
        The passages in the order of their lines; none for an empty file.
    """
    lines = [line.rstrip() for line in split_lines(text)]
    day = day_of_name(path)
    chunks = _Chunks(lines)
    chunks.add(_outline(lines, language), ())
    return [
        Passage(
            start_line=chunk.start + 1,
            end_line=chunk.end,
            text=words,
            heading=chunk.titles,
            opens_section=chunk.opens and first,
            date=day,
        )
        for chunk in chunks.found
        for first, words in _texts(lines[chunk.start : chunk.end])
    ]


def _outline(lines: list[str], language: Language) -> _Block:
    """The definitions of a file, each with the comments and decorators right above it."""
    found = depths(lines, language)
    root = _Block(0, BLANK, end=len(lines))
    stack, end, above = [root], 0, -1
    for at, depth in enumerate(found):
        if depth == BLANK:
            above = -1
            continue
        line = lines[at]
        goes_on = continues(line)
        while depth < stack[-1].depth or (depth == stack[-1].depth and not goes_on):
            stack.pop().end = end
        if above >= 0 and depth < found[above]:
            above = -1
        named = title(lines, at, language) if len(stack) <= _DEEPEST else ""
        if named:
            block = _Block(at if above < 0 else above, depth, named)
            stack[-1].inner.append(block)
            stack.append(block)
            above = -1
        elif above < 0 or (depth == found[above] and not goes_on):
            above = (above if above >= 0 else at) if belongs_below(line) else -1
        end = at + 1
    for block in stack[1:]:
        block.end = end
    return root


class _Chunks:
    """Collects chunks; knows what a range of lines holds."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self.found: list[_Chunk] = []
        self._sizes = list(accumulate((len(line) + 1 for line in lines), initial=0))

    def add(self, block: _Block, above: tuple[str, ...]) -> None:
        """Adds all lines of a block."""
        titles = (*above, block.title) if block.title else above
        if block.title and self._fits(block.start, block.end, MAX_CHARS):
            self._put(block.start, block.end, titles, opens=True)
            return
        joined: _Chunk | None = None
        for start, end, inner in self._atoms(block):
            if joined is not None and self._joins(joined, start, end):
                joined.end, joined.titles, joined.opens = end, titles, joined.start == block.start and bool(titles)
            elif inner is not None and not self._fits(start, end, MAX_CHARS):
                self.add(inner, titles)
                joined = None
            elif inner is not None:
                joined = self._put(start, end, (*titles, inner.title), opens=True)
            else:
                for first, last in self._fitting(start, end):
                    joined = self._put(first, last, titles, opens=first == block.start and bool(titles))

    def _atoms(self, block: _Block) -> Iterator[tuple[int, int, _Block | None]]:
        """The definitions in a block, and what stands between them by paragraphs."""
        at = block.start
        for inner in block.inner:
            yield from ((start, end, None) for start, end in self._paragraphs(at, inner.start))
            yield inner.start, inner.end, inner
            at = inner.end
        yield from ((start, end, None) for start, end in self._paragraphs(at, block.end))

    def _paragraphs(self, at: int, stop: int) -> Iterator[tuple[int, int]]:
        start = -1
        for number in range(at, stop):
            if self.lines[number]:
                start = number if start < 0 else start
            elif start >= 0:
                yield start, number
                start = -1
        if start >= 0:
            yield start, stop

    def _put(self, start: int, end: int, titles: tuple[str, ...], *, opens: bool) -> _Chunk:
        last = self.found[-1] if self.found else None
        if last is not None and not self._says_something(start, end) and self._fits(last.start, end, MAX_CHARS):
            last.end = end  # closing brackets alone
            return last
        chunk = _Chunk(start, end, titles, opens)
        self.found.append(chunk)
        return chunk

    def _joins(self, chunk: _Chunk, start: int, end: int) -> bool:
        small = self._size(chunk.start, chunk.end) < _SMALL_CHARS or self._size(start, end) < _SMALL_CHARS // 4
        return self._fits(chunk.start, end, MAX_CHARS if small else _GOOD_CHARS)

    def _fitting(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """A paragraph, in parts that fit if it does not; a line that is too long is a part of its own."""
        first = start
        for at in range(start, end):
            if at > first and not self._fits(first, at + 1, MAX_CHARS):
                yield first, at
                first = at
        yield first, end

    def _size(self, start: int, end: int) -> int:
        return self._sizes[end] - self._sizes[start]

    def _fits(self, start: int, end: int, max_chars: int) -> bool:
        return self._size(start, end) <= max_chars and end - start <= MAX_LINES

    def _says_something(self, start: int, end: int) -> bool:
        return any(char.isalnum() for line in self.lines[start:end] for char in line)


def _texts(lines: list[str]) -> Iterator[tuple[bool, str]]:
    """Whether it is the first, and the text of some lines without the space that all begin with, cut if need be."""
    margin = _margin([line[: len(line) - len(line.lstrip())] for line in lines if line])
    text = "\n".join(line[margin:] for line in lines)
    parts = [text] if len(text) <= MAX_CHARS else pieces(text, MAX_CHARS)
    for number, part in enumerate(parts):
        yield number == 0, part


def _margin(indents: list[str]) -> int:
    """How many characters all of some indents begin with."""
    first, last = min(indents), max(indents)
    return next((at for at, char in enumerate(first) if char != last[at]), len(first))
