"""README.md and docs/ are true and short: blocks run, tables are complete, links lead somewhere."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click
import pytest

from memory_service import AsyncMemoryClient, MemoryClient
from memory_service.api.app import create_app
from memory_service.cli.root import root
from memory_service.client import AsyncSession, Session
from memory_service.config import load_settings
from memory_service.home import SETTINGS_FILE
from memory_service.service import MemoryService
from memory_service.testing import ScriptedServer
from tests.pages import PAGES, ROOT, blocks, code, prose, table
from tests.serving import running_process, settings

URL = "http://127.0.0.1:8765"
# The blocks of these, of which one is examples/chat.py, tests/campaigns/test_newcomer.py types in their order, with the
# models that a reader has: here each process would load them.
TYPED_IN_ORDER = ("README.md", "docs/zh.md")
WORDS_ALONE = {"MEMORY_SERVICE_EMBEDDING_MODEL": "none"}
FACT = "Deploys go out on Tuesdays after the 10:00 stand-up."
CHINESE_FACT = "周二站会之后部署，周五不部署。"
BLOCKS = [(page, number, *block) for page in PAGES for number, block in enumerate(blocks(page))]
# What blocks print that have one of these words; all others print the fact.
PRINTED = {
    "help desk": "('help desk', 'read', None)",
    "connect": "/hooks and /mcp list memory-service",
    "To Graz": "To Graz, then.",
    "寄到成都": "tuesday  xiaolin：请寄到我的收货地址。\n        花店：好的，寄到成都。",
    "ORD-4711": "ORD-4711",
    CHINESE_FACT: CHINESE_FACT,
}
# Blocks that are run, those of the README's opening (by .ci/run), settings, and what is only looked at. What the pages
# of hosts tell is tried in tests/memory_service/mcp/test_recipes.py and tests/memory_service/hosts/test_recipes.py.
LANGUAGES = {"bash", "python", "sh", "toml", "markdown", ""}
SERVER = "memory-service serve\n"  # the reader has one
HOSTS = ("docs/mcp.md", "docs/hosts.md")
ADAPTERS = "docs/integrations.md"  # each recipe runs where its framework is, see tests/integrations
MOST_LINES = 200
EXAMPLES = {
    "chat.py": [],  # stands in the README
    "tools.py": ["kept in memory/", "Deploys go out on Tuesdays. (memory/", "agent: Done: nothing relevant"],
    "many_users.py": [
        "ana: You live in Lisbon.",
        "bo: You live in Malmö.",
        "chen: You live in 成都.",
        "dora: You live in Graz.",
    ],
    "long_conversation.py": ["the pin is in the prompt: True", "240 of 240", "about ORD-4711.", "undone: "],
}
# Pages for a browser, and MCP, which has a document of its own, are no part of the one that describes the API.
UNDOCUMENTED = {("GET", "/"), ("GET", "/docs"), ("GET", "/openapi.json"), ("POST", "/mcp")}


def printed_by(text: str) -> str:
    """What a block must print."""
    return next((told for word, told in PRINTED.items() if word in text), FACT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """Somebody who types what a page says, in a folder of their own that is empty but for the home of a server."""

    folder: Path
    url: str

    def types(self, language: str, text: str) -> str:
        """Run a block; gives what it printed."""
        shell = ["bash", "-euo", "pipefail", "-c"]
        program = {"bash": shell, "python": [sys.executable, "-c"]}[language]
        done = subprocess.run(
            [*program, text.replace(URL, self.url)],
            cwd=self.folder, env=self._environment(),
            capture_output=True, text=True, timeout=240, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert "error" not in done.stderr and "degraded" not in done.stderr
        return done.stdout

    def _environment(self) -> dict[str, str]:
        ours = {name: value for name, value in os.environ.items() if not name.startswith("MEMORY_SERVICE_")}
        people = {"HOME": str(self.folder), "USERPROFILE": str(self.folder)}
        return {
            **ours,
            **WORDS_ALONE,
            **people,
            "PATH": f"{self.folder / 'bin'}{os.pathsep}{ours['PATH']}",
            "no_proxy": "127.0.0.1",
        }


def upstreams(url: str) -> str:
    """A scripted provider as those that the page of the gateway names."""
    return json.dumps({"openai": {"base_url": url}, "anthropic": {"protocol": "anthropic", "base_url": url}})


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    folder = tmp_path_factory.mktemp("reader")
    command = folder / "bin" / "memory-service"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m memory_service "$@"\n', "utf-8")
    command.chmod(0o755)
    # What the page of the gateway asks a provider for.
    answers = [f"{FACT} I looked it up."] * 20
    with (
        ScriptedServer(*answers) as upstream,
        running_process(
            folder / ".memory-service", {**WORDS_ALONE, "MEMORY_SERVICE_GATEWAY__UPSTREAMS": upstreams(upstream.url)}
        ) as url,
    ):
        reader = Reader(folder=folder, url=url)
        reader.types("bash", f'memory-service remember "{FACT}"')
        yield reader


@pytest.mark.parametrize(
    ("language", "text"),
    [
        pytest.param(language, text, id=f"{page}-{number}-{language}")
        for page, number, language, text in BLOCKS
        if language in ("bash", "python") and page not in (*TYPED_IN_ORDER, ADAPTERS) and text != SERVER
    ],
)
def test_a_block_runs(reader: Reader, language: str, text: str) -> None:
    for program in {"bash", "curl"} & {language, *text.split()}:
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    printed = reader.types(language, text)
    assert printed_by(text) in printed


@pytest.mark.parametrize("name", [name for name, told in EXAMPLES.items() if told])
def test_an_example_runs(reader: Reader, name: str) -> None:
    printed = reader.types("python", (ROOT / "examples" / name).read_text("utf-8"))
    assert [line for line in EXAMPLES[name] if line not in printed] == []


def test_the_table_of_examples_names_all_of_them() -> None:
    listed = re.findall(r"^\| \[(\w+\.py)\]", (ROOT / "examples" / "README.md").read_text("utf-8"), re.MULTILINE)
    assert sorted(listed) == sorted(EXAMPLES) == sorted(path.name for path in (ROOT / "examples").glob("*.py"))
    assert ("python", (ROOT / "examples" / "chat.py").read_text("utf-8")) in blocks("README.md")


@pytest.mark.parametrize("kinds", [(MemoryClient, Session), (AsyncMemoryClient, AsyncSession)])
def test_the_page_of_the_client_shows_every_method(kinds: tuple[type, type]) -> None:
    is_async = kinds[0] is AsyncMemoryClient
    shown = [text for _, text in blocks("docs/sdk.md") if "MemoryClient" in text and ("async def" in text) == is_async]
    for kind in kinds:
        methods = {name for name, each in vars(kind).items() if callable(each) and not name.startswith("_")} - {"close"}
        called = set(re.findall(r"(?<=[\w)]\.)(\w+)\(", "\n".join(shown)))
        assert methods - called == set(), f"show in docs/sdk.md what {kind.__name__} can do"


@pytest.mark.parametrize(
    "text", [text for page, _, language, text in BLOCKS if (page in HOSTS, language) == (False, "toml")]
)
def test_a_block_of_settings_is_understood(tmp_path: Path, text: str) -> None:
    (tmp_path / SETTINGS_FILE).write_text(text, "utf-8")
    kept = {"home"}
    assert load_settings(home=tmp_path).model_dump(exclude=kept) != load_settings(home="none").model_dump(exclude=kept)


def test_every_block_has_a_language_that_is_tested() -> None:
    assert {language for page, _, language, _ in BLOCKS if page not in (*HOSTS, ADAPTERS)} <= LANGUAGES
    assert [text for _, _, language, text in BLOCKS if not language and re.search("^memory-service ", text, re.M)] == []


def test_the_commands_of_the_demo_and_of_the_tests_are_single_lines() -> None:
    commands = [text for _, _, language, text in BLOCKS if language == "sh"]
    assert PAGES["README.md"].index(commands[0]) < PAGES["README.md"].index("```bash")
    assert [text.count("\n") for text in commands] == [1, 1]
    see, test = commands
    assert see.rstrip().endswith("memory-service demo") and "[" not in see
    assert "'.[test]'" in test and test.rstrip().endswith("pytest -n auto")
    assert all("venv .venv && .venv/bin/pip install" in text for text in commands)


def test_the_readme_is_read_to_its_end() -> None:
    lines = PAGES["README.md"].count("\n")
    assert lines <= MOST_LINES, f"README.md has {lines} lines: what a newcomer need not know belongs into docs/"


def test_the_readme_leads_to_every_page() -> None:
    linked = set(re.findall(r"\]\((docs/\w+\.md)\)", PAGES["README.md"]))
    assert linked == set(PAGES) - {"README.md"}


def test_nothing_is_said_twice() -> None:
    lines = Counter(line.strip() for page in PAGES for line in prose(page).splitlines() if len(line) > 60)
    assert [line for line, times in lines.items() if times > 1] == []


def test_the_numbers_of_the_readme_are_those_that_were_measured() -> None:
    figures = {figure for cells in table("README.md", "what") for figure in _figures(" ".join(cells[1:3]))}
    assert len(figures) > 10
    assert figures <= set(_figures(PAGES["docs/measurements.md"]))


def _figures(text: str) -> list[str]:
    return re.findall(r"\d*\.?\d+", text)


def test_the_table_of_commands_names_all_of_them() -> None:
    named = [usage.split()[0] for cells in table("docs/cli.md", "command") for usage in code(cells[0])]
    assert sorted(named) == sorted(root.list_commands(click.Context(root)))


def test_the_options_that_the_table_names_exist() -> None:
    for cells in table("docs/cli.md", "command"):
        known = {"--help"}
        for usage in code(cells[0]):
            command = root.get_command(click.Context(root), usage.split()[0])
            assert command is not None
            commands = [command, *getattr(command, "commands", {}).values()]
            known |= {
                spelling
                for each in commands
                for parameter in each.params
                for spelling in (*parameter.opts, *parameter.secondary_opts)
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
    for usage in (usage for cells in table("docs/http.md", "route") for usage in code(cells[0])):
        *method, path = usage.split()
        path = re.sub(r"^S(?=/|$)", "W/sessions/{}", path)
        if not path.startswith(("/", "W/")):
            methods.append(path)
            continue
        for name in (*methods, *(method or ["GET"])):
            found.add((name, re.sub(r"{\w+}", "{}", path.replace("W/", "/v1/workspaces/{}/"))))
        methods = []
    return found


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_to_files_and_headings_that_exist(page: str) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if "://" in target:
            continue
        path, _, heading = target.partition("#")
        file = (ROOT / page).parent / path if path else ROOT / page
        assert file.exists(), target
        if heading:
            assert heading in _anchors(file.resolve().relative_to(ROOT).as_posix()), target


def _anchors(page: str) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES)
def test_files_and_modules_that_the_text_names_exist(page: str) -> None:
    for name in re.findall(r"`((?:tests|indexer|memory_service|data|docs|examples|\.ci)/[\w./-]*)`", PAGES[page]):
        assert (ROOT / name).exists(), name
    for module in re.findall(r"python\s+-m\s+(tests\.[\w.]*\w)", PAGES[page]):
        path = ROOT / module.replace(".", "/")
        assert path.with_suffix(".py").exists() or (path / "__main__.py").exists(), module
