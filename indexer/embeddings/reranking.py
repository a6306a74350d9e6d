"""Reranking of the best hits by a model that reads question and text together: `Reranker`, `Reranking`.

Invariants: only the order of the first hits changes; scores stay those of the ranking; if the model fails or is late,
the order stays and the reason is reported; a model that hangs holds a bounded number of threads.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from indexer.errors import EmbeddingError
from indexer.types import Hit

Scores = NDArray[np.float64]

# How many hits get a second look, and how much of each is read. A small model (6 layers of 384) spends on 50 passages
# of 100 characters 0.5 s of one core, of 300 characters 1.1 s, of 1,000 characters 3.4 s. Source: our measurement.
RERANKED_HITS = 50
READ_CHARACTERS = 1_000
DEADLINE_SECONDS = 2.0
# Searches that wait for the model at the same time; others do without.
_WAITING = 4


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
    abandoned: bool = False


class Reranking:
    """A reranker with a deadline, after which the order stays as it is."""

    def __init__(self, reranker: Reranker, *, deadline_seconds: float = DEADLINE_SECONDS) -> None:
        self._reranker = reranker
        self._deadline_seconds = deadline_seconds
        self._places = threading.BoundedSemaphore(_WAITING)

    def reranked(self, hits: tuple[Hit, ...], query: str) -> tuple[tuple[Hit, ...], str]:
        """Hits in their new order, and why it is the old one; empty if it is not."""
        looked_at = hits[:RERANKED_HITS]
        if len(looked_at) < 2:
            return hits, ""
        if not self._places.acquire(blocking=False):
            return (
                hits,
                f"rerank: the model {self._reranker.name} is busy. Ask again, or set rerank_model to a smaller one.",
            )
        scores, problem = self._scored([hit.passage.text[:READ_CHARACTERS] for hit in looked_at], query)
        if problem:
            return hits, f"rerank: {problem}"
        order = np.argsort(-scores, kind="stable").tolist()
        return (*(_explained(looked_at[place], scores[place]) for place in order), *hits[len(looked_at) :]), ""

    def _scored(self, texts: list[str], query: str) -> tuple[Scores, str]:
        """Scores, or why there are none; the thread frees its slot when it is done, however late."""
        work = _Work(scores=[])
        thread = threading.Thread(target=self._work, args=(work, texts, query), name="reranking", daemon=True)
        thread.start()
        thread.join(self._deadline_seconds)
        if thread.is_alive():
            work.abandoned = True
            return np.zeros(0), (
                f"the model {self._reranker.name} took longer than {self._deadline_seconds:g} s (the first question "
                "loads it). Ask again, or set rerank_model to a smaller one."
            )
        return np.array(work.scores), work.problem

    def _work(self, work: _Work, texts: list[str], query: str) -> None:
        try:
            for start in range(0, len(texts), self._reranker.at_once):
                if work.abandoned:
                    return
                part = texts[start : start + self._reranker.at_once]
                scores = np.asarray(self._reranker.score(query, part), np.float64)
                if scores.shape != (len(part),) or not np.isfinite(scores).all():
                    work.problem = _nonsense(self._reranker.name, scores, len(part))
                    return
                work.scores += scores.tolist()
        except EmbeddingError as error:
            work.problem = str(error)
        except Exception as error:  # a model that somebody else wrote may fail in any way
            work.problem = (
                f"the model {self._reranker.name} failed ({type(error).__name__}). Choose another rerank_model."
            )
        finally:
            self._places.release()


def _nonsense(name: str, scores: Scores, texts: int) -> str:
    what = "scores that are not finite" if scores.shape == (texts,) else f"{scores.size} scores"
    return f"the model {name} gave {what} for {texts} texts. Choose another rerank_model."


def _explained(hit: Hit, score: float) -> Hit:
    # Signals are there where an explanation was asked for.
    return replace(hit, signals={**hit.signals, "rerank": float(score)}) if hit.signals else hit
