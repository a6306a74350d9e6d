"""Owns the passages that a search looks at closely: their columns and their signals, from whatever part of the index.

Invariants: every array has one element per candidate; a candidate stands once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from indexer.engine.bm25 import TextEvidence
from indexer.engine.corpus import Corpus, Floats, Ints, Mask
from indexer.ranking import CANDIDATES, VectorEvidence, candidates


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """Columns and signals of m candidates.

    Attributes:
        keys: The store's keys.
        days: Proleptic ordinals of their dates; 0 for undated.
        labels: Numbers of their labels; 0 for none.
        evergreen: Whether each is of a file that does not age.
        text: Lexical signals; None where words were not searched.
        vector: Vector signals; None where vectors were not searched.
    """

    keys: Ints
    days: Ints
    cues: Ints
    labels: Ints
    evergreen: Mask
    text: TextEvidence | None
    vector: VectorEvidence | None

    def __len__(self) -> int:
        """Number of candidates."""
        return len(self.keys)

    @property
    def signals(self) -> list[Floats]:
        """The signals whose best make a passage a candidate."""
        text = [self.text.pair, self.text.window] if self.text else []
        return text + ([self.vector.own, self.vector.triple] if self.vector else [])

    def take(self, rows: Ints | Mask) -> Candidates:
        """Some of them."""
        return Candidates(
            keys=self.keys[rows],
            days=self.days[rows],
            cues=self.cues[rows],
            labels=self.labels[rows],
            evergreen=self.evergreen[rows],
            text=self.text.take(rows) if self.text else None,
            vector=self.vector.take(rows) if self.vector else None,
        )

    def best(self, count: int = CANDIDATES) -> Candidates:
        """The union of each signal's best."""
        return self.take(candidates(self.signals, np.ones(len(self), bool), count))


def gathered(corpus: Corpus, rows: Ints, text: TextEvidence | None, vector: VectorEvidence | None) -> Candidates:
    """Rows of a corpus as candidates; the signals are of all its rows."""
    return Candidates(
        keys=corpus.keys[rows],
        days=corpus.days[rows],
        cues=corpus.cues[rows],
        labels=corpus.labels[rows],
        evergreen=corpus.evergreen[rows],
        text=text.take(rows) if text else None,
        vector=vector.take(rows) if vector else None,
    )


def joined(parts: Sequence[Candidates]) -> Candidates:
    """Candidates of several parts of the index, cut to each signal's best of all."""
    if len(parts) == 1:
        return parts[0]
    texts, vectors = [part.text for part in parts], [part.vector for part in parts]
    text = TextEvidence.joined([text for text in texts if text]) if all(texts) else None
    vector = VectorEvidence.joined([vector for vector in vectors if vector]) if all(vectors) else None
    whole = Candidates(
        keys=np.concatenate([part.keys for part in parts]),
        days=np.concatenate([part.days for part in parts]),
        cues=np.concatenate([part.cues for part in parts]),
        labels=np.concatenate([part.labels for part in parts]),
        evergreen=np.concatenate([part.evergreen for part in parts]),
        text=text,
        vector=vector,
    )
    return whole.best()
