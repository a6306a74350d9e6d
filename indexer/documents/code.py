"""Passages of source code: definitions with their comments and decorators, cut to a readable size.

Invariants: pure; linear in the length of the text; passages keep the order of their lines and share none, unless a
single line is too long for one; every line with text is in a passage; ranges are exact. The structure is guessed
without a parser: where brackets do not add up, the indentation decides, and a wrong guess moves a border, never
loses a line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from itertools import accumulate

from indexer.common.patterns import lazy_regex
from indexer.documents.markdown import split_lines
from indexer.language.dates import day_of_name
from indexer.language.ornaments import ornament
from indexer.language.sentences import parts_of
from indexer.types import Passage

BLANK = -1
# Of a line, this much is looked at.
_HEAD_CHARS = 240
_TITLE_CHARS = 80


class CodeLanguage(Enum):
    """How the blocks of a language are told apart."""

    INDENTED = 0
    BRACES = 1
    KEYS = 2  # YAML
    TABLES = 3  # TOML, INI


_TOKEN = lazy_regex(
    r"""
    \n | [(\[{] | [)\]}]
    | //[^\n]*+
    | /\*(?:[^*]|\*(?!/))*+(?:\*/|\Z)
    | "(?:[^"\\\n]|\\.)*+"?
    | `(?:[^`\\]|\\.)*+`?
    | '(?:[^'\\\n]|\\[^\n]{1,8}?)' | '(?:[^'\\\n]|\\.){2,200}+'(?![A-Za-z0-9_])
    """,
    re.VERBOSE | re.DOTALL,
)
_TRIPLE = lazy_regex(r"\"\"\"|'''")
_COMMENT = lazy_regex(
    r"(?:#(?!include|if|endif|else|elif|define|undef|pragma|import|region)|//|/\*|\*|--|@|;|\[[^\W\d][^=]*\]\s*$)"
)
_CONTINUES = lazy_regex(
    r"[{})\]]|(?:end|fi|done|esac)(?:[\s;,.)]*$|\s*[#;])|(?:else|elif|elsif|except|finally|catch|rescue)\b"
)
_PYTHON = lazy_regex(r"(?:async\s+)?(def|class)\s+(\w+)\s*[(:\[]")
_MODIFIERS = (
    r"(?:(?:export|default|public|private|protected|internal|static|final|abstract|async|unsafe|extern|const|inline"
    r"|virtual|override|sealed|partial|open|data|readonly|declare|pub|pub\([\w:\s]{1,40}\)|local|suspend|fileprivate"
    r"|mutating|implicit|case|tailrec|operator|typedef|constexpr|isolated|indirect)\s+){0,6}+"
)
_KEYWORD = lazy_regex(
    _MODIFIERS
    + r"(def|defp|defmodule|defmacro|class|function\*?|func|fn|fun|sub|interface|struct|enum|trait|impl|module"
    r"|namespace|protocol|extension|object|record|mod|union|macro|type|actor|service|message|contract)"
    r"\s*(?:<[^<>]{0,80}>)?\s+(?:\([^()]{0,80}\)\s*)?(?:\[[^\]]{0,40}\]\s*)?((?:self\.)?[^\W\d][\w$.:!?']*)"
)
_SQL = lazy_regex(
    r"create\s+(?:or\s+replace\s+)?(?:temp(?:orary)?\s+|unique\s+|materialized\s+){0,2}"
    r"(table|view|function|procedure|trigger|index|type|schema)\s+(?:if\s+not\s+exists\s+)?([\w.\"`\[\]]+)",
    re.IGNORECASE,
)
_ARROW = lazy_regex(
    r"(?:export\s+)?(?:default\s+)?(?:const|let|var)\s+([\w$]+)[^=]{0,80}=\s*(?:async\s*)?"
    r"(?:function\b|\(|[\w$]+\s*=>)"
)
_LAST_NAME = lazy_regex(r"(~?[^\W\d][\w$]*[!?]?)\s*$")
_FIRST_WORD = lazy_regex(r"[A-Za-z_]+")
_NO_NAMES = frozenset(
    "if for while switch catch return else do new throw case await yield using lock foreach with assert delete sizeof "
    "guard when match elif synchronized defer go select unless until typeof instanceof in of and or not import from "
    "goto".split()
)
_KEY = lazy_regex(r"(?:-\s+)?[\"']?([^\W_][^:#\"'{}\[\]]{0,60})[\"']?:\s*(?:[|>&!][^\s]*)?(?:\s+#.*)?$")
_TABLE = lazy_regex(r"\[{1,2}\s*([^\[\]]{1,100}?)\s*\]{1,2}\s*(?:[#;].*)?$")


def _depths(lines: list[str], language: CodeLanguage) -> list[int]:
    """Depth of each line at its beginning; `BLANK` for empty lines."""
    if language is CodeLanguage.TABLES:
        return _table_depths(lines)
    if language is CodeLanguage.BRACES:
        bracket_depths = _bracket_depths(lines)
        if bracket_depths is not None:
            return bracket_depths
    indents = [_indent(line, is_key=language is CodeLanguage.KEYS) for line in lines]
    return _with_long_strings(lines, indents) if language is CodeLanguage.INDENTED else indents


def title(lines: list[str], at: int, language: CodeLanguage) -> str:
    """Name of the definition on a line, such as "class Store" or "open()"; empty if there is none."""
    head = lines[at].strip()[:_HEAD_CHARS]
    if language is CodeLanguage.KEYS:
        match = _KEY.match(head)
        return match[1].strip() if match else ""
    if language is CodeLanguage.TABLES:
        match = _TABLE.match(head)
        return match[1] if match else ""
    text = _keyword_title(head)
    if not text and language is CodeLanguage.BRACES:
        text = _call_title(lines, at, head)
    return text[:_TITLE_CHARS]


def _continues(line: str) -> bool:
    """True if a line continues the block above it at the same depth, such as `else:` or `}`."""
    return _CONTINUES.match(line.lstrip()) is not None


def _belongs_below(line: str) -> bool:
    """True for a comment, a decorator or an attribute: it belongs to the definition below."""
    return _COMMENT.match(line.lstrip()) is not None


def _keyword_title(head: str) -> str:
    match = _PYTHON.match(head) or _KEYWORD.match(head)
    if match:
        if match[1] in ("impl", "extension"):
            return re.split(r"[{;]", head, maxsplit=1)[0].strip()
        return f"{match[1]} {match[2].rstrip(':')}"
    if head[:6].lower() == "create" and (sql := _SQL.match(head)):
        return f"{sql[1].lower()} {sql[2]}"
    arrow = _ARROW.match(head)
    return f"function {arrow[1]}" if arrow and ("=>" in head or head.endswith("(") or "function" in head) else ""


def _call_title(lines: list[str], at: int, head: str) -> str:
    """Title of a function without a keyword, as in C: a name, arguments, a body."""
    paren = head.find("(")
    first = _FIRST_WORD.match(head)
    if paren < 1 or (first and first[0] in _NO_NAMES):
        return ""
    before = head[:paren]
    name = _LAST_NAME.search(before)
    if name is None or name[1] in _NO_NAMES or any(char in before[: name.start()] for char in "=.\"'#/;!|+"):
        return ""
    below = lines[at + 1].lstrip()[:1] if at + 1 < len(lines) else ""
    opens = head.endswith("{") or (below == "{" and not head.endswith((";", ",")))
    goes_on = head.count("(") > head.count(")") and bool(before[: name.start()].strip())
    return f"{name[1]}()" if opens or goes_on else ""


def _indent(line: str, *, is_key: bool = False) -> int:
    body = line.lstrip()
    if not body:
        return BLANK
    column = len(line) - len(body)
    if "\t" in line[:column]:
        column = len(line[:column].expandtabs(4))
    # A list may stand as far left as the key above it.
    return 2 * column + body.startswith("- ") if is_key else column


def _with_long_strings(lines: list[str], indents: list[int]) -> list[int]:
    """Depths with the lines of a multi-line string below the line that opens it."""
    numbers, inside, mark = list(indents), BLANK, ""
    for at, line in enumerate(lines):
        if inside != BLANK and indents[at] != BLANK:
            numbers[at] = max(inside + 1, indents[at])
        for match in _TRIPLE.finditer(line):
            if not mark:
                mark, inside = match[0], numbers[at]
            elif match[0] == mark:
                mark, inside = "", BLANK
    return numbers if not mark else indents


def _bracket_depths(lines: list[str]) -> list[int] | None:
    """Number of open brackets at the beginning of each line; None if they do not add up."""
    starts, depth = [0], 0
    for token in _TOKEN.finditer("\n".join(lines)):
        text = token[0]
        if text == "\n":
            starts.append(depth)
        elif text in "([{":
            depth += 1
        elif text in ")]}":
            depth -= 1
            if depth < 0:
                return None
        else:
            starts.extend([depth] * text.count("\n"))
    if depth:
        return None
    return [depth if line.strip() else BLANK for line, depth in zip(lines, starts, strict=True)]


def _table_depths(lines: list[str]) -> list[int]:
    """Depths where headers, with the comments right above them, stand above all else."""
    blanks = [BLANK if not line.strip() else 1 for line in lines]
    above = False
    for at in range(len(lines) - 1, -1, -1):
        body = lines[at].strip()
        above = _TABLE.match(body[:_HEAD_CHARS]) is not None or (above and body.startswith(("#", ";")))
        if above:
            blanks[at] = 0
    return blanks


MAX_CODE_CHARS = 1_500
MAX_CODE_LINES = 60
# Neighbours are put together up to here, and smaller ones in any case.
_GOOD_CHARS = 900
_SMALL_CHARS = 200
# Definitions inside of definitions that are told apart.
_DEEPEST = 6


@dataclass(slots=True)
class _Block:
    """A definition or the whole file: lines from `start` up to `end`, and the definitions inside."""

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


def split_code(text: str, *, path: str, language: CodeLanguage) -> list[Passage]:
    """Split source code into passages, in the order of their lines.

    Args:
        text: The whole file; line ends may be of any kind.
        path: Path of the file; a date in its name dates the passages.
        language: How its blocks are told apart.
    """
    lines = [line.rstrip() for line in split_lines(text)]
    day = ornament("days", None, day_of_name, path)
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
        for chunk in chunks.chunks
        for first, words in _texts(lines[chunk.start : chunk.end])
    ]


def _outline(lines: list[str], language: CodeLanguage) -> _Block:
    """The definitions of a file, each with the comments and decorators right above it."""
    depths = _depths(lines, language)
    root = _Block(0, BLANK, end=len(lines))
    stack, end, above = [root], 0, -1
    for at, depth in enumerate(depths):
        if depth == BLANK:
            above = -1
            continue
        line = lines[at]
        goes_on = _continues(line)
        while depth < stack[-1].depth or (depth == stack[-1].depth and not goes_on):
            stack.pop().end = end
        if above >= 0 and depth < depths[above]:
            above = -1
        named_title = title(lines, at, language) if len(stack) <= _DEEPEST else ""
        if named_title:
            block = _Block(at if above < 0 else above, depth, named_title)
            stack[-1].inner.append(block)
            stack.append(block)
            above = -1
        elif above < 0 or (depth == depths[above] and not goes_on):
            above = (above if above >= 0 else at) if _belongs_below(line) else -1
        end = at + 1
    for block in stack[1:]:
        block.end = end
    return root


class _Chunks:
    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self.chunks: list[_Chunk] = []
        self._sizes = list(accumulate((len(line) + 1 for line in lines), initial=0))

    def add(self, block: _Block, above: tuple[str, ...]) -> None:
        titles = (*above, block.title) if block.title else above
        if block.title and self._fits(block.start, block.end, MAX_CODE_CHARS):
            self._put(block.start, block.end, titles, opens=True)
            return
        chunk: _Chunk | None = None
        for start, end, inner in self._atoms(block):
            if chunk is not None and self._joins(chunk, start, end):
                chunk.end, chunk.titles, chunk.opens = end, titles, chunk.start == block.start and bool(titles)
            elif inner is not None and not self._fits(start, end, MAX_CODE_CHARS):
                self.add(inner, titles)
                chunk = None
            elif inner is not None:
                chunk = self._put(start, end, (*titles, inner.title), opens=True)
            else:
                for first, last in self._fitting(start, end):
                    chunk = self._put(first, last, titles, opens=first == block.start and bool(titles))

    def _atoms(self, block: _Block) -> Iterator[tuple[int, int, _Block | None]]:
        """The definitions in a block, and the paragraphs between them."""
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
        last = self.chunks[-1] if self.chunks else None
        if last is not None and not self._says_something(start, end) and self._fits(last.start, end, MAX_CODE_CHARS):
            last.end = end  # closing brackets alone
            return last
        chunk = _Chunk(start, end, titles, opens)
        self.chunks.append(chunk)
        return chunk

    def _joins(self, chunk: _Chunk, start: int, end: int) -> bool:
        small = self._size(chunk.start, chunk.end) < _SMALL_CHARS or self._size(start, end) < _SMALL_CHARS // 4
        return self._fits(chunk.start, end, MAX_CODE_CHARS if small else _GOOD_CHARS)

    def _fitting(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Parts of a paragraph that fit; a line that is too long is a part of its own."""
        first = start
        for at in range(start, end):
            if at > first and not self._fits(first, at + 1, MAX_CODE_CHARS):
                yield first, at
                first = at
        yield first, end

    def _size(self, start: int, end: int) -> int:
        return self._sizes[end] - self._sizes[start]

    def _fits(self, start: int, end: int, max_chars: int) -> bool:
        return self._size(start, end) <= max_chars and end - start <= MAX_CODE_LINES

    def _says_something(self, start: int, end: int) -> bool:
        return any(char.isalnum() for line in self.lines[start:end] for char in line)


def _texts(lines: list[str]) -> Iterator[tuple[bool, str]]:
    """Text of some lines without their common margin, cut if it is too long; each part with True for the first."""
    margin = _margin([line[: len(line) - len(line.lstrip())] for line in lines if line])
    text = "\n".join(line[margin:] for line in lines)
    parts = [text] if len(text) <= MAX_CODE_CHARS else parts_of(text, MAX_CODE_CHARS)
    for number, part in enumerate(parts):
        yield number == 0, part


def _margin(indents: list[str]) -> int:
    """Number of characters that all indents have in common at their beginning."""
    first, last = min(indents), max(indents)
    return next((at for at, char in enumerate(first) if char != last[at]), len(first))
