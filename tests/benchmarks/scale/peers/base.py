"""What every system has to do to stand in the table, and the list of them.

Invariants: each system is used as its own documents tell, with the vectors and questions that all get; its
packages are imported only in the process that runs it.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from tests.benchmarks.scale.material import Material
from tests.benchmarks.scale.values import Answer, Question

Does = Literal["hybrid", "vectors", "words"]
_PACKAGE = "tests.benchmarks.scale.peers"

# The first is what the others are measured against. "ours-direct" is ours, its passages written to the store.
SYSTEMS = {
    "ours": f"{_PACKAGE}.ours:Ours",
    "plain": f"{_PACKAGE}.plain:Plain",
    "chromadb": f"{_PACKAGE}.chroma:Chroma",
    "milvus": f"{_PACKAGE}.milvus:Milvus",
    "langgraph": f"{_PACKAGE}.langgraph:LangGraph",
    "lancedb": f"{_PACKAGE}.lance:Lance",
    "rank-bm25": f"{_PACKAGE}.bm25:RankBM25",
}
DIRECT = {"ours": f"{_PACKAGE}.direct:Direct"}


class System:
    """A system at work in a folder of its own. One process builds and closes; another one opens and is asked.

    Attributes:
        title: Its name in the table.
        does: What its answers rest on.
        modules: What has to be imported to use it.
        packages: Names in the registry, for their versions.
    """

    title: str
    does: Does
    modules: tuple[str, ...]
    packages: tuple[str, ...]

    def stage(self, material: Material, folder: Path) -> None:
        """Put down what a user has anyway, before the clock runs."""

    def build(self, material: Material, folder: Path) -> None:
        """Index everything, so that another process can answer from it."""
        raise NotImplementedError

    def open(self, material: Material, folder: Path) -> None:
        """Get ready to answer."""
        raise NotImplementedError

    def search(self, question: Question) -> Sequence[Answer]:
        """The first ten, texts included, as the system finds them at its best."""
        raise NotImplementedError

    def nearest(self, question: Question) -> Sequence[int]:
        """Rows of the ten that its vectors alone find; none where it has no vectors."""
        if self.does == "vectors":
            return [answer.row for answer in self.search(question)]
        return []

    def filtered_recall(self, material: Material) -> dict[str, float]:
        """Share of the ten nearest found among what a filter leaves, by how much that is; empty where not measured."""
        return {}


def system(name: str, *, direct: bool = False) -> System:
    """A system by its name in the list."""
    place = DIRECT.get(name, SYSTEMS[name]) if direct else SYSTEMS[name]
    module, _, kind = place.partition(":")
    made: System = getattr(importlib.import_module(module), kind)()
    return made


def vendor(name: str) -> Any:
    """A system's package. They are no dependency of this project, so no type checker knows them."""
    return importlib.import_module(name)
