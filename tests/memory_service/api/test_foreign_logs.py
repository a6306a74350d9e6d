"""Session logs of other programs: those of OpenClaw are read and searched, others are named; none is written to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from indexer.testing import HashEmbedder
from memory_service.service import MemoryService
from tests.serving import RunningServer, W, serving, settings

OPENCLAW = (
    {"type": "session", "version": 3, "id": "a1", "timestamp": "2026-11-20T08:00:00.000Z", "cwd": "/home/lena"},
    {
        "type": "message", "id": "b1", "parentId": None, "timestamp": "2026-11-20T08:00:01.000Z",
        "message": {"role": "user", "content": [{"type": "text", "text": "The spare key hangs behind the blue door."}]},
    },
    {
        "type": "message", "id": "b2", "parentId": "b1", "timestamp": "2026-11-21T08:00:02.000Z",
        "message": {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "where is it"}, {"type": "text", "text": "备用钥匙挂在蓝色的门后面。"},
            {"type": "toolCall", "id": "c1", "name": "read", "arguments": {"path": "notes/quokka.md"}},
        ]},
    },
    {
        "type": "message", "id": "b3", "parentId": "b2", "timestamp": 1795248003000,
        "message": {"role": "toolResult", "toolCallId": "c1", "toolName": "read", "isError": False,
                    "content": [{"type": "text", "text": "quokkas sleep in the shade of the acacia"}]},
    },
    {"type": "compaction", "id": "b4", "summary": "They spoke of a key."},
)  # fmt: skip


def laid(home: Path, name: str, *lines: object) -> Path:
    folder = home / "default" / "sessions"
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / name
    file.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))
    return file


def got(server: RunningServer, path: str) -> dict[str, Any]:
    answer = server.http.get(f"{W}/{path}")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_a_log_of_openclaw_is_read_and_searched(tmp_path: Path) -> None:
    file = laid(tmp_path, "claw.jsonl", *OPENCLAW)
    before = file.read_bytes()
    with serving(MemoryService(settings(tmp_path), embedder=HashEmbedder())) as server:
        for query, line, day in (
            ("spare key", 2, "2026-11-20"), ("蓝色的门", 3, "2026-11-21"), ("acacia", 4, None)
        ):  # fmt: skip
            found = server.http.post(f"{W}/search", json={"query": query}).json()
            hit = found["results"][0]
            assert (hit["path"], hit["start_line"], hit["source"]) == ("sessions/claw.jsonl", line, "sessions"), query
            assert day is None or hit["date"] == day
            assert found["degraded"] == []
        log = got(server, "sessions/claw/messages?view=log")
        assert [message["role"] for message in log["messages"]] == ["user", "assistant", "toolResult"]
        assert log["seqs"] == [2, 3, 4] and "OpenClaw wrote it" in log["degraded"][0]
        assert got(server, "sessions/claw/messages?view=log&since_seq=2&limit=1")["seqs"] == [3]
        view = got(server, "sessions/claw/messages")
        assert view["messages"] == [] and "not gone on with" in view["degraded"][0]
        assert "claw" in got(server, "sessions")["degraded"][0]
        refused = server.http.post(f"{W}/sessions/claw/messages", json={"messages": [{"role": "user", "content": "x"}]})
        assert refused.status_code == 503 and "Choose another id" in refused.json()["error"]["message"]
        assert got(server, "status")["failed"] == []
    assert file.read_bytes() == before


def test_a_log_in_an_unknown_format_is_named_everywhere(tmp_path: Path) -> None:
    laid(tmp_path, "odd.jsonl", {"speaker": "Lena", "says": "The wombat digs."})
    with serving(MemoryService(settings(tmp_path), embedder=HashEmbedder())) as server:
        for _ in range(2):
            found = server.http.post(f"{W}/search", json={"query": "wombat"}).json()
            assert (
                found["results"] == [] and "sessions/odd.jsonl: it is a session log in a format" in found["degraded"][0]
            )
        made = server.http.post(f"{W}/context", json={"query": "wombat"}).json()
        assert "sessions/odd.jsonl" in made["degraded"][0]
        for path in ("sessions/odd/messages", "sessions/odd/messages?view=log"):
            assert "a format that is not known here" in got(server, path)["degraded"][0]
        found = got(server, "sessions/odd/search?q=wombat")
        assert found["results"] == [] and "a format that is not known here" in found["degraded"][0]
        assert "odd" in got(server, "sessions")["degraded"][0]
        context = server.http.post(f"{W}/sessions/odd/context", json={"query": "wombat"}).json()
        assert any("a format that is not known here" in line for line in context["degraded"]), context
        assert got(server, "status")["failed"][0]["path"] == "sessions/odd.jsonl"


def test_a_log_of_openclaw_that_grows_is_found(tmp_path: Path) -> None:
    file = laid(tmp_path, "claw.jsonl", *OPENCLAW)
    with MemoryService(settings(tmp_path), embedder=HashEmbedder()) as service:
        service.reindex("default")
        with file.open("a") as stream:
            stream.write(
                json.dumps({**OPENCLAW[1], "message": {"role": "user", "content": "A wombat moved in."}}) + "\n"
            )
            stream.write('{"type": "message", "message": {"role": "user", "content": "half a line')
        service.reindex("default")
        hit = service.search("default", "wombat").results[0]
        assert (hit.text, hit.start_line) == ("A wombat moved in.", 6)
