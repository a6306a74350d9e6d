"""Summaries by a model, as a client over HTTP meets them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from indexer.testing import HashEmbedder
from memory_service.compaction.presets import PRESETS
from memory_service.llm.base import ChatMessage
from memory_service.runtime.models import Models
from memory_service.service import MemoryService
from memory_service.testing import ScriptedModel
from tests.memory_service.rooms import says, summary, user
from tests.serving import RunningServer, W, serving, settings

Said = Callable[[Sequence[ChatMessage]], str]
Serve = Callable[..., RunningServer]
ROBIN = "The user and the assistant spoke about a robin."
FILL = {False: "the robin sings in the garden again ", True: "知更鸟又在花园里唱歌了，"}


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Starts servers with a model."""
    with ExitStack() as running:

        def start(model: ScriptedModel, **given: Any) -> RunningServer:
            made = settings(tmp_path / "home", flush={"mode": "off"}, embedding_model="none", **given)
            models = Models(summaries=model, memories=model)
            return running.enter_context(serving(MemoryService(made, embedder=HashEmbedder(), models=models)))

        yield start


def answering(*texts: str) -> ScriptedModel:
    """A model with a window of 32,000 that gives these answers in turn, over and over."""
    return ScriptedModel(*texts * 40, context_window=32_000)


def message(tokens: int, at: int, *, chinese: bool = False) -> dict[str, Any]:
    fill = FILL[chinese]
    chars = tokens if chinese else 4 * tokens
    text = (fill * (chars // len(fill) + 1))[:chars]
    return user(text) if at % 2 == 0 else says(text)


def with_one_large(*, chinese: bool = False) -> list[dict[str, Any]]:
    """10 of 500 tokens, one of 26,000, 60 of 1,000; no digits anywhere."""
    sizes = [*[500] * 10, 26_000, *[1_000] * 60]
    return [message(size, at, chinese=chinese) for at, size in enumerate(sizes)]


def compact(server: RunningServer, **body: Any) -> dict[str, Any]:
    answer = server.http.post("/v1/compact", json={"context_window": 200_000, "force": True, **body})
    assert answer.status_code == 200, answer.text
    return dict(answer.json()["receipt"])


@pytest.mark.parametrize("chinese", [False, True])
@pytest.mark.parametrize("preset", ["openclaw", "ponybunny", "default"])
def test_a_message_that_is_too_large_is_left_out_and_named(serve: Serve, preset: str, chinese: bool) -> None:
    text = summary(ROBIN, PRESETS[preset].summary.headings) or ROBIN
    model = answering(text)
    # All of it would be what ponybunny keeps in the larger one.
    window = 100_000 if preset == "ponybunny" else 200_000
    receipt = compact(serve(model), preset=preset, messages=with_one_large(chinese=chinese), context_window=window)
    assert receipt["method"] == "model" and receipt["audit"]["ok"]
    assert receipt["calls"] == len(model.requests) <= 10
    left = (
        "[略去：过大的用户消息，约 25K 词元；log:11]"
        if chinese
        else "[Omitted: large user message, ~26K tokens; log:11]"
    )
    assert ROBIN in receipt["summary"] and left in receipt["summary"]
    assert any("Left out of the summary" in note and "log:11" in note for note in receipt["notes"])


@pytest.mark.parametrize("preset", ["openclaw", "ponybunny", "default"])
def test_so_it_is_in_a_session(serve: Serve, preset: str) -> None:
    model = answering(summary(ROBIN, PRESETS[preset].summary.headings) or ROBIN)
    server = serve(model, compaction={"preset": preset})
    session = f"{W}/sessions/s1"
    window = 100_000 if preset == "ponybunny" else 200_000
    server.http.post(f"{W}/sessions", json={"session_id": "s1", "context_window": window})
    server.http.post(f"{session}/messages", json={"messages": with_one_large()})
    for _ in range(2):  # the note stands in the summary that the second one brings up to date
        receipt = server.http.post(f"{session}/compact", json={"force": True}).json()
        assert receipt["applied"] and receipt["method"] == "model" and receipt["audit"]["ok"], receipt
        server.http.post(f"{session}/messages", json={"messages": with_one_large()[11:]})


@pytest.mark.parametrize(
    "copied",
    [
        "[Omitted: large user message, ~26K tokens; log:11]",
        "The user pasted a text of about 26K tokens (log:11), which was left out.",
        "用户贴了一段约 26K tokens 的文字（log:11）。",
    ],
)
def test_a_model_may_repeat_what_the_service_noted(serve: Serve, copied: str) -> None:
    receipt = compact(serve(answering(f"{ROBIN}\n{copied}")), preset="openclaw", messages=with_one_large())
    assert receipt["method"] == "model" and copied in receipt["summary"]


@pytest.mark.parametrize(
    "invented", ["It weighs 4711 grams.", "It flew 27K miles.", "它重 4711 克。", "See log:11; it weighs 11 kg."]
)
def test_a_number_that_nobody_said_is_left_out(serve: Serve, invented: str) -> None:
    model = answering(f"{ROBIN} {invented}")
    receipt = compact(serve(model), preset="openclaw", messages=with_one_large())
    assert receipt["method"] == "model" and receipt["audit"]["ok"] and ROBIN in receipt["summary"]
    assert invented.rpartition(" ")[0] not in receipt["summary"]
    assert any("left out" in note for note in receipt["notes"])
    assert receipt["calls"] == len(model.requests)


def test_what_nobody_read_need_not_be_carried(serve: Serve) -> None:
    messages = with_one_large()
    messages[10]["content"] += "".join(f" the file is src/robin_{name}.py" for name in "abcdefghijklmnopqrstuvwxyz")
    receipt = compact(serve(answering(ROBIN)), preset="openclaw", messages=messages)
    assert receipt["method"] == "model"
