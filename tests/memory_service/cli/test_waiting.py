"""Commands that search a large change: they wait for the index or say what waits, and what they did stays."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from memory_service import schemas
from tests.memory_service.cli.commands import PROGRAM, CommandLine
from tests.waiting import until

NOTES = 200


@pytest.fixture
def cli(tmp_path: Path) -> CommandLine:
    """A home with a large file and a conversation that no index has, and the bundled model."""
    cli = CommandLine(home=tmp_path / "home", environment={})
    cli.write("memory/orders.md", [f"- Order {n} was packed at station {n % 9} for 客户 {n}." for n in range(NOTES)])
    said = [{"role": "user", "content": f"The plant of shelf {n} needs water every {n} days."} for n in range(20)]
    source = tmp_path / "said.json"
    source.write_text(json.dumps(said), "utf-8")
    cli.ok("sessions", "append", "plants", "--file", str(source))
    return cli


def status(cli: CommandLine) -> schemas.Status:
    return cli.run("status", "--json").answer(schemas.Status)


@pytest.mark.parametrize("command", ["search", "context"])
def test_the_first_search_is_whole(cli: CommandLine, command: str) -> None:
    run = cli.run(command, "which plant needs water every 7 days?")
    assert run.code == 0 and "shelf 7" in run.out
    assert "degraded" not in run.err
    assert run.err.startswith("indexing ") and "--no-wait" in run.err, "where no bar can be, a line says what it does"
    found = status(cli)
    assert (found.dirty, found.coverage, found.files) == (0, 1.0, 2)
    assert not cli.run(command, "which plant needs water every 7 days?").err.startswith("indexing")


def test_without_waiting_nothing_is_indexed_and_the_remedy_works(cli: CommandLine) -> None:
    for _ in range(2):
        answer = cli.run("search", "water every 7 days", "--no-wait", "--json").answer(schemas.SearchResults)
        assert answer.results == []
        assert [each for each in answer.degraded if "2 changed files" in each and "`memory-service reindex`" in each]
        assert status(cli).files == 0
    cli.ok("reindex")
    answer = cli.run("search", "water every 7 days", "--no-wait", "--json").answer(schemas.SearchResults)
    assert answer.degraded == [] and answer.results[0].path == "sessions/plants.jsonl"


def test_a_search_that_is_killed_has_stored_what_it_did(cli: CommandLine) -> None:
    with subprocess.Popen([*PROGRAM, "search", "q"], env=cli.variables, stderr=subprocess.DEVNULL) as process:
        until(lambda: bool(status(cli).passages) or process.poll() is not None)
        process.send_signal(signal.SIGTERM if sys.platform == "win32" else signal.SIGKILL)
    kept = status(cli)
    assert kept.passages == kept.embedded > 0
    report = cli.run("reindex", "--json").answer(schemas.ReindexReport)
    assert report.embedded + report.reused <= NOTES + 20 - kept.passages
    assert status(cli).passages == NOTES + 20


def test_endless_input_is_stopped_at_the_limit(cli: CommandLine) -> None:
    with open("/dev/zero", "rb") as endless:
        run = cli.spawn("remember", "-", stdin=endless)
    run.failed_with("More than 524,288 bytes", "Nothing was stored")
    assert not list(cli.workspace.glob("memory/2*.md"))
