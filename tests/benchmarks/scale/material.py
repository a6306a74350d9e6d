"""The corpus on disk: texts, vectors and questions of one size, made once and read by every system.

Invariants: a folder that has its last file is complete; vectors are mapped, never loaded whole.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from indexer import MiniLM
from indexer.types import Vectors
from tests.benchmarks.scale import texts, vectors
from tests.benchmarks.scale.texts import Asking
from tests.benchmarks.scale.values import Made, Question

_LAST = "lowest.npy"
BATCH = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """A corpus of one size, in a folder."""

    folder: Path
    size: int
    made: Made

    @property
    def vectors(self) -> Vectors:
        """All of them, shape (size, 384), mapped."""
        mapped: Vectors = np.load(self.folder / "vectors.npy", mmap_mode="r")
        return mapped

    @property
    def lowest(self) -> Vectors:
        """The cosine of the tenth nearest passage of each question."""
        values: Vectors = np.load(self.folder / _LAST)
        return values

    def texts(self) -> Iterator[str]:
        """Every passage, by row."""
        with (self.folder / "texts.txt").open(encoding="utf-8") as lines:
            for line in lines:
                yield line.rstrip("\n")

    def batches(self, most: int = BATCH) -> Iterator[tuple[int, list[str], Vectors]]:
        """The passages in runs: first row, texts, vectors."""
        rest, mapped, start = self.texts(), self.vectors, 0
        while part := list(islice(rest, most)):
            yield start, part, np.asarray(mapped[start : start + len(part)])
            start += len(part)

    def questions(self) -> list[Question]:
        """What is asked of every system, in this order."""
        asked = json.loads((self.folder / "questions.json").read_text("utf-8"))
        rows: Vectors = np.load(self.folder / "questions.npy")
        return [Question(**one, vector=vector) for one, vector in zip(asked, rows, strict=True)]


def prepared(parent: Path, size: int, made: Made, count: int) -> Material:
    """The material of a size, made if it is not there yet."""
    material = Material(folder=parent / f"{made}-{size}-{count}-{_recipe()}", size=size, made=made)
    if not (material.folder / _LAST).exists():
        material.folder.mkdir(parents=True, exist_ok=True)
        _write(material, texts.questions(count, size))
    return material


def _recipe() -> str:
    """Changes with the code that makes the material."""
    source = b"".join(Path(module.__file__ or "").read_bytes() for module in (texts, vectors))
    return hashlib.blake2b(source, digest_size=4).hexdigest()


def _write(material: Material, asked: Sequence[Asking]) -> None:
    folder, size = material.folder, material.size
    with (folder / "texts.txt").open("w", encoding="utf-8") as lines:
        lines.writelines(f"{text}\n" for text in texts.passages(size))
    if material.made == "clustered":
        chunks, questions = vectors.clustered_chunks(size), vectors.clustered_questions(asked)
    else:
        model = MiniLM()
        chunks = vectors.embedded_chunks(material.texts(), model.embed_documents)
        questions = np.stack([model.embed_query(asking.text) for asking in asked])
    _write_vectors(folder / "vectors.npy", size, chunks)
    np.save(folder / "questions.npy", questions)
    (folder / "questions.json").write_text(json.dumps([asdict(asking) for asking in asked]), "utf-8")
    np.save(folder / _LAST, vectors.lowest_of_first(material.vectors, questions))


def _write_vectors(path: Path, size: int, chunks: Iterable[Vectors]) -> None:
    file = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(size, vectors.DIMENSIONS))
    start = 0
    for chunk in chunks:
        file[start : start + len(chunk)] = chunk
        start += len(chunk)
    file.flush()
