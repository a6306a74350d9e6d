"""Talks to append in tests of sessions, and short ways to append them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from indexer.testing import HashEmbedder
from memory_service.runtime.models import Models
from memory_service.service import MemoryService
from memory_service.testing import ScriptedModel
from tests.serving import RunningServer, W, serving, settings

S = f"{W}/sessions/support-42"
Json = dict[str, Any]


def talk(turns: int, *, words: int = 40) -> list[Json]:
    """So many turns, every third with a call of a tool, in English and Chinese."""
    said: list[Json] = []
    for turn in range(turns):
        said.append(
            {
                "role": "user",
                "content": f"Step {turn}: 请检查服务 service-{turn} 的部署。 Is it green? " + "more " * words,
            }
        )
        if turn % 3 == 0:
            call = {"id": f"call_{turn}", "type": "function", "function": {"name": "check", "arguments": '{"n": 1}'}}
            said.append({"role": "assistant", "content": None, "tool_calls": [call]})
            said.append(
                {"role": "tool", "tool_call_id": f"call_{turn}", "content": f"service-{turn}: ok " + "line " * words}
            )
        said.append(
            {
                "role": "assistant",
                "content": f"We decided to deploy service-{turn} on Tuesday. 服务正常。 " + "so " * words,
            }
        )
    return said


def anthropic_talk(turns: int, *, words: int = 40) -> list[Json]:
    """So many turns in Anthropic's shape, each with a tool."""
    said: list[Json] = []
    for turn in range(turns):
        use = {"type": "tool_use", "id": f"toolu_{turn}", "name": "look", "input": {"turn": turn}}
        result = {"type": "tool_result", "tool_use_id": f"toolu_{turn}", "content": f"看到了 {turn}"}
        said += [
            {"role": "user", "content": [{"type": "text", "text": f"Look at {turn}. " + "more " * words}]},
            {"role": "assistant", "content": [{"type": "text", "text": "One moment."}, use]},
            {"role": "user", "content": [result]},
            {"role": "assistant", "content": [{"type": "text", "text": f"It says {turn}. " + "so " * words}]},
        ]
    return said


def ok(answer: httpx.Response, status: int = 200) -> Json:
    """The answer, if it is the one that is expected."""
    assert answer.status_code == status, answer.text
    return dict(answer.json())


def refused(answer: httpx.Response, status: int, code: str) -> str:
    """The message of a failure, if it is the one that is expected."""
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code), answer.text
    return str(answer.json()["error"]["message"])


def say(server: RunningServer, messages: list[Json], place: str = S, **more: Any) -> Json:
    """Append messages."""
    return ok(server.http.post(f"{place}/messages", json={"messages": messages, **more}))


def begin(server: RunningServer, session_id: str = "support-42", **more: Any) -> Json:
    """Begin a session."""
    return ok(server.http.post(f"{W}/sessions", json={"session_id": session_id, **more}), 201)


@contextmanager
def talking(home: Path, model: ScriptedModel | None = None, **values: object) -> Iterator[RunningServer]:
    """A server whose compactions are written by a scripted model, and whose flushes by rules alone."""
    service = MemoryService(
        settings(home, **{"embedding_model": "none", **values}),
        embedder=HashEmbedder(),
        models=Models(summaries=model, memories=None),
    )
    with serving(service) as server:
        yield server


def without(answer: Mapping[str, Any], *names: str) -> Json:
    """An answer without some of its fields."""
    return {name: value for name, value in answer.items() if name not in names}
