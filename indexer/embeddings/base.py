"""Owns the `Embedder` seam: texts in, unit vectors out. Engines live beside this file, one each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

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
        """Whether it was trained on texts like this one; ranking goes by words where it was not.

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
