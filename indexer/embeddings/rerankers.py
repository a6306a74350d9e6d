"""Rerankers: any cross-encoder of sentence-transformers, and any reranking model of a provider through litellm.

Invariants: making one loads nothing; a model of the hub is fetched by its first question, in the background of it;
one thread runs it at a time. A provider gets one request for one question's texts, never retried, as the question
waits; one that cannot be used is left alone for a while.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from indexer.embeddings.base import without_surrogates
from indexer.embeddings.litellm import LITELLM_PREFIX
from indexer.embeddings.sentence_transformers import SENTENCE_TRANSFORMERS_PREFIX, load_model
from indexer.errors import EmbedderUnavailable, EmbeddingError
from indexer.providers.litellm_package import ProviderFailed, Target, rerank
from indexer.reranking import DEADLINE_SECONDS, RERANKED_HITS, Scores


class CrossEncoderReranker:
    """A cross-encoder of sentence-transformers.

    Args:
        model: A folder, or a name on the hub such as "BAAI/bge-reranker-v2-m3".
    """

    def __init__(self, model: str) -> None:
        self.name = SENTENCE_TRANSFORMERS_PREFIX + model
        self.at_once = 10
        self._model = model
        self._loaded: Any = None
        self._running = threading.Lock()

    def score(self, query: str, texts: Sequence[str]) -> Scores:
        """See `Reranker.score`."""
        pairs = [(without_surrogates(query), without_surrogates(text)) for text in texts]
        with self._running:
            if self._loaded is None:
                self._loaded = load_model(self._model, "rerank", fetch=True)
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


_REST_SECONDS = 30.0


class LiteLLMReranker:
    """A reranking model by its litellm name.

    Args:
        model: Such as "cohere/rerank-v3.5", "voyage/rerank-2.5" or "hosted_vllm/BAAI/bge-reranker-v2-m3".
        api_base: Its address; None is the provider's own.
        api_key: Its key; None is the variable that the provider names.
        rest_seconds: How long a provider that failed is left alone.
    """

    def __init__(
        self,
        model: str,
        *,
        api_base: str | None = None,
        api_key: str | None = None,
        rest_seconds: float = _REST_SECONDS,
    ) -> None:
        self.name = LITELLM_PREFIX + model
        self.at_once = RERANKED_HITS
        self._target = Target(model=model, api_base=api_base or None, api_key=api_key or None)
        self._rest_seconds = rest_seconds
        self._resting = 0.0

    def score(self, query: str, texts: Sequence[str]) -> Scores:
        """See `Reranker.score`."""
        if time.monotonic() < self._resting:
            raise EmbedderUnavailable(
                f"The model {self.name} failed a moment ago. "
                f"Ask again in {self._rest_seconds:g} s, or unset rerank_model."
            )
        try:
            found = rerank(self._target, query, texts, seconds=DEADLINE_SECONDS)
        except ProviderFailed as failed:
            self._resting = time.monotonic() + self._rest_seconds
            raise EmbedderUnavailable(
                f"The model {self.name} cannot be asked ({failed.failure.kind}). "
                "Check rerank_model, its key and embedding_api_base."
            ) from failed.__cause__
        if set(found) != set(range(len(texts))):
            raise EmbeddingError(
                f"The model {self.name} gave {len(found)} scores for {len(texts)} texts. Choose another rerank_model."
            )
        return np.array([found[place] for place in range(len(texts))])
