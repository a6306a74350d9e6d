"""How LangGraph's SQLite store stands in the table: its long-term memory, with an index of vectors.

Many builds of Python cannot load extensions into their own SQLite, which the store needs; it is handed a connection of
`pysqlite3`, the same driver with its own SQLite.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.benchmarks.scale.material import Material
from tests.benchmarks.scale.peers.base import System, vendor
from tests.benchmarks.scale.values import FIRST, Answer, Question
from tests.benchmarks.scale.vectors import DIMENSIONS

_SPACE = ("memories",)


class LangGraph(System):
    """Every vector is compared; no words."""

    title = "LangGraph SqliteStore"
    does = "vectors"
    modules = ("langgraph.store.sqlite", "pysqlite3")
    packages = ("langgraph-checkpoint-sqlite", "sqlite-vec", "pysqlite3-binary")

    def __init__(self) -> None:
        self._vectors: list[list[float]] = []

    def build(self, material: Material, folder: Path) -> None:
        """Put everything in batches."""
        put = vendor("langgraph.store.base").PutOp
        self.open(material, folder)
        for start, texts, vectors in material.batches(500):
            self._vectors = vectors.tolist()
            self._store.batch([put(_SPACE, str(start + i), {"text": text}, ["text"]) for i, text in enumerate(texts)])
        self._connection.close()

    def open(self, material: Material, folder: Path) -> None:
        """Open the store."""
        self._connection = vendor("pysqlite3").connect(
            str(folder / "store.sqlite"), check_same_thread=False, isolation_level=None
        )
        index = {"dims": DIMENSIONS, "embed": self._embed, "fields": ["text"]}
        self._store = vendor("langgraph.store.sqlite").SqliteStore(self._connection, index=index)
        self._store.setup()

    def search(self, question: Question) -> Sequence[Answer]:
        """The nearest ten."""
        self._vectors = [question.vector.tolist()]
        found = self._store.search(_SPACE, query=question.text, limit=FIRST)
        return [Answer(row=int(item.key), text=item.value["text"]) for item in found]

    def _embed(self, texts: Sequence[str]) -> list[list[float]]:
        """The vectors that were laid ready for the call at hand."""
        if len(texts) != len(self._vectors):
            raise RuntimeError(f"The store embeds {len(texts)} texts where {len(self._vectors)} vectors wait.")
        return self._vectors
