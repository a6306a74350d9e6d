"""How rank-bm25 stands in the table: words alone, in memory, every passage scored for every question."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tests.benchmarks.scale.material import Material
from tests.benchmarks.scale.peers.base import System, vendor
from tests.benchmarks.scale.values import FIRST, Answer, Question


class RankBM25(System):
    """It keeps nothing on disk: each process that answers builds it first."""

    title = "rank-bm25"
    does = "words"
    modules = ("rank_bm25",)
    packages = ("rank-bm25",)

    def build(self, material: Material, folder: Path) -> None:
        """What every start does."""
        self.open(material, folder)

    def open(self, material: Material, folder: Path) -> None:
        """Split everything into words, and count them."""
        self._texts = list(material.texts())
        self._index = vendor("rank_bm25").BM25Okapi([text.split() for text in self._texts])

    def search(self, question: Question) -> Sequence[Answer]:
        """The best ten."""
        scores = self._index.get_scores(question.text.split())
        best = np.argpartition(-scores, FIRST)[:FIRST]
        rows = best[np.argsort(-scores[best])].tolist()
        return [Answer(row=row, text=self._texts[row]) for row in rows]
