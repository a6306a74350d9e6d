"""bench."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest

from tests.memory_service.cli.commands import CommandLine
from tests.serving import running_process

FIELDS = {
    "passages", "packed", "mode", "searches", "searches_per_second", "stages", "recall", "indexed",
    "indexing_per_second", "embedding_per_second", "degraded",
}  # fmt: skip


def files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_workspace_is_measured_and_nothing_is_left_behind(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    cli.write("MEMORY.md", ["- Never deploy on Fridays.", "- 周五不部署。"])
    cli.ok("reindex")
    before = files(cli.home)
    lines = cli.ok("bench", "--seconds", "1").splitlines()
    assert lines[0].split(maxsplit=1) == ["passages", "2, all looked at for every question"]
    assert lines[1].startswith("searches") and " a second, text (" in lines[1]
    assert [line.split()[0] for line in lines[2:]] == ["whole", "view", "words", "embed", "rank", "fetch", "indexing"]
    assert files(cli.home) == before and list(temporary.iterdir()) == []


def test_json_has_every_number(cli: CommandLine) -> None:
    real = CommandLine(home=cli.home, environment={})
    real.ok("remember", "Deploys go out on Tuesdays.")
    found = json.loads(real.ok("bench", "--seconds", "1", "--json"))
    assert set(found) == FIELDS
    assert found["recall"] == 1.0, "sqlite-vec is asked in a small index, too"
    assert found["mode"] == "hybrid" and found["indexed"] == found["passages"] == 1
    assert "recall@10" in real.ok("bench", "--seconds", "1")
    assert found["embedding_per_second"] > 0 and {"name", "p50_ms", "p99_ms"} == set(found["stages"][0])


def test_what_is_missing_is_told_beside_the_numbers(cli: CommandLine) -> None:
    cli.ok("remember", "Deploys go out on Tuesdays.")
    run = CommandLine(home=cli.home, environment={}).run("bench", "--seconds", "1", "--json")
    assert (run.code, json.loads(run.out)["mode"]) == (0, "text")
    assert run.err.startswith("degraded: vector: ") and "as soon as the model minilm answers" in run.err


def test_an_empty_workspace_is_named(cli: CommandLine) -> None:
    cli.run("bench").failed_with("no workspace default")
    cli.workspace.mkdir(parents=True)
    cli.run("bench").failed_with("nothing to measure", "memory-service reindex")
    assert list(cli.workspace.iterdir()) == []


def test_it_works_beside_a_server(cli: CommandLine) -> None:
    cli.ok("remember", "Deploys go out on Tuesdays.")
    with running_process(cli.home, cli.variables):
        assert cli.ok("bench", "--seconds", "1").startswith("passages")
        cli.ok("remember", "The courier comes at nine.")


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "0.5", "99999"])
def test_a_time_that_is_none_is_wrong_usage(cli: CommandLine, seconds: str) -> None:
    run = cli.run("bench", "--seconds", seconds)
    assert (run.code, run.out) == (2, "") and "--seconds" in run.err
