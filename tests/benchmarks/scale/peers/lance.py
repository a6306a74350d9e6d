"""How lancedb stands in the table: a table with a full-text index, hybrid search, its own reciprocal ranks.

The vectors are scanned: below some hundred thousand rows its documents advise against an index of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tests.benchmarks.scale.material import Material
from tests.benchmarks.scale.peers.base import System, vendor
from tests.benchmarks.scale.values import FIRST, Answer, Question
from tests.benchmarks.scale.vectors import DIMENSIONS

_NAME = "passages"
_BATCH = 10_000


class Lance(System):
    """Columns on disk, in the process."""

    title = "lancedb"
    does = "hybrid"
    modules = ("lancedb", "pyarrow", "lancedb.rerankers")
    packages = ("lancedb", "pyarrow")

    def build(self, material: Material, folder: Path) -> None:
        """Write the table and index its words."""
        arrow = vendor("pyarrow")
        vectors = arrow.list_(arrow.float32(), DIMENSIONS)
        schema = arrow.schema([("row", arrow.int64()), ("text", arrow.string()), ("vector", vectors)])
        table = _database(folder).create_table(_NAME, _record_batches(material, schema), schema=schema)
        table.create_index("text", config=vendor("lancedb.index").FTS())

    def open(self, material: Material, folder: Path) -> None:
        """Open the table."""
        self._table = _database(folder).open_table(_NAME)
        self._reranker = vendor("lancedb.rerankers").RRFReranker()

    def search(self, question: Question) -> Sequence[Answer]:
        """A hybrid search."""
        asked = self._table.search(query_type="hybrid", vector_column_name="vector", fts_columns="text")
        asked = asked.vector(question.vector).text(question.text).distance_type("cosine")
        found = asked.rerank(self._reranker).limit(FIRST).to_list()
        return [Answer(row=one["row"], text=one["text"]) for one in found]

    def nearest(self, question: Question) -> Sequence[int]:
        """The scan alone."""
        asked = self._table.search(question.vector, vector_column_name="vector").distance_type("cosine")
        return [one["row"] for one in asked.limit(FIRST).to_list()]


def _database(folder: Path) -> Any:
    return vendor("lancedb").connect(str(folder / "lance"))


def _record_batches(material: Material, schema: Any) -> Iterator[Any]:
    arrow = vendor("pyarrow")
    for start, texts, vectors in material.batches(_BATCH):
        flat = arrow.array(np.ravel(vectors))
        lists = arrow.FixedSizeListArray.from_arrays(flat, DIMENSIONS)
        rows = arrow.array(range(start, start + len(texts)))
        yield arrow.RecordBatch.from_arrays([rows, arrow.array(texts), lists], schema=schema)
