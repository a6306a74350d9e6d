"""doctor --measure."""

from __future__ import annotations

import json

from tests.memory_service.cli.commands import CommandLine
from tests.serving import running_process


def test_the_measures_stand_behind_the_checks(cli: CommandLine) -> None:
    real = CommandLine(home=cli.home, environment={})
    real.ok("remember", "Deploys go out on Tuesdays.")
    before = {path: path.read_bytes() for path in cli.home.rglob("*") if path.is_file()}
    names = [line.split()[1].rstrip(":") for line in real.ok("doctor", "--measure").splitlines()]
    assert names[-3:] == ["speed", "recall", "readers"]
    checks = {check["name"]: check for check in json.loads(real.ok("doctor", "--measure", "--json"))["checks"]}
    assert checks["recall"]["figures"] == {"passages": 1, "packed": 0, "recall": 1.0}
    assert checks["speed"]["figures"]["p99_ms"] >= checks["speed"]["figures"]["p50_ms"] > 0
    assert checks["index"]["figures"] == {}
    assert "speed" not in {check["name"] for check in json.loads(real.ok("doctor", "--json"))["checks"]}
    assert {path: path.read_bytes() for path in cli.home.rglob("*") if path.is_file()} == before


def test_an_index_that_is_not_sound_is_not_measured(cli: CommandLine) -> None:
    cli.workspace.mkdir(parents=True)
    run = cli.run("doctor", "--measure")
    assert run.code == 1 and "WRONG index: there is no index yet" in run.out and "speed" not in run.out


def test_it_works_beside_a_server(cli: CommandLine) -> None:
    cli.ok("remember", "Deploys go out on Tuesdays.")
    with running_process(cli.home, cli.variables):
        assert "text searches: p50 " in cli.ok("doctor", "--measure")
        cli.ok("remember", "The courier comes at nine.")
