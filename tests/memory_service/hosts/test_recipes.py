"""What docs/hosts.md tells people: each of its commands is typed, and what it wrote is where the page says."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from memory_service.hosts import HOSTS
from memory_service.hosts.connect import HostTarget, connect
from tests.memory_service.cli.commands import CommandLine
from tests.pages import blocks, code, table

PAGE = "docs/hosts.md"
RECIPES = [text for language, text in blocks(PAGE) if language == "console"]
MOST_LINES = 15


@pytest.fixture
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    project = tmp_path / "shop"
    (project / ".git").mkdir(parents=True)
    monkeypatch.chdir(project)
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "OPENCLAW_STATE_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("OPENCLAW_CONFIG_PATH", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    return CommandLine(home=tmp_path / "memories")


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_recipe_is_typed(recipe: str, person: CommandLine) -> None:
    assert recipe.count("\n") <= MOST_LINES
    before = sorted(person.home.parent.rglob("*"))
    for line in recipe.splitlines():
        program, *words = shlex.split(line)
        if program == "memory-service":
            assert person.run(*words).code == 0
            host, scope = words[1], ["--project"] if "--project" in words else []
    person.run("disconnect", host, *scope)
    assert sorted(person.home.parent.rglob("*")) == before


def test_there_is_a_recipe_for_each_host() -> None:
    assert {shlex.split(recipe)[2] for recipe in RECIPES} == set(HOSTS)


@pytest.mark.parametrize("row", table(PAGE, "host"), ids=lambda row: code(row[0])[0])
def test_files_are_where_the_page_says(row: list[str], person: CommandLine) -> None:
    (host,) = code(row[0])
    assert host in HOSTS
    done = connect(host, HostTarget(folder=Path.cwd()))
    written = " ".join(file.path for file in done.files)
    for name in code(row[1]):
        assert re.sub("^~", str(person.home.parent), name).rstrip("/") in written
    if row[2] and "same names" not in row[2]:
        project = connect(host, HostTarget(folder=Path.cwd(), scope="project"))
        written = " ".join(file.path for file in project.files)
        assert [name for name in code(row[2]) if str(Path.cwd() / name) not in written] == []
