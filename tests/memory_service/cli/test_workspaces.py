"""The workspaces of a home, as commands list and find them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from memory_service.hosts.projects import project_of
from tests.memory_service.cli.commands import WORDS_ALONE, CommandLine


@pytest.fixture
def cli(tmp_path: Path) -> CommandLine:
    return CommandLine(home=tmp_path / "home", environment=WORDS_ALONE)


def test_a_home_lists_its_workspaces_with_their_projects(cli: CommandLine, tmp_path: Path) -> None:
    nothing = cli.run("workspaces")
    assert (nothing.code, nothing.out) == (0, "") and str(cli.home) in nothing.err
    cli.ok("remember", "Deploys go out on Tuesdays.")
    cli.ok("remember", "The shop opens at nine.", "--workspace", "shop-1f3a")
    (cli.home / "shop-1f3a" / ".project").write_text("/src/shop/.git\n", "utf-8")
    lines = cli.ok("workspaces").splitlines()
    assert [line.split()[:5] for line in lines] == [
        ["default", "1", "file", "0", "sessions"],
        ["shop-1f3a", "1", "file", "0", "sessions"],
    ]
    assert lines[1].endswith("/src/shop/.git")
    listed = json.loads(cli.ok("workspaces", "--json"))
    assert listed["home"] == str(cli.home)
    assert [each["project"] for each in listed["workspaces"]] == [None, "/src/shop/.git"]


def test_status_in_a_project_shows_the_projects_own_workspace(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "shop"
    subprocess.run(["git", "init", "-q", str(project)], check=True, timeout=240)
    monkeypatch.chdir(project)
    cli.ok("remember", "Deploys go out on Tuesdays.")
    assert cli.ok("status").startswith("workspace  default ")
    own = project_of(str(project)).workspace_in(cli.home)
    cli.ok("remember", "The shop opens at nine.", "--workspace", own)
    assert cli.ok("status").startswith(f"workspace  {own} ")
    assert cli.ok("status", "--workspace", "default").startswith("workspace  default ")


def test_the_sample_of_a_checkout_is_no_home(cli: CommandLine) -> None:
    sample = Path(__file__).parents[3] / "data"
    before = sorted(sample.rglob("*"))
    cli.run("remember", "A note.", "--home", str(sample)).failed_with("the sample of this checkout", "demo --keep")
    assert sorted(sample.rglob("*")) == before


def test_a_second_home_is_told_with_the_command_that_joins_them(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    cli.ok("remember", "Deploys go out on Tuesdays.", "--home", "data")
    first = cli.run("remember", "周二部署。")
    assert first.code == 0 and "begins a memory in" in first.err and "memory-service join" in first.err
    assert cli.run("remember", "Again.").err == "", "it is said once"
    told = cli.run("status").err
    assert "another home" in told
    command = told.split("To join them: memory-service ")[1].split()
    assert "another home" in cli.ok("doctor")
    assert "1 file would be copied" in cli.run(*command, "--dry-run").err
    assert "1 file copied" in cli.run(*command).err
    assert cli.run("status").err == ""
    found = cli.ok("search", "Tuesdays")
    assert "Deploys go out on Tuesdays." in found


def test_a_home_of_a_newer_version_is_refused_by_name(cli: CommandLine) -> None:
    cli.ok("remember", "A note.")
    (cli.home / ".format").write_text("2\n", "utf-8")
    before = {path: path.stat().st_mtime_ns for path in cli.home.rglob("*")}
    for command in (["status"], ["search", "note"], ["remember", "More."], ["serve", "--port", "0"], ["doctor"]):
        cli.run(*command).failed_with(str(cli.home), "made by a newer version", "Upgrade memory-service")
    assert {path: path.stat().st_mtime_ns for path in cli.home.rglob("*")} == before
    (cli.home / ".format").write_text("1\n", "utf-8")
    cli.ok("search", "note")


@pytest.mark.parametrize(
    "command", [["get", "memory/none.md"], ["reindex", "memory/none.md"], ["sessions", "show", "n"]]
)
def test_what_is_missing_is_told_with_the_home_that_it_was_looked_for_in(cli: CommandLine, command: list[str]) -> None:
    cli.ok("remember", "A note.")
    cli.run(*command).failed_with(str(cli.home))
