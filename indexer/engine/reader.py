"""Snapshot of an index that one search reads, the words of a question in it, and where late terms occur.

Invariants: a passage is in the corpus or in the packed segment, never in both; a term that occurs nowhere is left out;
counts are of all parts of the index together. The terms of late questions are remembered, a bounded number of them, so
that a write costs the next question its own passages alone; what is remembered is what the store would answer.
"""

from __future__ import annotations

import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain

import numpy as np

from indexer.common.lru import LRU
from indexer.corpus import Corpus, Ints, Mask, unique_rows
from indexer.engine.bm25 import Posting, RangeStatistics, TextStatistics, text_statistics
from indexer.engine.chains import FactChains
from indexer.engine.matrix import Matrix
from indexer.engine.segments.file_words import Recent
from indexer.engine.segments.postings import Found, find
from indexer.engine.segments.segment import Segment
from indexer.language import search_terms
from indexer.language import terms as analysis
from indexer.language.names import NOBODY, Named, greeted_speakers, named_speakers
from indexer.language.ornaments import ornament
from indexer.language.questions import asks
from indexer.language.search_terms import passage_terms
from indexer.language.sentences import sentences_of
from indexer.language.terms import has_term_rules
from indexer.stores.base import IndexStore, OfTags, StoredPassage, TermPosting
from indexer.types import ErasedPassages, SearchFilter, Vectors

_REMEMBERED_TERMS, _REMEMBERED_TAGS = 128, 8
# To read so many new passages takes as long as to ask for the terms of a question again.
_NEW_PASSAGES = 64
_NOWHERE = np.empty(0, np.int64)


class TermCache:
    """Where terms occur that were asked for, in one state of an index. Safe to use from several threads.

    Args:
        known: By term; without any passages for one that does not occur.
    """

    def __init__(self, postings: Mapping[str, TermPosting] | None = None) -> None:
        self._cache = LRU[str, TermPosting](_REMEMBERED_TERMS)
        for term, posting in (postings or {}).items():
            self._cache[term] = posting

    def postings(self, store: IndexStore, terms: Sequence[str]) -> list[TermPosting]:
        """The passages of each term; terms without any are left out. To be called within a read of that state."""
        postings = {term: posting for term in terms if (posting := self._cache.get(term))}
        missing = [term for term in terms if term not in postings]
        if missing:
            postings |= {term: TermPosting(term=term, keys=_NOWHERE, counts=_NOWHERE) for term in missing}
            postings |= {posting.term: posting for posting in store.postings(missing)}
        for term in terms:
            self._cache[term] = postings[term]
        return [postings[term] for term in terms if len(postings[term].keys)]

    def after(self, store: IndexStore, before: Corpus, now: Corpus) -> TermCache:
        """The same for a later state, to be called within a read of it: only passages that are new are looked at."""
        last = int(before.keys.max()) if len(before) else 0
        new = np.sort(now.keys[now.keys > last]).tolist()
        if before.generation != now.generation or len(new) > _NEW_PASSAGES:
            return TermCache()
        postings = dict(self._cache.items())
        added_fields = defaultdict[str, list[tuple[int, int]]](list)
        passages = store.passages(new) if postings and new else {}
        for key in sorted(passages):
            for term, times in Counter(passage_terms(passages[key].passage, passages[key].path)).items():
                if term in postings:
                    added_fields[term].append((key, times))
        is_gone = len(now) < len(before) + len(new)
        return TermCache(
            {
                term: _with(_without(posting, last, now if is_gone else None), added_fields.get(term, ()))
                for term, posting in postings.items()
            }
        )


def _without(posting: TermPosting, last: int, now: Corpus | None) -> TermPosting:
    """The same without passages that were written after the last one of its corpus, and without those that are gone."""
    # It may have been asked for later than its corpus was made.
    stays = posting.keys <= last if now is None else (posting.keys <= last) & now.rows(posting.keys)[1]
    return posting if stays.all() else replace(posting, keys=posting.keys[stays], counts=posting.counts[stays])


def _with(posting: TermPosting, added_pairs: Sequence[tuple[int, int]]) -> TermPosting:
    if not added_pairs:
        return posting
    table = np.array(added_pairs, np.int64)
    return replace(posting, keys=np.r_[posting.keys, table[:, 0]], counts=np.r_[posting.counts, table[:, 1]])


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    """The packed part of an index.

    Attributes:
        standing: Mask of the rows that nothing has replaced; None for all.
        recent: Words of the passages written since.
    """

    segment: Segment
    standing: Mask | None
    recent: Recent


@dataclass(frozen=True, kw_only=True)
class IndexReader:
    """A store within a read, and its data in memory.

    Attributes:
        corpus: The passages that are not packed; of a small index all.
        matrix: Their vectors, where they are in memory.
        packed_part: The others, where the index is large.
        terms: Occurrences of the terms of late questions, of a small index.
        facts: Statements of one thing that were asked for.
        tagged: Keys of the passages with some tags that were asked for.
    """

    store: IndexStore
    corpus: Corpus
    matrix: Matrix | None
    packed_part: Packed | None = None
    terms: TermCache = field(default_factory=TermCache, compare=False, repr=False)
    facts: FactChains = field(default_factory=FactChains, compare=False, repr=False)
    tagged: LRU[tuple[str, ...], Ints] = field(default_factory=lambda: LRU(_REMEMBERED_TAGS), compare=False, repr=False)

    def __len__(self) -> int:
        """Number of passages; those that were replaced since the packing count too."""
        return len(self.corpus) + (len(self.packed_part.segment) if self.packed_part else 0)

    def tagged_keys(self, filter: SearchFilter) -> Ints | None:
        """Keys of the passages that have the tags of a filter; None where it asks for none."""
        if not filter.tags:
            return None
        if (known_keys := self.tagged.get(filter.tags)) is None:
            known_keys = self.tagged[filter.tags] = self._tagged_keys(filter.tags)
        return known_keys

    def _tagged_keys(self, tags: tuple[str, ...]) -> Ints:
        return np.concatenate([_NOWHERE, *(posting.keys for posting in self.store.postings(OfTags(tags)))])

    @cached_property
    def speakers(self) -> dict[int, str]:
        """Names of the labels that occur, by number."""
        if not self.packed_part:
            return self.corpus.speakers
        occurring = self.packed_part.segment.speaking(self.packed_part.standing) | self.corpus.speakers.keys()
        return {label: self.corpus.label_names[label] for label in occurring}

    @cached_property
    def greeted_names(self) -> dict[str, frozenset[int]]:
        """Names, folded, that speakers are greeted by, and the numbers of the labels of those speakers."""
        names = self.corpus.label_names
        packed_parts = (
            self.packed_part.segment.greetings.with_names(names, self.packed_part.standing) if self.packed_part else ()
        )
        greetings = chain(packed_parts, self.corpus.greetings.with_names(names))
        return ornament("greetings", {}, greeted_speakers, greetings)


# Of a longer question the rarest terms count: a whole message is one, and in Chinese the question stands last. Source:
# noisy questions of MemDaily, evidence among the first five with the first 64, the rarest 16, 32, 64, and all terms:
# .758, .872, .894, .901, .899 of all its kinds.
ASKED_TERMS = 512
MAX_TERMS = 64
# Identifiers of a question that are looked for.
_MOST_NAMES = 8
# What a term counts that stands in a sentence that asks, of a question of several sentences in a script without spaces.
# Source: noisy questions of MemDaily .883, .908; in English, at 1.5, 2 and 3, ±.001, ±.001 and -.03 (RealMem).
_OF_ASKING = 2.0
_SENTENCES = 8
_COMMON_SHARE = 0.3
_COMMON_FROM = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryTerms:
    """Occurrences of a question's terms.

    Attributes:
        postings: In the corpus.
        packed_entries: In the packed part.
        known_statistics: Their statistics in both together; None where nothing is packed.
        named_rows: Rows of the passages that hold each identifier that the question names, in the corpus.
        packed_named: The same, in the packed part.
        asked: The terms that count, in the order of the question, those that occur nowhere among them.
        occurring: All terms of the question that occur, counted or not.
        emphasis: How much terms count that do not count once.
        sentences: Terms of each sentence of a question that has several.
        is_spaced: True for a question that is all in scripts with spaces between words.
    """

    postings: list[Posting]
    packed_entries: tuple[Found, ...] = ()
    known_statistics: TextStatistics | None = None
    named_rows: tuple[Ints, ...] = ()
    packed_named: tuple[Ints, ...] = ()
    asked: tuple[str, ...] = ()
    occurring: frozenset[str] = frozenset()
    emphasis: Mapping[str, float] = field(default_factory=dict)
    sentences: tuple[frozenset[str], ...] = ()
    is_spaced: bool = True

    def passages(self, term: str) -> int:
        """Number of passages with a term."""
        if self.known_statistics:
            return self.known_statistics.unit.containing.get(term, 0)
        return sum(len(posting.rows) for posting in self.postings if posting.term == term)

    def without(self, rows: Ints, packed_rows: Ints) -> QueryTerms:
        """The same as if some passages had none of the terms: rows of the corpus, and of the packed part."""
        postings = []
        for posting in self.postings:
            stays = ~np.isin(posting.rows, rows)
            postings.append(replace(posting, rows=posting.rows[stays], counts=posting.counts[stays]))
        value = []
        for entry in self.packed_entries:
            stays = ~np.isin(entry.rows, packed_rows)
            value.append(replace(entry, rows=entry.rows[stays], counts=entry.counts[stays]))
        return replace(
            self,
            postings=[each_posting for each_posting in postings if len(each_posting.rows)],
            packed_entries=tuple(value),
        )

    def statistics(self, passages: int) -> RangeStatistics:
        """Statistics of the terms that count in so many passages."""
        return RangeStatistics(count=passages, containing={term: self.passages(term) for term in self.asked})

    @property
    def terms(self) -> list[str]:
        """The terms that occur at all."""
        return list(dict.fromkeys([*(p.term for p in self.postings), *(entry.term for entry in self.packed_entries)]))


NO_TERMS = QueryTerms(postings=[])


def find_terms(view: IndexReader, question: str, *, names_alone: bool = False) -> QueryTerms:
    """Occurrences of a question's terms; of its identifiers alone, where words do not count."""
    names = search_terms.asked_names(question)[:_MOST_NAMES]
    if names_alone and not names:
        return NO_TERMS
    terms = [] if names_alone else search_terms.asked_terms(question)[:ASKED_TERMS]
    every = list(dict.fromkeys([*terms, *chain.from_iterable(names)]))
    emphasis = ornament("questions", {}, _emphasis, question)
    parts: tuple[Found, ...] = ()
    if view.packed_part:
        postings = view.packed_part.recent.postings(every)
        parts = tuple(find(view.packed_part.segment.postings, every))
    else:
        postings = unpacked_postings(view, every)
    rows, packed_named = _rows_of_names(names, postings), _rows_of_names(names, parts)
    own = frozenset(terms)
    postings = [posting for posting in postings if posting.term in own]
    parts = tuple(entry for entry in parts if entry.term in own)
    texts, occurring = _choose_terms(terms, postings, parts)
    postings = [
        replace(each_posting, weight=emphasis.get(each_posting.term, 1.0))
        for each_posting in postings
        if each_posting.term in texts
    ]
    parts = tuple(
        replace(each_entry, weight=emphasis.get(each_entry.term, 1.0))
        for each_entry in parts
        if each_entry.term in texts
    )
    statistics = None
    if view.packed_part:
        statistics = view.packed_part.segment.statistics(parts).beside(text_statistics(postings, view.corpus))
    return QueryTerms(
        postings=postings,
        packed_entries=parts,
        known_statistics=statistics,
        named_rows=rows,
        packed_named=packed_named,
        asked=texts,
        occurring=occurring,
        emphasis=emphasis,
        sentences=ornament("sentences", (), _sentence_terms, question, texts),
        is_spaced=analysis.is_spaced(question),
    )


def _sentence_terms(question: str, asked_texts: Sequence[str]) -> tuple[frozenset[str], ...]:
    """Terms of each sentence of a question that has several, in a script with spaces; of many the longest ones."""
    sentences = sentences_of(question)
    if len(sentences) < 2 or analysis.has_unspaced(question):
        return ()
    intersections = {frozenset(analysis.query_terms(sentence)).intersection(asked_texts) for sentence in sentences}
    longest = sorted(intersections - {frozenset()}, key=lambda terms: (-len(terms), sorted(terms)))[:_SENTENCES]
    return tuple(longest) if len(longest) > 1 else ()


def unpacked_postings(view: IndexReader, terms: Sequence[str]) -> list[Posting]:
    """Postings of the terms that occur, of an index of which nothing is packed."""
    value = []
    for posting in view.terms.postings(view.store, terms):
        rows, known_rows = view.corpus.rows(posting.keys)
        if len(rows):
            value.append(Posting(term=posting.term, rows=rows, counts=posting.counts[known_rows]))
    return value


def _rows_of_names(names: Sequence[tuple[str, ...]], items: Sequence[Posting | Found]) -> tuple[Ints, ...]:
    """Rows, ascending, with one of the terms of each identifier."""
    rows = {value.term: value.rows.astype(np.int64) for value in items} if names else {}
    held_rows = [[rows[term] for term in terms if term in rows] for terms in names]
    return tuple(unique_rows(np.concatenate(each_rows)) for each_rows in held_rows if each_rows)


def _choose_terms(
    terms: Sequence[str], postings: Sequence[Posting], entries: Sequence[Found]
) -> tuple[tuple[str, ...], frozenset[str]]:
    """The terms that count, and those that occur: of too many the rarest, and a share of those that do not occur."""
    passages = Counter[str]()
    for posting in postings:
        passages[posting.term] += len(posting.rows)
    for entry in entries:
        passages[entry.term] += entry.units
    occurring = frozenset(passages)
    if len(terms) <= MAX_TERMS:
        return tuple(terms), occurring
    rarest = set(sorted(occurring, key=lambda term: (passages[term], term))[:MAX_TERMS])
    other_terms = [term for term in terms if term not in occurring]
    rarest.update(other_terms[: round(len(other_terms) * len(rarest) / max(1, len(occurring)))])
    return tuple(term for term in terms if term in rarest), occurring


def _emphasis(question: str) -> dict[str, float]:
    """How much terms count that stand in a sentence that asks, beside others that do not."""
    if not analysis.has_unspaced(question):
        return {}
    sentences = sentences_of(question)
    asking = [sentence for sentence in sentences if asks(sentence)]
    if len(asking) == len(sentences):
        return {}
    return {term: _OF_ASKING for sentence in asking for term in analysis.query_terms(sentence)}


def find_named(view: IndexReader, question: str, words: QueryTerms) -> Named:
    """The speakers that a question names.

    Args:
        view: The index.
        question: The question.
        words: Occurrences of its terms; without them no word is taken for a misspelling.
    """
    occurring = words.occurring

    def occurs(word: str) -> bool:
        return not occurring or not occurring.isdisjoint(analysis.index_terms(word))

    def read() -> Named:
        return named_speakers(view.speakers, question, occurs=occurs, greeted_fields=view.greeted_names)

    return ornament("names", NOBODY, read)


def vector_text(
    question: str, words: QueryTerms, view: IndexReader, reads: Callable[[str], bool], named_value: Named = NOBODY
) -> str:
    """The question without words that do not tell passages apart: names of speakers, words of nearly all.

    Args:
        question: The question.
        words: Occurrences of its terms.
        view: The index.
        reads: Tells if the model reads a text. Only words that it reads are left, maybe none; the whole question where
            no term was found, as the vectors are all there is.
        named_value: The speakers that it names.

    Source: dropping non-stop words of more than 30 % of the passages gained .014 on LoCoMo.
    """
    return ornament("words", question, _telling, question, words, view, reads, named_value)


def _telling(
    question: str, words: QueryTerms, view: IndexReader, reads: Callable[[str], bool], named_value: Named
) -> str:
    """The words of a question that a vector is made of; see `vector_text`. Days are none of them."""
    question = search_terms.strip_days(question)
    if words.terms:
        question = analysis.read_part(question, reads).text
    n = len(view)
    common = {term for term in words.terms if n >= _COMMON_FROM and words.passages(term) > _COMMON_SHARE * n}
    common.update(term for word in named_value.words for term in analysis.index_terms(word))
    kept_words = [word for word in question.split() if not _only(word, common)]
    return " ".join(kept_words) or question


def _only(word: str, common: set[str]) -> bool:
    """True if a word is one of the common ones, or its genitive."""
    terms = analysis.index_terms(re.sub(r"['’]s\b", "", word))
    return bool(terms) and all(term in common for term in terms)


def find_erased(view: IndexReader, before: Sequence[StoredPassage], after: Collection[int]) -> ErasedPassages:
    """Look for passages that were erased.

    Args:
        view: The index as it is now.
        before: The passages of some files before the erasure.
        after: Keys of those that stay.
    """
    passages = [passage for passage in before if passage.key not in after]
    keys = np.array([known_passage.key for known_passage in passages], np.int64)
    fingerprint = view.store.head().fingerprint
    terms = (
        {term for passage in passages for term in passage_terms(passage.passage, passage.path)}
        if has_term_rules(fingerprint)
        else None
    )
    fields = {
        "rows": bool(view.store.passages(keys.tolist())),
        "full text": bool(view.store.postings(terms, among=set(keys.tolist()))),
    }
    if fingerprint is not None and fingerprint.dimensions:
        fields["vectors"] = bool(len(view.store.vectors(keys.tolist())[0]))
    if view.packed_part:
        segment = view.packed_part.segment
        fields["pack"] = bool(np.isin(segment.keys(np.arange(len(segment))), keys).any())
    left = tuple(place for place, is_there in fields.items() if is_there)
    return ErasedPassages(passages=len(passages), checked=tuple(fields), left=left)


def _sampled_keys(view: IndexReader, count: int) -> Ints:
    """Keys of some passages, spread over all of them, the same ones for the same passages; in ascending order."""
    rows = (
        view.packed_part.segment.keys(np.arange(len(view.packed_part.segment)))
        if view.packed_part
        else view.corpus.keys[:0]
    )
    keys = np.concatenate([view.corpus.keys, rows])
    chosen_numbers = random.Random(len(keys)).sample(range(len(keys)), min(count, len(keys)))
    return np.sort(keys[chosen_numbers])


def sampled_vectors(view: IndexReader, count: int) -> Iterable[Vectors]:
    """Vectors of some passages; none where the index was made without a model."""
    fingerprint = view.store.head().fingerprint
    return view.store.vectors(_sampled_keys(view, count).tolist())[1] if fingerprint and fingerprint.dimensions else ()


def sampled_texts(view: IndexReader, count: int) -> list[str]:
    """Texts of some passages, spread over all of them."""
    keys = _sampled_keys(view, count)
    passages = view.store.passages(keys.tolist())
    return [passage.passage.text for passage in passages.values()]


def neighbours(view: IndexReader, samples: int = 5) -> tuple[int, int]:
    """Of how many stored vectors sqlite-vec was asked for the nearest, and how many it answered with an equal."""
    values = [view.store.nearest(vector, 1, SearchFilter())[1] for vector in sampled_vectors(view, samples)]
    return len(values), sum(len(cosines) > 0 and cosines[0] > 1 - 1e-4 for cosines in values)
