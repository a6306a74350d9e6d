"""litellm for real, against a provider of reranking on a loopback port."""

from __future__ import annotations

import pytest

from indexer.embeddings.litellm import LiteLLMReranker
from indexer.embeddings.reranking import Reranker
from indexer.errors import EmbedderUnavailable, EmbeddingError
from indexer.testing import Request
from tests.indexer.embeddings.serving import Answer, EmbeddingServer, Said, failing

pytestmark = [
    pytest.mark.litellm,
    pytest.mark.filterwarnings("ignore::DeprecationWarning:(litellm|pydantic|aiohttp|httpx)"),
]


def by_length(asked: Request) -> Answer:
    texts = asked.body["documents"]
    ranked = sorted(range(len(texts)), key=lambda place: -len(texts[place]))
    return Said(body={"id": "r", "results": [{"index": n, "relevance_score": len(texts[n]) / 10} for n in ranked]})


def test_scores_are_in_the_order_of_the_texts() -> None:
    with EmbeddingServer(by_length) as server:
        seam: Reranker = LiteLLMReranker("hosted_vllm/any", api_base=server.url, api_key="k")
        assert seam.score("q", ["a", "abc", "ab"]) == pytest.approx([0.1, 0.3, 0.2])
        (asked,) = server.requests
        assert (asked.path, asked.body["query"]) == ("/v1/rerank", "q")


def test_a_provider_that_fails_is_asked_once_and_left_alone() -> None:
    with EmbeddingServer(lambda _: failing("Unauthorized", 401)) as server:
        reranker = LiteLLMReranker("hosted_vllm/any", api_base=server.url, api_key="k")
        with pytest.raises(EmbedderUnavailable, match=r"cannot be asked \(auth\)\. Check rerank_model"):
            reranker.score("q", ["a", "b"])
        with pytest.raises(EmbedderUnavailable, match="failed a moment ago"):
            reranker.score("q", ["a", "b"])
        assert len(server.requests) == 1


def test_scores_that_are_missing_are_named() -> None:
    with EmbeddingServer(lambda _: Said(body={"id": "r", "results": [{"index": 0, "relevance_score": 1.0}]})) as server:
        reranker = LiteLLMReranker("hosted_vllm/any", api_base=server.url, api_key="k")
        with pytest.raises(EmbeddingError, match="gave 1 scores for 2 texts"):
            reranker.score("q", ["a", "b"])


@pytest.mark.parametrize("labels", [[0, 0], [0, 7], [1, -1], [0, 1, 2]])
def test_labels_that_are_not_those_of_the_texts_are_named(labels: list[int]) -> None:
    said = {"id": "r", "results": [{"index": label, "relevance_score": 0.5} for label in labels]}
    with EmbeddingServer(lambda _: Said(body=said)) as server:
        reranker = LiteLLMReranker("hosted_vllm/any", api_base=server.url, api_key="k")
        with pytest.raises(EmbeddingError, match="scores for 2 texts"):
            reranker.score("q", ["a", "b"])
