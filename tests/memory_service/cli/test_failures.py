"""What goes wrong around the commands: places, settings, disks and pipes."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.memory_service.cli.commands import PROGRAM, WORDS_ALONE, CommandLine, Run


def test_an_empty_folder_stays_empty_until_something_is_written(tmp_path: Path) -> None:
    cli = CommandLine(home=tmp_path / "unused")
    environment = {name: value for name, value in cli.variables.items() if name != "MEMORY_SERVICE_HOME"}
    person = tmp_path / "person"
    person.mkdir()
    environment |= {"HOME": str(person), "USERPROFILE": str(person)}
    here = tmp_path / "here"
    here.mkdir()

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*PROGRAM, *arguments],
            cwd=here, env=environment, capture_output=True, text=True, timeout=240, check=False,
        )  # fmt: skip

    for arguments in (["search", "q"], ["context", "q"], ["status"], ["reindex"]):
        done = run(*arguments)
        assert done.returncode == 0 and done.stderr.count("\n") <= 1 and "error" not in done.stderr, arguments
    for arguments, missing in ((["get", "MEMORY.md"], "file MEMORY.md"), (["forget", "m0"], "workspace default in")):
        done = run(*arguments)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith(f"error: There is no {missing}") and done.stderr.count("\n") == 1
    assert run("doctor").returncode == 0
    assert [*here.iterdir(), *person.iterdir()] == []
    assert run("remember", "The first memory.").returncode == 0
    assert [path.name for path in (*here.iterdir(), *person.iterdir())] == [".memory-service"]
    assert "The first memory." in run("search", "memory").stdout


@pytest.mark.parametrize("command", [["status"], ["workspaces"], ["sessions", "list"], ["reindex"]])
def test_a_command_on_files_refuses_the_address_of_a_server(tmp_path: Path, command: list[str]) -> None:
    cli = CommandLine(home=tmp_path / "home", environment={**WORDS_ALONE, "MEMORY_SERVICE_URL": "http://127.0.0.1:1"})
    cli.run(*command).failed_with("MEMORY_SERVICE_URL names a server", "Unset it", "--home")
    assert not (tmp_path / "home").exists(), "nothing was written where the user did not mean it"
    empty = CommandLine(home=tmp_path / "home", environment={**WORDS_ALONE, "MEMORY_SERVICE_URL": ""})
    empty.ok("remember", "周二部署")
    cli.ok("status", "--home", str(tmp_path / "home"))


def test_a_server_is_not_begun_with_the_key_of_a_client(tmp_path: Path) -> None:
    key = {**WORDS_ALONE, "MEMORY_SERVICE_API_KEY": "k"}
    cli = CommandLine(home=tmp_path / "home", environment=key)
    cli.run("serve", "--port", "0").failed_with("MEMORY_SERVICE_API_KEY is the key of a client", "API_KEYS")


def test_an_unknown_workspace_is_not_made_by_a_look(cli: CommandLine) -> None:
    cli.ok("remember", "A note.")
    looked = cli.run("search", "note", "--workspace", "nowhere")
    assert (looked.code, looked.out, looked.err) == (0, "", f"nothing found in the workspace nowhere of {cli.home}\n")
    assert [path.name for path in cli.home.iterdir()] == ["default"]


@pytest.mark.parametrize(
    ("variables", "named"),
    [
        ({"MEMORY_SERVICE_COLOUR": "red"}, "'colour'"),
        ({"MEMORY_SERVICE_RANKING__MAGIC": "1"}, "'ranking.magic'"),
        ({"MEMORY_SERVICE_TIMZONE": "UTC"}, "'timzone'. Did you mean 'timezone'?"),
        ({"MEMORY_SERVICE_RECALL__MINRELEVANCE": ".1"}, "Did you mean 'min_relevance'?"),
        ({"MEMORY_SERVICE_COMPACTION__OVERRIDES": '{"keep_turn": 3}'}, "Did you mean 'keep_turns'?"),
        ({"MEMORY_SERVICE_EMBEDDING_MODEL": "word2vec"}, "'word2vec'"),
        ({"MEMORY_SERVICE_TIMEZONE": "Mars/Olympus"}, "'timezone'"),
        ({"MEMORY_SERVICE_PORT": "many"}, "'port'"),
    ],
)
def test_a_setting_that_cannot_be_is_named(tmp_path: Path, variables: dict[str, str], named: str) -> None:
    cli = CommandLine(home=tmp_path / "home", environment={**WORDS_ALONE, **variables})
    cli.run("remember", "A note.").failed_with(named)
    assert not cli.home.exists()


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ('colour = "red"\n', "'colour'"),
        ("port =\n", "memory-service.toml"),
        ('home = "x"\n', "--home"),
        ("\udce9", "memory-service.toml"),
    ],
)
def test_a_settings_file_that_cannot_be_is_named(cli: CommandLine, text: str, named: str) -> None:
    cli.home.mkdir()
    (cli.home / "memory-service.toml").write_bytes(text.encode("utf-8", "surrogateescape"))
    cli.run("remember", "A note.").failed_with(named)


def test_the_settings_file_counts_and_the_environment_wins(cli: CommandLine) -> None:
    cli.home.mkdir()
    (cli.home / "memory-service.toml").write_text('embedding_model = "word2vec"\n', "utf-8")
    cli.ok("remember", "A note.")  # the environment of the tests says "none"
    CommandLine(home=cli.home, environment={}).run("search", "note").failed_with("'word2vec'")


def test_a_misspelled_command_is_told_with_the_one_that_is_like_it(cli: CommandLine) -> None:
    for given, said in (("serch", "No such command 'serch'. Did you mean 'search'?"), ("x", "No such command 'x'.\n")):
        run = cli.run(given, "deploys")
        assert (run.code, run.out) == (2, "") and said in run.err


def test_lines_behind_the_end_of_a_file(cli: CommandLine) -> None:
    cli.write("MEMORY.md", ["- A note."])
    run = cli.run("get", "MEMORY.md", "--start-line", "7")
    assert (run.code, run.out, run.err) == (0, "", "(the file ends with line 1)\n")


def test_a_home_that_is_a_file_is_wrong_usage(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.write_text("a file", "utf-8")
    run = CommandLine(home=home).run("search", "note")
    assert run.code == 2 and str(home) in run.err


@pytest.mark.parametrize("command", [["search", "plants"], ["reindex"], ["status"], ["context", "plants"]])
def test_a_damaged_index_is_told_with_its_remedy(cli: CommandLine, command: list[str]) -> None:
    cli.write("MEMORY.md", ["- Live plants leave on Mondays."])
    (cli.workspace / "index.sqlite").write_bytes(b"this is no database" * 100)
    cli.run(*command).failed_with("damaged", "index.sqlite", "reindex")


def test_a_write_is_kept_beside_a_damaged_index_and_the_remedy_mends_it(cli: CommandLine) -> None:
    cli.ok("remember", "Live plants leave on Mondays.")
    (cli.workspace / "index.sqlite").write_bytes(b"this is no database" * 100)
    run = cli.run("remember", "Dead plants stay.")
    assert run.code == 0 and run.out.startswith("remembered") and "degraded: index: " in run.err
    (cli.workspace / "index.sqlite").unlink()
    cli.ok("reindex")
    printed = cli.ok("search", "plants")
    assert "Live plants" in printed and "Dead plants" in printed


def test_serve_refuses_an_open_address_without_a_key(cli: CommandLine) -> None:
    for host in ("0.0.0.0", "::", "192.0.2.1"):
        cli.run("serve", "--host", host).failed_with(host, "MEMORY_SERVICE_API_KEYS")
    assert not cli.home.exists()


def test_serve_names_a_port_in_use(cli: CommandLine) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        cli.run("serve", "--port", str(port)).failed_with(f"port {port}", "--port")


# Runs each command first where it may write, since who may not read our files may not read Python's modules either.
AS_NOBODY = """
import contextlib, io, json, os, sys
from memory_service.cli.root import main

def run(arguments):
    sys.argv[1:] = arguments
    try:
        main()
    except SystemExit as end:
        return end.code

scratch, arguments = sys.argv[1], sys.argv[2:]
with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
    run(["remember", "Something.", "--home", scratch])
    run([*arguments, "--home", scratch])
    run(["get", "memory/absent.md", "--home", scratch])
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
sys.exit(run(arguments))
"""


@pytest.fixture
def read_only() -> Iterator[CommandLine]:
    """An indexed home of one who may not change it; not below `tmp_path`, which only its owner can enter."""
    place = Path(tempfile.mkdtemp(prefix="memory-read-only-"))
    try:
        cli = CommandLine(home=place / "home")
        cli.ok("remember", "Live plants leave on Mondays.")
        cli.write("MEMORY.md", ["- Never deploy on Fridays."])
        for page in cli.home.rglob("*.md"):
            page.chmod(0o400)
        place.chmod(0o755)
        _give_away(cli.home)
        time.sleep(0.1)  # what was changed a moment ago would be looked at again
        cli.ok("reindex")
        _give_away(cli.home)
        for folder in (cli.home, *(path for path in cli.home.rglob("*") if path.is_dir())):
            folder.chmod(0o500)
        yield cli
    finally:
        for folder in (cli.home, *(path for path in cli.home.rglob("*") if path.is_dir())):
            folder.chmod(0o700)
        shutil.rmtree(place)


def _give_away(home: Path) -> None:
    """Make the user whom `AS_NOBODY` becomes the owner of a home."""
    if os.geteuid() == 0:
        for path in (home, *home.rglob("*")):
            if path.lstat().st_uid != 65534:  # else it would be another file by its times
                os.chown(path, 65534, 65534, follow_symlinks=False)


def as_nobody(cli: CommandLine, scratch: Path, *arguments: str) -> Run:
    """Run a command as one who may read a home and not write it."""
    done = subprocess.run(
        [sys.executable, "-c", AS_NOBODY, str(scratch), *arguments],
        env=cli.variables, capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    return Run(code=done.returncode, out=done.stdout, err=done.stderr)


def test_a_read_only_home_is_searched_and_not_written(read_only: CommandLine, tmp_path: Path) -> None:
    def run(*arguments: str) -> Run:
        return as_nobody(read_only, tmp_path / "scratch", *arguments)

    found = run("search", "plants")
    assert (found.code, found.err) == (0, "") and "Live plants leave" in found.out
    made = run("context", "plants")
    assert made.code == 0 and "Live plants leave" in made.out
    told, degraded = made.err.splitlines()
    assert "; receipt r" in told and degraded.startswith("degraded: receipt: ")
    assert run("get", "MEMORY.md").out == "- Never deploy on Fridays.\n"
    run("remember", "A new note.").failed_with("permission")
    run("forget", "m0123456789ab").failed_with("permission")
    doctor = run("doctor")
    assert (doctor.code, doctor.err) == (1, "")
    assert f"WRONG home: {read_only.home} cannot be used: it" in doctor.out


@pytest.mark.parametrize("command", ["search note -n 200", "search note -n 200 --json", "get MEMORY.md", "doctor"])
def test_a_reader_that_goes_away_is_no_failure(cli: CommandLine, command: str) -> None:
    cli.write("MEMORY.md", [f"- A long note with the number {number}: {'x' * 300}" for number in range(500)])
    cli.ok("reindex")
    # One byte is read, and the pipe closed, while the command has far more to say.
    with subprocess.Popen(
        [*PROGRAM, *command.split()], env=cli.variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.read(1)
        process.stdout.close()
        told = process.stderr.read()
        process.wait(timeout=120)
    assert told == b""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_output_to_a_full_disk_is_one_line(cli: CommandLine) -> None:
    cli.ok("remember", "A note.")
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [*PROGRAM, "search", "note"], env=cli.variables, stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 1
    assert done.stderr.startswith("error: The output cannot be written (") and done.stderr.count("\n") == 1


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX shells close a stream so")
def test_a_closed_standard_output_is_no_defect(cli: CommandLine) -> None:
    cli.ok("remember", "A note.")
    done = subprocess.run(
        ["sh", "-c", '"$@" >&-', "sh", *PROGRAM, "search", "note"],
        env=cli.variables, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "Traceback" not in done.stderr
