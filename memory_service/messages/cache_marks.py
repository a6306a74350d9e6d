"""Marks for a provider's cache in a prompt: as many as it takes, in the order that it wants. Pure.

Invariants: the newest marks stay, and of those of a system prompt, which changes least, the last one; a mark that holds
for an hour never stands behind one that holds for five minutes; no part is changed in place, and a prompt whose marks
are taken comes back with the same parts.

Source: Anthropic API, "Prompt caching", errors "A maximum of 4 blocks with cache_control may be provided" and "a
ttl='1h' cache_control block must not come after a ttl='5m' cache_control block".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar, cast

_MARK = "cache_control"
_LONG = "1h"
_SHORT_MARK = {"type": "ephemeral"}
_Block = TypeVar("_Block", bound=Mapping[str, object])


def with_marks_taken(
    system: Sequence[_Block], turns: Sequence[dict[str, object]], most: int
) -> tuple[list[_Block], list[dict[str, object]]]:
    """A prompt with the marks alone that its provider takes.

    Args:
        system: The blocks of the system prompt.
        turns: Messages of blocks.
        most: How many marks it takes.
    """
    ahead = [*_marks_of(system)]
    behind = [mark for turn in turns for mark in _marks_of(_blocks(turn.get("content")))]
    marks = _Marks(dict(enumerate(_choose_marks(ahead, behind, most))))
    return marks.of(system), [_with_content(turn, marks) for turn in turns]


def _marks_of(blocks: Sequence[Mapping[str, object]]) -> Iterator[Mapping[str, object] | None]:
    """The mark of each block, in the order in which they count: what a block holds stands before its own."""
    for block in blocks:
        yield from _marks_of(_blocks(block.get("content")))
        mark = block.get(_MARK)
        yield mark if isinstance(mark, Mapping) and mark.get("type") == _SHORT_MARK["type"] else None


def _choose_marks(
    ahead: Sequence[Mapping[str, object] | None], behind: Sequence[Mapping[str, object] | None], most: int
) -> list[Mapping[str, object] | None]:
    """The marks that stay, each in its place."""
    marks = [*ahead, *behind]
    places = [at for at, mark in enumerate(marks) if mark is not None]
    first = [at for at in places if at < len(ahead)][-1:][:most]
    newest = [at for at in reversed(places) if at not in first][: most - len(first)]
    kept_numbers = {*first, *newest}
    is_short = False
    for at in places:
        mark = marks[at]
        if at not in kept_numbers or mark is None:
            marks[at] = None
        elif is_short and mark.get("ttl") == _LONG:
            marks[at] = _SHORT_MARK
        else:
            is_short |= mark.get("ttl") != _LONG
    return marks


@dataclass(slots=True)
class _Marks:
    """Marks by their places, put back one after the other."""

    by_place: Mapping[int, Mapping[str, object] | None]
    _at: int = field(default=0)

    def of(self, blocks: Sequence[_Block]) -> list[_Block]:
        """Blocks with the marks that stay."""
        return [self._mark_block(block) for block in blocks]

    def _mark_block(self, block: _Block) -> _Block:
        inner = block.get("content")
        fields: dict[str, object] = dict(block)
        if blocks := _blocks(inner):
            left = iter(self.of(blocks))
            fields["content"] = [
                next(left) if isinstance(value, Mapping) else value for value in cast("list[object]", inner)
            ]
        mark = self.by_place[self._at]
        self._at += 1
        if mark is not None:
            fields[_MARK] = mark
        elif block.get(_MARK) is not None:
            fields.pop(_MARK)
        return block if fields == block else cast(_Block, fields)


def _with_content(turn: dict[str, object], marks: _Marks) -> dict[str, object]:
    content = turn.get("content")
    if not isinstance(content, list):
        return turn
    left = iter(marks.of(_blocks(content)))
    return {**turn, "content": [next(left) if isinstance(value, Mapping) else value for value in content]}


def _blocks(content: object) -> list[Mapping[str, object]]:
    return [value for value in content if isinstance(value, Mapping)] if isinstance(content, list) else []
