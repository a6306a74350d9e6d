"""Owns the reranker that asks a provider through litellm.

Invariants: one request for one question's texts, never tried again, as the question waits; a provider that cannot
be used is left alone for a while.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from indexer.embeddings.litellm import PREFIX
from indexer.embeddings.provider import ProviderFailed, Target, rerank
from indexer.errors import EmbedderUnavailable, EmbeddingError
from indexer.reranking import DEADLINE_SECONDS, RERANKED_HITS, Scores

_REST_SECONDS = 30.0


class LiteLLMReranker:
    """A reranking model by its litellm name.

    Args:
        model: Such as "cohere/rerank-v3.5", "voyage/rerank-2.5" or "hosted_vllm/BAAI/bge-reranker-v2-m3".
        api_base: Where it is served, if not at its provider's own address.
        api_key: Its key, if not in the variable that its provider names.
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
        self.name = PREFIX + model
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
