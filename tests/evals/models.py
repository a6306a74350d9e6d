"""The English model of the evaluations: in one process, no text is embedded twice."""

from __future__ import annotations

from functools import cache

from indexer import CachedEmbedder, Embedder, MiniLM


@cache
def minilm() -> Embedder:
    """The bundled English model, whose vectors are all kept."""
    return CachedEmbedder(MiniLM(), capacity=100_000)
