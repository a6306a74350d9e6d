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
from indexer.engine.candidates import Ranked
from indexer.language.breadcrumbs import breadcrumb, name_title
from indexer.stores.base import IndexStore, StoredPassage
from indexer.types import Passage

# A text as long as this says what it is about itself; so does a sentence.
_SELF_CONTAINED_CHARS = 60
# Passages looked at for one search; a text that is repeated more often names some of its days.
_MOST_COPIES = 512
_SAME_WORDS, _SAME_VECTOR = 1e-6, 1e-5
_Identity = tuple[str, tuple[str, ...]]


def distinct(store: IndexStore, ranking: Ranked, positions: Ints, count: int) -> list[tuple[int, StoredPassage]]:
    """Positions of the first candidates in an order with their passages, those that say the same once.

    Args:
        store: The index, within a read.
        ranking: The candidates.
        positions: Their order.
        count: Most of them to return.
    """
    order = positions.tolist()
    chosen_values: dict[_Identity, tuple[int, StoredPassage]] = {}
    spare = 5
    while order and len(chosen_values) < count:
        # What is missing and some more, as texts repeat; twice as much more each time, for a talk of repeats alone.
        step = count - len(chosen_values) + spare
        batch, order, spare = order[:step], order[step:], 2 * spare
        keys = ranking.candidates.keys[batch].tolist()
        passages = store.passages(keys)
        for position, key in zip(batch, keys, strict=True):
            if passage := passages.get(key):
                same = _identity(passage)
                if same not in chosen_values or chosen_values[same][1].passage.authority < passage.passage.authority:
                    chosen_values[same] = position, passage
    return [*chosen_values.values()][:count]


def days_of_copies(
    store: IndexStore, ranking: Ranked, chosen_pairs: Sequence[tuple[int, StoredPassage]]
) -> Mapping[int, tuple[dt.date, ...]]:
    """All days on which the words of some candidates were written, by key, where there are several."""
    alike = {found_passage.key: _alike(ranking, position) for position, found_passage in chosen_pairs}
    wanted_places = [place for places in alike.values() for place in places.tolist()][:_MOST_COPIES]
    if not wanted_places:
        return {}
    keys = ranking.candidates.keys
    passages = store.passages([int(keys[place]) for place in dict.fromkeys(wanted_places)])
    found_days = dict[int, tuple[dt.date, ...]]()
    for _, passage in chosen_pairs:
        same = _identity(passage)
        copies = (passages.get(int(keys[place])) for place in alike[passage.key])
        other_days = {copy.passage.date for copy in copies if copy is not None and _identity(copy) == same}
        days = sorted(day for day in {passage.passage.date, *other_days} if day is not None)
        if len(days) > 1:
            found_days[passage.key] = tuple(days)
    return found_days


def _alike(ranking: Ranked, position: int) -> Ints:
    """Places of the other candidates that have the same score by words, or the same vector, on other days."""
    text, vector, days = ranking.candidates.text, ranking.candidates.vector, ranking.candidates.days
    same = np.zeros(len(days), bool)
    if text is not None and text.unit[position] > 0:
        same |= np.abs(text.unit - text.unit[position]) < _SAME_WORDS
    if vector is not None:
        same |= np.abs(vector.own - vector.own[position]) < _SAME_VECTOR
    return np.flatnonzero(same & (days > 0) & (days != days[position]))


def _identity(passage: StoredPassage) -> _Identity:
    """The same value for all copies: the words, and of a short text where it stands."""
    return _of(passage.passage.text, _place(passage.passage, passage.path))


def _place(passage: Passage, path: str) -> tuple[str, ...]:
    is_labelled = ":" in passage.text or "：" in passage.text
    if len(passage.text) > _SELF_CONTAINED_CHARS or (not is_labelled and passage.text.endswith(SENTENCE_ENDS)):
        return ()
    name = name_title(path) if is_labelled else ""
    return (*breadcrumb(passage.heading), name) if name else breadcrumb(passage.heading)


# The same passages are found again and again.
@lru_cache(maxsize=4_096)
def _of(text: str, place: tuple[str, ...]) -> _Identity:
    return " ".join(text.casefold().split()), place
