"""The route of hooks: what a host posts, what it reads, and whose memory it is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from indexer.testing import HashEmbedder
from memory_service.hosts.projects import project_of
from memory_service.service import MemoryService
from tests.serving import RunningServer, serving, settings
from tests.waiting import until

FRIDAY = "We decided: deploys go out on Tuesdays at 10:00, never on Fridays. 周五不部署。"


@pytest.fixture
def running_server(tmp_path: Path) -> Iterator[RunningServer]:
    """A server without keys, whose hosts have their transcripts in the folder of the test."""
    with serving(MemoryService(settings(tmp_path / "home", host_folders=[str(tmp_path)]))) as server:
        yield server


@pytest.fixture
def keyed(tmp_path: Path) -> Iterator[RunningServer]:
    given = settings(tmp_path / "home", api_keys="all:*,one:shop", host_folders=[str(tmp_path)])
    with serving(MemoryService(given, embedder=HashEmbedder())) as server:
        yield server


def call(project: Path, event: str, **fields: object) -> dict[str, object]:
    base = {"session_id": "s1", "transcript_path": str(project / "t.jsonl"), "cwd": str(project)}
    return {**base, "hook_event_name": event, **fields}


def said(project: Path, text: str) -> None:
    with (project / "t.jsonl").open("a", encoding="utf-8") as opened:
        opened.write(json.dumps({"type": "user", "message": {"role": "user", "content": text}}) + "\n")


def posted(server: RunningServer, body: object, key: str = "", **headers: str) -> Any:
    given = {**headers, **({"Authorization": f"Bearer {key}"} if key else {})}
    given["Content-Type"] = "application/json"
    answer = server.http.post("/v1/hooks/claude-code", content=json.dumps(body), headers=given)
    assert answer.status_code == 200, answer.text
    return answer.json()


def flushed(server: RunningServer, workspace: str) -> None:
    """Wait for the flush, which comes after the answer."""
    until(lambda: bool(server.http.get(f"/v1/workspaces/{workspace}/memories").json().get("files")))


def test_what_was_said_in_one_session_is_given_to_the_next(running_server: RunningServer, tmp_path: Path) -> None:
    said(tmp_path, FRIDAY)
    assert posted(running_server, call(tmp_path, "Stop")) == {}
    workspace = project_of(str(tmp_path)).workspace_in(running_server.home)
    flushed(running_server, workspace)
    given = posted(running_server, call(tmp_path, "SessionStart", session_id="s2", source="startup"))
    context = given["hookSpecificOutput"]
    assert context["hookEventName"] == "SessionStart" and "周五不部署" in context["additionalContext"]
    assert running_server.http.get(f"/v1/workspaces/{workspace}/sessions/claude-code-s1").json()["messages"] == 1


def test_what_was_given_is_not_given_again(running_server: RunningServer, tmp_path: Path) -> None:
    workspace = project_of(str(tmp_path)).workspace_in(running_server.home)
    running_server.http.post(f"/v1/workspaces/{workspace}/memories", json={"text": FRIDAY}).raise_for_status()
    prompt = call(tmp_path, "UserPromptSubmit", prompt="When do deploys go out? 什么时候部署？")
    assert "周五不部署" in str(posted(running_server, prompt))
    assert posted(running_server, prompt) == {}
    assert "周五不部署" in str(posted(running_server, {**prompt, "session_id": "s2"}))


def test_a_header_names_the_memory(running_server: RunningServer, tmp_path: Path) -> None:
    said(tmp_path, FRIDAY)
    posted(running_server, call(tmp_path, "Stop"), **{"X-Memory-Workspace": "mine"})
    assert running_server.http.get("/v1/workspaces/mine/sessions/claude-code-s1").json()["messages"] == 1


def test_a_key_of_one_workspace_reads_no_file_and_no_other_memory(keyed: RunningServer, tmp_path: Path) -> None:
    said(tmp_path, FRIDAY)
    posted(keyed, call(tmp_path, "Stop", last_assistant_message="Done."), key="one")
    url = "/v1/workspaces/shop/sessions/claude-code-s1/messages?view=log"
    found = keyed.http.get(url, headers={"X-API-Key": "one"}).json()["messages"]
    assert [message["content"] for message in found] == ["Done."]
    stolen = keyed.http.post(
        "/v1/hooks/claude-code", json=call(tmp_path, "Stop"), headers={"X-API-Key": "one", "X-Memory-Workspace": "x"}
    )
    assert stolen.status_code == 403
    assert keyed.http.post("/v1/hooks/claude-code", json={}).status_code == 401


@pytest.mark.parametrize("body", [b"", b"garbage", b"{", b"[]", b"7", b"\xff", b"[" * 100_000])
def test_garbage_is_refused(running_server: RunningServer, body: bytes) -> None:
    answer = running_server.http.post("/v1/hooks/codex", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 422 and answer.json()["error"]["code"] == "invalid_request"


def test_an_unknown_host_is_named(running_server: RunningServer) -> None:
    answer = running_server.http.post("/v1/hooks/emacs", json={})
    assert answer.status_code == 404 and "claude-code, codex, cursor" in answer.json()["error"]["message"]


def test_a_fault_is_a_line_of_the_log_and_no_error(running_server: RunningServer) -> None:
    assert posted(running_server, {"hook_event_name": "Stop", "session_id": "s", "cwd": "/no/such"}) == {}
    [line] = (running_server.home / "hooks.log").read_text().splitlines()
    assert "claude-code Stop: There is no folder" in line


# Paths that a call names


@pytest.fixture
def strict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunningServer]:
    """A server that reads what hosts keep themselves, and nothing that a test adds."""
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    for name in ("CODEX_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "OPENCLAW_STATE_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    (tmp_path / "project").mkdir()
    with serving(MemoryService(settings(tmp_path / "home"), embedder=HashEmbedder())) as server:
        yield server


def kept_of(server: RunningServer, session: str) -> str:
    path = f"/v1/workspaces/mine/sessions/claude-code-{session}/messages?view=log"
    return server.http.get(path, headers={"X-API-Key": "all"}).text


def stopped(server: RunningServer, transcript: Path | str, session: str, key: str = "", **headers: str) -> None:
    body = {"hook_event_name": "Stop", "session_id": session, "cwd": "/", "transcript_path": str(transcript)}
    body["last_assistant_message"] = "Done."
    assert posted(server, body, key, **{"X-Memory-Workspace": "mine"}, **headers) == {}


def log_of(server: RunningServer) -> list[str]:
    log = server.home / "hooks.log"
    return log.read_text("utf-8").splitlines() if log.exists() else []


@pytest.mark.parametrize(
    "place", ["claude/projects/x", "user/.claude", "user/.codex/sessions", "user/.config/claude", "home"]
)
def test_a_transcript_below_a_hosts_folder_or_the_home_is_read(
    strict: RunningServer, tmp_path: Path, place: str
) -> None:
    (tmp_path / place).mkdir(parents=True, exist_ok=True)
    said(tmp_path / place, FRIDAY)
    stopped(strict, tmp_path / place / "t.jsonl", "s1")
    assert "周五不部署" in kept_of(strict, "s1") and log_of(strict) == []


@pytest.mark.parametrize(
    "place", ["project", "user", "claude-of-another", "claude/../project", "claude/link", "user/x"]
)
def test_another_file_is_not_read_and_the_log_says_so_once(strict: RunningServer, tmp_path: Path, place: str) -> None:
    (tmp_path / "claude").mkdir()
    (tmp_path / "claude" / "link").symlink_to(tmp_path / "project")
    (tmp_path / place).mkdir(parents=True, exist_ok=True)
    said(tmp_path / place, FRIDAY)
    for _ in range(3):
        stopped(strict, tmp_path / place / "t.jsonl", "s1")
    kept = kept_of(strict, "s1")
    assert "周五不部署" not in kept and "Done." in kept, "what the event itself tells is kept"
    [line] = log_of(strict)
    assert "is not read for a call over HTTP" in line and "host_folders" in line and "memory-service hook" in line


@pytest.mark.parametrize(
    "path", ["/" + "x" * 100_000, "\ud800", "a\0b", "t.jsonl", "~/t.jsonl", "", "/proc/self/environ"]
)
def test_a_path_that_is_none_is_refused(strict: RunningServer, path: str) -> None:
    stopped(strict, path, "s1")
    assert all("defect" not in line for line in log_of(strict)) and "Done." in kept_of(strict, "s1")


PROXIED = ["Forwarded", "X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host", "Via", "X-Real-IP", "x-forwarded"]


@pytest.mark.parametrize("header", PROXIED)
def test_no_file_is_read_for_a_call_through_a_proxy(keyed: RunningServer, tmp_path: Path, header: str) -> None:
    said(tmp_path, FRIDAY)
    stopped(keyed, tmp_path / "t.jsonl", "s1", "all", **{header: "203.0.113.9"})
    assert "周五不部署" not in kept_of(keyed, "s1") and "Done." in kept_of(keyed, "s1")
    [line] = log_of(keyed)
    assert "came through a proxy" in line
    assert posted(keyed, call(tmp_path, "Stop", session_id="s2"), "all", **{header: "x"}) == {}
    assert not list(keyed.home.glob("test-*")), "nor is the folder of a project looked for"
    stopped(keyed, tmp_path / "t.jsonl", "s1", "all")
    assert kept_of(keyed, "s1").count("周五不部署") == 1


@pytest.mark.parametrize("opened", [False, True])
def test_rules_of_a_folder_are_read_where_transcripts_are(tmp_path: Path, opened: bool) -> None:
    (tmp_path / "AGENTS.md").write_text("Never deploy on Fridays.")
    folders = [str(tmp_path)] if opened else []
    given = settings(tmp_path / "home", pin_rules=True, host_folders=folders)
    with serving(MemoryService(given, embedder=HashEmbedder())) as server:
        told = str(posted(server, call(tmp_path, "SessionStart", source="startup")))
        assert ("Never deploy on Fridays" in told) == opened
        assert len(log_of(server)) == (not opened) and all("is not read" in line for line in log_of(server))


def test_progress_of_an_earlier_version_goes_on(running_server: RunningServer, tmp_path: Path) -> None:
    said(tmp_path, FRIDAY)
    posted(running_server, call(tmp_path, "Stop"))
    workspace = project_of(str(tmp_path)).workspace_in(running_server.home)
    home, file = running_server.home, "claude-code-s1.json"
    progress = json.loads((home / workspace / ".hosts" / file).read_text())
    del progress["is_followed"], progress["refused"]
    (home / workspace / ".hosts" / file).unlink()
    (home / ".hosts").mkdir()
    (home / ".hosts" / file).write_text(json.dumps({**progress, "workspace": workspace}))
    (home / ".hosts" / "claude-code-s1.lock").touch()
    (home / ".hosts" / "broken.json").write_text("{")
    said(tmp_path, "And the second line.")
    posted(running_server, call(tmp_path, "Stop", cwd="/"))
    path = f"/v1/workspaces/{workspace}/sessions/claude-code-s1"
    assert running_server.http.get(path).json()["messages"] == 2
    assert not (home / ".hosts").exists()
