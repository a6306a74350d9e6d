"""Owns `HashEmbedder`, an embedder for tests: deterministic, instant, without a model file."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from indexer.analysis import index_terms
from indexer.types import Vectors


class HashEmbedder:
    """Adds a fixed random direction per term, so texts that share words are near each other.

    Args:
        dimensions: Length of the vectors.
        seed: Another seed is another model: other vectors, other fingerprint.
    """

    def __init__(self, dimensions: int = 64, *, seed: int = 0) -> None:
        self.name = "hash"
        self.dimensions = dimensions
        self.fingerprint = f"hash-{dimensions}-{seed}"
        self._seed = seed

    def reads(self, text: str) -> bool:
        """See `Embedder`; it reads everything."""
        return True

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """See `Embedder`."""
        return (
            np.stack([self.embed_query(text) for text in texts])
            if texts
            else np.empty((0, self.dimensions), np.float32)
        )

    def embed_query(self, text: str) -> Vectors:
        """See `Embedder`."""
        total = np.sum([self._direction(term) for term in index_terms(text) or [""]], axis=0)
        return np.asarray(total / np.linalg.norm(total), np.float32)

    def _direction(self, term: str) -> Vectors:
        digest = hashlib.blake2b(f"{self._seed}:{term}".encode(), digest_size=8).digest()
        return (
            np.random.default_rng(int.from_bytes(digest, "little")).standard_normal(self.dimensions).astype(np.float32)
        )
