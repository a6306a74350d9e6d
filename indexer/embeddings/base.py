"""The `Embedder` seam: texts in, unit vectors out. Engines live beside this file, one each.

The look at what a model gave: as many vectors as texts, all of one length, each of length 1 when it leaves.

Invariants: pure; a row that is no vector (not finite, or of no length) becomes zeros and is never mistaken for one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from indexer.errors import EmbeddingError
from indexer.types import Vectors


class Embedder(Protocol):
    """Turns texts into vectors of one length whose cosine measures likeness of meaning.

    Implementations are safe to call from several threads and do their loading at the first text, not when
    they are made or asked for a property: these embed nothing and use no network.
    """

    @property
    def name(self) -> str:
        """The name a setting uses for it, such as "minilm"."""
        ...

    @property
    def dimensions(self) -> int:
        """Length of every vector; 0 where nobody knows before the first text."""
        ...

    @property
    def fingerprint(self) -> str:
        """Changes whenever the same text could get another vector.

        Raises:
            EmbedderUnavailable: The model that would tell is not there.
        """
        ...

    def reads(self, text: str) -> bool:
        """True if it was trained on texts like this one; ranking goes by words where it was not.

        Asked of text without Latin letters, which every model reads. It may load the model's vocabulary, and never
        fails: a model that is not there reads everything until it is used.
        """
        ...

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Embed texts that are stored.

        Returns:
            float32 array of shape (len(texts), dimensions); every row has length 1.

        Raises:
            EmbedderUnavailable: The model or its package is not there.
            EmbeddingError: Some texts, or all, got no usable vector; `vectors` has those of the others.
        """
        ...

    def embed_query(self, text: str) -> Vectors:
        """Embed a question.

        Returns:
            float32 array of shape (dimensions,), of length 1.

        Raises:
            EmbedderUnavailable: The model or its package is not there.
            EmbeddingError: The model gave no usable vector.
        """
        ...


_REMEDY = "Ask its maker, or choose another embedding_model."


def unit_rows(name: str, made: Sequence[Any] | np.ndarray[Any, Any], *, texts: int, dimensions: int = 0) -> Vectors:
    """What a model gave, as float32 of shape (texts, dimensions) with rows of length 1, or of zeros.

    Args:
        name: The model, for messages.
        made: One row of numbers for each text.
        texts: How many texts it was asked for.
        dimensions: How long its vectors were before; 0 when this is the first time.

    Raises:
        EmbeddingError: There are too few or too many, or their length is not the one that it should be.
    """
    if len(made) != texts:
        raise EmbeddingError(f"The model {name} gave {len(made):,} vectors for {texts:,} texts. {_REMEDY}")
    try:
        rows = np.asarray(made, np.float64)
    except (TypeError, ValueError):
        rows = np.empty(0)
    if rows.ndim != 2 or rows.shape[1] == 0:
        lengths = sorted({len(row) for row in made if hasattr(row, "__len__")})[:3]
        raise EmbeddingError(
            f"The model {name} gave rows that are not of numbers, or not of one length ({lengths}), "
            f"for {texts:,} texts. {_REMEDY}"
        )
    if dimensions and rows.shape[1] != dimensions:
        raise EmbeddingError(
            f"The model {name} gave vectors of {rows.shape[1]:,} numbers, and of {dimensions:,} before. "
            "Set embedding_model to the one that made the index, or run `memory-service reindex --full`."
        )
    finite = np.isfinite(rows).all(axis=1)
    rows[~finite] = 0.0
    with np.errstate(over="ignore"):
        lengths_of_rows = np.linalg.norm(rows, axis=1, keepdims=True)
    usable = (lengths_of_rows > 0) & np.isfinite(lengths_of_rows)
    unit: Vectors = np.divide(rows, lengths_of_rows, out=np.zeros_like(rows), where=usable).astype(np.float32)
    return unit


def empty_rows(vectors: Vectors) -> list[int]:
    """Places of the rows that are no vectors."""
    places: list[int] = np.flatnonzero(~vectors.any(axis=1)).tolist()
    return places
