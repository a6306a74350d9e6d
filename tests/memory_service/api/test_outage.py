"""A provider of embeddings that is away when a workspace is begun: words meanwhile, then vectors by themselves."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from indexer.embeddings.litellm import LiteLLMEmbedder
from indexer.testing import HashEmbedder, Request
from indexer.types import Vectors
from memory_service.service import MemoryService
from tests.indexer.embeddings.serving import Answer, EmbeddingServer, Hang, failing, sound
from tests.indexer.embeddings.test_identity import Remote
from tests.serving import RunningServer, W, serving, settings
from tests.waiting import until

KEY, CHINESE = "The spare key hangs behind the blue door.", "备用钥匙挂在蓝色的门后面。"


def remembered(server: RunningServer, text: str) -> dict[str, Any]:
    answer = server.http.post(f"{W}/memories", json={"text": text})
    assert answer.status_code == 201
    made: dict[str, Any] = answer.json()
    return made


def searched(server: RunningServer, query: str, mode: str = "hybrid") -> dict[str, Any]:
    found: dict[str, Any] = server.http.post(f"{W}/search", json={"query": query, "mode": mode}).json()
    # Relevance is fitted to the bundled model alone, and these are other ones.
    found["degraded"] = [line for line in found["degraded"] if not line.startswith("relevance: ")]
    return found


def healed(server: RunningServer, query: str) -> dict[str, Any]:
    """The first search that misses nothing."""
    found = dict[str, Any]()

    def misses_nothing() -> bool:
        found.update(searched(server, query))
        return not found["degraded"]

    until(misses_nothing)
    return found


def is_whole(server: RunningServer) -> None:
    status = server.http.get(f"{W}/status").json()
    assert (status["coverage"], status["degraded"], status["dirty"]) == (1.0, [], 0)
    assert status["fingerprint"] == status["current_fingerprint"]


@pytest.mark.parametrize("restarted", [False, True])
def test_an_outage_at_the_first_write_heals_by_itself(tmp_path: Path, restarted: bool) -> None:
    model = Remote(away=True)
    with serving(MemoryService(settings(tmp_path), embedder=model)) as server:
        for text in (KEY, CHINESE):
            assert "cannot be reached" in remembered(server, text)["degraded"][0]
        for query, text in (("spare key", KEY), ("蓝色的门", CHINESE)):
            found = searched(server, query)
            assert (found["mode"], found["results"][0]["text"]) == ("text", text)
            assert any("as soon as the model remote answers" in line for line in found["degraded"])
            assert not any("reindex" in line for line in found["degraded"]), "nobody has to run it"
        status = server.http.get(f"{W}/status").json()
        assert status["coverage"] == 0 and "2 of 2 passages have no vector yet" in status["degraded"][0]
        if not restarted:
            model.away = False
            assert healed(server, "spare key")["mode"] == "hybrid"
            is_whole(server)
    if restarted:
        with serving(MemoryService(settings(tmp_path), embedder=Remote())) as server:
            assert healed(server, "spare key")["mode"] == "hybrid"
            is_whole(server)


def test_a_write_after_the_outage_has_its_vector_at_once(tmp_path: Path) -> None:
    model = Remote(away=True)
    with serving(MemoryService(settings(tmp_path), embedder=model)) as server:
        remembered(server, KEY)
        model.away = False
        assert remembered(server, CHINESE)["degraded"] == []
        assert healed(server, "蓝色的门")["mode"] == "hybrid"
        is_whole(server)


def test_an_outage_in_the_middle_heals_too(tmp_path: Path) -> None:
    model = Remote()
    with serving(MemoryService(settings(tmp_path), embedder=model)) as server:
        assert remembered(server, KEY)["degraded"] == []
        model.away = True
        for number in range(200):
            answer = server.http.post(
                f"{W}/sessions/s/messages", json={"messages": [{"role": "user", "content": f"第{number}只袋鼠 wombat"}]}
            )
            assert answer.status_code == 200 or answer.status_code == 201
        found = searched(server, "wombat 第7只")
        assert found["results"] and any("cannot be reached" in line for line in found["degraded"])
        model.away = False
        assert healed(server, "wombat")["mode"] == "hybrid"
        is_whole(server)


class Provider:
    """One that is down, then up."""

    def __init__(self) -> None:
        self.is_up = False

    def __call__(self, asked: Request) -> Answer:
        return sound(asked) if self.is_up else failing("The server is overloaded.", status=503)


@pytest.mark.litellm
def test_a_provider_of_litellm_that_comes_back(tmp_path: Path) -> None:
    provider = Provider()
    with EmbeddingServer(provider) as upstream:
        model = LiteLLMEmbedder(
            "openai/any", api_base=upstream.url, api_key="k", retries=1, backoff_seconds=0.01, rest_seconds=2.0
        )
        with serving(MemoryService(settings(tmp_path), embedder=model)) as server:
            (told,) = remembered(server, KEY)["degraded"]
            assert "cannot be reached or is overloaded" in told and "then they get their vectors" in told
            asked = len(upstream.requests)
            for _ in range(5):
                assert searched(server, "spare key")["degraded"]
            assert len(upstream.requests) - asked <= 2, "one that is away is left alone for a while"
            provider.is_up = True
            assert healed(server, "spare key")["mode"] == "hybrid"
            is_whole(server)


@pytest.mark.litellm
@pytest.mark.parametrize("first", [True, False])
def test_a_write_does_not_wait_for_a_provider_that_hangs(tmp_path: Path, first: bool) -> None:
    with EmbeddingServer(sound) as upstream:
        model = LiteLLMEmbedder(
            "openai/any", api_base=upstream.url, api_key="k", try_seconds=60.0, query_seconds=2.5, rest_seconds=2.0
        )
        with serving(MemoryService(settings(tmp_path), embedder=model)) as server:
            if not first:
                assert remembered(server, "The pot is blue.")["degraded"] == []
            upstream.behaviour = lambda _: Hang()
            for text in (KEY, CHINESE):
                (told,) = remembered(server, text)["degraded"]
                assert "cannot be reached or is overloaded" in told
            assert searched(server, "spare key", "text")["results"][0]["text"] == KEY
            upstream.behaviour = sound
            assert healed(server, "蓝色的门")["mode"] == "hybrid"
            is_whole(server)


@pytest.mark.litellm
def test_commands_heal_it_one_after_the_other(tmp_path: Path) -> None:
    provider = Provider()
    with EmbeddingServer(provider) as upstream:
        environment = {
            "MEMORY_SERVICE_HOME": str(tmp_path),
            "MEMORY_SERVICE_EMBEDDING_MODEL": "litellm/openai/any",
            "MEMORY_SERVICE_EMBEDDING_API_BASE": upstream.url,
            "OPENAI_API_KEY": "k",
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        }

        def run(*arguments: str) -> dict[str, Any]:
            done = subprocess.run(
                [sys.executable, "-m", "memory_service", *arguments, "--json"],
                env={**os.environ, **environment},
                capture_output=True,
                text=True,
                check=True,
                timeout=240,
            )
            made: dict[str, Any] = json.loads(done.stdout)
            return made

        run("remember", KEY)
        found = run("search", "spare key")
        assert found["mode"] == "text" and found["degraded"] and found["results"]
        provider.is_up = True
        found = run("search", "spare key")
        assert found["mode"] == "hybrid" and [line[:10] for line in found["degraded"]] == ["relevance:"]
        assert run("status")["coverage"] == 1.0


class SlowEmbedder(HashEmbedder):
    """Takes so long for a batch that a search finds the rest still without vectors."""

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        time.sleep(0.7)
        return super().embed_documents(texts)


def test_many_passages_are_embedded_in_the_background(tmp_path: Path) -> None:
    folder = tmp_path / "default" / "memory"
    folder.mkdir(parents=True)
    (folder / "many.md").write_text("".join(f"- wombat number {number} digs\n" for number in range(900)))
    for place, mode in ((tmp_path, 0o700), (folder.parent, 0o700), (folder, 0o700), (folder / "many.md", 0o600)):
        place.chmod(mode)
    # A file that was read within the grain of the clock after a change is read, and embedded, by the next search.
    time.sleep(0.2)
    with MemoryService(settings(tmp_path, embedding_model="none")) as service:
        service.reindex("default")
    with serving(MemoryService(settings(tmp_path), embedder=SlowEmbedder())) as server:
        first = searched(server, "wombat 7")
        assert first["results"]
        assert any("have no vector yet" in line for line in first["degraded"]), (first["mode"], first["degraded"])
        assert healed(server, "wombat 7")["mode"] == "hybrid"
        is_whole(server)
