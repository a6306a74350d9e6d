"""Candidates of a question: their columns and signals, joined from the parts of an index, and how signals are added.

Invariant: a candidate occurs once, and every array has one element per candidate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from indexer.corpus import Corpus, Floats, Ints, Mask
from indexer.engine.bm25 import TextEvidence
from indexer.engine.ranking import CANDIDATES, EvidenceWeights, VectorEvidence, candidates, fuse


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """Columns and signals of m candidates.

    Attributes:
        keys: The store's keys.
        days: Proleptic ordinals of their dates; 0 for undated.
        marks: Flags of their wording and numbers of their roles; see `Passage.marks`.
        labels: Numbers of their labels; 0 for none.
        evergreen: True for passages of a file that does not age.
        files: The store's numbers of their files.
        folders: Numbers of the folders that they are of; see `folder_number`.
        spoken: True for messages of sessions.
        text: Lexical signals; None where words were not searched.
        vector: Vector signals; None where vectors were not searched.
    """

    keys: Ints
    days: Ints
    marks: Ints
    labels: Ints
    evergreen: Mask
    files: Ints
    folders: Ints
    spoken: Mask
    text: TextEvidence | None
    vector: VectorEvidence | None

    def __len__(self) -> int:
        """Number of candidates."""
        return len(self.keys)

    @property
    def signals(self) -> list[Floats]:
        """The signals whose best rows are candidates."""
        text = self.text.signals if self.text else []
        return text + ([self.vector.own, self.vector.triple] if self.vector else [])

    def take(self, rows: Ints | Mask) -> Candidates:
        """Some of the candidates."""
        return Candidates(
            keys=self.keys[rows],
            days=self.days[rows],
            marks=self.marks[rows],
            labels=self.labels[rows],
            evergreen=self.evergreen[rows],
            files=self.files[rows],
            folders=self.folders[rows],
            spoken=self.spoken[rows],
            text=self.text.take(rows) if self.text else None,
            vector=self.vector.take(rows) if self.vector else None,
        )

    def best(self, count: int = CANDIDATES) -> Candidates:
        """Union of each signal's best rows."""
        return self.take(candidates(self.signals, np.ones(len(self), bool), count))


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """How the signals of candidates are added; see `fuse`."""

    trust: float
    weights: EvidenceWeights
    characters: bool

    def scores(self, candidates: Candidates) -> Floats:
        """Scores of some candidates by their signals, standardised among these."""
        text = replace(candidates.text, file=None) if candidates.text else None
        parts = fuse(text, candidates.vector, self.trust, weights=self.weights, characters=self.characters)
        return sum(parts.values(), np.zeros(len(candidates)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """Candidates with their scores, unordered, and the parts of each score.

    Attributes:
        recipe: How signals were added.
    """

    candidates: Candidates
    scores: Floats
    parts: dict[str, Floats]
    recipe: Recipe | None = None


def corpus_candidates(
    corpus: Corpus, rows: Ints, text: TextEvidence | None, vector: VectorEvidence | None
) -> Candidates:
    """Rows of a corpus as candidates; the signals are of all its rows."""
    return Candidates(
        keys=corpus.keys[rows],
        days=corpus.days[rows],
        marks=corpus.marks[rows],
        labels=corpus.labels[rows],
        evergreen=corpus.evergreen[rows],
        files=corpus.files_of[rows],
        folders=corpus.folders[rows],
        spoken=corpus.session_messages[rows],
        text=text.take(rows) if text else None,
        vector=vector.take(rows) if vector else None,
    )


def merge_candidates(parts: Sequence[Candidates], sought: Ints) -> Candidates:
    """Candidates of several parts of the index, cut to each signal's best of all, and those with the keys `sought`."""
    if len(parts) == 1:
        return parts[0]
    whole = joined_candidates(parts)
    best = whole.best()
    left = np.isin(whole.keys, sought) & ~np.isin(whole.keys, best.keys) if len(sought) else np.zeros(len(whole), bool)
    return whole.take(np.isin(whole.keys, best.keys) | left) if left.any() else best


def joined_candidates(parts: Sequence[Candidates]) -> Candidates:
    """Several candidates, one after another."""
    texts, vectors = [part.text for part in parts], [part.vector for part in parts]
    text = TextEvidence.concatenate([text for text in texts if text]) if all(texts) else None
    vector = VectorEvidence.concatenate([vector for vector in vectors if vector]) if all(vectors) else None
    return Candidates(
        keys=np.concatenate([part.keys for part in parts]),
        days=np.concatenate([part.days for part in parts]),
        marks=np.concatenate([part.marks for part in parts]),
        labels=np.concatenate([part.labels for part in parts]),
        evergreen=np.concatenate([part.evergreen for part in parts]),
        files=np.concatenate([part.files for part in parts]),
        folders=np.concatenate([part.folders for part in parts]),
        spoken=np.concatenate([part.spoken for part in parts]),
        text=text,
        vector=vector,
    )
