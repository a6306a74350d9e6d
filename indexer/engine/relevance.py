"""Relevance of hits: the probability that a passage bears on the question, from signals of its ranking. Pure, numpy.

Invariants: between 0 and 1, and rising with every signal that speaks for a passage; the same whatever the limit of the
search; no model is called and no text is read but the first words of the hits; where the table was fitted to another
embedding model or ranking there is no number, and a reason.

A logistic function of two kinds of signals. Those of the question say if anything here answers it: the best passage by
vectors and words together, how many of its telling words occur at all. Those of a passage say how far it stands behind
the best; they count the less the more passages there are, as much bears on a question in a large memory and little in
a small one.

A second function of the same signals, `answers`, tells the passages of one question apart: of dozens of lines that bear
on it, one or two answer. Packing goes by it. Relevance does not: a limit on it would leave out the second piece of
evidence of one question before the first of another, which nothing answers.

Source: `relevance.json`, fitted and judged by `python -m tests.evals.relevance`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Literal

import numpy as np

from indexer.common.patterns import lazy_regex
from indexer.corpus import Floats, Ints, Mask
from indexer.embeddings.bundled import MultilingualE5
from indexer.engine.bm25 import K1, RangeStatistics
from indexer.engine.candidates import Ranked
from indexer.engine.ranking import RANKING_RULES, RankingSettings
from indexer.language.terms import TERM_RULES, query_terms
from indexer.types import Passage

# Version of all that the signals come from.
RULES = f"{RANKING_RULES}/{TERM_RULES}"
# What a hit is known by: vectors and words, words alone, words of a script that is searched by its characters, vectors.
Regime = Literal["hybrid", "words", "characters", "vector"]

QUESTION_SIGNALS = ("agreement", "near", "score", "known", "terms", "passages")
PASSAGE_SIGNALS = ("cosine", "window", "words", "subject", "behind", "cues", "length")

# Up to so many passages, what a passage lacks counts in full; of ten times as many about half of it.
_SMALL = 20
_SPREAD = 0.38
_PASSAGES = (10, 20_000)
_NEAR = 10
# Parts of a score that say nothing of how much a passage bears on the question, or that other signals say.
_APART = ("recency", "file", "hop")
# What a question names stands before all others by more than any signal is worth; so much of it tells how near it is.
_NAMING, _MOST_NAMED = ("identifiers", "date"), 1.0
# Cosine of texts that have little to do with each other, by a model whose cosines all lie close together: what is near
# a question tells something beside what else is near, so where there are few passages, as many others are supposed.
# Source: the last hits of the questions that the table was fitted to.
_UNRELATED = {MultilingualE5.fingerprint: 0.81}
_LONG = 150
_LEAST_MISSPELT = 4
# BM25 of a passage with all words of the question once, per idf.
_FULL = (K1 + 1) * 0.73
_SUBJECT = lazy_regex(r"([^:：\n]{1,160})[:：]")
_SUBJECT_PARTS = lazy_regex(r"[,，、;；]|\*\*|__")


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionTerms:
    """The terms of a question, and how rare each is in the index.

    Attributes:
        terms: All of them.
        telling: Those that are no names of speakers.
        statistics: Number of passages, and of those with each term.
        emphasis: How much terms count that do not count once.
        size: Number of passages of the folder that is measured; None for all of the index.
    """

    terms: frozenset[str]
    telling: tuple[str, ...]
    statistics: RangeStatistics
    emphasis: Mapping[str, float] = field(default_factory=dict)
    size: int | None = None

    def among(self, size: int, statistics: RangeStatistics | None) -> QuestionTerms:
        """The same for a folder of so many passages; `statistics` is how rare terms are there, if that is counted."""
        return replace(self, size=size, statistics=statistics or self.statistics)

    def rarity_of(self, term: str) -> float:
        """Inverse document frequency of a term, by how much it counts in the question."""
        return self.emphasis.get(term, 1.0) * self.statistics.idf(term)

    @property
    def rarity(self) -> float:
        """Inverse document frequencies of the telling terms together; never zero."""
        return sum(map(self.rarity_of, self.telling)) or 1.0

    @property
    def known_share(self) -> float:
        """Share of that which occurs at all."""
        containing = self.statistics.containing
        return sum(self.rarity_of(term) for term in self.telling if containing.get(term)) / self.rarity

    @property
    def unknown_terms(self) -> tuple[str, ...]:
        """Those that occur nowhere, and are long enough to be a misspelling of one that does."""
        containing = self.statistics.containing
        return tuple(term for term in self.telling if not containing.get(term) and len(term) >= _LEAST_MISSPELT)

    @property
    def passages(self) -> int:
        """Number of passages, within what the weights are known for."""
        size = self.statistics.count if self.size is None else self.size
        return max(_PASSAGES[0], min(_PASSAGES[1], size))

    @property
    def share(self) -> float:
        """How much it counts what a passage lacks."""
        return 1 / (1 + _SPREAD * math.log(max(1.0, self.passages / _SMALL)))

    @property
    def one_word(self) -> float:
        """Inverse document frequency of a word that occurs in one passage."""
        return math.log1p(max(1.0, self.statistics.count - 0.5) / 1.5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Signals:
    """Signals of the hits of one question.

    Attributes:
        question: Those of the question, in the order of `QUESTION_SIGNALS`.
        passages: Those of each hit; shape (hits, len(PASSAGE_SIGNALS)).
        share: How much these count.
        model: Fingerprint of the model that the cosines come from; empty where there are none.
    """

    regime: Regime
    question: Floats
    passages: Floats
    share: float
    model: str = ""


def signals(
    ranking: Ranked, regime: Regime, terms: QuestionTerms, hits: Ints, texts: Sequence[Passage], *, model: str
) -> Signals:
    """Signals of some hits.

    Args:
        ranking: All candidates, by the recipe "evidence".
        regime: What they are known by.
        terms: The terms of the question.
        hits: Places of the hits among the candidates.
        texts: The same hits as passages.
        model: Fingerprint of the model that the cosines come from.
    """
    candidates, values = ranking.candidates, np.zeros(len(ranking.scores))
    vector = candidates.vector if regime in ("hybrid", "vector") else None
    cosine = vector.own if vector else values
    words, window = (candidates.text.unit, candidates.text.window) if candidates.text else (values, values)
    rows = np.minimum(1.5, window / (terms.rarity * _FULL))
    scores = ranking.scores - sum((ranking.parts[name] for name in _APART if name in ranking.parts), values)
    for name in _NAMING:
        scores = scores - np.maximum(ranking.parts.get(name, values) - _MOST_NAMED, 0.0)
    heard_rows = (ranking.parts.get("speaker", values) >= 0) & (ranking.parts.get("echo", values) >= 0)
    question = _question(scores, cosine, rows, heard_rows, terms, _UNRELATED.get(model if vector else ""))
    columns = (
        cosine[hits],
        rows[hits],
        np.log1p(words[hits] / terms.one_word),
        _about(words[hits], terms, texts),
        scores.max(initial=0.0) - scores[hits],
        ranking.parts["cues"][hits],
        np.log(np.minimum(_LONG, [len(passage.text) for passage in texts])),
    )
    return Signals(
        regime=regime,
        question=question,
        passages=np.stack(columns, axis=1),
        share=terms.share,
        model=_table_of(regime, model)[0],
    )


def _question(
    scores: Floats, cosine: Floats, values: Floats, mask: Mask, terms: QuestionTerms, unrelated_value: float | None
) -> Floats:
    """Signals of the question, from those candidates that the speaker it names may have said."""
    mask = mask if mask.any() else ~mask
    near = cosine[mask]
    near = np.partition(near, -_NEAR)[-_NEAR:] if len(near) > _NEAR else near
    if unrelated_value is not None and 0 < len(near) < _NEAR:
        near = np.pad(near, (0, _NEAR - len(near)), constant_values=min(unrelated_value, near.min()))
    return np.array(
        (
            (cosine + values)[mask].max(initial=0.0),
            near.mean() if len(near) else 0.0,
            scores.max(initial=0.0),
            terms.known_share,
            math.log1p(len(terms.telling)),
            math.log(terms.passages),
        )
    )


def _about(words: Floats, terms: QuestionTerms, texts: Sequence[Passage]) -> Floats:
    """1.0 where a passage begins with what it is about ("Postgres, pg: …"), and the question names that."""
    unknown_terms = terms.unknown_terms
    about = np.zeros(len(words))
    # A label is who speaks.
    for place in [place for place, passage in enumerate(texts) if passage.label is None]:
        if unknown_terms or words[place]:
            about[place] = any(
                _names_subject(subject, terms.terms, unknown_terms) for subject in _subjects(texts[place].text)
            )
    return about


def _names_subject(subject: frozenset[str], terms: frozenset[str], unknown_texts: Sequence[str]) -> bool:
    """True if a question names a subject, maybe with one slip of the pen in a word that occurs nowhere."""
    missing = subject - terms
    if len(missing) > 1 or (missing and not unknown_texts):
        return not missing
    return all(any(_is_slip(term, word) for word in unknown_texts) for term in missing)


def _is_slip(word: str, text: str) -> bool:
    """True if two words begin alike and differ by one letter, or by two that have changed places."""
    if word[:2] != text[:2] or min(len(word), len(text)) < _LEAST_MISSPELT or abs(len(word) - len(text)) > 1:
        return False
    first = next((i for i, (a, b) in enumerate(zip(word, text, strict=False)) if a != b), min(len(word), len(text)))
    word, text = word[first:], text[first:]
    if len(word) == len(text) == 1:
        # The last letter is what stems differ in: "component" and "compose".
        return False
    while word and text and word[-1] == text[-1]:
        word, text = word[:-1], text[:-1]
    return max(len(word), len(text)) < 2 or (len(word) == 2 and word == text[::-1])


@lru_cache(maxsize=4_096)
def _subjects(text: str) -> tuple[frozenset[str], ...]:
    match = _SUBJECT.match(text)
    parts = _SUBJECT_PARTS.split(match[1]) if match else ()
    return tuple(frozenset(terms) for part in parts if part.strip() and (terms := query_terms(part)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """Weights of the signals in one regime; what is not named weighs nothing."""

    intercept: float
    question: Mapping[str, float]
    passages: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Weights of one regime.

    Attributes:
        relevance: Weights of the probability that a passage bears on the question.
        answers: Weights of the probability that it is one of those that answer.
    """

    relevance: Weights
    answers: Weights


class Calibration:
    """The fitted weights, and what they were fitted to.

    Args:
        ranking: Version of the ranking and of the text analysis.
        tables: Weights by model and regime: those of the regimes with vectors by the fingerprint of the embedding model
            that made them, the others by "".
    """

    def __init__(self, ranking: str, tables: Mapping[str, Mapping[Regime, Table]]) -> None:
        self._ranking = ranking
        self._weights = {
            (model, regime): _columns(table.relevance, table.answers)
            for model, of_model in tables.items()
            for regime, table in of_model.items()
        }

    def problem(self, regime: Regime, model: str, settings: RankingSettings) -> str:
        """Why there is no relevance, as `degraded` says it; empty where there is one.

        Args:
            regime: What hits are known by.
            model: Fingerprint of the model that made the vectors.
            settings: Settings of the ranking.
        """
        text = "limits of relevance leave nothing out"
        if settings.fusion != "evidence":
            return (
                f"relevance: none is known where ranking.fusion is {settings.fusion}, and {text}. "
                "Set ranking.fusion to evidence."
            )
        of_regimes = {of_regime for _, of_regime in self._weights}
        if self._ranking != RULES or regime not in of_regimes:
            return f"relevance: its table is for the ranking {self._ranking}, not {RULES}: {text}. Fit it anew."
        if _table_of(regime, model) not in self._weights:
            return (
                f"relevance: none is known for the vectors of {model}, and {text}. Search by words has it (mode "
                "text), and so have the bundled models."
            )
        return ""

    def judge(self, signals: Signals) -> tuple[Floats, Floats]:
        """The relevance of each hit, and the probability that it answers."""
        intercepts, question, passages = self._weights[_table_of(signals.regime, signals.model)]
        # Not by BLAS: its last digit changes with the number of rows, and a hit counts the same whatever the limit is.
        of_passages = np.einsum("hs,sk->hk", signals.passages, passages)
        logits = intercepts + signals.question @ question + signals.share * of_passages
        relevance, answers = (1 / (1 + np.exp(-np.clip(logits, -30, 30)))).T
        return relevance, answers


def _table_of(regime: Regime, model: str) -> tuple[str, Regime]:
    """Model and regime of the table for hits that are known by a regime; words are the same with every model."""
    return (model if regime in ("hybrid", "vector") else "", regime)


def _columns(*weights: Weights) -> tuple[Floats, Floats, Floats]:
    """Intercepts, weights of the question's signals and of the passages', a column for each probability."""
    return (
        np.array([weight.intercept for weight in weights]),
        np.array([[weight.question.get(name, 0.0) for weight in weights] for name in QUESTION_SIGNALS]),
        np.array([[weight.passages.get(name, 0.0) for weight in weights] for name in PASSAGE_SIGNALS]),
    )


@cache
def bundled_calibration() -> Calibration:
    """The calibration that the package brings."""
    return _read_calibration(Path(__file__).with_name("relevance.json").read_text("utf-8"))


def _read_calibration(text: str) -> Calibration:
    """A calibration from its file."""
    value = json.loads(text)
    tables = {
        model: {
            regime: Table(**{name: Weights(**weights) for name, weights in table.items()})
            for regime, table in of_model.items()
        }
        for model, of_model in value["tables"].items()
    }
    return Calibration(value["ranking"], tables)
