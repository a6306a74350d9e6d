"""How the index of this project stands in the table: Markdown files through `Index.sync`, then `Index.search`."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from indexer import Index, RankingSettings, SearchFilter, SearchResults, recall
from indexer.sync.plan import text_hash
from indexer.types import Vectors
from tests.benchmarks.scale.material import Material
from tests.benchmarks.scale.peers.base import System
from tests.benchmarks.scale.texts import FILE_PASSAGES, day_of_file, file_text, path_of_file, row_of
from tests.benchmarks.scale.values import FIRST, Answer, Question
from tests.benchmarks.scale.vectors import DIMENSIONS

# Of the days, how many a filter leaves.
_FILTERED_SHARES = (0.5, 0.05)
TODAY = dt.date(2026, 11, 21)


class Given:
    """An embedder that looks up the vectors of a material's texts; that of a question is laid into it before."""

    name = "given"
    dimensions = DIMENSIONS

    def __init__(self, material: Material) -> None:
        self.fingerprint = f"given-{material.made}"
        self.question = np.zeros(DIMENSIONS, np.float32)
        self._material = material
        self._rows: tuple[np.ndarray[tuple[int], np.dtype[np.uint64]], np.ndarray[tuple[int], np.dtype[np.intp]]]
        self._loaded = False

    def reads(self, text: str) -> bool:
        """It reads everything."""
        return True

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """The vectors of texts that the material has, whatever the titles that an index puts before them."""
        if not self._loaded:
            hashes = np.fromiter((_short_hash(text) for text in self._material.texts()), np.uint64)
            order = np.argsort(hashes)
            self._rows = hashes[order], order
            self._loaded = True
        hashes, order = self._rows
        asked = np.array([_short_hash(text.rpartition("\n")[2]) for text in texts], np.uint64)
        places = np.searchsorted(hashes, asked)
        if (hashes[np.minimum(places, len(hashes) - 1)] != asked).any():
            raise ValueError("The index asks for a text that the corpus does not have: its passages were cut anew.")
        return np.asarray(self._material.vectors[order[places]])

    def embed_query(self, text: str) -> Vectors:
        """The vector of the question at hand, whatever words of it are left."""
        return self.question


class Ours(System):
    """Files are there as people have them; the index is made of them."""

    title = "this project"
    does = "hybrid"
    modules = ("apsw", "sqlite_vec", "indexer.index", "indexer.stores.sqlite_database")
    packages = ("memory-service", "apsw", "sqlite-vec", "numpy")

    def stage(self, material: Material, folder: Path) -> None:
        """Write the files."""
        (folder / "memory").mkdir()
        for start, lines, _ in material.batches(FILE_PASSAGES):
            (folder / path_of_file(start // FILE_PASSAGES)).write_text(file_text(lines), "utf-8")

    def build(self, material: Material, folder: Path) -> None:
        """Sync them."""
        index = Index(folder, Given(material))
        report = index.sync()
        index.close()
        if report.failed or report.degraded:
            raise RuntimeError(f"The index is not whole: {report.failed[:1]}{report.degraded[:1]}")

    def open(self, material: Material, folder: Path) -> None:
        """Open the index; a second one, of the same folder, ranks by the passages' own cosines alone."""
        self._embedder = Given(material)
        self._index = Index(folder, self._embedder, today=lambda: TODAY)
        alone = RankingSettings(fusion="blend", recency_weight=0)
        self._by_vector = Index(folder, self._embedder, ranking=alone, today=lambda: TODAY)

    def search(self, question: Question) -> Sequence[Answer]:
        """A hybrid search."""
        self._embedder.question = question.vector
        return _answers(self._index.search(question.text, limit=FIRST))

    def nearest(self, question: Question) -> Sequence[int]:
        """A search by vector, without what neighbours and days add."""
        self._embedder.question = question.vector
        return [answer.row for answer in _answers(self._by_vector.search(question.text, limit=FIRST, mode="vector"))]

    def filtered_recall(self, material: Material) -> dict[str, float]:
        """Against sqlite-vec's exact search with the same filter: what was written from some day on."""
        days = len({day_of_file(number) for number in range(-(-material.size // FILE_PASSAGES))})
        found = dict[str, float | None]()
        for share in _FILTERED_SHARES:
            first = day_of_file(round(days * (1 - share)))
            with self._index.reader() as view:
                found[f"{share:.0%}"] = recall(view, filter=SearchFilter(since=first))
        return {share: value for share, value in found.items() if value is not None}


def _answers(results: SearchResults) -> list[Answer]:
    if results.degraded:
        raise RuntimeError(f"The index answers without a part of itself: {results.degraded[0]}")
    return [Answer(row=row_of(hit.path, hit.passage.start_line), text=hit.passage.text) for hit in results.hits]


def _short_hash(text: str) -> int:
    return int.from_bytes(text_hash(text)[:8], "little")
