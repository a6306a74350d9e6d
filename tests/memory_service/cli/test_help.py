"""What `--help` tells, and what it costs."""

from __future__ import annotations

import importlib.metadata
import json
import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from memory_service.cli.root import root
from tests.memory_service.cli.commands import CommandLine

COMMANDS = (
    "demo", "serve", "mcp", "connect", "disconnect", "hosts", "reindex", "search", "context", "get", "history",
    "remember", "entries", "receipts", "facts", "distinguish", "edit", "forget", "sessions", "hook", "workspaces",
    "join", "sync",
    "migrate", "keys", "operations", "settings", "status", "doctor",
)  # fmt: skip
HEAVY = ("numpy", "fastapi", "pydantic", "apsw", "onnxruntime", "tokenizers", "httpx", "rich", "uvicorn")


def command(name: str) -> click.Command:
    found = root.get_command(click.Context(root), name)
    assert found is not None
    return found


def told(*arguments: str) -> str:
    done = CliRunner().invoke(root, [*arguments], prog_name="memory-service")
    assert done.exit_code == 0
    return done.output


def test_the_commands_are_these() -> None:
    assert tuple(root.list_commands(click.Context(root))) == COMMANDS


def test_the_list_of_commands_cuts_no_sentence_off() -> None:
    text = told("--help")
    listed = text[text.index("Commands:") :]
    assert "..." not in listed
    assert [line.split()[0] for line in listed.splitlines()[1:]] == list(COMMANDS)
    assert all(line.endswith(".") for line in listed.splitlines()[1:])


def test_the_first_help_shows_a_first_command_on_each_line() -> None:
    text = told("--help")
    assert "\\b" not in text
    assert "\n  Try it:        memory-service demo\n" in text
    assert '\n                 memory-service search "when do we deploy?"\n' in text
    assert told("-h") == text


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_and_argument_is_told(name: str) -> None:
    text = told(name, "--help")
    assert text == told(name, "-h")
    for parameter in command(name).params:
        if isinstance(parameter, click.Option):
            assert all(spelling in text for spelling in parameter.opts)
            assert parameter.help, f"{name} {parameter.name} has no help"
        else:
            assert str(parameter.name).upper() in text.splitlines()[0]


@pytest.mark.parametrize("name", sorted({*COMMANDS} - {"demo", "serve", "sessions", "keys"}))
def test_every_command_takes_home_workspace_and_json(name: str) -> None:
    assert {"home", "workspace", "as_json"} <= {parameter.name for parameter in command(name).params}


@pytest.mark.parametrize(
    "arguments", [["--help"], ["search", "--help"], ["serve", "--help"], ["sessions", "--help"], ["--version"]]
)
def test_help_loads_nothing_heavy(arguments: list[str]) -> None:
    program = (
        "import json, sys\nsys.argv[1:] = json.loads(sys.argv[1])\nfrom memory_service.cli.root import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    print(json.dumps([end.code, *sys.modules]), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, json.dumps(arguments)], capture_output=True, text=True, check=True, timeout=240
    )
    code, *loaded = json.loads(done.stderr)
    assert code == 0
    assert sorted(set(HEAVY) & set(loaded)) == []


def test_the_version_is_that_of_the_package(cli: CommandLine) -> None:
    assert cli.ok("--version") == f"memory-service {importlib.metadata.version('memory-service')}\n"


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["nonsense"], "nonsense"),
        (["search"], "QUERY"),
        (["search", "q", "--nonsense"], "--nonsense"),
        (["search", "q", "--limit", "0"], "--limit"),
        (["search", "q", "--limit", "many"], "--limit"),
        (["search", "q", "--mode", "magic"], "--mode"),
        (["search", "q", "--source", "rumours"], "--source"),
        (["search", "q", "--since", "yesterday"], "yesterday"),
        (["context", "q", "--budget-tokens", "-1"], "--budget-tokens"),
        (["remember", "t", "--date", "2026-02-30"], "2026-02-30"),
        (["remember", "t", "--origin", "nobody"], "--origin"),
        (["get", "MEMORY.md", "--start-line", "0"], "--start-line"),
        (["get", "MEMORY.md", "--lines", "0"], "--lines"),
        (["serve", "--port", "70000"], "--port"),
        (["remember", "one", "two"], "two"),
        ([], "Usage:"),
    ],
)
def test_wrong_usage_exits_with_2_and_names_what_is_wrong(arguments: list[str], named: str) -> None:
    done = CliRunner().invoke(root, arguments, prog_name="memory-service")
    assert done.exit_code == 2
    assert named in done.output and "Usage: memory-service" in done.output


def test_wrong_usage_is_told_on_stderr(cli: CommandLine) -> None:
    run = cli.run("search", "q", "--since", "2026-13-01")
    assert (run.code, run.out) == (2, "")
    assert "2026-13-01" in run.err and "--help" in run.err
    assert not cli.home.exists()
