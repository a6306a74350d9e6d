"""`connect` and `disconnect` as they are typed: what they print and how they end."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from memory_service.hosts.progress import note_faults
from tests.memory_service.cli.commands import CommandLine


@pytest.fixture
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    """Somebody whose home is empty, in a folder with Chinese in its name."""
    (tmp_path / "项目").mkdir()
    monkeypatch.chdir(tmp_path / "项目")
    return CommandLine(home=tmp_path / "memories", environment={"HOME": str(tmp_path), "USERPROFILE": str(tmp_path)})


def test_it_says_what_it_did_and_how_to_see_it(person: CommandLine) -> None:
    done = person.run("connect", "claude-code")
    assert done.code == 0 and done.out.startswith("connected  claude-code  (user)\n")
    assert f"created    {Path('~').expanduser()}" not in done.out
    for word in (
        ".claude/settings.json",
        ".claude.json",
        "SKILL.md",
        str(person.home),
        "/hooks",
        "disconnect claude-code",
    ):
        assert word in done.out
    assert person.run("connect", "claude-code").out.startswith("already connected")
    assert "deleted" in person.run("disconnect", "claude-code").out
    assert person.run("disconnect", "claude-code").out.startswith("was not connected")
    assert [path.name for path in person.home.parent.iterdir()] == ["项目"]


def test_it_names_the_database_that_has_the_memories(person: CommandLine) -> None:
    address = {"MEMORY_SERVICE_DATABASE_URL": "postgresql://eve:s3cret@db.example.org/memory"}
    done = replace(person, environment={**person.environment, **address}).run("connect", "claude-code")
    assert "  memories   the database db.example.org/memory\n" in done.out and "s3cret" not in done.out + done.err
    assert f"Write database_url into {person.home / 'memory-service.toml'}" in done.err


def test_a_project_is_the_folder_here(person: CommandLine) -> None:
    done = person.run("connect", "cursor", "--project")
    assert f"{person.home.parent / '项目' / '.cursor' / 'hooks.json'}" in done.out
    assert "disconnect cursor --project" in done.out
    person.run("disconnect", "cursor", "--project")
    assert list((person.home.parent / "项目").iterdir()) == []


def test_a_dry_run_prints_a_diff(person: CommandLine) -> None:
    done = person.run("connect", "codex", "--dry-run")
    assert done.code == 0 and "\n+[mcp_servers.memory-service]\n" in done.out and "--- /dev/null" in done.out
    assert not (person.home.parent / ".codex").exists()
    assert person.run("disconnect", "codex", "--dry-run").out == "nothing to change\n"


def test_it_prints_json(person: CommandLine) -> None:
    found = json.loads(person.run("connect", "opencode", "--json").out)
    assert found["connected"] and {file["action"] for file in found["files"]} == {"created"}


def test_settings_that_are_not_valid_are_told_in_one_line(person: CommandLine) -> None:
    path = person.home.parent / ".cursor" / "hooks.json"
    path.parent.mkdir()
    path.write_text("{", "utf-8")
    person.run("connect", "cursor").failed_with(str(path), "in line 1", "Nothing was written")


def test_an_unknown_host_is_wrong_usage(person: CommandLine) -> None:
    done = person.run("connect", "vim")
    assert done.code == 2 and "claude-code" in done.err


def test_an_address_is_checked_and_told_where_nothing_calls_it(person: CommandLine) -> None:
    person.run("connect", "opencode", "--url", "foo").failed_with(
        "'foo', no address of a server", "http://127.0.0.1:8765"
    )
    assert "MEMORY_SERVICE_URL" in person.run("connect", "cursor", "--url", "http://127.0.0.1:1", "--dry-run").err
    for host in ("opencode", "openclaw"):
        assert "URL" not in person.run("connect", host, "--url", "http://127.0.0.1:1", "--dry-run").err
    assert f"serve --home {person.home}\n" in person.run("connect", "opencode", "--dry-run").err


def test_help_says_where_the_memories_are_kept(person: CommandLine) -> None:
    for command in ("connect", "disconnect"):
        printed = "".join(person.ok(command, "--help").split())
        assert "[default:~/.memory-service]" in printed and "[default:oneofeachproject]" in printed


def test_the_connected_hosts_are_listed_with_their_faults(person: CommandLine) -> None:
    assert "no coding agent" in person.run("hosts").err
    person.run("connect", "cursor")
    note_faults(person.home, "cursor", "stop", ("The disk is full. Free some space.",))
    told = person.ok("hosts")
    assert told.startswith("cursor  (user)\n") and "hooks.json" in told
    assert told.rstrip().endswith("cursor stop: The disk is full. Free some space.")
    assert json.loads(person.ok("hosts", "--json"))["hosts"][0]["host"] == "cursor"


def test_the_settings_are_listed_with_where_they_are_from(person: CommandLine) -> None:
    person.home.mkdir()
    (person.home / "memory-service.toml").write_text("receipt_days = 7\n", "utf-8")
    told = person.ok("settings").splitlines()
    assert next(line for line in told if line.startswith("receipt_days")).endswith("memory-service.toml:1)")
    listing = json.loads(person.ok("settings", "--json"))["settings"]
    assert {"receipt_days": "file", "timezone": "environment", "host": "default"}.items() <= {
        setting["name"]: setting["origin"] for setting in listing
    }.items()
