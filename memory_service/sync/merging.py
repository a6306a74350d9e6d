"""Three-way merge of memory files, by entries and lines.

A file is a list of units: entries with their comments, list items, and all other lines, each with the blank lines above
it. An entry with a comment is known by its id, whatever it says; all else by its words. Invariants: pure; what one side
wrote and the other did not touch stands in the merged text; what both wrote at the same place stands there one after
the other, and the same only once; what one side changed and the other changed otherwise or took out is a conflict.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from itertools import chain

from indexer import is_blank
from indexer.common import lazy_regex
from memory_service.memories.format import find_entries, split_lines

_HEADING = lazy_regex(r"#{1,6}(?:\s|$)")
_BOM = "\ufeff"
# A day makes every list item an entry; which one is of no account.
_ANY_DAY = dt.date(2000, 1, 1)


def merge_texts(base: str | None, ours: str, theirs: str) -> str | None:
    """The merged text of two versions of a file.

    Args:
        base: The text that both were made from; None if it is not known, and then lines that stand in one version alone
            are taken, but not two different ones at the same place.
        ours: One version.
        theirs: The other one, whose order holds where both wrote at the same place.

    Returns:
        The text; None for a conflict.
    """
    if ours == theirs:
        return theirs
    if base in (ours, theirs):
        return ours if base == theirs else theirs
    first, second = _units(ours, _entry_spans), _units(theirs, _entry_spans)
    common = _units(base, _entry_spans) if base is not None else _in_both(first, second)
    units = _merge(common, first, second, _Rules(unites=base is not None, on_overlap=_merge_lines))
    if units is None or _repeats_id(units, first, second):
        return None
    tail = _trailing_blanks(ours) if base is not None and _trailing_blanks(base) == _trailing_blanks(theirs) else ""
    text = _join_units(units) + (tail or _trailing_blanks(theirs))
    return (_BOM if theirs.startswith(_BOM) else "") + text


@dataclass(frozen=True, slots=True, kw_only=True)
class _Unit:
    """A part of a file that is merged as a whole.

    Attributes:
        blanks: The blank lines above it.
        body: Its lines.
        plain: The body as it is compared, whatever ends its lines.
        key: Its name in comparisons: the id of an entry with a comment, else the words.
        is_entry: Whether it is an entry or a list item.
    """

    blanks: str
    body: str
    plain: str
    key: str
    is_entry: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Edit:
    """New units in the place of some of the base, from `start` to before `end`."""

    start: int
    end: int
    units: tuple[_Unit, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rules:
    """How edits of two sides meet.

    Attributes:
        unites: Whether different units that both put at the same place are all taken.
        on_overlap: Merge of regions that both changed: of the base, of ours, of theirs.
        is_strict: Whether new units right beside what the other side changed are a conflict.
    """

    unites: bool
    on_overlap: Callable[[Sequence[_Unit], Sequence[_Unit], Sequence[_Unit]], list[_Unit] | None]
    is_strict: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Changes:
    """The edits of one side, and its units in the place of those that differ from the base by blanks alone."""

    edits: Sequence[_Edit]
    respaced: dict[int, _Unit] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class _Region:
    """A region of the base with the edits that both sides made there."""

    start: int
    end: int
    ours: list[_Edit] = field(default_factory=list)
    theirs: list[_Edit] = field(default_factory=list)

    def meets(self, edit: _Edit, *, is_strict: bool) -> bool:
        """True if the next edit belongs to this region."""
        if edit.start < self.end:
            return True
        is_insertion = edit.start == edit.end or self.start == self.end
        return edit.start == self.end and is_insertion and (is_strict or edit.end == self.start)


def _entry_spans(text: str) -> Iterator[tuple[int, int, str]]:
    """First line, end and id of each entry, lines from 0; a list item without a comment has an empty id."""
    for entry in find_entries(text, _ANY_DAY):
        yield entry.first_line - 1, entry.end_line, entry.memory_id if entry.fields else ""


def _no_spans(_: str) -> Iterator[tuple[int, int, str]]:
    return iter(())


def _units(text: str, spans_of: Callable[[str], Iterable[tuple[int, int, str]]]) -> list[_Unit]:
    text = text.removeprefix(_BOM)
    lines = split_lines(text)
    spans = {start: (end, memory_id) for start, end, memory_id in spans_of(text)}
    units, blanks, at = list[_Unit](), list[str](), 0
    while at < len(lines):
        if is_blank(lines[at]):
            blanks.append(lines[at])
            at += 1
            continue
        end, memory_id = spans.get(at, (at + 1, ""))
        plain = "\n".join(line.rstrip("\r\n") for line in lines[at:end])
        units.append(
            _Unit(
                blanks="".join(blanks),
                body="".join(lines[at:end]),
                plain=plain,
                key=f"\n{memory_id}" if memory_id else plain,
                is_entry=at in spans,
            )
        )
        blanks, at = [], end
    return units


def _trailing_blanks(text: str) -> str:
    lines = split_lines(text.removeprefix(_BOM))
    start = len(lines)
    while start and is_blank(lines[start - 1]):
        start -= 1
    return "".join(lines[start:])


def _join_units(units: Iterable[_Unit]) -> str:
    """The text of some units, each of which begins on a line of its own."""
    parts = list[str]()
    for unit in units:
        if parts and not parts[-1].endswith(("\n", "\r")):
            parts.append("\n")
        parts += filter(None, (unit.blanks, unit.body))
    return "".join(parts)


def _in_both(ours: Sequence[_Unit], theirs: Sequence[_Unit]) -> list[_Unit]:
    """The units that two versions have in common, in their order."""
    blocks = SequenceMatcher(
        None, [each_unit.plain for each_unit in theirs], [our.plain for our in ours]
    ).get_matching_blocks()
    return [unit for at, _, size in blocks for unit in theirs[at : at + size]]


def _merge_lines(base: Sequence[_Unit], ours: Sequence[_Unit], theirs: Sequence[_Unit]) -> list[_Unit] | None:
    """A merge of regions line by line."""
    common, first, second = (_units(_join_units(units), _no_spans) for units in (base, ours, theirs))
    return _merge(common, first, second, _Rules(unites=True, on_overlap=lambda *_: None, is_strict=True))


def _merge(base: Sequence[_Unit], ours: Sequence[_Unit], theirs: Sequence[_Unit], rules: _Rules) -> list[_Unit] | None:
    first, second = _changes(base, ours), _changes(base, theirs)

    def unedited_units(start: int, end: int) -> Iterator[_Unit]:
        return (second.respaced.get(at) or first.respaced.get(at) or base[at] for at in range(start, end))

    merged_units, at = list[_Unit](), 0
    for region in _regions(first.edits, second.edits, is_strict=rules.is_strict):
        units = _resolve(base, region, rules)
        if units is None:
            return None
        merged_units += chain(unedited_units(at, region.start), units)
        at = region.end
    merged_units += unedited_units(at, len(base))
    return merged_units


def _changes(base: Sequence[_Unit], side: Sequence[_Unit]) -> _Changes:
    """The changes of one side."""
    edits, units = list[_Edit](), dict[int, _Unit]()
    for start, end, first, last in _differences([unit.key for unit in base], [unit.key for unit in side]):
        if end - start == last - first:
            for at, unit in zip(range(start, end), side[first:last], strict=True):
                if unit.plain != base[at].plain:
                    edits.append(_Edit(start=at, end=at + 1, units=(unit,)))
                elif unit != base[at]:
                    units[at] = unit
        else:
            edits.append(_Edit(start=start, end=end, units=tuple(side[first:last])))
    return _Changes(edits=edits, respaced=units)


def _differences(base: Sequence[str], side: Sequence[str]) -> Iterator[tuple[int, int, int, int]]:
    """Regions of two lists that together are all of both: those that are equal, and those that are not."""
    most = min(len(base), len(side))
    head = next((at for at in range(most) if base[at] != side[at]), most)
    tail = next((at for at in range(most - head) if base[-1 - at] != side[-1 - at]), most - head)
    yield 0, head, 0, head
    # The matcher takes quadratic time at worst, and edits are few: it sees what lies between the first and the last.
    matcher = SequenceMatcher(None, base[head : len(base) - tail], side[head : len(side) - tail])
    for _, start, end, first, last in matcher.get_opcodes():
        yield start + head, end + head, first + head, last + head
    yield len(base) - tail, len(base), len(side) - tail, len(side)


def _regions(ours: Sequence[_Edit], theirs: Sequence[_Edit], *, is_strict: bool) -> Iterator[_Region]:
    """The regions in which edits of both sides meet, and the edits that meet none, in order."""
    region: _Region | None = None
    pairs = [*((edit, True) for edit in ours), *((edit, False) for edit in theirs)]
    for edit, is_ours in sorted(pairs, key=lambda pair: (pair[0].start, pair[0].end)):
        if region is None or not region.meets(edit, is_strict=is_strict):
            if region:
                yield region
            region = _Region(start=edit.start, end=edit.end)
        region.end = max(region.end, edit.end)
        (region.ours if is_ours else region.theirs).append(edit)
    if region:
        yield region


def _resolve(base: Sequence[_Unit], region: _Region, rules: _Rules) -> Sequence[_Unit] | None:
    """The units of a region after the edits of both sides; None for a conflict."""
    ours, theirs = (_apply_edits(base, region, edits) for edits in (region.ours, region.theirs))
    if not region.ours or not region.theirs:
        return ours if region.ours else theirs
    if _plain(ours) == _plain(theirs):
        return theirs
    if region.start == region.end:
        return _union(ours, theirs) if rules.unites else None
    if not any(edit.units for edit in (*region.ours, *region.theirs)):
        return ()  # Deletions that meet leave nothing between them.
    return rules.on_overlap(base[region.start : region.end], ours, theirs)


def _apply_edits(base: Sequence[_Unit], region: _Region, edits: Sequence[_Edit]) -> list[_Unit]:
    units, at = list[_Unit](), region.start
    for edit in edits:
        units += chain(base[at : edit.start], edit.units)
        at = edit.end
    return [*units, *base[at : region.end]]


def _union(ours: Sequence[_Unit], theirs: Sequence[_Unit]) -> list[_Unit] | None:
    """The units that both put at the same place; None if they say different things of one entry."""
    if _is_within(ours, theirs):
        return list(theirs)
    if _is_within(theirs, ours):
        return list(ours)
    same = next(
        (
            at
            for at, (one_unit, other_unit) in enumerate(zip(ours, theirs, strict=False))
            if one_unit.plain != other_unit.plain
        ),
        0,
    )
    their_entries = {unit.key: unit.plain for unit in theirs if unit.is_entry}
    if any(unit.plain != their_entries.get(unit.key, unit.plain) for unit in ours):
        return None
    rest = [unit for unit in ours[same:] if not (unit.is_entry and unit.key in their_entries)]
    units = theirs[same:]
    # What stands below no heading of its own belongs to the section above.
    is_first = bool(rest) and not _HEADING.match(rest[0].plain) and bool(_HEADING.match(units[0].plain))
    return [*theirs[:same], *(chain(rest, units) if is_first else chain(units, rest))]


def _is_within(part: Sequence[_Unit], whole: Sequence[_Unit]) -> bool:
    """True if a list has the units of another one, in the same order."""
    rest = iter(_plain(whole))
    return all(any(plain == other_text for other_text in rest) for plain in _plain(part))


def _plain(units: Iterable[_Unit]) -> list[str]:
    return [unit.plain for unit in units]


def _repeats_id(merged_units: Sequence[_Unit], *sides: Sequence[_Unit]) -> bool:
    """True if an entry stands there more often than on either side, as one that both moved."""
    most = [Counter(unit.key for unit in units if unit.key != unit.plain) for units in sides]
    # A region that was merged by lines is read again.
    ids = Counter(unit.key for unit in _units(_join_units(merged_units), _entry_spans) if unit.key != unit.plain)
    return any(count > max(1, *(counts[key] for counts in most)) for key, count in ids.items())
