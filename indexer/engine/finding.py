"""Candidates of a question in each part of an index: the packed one, and what was written since.

Scores are deviations from what else is in the index, and what a passage lacks counts the less the more there is. So an
unrelated folder beside another would change how relevant its passages are: that is measured by the candidates of each
folder, as if it were searched alone.

Passages that a question names, by an identifier, by a day, as the newest, or by a label, are candidates whatever else
they say; of a stretch of many the newest are taken.

Invariants: filters apply first; what is left out, such as the echoes of the question, counts for nothing that stands
around it; the order of hits is that of the whole index.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from indexer.corpus import Corpus, Floats, Ints, Mask, unique_rows
from indexer.engine.bm25 import (
    NO_STATISTICS,
    RangeStatistics,
    TextEvidence,
    file_evidence,
    text_evidence,
    text_statistics,
    with_best_sentence,
)
from indexer.engine.candidates import Candidates, Ranked, corpus_candidates, joined_candidates, merge_candidates
from indexer.engine.ranking import CANDIDATES, candidates, vector_candidates, vector_evidence
from indexer.engine.reader import IndexReader, Packed, QueryTerms, sampled_vectors
from indexer.engine.segments.scoring import SegmentQuery, search_segment
from indexer.language.asked_days import DAY_BONUS, AskedDays
from indexer.stores.base import IndexStore, StoredPassage
from indexer.types import Hit, LineRange, Mode, SearchFilter, Vectors

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


def _with_sought(rows: Ints, sought: Ints, mask: Mask) -> Ints:
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


# Of the packed candidates, how many of the nearest are measured by their stored vectors.
_MEASURED = 16
_NO_ROWS = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """Passages that count for nothing: rows of the part that is not packed, and of the packed one."""

    rows: Ints = field(default_factory=lambda: _NO_ROWS)
    packed_rows: Ints = field(default_factory=lambda: _NO_ROWS)


NOTHING_LEFT_OUT = LeftOut()


def left_out(view: IndexReader, keys: Ints) -> LeftOut:
    """Some passages by their keys, to be left out."""
    rows, _ = view.corpus.rows(keys)
    if not view.packed_part:
        return LeftOut(rows=rows)
    segment = view.packed_part.segment
    return LeftOut(rows=rows, packed_rows=np.flatnonzero(np.isin(segment.keys(np.arange(len(segment))), keys)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Candidates that a question wants.

    Attributes:
        mode: By meaning and words, or by one of them.
        filter: Which passages may be found.
        words: Occurrences of its terms.
        vector: Its vector; None where vectors are not searched.
        sought: Passages that it names.
        left: Passages that count for nothing.
        folder: Number of the only folder that may be found in; None for all.
    """

    mode: Mode
    filter: SearchFilter
    words: QueryTerms
    vector: Vectors | None
    sought: Sought
    left: LeftOut = NOTHING_LEFT_OUT
    folder: int | None = None

    def without(self, left: LeftOut) -> Wanted:
        """The same as if some passages were not there."""
        return replace(self, left=left, words=self.words.without(left.rows, left.packed_rows))


def find_candidates(view: IndexReader, query: Wanted) -> Candidates:
    """Candidates of all parts of the index."""
    return merge_candidates(_find(view, query), query.sought.keys)


@dataclass(frozen=True, slots=True, kw_only=True)
class Alone:
    """Candidates of one folder as if it were searched alone.

    Attributes:
        known: How many passages it has, and how many with each term; None where that is counted for all alone.
    """

    candidates: Candidates
    known: RangeStatistics | None


def find_alone(view: IndexReader, query: Wanted, folder: int, echoes: Ints) -> Alone:
    """Candidates of a folder as if it were searched alone, without some passages by their keys.

    In a packed index, terms stay as rare as they are in all of it.
    """
    if len(echoes):
        query = query.without(left_out(view, echoes))
    if view.packed_part:
        return Alone(candidates=find_candidates(view, replace(query, folder=folder)), known=None)
    statistics = text_statistics(query.words.postings, view.corpus, view.corpus.folders == folder)
    words = replace(query.words, known_statistics=statistics)
    return Alone(candidates=find_candidates(view, replace(query, folder=folder, words=words)), known=statistics.unit)


def _find(view: IndexReader, query: Wanted) -> list[Candidates]:
    """Candidates of each part of the index."""
    parts, words, vector = [], query.words, query.vector
    if view.packed_part and query.mode == "vector" and vector is not None:
        parts.append(_exact(view.store, view.packed_part, query, vector))
    elif view.packed_part:
        candidates = _packed_candidates(view, view.packed_part, query, words, vector)
        parts.append(candidates if vector is None else _with_cosines(view.store, candidates, vector))
    if len(view.corpus) or not parts:
        parts.append(_unpacked_candidates(view, query, words, vector))
    return parts


def _unpacked_candidates(view: IndexReader, query: Wanted, words: QueryTerms, vector: Vectors | None) -> Candidates:
    """Candidates of the part that is not packed, of which all rows are scored."""
    corpus = view.corpus
    mask = _allowed_rows(corpus, query.filter, view.tagged_keys(query.filter))
    if len(query.left.rows):
        mask = mask.copy()
        mask[query.left.rows] = False
    if query.folder is not None:
        mask = mask & (corpus.folders == query.folder)
    text = _text(view, words, alone=vector is None) if query.mode != "vector" else None
    lexical = text.signals if text else []
    if vector is not None and view.matrix is None:
        sought = query.sought.rows
        rows, near = vector_candidates(view.store, corpus, vector, query.filter, mask, lexical, sought)
        return corpus_candidates(corpus, rows, text, near)
    if vector is None or view.matrix is None:
        rows = _with_sought(candidates(lexical, mask), query.sought.rows, mask)
        return corpus_candidates(corpus, rows, text, None)
    own, triple = view.matrix.cosines(vector)
    if len(query.left.rows):
        own, triple = _without(own, triple, corpus, query.left.rows)
    rows = _with_sought(candidates([*lexical, own, triple], mask), query.sought.rows, mask)
    return corpus_candidates(corpus, rows, text, vector_evidence(own, triple, corpus))


def _without(own: Floats, triple: Floats, corpus: Corpus, left: Ints) -> tuple[Floats, Floats]:
    """Cosines of all rows where some are left out: those count for no section, and for no neighbour."""
    own = own.copy()
    own[left] = own.min()
    out = np.zeros(len(corpus) + 1)
    out[left + 1] = 1
    running = np.cumsum(out)
    low, high = corpus.triples
    return own, np.where(running[high + 1] > running[low], own, triple)


def _text(view: IndexReader, words: QueryTerms, *, alone: bool) -> TextEvidence:
    """The lexical signals of all rows; with those of the best sentence and of whole files where words are alone."""
    corpus = view.corpus
    whole = text_evidence(words.postings, corpus, words.known_statistics)
    if not alone or not words.is_spaced or view.packed_part:
        return whole
    whole = replace(whole, file=file_evidence(words.postings, corpus))

    def of(terms: Collection[str]) -> TextEvidence:
        return text_evidence(
            [posting for posting in words.postings if posting.term in terms], corpus, words.known_statistics
        )

    return with_best_sentence(whole, words.sentences, of)


def _exact(store: IndexStore, pack: Packed, query: Wanted, vector: Vectors) -> Candidates:
    """The nearest of the packed passages by sqlite-vec, from the stored float32 instead of their codes."""
    segment = pack.segment
    nearest, cosines = store.nearest(vector, CANDIDATES, query.filter)
    rows = np.isin(segment.keys(np.arange(len(segment))), nearest)
    if pack.standing is not None:
        rows &= pack.standing
    candidates = search_segment(
        segment, SegmentQuery(entries=None, known_statistics=NO_STATISTICS, vector=vector, allowed_mask=rows)
    )
    if candidates.vector is None:
        return candidates
    order = np.argsort(nearest)
    own = cosines[order][np.searchsorted(nearest[order], candidates.keys)] if len(candidates) else candidates.vector.own
    return replace(candidates, vector=replace(candidates.vector, own=own))


def _packed_candidates(
    view: IndexReader, pack: Packed, query: Wanted, words: QueryTerms, vector: Vectors | None
) -> Candidates:
    wanted_query = SegmentQuery(
        entries=words.packed_entries if query.mode != "vector" else None,
        known_statistics=words.known_statistics or NO_STATISTICS,
        vector=vector,
        allowed_mask=_packed_allowed(view, pack, query),
        sought=query.sought.packed_rows,
    )
    return search_segment(pack.segment, wanted_query)


def _packed_allowed(view: IndexReader, pack: Packed, query: Wanted) -> Mask | None:
    mask = pack.segment.allowed_rows(query.filter, pack.standing, view.tagged_keys(query.filter))
    if query.folder is not None:
        every = pack.segment.folders(np.arange(len(pack.segment))) == query.folder
        mask = every if mask is None else mask & every
    if not len(query.left.packed_rows):
        return mask
    mask = np.ones(len(pack.segment), bool) if mask is None else mask.copy()
    mask[query.left.packed_rows] = False
    return mask


def _with_cosines(store: IndexStore, candidates: Candidates, vector: Vectors) -> Candidates:
    """The same candidates, with the cosines of the nearest from their stored vectors."""
    if candidates.vector is None or not len(candidates):
        return candidates
    own = candidates.vector.own.copy()
    nearest = np.argsort(-own, kind="stable")[:_MEASURED]
    keys, vectors = store.vectors(candidates.keys[nearest].tolist())
    at = nearest[np.argsort(candidates.keys[nearest], kind="stable")]
    rows = np.searchsorted(candidates.keys[at], keys)
    if len(keys):
        own[at[rows]] = np.vecdot(vectors, vector)
    return replace(candidates, vector=replace(candidates.vector, own=own))


def nearest(view: IndexReader, vector: Vectors, limit: int, filter: SearchFilter) -> tuple[Ints, Floats]:
    """The nearest passages as a search finds them: keys and cosines, nearest first."""
    if view.matrix is None and not view.packed_part:
        return view.store.nearest(vector, limit, filter)
    keys, cosines = np.empty(0, np.int64), np.empty(0)
    if view.matrix is not None:
        own, _ = view.matrix.cosines(vector)
        rows = candidates([own], _allowed_rows(view.corpus, filter, view.tagged_keys(filter)), limit)
        keys, cosines = view.corpus.keys[rows], own[rows]
    if view.packed_part:
        query = SegmentQuery(
            entries=None,
            known_statistics=NO_STATISTICS,
            vector=vector,
            allowed_mask=view.packed_part.segment.allowed_rows(
                filter, view.packed_part.standing, view.tagged_keys(filter)
            ),
        )
        found_candidates = _with_cosines(view.store, search_segment(view.packed_part.segment, query), vector)
        if found_candidates.vector:
            keys, cosines = np.r_[keys, found_candidates.keys], np.r_[cosines, found_candidates.vector.own]
    best = np.argsort(-cosines, kind="stable")[:limit]
    return keys[best], cosines[best]


def _allowed_rows(corpus: Corpus, filter: SearchFilter, rows: Ints | None) -> Mask:
    files = np.array([filter.reaches(file.source, file.path) for file in corpus.files], bool)
    mask: Mask = files[corpus.file]
    if filter.since or filter.until:
        first = filter.since.toordinal() if filter.since else 1
        last = (filter.until or dt.date.max).toordinal()
        mask = mask & (corpus.days >= first) & (corpus.days <= last)
    if rows is not None:
        mask = mask & np.isin(corpus.keys, rows)
    if filter.without:
        mask = mask.copy()
        _leave_out(corpus, filter.without, mask)
    return mask


def _leave_out(corpus: Corpus, ranges: Sequence[LineRange], mask: Mask) -> None:
    """Take passages within ranges of lines off the mask of allowed ones, which is changed in place."""
    numbers = {file.path: number for number, file in enumerate(corpus.files)}
    for lines in ranges:
        number = numbers.get(lines.path)
        if number is not None:
            rows = slice(*np.searchsorted(corpus.file, [number, number + 1]))
            within = (corpus.start_lines[rows] >= lines.start_line) & (corpus.end_lines[rows] <= lines.end_line)
            mask[rows] &= ~within


# What the words of a question say beside its signals.
_OF_QUESTION = ("speaker", "cues", "role", "identifiers", "date")


def folder_sizes(view: IndexReader) -> Mapping[int, int]:
    """Number of passages of each folder of an index."""
    sizes = dict(view.corpus.folder_sizes)
    for folder, size in (view.packed_part.segment.folder_sizes if view.packed_part else {}).items():
        sizes[folder] = sizes.get(folder, 0) + size
    return sizes


def of_folder(ranking: Ranked, folder: int, alone: Candidates | None) -> Ranked:
    """The candidates of a folder, with the scores that they have among themselves.

    Args:
        ranking: All candidates.
        folder: Number of the folder.
        alone: Its candidates as if it were searched alone; None where those of all have to do.
    """
    candidates = ranking.candidates
    own = candidates.folders == folder
    echoes = ranking.parts.get("echo", np.zeros(len(candidates))) < 0
    rows, last = np.flatnonzero(own & ~echoes), np.flatnonzero(own & echoes)
    among = candidates.take(rows)
    if alone is not None:
        # Some passages were found for what they have in common with other folders alone.
        among = joined_candidates([alone, among.take(~np.isin(among.keys, alone.keys))])
    at = {key: place for place, key in enumerate(candidates.keys.tolist())}
    places = np.array([at.get(key, -1) for key in among.keys.tolist()], np.int64)
    parts = {
        name: np.r_[np.where(places < 0, 0.0, ranking.parts[name][places]), ranking.parts[name][last]]
        for name in _OF_QUESTION
        if name in ranking.parts
    }
    scores = ranking.recipe.scores(among) if ranking.recipe else np.zeros(len(among))
    scores = sum(parts.values(), np.r_[scores, np.zeros(len(last))])
    behind = np.arange(len(scores)) >= len(among)
    scores[behind] = scores[~behind].min(initial=0.0) - 1.0
    parts |= {"echo": np.where(behind, -1.0, 0.0), "recency": np.zeros(len(scores))}
    return replace(ranking, candidates=joined_candidates([among, candidates.take(last)]), scores=scores, parts=parts)


def places_of(ranking: Ranked, keys: Ints) -> Ints:
    """Places of some candidates, by their keys."""
    order = np.argsort(ranking.candidates.keys, kind="stable")
    places: Ints = order[np.searchsorted(ranking.candidates.keys[order], keys)]
    return places


def recall(
    view: IndexReader,
    *,
    limit: int = 10,
    samples: int = 50,
    filter: SearchFilter = SearchFilter(),  # noqa: B008  (frozen)
) -> float | None:
    """Share of the exact nearest passages of some stored vectors that a search finds; None where there is none.

    The exact ones are sqlite-vec's, also where the search looks at all vectors itself.
    """
    shares = []
    for vector in sampled_vectors(view, samples):
        exact, cosines = view.store.nearest(vector, limit, filter)
        rows, found_cosines = nearest(view, vector, limit, filter)
        # Passages as near as the last exact one are as good as it.
        good = len(set(rows.tolist()) & set(exact.tolist()))
        ties = int(np.count_nonzero(found_cosines >= cosines[-1] - 1e-6)) if len(cosines) else 0
        shares.append(max(good, min(ties, len(exact))) / max(1, len(exact)))
    return float(np.mean(shares)) if shares else None
