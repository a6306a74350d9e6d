"""Captions of records: the lines above keys and values that tell whose these are.

Invariants: they are those of one state of an index; lines of a talk have none; of many passages all are read at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from indexer.common.lru import LRU
from indexer.language.facts import caption
from indexer.stores.base import IndexStore, OfRanges, StoredPassage

# How many lines above one of a record its name is looked for: first some, which as a rule decide it.
_NEAR, _ABOVE = 5, 40
_REMEMBERED = 8_192
_NO_WORDS = frozenset[str]()


class Captions:
    """Captions of one state of an index, read when they are asked for. Safe to use from several threads."""

    def __init__(self) -> None:
        self._known = LRU[int, frozenset[str]](_REMEMBERED)

    def of(self, store: IndexStore, passages: Sequence[StoredPassage]) -> list[frozenset[str]]:
        """Words of the captions of some passages, one by one; empty for none.

        Args:
            store: The index, within a read of that state.
            passages: The passages.
        """
        words = {passage.key: self._known.get(passage.key) for passage in passages if not _is_spoken(passage)}
        unknown_passages = [passage for passage in passages if words.get(passage.key, _NO_WORDS) is None]
        for most in (_NEAR, _ABOVE):
            if unknown_passages:
                found_words = _read(store, unknown_passages, most)
                words |= found_words
                unknown_passages = [passage for passage in unknown_passages if passage.key not in found_words]
        for key, known_words in words.items():
            if known_words is not None:
                self._known[key] = known_words
        return [words.get(passage.key) or _NO_WORDS for passage in passages]


def _is_spoken(passage: StoredPassage) -> bool:
    return passage.path.startswith("sessions/")


def _read(store: IndexStore, passages: Sequence[StoredPassage], most: int) -> dict[int, frozenset[str]]:
    """Captions of passages by key, of those that so many lines above them decide."""
    firsts = {passage.key: max(0, passage.ordinal - most) for passage in passages}
    ranges = OfRanges(tuple(_ranges(passages, firsts)))
    lines = {(line.path, line.ordinal): line.passage for line in store.passages(ranges).values()}
    captions = dict[int, frozenset[str]]()
    for passage in passages:
        places = reversed(range(firsts[passage.key], passage.ordinal))
        near = (line for place in places if (line := lines.get((passage.path, place))))
        above = (line.text for line in near if line.heading == passage.passage.heading)
        words = caption(above)
        if most == _ABOVE or firsts[passage.key] == 0 or next(above, None) is not None:
            captions[passage.key] = words
    return captions


def _ranges(passages: Sequence[StoredPassage], firsts: Mapping[int, int]) -> list[tuple[str, int, int]]:
    """The ranges of files above some passages from a position on, each line once."""
    ranges = list[tuple[str, int, int]]()
    for passage in sorted(passages, key=lambda passage: (passage.path, passage.ordinal)):
        path, first, before = ranges[-1] if ranges else ("", 0, 0)
        if path == passage.path and firsts[passage.key] <= before:
            ranges[-1] = path, first, passage.ordinal
        else:
            ranges.append((passage.path, firsts[passage.key], passage.ordinal))
    return ranges
