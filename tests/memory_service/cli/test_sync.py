"""The command `sync`: what it prints, its exit codes, and that it goes on until it is interrupted."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from memory_service.client import MemoryClient
from tests.memory_service.cli.commands import PROGRAM, CommandLine
from tests.serving import found_by_home
from tests.waiting import eventually

DAY = "memory/2026-11-20.md"


@pytest.fixture
def server(cli: CommandLine) -> Iterator[MemoryClient]:
    """A client of a server on the home, in the workspace `team`."""
    with found_by_home(cli.home) as url, MemoryClient(url, workspace="team") as client:
        yield client


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "notes"
    (made / "memory").mkdir(parents=True)
    return made


def test_a_sync_prints_a_line_for_each_file(cli: CommandLine, server: MemoryClient, folder: Path) -> None:
    server.put("MEMORY.md", "- from there\n")
    (folder / DAY).write_text("- from here\n")
    run = cli.run("sync", str(folder), "-w", "team", "--dry-run")
    assert (run.code, run.out) == (0, f"take          MEMORY.md\nsend new      {DAY}\n")
    assert not (folder / "MEMORY.md").exists()
    run = cli.run("sync", str(folder), "-w", "team")
    assert (run.code, run.out) == (0, f"taken         MEMORY.md\nsent new      {DAY}\n")
    assert run.err.startswith("1 taken, 1 sent new, 0 unchanged; ")
    assert (folder / "MEMORY.md").read_text() == "- from there\n"
    run = cli.run("sync", str(folder), "-w", "team", "--url", server.base_url)
    assert (run.code, run.out) == (0, "") and run.err.startswith("2 unchanged; ")
    (folder / DAY).unlink()
    assert cli.run("sync", str(folder), "-w", "team", "--delete").out == f"erased there  {DAY}\n"


def test_a_conflict_is_told_and_is_an_exit_code(cli: CommandLine, server: MemoryClient, folder: Path) -> None:
    server.put("MEMORY.md", "- Mondays\n")
    (folder / "MEMORY.md").write_text("- Fridays\n")
    run = cli.run("sync", str(folder), "-w", "team", "--json")
    told = json.loads(run.out)
    assert (run.code, run.err) == (1, "")
    assert told["conflicts"] == [{"path": "MEMORY.md", "copy": "MEMORY.conflict.md"}]
    assert told["counts"]["conflict"] == 1 and told["counts"]["unchanged"] == 0
    assert (folder / "MEMORY.conflict.md").read_text() == "- Fridays\n"
    run = cli.run("sync", str(folder), "-w", "team")
    assert run.code == 0 and "still to be looked through: MEMORY.conflict.md" in run.err
    (folder / "MEMORY.md").write_text("- Sundays\n")
    server.put("MEMORY.md", "- Tuesdays\n", etag=server.get("MEMORY.md").etag)
    run = cli.run("sync", str(folder), "-w", "team")
    assert (run.code, run.out) == (1, "conflict      MEMORY.md  yours: MEMORY.conflict-2.md\n")


def test_a_file_that_fails_is_told_and_is_an_exit_code(cli: CommandLine, server: MemoryClient, folder: Path) -> None:
    (folder / DAY).write_bytes(b"- \xff\n")
    (folder / "README.md").write_text("mine\n")
    (folder / os.fsdecode(b"memory/\xfe.md")).write_text("x\n")
    run = cli.run("sync", str(folder), "-w", "team")
    assert (run.code, run.out) == (1, "")
    lines = run.err.splitlines()
    assert lines[0].startswith("left out: 'README.md' is no memory file.")
    assert f"failed: The file {DAY} is not UTF-8, as line 1 shows. Save it as UTF-8." in lines
    (folder / DAY).unlink()
    assert cli.run("sync", str(folder), "-w", "team").code == 0


def test_without_a_server_it_says_what_to_do(cli: CommandLine, folder: Path) -> None:
    cli.run("sync", str(folder)).failed_with("No server runs on", "memory-service serve", "--url")
    cli.run("sync", str(folder), "--url", "nowhere").failed_with("no address of a server")
    cli.run("sync", str(folder), "--url", "http://127.0.0.1:9").failed_with("was not reached")
    assert cli.run("sync", str(folder), "--watch", "--dry-run").code == 2
    assert cli.run("sync").code == 2


def test_a_watch_syncs_both_sides_until_it_is_interrupted(cli: CommandLine, server: MemoryClient, folder: Path) -> None:
    command = [*PROGRAM, "sync", str(folder), "-w", "team", "--watch", "--json"]
    with subprocess.Popen(command, env=cli.variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        stdout, lines = process.stdout, list[bytes]()
        reader = threading.Thread(target=lambda: lines.extend(iter(stdout.readline, b"")))
        reader.start()
        try:
            assert eventually(lambda: len(lines) == 1)
            (folder / DAY).write_text("- from here\n")
            assert eventually(lambda: [file.path for file in server.files()] == [DAY])
            server.put("MEMORY.md", "- from there\n")
            assert eventually((folder / "MEMORY.md").exists)
            assert eventually(lambda: len(lines) == 3)
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 0
            reader.join(60)
        finally:
            process.kill()
        assert process.stderr is not None and process.stderr.read() == b""
    told = [json.loads(line) for line in lines]
    assert [[(step["path"], step["action"]) for step in each["steps"]] for each in told] == [
        [], [(DAY, "create")], [("MEMORY.md", "download")],
    ]  # fmt: skip
