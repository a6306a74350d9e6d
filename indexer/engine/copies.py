"""Copies: passages that say the same words at the same kind of place are one hit, which names all their days.

Invariants: a copy of a higher authority stands for the others; short texts that stand below different titles say
different things, as "Price: 18 €" does; days are those of candidates, so a filter holds for them too, in order.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np

from indexer.common.scripts import SENTENCE_ENDS
from indexer.corpus import Ints
from indexer.engine.ranking import Ranked
from indexer.language.breadcrumbs import breadcrumb, name_title
from indexer.stores.base import IndexStore, StoredPassage
from indexer.types import Passage

# A text as long as this says what it is about itself; so does a sentence.
_SELF_CONTAINED_CHARS = 60
# Passages looked at for one search; a text that is repeated more often names some of its days.
_MOST_COPIES = 512
_SAME_WORDS, _SAME_VECTOR = 1e-6, 1e-5
_Identity = tuple[str, tuple[str, ...]]


def distinct(store: IndexStore, ranked: Ranked, positions: Ints, count: int) -> list[tuple[int, StoredPassage]]:
    """Positions of the first candidates in an order with their passages, those that say the same once.

    Args:
        store: The index, within a read.
        ranked: The candidates.
        positions: Their order.
        count: Most of them to return.
    """
    order = positions.tolist()
    chosen: dict[_Identity, tuple[int, StoredPassage]] = {}
    spare = 5
    while order and len(chosen) < count:
        # What is missing and some more, as texts repeat; twice as much more each time, for a talk of repeats alone.
        step = count - len(chosen) + spare
        batch, order, spare = order[:step], order[step:], 2 * spare
        keys = ranked.candidates.keys[batch].tolist()
        stored = store.passages(keys)
        for position, key in zip(batch, keys, strict=True):
            if found := stored.get(key):
                same = _identity(found)
                if same not in chosen or chosen[same][1].passage.authority < found.passage.authority:
                    chosen[same] = position, found
    return [*chosen.values()][:count]


def days_of_copies(
    store: IndexStore, ranked: Ranked, chosen: Sequence[tuple[int, StoredPassage]]
) -> Mapping[int, tuple[dt.date, ...]]:
    """All days on which the words of some candidates were written, by key, where there are several."""
    alike = {found.key: _alike(ranked, position) for position, found in chosen}
    wanted = [place for places in alike.values() for place in places.tolist()][:_MOST_COPIES]
    if not wanted:
        return {}
    keys = ranked.candidates.keys
    stored = store.passages([int(keys[place]) for place in dict.fromkeys(wanted)])
    found = dict[int, tuple[dt.date, ...]]()
    for _, passage in chosen:
        same = _identity(passage)
        copies = (stored.get(int(keys[place])) for place in alike[passage.key])
        others = {each.passage.date for each in copies if each is not None and _identity(each) == same}
        days = sorted(day for day in {passage.passage.date, *others} if day is not None)
        if len(days) > 1:
            found[passage.key] = tuple(days)
    return found


def _alike(ranked: Ranked, position: int) -> Ints:
    """Places of the other candidates that have the same score by words, or the same vector, on other days."""
    text, vector, days = ranked.candidates.text, ranked.candidates.vector, ranked.candidates.days
    same = np.zeros(len(days), bool)
    if text is not None and text.unit[position] > 0:
        same |= np.abs(text.unit - text.unit[position]) < _SAME_WORDS
    if vector is not None:
        same |= np.abs(vector.own - vector.own[position]) < _SAME_VECTOR
    return np.flatnonzero(same & (days > 0) & (days != days[position]))


def _identity(found: StoredPassage) -> _Identity:
    """The same value for all copies: the words, and of a short text where it stands."""
    return _of(found.passage.text, _place(found.passage, found.path))


def _place(passage: Passage, path: str) -> tuple[str, ...]:
    labelled = ":" in passage.text or "：" in passage.text
    if len(passage.text) > _SELF_CONTAINED_CHARS or (not labelled and passage.text.endswith(SENTENCE_ENDS)):
        return ()
    name = name_title(path) if labelled else ""
    return (*breadcrumb(passage.heading), name) if name else breadcrumb(passage.heading)


# The same passages are found again and again.
@lru_cache(maxsize=4_096)
def _of(text: str, place: tuple[str, ...]) -> _Identity:
    return " ".join(text.casefold().split()), place
