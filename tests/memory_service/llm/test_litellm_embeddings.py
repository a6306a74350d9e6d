"""Vectors and rerankers of a provider that the settings name, through litellm itself, by a server as a process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest

from indexer.testing import Request
from memory_service.testing import ScriptedServer
from tests.indexer.embeddings.serving import Answer, EmbeddingServer, Said, sound, texts_of
from tests.serving import W, running_process

pytestmark = pytest.mark.litellm
NOTES = ["The kettle is in the pantry.", "水壶在储藏室里。", "Deploys go out on Tuesdays."]


def longest_first(asked: Request) -> Answer:
    """Vectors, and scores that prefer the longest text."""
    if not asked.path.endswith("/rerank"):
        return sound(asked)
    texts = asked.body["documents"]
    results = [{"index": place, "relevance_score": len(text) / 100} for place, text in enumerate(texts)]
    return Said(body={"id": "r", "results": results})


def searched(home: Path, environment: Mapping[str, str], queries: Sequence[str]) -> list[dict[str, Any]]:
    """Answers of a server to some questions about the notes."""
    with running_process(home, {"OPENAI_API_KEY": "k", **environment}) as url, httpx.Client(base_url=url) as http:
        for text in NOTES:
            assert http.post(f"{W}/memories", json={"text": text}, timeout=60).status_code == 201
        return [http.post(f"{W}/search", json={"query": query}, timeout=60).json() for query in queries]


def test_vectors_are_asked_for_at_the_address_of_embeddings_alone(tmp_path: Path) -> None:
    with EmbeddingServer() as server, ScriptedServer() as model:
        environment = {
            "MEMORY_SERVICE_EMBEDDING_MODEL": "litellm/openai/bge-m3",
            "MEMORY_SERVICE_EMBEDDING_API_BASE": server.url,
            "MEMORY_SERVICE_LLM_MODEL": "openai/other",
            "MEMORY_SERVICE_LLM_API_BASE": model.url,
        }
        english, chinese = searched(tmp_path, environment, ["where is the kettle?", "水壶在哪里？"])
        assert {request.path for request in server.requests} == {"/v1/embeddings"}
        assert {*NOTES} <= {text for request in server.requests for text in texts_of(request)}
        assert {request.body["model"] for request in server.requests} == {"bge-m3"}
        assert model.requests == []
    assert [answer["results"][0]["text"] for answer in (english, chinese)] == NOTES[:2]
    for answer in (english, chinese):
        assert answer["mode"] == "hybrid"
        assert None not in [result["vector_score"] for result in answer["results"]]


def test_a_reranker_is_asked_there_too(tmp_path: Path) -> None:
    with EmbeddingServer(longest_first) as server:
        environment = {
            "MEMORY_SERVICE_EMBEDDING_MODEL": "none",
            "MEMORY_SERVICE_RERANK_MODEL": "litellm/hosted_vllm/any",
            "MEMORY_SERVICE_EMBEDDING_API_BASE": server.url,
        }
        (answer,) = searched(tmp_path, environment, ["kettle pantry deploys"])
        assert {request.path for request in server.requests} == {"/v1/rerank"}
    texts = [result["text"] for result in answer["results"]]
    assert texts == sorted(texts, key=len, reverse=True)
    assert len(texts) == 2


def test_an_address_where_nobody_answers_leaves_the_words_and_says_so(tmp_path: Path) -> None:
    environment = {
        "MEMORY_SERVICE_EMBEDDING_MODEL": "litellm/openai/any",
        "MEMORY_SERVICE_EMBEDDING_API_BASE": "http://127.0.0.1:9/v1",
    }
    (answer,) = searched(tmp_path, environment, ["where is the kettle?"])
    assert answer["mode"] == "text"
    assert answer["results"][0]["text"] == NOTES[0]
    assert any(told.startswith("vector: ") for told in answer["degraded"])
