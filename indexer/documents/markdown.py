"""Passages of a Markdown file, each with its headings, its labels, its lines and its day.

A label is a line in bold, a line such as "Mia:" above a list, a table or code, a short list item with others below it,
or the header of a table. Its words are those of every block below it, so it is no block of its own.

Invariants: pure; linear in the length of the text; whatever a person wrote in words, outside of comments, is in a
passage, or in the heading or the columns of one; line ranges are exact; no passage is longer than asked for; a label is
left out only where another block takes its words, a sentence never; at most `_MOST_PARENTS` list items stand above a
block, the nearest ones.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, zip_longest
from typing import NamedTuple

from indexer.common.patterns import lazy_regex
from indexer.common.scripts import WIDE
from indexer.documents.blocks import Block, Kind, Line, Outline, Section, read_blocks
from indexer.documents.entries import Noted, noted_lines, tags_of
from indexer.documents.front_matter import read_front_matter
from indexer.language.dates import day_of_name, has_time_words, heading_day
from indexer.language.markup import without_data
from indexer.language.names import speaker_of
from indexer.language.ornaments import ornament
from indexer.language.questions import SHORT_CHARS, asks_shortly
from indexer.language.sentences import end_of_part
from indexer.language.terms import is_unlatin
from indexer.types import Cue, Passage

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


def _place_blocks(blocks: Sequence[Block]) -> Iterator[tuple[int, Place]]:
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
    from indexer.language.tables import ANY
    from indexer.language.terms import STOP_WORDS  # with all that it loads, of no use to what has no lists

    words = (word.lower() for word in _WORD.findall(text))
    is_stated = any(word in STOP_WORDS and word not in ANY.grammar.name_words for word in words)
    return not is_stated and _is_short(_label(text), _BARE_WORDS)


def _is_short(text: str, words: int) -> bool:
    """True for at most so many words that are no sentence and give no value."""
    if len(text) > _LABEL_CHARS or text.endswith(_ENDS) or _VALUE.search(text):
        return False
    wide = len(_WIDE.findall(text))
    return bool(text) and len(_WIDE.sub(" ", text).split()) + wide / _WIDE_PER_WORD <= words


# Part of an index's fingerprint: it changes whenever the same file could give other passages.
PASSAGE_RULES = "passages-6"
MAX_CHARS = 1200

_CONTROLS = lazy_regex(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")
_HOUR = lazy_regex(r"([01]?[0-9]|2[0-3]):([0-5][0-9])")

# Flags are looked up: to combine them costs more than to find them.
CUES = {
    (time, is_asked, answers, unlatin): Cue(
        Cue.TIME * time | Cue.QUESTION * is_asked | Cue.ANSWER * answers | Cue.UNLATIN * unlatin
    )
    for time in (False, True)
    for is_asked in (False, True)
    for answers in (False, True)
    for unlatin in (False, True)
}


# What is noted of each line of an entry; others were written by hand.
_Noted = Mapping[int, Noted]
_NOTHING_NOTED: _Noted = {}


def split_markdown(text: str, *, path: str, max_chars: int = MAX_CHARS) -> list[Passage]:
    """Split a Markdown file into passages, in the order of their lines.

    Args:
        text: The whole file; line ends may be of any kind.
        path: Path of the file; a date in its name dates the passages that no heading dates.
        max_chars: The most characters of a passage.

    Raises:
        ValueError: `max_chars` is less than 1.
    """
    return keep_shared_labels(read_speakers(text, path=path, max_chars=max_chars))


@dataclass(frozen=True, slots=True, kw_only=True)
class SpokenPassages:
    """Passages before it is known whose name is a speaker's.

    Attributes:
        passages: Each is labelled with the name that it begins with, even if no other passage has it.
        depths: How many of each one's titles are those of the file and its sections.
        file_date: Date of the front matter.
        file_tags: Tags of the front matter.
    """

    passages: list[Passage]
    depths: list[int]
    file_date: dt.date | None
    file_tags: tuple[str, ...] = ()


def keep_shared_labels(passages: SpokenPassages, known_passages: Sequence[Passage] = ()) -> list[Passage]:
    """The passages, with only those labels that at least two of them carry.

    Args:
        passages: The passages.
        known_passages: An earlier result for the first of them; what stays as it was is the same object.
    """
    counts = Counter(p.label for p in passages.passages)
    shared_names = {name for name, count in counts.items() if count > 1}
    first = len(known_passages)
    return [
        *(_with_label(before, p, shared_names) for before, p in zip(known_passages, passages.passages, strict=False)),
        *(_with_label(p, p, shared_names) for p in islice(passages.passages, first, None)),
    ]


def _with_label(before: Passage, passage: Passage, shared_texts: Collection[str | None]) -> Passage:
    """A passage with its label if that is shared, as it was before if that says the same."""
    label = passage.label if passage.label in shared_texts else None
    return before if before.label == label else replace(passage, label=label)


def read_speakers(text: str, *, path: str, max_chars: int = MAX_CHARS) -> SpokenPassages:
    """Split a whole file; see `split_markdown`."""
    if max_chars < 1:
        raise ValueError(f"max_chars is {max_chars}: a passage needs at least one character. Give a positive number.")
    lines = split_lines(text)
    front = read_front_matter(lines)
    for rule in front.rules:
        lines[rule] = ""
    notes = noted_lines(lines)
    days = _Days((front.title,) if front.title else (), path, front.date, is_titled=True)
    passages = _spoken_passages(read_blocks(lines, front.lines), days, max_chars, notes, front.tags)
    pairs = front.text(alone=not passages.passages)
    if not pairs:
        return passages
    outline = Outline()
    outline.add(Kind.TEXT, pairs[0][0], front.properties[-1][1], pairs)
    properties = _spoken_passages(outline, days, max_chars, file_tags=front.tags)
    return replace(
        passages, passages=properties.passages + passages.passages, depths=properties.depths + passages.depths
    )


def read_section(
    text: str, *, path: str, level: int, above: tuple[str, ...], file_date: dt.date | None, file_tags: tuple[str, ...]
) -> SpokenPassages:
    """Split a part of a file that begins with a heading; lines count from that heading.

    Args:
        text: The part.
        path: Path of the file.
        level: Level of that heading.
        above: Titles above the heading, outermost first.
        file_date: Date of the file's front matter.
        file_tags: Tags of the file's front matter.
    """
    lines = split_lines(text)
    notes = noted_lines(lines)
    days = _Days(above, path, file_date, is_titled=level == 1)
    return _spoken_passages(read_blocks(lines), days, MAX_CHARS, notes, file_tags)


def outline_passages(outline: Outline, *, path: str) -> list[Passage]:
    """The passages of an outline; a date in the name of `path` dates those that no heading dates."""
    return keep_shared_labels(_spoken_passages(outline, _Days((), path, None), MAX_CHARS))


def _spoken_passages(
    outline: Outline,
    days: _Days,
    max_chars: int,
    note: _Noted = _NOTHING_NOTED,
    file_tags: tuple[str, ...] = (),
) -> SpokenPassages:
    names = [
        ornament("names", None, speaker_of, block.lines[0][1]) if block.kind is Kind.ITEM else None
        for block in outline.blocks
    ]
    passages, depths = list[Passage](), list[int]()
    for passage, depth in _passages(outline, names, days, max_chars, note, file_tags):
        passages.append(passage)
        depths.append(depth)
    return SpokenPassages(passages=passages, depths=depths, file_date=days.fallback, file_tags=file_tags)


def _passages(
    outline: Outline,
    names: list[str | None],
    days: _Days,
    max_chars: int,
    note: _Noted,
    file_tags: tuple[str, ...],
) -> Iterator[tuple[Passage, int]]:
    section, is_asked = None, False
    before: Place | None = None
    for at, place in _place_blocks(outline.blocks):
        block, above = place.block, place.above
        titles, day, written_moment = days.of(block.section)
        heading = (*titles, *above) if above else titles
        opens = _opens(place, before, bool(titles))
        before = place
        said_note = note.get(block.start)
        tags = said_note.tags if said_note else _tags_in(block)
        tags = tuple(dict.fromkeys((*tags, *file_tags))) if file_tags else tags
        moment = said_note and said_note.written_on(day)
        for start, end, words in _cut_block(block, max_chars):
            answers = is_asked and block.section is section and len(words) <= SHORT_CHARS
            section, is_asked = block.section, ornament("questions", False, asks_shortly, words)
            timely = ornament("days", False, has_time_words, words)
            passage = Passage(
                start_line=start,
                end_line=end,
                text=words,
                heading=heading,
                opens_section=opens,
                date=day,
                label=names[at],
                cues=CUES[timely, is_asked, answers, ornament("scripts", False, is_unlatin, words)],
                role=said_note.role if said_note else "user",
                noted=said_note is not None,
                written=moment or written_moment,
                tags=tags,
                columns=place.columns,
            )
            yield passage, len(titles)
            opens = False


def _opens(place: Place, before: Place | None, is_titled: bool) -> bool:
    """True for the first block of a group: of a section, of what stands below one label or list item, and each row."""
    if before is None or place.block.section is not before.block.section:
        return (is_titled and (place.block.opens or bool(place.above) or before is None)) or bool(place.above)
    if place.columns or place.parent:
        return True
    # What stands below a list item belongs to it.
    return place.above != before.above and not (before.parent and place.above[:-1] == before.above)


def _tags_in(block: Block) -> tuple[str, ...]:
    """The tags of all that a block says, whatever is cut from it."""
    return () if block.kind is Kind.CODE else tags_of("\n".join(text for _, text in block.lines))


class _Day(NamedTuple):
    heading: tuple[str, ...]
    day: dt.date | None
    written_moment: dt.datetime | None


class _Days:
    """Full heading, day and hour of each section: the nearest heading's day, else that of the file.

    Args:
        title: Titles above all sections.
        path: Path of the file.
        fallback: Date of its front matter.
        titled: True if the only one of the titles is that of the file.
    """

    def __init__(self, title: tuple[str, ...], path: str, fallback: dt.date | None, *, is_titled: bool = False) -> None:
        self.fallback = fallback
        self._title = title
        self._is_titled = is_titled and len(title) == 1
        self._file = ornament("days", None, day_of_name, path) or fallback
        self._section: Section | None = None
        self._day = _Day((), None, None)

    def of(self, section: Section) -> _Day:
        """Heading, day and moment of a section; the last one is remembered, as blocks come section by section."""
        if section is not self._section:
            path = section.path
            # A title that stands there as a heading too is named once.
            twice = self._is_titled and path and path[0].casefold() == self._title[0].casefold()
            heading = path if twice else self._title + path
            dates = (ornament("days", None, heading_day, title) for title in reversed(heading))
            day = next((date for date in dates if date is not None), self._file)
            self._section = section
            self._day = _Day(heading, day, _moment(day, heading) if day else None)
        return self._day


def _moment(day: dt.date, heading: tuple[str, ...]) -> dt.datetime:
    """The moment of a section: its day, and the hour if that is all its heading says."""
    hour = _HOUR.fullmatch(heading[-1]) if heading else None
    return dt.datetime.combine(day, dt.time(int(hour[1]), int(hour[2])) if hour else dt.time.min)


def split_lines(text: str) -> list[str]:
    """Lines as an editor counts them: only LF, CR LF and CR end one."""
    text = text.removeprefix("\ufeff")
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if _CONTROLS.search(text) is not None:
        text = _CONTROLS.sub("", text)
    lines = text.split("\n")
    return [*map(without_data, lines)] if "base64," in text else lines


def _cut_block(block: Block, max_chars: int) -> Iterator[tuple[int, int, str]]:
    """First line, last line and text of a block, in several pieces if it is too long."""
    lines = block.lines
    text = lines[0][1] if len(lines) == 1 else "\n".join(text for _, text in lines).strip("\n")
    if len(text) <= max_chars:
        yield block.start, block.end, text
        return
    pieces = list(_pieces(lines, max_chars))
    for index, piece in enumerate(pieces):
        start = piece[0][0] if index else block.start
        end = piece[-1][0] if index < len(pieces) - 1 else block.end
        yield start, end, "\n".join(text for _, text in piece)


def _pieces(lines: list[Line], max_chars: int) -> Iterator[list[Line]]:
    """Lines packed into pieces as long as they fit; parts of one line stay apart."""
    piece: list[Line] = []
    size = 0
    for number, text in _fitting_lines(lines, max_chars):
        if piece and (size + len(text) > max_chars or piece[-1][0] == number):
            yield _without_blank_ends(piece)
            piece, size = [], 0
        if piece or text:
            piece.append((number, text))
            size += len(text) + 1
    if piece:
        yield _without_blank_ends(piece)


def _without_blank_ends(piece: list[Line]) -> list[Line]:
    while not piece[-1][1]:
        piece.pop()
    return piece


def _fitting_lines(lines: list[Line], max_chars: int) -> Iterator[Line]:
    """Lines, the longer ones in parts: cut after a sentence, else at a space, else anywhere."""
    for number, text in lines:
        at = 0
        while len(text) - at > max_chars:
            end = ornament("sentences", at + max_chars, end_of_part, text, at, at + max_chars)
            part = text[at:end].strip() if at else text[at:end].rstrip()
            if part:
                yield number, part
            at = end
        if at == 0 or text[at:].strip():
            yield number, text[at:].strip() if at else text
