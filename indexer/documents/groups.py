"""Groups of a file: what stands above each block within its section, and which blocks are labels alone.

A label is a line in bold, a line such as "Mia:" above a list, a table or code, a short list item with others below it,
or the header of a table. Its words are those of every block below it, so it is no block of its own.

Invariants: pure; one pass, linear; a label is left out only where another block takes its words; a sentence is never
left out; at most `_MOST_PARENTS` list items stand above a block, the nearest ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import NamedTuple

from indexer.common.patterns import lazy_regex
from indexer.common.scripts import WIDE
from indexer.documents.blocks import Block, Kind

_MOST_PARENTS = 4
_LABEL_CHARS = 60
_TITLE_CHARS = 120
# Words of a label: of a bare list item, and of a line in bold or with a colon, which says that it is one.
_BARE_WORDS, _MARKED_WORDS = 5, 8
_WIDE_PER_WORD = 2
_BOLD = lazy_regex(r"(?:\*\*|__)([^*_\n]+?)(?:\*\*|__)[ \t]*[:：]?")
_TASK = lazy_regex(r"\[[ xX]\][ \t]+")
_EMPHASIS = lazy_regex(r"\*\*|__|~~|`")
_LINK = lazy_regex(r"\[\[(?:[^\[\]|]*\|)?([^\[\]]*)\]\]|\[([^\[\]]*)\]\([^()\s]*\)")
_WIDE = lazy_regex(f"[{WIDE}]")
_WORD = lazy_regex(r"[^\W_]+")
_VALUE = lazy_regex(r"[:：=]\s*\S")
_ENDS = tuple(".!?;。！？；…")
# A name may have these; a text with others of their kind is a sentence.
_IN_NAMES = frozenset("the my our her his their your of and for".split())
_BELOW_COLON = (Kind.ITEM, Kind.ROW, Kind.HEADER, Kind.CODE)


class Place(NamedTuple):
    """A block, and where it stands in its section.

    Attributes:
        above: Labels and list items above it, outermost first.
        columns: The header of its table; empty for what is no row of one.
        parent: True for a list item that stays a block of its own and has others below it.
    """

    block: Block
    above: tuple[str, ...]
    columns: str
    parent: bool


def place_blocks(blocks: Sequence[Block]) -> Iterator[tuple[int, Place]]:
    """The blocks that are not labels alone, with their positions."""
    group = _Group()
    for at, (block, following) in enumerate(zip_longest(blocks, blocks[1:])):
        below = following if following is not None and following.section is block.section else None
        place = group.read(block, below)
        if place is not None:
            yield at, place


class _Group:
    """The labels and list items that are open at a place."""

    def __init__(self) -> None:
        self._section: object = None
        self._bold = self._colon = self._columns = ""
        self._parents: list[tuple[int, str]] = []
        self._end = 0
        self._above: tuple[str, ...] = ()
        self._has_changed = False

    def read(self, block: Block, below: Block | None) -> Place | None:
        """Where a block stands; None for a label alone. `below` is the next block of its section."""
        if block.section is not self._section:
            self._section = block.section
            self._set(bold="", colon="")
            self._leave(0)
        self._leave(block.depth if block.kind is Kind.ITEM else block.depth + 1)
        columns = self._columns if block.kind is Kind.ROW and block.start <= self._end + 1 else ""
        self._columns, self._end = columns, block.end
        if block.kind is Kind.HEADER and below is not None and below.kind is Kind.ROW and below.start <= block.end + 2:
            self._columns, self._end = block.lines[0][1], block.end + 1
            return None
        if block.kind is Kind.TEXT and not block.depth and self._is_label(block, below):
            return None
        above = self._titles()
        if block.kind is Kind.ITEM and below is not None and _is_below(below, block):
            label = _label(block.lines[0][1])
            if label:
                self._parents.append((block.depth, label))
                self._has_changed = True
            if label and len(block.lines) == 1 and _is_item_label(block.lines[0][1]):
                return None
            return Place(block, above, columns, parent=bool(label))
        return Place(block, above, columns, parent=False)

    def _is_label(self, block: Block, below: Block | None) -> bool:
        """True for a paragraph that only names what stands below it; else what it ends is left."""
        if len(block.lines) == 1 and below is not None:
            text = block.lines[0][1]
            if (bold := _BOLD.fullmatch(text)) and _is_short(bold[1], _MARKED_WORDS) and not _is_bold(below):
                self._set(bold=_label(text), colon="")
                return True
            if text.endswith((":", "：")) and below.kind in _BELOW_COLON:
                self._set(bold=self._bold, colon=_label(text))
                return _is_short(text.rstrip(":： "), _MARKED_WORDS)
        self._set(bold=self._bold, colon="")
        return False

    def _set(self, *, bold: str, colon: str) -> None:
        self._has_changed = self._has_changed or (bold, colon) != (self._bold, self._colon)
        self._bold, self._colon = bold, colon

    def _leave(self, depth: int) -> None:
        while self._parents and self._parents[-1][0] >= depth:
            self._parents.pop()
            self._has_changed = True

    def _titles(self) -> tuple[str, ...]:
        if self._has_changed:
            parents = (label for _, label in self._parents[-_MOST_PARENTS:])
            self._above = tuple(filter(None, (self._bold, self._colon, *parents)))
            self._has_changed = False
        return self._above


def _is_below(block: Block, item: Block) -> bool:
    return block.depth > item.depth or (0 < block.depth == item.depth and block.kind is not Kind.ITEM)


def _is_bold(block: Block) -> bool:
    return block.kind is Kind.TEXT and len(block.lines) == 1 and _BOLD.fullmatch(block.lines[0][1]) is not None


def _label(text: str) -> str:
    """A label as a title: without marks and the colon at its end."""
    plain = _LINK.sub(lambda link: link[1] or link[2] or "", text) if "[" in text else text
    plain = _EMPHASIS.sub("", _TASK.sub("", plain)).strip().rstrip(":：").strip()
    return plain if len(plain) <= _TITLE_CHARS else plain[: _TITLE_CHARS - 1].rstrip() + "…"


def _is_item_label(text: str) -> bool:
    """True for a list item that names what stands below it, and states nothing itself."""
    if "#" in text:  # its tag is searched for by itself
        return False
    text = _TASK.sub("", text)
    if _BOLD.fullmatch(text) or text.endswith((":", "：")):
        return _is_short(_label(text), _MARKED_WORDS)
    from indexer.language.terms import STOP_WORDS  # with all that it loads, of no use to what has no lists

    words = (word.lower() for word in _WORD.findall(text))
    is_stated = any(word in STOP_WORDS and word not in _IN_NAMES for word in words)
    return not is_stated and _is_short(_label(text), _BARE_WORDS)


def _is_short(text: str, words: int) -> bool:
    """True for at most so many words that are no sentence and give no value."""
    if len(text) > _LABEL_CHARS or text.endswith(_ENDS) or _VALUE.search(text):
        return False
    wide = len(_WIDE.findall(text))
    return bool(text) and len(_WIDE.sub(" ", text).split()) + wide / _WIDE_PER_WORD <= words
