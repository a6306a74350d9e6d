"""The README is true: its blocks run, its tables are complete, its links lead somewhere."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click
import pytest
from pydantic import BaseModel

from memory_service.api import create_app
from memory_service.cli.root import root
from memory_service.config import Settings
from memory_service.service import MemoryService
from tests.serving import running_process, settings

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text("utf-8")
URL = "http://127.0.0.1:8765"
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
# These two a browser asks for: they are no part of the document that one of them is.
UNDOCUMENTED = {("GET", "/docs"), ("GET", "/openapi.json")}


def section(title: str) -> str:
    """What stands below a heading."""
    return README.split(f"\n## {title}\n")[1].split("\n## ")[0]


def rows(title: str) -> list[list[str]]:
    """The cells of a section's table, without its head."""
    lines = [line for line in section(title).splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split(" |")] for line in lines[2:]]


def code(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """Somebody who types what the README says: in a folder, beside a server on the same home."""

    folder: Path
    url: str

    def types(self, language: str, text: str) -> str:
        """Run a block; gives what it printed."""
        shell = ["bash", "-euo", "pipefail", "-c"]
        program = {"bash": shell, "python": [sys.executable, "-c"]}[language]
        done = subprocess.run(
            [*program, text.replace(URL, self.url)],
            cwd=self.folder, env=self._environment(), capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert "error" not in done.stderr and "degraded" not in done.stderr
        return done.stdout

    def _environment(self) -> dict[str, str]:
        ours = {name: value for name, value in os.environ.items() if not name.startswith("MEMORY_SERVICE_")}
        return {**ours, "PATH": f"{self.folder / 'bin'}{os.pathsep}{ours['PATH']}", "no_proxy": "127.0.0.1"}


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    folder = tmp_path_factory.mktemp("reader")
    command = folder / "bin" / "memory-service"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m memory_service "$@"\n', "utf-8")
    command.chmod(0o755)
    with running_process(folder / "data", {}) as url:
        yield Reader(folder=folder, url=url)


@pytest.mark.parametrize(
    ("language", "text"),
    [
        pytest.param(language, text, id=f"{number}-{language}")
        for number, (language, text) in enumerate(BLOCKS)
        if language in ("bash", "python")
    ],
)
def test_a_block_runs(reader: Reader, language: str, text: str) -> None:
    for program in {"bash", "curl"} & {language, *text.split()}:
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    printed = reader.types(language, text)
    assert ("ORD-4711" if "session(" in text else "Deploys go out on Tuesdays after the 10:00 stand-up.") in printed


def test_every_block_to_use_it_is_run() -> None:
    assert {language for language, _ in re.findall(r"^```(\w+)\n(.*?)^```$", section("Use it"), re.M | re.S)} == {
        "bash",
        "python",
    }
    assert re.findall(r"^```$\n[^`]*memory-service ", README, re.MULTILINE) == []


def test_the_two_opening_commands_are_single_lines() -> None:
    opening = README.split("\n## ")[0]
    commands = re.findall(r"^```sh\n(.*?)^```$", opening, re.MULTILINE | re.DOTALL)
    assert [text.count("\n") for text in commands] == [1, 1]
    see, test = commands
    assert see.rstrip().endswith("memory-service demo") and "[" not in see
    assert "'.[test]'" in test and test.rstrip().endswith("pytest -n auto")
    assert all("venv .venv && .venv/bin/pip install" in text for text in commands)


def test_the_table_of_commands_names_all_of_them() -> None:
    named = [usage.split()[0] for cells in rows("Commands") for usage in code(cells[0])]
    assert sorted(named) == sorted(root.list_commands(click.Context(root)))


def test_the_options_that_the_table_names_exist() -> None:
    for cells in rows("Commands"):
        known = {"--help"}
        for usage in code(cells[0]):
            command = root.get_command(click.Context(root), usage.split()[0])
            assert command is not None
            known |= {
                spelling for parameter in command.params for spelling in (*parameter.opts, *parameter.secondary_opts)
            }
        mentioned = set(re.findall(r"--[a-z-]+", " ".join(cells)))
        assert mentioned <= known


def test_the_table_of_routes_names_all_of_them(tmp_path: Path) -> None:
    with MemoryService(settings(tmp_path, embedding_model="none")) as service:
        paths = create_app(service).openapi()["paths"]
    served = {(method.upper(), re.sub(r"{\w+}", "{}", path)) for path, methods in paths.items() for method in methods}
    assert named_routes() == served | UNDOCUMENTED


def named_routes() -> set[tuple[str, str]]:
    """Method and path of each route in the table: "`GET`/`DELETE W/x`" is two of them, a path alone is a GET."""
    found = set()
    methods: list[str] = []
    for usage in (usage for cells in rows("HTTP") for usage in code(cells[0])):
        *method, path = usage.split()
        path = re.sub(r"^S(?=/|$)", "W/sessions/{}", path)
        if not path.startswith(("/", "W/")):
            methods.append(path)
            continue
        for name in (*methods, *(method or ["GET"])):
            found.add((name, re.sub(r"{\w+}", "{}", path.replace("W/", "/v1/workspaces/{}/"))))
        methods = []
    return found


def _setting_names(table: type[BaseModel], prefix: str = "") -> Iterator[str]:
    for name, field in table.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from _setting_names(kind, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}"


def test_the_table_of_settings_names_all_of_them() -> None:
    fields = list(_setting_names(Settings))
    assert sorted(name for cells in rows("Settings") for name in code(cells[0])) == sorted(fields)


def test_links_lead_to_files_and_headings_that_exist() -> None:
    headings = {
        re.sub(r"[^\w -]", "", line).strip().lower().replace(" ", "-")
        for line in re.findall(r"^#+ (.*)$", README, re.M)
    }
    targets = re.findall(r"\]\(([^)\s]+)\)", README)
    assert targets
    for target in targets:
        if target.startswith("#"):
            assert target[1:] in headings
        elif "://" not in target:
            assert (ROOT / target.partition("#")[0]).exists(), target


def test_files_that_the_text_names_exist() -> None:
    for name in re.findall(r"`((?:tests|indexer|memory_service|data|\.ci)/[\w./-]*)`", README):
        assert (ROOT / name).exists(), name
