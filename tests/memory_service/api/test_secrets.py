"""Every kind of secret, said in every role over a real socket: nothing that leaves the log has one."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from indexer.testing import HashEmbedder
from memory_service.compaction.prompts import ANCHORED_HEADINGS as HEADINGS
from memory_service.runtime.models import Models
from memory_service.service import MemoryService
from memory_service.testing import ScriptedModel
from tests.memory_service.api.talking import ok, talk
from tests.memory_service.service.test_secrets_leave_nowhere import ROLES
from tests.memory_service.text.secret_samples import SECRETS
from tests.serving import RunningServer, W, serving, settings

S = f"{W}/sessions/s"


ALL = "\n".join(f"- User: {text}" for _, text, _ in SECRETS) + "\n- The port is 8123."
# The worst of models: it answers with all that a summary or a memory must not have.
SUMMARY = "\n".join(f"## {heading}\n{ALL if at == 0 else '- The port is 8123.'}" for at, heading in enumerate(HEADINGS))


@contextmanager
def told(home: Path) -> Iterator[tuple[RunningServer, Models, list[Mapping[str, Any]]]]:
    """A server, its model, and messages with every kind of secret in every role."""
    models = Models(summaries=ScriptedModel(*[SUMMARY] * 50), memories=ScriptedModel(*[ALL] * 50))
    service = MemoryService(settings(home), embedder=HashEmbedder(), models=models)
    said: list[Mapping[str, Any]] = [
        dict(message) for made in ROLES.values() for _, text, _ in SECRETS for message in made(text)
    ]
    for number, message in enumerate(said):
        # Each call and its result have an id of their own.
        raw = json.dumps(message, ensure_ascii=False)
        said[number] = json.loads(raw.replace('"c1"', f'"c{number - (message["role"] == "tool")}"'))
    with serving(service) as server:
        yield server, models, said


def asked_of(models: Models) -> str:
    """All that the models were sent."""
    assert isinstance(models.summaries, ScriptedModel) and isinstance(models.memories, ScriptedModel)
    assert models.summaries.requests
    return f"{models.summaries.requests}{models.memories.requests}"


def leaked(*places: object) -> list[str]:
    seen = "\n".join(place if isinstance(place, str) else json.dumps(place, ensure_ascii=False) for place in places)
    return sorted({name for name, _, parts in SECRETS for part in parts if part in seen})


def test_no_secret_leaves_a_session(tmp_path: Path) -> None:
    with told(tmp_path) as (server, models, said):
        ok(server.http.post(f"{W}/sessions", json={"session_id": "s", "context_window": 8_000}), 201)
        ok(server.http.post(f"{S}/messages", json={"messages": [*said, *talk(24, words=120)]}))
        flushed = ok(server.http.post(f"{S}/flush", json={}))
        agent = ok(server.http.post(f"{S}/flush", json={"reply": ALL}))
        made = ok(server.http.post(f"{S}/compact", json={"force": True}))
        view = server.http.get(f"{S}/messages").text
        asked = {"recall": "always", "query": "What is the password? 密码是什么?", "memory_budget_tokens": 4_000}
        ok(server.http.post(f"{W}/sessions/other/messages", json={"messages": talk(1)}))
        ok(server.http.post(f"{W}/reindex", json={}), 202)
        other = ok(server.http.post(f"{W}/sessions/other/context", json=asked))
        block = ok(server.http.post(f"{W}/context", json={"query": asked["query"], "budget_tokens": 4_000}))
        context = ok(server.http.post(f"{S}/context", json={"recall": "never"}))
        assert "[redacted]" in block["block"] and "[redacted]" in json.dumps(other["messages"])
        files = [file.read_text() for file in (tmp_path / "default" / "memory").rglob("*.md")]
        assert "[Checkpoint" in view and made["applied"]
        # Of an answer its texts alone: a short number may be one of its scores.
        assert leaked(*files) == leaked(flushed["written"], agent["written"]) == []
        assert leaked(made["summary"], made["ledger"], view, context["messages"]) == []
        assert leaked(other["messages"], block["block"]) == []
        assert leaked(asked_of(models)) == []
        assert leaked((tmp_path / "default" / "sessions" / "s.jsonl").read_text()), "the log has what was said"


def test_no_secret_is_in_what_a_stateless_compaction_writes(tmp_path: Path) -> None:
    with told(tmp_path) as (server, models, said):
        asked = {"messages": [*said, *talk(24, words=120)], "context_window": 8_000, "force": True}
        made = ok(server.http.post("/v1/compact", json=asked))
        assert "[Checkpoint" in json.dumps(made["messages"])
        receipt = made["receipt"]
        assert leaked(made["messages"], receipt["summary"], receipt["ledger"], asked_of(models)) == []
