"""What a person at a terminal sees that a pipe does not: the progress bar, and the end after Ctrl-C."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable

import pytest

from memory_service import schemas
from tests.memory_service.cli.commands import PROGRAM, CommandLine, Run

if sys.platform == "win32":
    pytest.skip("Windows has no pseudo-terminals of this kind", allow_module_level=True)

import fcntl
import pty
import struct
import termios

FILES = 20
NOTES = 12


@pytest.fixture
def large(cli: CommandLine) -> CommandLine:
    """A home whose reindex with the real model takes a second or more."""
    write_files(cli, FILES)
    return CommandLine(home=cli.home, environment={})


def write_files(cli: CommandLine, files: int) -> None:
    for file in range(files):
        notes = (
            f"- Order {file * NOTES + note} of {note * 7} pots was packed at station {file}." for note in range(NOTES)
        )
        cli.write(f"memory/file-{file:02}.md", [*notes])


def at_terminal(
    cli: CommandLine,
    *arguments: str,
    watch: Callable[[str, int], None] = lambda seen, pid: None,
    columns: int = 140,
    term: str = "xterm-256color",
) -> Run:
    """Run a command whose stderr is a terminal; `watch` sees what it showed so far, and the process."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    seen = b""
    # A test runner may say how wide its own terminal is.
    environment = {**cli.variables, "TERM": term, "COLUMNS": str(columns)}
    with subprocess.Popen(
        [*PROGRAM, *arguments], env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=theirs
    ) as process:
        os.close(theirs)
        try:
            while part := _read(ours):
                seen += part
                watch(seen.decode("utf-8", "replace"), process.pid)
        finally:
            os.close(ours)
        assert process.stdout is not None
        out = process.stdout.read().decode()
        code = process.wait(60)
    shown = seen.decode("utf-8", "replace")
    assert "NO_COLOR" not in environment or not re.search(r"\x1b\[[0-9;]*3\d", shown)
    assert term != "dumb" or "\x1b" not in shown
    return Run(code=code, out=out, err=re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown))


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # how Linux says that the other side has closed
        return b""


def test_a_terminal_gets_a_bar_with_rate_and_time_left(large: CommandLine) -> None:
    run = at_terminal(large, "reindex")
    assert run.code == 0
    assert re.search(rf"\b[1-9]\d*/{FILES * NOTES}\b", run.err)
    assert re.search(r"passages +[1-9]\d*/s", run.err)
    assert re.search(r"time left +\d:\d\d:\d\d", run.err)
    assert "memory/file-" in run.err
    assert run.out.startswith(f"{FILES} added") and "\x1b" not in run.out


@pytest.mark.parametrize("arguments", [("reindex",), ("sessions", "show", "none"), ("search", "q", "--limit", "no")])
def test_a_terminal_that_shows_no_colours_gets_none(large: CommandLine, arguments: tuple[str, ...]) -> None:
    at_terminal(large, *arguments, term="dumb", columns=40)


def test_a_narrow_terminal_shows_the_numbers_whole(large: CommandLine) -> None:
    run = at_terminal(CommandLine(home=large.home, environment={"NO_COLOR": "1"}), "reindex", columns=80)
    assert re.search(rf"\b[1-9]\d*/{FILES * NOTES} +passages  [1-9]\d*/s  time left +\d:\d\d:\d\d", run.err)


def test_a_terminal_of_40_columns_has_the_numbers_and_no_bar(large: CommandLine) -> None:
    run = at_terminal(large, "reindex", columns=40)
    assert "━" not in run.err
    assert re.search(rf"\b[1-9]\d*/{FILES * NOTES} passages \d+:\d\d", run.err)


def test_a_search_of_a_large_change_waits_with_a_bar(large: CommandLine) -> None:
    run = at_terminal(large, "search", "which station packed order 40?")
    assert re.search(rf"\b[1-9]\d*/{FILES * NOTES}\b", run.err) and "degraded" not in run.err
    assert run.out.startswith("1. ")


def test_an_error_has_no_colour_where_none_is_wanted(cli: CommandLine) -> None:
    plain = CommandLine(home=cli.home, environment={"NO_COLOR": "1"})
    assert at_terminal(plain, "get", "MEMORY.md").err.startswith("error: There is no file")
    cli.write("memory/bad.md", []).write_bytes(b"\xe9")
    assert "failed: memory/bad.md" in at_terminal(plain, "reindex").err


def test_a_pipe_gets_no_bar(cli: CommandLine) -> None:
    cli.write("MEMORY.md", ["- A note."])
    assert cli.ok("reindex").startswith("1 added")  # and not a byte on stderr
    assert at_terminal(cli, "reindex", "--json").answer(schemas.ReindexReport).unchanged == 1


def test_results_are_coloured_at_a_terminal_alone(cli: CommandLine) -> None:
    cli.ok("remember", "A note.")
    assert "\x1b" not in cli.ok("search", "note", "--explain")


def test_an_interrupted_reindex_ends_in_one_line_and_the_next_goes_on(large: CommandLine) -> None:
    # So many that half of them are left when the signal comes.
    files, sent = 2 * FILES, list[int]()
    write_files(large, files)

    def interrupt(seen: str, pid: int) -> None:
        if not sent and re.search(rf"[1-9]\d\d/{files * NOTES}\b", seen):
            sent.append(pid)
            os.kill(pid, signal.SIGINT)

    for _ in range(5):
        run = at_terminal(large, "reindex", watch=interrupt)
        assert sent, "the reindex shows how far it is"
        if run.code:
            break
        # It had ended when the signal came: a busy machine shows its lines late.
        sent.clear()
        for file in large.workspace.glob("index*"):
            file.unlink()
    assert run.code in (1, 130) and run.out == ""
    assert "Traceback" not in run.err
    assert run.err.rstrip().splitlines()[-1].strip() == "Aborted!"
    planned = large.run("reindex", "--dry-run", "--json").answer(schemas.ReindexReport)
    assert planned.unchanged >= 1 and planned.added == files - planned.unchanged
    after = large.run("reindex", "--json").answer(schemas.ReindexReport)
    assert (after.added, after.unchanged) == (planned.added, planned.unchanged)
    assert after.embedded == planned.added * NOTES
