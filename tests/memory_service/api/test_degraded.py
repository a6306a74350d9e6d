"""What is missing is named: in answers, in the status, in the numbers; defects are answered without details."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from indexer.embeddings.base import Embedder
from indexer.errors import EmbedderUnavailable
from indexer.testing import HashEmbedder
from indexer.types import Vectors
from memory_service.api.metrics import Metrics
from memory_service.service import MemoryService
from tests.serving import RunningServer, W, serving, settings
from tests.waiting import until


def numbers(server: RunningServer) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    answer = server.http.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain")
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


def test_a_vector_search_without_a_model_says_so(tmp_path: Path) -> None:
    with serving(MemoryService(settings(tmp_path, embedding_model="none"))) as server:
        server.http.post(f"{W}/memories", json={"text": "Deploys go out on Tuesdays."})
        found = server.http.post(f"{W}/search", json={"query": "deploys", "mode": "vector"}).json()
        assert found["mode"] == "text"
        assert found["degraded"][0].startswith("vector: ")
        assert found["results"]
        plain = server.http.post(f"{W}/search", json={"query": "deploys"}).json()
        assert (plain["mode"], plain["degraded"]) == ("text", [])
        status = server.http.get(f"{W}/status").json()
        assert (status["coverage"], status["embedding_model"]) == (1.0, "none")
        assert numbers(server)["memory_service_degraded_answers_total", (("part", "vector"),)] == 1


def test_an_index_of_another_model_is_named(tmp_path: Path) -> None:
    with serving(MemoryService(settings(tmp_path), embedder=HashEmbedder(seed=1))) as server:
        server.http.post(f"{W}/memories", json={"text": "Deploys go out on Tuesdays."})
    with serving(MemoryService(settings(tmp_path), embedder=HashEmbedder(seed=2))) as server:
        status = server.http.get(f"{W}/status").json()
        assert "memory-service reindex --full" in status["degraded"][0]
        found = server.http.post(f"{W}/search", json={"query": "deploys"}).json()
        assert found["results"] and found["degraded"][0].startswith("vector: ")
        made = server.http.post(f"{W}/context", json={"query": "deploys"}).json()
        assert made["block"] and made["degraded"] == made["receipt"]["degraded"] != []
        stored = server.http.post(f"{W}/memories", json={"text": "Written while the index is outdated."})
        assert stored.status_code == 201
        assert stored.json()["degraded"]


class Unavailable(HashEmbedder):
    """A model that is not there."""

    def embed_query(self, text: str) -> Vectors:
        raise EmbedderUnavailable("The model is not there. Install it.")


class Broken(HashEmbedder):
    """A model with a defect."""

    def embed_query(self, text: str) -> Vectors:
        if text == "warm":
            return super().embed_query(text)
        raise RuntimeError("secret details")


def test_a_model_that_does_not_load_leaves_the_server_ready_and_degraded(tmp_path: Path) -> None:
    embedder: Embedder = Unavailable()
    with serving(MemoryService(settings(tmp_path), embedder=embedder)) as server:
        until(lambda: server.http.get("/health/ready").status_code == 200)
        ready = server.http.get("/health/ready")
        assert ready.json() == {"status": "ok", "degraded": ["vector: The model is not there. Install it."]}


def test_a_home_that_is_a_file_is_not_ready(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file")
    with serving(MemoryService(settings(tmp_path / "home"), embedder=HashEmbedder())) as server:
        ready = server.http.get("/health/ready")
        assert (ready.status_code, ready.json()["status"]) == (503, "unavailable")


def test_a_defect_is_answered_without_details_and_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with serving(MemoryService(settings(tmp_path), embedder=Broken())) as server:
        (tmp_path / "default/memory").mkdir(parents=True)
        (tmp_path / "default/MEMORY.md").write_text("")
        with caplog.at_level(logging.ERROR):
            answer = server.http.post(f"{W}/memories", json={"text": "x"}, headers={"X-Request-ID": "id-7"})
        assert (answer.status_code, answer.json()["error"]["code"]) == (500, "internal_error")
        assert "secret" not in answer.text
        assert answer.headers["x-request-id"] == "id-7"
        assert "secret details" in caplog.text and "id-7" in caplog.text
        assert server.http.get("/version").status_code == 200


def test_the_log_of_requests_holds_no_text(running_server: RunningServer, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="memory_service.access"):
        running_server.http.post(f"{W}/memories", json={"text": "whispered"})
        running_server.http.post(f"{W}/search?q=whispered", json={"query": "whispered"})
        running_server.http.get(f"{W}/memories/memory/whispered.md")
        # A line is written when its answer is already under way.
        until(lambda: sum(record.name == "memory_service.access" for record in caplog.records) == 3)
        lines = [record.getMessage() for record in caplog.records if record.name == "memory_service.access"]
    assert "POST /v1/workspaces/{workspace}/search 200" in lines[1]
    assert not any("whispered" in line for line in lines)


def test_the_numbers_count_and_hold_no_text(running_server: RunningServer) -> None:
    http = running_server.http
    http.post(f"{W}/memories", json={"text": "whispered"})
    http.post(f"{W}/memories", json={"text": "whispered"})
    http.post(f"{W}/search", json={"query": "whispered"})
    http.post(f"{W}/context", json={"query": "whispered"})
    http.get(f"{W}/memories/memory/whispered.md")
    http.request("BREW", "/coffee")
    # A request is counted when its answer is already under way.
    last = "memory_service_requests_total", (("method", "other"), ("route", "none"), ("status", "404"))
    until(lambda: numbers(running_server).get(last) == 1)
    found = numbers(running_server)
    route = "/v1/workspaces/{workspace}/memories"
    assert found["memory_service_requests_total", (("method", "POST"), ("route", route), ("status", "201"))] == 2
    assert found["memory_service_memories_written_total", ()] == 1
    assert found["memory_service_search_seconds_count", ()] == 1
    assert found["memory_service_context_seconds_count", ()] == 1
    assert found["memory_service_injected_tokens_sum", ()] > 0
    assert found["memory_service_operations_running", ()] == 0
    assert not any("whispered" in f"{key}" or "default" in f"{key}" for key in found)


def test_every_app_has_numbers_of_its_own() -> None:
    one, other = Metrics(lambda: 0, dict), Metrics(lambda: 3, dict)
    one.count_memory()
    assert b"memory_service_memories_written_total 1.0" in one.exposition()
    assert b"memory_service_memories_written_total 0.0" in other.exposition()
    assert b"memory_service_operations_running 3.0" in other.exposition()
