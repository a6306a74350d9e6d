"""Passages of a reStructuredText file: sections, paragraphs, list items, literal blocks.

Invariants: pure; linear in the length of the text; line ranges are exact; what a reader of the file would see is in
a passage or in the heading of one, but for comments and bare link targets. What is no valid markup is text.
"""

from __future__ import annotations

from indexer.common.patterns import lazy_regex
from indexer.documents.blocks import Kind, Line, Outline, dedent_lines
from indexer.documents.markdown import outline_passages, split_lines
from indexer.language.sentences import LIST_ITEM
from indexer.types import Passage

_ADORNMENT = lazy_regex(r"([!-/:-@\[-`{-~])\1+")
_DIRECTIVE = lazy_regex(r"\.\.\s+(?:\|[^|]*\|\s+)?([\w.+:-]*\w)\s?::(?:\s+(.*))?$")
_MARKUP = lazy_regex(r"\.\.(?:\s|$)")
_SEEN = lazy_regex(r"\.\.\s+(?:\[|\||_.*:\s+\S)|__\s+\S")
_FIELD = lazy_regex(r":[^:\s][^:]{0,80}:(?:\s|$)")
_LITERAL_DIRECTIVES = frozenset(
    "code code-block sourcecode literalinclude parsed-literal math raw productionlist prompt doctest testcode "
    "testoutput highlight csv-table list-table table graphviz digraph mermaid uml toctree autosummary ipython".split()
)
_SHORTEST_ADORNMENT = 4


def split_rst(text: str, *, path: str) -> list[Passage]:
    """Split a reStructuredText file into passages, in the order of their lines.

    Args:
        text: The whole file; line ends may be of any kind.
        path: Path of the file; a date in its name dates the passages that no heading dates.
    """
    lines = [line.expandtabs(8).rstrip() for line in split_lines(text)]
    reader = _Reader(lines)
    reader.read()
    return outline_passages(reader.outline, path=path)


class _Reader:
    """Reader of lines into the open block; `at` is the index of the next line."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self.at = 0
        self.outline = Outline()
        self.levels: dict[str, int] = {}
        self.kind = Kind.TEXT
        self.open: list[Line] = []

    def read(self) -> None:
        while self.at < len(self.lines):
            line = self.lines[self.at]
            if not line:
                self._close()
                self.at += 1
            elif not (self._read_heading(line) or self._read_markup(line)):
                self._read_text(line)
        self._close()
        self.outline.leave(1)

    def _line(self, at: int) -> str:
        return self.lines[at] if at < len(self.lines) else ""

    def _read_heading(self, line: str) -> bool:
        """Read a title with the line below it, and the one above it if there is one."""
        if self.open:
            return False
        if _ADORNMENT.fullmatch(line):
            title, below = self._line(self.at + 1).strip(), self._line(self.at + 2)
            if title and below == line and not _ADORNMENT.fullmatch(title):
                return self._begin_section(title, line[0] * 2, 3)
            if len(line) >= _SHORTEST_ADORNMENT and not title:
                self.at += 1  # a transition
                return True
            return False
        below = self._line(self.at + 1)
        if line[0] == " " or not _ADORNMENT.fullmatch(below):
            return False
        return len(below) >= min(len(line), _SHORTEST_ADORNMENT) and self._begin_section(line, below[0], 2)

    def _begin_section(self, title: str, style: str, lines: int) -> bool:
        level = self.levels.setdefault(style, len(self.levels) + 1)
        self.outline.begin(level, title, (self.at + 1, self.at + lines))
        self.at += lines
        return True

    def _read_markup(self, line: str) -> bool:
        body = line.lstrip()
        if not (_MARKUP.match(body) or body.startswith("__ ")):
            return False
        self._close()
        directive = _DIRECTIVE.match(body)
        indent = len(line) - len(body)
        if directive is None:
            end = self._end_of_indented(self.at + 1, indent)
            if _SEEN.match(body):
                self._add_block(Kind.ITEM, self.at, end)
            self.at = end
        elif directive[1].rpartition(":")[2] in _LITERAL_DIRECTIVES:
            end = self._end_of_indented(self.at + 1, indent)
            self._add_block(Kind.CODE, self.at, end)
            self.at = end
        else:
            # What stands below is read as if it stood alone.
            self._start(Kind.TEXT, " ".join(part for part in (f"{directive[1]}:", directive[2]) if part))
        return True

    def _read_text(self, line: str) -> None:
        body = line.lstrip()
        begins = LIST_ITEM.match(body) or _FIELD.match(body)
        if begins and (not self.open or self.kind is Kind.ITEM):
            self._close()
            self._start(Kind.ITEM, line)
        elif self.open:
            self.open.append((self.at + 1, line))
            self.at += 1
        else:
            self._start(Kind.TEXT, line)
        if body.endswith("::") and not self._line(self.at):
            self._read_literal(len(line) - len(body))

    def _read_literal(self, indent: int) -> None:
        """Read the block after a paragraph that ends with `::`."""
        self._close()
        first = self.at
        while first < len(self.lines) and not self.lines[first]:
            first += 1
        end = self._end_of_indented(first, indent)
        if end > first:
            self._add_block(Kind.CODE, first, end)
        self.at = max(first, end)

    def _end_of_indented(self, at: int, indent: int) -> int:
        """Index after the last line from `at` on that is indented more than `indent`."""
        end = at
        while at < len(self.lines):
            line = self.lines[at]
            if line:
                if len(line) - len(line.lstrip()) <= indent:
                    break
                end = at + 1
            at += 1
        return end

    def _start(self, kind: Kind, text: str) -> None:
        self.kind = kind
        self.open = [(self.at + 1, text)]
        self.at += 1

    def _add_block(self, kind: Kind, start: int, end: int) -> None:
        lines = [(number + 1, self.lines[number]) for number in range(start, end)]
        self.outline.add(kind, start + 1, end, dedent_lines(lines))

    def _close(self) -> None:
        if self.open:
            lines = [(at, text.strip()) for at, text in self.open]
            self.outline.add(self.kind, lines[0][0], lines[-1][0], lines)
        self.open = []
        self.kind = Kind.TEXT
