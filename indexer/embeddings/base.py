"""The `Embedder` seam: texts in, unit vectors out, and a cache in front of any; its providers are beside this file.

Invariants: `unit_rows` gives as many vectors as texts, all of one length, each of norm 1; a row that is no vector (not
finite, or of norm 0) becomes zeros and is never taken for one. A cached vector belongs to a model's fingerprint and a
text's hash; the cache is bounded, drops the entry used longest ago, and holds no text. It lasts as long as the process:
across processes the index itself is the cache, as a sync takes the vector of any text that it already holds.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from indexer.common.lru import LRU
from indexer.errors import EmbedderUnavailable, EmbeddingError
from indexer.types import Vectors


class Embedder(Protocol):
    """Model that turns texts into vectors of one length, whose cosine measures similarity of meaning.

    Implementations are thread-safe and load at the first text. Making one or reading its properties embeds nothing and
    uses no network.
    """

    @property
    def name(self) -> str:
        """Name of the model in settings, such as "minilm"."""
        ...

    @property
    def dimensions(self) -> int:
        """Length of every vector; 0 if it is unknown before the first text."""
        ...

    @property
    def fingerprint(self) -> str:
        """Identity of the vectors: it changes whenever the same text could get another vector.

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
    """The output of a model as float32 of shape (texts, dimensions), rows of norm 1, or of zeros.

    Args:
        name: The model, for messages.
        made: One row of numbers for each text.
        texts: Number of texts that it was given.
        dimensions: Length of its earlier vectors; 0 the first time.

    Raises:
        EmbeddingError: The number of vectors, or their length, is wrong.
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


def runs_by_length(lengths: Sequence[int], most: int, *, most_texts: int = 0) -> Iterator[list[int]]:
    """Indices 0..n-1 in runs of texts of similar length, so that little is padded.

    Args:
        lengths: Length of each text, in tokens or characters.
        most: Length of a run, padding included; a text that is longer has its own.
        most_texts: Number of texts in a run; 0 is any.
    """
    run: list[int] = []
    for place in sorted(range(len(lengths)), key=lengths.__getitem__):
        if run and (lengths[place] * (len(run) + 1) > most or len(run) == most_texts):
            yield run
            run = []
        run.append(place)
    if run:
        yield run


def without_surrogates(text: str) -> str:
    """A text with "?" for lone surrogates, which JSON can bring in, and tokenizers refuse."""
    return text.encode("utf-8", "replace").decode("utf-8")


def empty_rows(vectors: Vectors) -> list[int]:
    """Indices of the rows that are no vectors."""
    places: list[int] = np.flatnonzero(~vectors.any(axis=1)).tolist()
    return places


_Key = tuple[str, bytes, bool]


class CachedEmbedder:
    """An embedder that remembers the vectors of another one.

    Args:
        embedder: Makes the vectors that are not cached.
        capacity: Number of cached vectors; 4,096 of 384 dimensions take 6 MB.
    """

    def __init__(self, embedder: Embedder, *, capacity: int = 4096) -> None:
        self._embedder = embedder
        self._cache: LRU[_Key, Vectors] = LRU(capacity)

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
        vector = self._cache.get(key)
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
        vectors = {key: vector for key in keys if (vector := self._cache.get(key)) is not None}
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in vectors}
        if missing:
            try:
                self._keep(vectors, list(missing), self._embedder.embed_documents(list(missing.values())))
            except EmbeddingError as error:
                if error.vectors is not None:
                    self._keep(vectors, list(missing), error.vectors)
                error.vectors = _stack(keys, vectors) if vectors else None
                raise
        return _stack(keys, vectors) if keys else np.empty((0, self.dimensions), np.float32)

    def _model(self) -> str:
        """Cache key of the model; empty until the model is loaded."""
        try:
            return self._embedder.fingerprint
        except EmbedderUnavailable:
            return ""

    def _keep(self, vectors: dict[_Key, Vectors], keys: Sequence[_Key], new_vectors: Vectors) -> None:
        if len(new_vectors) != len(keys):
            raise EmbeddingError(
                f"The model {self.name} gave {len(new_vectors):,} vectors for {len(keys):,} texts. "
                "Choose another embedding_model if it stays."
            )
        for key, vector in zip(keys, new_vectors, strict=True):
            vectors[key] = vector
            self._put(key, vector)

    def _put(self, key: _Key, vector: Vectors) -> None:
        # What is no vector is not remembered: asked again, the model may give one.
        if np.isfinite(vector).all() and vector.any():
            self._cache[key] = vector


def _key(model: str, text: str, *, query: bool) -> _Key:
    # A question and a stored text may get different prefixes, so the same words are two entries.
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
    return model, digest, query


def _stack(keys: Sequence[_Key], vectors: dict[_Key, Vectors]) -> Vectors:
    """Rows in the order of the keys, zeros for missing ones."""
    values = np.zeros_like(next(iter(vectors.values())))
    return np.stack([vectors.get(key, values) for key in keys])
