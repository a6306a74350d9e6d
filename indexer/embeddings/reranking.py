"""Reranking of the best hits by a model that reads question and text together: `Reranker`, `Reranking`.

Invariants: scores stay those of the ranking; if the model fails or is late, order and relevance stay and the reason is
reported; a model that hangs holds a bounded number of threads. Where the hits have a relevance, those are read of which
it is least sure, and what the model says is weighed against it: the scale of its scores makes no difference, and the
hits of a question stay as relevant together as they were, so a model that knows nothing makes no probability out of it.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from indexer.corpus import Floats, Ints
from indexer.errors import EmbeddingError
from indexer.types import Hit

Scores = NDArray[np.float64]

# How many hits get a second look, and how much of each is read. A small model (6 layers of 384) spends on 50 passages
# of 100 characters 0.5 s of one core, of 300 characters 1.1 s, of 1,000 characters 3.4 s. Source: our measurement.
RERANKED_HITS = 50
# Those that these are chosen from. Source: our measurement on LoCoMo with a model that knows the answers: read are the
# first 50 of 100, .947 of the evidence is in a block of 1,024 tokens, the 50 least sure ones .952.
RERANKED_FROM = 100
READ_CHARACTERS = 1_000
DEADLINE_SECONDS = 2.0
# Log odds of one standard deviation of the model's scores. Source: tests/evals/second_look.py: evidence .903, .937 and
# .952 for models that know little, more and all; where these alone made the order, .69, .88 and .94. With 2 a model
# that knows little loses .09 of that, with .5 one that knows all .004.
_WEIGHT = 1.0
# So far a score may stand from the others, in their standard deviations.
_FARTHEST = 10.0
# Relevance has four digits; so much less than one of them is no relevance.
_SUREST = 4e-5
# Searches that wait for the model at the same time; others do without.
_WAITING = 4


def scores_of_labels(name: str, scores: Scores) -> Scores:
    """One score of each text, of a model that gives one for each label; of two labels the last is "it answers".

    Raises:
        EmbeddingError: There are more, as of a model that finds contradictions.
    """
    labels = scores.shape[1] if scores.ndim == 2 else 1
    if labels > 2:
        raise EmbeddingError(
            f"The model {name} gives {labels} scores for each text, so it does not tell how well one answers. "
            "Set rerank_model to a cross-encoder with one label or two."
        )
    return scores[:, -1] if scores.ndim == 2 else scores


class Reranker(Protocol):
    """Model that scores how well texts answer a question. Thread-safe; loaded at the first call."""

    @property
    def name(self) -> str:
        """Name of the model in settings."""
        ...

    @property
    def at_once(self) -> int:
        """Number of texts that it is given at a time; between two times it may be stopped."""
        ...

    def score(self, query: str, texts: Sequence[str]) -> Scores:
        """Scores of texts for a question; higher is better, on a scale of the model's own.

        Returns:
            Array of shape (len(texts),).

        Raises:
            EmbedderUnavailable: The model or its package is not there.
            EmbeddingError: The model failed.
        """
        ...


@dataclass(slots=True)
class _Work:
    """Scores so far, shared by the waiting search and the working thread."""

    scores: list[float]
    problem: str = ""
    is_abandoned: bool = False


class Reranking:
    """A reranker with a deadline, after which the order stays as it is."""

    def __init__(self, reranker: Reranker, *, deadline_seconds: float = DEADLINE_SECONDS) -> None:
        self._reranker = reranker
        self._deadline_seconds = deadline_seconds
        self._places = threading.BoundedSemaphore(_WAITING)

    def rerank(self, hits: tuple[Hit, ...], query: str) -> tuple[tuple[Hit, ...], str]:
        """Hits in their new order, and why it is the old one; empty if it is not."""
        relevance = _relevance(hits)
        looked_at = _least_sure(relevance) if relevance is not None else np.arange(len(hits))[:RERANKED_HITS]
        if len(looked_at) < 2:
            return hits, ""
        if not self._places.acquire(blocking=False):
            return (
                hits,
                f"rerank: the model {self._reranker.name} is busy. Ask again, or set rerank_model to a smaller one.",
            )
        scores, problem = self._score([hits[place].passage.text[:READ_CHARACTERS] for place in looked_at], query)
        if problem:
            return hits, f"rerank: {problem}"
        found_hits = list(hits)
        for place, score in zip(looked_at.tolist(), scores.tolist(), strict=True):
            found_hits[place] = _with_signal(hits[place], score)
        if relevance is None:
            return _order_by_scores(found_hits, looked_at, scores), ""
        return _order_by_relevance(found_hits, relevance, looked_at, scores), ""

    def _score(self, texts: list[str], query: str) -> tuple[Scores, str]:
        """Scores, or why there are none; the thread frees its slot when it is done, however late."""
        work = _Work(scores=[])
        thread = threading.Thread(target=self._work, args=(work, texts, query), name="reranking", daemon=True)
        thread.start()
        thread.join(self._deadline_seconds)
        if thread.is_alive():
            work.is_abandoned = True
            return np.zeros(0), (
                f"the model {self._reranker.name} took longer than {self._deadline_seconds:g} s (the first question "
                "loads it). Ask again, or set rerank_model to a smaller one."
            )
        return np.array(work.scores), work.problem

    def _work(self, work: _Work, texts: list[str], query: str) -> None:
        try:
            for start in range(0, len(texts), self._reranker.at_once):
                if work.is_abandoned:
                    return
                part = texts[start : start + self._reranker.at_once]
                scores = np.asarray(self._reranker.score(query, part), np.float64)
                if scores.shape != (len(part),) or not np.isfinite(scores).all():
                    work.problem = _nonsense(self._reranker.name, scores, len(part))
                    return
                work.scores += scores.tolist()
        except EmbeddingError as error:
            work.problem = str(error)
        except BaseException as error:  # a model that somebody else wrote may fail in any way, a panic in Rust too
            work.problem = (
                f"the model {self._reranker.name} failed ({type(error).__name__}). Choose another rerank_model."
            )
        finally:
            self._places.release()


def _nonsense(name: str, scores: Scores, texts: int) -> str:
    shape = f"{scores.size} scores" if scores.ndim == 1 else f"scores of shape {scores.shape}"
    text = "scores that are not finite" if scores.shape == (texts,) else shape
    return f"the model {name} gave {text} for {texts} texts. Choose another rerank_model."


def _with_signal(hit: Hit, score: float) -> Hit:
    # Signals are there where an explanation was asked for.
    return replace(hit, signals={**hit.signals, "rerank": float(score)}) if hit.signals else hit


def _relevance(hits: Sequence[Hit]) -> Floats | None:
    """The relevance of hits; None where it is not known."""
    relevances = [hit.relevance for hit in hits if hit.relevance is not None]
    return np.array(relevances) if len(relevances) == len(hits) else None


def _least_sure(relevance: Floats) -> Ints:
    """Places of the hits whose place a second look may change most."""
    return np.sort(np.argsort(-relevance * (1 - relevance), kind="stable")[:RERANKED_HITS])


def _order_by_scores(hits: Sequence[Hit], looked_at: Ints, scores: Scores) -> tuple[Hit, ...]:
    """Hits in the order that the ranking's scores and a model's give them together, where no relevance is known.

    Source: our measurement on LoCoMo with scores that tell a line of evidence from another with AUC .9: .94 of it is in
    a block of 1,024 tokens, without them .90, by the order of the model alone .85.
    """
    # A place has the score that belongs there, as variety may have come before.
    worth = np.sort(_standardise(np.array([hit.score for hit in hits], np.float64)))[::-1].copy()
    worth[looked_at] += _from_others(_standardise(scores))
    return tuple(hits[place] for place in np.argsort(-worth, kind="stable").tolist())


def _from_others(apart: Floats) -> Floats:
    """How far each score stands from the others, in the standard deviations of those, which it is no part of.

    Among few texts one that stands out makes most of the deviation: of nine it is never three away from the mean.
    """
    other_rows = (len(apart) - 1 - apart**2) / max(1, len(apart) - 2)
    values: Floats = apart / np.sqrt(np.maximum(other_rows, (apart / _FARTHEST) ** 2))
    return values


def _order_by_relevance(hits: Sequence[Hit], relevance: Floats, looked_at: Ints, scores: Scores) -> tuple[Hit, ...]:
    """Hits in the order, and with the relevance, that the ranking and a model give them together."""
    odds = _log_odds(relevance)
    shift = np.zeros(len(hits))
    shift[looked_at] = _shift(odds[looked_at], _standardise(scores))
    found_hits = list(hits)
    probability = _probability(odds + shift).round(4)
    for place in looked_at.tolist():
        answers = _shift_probability(hits[place].answers, shift[place])
        found_hits[place] = replace(hits[place], relevance=float(probability[place]), answers=answers)
    # The ranking's order is a better one than that of relevance, which says how far its places lie apart.
    order = np.argsort(-(np.sort(odds)[::-1] + shift), kind="stable")
    return tuple(found_hits[place] for place in order.tolist())


def _shift(odds: Floats, values: Floats) -> Floats:
    """Log odds that what a model told adds; the probabilities have the sum that they had."""
    whole, low, high = _probability(odds).sum(), -60.0, 60.0
    for _ in range(50):
        middle = (low + high) / 2
        if _probability(odds + _WEIGHT * values + middle).sum() > whole:
            high = middle
        else:
            low = middle
    return _WEIGHT * values + low


def _standardise(scores: Scores) -> Floats:
    """Scores in standard deviations from their mean; zeros if they are equal."""
    # First to a scale whose squares are finite.
    scores = scores / (np.abs(scores).max() or 1.0)
    spread = scores.std()
    values: Floats = (scores - scores.mean()) / spread if spread > 1e-12 else np.zeros(len(scores))
    return values


def _log_odds(probability: Floats) -> Floats:
    rows = probability.clip(_SUREST, 1 - _SUREST)
    odds: Floats = np.log(rows / (1 - rows))
    return odds


def _shift_probability(probability: float | None, shift: float) -> float | None:
    """A probability with so much more log odds."""
    return None if probability is None else float(_probability(_log_odds(np.array(probability)) + shift))


def _probability(odds: Floats) -> Floats:
    probability: Floats = 1 / (1 + np.exp(-odds.clip(-30, 30)))
    return probability
