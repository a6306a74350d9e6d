"""Owns `CachedEmbedder`: what was embedded lately is not embedded again.

Invariants: a vector belongs to a model's fingerprint and a text's hash; the cache is bounded and drops
what was used longest ago; it holds no text. It lasts as long as the process: across processes the index
itself is the cache, as a sync takes the vector of any text that it already holds.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Sequence

import numpy as np

from indexer.embeddings.base import Embedder
from indexer.types import Vectors

_Key = tuple[str, bytes, bool]


class CachedEmbedder:
    """An embedder in front of another one.

    Args:
        embedder: Makes the vectors that are not here.
        capacity: How many vectors are kept; 4,096 of 384 dimensions take 6 MB.
    """

    def __init__(self, embedder: Embedder, *, capacity: int = 4096) -> None:
        self._embedder = embedder
        self._capacity = capacity
        self._kept: OrderedDict[_Key, Vectors] = OrderedDict()
        self._changing = threading.Lock()

    @property
    def name(self) -> str:
        """See `Embedder`."""
        return self._embedder.name

    @property
    def dimensions(self) -> int:
        """See `Embedder`."""
        return self._embedder.dimensions

    @property
    def fingerprint(self) -> str:
        """See `Embedder`."""
        return self._embedder.fingerprint

    @property
    def multilingual(self) -> bool:
        """See `Embedder`."""
        return self._embedder.multilingual

    def embed_query(self, text: str) -> Vectors:
        """See `Embedder`."""
        key = self._key(text, query=True)
        vector = self._get(key)
        if vector is None:
            vector = self._embedder.embed_query(text)
            self._put(key, vector)
        return vector

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """See `Embedder`."""
        keys = [self._key(text, query=False) for text in texts]
        found = {key: vector for key in keys if (vector := self._get(key)) is not None}
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in found}
        if missing:
            made = self._embedder.embed_documents(list(missing.values()))
            for key, vector in zip(missing, made, strict=True):
                found[key] = vector
                self._put(key, vector)
        return np.stack([found[key] for key in keys]) if keys else np.empty((0, self.dimensions), np.float32)

    def _key(self, text: str, *, query: bool) -> _Key:
        # A question and a stored text may get different prefixes, so the same words are two entries.
        digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        return self._embedder.fingerprint, digest, query

    def _get(self, key: _Key) -> Vectors | None:
        with self._changing:
            vector = self._kept.get(key)
            if vector is not None:
                self._kept.move_to_end(key)
            return vector

    def _put(self, key: _Key, vector: Vectors) -> None:
        with self._changing:
            self._kept[key] = vector
            self._kept.move_to_end(key)
            while len(self._kept) > self._capacity:
                self._kept.popitem(last=False)
