"""How chromadb stands in the table: a persistent client, cosine, everything else as it comes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.benchmarks.scale.material import Material
from tests.benchmarks.scale.peers.base import System, vendor
from tests.benchmarks.scale.values import FIRST, Answer, Question

_NAME = "passages"


class Chroma(System):
    """HNSW over the vectors; its local search has no words."""

    title = "chromadb"
    does = "vectors"
    modules = ("chromadb",)
    packages = ("chromadb",)

    def build(self, material: Material, folder: Path) -> None:
        """Add everything in batches."""
        cosine = {"hnsw": {"space": "cosine"}}
        made = _client(folder).create_collection(_NAME, configuration=cosine, embedding_function=None)
        for start, texts, vectors in material.batches():
            ids = [str(row) for row in range(start, start + len(texts))]
            made.add(ids=ids, embeddings=vectors, documents=texts)

    def open(self, material: Material, folder: Path) -> None:
        """Open the collection."""
        self._collection = _client(folder).get_collection(_NAME, embedding_function=None)

    def search(self, question: Question) -> Sequence[Answer]:
        """The nearest ten with their texts."""
        found = self._collection.query(
            query_embeddings=[question.vector], n_results=FIRST, include=["documents", "distances"]
        )
        pairs = zip(found["ids"][0], found["documents"][0], strict=True)
        return [Answer(row=int(row), text=text) for row, text in pairs]


def _client(folder: Path) -> Any:
    settings = vendor("chromadb.config").Settings(anonymized_telemetry=False)
    return vendor("chromadb").PersistentClient(str(folder / "chroma"), settings=settings)
