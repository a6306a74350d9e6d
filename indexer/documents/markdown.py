"""Passages of a Markdown file, each with its headings, its lines and its day.

Invariants: pure; linear in the length of the text; whatever a person wrote in words, outside of comments, is in a
passage, or in the heading or the columns of one; line ranges are exact; no passage is longer than asked for.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import NamedTuple

from indexer.common.patterns import lazy_regex
from indexer.documents.blocks import Block, Kind, Line, Outline, Section, read_blocks
from indexer.documents.entries import Noted, noted_lines, tags_of
from indexer.documents.front_matter import read_front_matter
from indexer.documents.groups import Place, place_blocks
from indexer.language.dates import day_of_name, heading_day
from indexer.language.markup import without_data
from indexer.language.names import speaker_of
from indexer.language.ornaments import ornament
from indexer.language.questions import SHORT_CHARS, asks_shortly
from indexer.language.sentences import end_of_part
from indexer.language.terms import is_unlatin
from indexer.language.time_words import has_time_words
from indexer.types import Cue, Passage

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
    for at, place in place_blocks(outline.blocks):
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
