"""Compactions and flushes whose model litellm itself calls: each request that a server gets is on the receipt."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from indexer.testing import HashEmbedder
from memory_service.compaction.presets import PRESETS
from memory_service.service import MemoryService
from memory_service.testing import Failure, Hang, Reply, ScriptedServer, ScriptedStep
from tests.memory_service.rooms import summary, turn
from tests.serving import RunningServer, W, serving, settings

pytestmark = [
    pytest.mark.litellm,
    pytest.mark.filterwarnings("ignore::DeprecationWarning:(litellm|pydantic|aiohttp|httpx)"),
]
Serve = Callable[..., RunningServer]
DOWN = Failure(status=503, body="down")
BUSY = Failure(status=429, headers={"Retry-After": "0.1"})
ROBIN = "The backup runs before the deploy."


@pytest.fixture
def serve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Serve]:
    """Starts servers whose model is a scripted one."""
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    homes = itertools.count()
    with ExitStack() as running:

        def start(model: ScriptedServer, preset: str = "default", **given: Any) -> RunningServer:
            made = settings(
                tmp_path / str(next(homes)),
                **{
                    "llm_model": "openai/any",
                    "llm_api_base": model.url,
                    "compaction": {"preset": preset},
                    "flush": {"mode": "off"},
                    **given,
                },
            )
            return running.enter_context(serving(MemoryService(made, embedder=HashEmbedder())))

        yield start


def talk(turns: int, tokens: int = 300) -> list[dict[str, Any]]:
    return [message for number in range(turns) for message in turn(number, tokens)]


def compacted(server: RunningServer, turns: int = 40, window: int = 32_000) -> dict[str, Any]:
    """The receipt of a session's compaction, and of the same without a session."""
    name = f"{W}/sessions/s1"
    server.http.post(f"{W}/sessions", json={"session_id": "s1", "context_window": window})
    server.http.post(f"{name}/messages", json={"messages": talk(turns)})
    answer = server.http.post(f"{name}/compact", json={"force": True})
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


@pytest.mark.parametrize(("preset", "requests"), [("default", 4), ("openclaw", 4), ("turns", 4), ("ponybunny", 9)])
def test_an_outage(serve: Serve, preset: str, requests: int) -> None:
    with ScriptedServer(*[DOWN] * 40) as model:
        receipt = compacted(serve(model, preset))
        assert receipt["method"] in ("note", "extractive")
        assert receipt["calls"] == len(model.requests) == requests
        at = [request.at_seconds for request in model.requests]
        assert at[-1] - at[0] < 12


def test_an_outage_where_nothing_may_stand_in(serve: Serve) -> None:
    with ScriptedServer(*[DOWN] * 40) as model:
        server = serve(model, "opencode")
        name = f"{W}/sessions/s1"
        server.http.post(f"{W}/sessions", json={"session_id": "s1", "context_window": 32_000})
        server.http.post(f"{name}/messages", json={"messages": talk(20)})
        assert server.http.post(f"{name}/compact", json={"force": True}).status_code == 502
        assert len(model.requests) == 4


@pytest.mark.parametrize(
    ("preset", "script"),
    [
        ("openclaw", (BUSY, BUSY, ROBIN)),
        ("default", (DOWN, Reply(text="Cut sho", finish_reason="length"), DOWN, summary(ROBIN))),
        ("ponybunny", (ROBIN, DOWN, ROBIN)),
    ],
)
def test_tries_that_end_well(serve: Serve, preset: str, script: tuple[ScriptedStep, ...]) -> None:
    with ScriptedServer(*script, *[script[-1]] * 20) as model:
        receipt = compacted(serve(model, preset))
        assert receipt["method"] == "model"
        assert receipt["calls"] == len(model.requests) >= len(script)


@pytest.mark.parametrize(
    ("preset", "step", "requests", "method"),
    [
        ("openclaw", Failure(status=400, body="bad request boom"), 1, "note"),
        ("default", "no headings", 2, "extractive"),
    ],
)
def test_tries_that_do_not(serve: Serve, preset: str, step: ScriptedStep, requests: int, method: str) -> None:
    with ScriptedServer(*[step] * 20) as model:
        receipt = compacted(serve(model, preset))
        assert receipt["method"] == method
        assert receipt["calls"] == len(model.requests) == requests


def test_a_hang(serve: Serve) -> None:
    with ScriptedServer(Hang(seconds=30)) as model:
        receipt = compacted(serve(model, "openclaw", llm_timeout_seconds=1))
        assert receipt["method"] == "note" and any("timeout" in note for note in receipt["notes"])
        # Far from the 30 seconds of the hang; on a busy machine the first import of litellm takes several.
        assert receipt["calls"] == len(model.requests) == 1 and receipt["duration_ms"] < 20_000


def test_a_later_chunk_that_fails(serve: Serve) -> None:
    with ScriptedServer(ROBIN, *[DOWN] * 40) as model:
        receipt = compacted(serve(model, "openclaw"), turns=120, window=64_000)
        assert receipt["calls"] == len(model.requests) >= 5


def test_a_chain_of_models(serve: Serve) -> None:
    gone = Failure(status=404, body={"error": {"message": "The model `any` does not exist"}})
    with ScriptedServer(gone, gone, *[ROBIN] * 20) as model:
        server = serve(model, "openclaw", llm_fallback_model="openai/second, openai/third")
        receipt = compacted(server)
        assert (receipt["method"], receipt["model"]) == ("model", "openai/third")
        assert [request.body["model"] for request in model.requests][:4] == ["any", "second", "third", "third"]
        assert receipt["calls"] == len(model.requests)
        assert any("openai/any cannot be used" in note for note in receipt["notes"])


@pytest.mark.parametrize("preset", PRESETS)
def test_without_a_session(serve: Serve, preset: str) -> None:
    steps: list[ScriptedStep] = [BUSY, summary(ROBIN, PRESETS[preset].summary.headings) or ROBIN]
    with ScriptedServer(*steps * 20) as model:
        body = {"preset": preset, "context_window": 32_000, "force": True, "messages": talk(30)}
        answer = serve(model, preset).http.post("/v1/compact", json=body)
        receipt = answer.json()["receipt"]
        assert receipt["method"] == "model" and receipt["calls"] == len(model.requests) > 1


@pytest.mark.parametrize(
    ("script", "requests", "method"),
    [
        ((DOWN, "- Deploys go out on Tuesdays. [log:2]"), 2, "model"),
        ([DOWN] * 9, 4, "extractive"),
        (("", ""), 2, "extractive"),
        ((Hang(seconds=30),), 1, "extractive"),
    ],
)
def test_a_flush(serve: Serve, script: tuple[ScriptedStep, ...], requests: int, method: str) -> None:
    with ScriptedServer(*script) as model:
        server = serve(model, flush={"mode": "auto"}, llm_timeout_seconds=6)
        name = f"{W}/sessions/s1"
        said = [{"role": "user", "content": "Deploys go out on Tuesdays, always."}]
        server.http.post(f"{name}/messages", json={"messages": said})
        report = server.http.post(f"{name}/flush", json={}).json()
        assert report["method"] == method
        assert report["calls"] == len(model.requests) == requests
