"""Vectors for the texts of a store: known ones, new ones from an embedder, and those that passages still lack.

Invariants: only unit vectors of the index's own length are stored; a passage that gets its vector later keeps its key
and its terms; no transaction is open while a text is embedded; failures of an embedder are named, and the texts are
found by their words.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import accumulate

from indexer.common.throttle import THROTTLE
from indexer.embeddings.base import Embedder, empty_rows, unit_rows
from indexer.errors import EmbedderUnavailable, EmbeddingError
from indexer.language.breadcrumbs import embedded_text
from indexer.stores.base import IndexStore, StoredPassage, Unembedded
from indexer.types import Fingerprint, Vectors

# Texts embedded between two transactions: enough to sort by length, few enough to lose little.
BATCH_TEXTS = 256
# Who stops the work waits about so long; of a slow model a part of a batch takes that.
_TURN_SECONDS = 1.0
_FIRST_CHARS, _LEAST_CHARS, _MOST_CHARS = 4 * 1024, 4 * 1024, 1024 * 1024
_LARGEST_PART = 1.5


class TextVectors:
    """Vectors by text, each made once.

    Args:
        store: Has some of them already.
        embedder: Makes the others; None makes none.
        made: Fingerprint of the index.
        check: Called every second or so while texts are embedded; it ends the work by raising.

    Attributes:
        embedded: Number of new vectors.
        reused: Number of vectors from the store.
        problems: Failures, each "vector: why and what to do".
        chars_at_once: Characters of texts that take about a second, as far as those before tell.
    """

    def __init__(
        self,
        store: IndexStore,
        embedder: Embedder | None,
        fingerprint: Fingerprint,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        self.embedded = 0
        self.reused = 0
        self.problems: list[str] = []
        self._store = store
        self._embedder = embedder
        self._made = fingerprint
        self._check = check
        self.chars_at_once = _FIRST_CHARS
        self._refused: set[bytes] = set()

    @property
    def can_embed(self) -> bool:
        """True while there is an embedder that has not given up."""
        return self._embedder is not None

    def of(self, texts: dict[bytes, str]) -> dict[bytes, bytes]:
        """Vectors (float32, little-endian) of texts by their hash, as far as there are any."""
        if self._embedder is None or not texts:
            return {}
        vectors = self._store.vectors_of_texts(texts)
        self.reused += len(vectors)
        # What got no vector is not asked for again in the same run.
        known_chunks = vectors.keys() | self._refused
        missing = [(hashed_raw, text) for hashed_raw, text in texts.items() if hashed_raw not in known_chunks]
        if not missing:
            return vectors
        checked_time = time.monotonic()
        for part in THROTTLE.pace(self._parts(missing)):
            if time.monotonic() - checked_time > _TURN_SECONDS:
                self._check()
                checked_time = time.monotonic()
            vectors |= self._embed(part)
        return vectors

    def _parts(self, missing: Sequence[tuple[bytes, str]]) -> Iterator[Sequence[tuple[bytes, str]]]:
        """The texts in parts that take about a second each, as far as the one before tells."""
        start, left = 0, sum(len(text) for _, text in missing)
        while start < len(missing):
            # A small rest is no part of its own: each is a request to a provider.
            most = left if left <= _LARGEST_PART * self.chars_at_once else self.chars_at_once
            end, chars = start, 0
            while end < len(missing) and (end == start or chars + len(missing[end][1]) <= most):
                chars += len(missing[end][1])
                end += 1
            left -= chars
            began = time.monotonic()
            yield missing[start:end]
            speed = chars / max(1e-3, time.monotonic() - began)
            self.chars_at_once = max(_LEAST_CHARS, min(_MOST_CHARS, int(speed * _TURN_SECONDS)))
            start = end

    def _embed(self, missing: Sequence[tuple[bytes, str]]) -> dict[bytes, bytes]:
        rows = self._rows(self._embedder, [text for _, text in missing]) if self._embedder is not None else None
        pairs = zip(missing, rows, strict=True) if rows is not None else ()
        values = {hashed_raw: row.astype("<f4").tobytes() for (hashed_raw, _), row in pairs if row.any()}
        self.embedded += len(values)
        self._refused.update(hashed_raw for hashed_raw, _ in missing if hashed_raw not in values)
        return values

    def _rows(self, embedder: Embedder, texts: list[str]) -> Vectors | None:
        """Unit rows of texts, with zeros for those without a vector; None if there is none at all."""
        name, dimensions = embedder.name, self._made.dimensions
        try:
            try:
                given_vectors = embedder.embed_documents(texts)
            except EmbeddingError as error:
                self._fail(error)
                if error.vectors is None:
                    return None
                return unit_rows(name, error.vectors, texts=len(texts), dimensions=dimensions)
            rows = unit_rows(name, given_vectors, texts=len(texts), dimensions=dimensions)
        except EmbeddingError as error:
            self._fail(error)
            return None
        if empty := len(empty_rows(rows)):
            self._fail(
                EmbeddingError(
                    f"The model {name} gave {empty:,} vectors for {len(texts):,} texts that are not finite or have no "
                    "length, so these are found by their words alone. Ask its maker, or choose another embedding_model."
                )
            )
        return rows

    def _fail(self, error: EmbeddingError) -> None:
        self.problems.append(f"vector: {error}")
        if isinstance(error, EmbedderUnavailable):
            self._embedder = None


def fill_in(
    store: IndexStore,
    fingerprint: Fingerprint,
    vectors: TextVectors,
    *,
    paths: Collection[str] | None = None,
    most: int | None = None,
    before_batch: Callable[[], None] = lambda: None,
    after_batch: Callable[[int], None] = lambda _: None,
) -> None:
    """Embed passages without a vector, the newest first, batch by batch.

    Args:
        store: Store of the passages.
        fingerprint: Fingerprint of the index.
        vectors: Makes the vectors.
        paths: Only passages of these files; None is all.
        most: Largest number of passages to look at.
        before_batch: Called before each batch; an exception of it ends the work.
        after_batch: Called after each with the number of passages that got a vector.

    Raises:
        StoreReplaced: The index was rebuilt meanwhile.
        StoreError: The index cannot be written.
    """
    below, left = None, most
    while vectors.can_embed and (left is None or left > 0):
        before_batch()
        limit = BATCH_TEXTS if left is None else min(left, BATCH_TEXTS)
        lacking = _first_of(store.passages(Unembedded(limit, below, paths)).values(), vectors.chars_at_once)
        if not lacking:
            return
        values = vectors.of({passage.text_hash: embedded_text(passage.passage, passage.path) for passage in lacking})
        rows = [(passage.key, values[passage.text_hash]) for passage in lacking if passage.text_hash in values]
        if rows:
            store.write((), vectors=rows, made_with=fingerprint)
        after_batch(len(rows))
        below, left = lacking[-1].key, None if left is None else left - len(lacking)


def _first_of(lacking: Iterable[StoredPassage], most_chars: int) -> list[StoredPassage]:
    """The first passages with at most so many characters, and one at least: what is embedded is stored at once."""
    passages = list(lacking)
    sums = accumulate(len(passage.passage.text) for passage in passages)
    return passages[: max(1, sum(chars <= most_chars for chars in sums))]
