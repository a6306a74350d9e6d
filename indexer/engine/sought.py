"""Passages that a question names: by an identifier, by a day, as the newest, or by a label. Pure, numpy.

Invariants: these are candidates whatever else they say; a filter applies to them as to others; of a stretch of many
passages the newest are taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from indexer.corpus import Ints, Mask, unique_rows
from indexer.engine.candidates import Ranked
from indexer.engine.ranking import CANDIDATES
from indexer.language.asked_days import DAY_BONUS, AskedDays
from indexer.stores.base import StoredPassage
from indexer.types import Hit

if TYPE_CHECKING:
    from indexer.engine.reader import IndexReader, QueryTerms

_NO_ROWS = np.empty(0, np.int64)
# Of the newest passages, so many are candidates where a question asks for what is new.
_NEWEST = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Sought:
    """Passages that are candidates because of what a question names, whatever else they say.

    Attributes:
        rows: Rows of the corpus, ascending.
        packed_rows: Rows of the packed part, ascending.
        keys: Keys of all.
        named: Keys of the passages that hold each identifier.
        without_words: Keys of those that need no word of the question.
    """

    rows: Ints
    packed_rows: Ints
    keys: Ints
    named: tuple[Ints, ...]
    without_words: Ints

    @staticmethod
    def of(view: IndexReader, words: QueryTerms, days: AskedDays) -> Sought:
        """The passages with the identifiers, of the days or of the newest days that a question asks for."""
        segment = view.packed_part.segment if view.packed_part else None
        named_rows = [view.corpus.keys[rows] for rows in words.named_rows]
        rows = [*words.named_rows, _dated_rows(view.corpus.days, days)]
        no_rows = [_NO_ROWS]
        if segment:
            named_rows += [segment.keys(rows) for rows in words.packed_named]
            no_rows = [*words.packed_named, _dated_rows(segment.days, days)]
        chosen_rows, chosen_packed = unique_rows(np.concatenate(rows)), unique_rows(np.concatenate(no_rows))
        keys = view.corpus.keys[chosen_rows]
        if segment:
            keys = np.concatenate([keys, segment.keys(chosen_packed)])
        free = keys
        if words.terms:
            # Of a month, or of what is new, only that answers which has a word of the question.
            of_days = view.corpus.days[chosen_rows], segment.days[chosen_packed] if segment else _NO_ROWS
            free = np.concatenate([*named_rows, keys[_is_asked(np.concatenate(of_days), days)]])
        return Sought(
            rows=chosen_rows, packed_rows=chosen_packed, keys=keys, named=tuple(named_rows), without_words=free
        )


def _dated_rows(days: NDArray[np.integer], asked_days: AskedDays) -> Ints:
    """Rows of the days that a question asks for, of many the newest."""
    if not len(days) or not (asked_days or asked_days.latest):
        return _NO_ROWS
    if asked_days.latest:
        rows, most = np.flatnonzero(days), _NEWEST
    else:
        wanted_values = np.zeros(len(days), bool)
        for first, last in asked_days.stretches(int(days.max())):
            wanted_values |= (days >= first) & (days <= last)
        rows, most = np.flatnonzero(wanted_values), CANDIDATES
    return rows if len(rows) <= most else np.sort(rows[np.argpartition(-days[rows], most)[:most]])


def _is_asked(days: NDArray[np.integer], asked_days: AskedDays) -> Mask:
    """Mask of the days that a question names one by one."""
    known_values = {int(day): asked_days.bonus(int(day)) >= DAY_BONUS for day in np.unique(days)}
    return np.array([known_values[int(day)] for day in days], bool)


def with_sought(rows: Ints, sought: Ints, mask: Mask) -> Ints:
    """Candidates, ascending, and those of the rows sought that a filter allows."""
    return unique_rows(np.concatenate([rows, sought[mask[sought]]])) if len(sought) else rows


def named_first(hits: Sequence[Hit], ranking: Ranked, pairs: Sequence[tuple[int, StoredPassage]]) -> list[Hit]:
    """The hits, none of another day or identifier than asked for before one of it that it has replaced.

    Args:
        hits: Best first, what holds now before what it has replaced.
        ranking: The candidates.
        pairs: Positions of the best of them, with their passages.
    """
    values = np.zeros(len(ranking.scores))
    held_values, days = (ranking.parts.get(name, values) for name in ("identifiers", "date"))
    named_pairs = {
        (passage.path, passage.ordinal) for at, passage in pairs if held_values[at] > 0 or days[at] >= DAY_BONUS
    }
    ordered_hits = list(hits)
    for hit in hits if named_pairs else ():
        by = hit.replaced_by
        if by is None or (hit.path, hit.ordinal) not in named_pairs:
            continue
        for newer in [
            each_hit
            for each_hit in ordered_hits
            if (each_hit.path, each_hit.passage.start_line) == (by.path, by.start_line)
        ]:
            if (newer.path, newer.ordinal) not in named_pairs and ordered_hits.index(newer) < ordered_hits.index(hit):
                ordered_hits.remove(newer)
                ordered_hits.insert(ordered_hits.index(hit) + 1, newer)
    return ordered_hits
