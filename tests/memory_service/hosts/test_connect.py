"""`connect` and `disconnect` on a user's files: what is written, that it goes without a trace, what is refused."""

from __future__ import annotations

import json
import os
import random
import shlex
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from memory_service.errors import InvalidName, InvalidRequest
from memory_service.hosts import HOSTS, HostName
from memory_service.hosts.connect import HostConnection, HostTarget, Scope, connect, connected_hosts, disconnect
from memory_service.hosts.dialects import read_event
from memory_service.hosts.progress import LOG_NAME, last_faults, note_faults
from tests.memory_service.hosts.test_projects import git

PLACES: list[tuple[HostName, Scope]] = [(host, "user") for host in HOSTS] + [
    (host, "project") for host in HOSTS if host != "openclaw"
]
CHINESE = "项目 一"
# Settings as people have them: with other hooks and servers, comments where the host allows them, one with nothing.
THEIRS = {
    "home/.claude/settings.json": '{\n  "model": "opus",\n  "hooks": {\n    "Stop": [\n      {"hooks": [{"type": '
    '"command", "command": "say done"}]}\n    ]\n  }\n}\n',
    "home/.claude.json": '{"numStartups": 7, "mcpServers": {}}',
    "home/.codex/config.toml": '# mine\nmodel = "gpt-5" # the good one\n\n[mcp_servers.docs]\ncommand = "docs"',
    "home/.cursor/mcp.json": '{\n\t"mcpServers": {\n\t\t"docs": { "command": "docs" }, // theirs\n\t}\n}\n',
    "home/.config/opencode/opencode.jsonc": '{\r\n  // 主题\r\n  "theme": "dark",\r\n}\r\n',
    "home/.openclaw/openclaw.json": "// 我的\n{\n  plugins: {\n    slots: { memory: 'memory-core' },\n"
    "    allow: ['voice'],\n  },\n}\n",
    f"{CHINESE}/.mcp.json": "{\n}\n",
    f"{CHINESE}/.cursor/hooks.json": '{"version": 1, "hooks": {"stop": []}}\n',
    f"{CHINESE}/.codex/config.toml": "",
}


@pytest.fixture
def top(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with the home of a user and a repository in it."""
    (tmp_path / "home").mkdir()
    (tmp_path / CHINESE / ".git").mkdir(parents=True)
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name in ("OPENCLAW_STATE_DIR", "OPENCLAW_CONFIG_PATH", "MEMORY_SERVICE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("USERPROFILE", str(tmp_path / "home"))
    yield tmp_path


@pytest.fixture
def lived_in(top: Path) -> Path:
    for name, text in THEIRS.items():
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_bytes(text.encode())
    return top


def target(top: Path, scope: Scope = "user") -> HostTarget:
    return HostTarget(scope=scope, folder=top / CHINESE)


def tree(top: Path) -> dict[str, bytes | None]:
    """All files with their content, and all folders."""
    return {path.relative_to(top).as_posix(): path.read_bytes() if path.is_file() else None for path in top.rglob("*")}


def settings(done: HostConnection, name: str) -> Path:
    return next(Path(file.path) for file in done.files if file.path.endswith(name))


@pytest.mark.parametrize(("host", "scope"), PLACES)
def test_a_connection_goes_without_a_trace(host: HostName, scope: Scope, lived_in: Path) -> None:
    before = tree(lived_in)
    done = connect(host, target(lived_in, scope))
    assert {file.action for file in done.files} <= {"created", "changed"} and done.files
    assert tree(lived_in) != before
    gone = disconnect(host, target(lived_in, scope))
    assert {file.action for file in gone.files} <= {"deleted", "changed"}
    assert tree(lived_in) == before


@pytest.mark.parametrize(("host", "scope"), PLACES)
def test_a_second_time_changes_nothing(host: HostName, scope: Scope, lived_in: Path) -> None:
    connect(host, target(lived_in, scope))
    before = tree(lived_in)
    assert {file.action for file in connect(host, target(lived_in, scope)).files} == {"unchanged"}
    assert tree(lived_in) == before
    disconnect(host, target(lived_in, scope))
    after = tree(lived_in)
    assert not [file for file in disconnect(host, target(lived_in, scope)).files if file.action != "unchanged"]
    assert tree(lived_in) == after


@pytest.mark.parametrize(("host", "scope"), PLACES)
def test_a_dry_run_shows_and_writes_nothing(host: HostName, scope: Scope, lived_in: Path) -> None:
    before = tree(lived_in)
    shown = connect(host, target(lived_in, scope), dry_run=True)
    assert all(file.diff.count("\n+") for file in shown.files) and tree(lived_in) == before
    connect(host, target(lived_in, scope))
    before = tree(lived_in)
    shown = disconnect(host, target(lived_in, scope), dry_run=True)
    assert all(file.diff.count("\n-") for file in shown.files) and tree(lived_in) == before


def edited(top: Path, number: int, chosen: random.Random) -> None:
    """A person adds a line of theirs to a settings file."""
    path = top / chosen.choice(sorted(name for name, text in THEIRS.items() if text))
    text = path.read_bytes().decode()
    newline = "\r\n" if "\r\n" in text else "\n"
    if path.suffix == ".toml":
        path.write_bytes(f"{text}{'' if text.endswith(newline) else newline}[more{number}]{newline}".encode())
        return
    opening = text.index("{") + 1
    comma = "" if text[opening:].strip() == "}" else ","
    path.write_bytes(f'{text[:opening]}{newline}  "more{number}": {number}{comma}{text[opening:]}'.encode())


@pytest.mark.parametrize("seed", range(len(PLACES)))
def test_ten_connections_in_any_order_leave_every_file_as_it_was(seed: int, lived_in: Path) -> None:
    chosen = random.Random(seed)
    steps = [(*place, way) for place in PLACES for way in (connect, disconnect)] + [(*PLACES[seed], connect)] * 2
    chosen.shuffle(steps)
    for host, scope, way in steps:
        way(host, target(lived_in, scope))
    for host, scope in chosen.sample(PLACES, len(PLACES)):
        disconnect(host, target(lived_in, scope))
    assert tree(lived_in) == {
        **dict.fromkeys(tree(lived_in)),
        **{name: text.encode() for name, text in THEIRS.items()},
    }
    assert not list(lived_in.glob("home/.local")) and not list(lived_in.glob("home/.agents"))


def test_connections_at_the_same_time_keep_each_other_s_notes(lived_in: Path) -> None:
    before = tree(lived_in)
    with ThreadPoolExecutor(len(PLACES)) as pool:
        for _ in range(4):
            list(pool.map(lambda place: connect(place[0], target(lived_in, place[1])), PLACES))
            notes = json.loads((lived_in / "home/.local/state/memory-service/connections.json").read_text("utf-8"))
            own = {file.path for place in PLACES for file in connect(place[0], target(lived_in, place[1])).files}
            assert set(notes["files"]) == own
            list(pool.map(lambda place: disconnect(place[0], target(lived_in, place[1])), PLACES))
            assert tree(lived_in) == before


@pytest.mark.parametrize("seed", range(len(PLACES)))
def test_what_a_person_wrote_meanwhile_stays(
    seed: int, lived_in: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The same edits on files without a connection give the same files."""
    chosen = random.Random(seed)
    alone = tmp_path_factory.mktemp("alone")
    for name, text in THEIRS.items():
        (alone / name).parent.mkdir(parents=True, exist_ok=True)
        (alone / name).write_bytes(text.encode())
    order = chosen.sample(PLACES, len(PLACES))
    for number, (host, scope) in enumerate(order):
        connect(host, target(lived_in, scope))
        state = chosen.getstate()
        edited(lived_in, number, chosen)
        chosen.setstate(state)
        edited(alone, number, chosen)
    for host, scope in chosen.sample(PLACES, len(PLACES)):
        disconnect(host, target(lived_in, scope))
    for name in THEIRS:
        assert (lived_in / name).read_bytes() == (alone / name).read_bytes()


def test_a_hook_that_a_person_put_into_our_group_stays(top: Path) -> None:
    path = settings(connect("claude-code", target(top)), "settings.json")
    found = json.loads(path.read_text("utf-8"))
    theirs = {"type": "command", "command": "say hello"}
    found["hooks"]["Stop"][0]["hooks"].append(theirs)
    path.write_text(json.dumps(found, indent=2), "utf-8")
    connect("claude-code", replace(target(top), home=top / "other"))
    hooks = json.loads(path.read_text("utf-8"))["hooks"]["Stop"][0]["hooks"]
    assert "other" in hooks[0]["command"] and hooks[1] == theirs
    disconnect("claude-code", target(top))
    assert json.loads(path.read_text("utf-8")) == {"hooks": {"Stop": [{"hooks": [theirs]}]}}


def test_settings_that_the_host_wrote_anew_are_still_freed_of_ours(lived_in: Path) -> None:
    """Hosts write their settings too, in a layout of their own."""
    path = settings(connect("claude-code", target(lived_in)), ".claude.json")
    found = json.loads(path.read_text("utf-8"))
    path.write_text(json.dumps({**found, "numStartups": 8, "projects": {}}, indent=2), "utf-8")
    disconnect("claude-code", target(lived_in))
    assert json.loads(path.read_text("utf-8")) == {"numStartups": 8, "mcpServers": {}, "projects": {}}


@pytest.mark.parametrize(("host", "scope"), [(host, scope) for host, scope in PLACES if scope == "project"])
def test_a_copy_of_a_project_is_disconnected_without_notes(host: HostName, scope: Scope, top: Path) -> None:
    before = tree(top)
    connect(host, target(top, scope))
    (top / "home/.local/state/memory-service/connections.json").unlink()
    disconnect(host, target(top, scope))
    left = {name: content for name, content in tree(top).items() if content is not None}
    assert left == {name: content for name, content in before.items() if content is not None}


def test_a_slot_that_was_taken_is_given_back(lived_in: Path) -> None:
    path = settings(connect("openclaw", target(lived_in)), "openclaw.json")
    assert 'memory: "memory-service"' in path.read_text("utf-8")
    connect("openclaw", replace(target(lived_in), url="http://127.0.0.1:9000"))
    assert "9000" in path.read_text("utf-8")
    disconnect("openclaw", target(lived_in))
    assert path.read_text("utf-8") == THEIRS["home/.openclaw/openclaw.json"]


def commands(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from ([value["command"]] if isinstance(value.get("command"), str) else [])
        yield from (each for inner in value.values() for each in commands(inner))
    elif isinstance(value, list):
        yield from (each for inner in value for each in commands(inner))


@pytest.mark.parametrize("host", ["claude-code", "codex", "cursor"])
def test_a_hook_is_found_by_the_host(host: HostName, top: Path) -> None:
    home = top / "my 记忆"
    done = connect(host, replace(target(top), home=home, workspace="team"))
    path = settings(done, "hooks.json" if host != "claude-code" else "settings.json")
    found = [shlex.split(command) for command in commands(json.loads(path.read_text("utf-8")))]
    assert {tuple(words[1:]) for words in found} == {("hook", host, "--home", str(home), "--workspace", "team")}
    assert os.access(found[0][0], os.X_OK) and Path(found[0][0]).is_absolute()
    assert done.home == str(home)


@pytest.mark.parametrize("host", ["claude-code", "codex", "cursor"])
def test_each_hook_is_one_that_is_answered(host: HostName, top: Path) -> None:
    path = settings(connect(host, target(top)), "hooks.json" if host != "claude-code" else "settings.json")
    events = json.loads(path.read_text("utf-8"))["hooks"]
    kinds = {read_event(host, {"hook_event_name": event}).kind for event in events}
    assert kinds >= {"session_start", "prompt", "stop", "pre_compact"} and "other" not in kinds


def test_a_project_s_settings_have_no_path_of_this_machine(
    top: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "bin" / "memory-service"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    for host, scope in PLACES:
        if scope == "project":
            for file in connect(host, target(top, scope)).files:
                assert str(tmp_path) not in Path(file.path).read_text("utf-8"), file.path


def test_codex_reads_its_server(lived_in: Path) -> None:
    path = settings(connect("codex", target(lived_in)), "config.toml")
    found = tomllib.loads(path.read_text("utf-8"))
    assert found["model"] == "gpt-5" and found["mcp_servers"]["docs"] == {"command": "docs"}
    assert found["mcp_servers"]["memory-service"]["args"][-2:] == ["--project", "."]


@pytest.mark.parametrize(
    ("host", "name", "text", "word"),
    [
        ("claude-code", ".claude/settings.json", "{ not json", "in line 1"),
        ("claude-code", ".claude/settings.json", '{"hooks": []}', "object is needed at hooks"),
        ("claude-code", ".claude/settings.json", '{"hooks": {"Stop": {}}}', "list is needed at hooks.Stop"),
        ("claude-code", ".claude.json", '\n\n{"mcpServers": {,}}', "in line 3"),
        ("codex", ".codex/config.toml", "model = \n", "cannot be read"),
        ("codex", ".codex/config.toml", "mcp_servers = {}\n", "in one line"),
        ("cursor", ".cursor/mcp.json", "[]", "no object"),
        ("opencode", ".config/opencode/opencode.json", '{"mcp": "\udcff"}', "not UTF-8"),
        ("openclaw", ".openclaw/openclaw.json", "{plugins: }", "in line 1"),
        ("openclaw", ".openclaw/extensions/memory-service/index.ts", "export {}\n", "is not ours"),
    ],
)
def test_a_file_that_is_not_fit_is_left_alone(host: HostName, name: str, text: str, word: str, top: Path) -> None:
    path = top / "home" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    before = tree(top)
    with pytest.raises(InvalidRequest) as refused:
        connect(host, target(top))
    assert (
        str(path) in str(refused.value) and word in str(refused.value) and "Nothing was written" in str(refused.value)
    )
    assert tree(top) == before


def test_a_link_is_not_followed(lived_in: Path) -> None:
    path, real = lived_in / "home/.claude.json", lived_in / "dotfiles.json"
    path.rename(real)
    path.symlink_to(real)
    before = tree(lived_in)
    with pytest.raises(InvalidRequest, match="is a link to"):
        connect("claude-code", target(lived_in))
    assert tree(lived_in) == before and path.is_symlink()


def test_a_file_that_is_read_only_is_left_alone(lived_in: Path) -> None:
    path = lived_in / "home/.codex/config.toml"
    path.chmod(0o444)
    before = tree(lived_in)
    with pytest.raises(InvalidRequest, match="read-only"):
        connect("codex", target(lived_in))
    assert tree(lived_in) == before


def test_the_rights_of_a_file_stay(lived_in: Path) -> None:
    path = lived_in / "home/.openclaw/openclaw.json"
    path.chmod(0o600)
    connect("openclaw", target(lived_in))
    assert path.stat().st_mode & 0o777 == 0o600
    disconnect("openclaw", target(lived_in))
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_skill_that_a_person_changed_stays(top: Path) -> None:
    path = settings(connect("cursor", target(top)), "SKILL.md")
    path.write_text("mine now\n", "utf-8")
    with pytest.raises(InvalidRequest, match="Somebody changed it"):
        connect("cursor", target(top))
    gone = disconnect("cursor", target(top))
    assert path.read_text("utf-8") == "mine now\n"
    assert [file.note for file in gone.files if file.path.endswith("SKILL.md")] == ["left there: somebody changed it"]


@pytest.mark.parametrize("host", [host for host in HOSTS if host != "openclaw"])
def test_a_host_that_has_it_twice_is_told(host: HostName, top: Path) -> None:
    assert "both run here" not in str(connect(host, target(top)).notes)
    assert f"disconnect {host}" in connect(host, target(top, "project")).notes[-1]
    assert connect(host, target(top)).notes[-1].endswith(f"disconnect {host} --project")
    disconnect(host, target(top, "project"))
    assert "both run here" not in str(connect(host, target(top)).notes)
    assert "both run here" not in str(connect(host, HostTarget(folder=top / "home")).notes)


def test_a_submodule_and_a_worktree_have_settings_of_their_own(top: Path) -> None:
    outer, library = top / "外 outer", top / "library"
    for folder in (outer, library):
        folder.mkdir()
        git(folder, "init", "-q")
        (folder / "a.txt").write_text("a")
        git(folder, "add", ".")
        git(folder, "commit", "-qm", "one")
    git(outer, "submodule", "add", "-q", str(library), "vendor/库 lib")
    git(outer, "worktree", "add", "-q", "-b", "feature", str(top / "工作 tree"))
    for root in (outer, outer / "vendor" / "库 lib", top / "工作 tree"):
        (root / "src" / "深").mkdir(parents=True)
        done = connect("claude-code", HostTarget(scope="project", folder=root / "src" / "深"))
        assert {Path(file.path).parent for file in done.files} >= {root / ".claude", root}
        disconnect("claude-code", HostTarget(scope="project", folder=root))
        assert not (root / ".claude").exists() and not (root / ".mcp.json").exists()


def test_openclaw_has_no_settings_of_a_project(top: Path) -> None:
    with pytest.raises(InvalidRequest, match="Leave out --project"):
        connect("openclaw", target(top, "project"))


def test_notes_that_cannot_be_read_are_told(lived_in: Path) -> None:
    connect("cursor", target(lived_in))
    notes = lived_in / "home/.local/state/memory-service/connections.json"
    notes.write_text("{", "utf-8")
    before = tree(lived_in)
    with pytest.raises(InvalidRequest, match=r"notes of connections .* Move the file away"):
        disconnect("cursor", target(lived_in))
    assert tree(lived_in) == before


def test_the_connected_hosts_are_listed(lived_in: Path) -> None:
    assert list(connected_hosts()) == []
    for host in HOSTS:
        connect(host, target(lived_in))
    for host in ("claude-code", "cursor"):
        connect(host, target(lived_in, "project"))
    own = list(connected_hosts())
    assert [(each.host, each.project) for each in own] == [
        ("claude-code", None),
        ("claude-code", str(lived_in / CHINESE)),
        ("codex", None),
        ("cursor", None),
        ("cursor", str(lived_in / CHINESE)),
        ("opencode", None),
        ("openclaw", None),
    ]
    files = [file for each in own for file in each.files]
    assert len(files) == len(set(files)) and all(Path(file).exists() for file in files)
    disconnect("codex", target(lived_in))
    disconnect("cursor", target(lived_in, "project"))
    left = [(each.host, each.project) for each in connected_hosts()]
    assert ("codex", None) not in left and ("cursor", None) in left and len(left) == 5


def test_the_last_faults_are_read_from_the_end_of_their_log(tmp_path: Path) -> None:
    assert last_faults(tmp_path, 3) == []
    for number in range(300):
        note_faults(tmp_path, "codex", "Stop", (f"fault {number} " + 400 * "长",))
    lines = last_faults(tmp_path, 3)
    assert [line.partition(" codex Stop: ")[2].split()[1] for line in lines] == ["297", "298", "299"]
    (tmp_path / LOG_NAME).unlink()
    (tmp_path / LOG_NAME).symlink_to(__file__)
    with pytest.raises(InvalidName):
        last_faults(tmp_path, 3)
