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
    subprocess.run(["git", "init", "-q", str(project)], check=True, timeout=30)
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
