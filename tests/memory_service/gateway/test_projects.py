"""Whose words and which project: what a host tells in a call, and what of it is kept where."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from memory_service.hosts.projects import project_of
from tests.memory_service.gateway.talking import Gateway, gateway, user

RULES = "Rules of A: answer in French only. The password file is in vault/payroll."
REMINDER = f"<system-reminder>\n{RULES}\n</system-reminder>"


def environment(folder: Path) -> str:
    return f"You are an agent.\n<env>\nWorking directory: {folder}\nIs directory a git repo: Yes\n</env>"


def chat(gate: Gateway, messages: list[dict[str, Any]], **headers: str) -> Any:
    answer = gate.server.http.post("/v1/chat/completions", json={"model": "m", "messages": messages}, headers=headers)
    assert answer.status_code == 200, answer.text
    return answer


def repository(folder: Path) -> Path:
    (folder / ".git" / "objects").mkdir(parents=True)
    (folder / ".git" / "refs").mkdir()
    (folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    return folder


def test_words_of_a_host_are_not_recalled(tmp_path: Path) -> None:
    parts = [{"type": "text", "text": REMINDER}, {"type": "text", "text": "How do I deploy the garden site?"}]
    with gateway(tmp_path / "home", "With rsync, from the shed.", "With rsync.") as gate:
        chat(gate, [{"role": "user", "content": parts}])
        [session] = gate.sessions()
        assert RULES in json.dumps(gate.log(session)), "the log has what was sent"
        chat(gate, [user("How do I deploy the garden site to B, and what rules has the password file in French?")])
        assert "vault/payroll" not in json.dumps(gate.sent()) and "rsync" in json.dumps(gate.sent())
        found = gate.server.http.post(
            "/v1/workspaces/default/search", json={"query": "password file vault payroll French", "min_relevance": 0}
        ).json()["results"]
        assert not any("payroll" in each["text"] for each in found)
        ours = gate.server.http.post(
            f"/v1/workspaces/default/sessions/{session}/compact", json={"mode": "preview", "force": True}
        )
        assert "payroll" not in json.dumps(ours.json().get("summary", ""))


def test_each_project_has_its_own_memory_and_it_is_that_of_its_hooks(tmp_path: Path) -> None:
    garden, shop = repository(tmp_path / "garden"), repository(tmp_path / "shop")
    inner = garden / "src"
    inner.mkdir()
    with gateway(tmp_path / "home", *["The hedge is cut on Mondays."] * 5) as gate:
        one = chat(gate, [{"role": "system", "content": environment(garden)}, user("When is the hedge cut?")])
        two = chat(gate, [{"role": "system", "content": environment(shop)}, user("On which day is the hedge cut?")])
        cwd = f"<environment_context>\n  <cwd>{inner}</cwd>\n</environment_context>"
        three = chat(gate, [user(cwd), user("Say again when the hedge is cut.")])
        names = [each.headers["x-memory-workspace"] for each in (one, two, three)]
        home = tmp_path / "home"
        assert names[0] == names[2] == project_of(str(garden)).workspace_in(home) != names[1]
        assert names[0].startswith("garden-") and names[1].startswith("shop-")
        assert "on Mondays" in json.dumps(gate.sent(2)) and "on Mondays" not in json.dumps(gate.sent(1))
        named = chat(
            gate, [{"role": "system", "content": environment(shop)}, user("And?")], **{"X-Memory-Workspace": "own"}
        )
        told = chat(gate, [user("And here?")], **{"X-Memory-Folder": str(shop)})
        assert named.headers["x-memory-workspace"] == "own" and told.headers["x-memory-workspace"] == names[1]


def test_a_folder_that_is_not_here_and_one_that_somebody_only_speaks_of(tmp_path: Path) -> None:
    with gateway(tmp_path / "home", *["Yes."] * 3) as gate:
        gone = chat(gate, [{"role": "system", "content": environment(tmp_path / "gone")}, user("Is it?")])
        said = chat(gate, [user(f"Working directory: {tmp_path}")])
        assert [each.headers["x-memory-workspace"] for each in (gone, said)] == ["default", "default"]


def test_from_another_machine_projects_are_apart_too(tmp_path: Path) -> None:
    with gateway(tmp_path / "home", *["Yes."] * 3) as gate:
        names = [
            chat(
                gate,
                [{"role": "system", "content": environment(Path(folder))}, user("Is it?")],
                **{"X-Forwarded-For": "10.0.0.9"},
            ).headers["x-memory-workspace"]
            for folder in ("/srv/garden", "/srv/shop", "/srv/garden")
        ]
        assert names[0] == names[2] != names[1] and names[0].startswith("garden-")


def test_a_key_of_one_workspace_stays_there(tmp_path: Path) -> None:
    garden = repository(tmp_path / "garden")
    with gateway(tmp_path / "home", "Yes.", api_keys={"sk-team": "team"}) as gate:
        told = chat(
            gate, [{"role": "system", "content": environment(garden)}, user("Is it?")], Authorization="Bearer sk-team"
        )
        assert told.headers["x-memory-workspace"] == "team"


@pytest.mark.parametrize(
    "messages",
    [
        [
            {"role": "system", "content": "You are a title generator. You output ONLY a thread title."},
            user("Deploy it."),
        ],
        [user("Generate a title for this conversation:\nHow do I deploy?")],
        [user("quota")],
    ],
)
def test_a_call_that_a_host_makes_for_itself_is_not_kept(tmp_path: Path, messages: list[dict[str, Any]]) -> None:
    with gateway(tmp_path / "home", "Noted.", "On Tuesdays.") as gate:
        answer = chat(gate, messages)
        assert gate.sent()["messages"] == messages and "x-memory-session" not in answer.headers
        assert gate.server.http.get("/v1/workspaces").json()["workspaces"] == []
        chat(gate, [user("When do we deploy?")])
        assert len(gate.sessions()) == 1
