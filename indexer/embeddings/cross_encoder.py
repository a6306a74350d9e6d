"""Owns the reranker that runs any cross-encoder of sentence-transformers, from a folder or from the hub.

Invariants: making one loads nothing; a model of the hub is fetched by its first question, in the background of it;
one thread runs it at a time.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from indexer.embeddings.hub import load_cross_encoder
from indexer.embeddings.sentence_transformers import PREFIX
from indexer.errors import EmbeddingError
from indexer.reranking import Scores


class CrossEncoderReranker:
    """A cross-encoder.

    Args:
        model: A folder, or a name on the hub such as "BAAI/bge-reranker-v2-m3".
    """

    def __init__(self, model: str) -> None:
        self.name = PREFIX + model
        self.at_once = 10
        self._model = model
        self._loaded: Any = None
        self._running = threading.Lock()

    def score(self, query: str, texts: Sequence[str]) -> Scores:
        """See `Reranker.score`."""
        pairs = [(_readable(query), _readable(text)) for text in texts]
        with self._running:
            if self._loaded is None:
                self._loaded = load_cross_encoder(self._model, fetch=True)
            try:
                scores = self._loaded.predict(pairs, convert_to_numpy=True, show_progress_bar=False)
            except Exception as error:  # torch's and the tokenizer's have no common base
                raise EmbeddingError(
                    f"The model {self.name} failed on {len(pairs)} texts ({type(error).__name__}). "
                    "Choose another rerank_model if it stays."
                ) from error
        # Some have a score for each of two labels, the last of them "it answers".
        found = np.asarray(scores, np.float64)
        return found[:, -1] if found.ndim == 2 else found


def _readable(text: str) -> str:
    # Tokenizers refuse lone surrogates, which JSON can bring in.
    return text.encode("utf-8", "replace").decode("utf-8")
