"""Ranking: the signals of each candidate, their fusion, recency, variety. Pure, numpy, but for vectors of the store.

Invariants: a signal is a float per row, higher is better; nothing here reads a clock. Where the vectors of a corpus are
not in memory, sqlite-vec gives the nearest by the stored float32: the signals are those of a pass over all vectors, as
long as the corpus is not larger than what the store gives at once; above that, the other passages count as no nearer
than the last one given, so candidates at the far end may differ, which changes all scores a little.

The default recipe, "evidence", adds standardised signals (z: deviations from the mean over the candidates): the
passage's own cosine, its cosine with its neighbours, the best of its section, BM25 over it and the one before, BM25
over a window around it; then what the question says of days and speakers. Neighbours and windows end at headings: text
below another heading is about something else.

Source: weights chosen on five LoCoMo conversations, checked on five others, in evidence found within 1,024 tokens
(plain BM25 .75, z-fusion of single passages .77, this .89). MMR, second hops, feedback and headings inside vectors
gained nothing.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from indexer.corpus import Corpus, Floats, Ints, Mask
from indexer.engine.bm25 import TextEvidence
from indexer.stores.base import NEAREST_LIMIT, IndexStore
from indexer.types import ROLES, Cue, SearchFilter, Vectors

# Version of the signals and of the recipe: relevance was fitted to one.
RANKING_RULES = "evidence-2"
# Best rows by each signal that are ranked. Source: with 250, evidence within 2,048 tokens falls by .014 on real chats
# of 9,000 passages, as a block of that size asks for 256.
CANDIDATES = 400
# Weights of BM25 over a passage and the one before, over its window, over it alone.
_BESIDE_VECTORS = (0.3, 0.4, 0.0)
_ALONE = (0.25, 0.35, 0.2)
# BM25 of a passage with a word once, per inverse document frequency.
_RARE_WORD = 1.6
# More than all other signals of neighbours of a passage are worth that has what the question names.
NAME_BONUS = 12.0
# Characters of a question are met by chance in any window. Source: tests/evals/chinese.py, dev half, the last at .5,
# .8, 1: hit@1 of natural questions .930, .934, .937, of paraphrased .607, .618, .622, their hit@5 .856, .856, .848.
# The same of what was said in a week (MemDaily), at .2, .2, .8 and at these: evidence among the first five .901, .907.
_OF_CHARACTERS = (0.1, 0.1, 0.9)
# What a user asks about himself, he has said himself; his words are repeated by the assistant, at length. Source: talks
# of 100,000 tokens (BEAM), evidence among the first five at 0, .3, .5, .8, 1.2: by words alone .370, .417, .439, .468,
# .476, beside vectors .421, –, .476, .498, .519.
_ROLE = 0.8
# What a message that only asks has less than one that tells.
_ASKED_ONLY = -1.5
# What the passages of a file tell together, where nothing but words tells anything of them. Source: dialogues at work
# (RealMem), evidence among the first five at 0, .3, .6, 1: .540, .565, .568, .569; LoCoMo's .855, .862, .857, .852.
# Beside vectors it costs, .006 of LoCoMo's at .2: there the best cosine of a section does the same.
_FILE = 0.3

_ROUNDING = 1e-6

Fusion = Literal["evidence", "blend", "rrf"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceWeights:
    """Weights of the signals beside each other, where a question has vectors that count in full.

    Attributes:
        vector: Of the passage's own cosine, its cosine with its neighbours, the best of its section.
        words: Of BM25 over a passage and the one before, over its window, over it alone.
        rare_words: So many words of the question that one candidate alone has, the best passage must have for words to
            count in full; 0 if they always do.
    """

    vector: tuple[float, float, float] = (0.5, 0.3, 0.3)
    words: tuple[float, float, float] = _BESIDE_VECTORS
    rare_words: float = 0.0

    def share_of_words(self, text: TextEvidence) -> float:
        """Share of their weight that words count with, for a question."""
        if not self.rare_words or not len(text.unit):
            return 1.0
        value = _RARE_WORD * math.log1p(len(text.unit) / 1.5)
        return min(1.0, float(text.unit.max()) / (self.rare_words * value))


ENGLISH_WEIGHTS = EvidenceWeights()
# The vectors of multilingual-e5-small tell more of a passage in another language than words do; and where no passage
# has the words of a question, the words of grammar that they share are noise. Source: dev halves, hit@1 / hit@5 with
# the weights above, and with these. tests/evals/chinese.py, paraphrased: .656 / .919, .730 / .930 (vectors alone .663 /
# .889); natural: .937 / .997, .934 / .997 (.882 / .979). tests/evals/paraphrases.py, these with words that always count
# in full, and these: German .321 / .464, .393 / .500, Chinese .360 / .760, .440 / .800. In a talk in English (LoCoMo)
# the first hit is right in .467 instead of .525.
MULTILINGUAL_WEIGHTS = EvidenceWeights(vector=(1.1, 0.2, 0.2), words=(0.2, 0.2, 0.1), rare_words=2.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingSettings:
    """Settings of the ranking.

    Attributes:
        fusion: "evidence" is the recipe above; "blend" is 0.7 cosine + 0.3 BM25; "rrf" adds 1/(60 + rank).
        recency_weight: Bonus of a passage of today over an old one, in standard deviations; 0 turns recency off.
        half_life_days: Age at which half of that is left. Undated and evergreen files do not age.
        mmr_lambda: Below 1, later hits that repeat earlier ones are put back (maximal marginal relevance).
    """

    fusion: Fusion = "evidence"
    recency_weight: float = 0.3
    half_life_days: float = 30.0
    mmr_lambda: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorEvidence:
    """Cosine of every row: alone, with its neighbours, the best of its section."""

    own: Floats
    triple: Floats
    section: Floats

    def take(self, rows: Ints | Mask) -> VectorEvidence:
        """Evidence of some rows."""
        return VectorEvidence(own=self.own[rows], triple=self.triple[rows], section=self.section[rows])

    @staticmethod
    def concatenate(parts: Sequence[VectorEvidence]) -> VectorEvidence:
        """Evidence of several parts of an index, one after another."""
        return VectorEvidence(
            own=np.concatenate([part.own for part in parts]),
            triple=np.concatenate([part.triple for part in parts]),
            section=np.concatenate([part.section for part in parts]),
        )


def vector_evidence(own: Floats, triple: Floats, corpus: Corpus) -> VectorEvidence:
    """The vector signals, from cosines of single passages and of passages among their neighbours."""
    best = np.maximum.reduceat(own, corpus.section_starts) if len(corpus) else own
    sizes = np.diff(np.r_[corpus.section_starts, len(corpus)])
    return VectorEvidence(own=own, triple=triple, section=np.repeat(best, sizes))


def candidates(signals: Sequence[Floats], mask: Mask, count: int = CANDIDATES) -> Ints:
    """Union of each signal's best rows among those that a filter allows, ascending."""
    rows = np.flatnonzero(mask)
    if len(rows) <= count:
        return rows
    chosen_values = np.zeros(len(mask), bool)
    for signal in signals:
        chosen_values[rows[np.argpartition(-signal[rows], count)[:count]]] = True
    return np.flatnonzero(chosen_values)


def standardise(values: Floats) -> Floats:
    """Deviations from the mean in standard deviations; zeros where all are equal."""
    deviation = _spread_of(values)
    # Cosines of one text with itself differ by rounding (1e-7): that is no difference.
    if deviation <= _ROUNDING:
        return np.zeros(len(values))
    apart: Floats = (values - np.add.reduce(values) / len(values)) / deviation
    return apart


def _spread_of(values: Floats) -> float:
    """Standard deviation of some values; 0.0 for none. `values.std()` does the same in three times the time."""
    if not len(values):
        return 0.0
    apart = values - np.add.reduce(values) / len(values)
    return math.sqrt(float(np.einsum("i,i->", apart, apart)) / len(values))


def _standardised_among(values: Floats, mask: Mask) -> Floats:
    """Deviations of the chosen ones from their mean in their standard deviations; zeros for the others."""
    among = np.zeros(len(values))
    among[mask] = standardise(values[mask])
    return among


def fuse(
    text: TextEvidence | None,
    vector: VectorEvidence | None,
    trust: float,
    *,
    weights: EvidenceWeights = ENGLISH_WEIGHTS,
    characters: bool = False,
) -> dict[str, Floats]:
    """Parts of the evidence recipe for candidates, by name; their sum is the score.

    Args:
        text: Lexical signals of the candidates; None without.
        vector: Vector signals of the candidates; None without.
        trust: Weight of the vectors, 1.0 where the model reads the question.
        weights: Those of the model.
        characters: True for a question of single characters, in a script without spaces that the model does not read.
    """
    parts: dict[str, Floats] = {}
    if vector is not None:
        own, triple, section = weights.vector
        parts["vector"] = own * trust * standardise(vector.own)
        parts["neighbours"] = triple * trust * standardise(vector.triple)
        parts["section"] = section * trust * standardise(vector.section)
    if text is not None:
        # What the vectors cannot tell, which passage of a window it is, the words then have to.
        alone = vector is None or trust < 1.0
        pair, window, unit = _OF_CHARACTERS if characters else _ALONE if alone else weights.words
        share = 1.0 if alone else weights.share_of_words(text)
        evidence = text.with_sentence
        parts["text"] = share * pair * standardise(evidence.pair)
        parts["window"] = share * window * standardise(evidence.window)
        parts["words"] = share * unit * standardise(evidence.unit)
        if text.file is not None and vector is None:
            parts["file"] = _FILE * _standardised_among(text.file, text.file > 0)
    return parts


def blend(text: TextEvidence | None, vector: VectorEvidence | None) -> dict[str, Floats]:
    """The common 0.7/0.3 recipe: cosine, and BM25 squeezed into 0..1.

    Source: OpenClaw; its squeeze is 1/(1+rank) of FTS5's negative rank, which is r/(1+r) of ours.
    """
    parts: dict[str, Floats] = {}
    if vector is not None:
        parts["vector"] = 0.7 * vector.own
    if text is not None:
        parts["text"] = 0.3 * text.unit / (1 + text.unit)
    return parts


def reciprocal_ranks(text: TextEvidence | None, vector: VectorEvidence | None) -> dict[str, Floats]:
    """Reciprocal rank fusion; a candidate without any term of the question has no lexical rank.

    Source: Cormack, Clarke, Büttcher 2009, k = 60.
    """
    parts: dict[str, Floats] = {}
    if vector is not None:
        parts["vector"] = 1 / (60 + _ranks(vector.own))
    if text is not None:
        parts["text"] = np.where(text.unit > 0, 1 / (60 + _ranks(text.unit)), 0.0)
    return parts


def speaker_bonus(labels: Ints, speakers: Mapping[int, str], named_numbers: frozenset[int]) -> Floats:
    """+1.5 for passages of the named speakers, -1.5 for those of others, when some but not all are named."""
    if not named_numbers or len(named_numbers) == len(speakers):
        return np.zeros(len(labels))
    return np.where(labels == 0, 0.0, np.where(np.isin(labels, list(named_numbers)), 1.5, -1.5))


def cue_bonus(cues: Ints, asks_when: bool) -> Floats:
    """+1 for words of time where the question asks when; -.4 for a question, +.4 for a passage after one.

    What a user has only asked for says less than any of that: -1.5.
    """
    bonus = np.where(cues & Cue.QUESTION, -0.4, 0.0) + np.where(cues & Cue.ANSWER, 0.4, 0.0)
    bonus = np.where(cues & Cue.ASKING, _ASKED_ONLY, bonus)
    return bonus + np.where(cues & Cue.TIME, 1.0, 0.0) if asks_when else bonus


def name_bonus(keys: Ints, rows: Sequence[Ints]) -> Floats:
    """Bonus of passages for each identifier of the question that they hold.

    Args:
        keys: The store's key of each passage.
        rows: Keys of the passages that hold each identifier.
    """
    held_values = np.zeros(len(keys))
    for holders in rows:
        held_values += np.isin(keys, holders)
    return NAME_BONUS * held_values


def latest_bonus(days: Ints, most: float, half_life_days: float) -> Floats:
    """Bonus of passages by how much older they are than the newest one; 0 for undated ones."""
    rows = days > 0
    if not rows.any():
        return np.zeros(len(days))
    return np.where(rows, most * np.exp2((days - days.max()) / half_life_days), 0.0)


def role_bonus(roles: Ints, mask: Mask, kind: Literal["user", "assistant", ""]) -> Floats:
    """Loss of messages beside those whose word a question is about; of tools half of the other's."""
    bonus = np.zeros(len(roles))
    if kind:
        other_kind = "assistant" if kind == "user" else "user"
        bonus[mask & (roles == ROLES.index(other_kind))] = -2 * _ROLE
        bonus[mask & (roles == ROLES.index("tool"))] = -_ROLE
    return bonus


def age_share(days: Ints, evergreen: Mask, today: int, half_life_days: float) -> Floats:
    """Share of its freshness that each passage has left: 1.0 for today, for the future and for what never ages."""
    ages = np.where((days == 0) | evergreen, 0, np.maximum(0, today - days))
    return np.exp2(-ages / half_life_days)


def spread(order: Ints, files: Ints, mask: Mask, most: int) -> Ints:
    """An order of candidates in which at most so many of one file stand before the first ones of all others.

    Args:
        order: Their places, the best first.
        files: The file of each.
        mask: Mask of those that this holds for.
        most: Of one file.
    """
    by_file = np.argsort(files[order], kind="stable")
    rows = files[order][by_file]
    starts = np.flatnonzero(np.r_[True, rows[1:] != rows[:-1]]) if len(order) else order
    sizes = np.diff(np.r_[starts, len(order)])
    nth = np.empty(len(order), np.int64)
    nth[by_file] = np.arange(len(order)) - np.repeat(starts, sizes)
    first = (nth < most) | ~mask[order]
    spread_out: Ints = np.r_[order[first], order[~first]]
    return spread_out


def mmr_order(scores: Floats, terms: Sequence[frozenset[str]], weight: float, count: int) -> list[int]:
    """Order by maximal marginal relevance: positions, best first.

    Args:
        scores: Relevance of each text.
        terms: Terms of each text; similarity is their Jaccard index.
        weight: 1.0 is relevance alone, 0.0 variety alone.
        count: Number of positions; the others are left out.

    Source: Carbonell and Goldstein 1998.
    """
    spread = float(np.ptp(scores)) if len(scores) else 0.0
    relevance = (scores - scores.min()) / spread if spread else np.ones(len(scores))
    likeness, sizes = np.zeros(len(scores)), np.array([len(keys) for keys in terms])
    rows_of, order = _rows_by_term(terms), list[int]()
    left = np.ones(len(scores), bool)
    for _ in range(min(count, len(scores))):
        best = int(np.argmax(np.where(left, weight * relevance - (1 - weight) * likeness, -np.inf)))
        left[best] = False
        order.append(best)
        rows = [rows_of[term] for term in terms[best]]
        shared_values = np.bincount(np.concatenate(rows), minlength=len(scores)) if rows else np.zeros(len(scores))
        either_value = sizes + sizes[best] - shared_values
        likeness = np.maximum(likeness, np.where(either_value > 0, shared_values / np.maximum(either_value, 1), 1.0))
    return order


def _rows_by_term(terms: Sequence[frozenset[str]]) -> dict[str, Ints]:
    rows = defaultdict[str, list[int]](list)
    for row, keys in enumerate(terms):
        for term in keys:
            rows[term].append(row)
    return {term: np.array(places) for term, places in rows.items()}


def _ranks(values: Floats) -> Floats:
    ranks = np.empty(len(values))
    ranks[np.argsort(-values, kind="stable")] = np.arange(1, len(values) + 1)
    return ranks


# The length of a sum of n unit vectors with cosines of .4 is about n to this power: good enough for a long list.
_LENGTH_POWER = 0.75
# Rows on that list; with as many as candidates, the order of the first twenty changes for one question in ten.
_LONG_LIST = 2 * CANDIDATES


def vector_candidates(
    store: IndexStore,
    corpus: Corpus,
    vector: Vectors,
    filter: SearchFilter,
    mask: Mask,
    lexical: Sequence[Floats],
    sought: Ints,
) -> tuple[Ints, VectorEvidence]:
    """Candidates of a question, ascending, and the vector signals of all rows: exact for the candidates.

    Args:
        store: Store of the vectors.
        corpus: The passages.
        vector: Vector of the question.
        filter: Filter of the passages.
        mask: The same, by row.
        lexical: Signals of words; the best rows by each are candidates too.
        sought: Rows that are candidates in any case, if they are allowed.
    """
    own = _cosines(store, corpus, vector, filter)
    low, high = corpus.triples
    rough = _sums(own, low, high) / (high - low + 1) ** _LENGTH_POWER
    listed_values = np.zeros(len(corpus), bool)
    listed_values[candidates([*lexical, own], mask)] = True
    listed_values[candidates([rough], mask, _LONG_LIST)] = True
    wanted_values = np.zeros(len(corpus), bool)
    wanted_values[sought] = True
    wanted_values &= mask
    listed_values |= wanted_values
    rows = np.flatnonzero(listed_values)
    triple = np.full(len(corpus), -np.inf)
    triple[rows] = _triples(store, corpus, vector, rows, own)
    wanted_values[candidates([*lexical, own, triple], mask & listed_values)] = True
    return np.flatnonzero(wanted_values), vector_evidence(own, triple, corpus)


def _triples(store: IndexStore, corpus: Corpus, vector: Vectors, rows: Ints, own: Floats) -> Floats:
    """Cosine of some rows with their neighbours; writes the exact cosines of all these into `own`."""
    low, high = (ends[rows] for ends in corpus.triples)
    beside = np.zeros(len(corpus), bool)
    beside[low] = beside[rows] = beside[high] = True
    near = np.flatnonzero(beside)
    vectors = _vectors(store, corpus, near, len(vector))
    own[near] = np.vecdot(vectors, vector)
    sums = vectors[np.searchsorted(near, rows)]
    for ends in (low, high):
        other_rows = np.flatnonzero(ends != rows)
        sums[other_rows] += vectors[np.searchsorted(near, ends[other_rows])]
    lengths = np.sqrt(np.maximum(np.vecdot(sums, sums).astype(np.float64), 1e-12))
    triples: Floats = _sums(own, low, high) / lengths
    return triples


def _cosines(store: IndexStore, corpus: Corpus, vector: Vectors, filter: SearchFilter) -> Floats:
    """Cosine of each row, as far as the store gives it."""
    # What a filter leaves out still counts as a neighbour; where not all can be told, those that it leaves matter.
    all_told = len(corpus) <= NEAREST_LIMIT
    keys, cosines = store.nearest(vector, min(len(corpus), NEAREST_LIMIT), SearchFilter() if all_told else filter)
    rows, mask = corpus.rows(keys)
    own = np.full(len(corpus), 0.0 if all_told or not len(cosines) else float(cosines.min()))
    own[rows] = cosines[mask]
    return own


def _vectors(store: IndexStore, corpus: Corpus, rows: Ints, dimensions: int) -> Vectors:
    """Vectors of some rows, ascending; zeros where a passage has none."""
    vectors = np.zeros((len(rows), dimensions), np.float32)
    keys, stored_vectors = store.vectors(corpus.keys[rows].tolist())
    found_rows, mask = corpus.rows(keys)
    if len(found_rows):
        vectors[np.searchsorted(rows, found_rows)] = stored_vectors[mask]
    return vectors


def _sums(values: Floats, low: Ints, high: Ints) -> Floats:
    """Sums of the values from `low` to `high`, both included."""
    running = np.r_[0.0, np.cumsum(values)]
    sums: Floats = running[high + 1] - running[low]
    return sums
