"""A cache of vectors in front of an embedder, and the identity of the model that an index is built with.

Invariants: a vector belongs to a model's fingerprint and a text's hash; the cache is bounded, drops the entry used
longest ago, and holds no text. It lasts as long as the process: across processes the index itself is the cache, as a
sync takes the vector of any text that it already holds. `identify` embeds nothing and uses no network, so a status
never waits for a provider; a model that is not there now is taken for the one that built the index, so that nothing
is rebuilt for its absence.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from indexer.embeddings.base import Embedder
from indexer.errors import EmbedderUnavailable, EmbeddingError
from indexer.lru import LRU
from indexer.types import Fingerprint, Vectors

_Key = tuple[str, bytes, bool]


class CachedEmbedder:
    """An embedder that remembers the vectors of another one.

    Args:
        embedder: Makes the vectors that are not cached.
        capacity: Number of cached vectors; 4,096 of 384 dimensions take 6 MB.
    """

    def __init__(self, embedder: Embedder, *, capacity: int = 4096) -> None:
        self._embedder = embedder
        self._cached: LRU[_Key, Vectors] = LRU(capacity)

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

    def reads(self, text: str) -> bool:
        """See `Embedder`."""
        return self._embedder.reads(text)

    def embed_query(self, text: str) -> Vectors:
        """See `Embedder`."""
        model = self._model()
        if not model:
            return self._embedder.embed_query(text)
        key = _key(model, text, query=True)
        vector = self._cached.get(key)
        if vector is None:
            vector = self._embedder.embed_query(text)
            self._put(key, vector)
        return vector

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """See `Embedder`."""
        model = self._model()
        if not model:
            return self._embedder.embed_documents(texts)
        keys = [_key(model, text, query=False) for text in texts]
        found = {key: vector for key in keys if (vector := self._cached.get(key)) is not None}
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in found}
        if missing:
            try:
                self._keep(found, list(missing), self._embedder.embed_documents(list(missing.values())))
            except EmbeddingError as error:
                if error.vectors is not None:
                    self._keep(found, list(missing), error.vectors)
                error.vectors = _stacked(keys, found) if found else None
                raise
        return _stacked(keys, found) if keys else np.empty((0, self.dimensions), np.float32)

    def _model(self) -> str:
        """Cache key of the model; empty until the model is loaded."""
        try:
            return self._embedder.fingerprint
        except EmbedderUnavailable:
            return ""

    def _keep(self, found: dict[_Key, Vectors], keys: Sequence[_Key], made: Vectors) -> None:
        if len(made) != len(keys):
            raise EmbeddingError(
                f"The model {self.name} gave {len(made):,} vectors for {len(keys):,} texts. "
                "Choose another embedding_model if it stays."
            )
        for key, vector in zip(keys, made, strict=True):
            found[key] = vector
            self._put(key, vector)

    def _put(self, key: _Key, vector: Vectors) -> None:
        # What is no vector is not remembered: asked again, the model may give one.
        if np.isfinite(vector).all() and vector.any():
            self._cached[key] = vector


def _key(model: str, text: str, *, query: bool) -> _Key:
    # A question and a stored text may get different prefixes, so the same words are two entries.
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
    return model, digest, query


def _stacked(keys: Sequence[_Key], found: dict[_Key, Vectors]) -> Vectors:
    """Rows in the order of the keys, zeros for missing ones."""
    none = np.zeros_like(next(iter(found.values())))
    return np.stack([found.get(key, none) for key in keys])


_FIRST_TEXT = "The first text tells how long the vectors are."


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """A model as an index knows it.

    Attributes:
        model: Its fingerprint; empty for none.
        dimensions: Length of its vectors; 0 for none, and where only a text would tell.
        problem: Why it cannot be used; empty if nothing is known against it.
    """

    model: str = ""
    dimensions: int = 0
    problem: str = ""


def identify(embedder: Embedder | None, stored: Callable[[], Fingerprint | None]) -> Identity:
    """The model that an index would be built with now.

    Args:
        embedder: The configured one.
        stored: Gives the fingerprint of the index; called only where the model itself does not tell.
    """
    if embedder is None:
        return Identity()
    try:
        model = embedder.fingerprint
    except EmbedderUnavailable as error:
        made = stored()
        if made is None:
            return Identity(problem=str(error))
        return Identity(model=made.model, dimensions=made.dimensions, problem=str(error))
    dimensions = embedder.dimensions
    if not dimensions:
        made = stored()
        dimensions = made.dimensions if made and made.model == model else 0
    return Identity(model=model, dimensions=dimensions)


def learn(embedder: Embedder | None, *, briefly: bool = False) -> None:
    """Have a model say what has to be known before an index is built with it; it may embed a text for that.

    Args:
        embedder: The configured one.
        briefly: Embed it as a question: that fetches no model, and gives a provider only seconds to answer.

    Raises:
        EmbeddingError: The model does not answer.
    """
    if embedder is None:
        return
    try:
        known = bool(embedder.fingerprint and embedder.dimensions)
    except EmbedderUnavailable:
        known = False
    if not known and briefly:
        embedder.embed_query(_FIRST_TEXT)
    elif not known:
        embedder.embed_documents([_FIRST_TEXT])
