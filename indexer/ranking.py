"""Owns the order of what is found: the signals of each passage, their fusion, recency, variety. Pure, numpy.

Invariants: a signal is a float per corpus row, higher is better; nothing here reads a store or a clock.

The default recipe, "evidence", adds standardised signals (z: deviations from the mean over the
candidates): the passage's own cosine, that of it with its neighbours, the best of its section, BM25 over
it and the one before, BM25 over a window around it; then what the question says of days and of who
speaks. Neighbours and windows end at headings: what stands below another one is about something else.

Source: weights chosen on five LoCoMo conversations, checked on five others, in evidence found within
1,024 tokens (plain BM25 .75, z-fusion of single passages .77, this .89). MMR, second hops, feedback and
headings inside vectors gained nothing.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from indexer.engine.bm25 import TextEvidence
from indexer.engine.corpus import Corpus, Floats, Ints, Mask
from indexer.types import Cue

# Best rows by each signal that are ranked. Source: with 250, evidence within 2,048 tokens falls by .014 on real chats
# of 9,000 passages, as a block of that size asks for 256.
CANDIDATES = 400
# Weights of BM25 over a passage and the one before, over its window, over it alone.
_BESIDE_VECTORS = (0.3, 0.4, 0.0)
_ALONE = (0.25, 0.35, 0.2)
# Characters of a question are met by chance in any window. Source: tests/evals/chinese.py, dev half, the last at .5,
# .8, 1: hit@1 of natural questions .930, .934, .937, of paraphrased .607, .618, .622, their hit@5 .856, .856, .848.
_OF_CHARACTERS = (0.2, 0.2, 0.8)

Fusion = Literal["evidence", "blend", "rrf"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingSettings:
    """How signals become one order.

    Attributes:
        fusion: "evidence" is the recipe above; "blend" is 0.7 cosine + 0.3 BM25; "rrf" adds 1/(60 + rank).
        recency_weight: What a passage of today gains over an old one, in standard deviations; 0 turns recency off.
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
        """That of some rows."""
        return VectorEvidence(own=self.own[rows], triple=self.triple[rows], section=self.section[rows])

    @staticmethod
    def joined(parts: Sequence[VectorEvidence]) -> VectorEvidence:
        """That of several parts of an index, one after another."""
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


def candidates(signals: Sequence[Floats], allowed: Mask, count: int = CANDIDATES) -> Ints:
    """The union of each signal's best rows among those that a filter allows, ascending."""
    rows = np.flatnonzero(allowed)
    if len(rows) <= count:
        return rows
    chosen = np.zeros(len(allowed), bool)
    for signal in signals:
        chosen[rows[np.argpartition(-signal[rows], count)[:count]]] = True
    return np.flatnonzero(chosen)


def standardised(values: Floats) -> Floats:
    """Deviations from the mean in standard deviations; zeros where all are alike."""
    if not len(values):
        return np.zeros(0)
    # `values.std()` does the same in three times the time.
    apart = values - np.add.reduce(values) / len(values)
    spread = math.sqrt(float(np.einsum("i,i->", apart, apart)) / len(values))
    # Cosines of one text with itself differ by rounding (1e-7): that is no difference.
    return apart / spread if spread > 1e-6 else np.zeros(len(values))


def fuse(
    text: TextEvidence | None, vector: VectorEvidence | None, trust: float, *, characters: bool = False
) -> dict[str, Floats]:
    """The parts of the evidence recipe for candidates, by name; their sum is the score.

    Args:
        text: Lexical signals of the candidates, or None without.
        vector: Vector signals of the candidates, or None without.
        trust: Weight of the vectors, 1.0 where the model reads the question.
        characters: Whether the question is of single characters, in a script without spaces that the model does
            not read.
    """
    parts: dict[str, Floats] = {}
    if vector is not None:
        parts["vector"] = 0.5 * trust * standardised(vector.own)
        parts["neighbours"] = 0.3 * trust * standardised(vector.triple)
        parts["section"] = 0.3 * trust * standardised(vector.section)
    if text is not None:
        # What the vectors cannot tell, which passage of a window it is, the words then have to.
        alone = vector is None or trust < 1.0
        pair, window, unit = _OF_CHARACTERS if characters else _ALONE if alone else _BESIDE_VECTORS
        parts["text"] = pair * standardised(text.pair)
        parts["window"] = window * standardised(text.window)
        parts["words"] = unit * standardised(text.unit)
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


def speaker_bonus(labels: Ints, speakers: Mapping[int, str], named: frozenset[int]) -> Floats:
    """+1.5 for what the named speakers say, -1.5 for what others say, when some but not all are named."""
    if not named or len(named) == len(speakers):
        return np.zeros(len(labels))
    return np.where(labels == 0, 0.0, np.where(np.isin(labels, list(named)), 1.5, -1.5))


def cue_bonus(cues: Ints, asks_when: bool) -> Floats:
    """+1 for words of time where the question asks when; -.4 for a question, +.4 for what follows one."""
    bonus = np.where(cues & Cue.QUESTION, -0.4, 0.0) + np.where(cues & Cue.ANSWER, 0.4, 0.0)
    return bonus + np.where(cues & Cue.TIME, 1.0, 0.0) if asks_when else bonus


def age_share(days: Ints, evergreen: Mask, today: int, half_life_days: float) -> Floats:
    """How much of its freshness each passage has left, 1.0 for today, for the future and for what never ages."""
    ages = np.where((days == 0) | evergreen, 0, np.maximum(0, today - days))
    return np.exp2(-ages / half_life_days)


def diversified(scores: Floats, terms: Sequence[frozenset[str]], weight: float, count: int) -> list[int]:
    """Order by maximal marginal relevance: positions, best first.

    Args:
        scores: Relevance of each text.
        terms: Terms of each text; likeness is their Jaccard index.
        weight: 1.0 is relevance alone, 0.0 variety alone.
        count: How many to put in order; the others are left out.

    Source: Carbonell and Goldstein 1998.
    """
    spread = float(np.ptp(scores)) if len(scores) else 0.0
    relevance = (scores - scores.min()) / spread if spread else np.ones(len(scores))
    likeness, sizes = np.zeros(len(scores)), np.array([len(each) for each in terms])
    rows_of, order = _rows_by_term(terms), list[int]()
    left = np.ones(len(scores), bool)
    for _ in range(min(count, len(scores))):
        best = int(np.argmax(np.where(left, weight * relevance - (1 - weight) * likeness, -np.inf)))
        left[best] = False
        order.append(best)
        rows = [rows_of[term] for term in terms[best]]
        shared = np.bincount(np.concatenate(rows), minlength=len(scores)) if rows else np.zeros(len(scores))
        either = sizes + sizes[best] - shared
        likeness = np.maximum(likeness, np.where(either > 0, shared / np.maximum(either, 1), 1.0))
    return order


def _rows_by_term(terms: Sequence[frozenset[str]]) -> dict[str, Ints]:
    rows = defaultdict[str, list[int]](list)
    for row, each in enumerate(terms):
        for term in each:
            rows[term].append(row)
    return {term: np.array(places) for term, places in rows.items()}


def _ranks(values: Floats) -> Floats:
    ranks = np.empty(len(values))
    ranks[np.argsort(-values, kind="stable")] = np.arange(1, len(values) + 1)
    return ranks
