"""BM25 of a question's words: in each passage, in it with the one before, and in its surroundings. Pure, numpy.

Invariants: a score is 0.0 where no term occurs; with the statistics of all parts of an index, a passage has the same
score in whichever part it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

import numpy as np

from indexer.corpus import Corpus, Floats, Ints, Mask
from indexer.language.terms import weight

K1, B = 1.2, 0.75


@dataclass(frozen=True, slots=True, kw_only=True)
class Posting:
    """Corpus rows with one term of the question, its frequency in each, and how much it counts in the question."""

    term: str
    rows: Ints
    counts: Ints
    weight: float = 1.0


_Value = TypeVar("_Value")


@dataclass(frozen=True, kw_only=True)
class ByRange(Generic[_Value]):
    """One value for each kind of range: a passage alone, it with the one before, its window."""

    unit: _Value
    pair: _Value
    window: _Value


@dataclass(frozen=True, kw_only=True)
class TextEvidence(ByRange[Floats]):
    """BM25 of every row.

    Attributes:
        sentence: The same by that sentence of the question that finds most; None where only the whole counts.
        file: BM25 of its whole file, of Markdown; 0.0 for messages. None where it does not count.
    """

    sentence: TextEvidence | None = None
    file: Floats | None = None

    def take(self, rows: Ints | Mask) -> TextEvidence:
        """Evidence of some rows."""
        return TextEvidence(
            unit=self.unit[rows],
            pair=self.pair[rows],
            window=self.window[rows],
            sentence=self.sentence.take(rows) if self.sentence else None,
            file=self.file[rows] if self.file is not None else None,
        )

    @staticmethod
    def concatenate(parts: Sequence[TextEvidence]) -> TextEvidence:
        """Evidence of several parts of an index, one after another."""
        sentences = [part.sentence for part in parts if part.sentence]
        return TextEvidence(
            unit=np.concatenate([part.unit for part in parts]),
            pair=np.concatenate([part.pair for part in parts]),
            window=np.concatenate([part.window for part in parts]),
            sentence=TextEvidence.concatenate(sentences) if len(sentences) == len(parts) else None,
        )

    def beside(self, other_evidence: TextEvidence) -> TextEvidence:
        """The same with this, or another evidence where that is more, as that of a sentence."""
        before = self.sentence
        best = other_evidence if before is None else before.at_least(other_evidence)
        return replace(self, sentence=best)

    @property
    def signals(self) -> list[Floats]:
        """Those whose best rows are candidates."""
        return [self.pair, self.window, *([] if self.file is None else [self.file])]

    @property
    def with_sentence(self) -> TextEvidence:
        """The evidence of the question and of its best sentence together."""
        best = self.sentence
        if best is None:
            return self
        return TextEvidence(unit=self.unit + best.unit, pair=self.pair + best.pair, window=self.window + best.window)

    def at_least(self, other_evidence: TextEvidence) -> TextEvidence:
        """The higher one of two evidences, row by row."""
        return TextEvidence(
            unit=np.maximum(self.unit, other_evidence.unit),
            pair=np.maximum(self.pair, other_evidence.pair),
            window=np.maximum(self.window, other_evidence.window),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeStatistics:
    """Statistics of all ranges of one kind for BM25: their number, their length, and how many have a term.

    Attributes:
        length: Terms of all ranges together.
        containing: Number of ranges with a term, by term.
    """

    count: int = 0
    length: float = 0.0
    containing: Mapping[str, int] = field(default_factory=dict)

    def beside(self, statistics: RangeStatistics) -> RangeStatistics:
        """Statistics of two parts of an index together."""
        terms = {*self.containing, *statistics.containing}
        return RangeStatistics(
            count=self.count + statistics.count,
            length=self.length + statistics.length,
            containing={term: self.containing.get(term, 0) + statistics.containing.get(term, 0) for term in terms},
        )

    def idf(self, term: str) -> float:
        """Inverse document frequency. Source: Lucene's form, which is never negative, by the term's weight."""
        containing = self.containing.get(term, 0)
        # What was removed since a part was counted may have been counted.
        return weight(term) * math.log1p(max(0.0, self.count - containing + 0.5) / (containing + 0.5))

    @property
    def mean_length(self) -> float:
        """Terms of an average range; never zero."""
        return max(1e-9, self.length / max(1, self.count))


class TextStatistics(ByRange[RangeStatistics]):
    """Statistics of passages, of pairs and of windows."""

    def beside(self, other_statistics: TextStatistics) -> TextStatistics:
        """Statistics of two parts of an index together."""
        return TextStatistics(
            unit=self.unit.beside(other_statistics.unit),
            pair=self.pair.beside(other_statistics.pair),
            window=self.window.beside(other_statistics.window),
        )


NO_STATISTICS = TextStatistics(unit=RangeStatistics(), pair=RangeStatistics(), window=RangeStatistics())


def text_statistics(postings: Sequence[Posting], corpus: Corpus, rows: Mask | None = None) -> TextStatistics:
    """Statistics of a question's terms in a corpus, or in some rows of it."""
    return TextStatistics(
        unit=_range_statistics(postings, corpus, corpus.units, rows),
        pair=_range_statistics(postings, corpus, corpus.pairs, rows),
        window=_range_statistics(postings, corpus, corpus.windows, rows),
    )


def _range_statistics(
    postings: Sequence[Posting], corpus: Corpus, ranges: tuple[Ints, Ints], rows: Mask | None = None
) -> RangeStatistics:
    """Statistics of terms in the ranges of rows, one of each row in a mask; None for all."""
    if not len(corpus):
        return RangeStatistics()
    mask = slice(None) if rows is None else rows
    low, high = (ends[mask] for ends in ranges)
    return RangeStatistics(
        count=len(low),
        length=float(_lengths(corpus, (low, high)).sum()),
        containing={
            posting.term: int(np.count_nonzero(_frequency(_running(posting, len(corpus)), low, high + 1)))
            for posting in postings
        },
    )


def text_evidence(
    postings: Sequence[Posting], corpus: Corpus, statistics: TextStatistics | None = None
) -> TextEvidence:
    """Lexical signals of a question's terms; `statistics` where the corpus is only a part of the index."""
    unit, pair, window = _scores(
        postings,
        corpus,
        (corpus.units, statistics.unit if statistics else None),
        (corpus.pairs, statistics.pair if statistics else None),
        (corpus.windows, statistics.window if statistics else None),
    )
    return TextEvidence(unit=unit, pair=pair, window=window)


def file_evidence(postings: Sequence[Posting], corpus: Corpus) -> Floats:
    """BM25 of each row's whole file among those of Markdown; 0.0 for messages of sessions.

    Number, length and document frequency are counted in files.
    """
    sizes = np.array([len(file.table) for file in corpus.files], np.int64)
    starts = np.r_[0, np.cumsum(sizes)]
    notes = np.array([file.source != "sessions" for file in corpus.files], bool)
    length = (corpus.totals[starts[1:]] - corpus.totals[starts[:-1]]).astype(np.float64)
    count = int(notes.sum())
    saturation = K1 * (1 - B + B * length / max(1e-9, float(length[notes].sum()) / max(1, count)))
    scores = np.zeros(len(corpus.files))
    for posting in postings:
        frequency = np.bincount(corpus.file[posting.rows], weights=posting.counts, minlength=len(sizes)) * notes
        statistics = RangeStatistics(count=count, containing={posting.term: int(np.count_nonzero(frequency))})
        scores += posting.weight * statistics.idf(posting.term) * (K1 + 1) * frequency / (frequency + saturation)
    return np.repeat(scores, sizes)


def with_best_sentence(
    whole: TextEvidence, sentences: Iterable[Collection[str]], evidence: Callable[[Collection[str]], TextEvidence]
) -> TextEvidence:
    """The evidence of a question with that of the sentence that finds most, row by row.

    Args:
        whole: Evidence of the question.
        sentences: Terms of each of its sentences; none where it has one only.
        evidence: Evidence of some of the question's terms.
    """
    for terms in sentences:
        whole = whole.beside(evidence(terms))
    return whole


def _scores(
    postings: Sequence[Posting], corpus: Corpus, *kinds: tuple[tuple[Ints, Ints], RangeStatistics | None]
) -> list[Floats]:
    """BM25 of every row's range of rows as one text, by several kinds of ranges at once; 0.0 where no term occurs.

    Source: Robertson and Zaragoza 2009.
    """
    if not postings or not len(corpus):
        return [np.zeros(len(corpus)) for _ in kinds]
    scored_items = [_Scored(corpus, ranges, statistics) for ranges, statistics in kinds]
    for posting in postings:
        running = _running(posting, len(corpus))
        for value in scored_items:
            value.add(posting, running)
    return [each_value.scores for each_value in scored_items]


class _Scored:
    """BM25 of one kind of ranges, term by term."""

    def __init__(self, corpus: Corpus, ranges: tuple[Ints, Ints], statistics: RangeStatistics | None) -> None:
        low, high = ranges
        self.scores = np.zeros(len(corpus))
        self._low, self._end = low, high + 1
        self._known_statistics = statistics
        length = _lengths(corpus, ranges)
        mean = statistics.mean_length if statistics else max(1e-9, float(length.mean()))
        self._saturation = K1 * (1 - B + B * length / mean)

    def add(self, posting: Posting, running: Floats) -> None:
        """Add what one term is worth."""
        term = posting.term
        frequency = _frequency(running, self._low, self._end)
        statistics = self._known_statistics
        if statistics is None:
            statistics = RangeStatistics(count=len(frequency), containing={term: int(np.count_nonzero(frequency))})
        # In place: to make new arrays takes longer than to compute what is in them.
        worth = frequency * (posting.weight * statistics.idf(term) * (K1 + 1))
        frequency += self._saturation
        worth /= frequency
        self.scores += worth


def _lengths(corpus: Corpus, ranges: tuple[Ints, Ints]) -> Floats:
    low, high = ranges
    length: Floats = (corpus.totals[high + 1] - corpus.totals[low]).astype(np.float64)
    return length


def _running(posting: Posting, n: int) -> Floats:
    """How often a term occurs in all rows before each one, and in all; shape (n + 1,)."""
    counts = np.zeros(n + 1)
    counts[posting.rows + 1] = posting.counts
    return np.cumsum(counts, out=counts)


def _frequency(running: Floats, low: Ints, end: Ints) -> Floats:
    """How often a term occurs in ranges of rows, `end` excluded."""
    frequency: Floats = running.take(end)
    frequency -= running.take(low)
    return frequency
