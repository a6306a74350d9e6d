"""Passages that a question names: by an identifier, by a day, as the newest, or by a label. Pure, numpy.

Invariants: these are candidates whatever else they say; a filter applies to them as to others; of a stretch of many
passages the newest are taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from indexer.corpus import Ints, Mask, unique_rows
from indexer.engine.ranking import CANDIDATES, Ranked
from indexer.engine.reader import IndexReader, QueryTerms
from indexer.stores.base import StoredPassage
from indexer.text.asked_days import DAY_BONUS, AskedDays
from indexer.text.asked_labels import asked_labels, is_labelled, label_of
from indexer.text.terms import query_terms, stored_terms
from indexer.types import Hit

_NO_ROWS = np.empty(0, np.int64)
# Of the newest passages, so many are candidates where a question asks for what is new.
_NEWEST = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Sought:
    """Passages that are candidates because of what a question names, whatever else they say.

    Attributes:
        rows: Rows of the corpus, ascending.
        packed: Rows of the packed part, ascending.
        keys: Keys of all.
        named: Keys of the passages that hold each identifier.
        without_words: Keys of those that need no word of the question.
    """

    rows: Ints
    packed: Ints
    keys: Ints
    named: tuple[Ints, ...]
    without_words: Ints

    @staticmethod
    def of(view: IndexReader, words: QueryTerms, asked: AskedDays) -> Sought:
        """The passages with the identifiers, of the days or of the newest days that a question asks for."""
        segment = view.packed.segment if view.packed else None
        named = [view.corpus.keys[rows] for rows in words.named]
        rows = [*words.named, _dated_rows(view.corpus.days, asked)]
        packed = [_NO_ROWS]
        if segment:
            named += [segment.keys(rows) for rows in words.packed_named]
            packed = [*words.packed_named, _dated_rows(segment.days, asked)]
        chosen, chosen_packed = unique_rows(np.concatenate(rows)), unique_rows(np.concatenate(packed))
        keys = view.corpus.keys[chosen]
        if segment:
            keys = np.concatenate([keys, segment.keys(chosen_packed)])
        free = keys
        if words.terms:
            # Of a month, or of what is new, only that answers which has a word of the question.
            of_days = view.corpus.days[chosen], segment.days[chosen_packed] if segment else _NO_ROWS
            free = np.concatenate([*named, keys[_is_asked(np.concatenate(of_days), asked)]])
        return Sought(rows=chosen, packed=chosen_packed, keys=keys, named=tuple(named), without_words=free)


def _dated_rows(days: NDArray[np.integer], asked: AskedDays) -> Ints:
    """Rows of the days that a question asks for, of many the newest."""
    if not len(days) or not (asked or asked.latest):
        return _NO_ROWS
    if asked.latest:
        rows, most = np.flatnonzero(days), _NEWEST
    else:
        wanted = np.zeros(len(days), bool)
        for first, last in asked.stretches(int(days.max())):
            wanted |= (days >= first) & (days <= last)
        rows, most = np.flatnonzero(wanted), CANDIDATES
    return rows if len(rows) <= most else np.sort(rows[np.argpartition(-days[rows], most)[:most]])


def _is_asked(days: NDArray[np.integer], asked: AskedDays) -> Mask:
    """Mask of the days that a question names one by one."""
    known = {int(day): asked.bonus(int(day)) >= DAY_BONUS for day in np.unique(days)}
    return np.array([known[int(day)] for day in days], bool)


def with_sought(rows: Ints, sought: Ints, allowed: Mask) -> Ints:
    """Candidates, ascending, and those of the rows sought that a filter allows."""
    return unique_rows(np.concatenate([rows, sought[allowed[sought]]])) if len(sought) else rows


def named_first(hits: Sequence[Hit], ranked: Ranked, chosen: Sequence[tuple[int, StoredPassage]]) -> list[Hit]:
    """The hits, none of another day or identifier than asked for before one of it that it has replaced.

    Args:
        hits: Best first, what holds now before what it has replaced.
        ranked: The candidates.
        chosen: Positions of the best of them, with their passages.
    """
    nothing = np.zeros(len(ranked.scores))
    held, days = (ranked.parts.get(name, nothing) for name in ("identifiers", "date"))
    named = {(each.path, each.ordinal) for at, each in chosen if held[at] > 0 or days[at] >= DAY_BONUS}
    ordered = list(hits)
    for hit in hits if named else ():
        by = hit.replaced_by
        if by is None or (hit.path, hit.ordinal) not in named:
            continue
        for newer in [each for each in ordered if (each.path, each.passage.start_line) == (by.path, by.start_line)]:
            if (newer.path, newer.ordinal) not in named and ordered.index(newer) < ordered.index(hit):
                ordered.remove(newer)
                ordered.insert(ordered.index(hit) + 1, newer)
    return ordered


def attribute_first(
    question: str, ranked: Ranked, chosen: Sequence[tuple[int, StoredPassage]]
) -> tuple[Ranked, list[tuple[int, StoredPassage]]]:
    """The candidates and the best of them, with the line first that has the label asked for.

    Lines of a record say the same of their thing: all stand below its name, and none has another word of "where is the
    sofa?". Which of them answers, its label tells. Only the lines of the record that stands first change places.

    Args:
        question: The question.
        ranked: The candidates; the line gets the score of the one that stood first, as the part "label".
        chosen: Positions of the best, with their passages, the best first.
    """
    best = [*chosen]
    labels = asked_labels(question) if len(best) > 1 else frozenset()
    if not labels:
        return ranked, best
    keys = [label_of(stored.passage.text) for _, stored in best]
    if not keys[0][1] or is_labelled(keys[0][1], labels):
        return ranked, best
    record = best[0][1].path, best[0][1].passage.heading, keys[0][0]
    for place, (_, stored) in enumerate(best):
        of = stored.path, stored.passage.heading, keys[place][0]
        if of == record and is_labelled(keys[place][1], labels):
            return _lift_to_first(ranked, best, place)
    return ranked, best


def _lift_to_first(
    ranked: Ranked, best: list[tuple[int, StoredPassage]], place: int
) -> tuple[Ranked, list[tuple[int, StoredPassage]]]:
    """The candidates and the best of them, with one of these first, as high as the one that stood there."""
    position = best[place][0]
    lift = ranked.parts.get("label", np.zeros(len(ranked.scores))).copy()
    lift[position] += ranked.scores[best[0][0]] - ranked.scores[position]
    scores = ranked.scores.copy()
    scores[position] = ranked.scores[best[0][0]]
    lifted = replace(ranked, scores=scores, parts={**ranked.parts, "label": lift})
    return lifted, [best[place], *best[:place], *best[place + 1 :]]


def body_first(
    question: str, ranked: Ranked, chosen: Sequence[tuple[int, StoredPassage]]
) -> tuple[Ranked, list[tuple[int, StoredPassage]]]:
    """The candidates and the best of them, the text of a file before its properties that only say its other names.

    Args:
        question: A question, which asks more than the other name.
        ranked: The candidates; the text gets the score of the properties, as the part "label".
        chosen: Positions of the best, with their passages, the best first.
    """
    best = [*chosen]
    aliases = _aliases_in(best[0][1]) if len(best) > 1 else ""
    asked = frozenset(query_terms(question)) if aliases else frozenset()
    if asked and asked - frozenset(stored_terms(aliases)) and not asked.isdisjoint(stored_terms(aliases)):
        for place, (_, stored) in enumerate(best):
            if place and stored.path == best[0][1].path:
                return _lift_to_first(ranked, best, place)
    return ranked, best


def _aliases_in(stored: StoredPassage) -> str:
    """The other names of a file, of the passage of its properties."""
    if stored.ordinal or not stored.passage.text.casefold().startswith(("alias", "tag", "title")):
        return ""
    lines = [line.partition(":") for line in stored.passage.text.splitlines()]
    return " ".join(value for key, _, value in lines if key.strip().casefold() in ("alias", "aliases"))
