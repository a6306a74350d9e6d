"""Commands through a running server: found by the home or named, the same output, and what happens when it fails."""

from __future__ import annotations

import http.server
import json
import os
import re
import shutil
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from memory_service.home import ServerAddress, announce_server, server_of
from tests.memory_service.cli.commands import CommandLine, Run
from tests.serving import found_by_home, own_process
from tests.storages import read_documents

NOTES = (
    "## Deploys\n- Deploys go out on Tuesdays after the stand-up.\n- 部署安排在每周二上午十点。\n"
    '- A line with "quotes", a \\ backslash, \u2028 and \U0001f600.\n'
)
# A command that works on a database by itself names the home, a server the database.
_PLACE = re.compile(r"(?<=workspace default of )(127\.0\.0\.1:\d+/home_\w+|/.*home with 空格)(?=\.)")
_TIMES = re.compile(r'"took_ms": [0-9.e+-]+|r\d{8}-[0-9a-f]+|"created_at": "[^"]+"')
COMMANDS = [
    ["search", "when do we deploy?"],
    ["search", "什么时候部署", "--limit", "2", "--json"],
    ["search", "deploys", "--explain", "--json", "--since", "2020-01-01"],
    ["search", "zebra crossing", "--mode", "text"],
    ["search", "zebra crossing", "--mode", "text", "--json"],
    ["context", "when do we deploy?", "--system-prompt", "You help."],
    ["context", "部署", "--budget-tokens", "300", "--json", "--path", "memory/"],
    ["get", "memory/2026-11-20.md"],
    ["get", "memory/2026-11-20.md", "--start-line", "2", "--lines", "1", "--json"],
    ["get", "memory/nothing.md"],
    ["get", "../outside.md", "--json"],
    ["search", "q", "--workspace", "nowhere"],
    ["search", "q", "--workspace", "No/Where", "--json"],
    ["remember", "Deploys go out on Tuesdays.", "--date", "2026-11-21", "--tag", "ops"],
    ["remember", "Deploys go out on Tuesdays.", "--date", "2026-11-21", "--tag", "ops", "--json"],
]


@pytest.fixture
def cli(tmp_path: Path) -> CommandLine:
    line = CommandLine(home=tmp_path / "home with 空格")
    line.write("memory/2026-11-20.md", NOTES.split("\n"))
    line.ok("reindex")
    return line


@contextmanager
def process(cli: CommandLine, **environment: str) -> Iterator[str]:
    with own_process(cli.home, {**cli.environment, "MEMORY_SERVICE_TIMEZONE": "UTC", **environment}) as (url, _):
        yield url


def with_variables(cli: CommandLine, **environment: str) -> CommandLine:
    return CommandLine(home=cli.home, environment={**cli.environment, **environment})


def without_times(run: Run) -> tuple[int, str, str]:
    return run.code, _TIMES.sub("…", run.out), _TIMES.sub("…", _PLACE.sub("…", run.err))


def broken(cli: CommandLine, name: str = "model that does not load") -> CommandLine:
    """The same command line, which cannot work on the files any more: what it prints comes from a server."""
    return with_variables(cli, MEMORY_SERVICE_EMBEDDING_MODEL=name)


def test_a_command_prints_the_same_with_a_server_and_without_one(cli: CommandLine) -> None:
    cli.ok("remember", "Deploys go out on Tuesdays.", "--date", "2026-11-21", "--tag", "ops")
    cold = [cli.run(*command) for command in COMMANDS]
    with found_by_home(cli.home):
        for command, run in zip(COMMANDS, cold, strict=True):
            assert without_times(broken(cli).run(*command)) == without_times(run), command


def test_what_cannot_be_asked_is_told_the_same_with_a_server_and_without_one(cli: CommandLine) -> None:
    impossible = (
        ("context", "deploy", "-b", "99999999999", "--json"),
        ("search", "deploy \udcff"),
        ("get", "memory/a\udcffb.md"),
        ("history", "memory/a\udcffb.md"),
        ("edit", "m\udcff", "new"),
        ("entries", "--tag", "a\udcffb"),
        ("search", "  "),
        ("context", ""),
        ("remember", "  "),
        ("search", "部署" * 5_001),
        ("search", "deploy", "--min-relevance", "nan"),
    )
    cold = [cli.run(*words) for words in impossible]
    with found_by_home(cli.home):
        for words, without in zip(impossible, cold, strict=True):
            assert without_times(cli.run(*words)) == without_times(without), words


def test_a_memory_that_went_through_the_server_is_in_the_file(cli: CommandLine) -> None:
    with found_by_home(cli.home):
        told = broken(cli).ok("remember", "-", stdin="备份放在 /srv/backup。")
        assert told.startswith("remembered  m")
        assert "备份放在" in broken(cli).ok("search", "备份放在哪里", "--json")
    assert any("备份放在 /srv/backup。" in text for text in read_documents(cli.home).values())


def test_a_command_through_a_server_imports_next_to_nothing(cli: CommandLine) -> None:
    program = (
        "import json, sys\nfrom memory_service.cli.root import main\nsys.argv[1:] = ['search', 'deploys']\n"
        "try:\n    main()\nexcept SystemExit:\n    print(json.dumps([*sys.modules]), file=sys.stderr)"
    )
    with found_by_home(cli.home):
        done = subprocess.run(
            [sys.executable, "-c", program], env=broken(cli).variables, capture_output=True, text=True, check=True
        )
    loaded = set(json.loads(done.stderr))
    assert "Tuesdays" in done.stdout
    assert not loaded & {"pydantic", "httpx", "http.client", "numpy", "rich", "apsw", "fastapi", "indexer"}


def test_the_address_is_its_owners_alone_and_goes_with_the_server(cli: CommandLine) -> None:
    file = cli.home / ".server.json"
    with process(cli) as url:
        found = server_of(cli.home)
        assert found is not None and found.url == url
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        os.kill(found.pid, 0)
        file.chmod(0o644)
        assert server_of(cli.home) is None, "others may have written there"
        file.chmod(0o600)
    assert not file.exists()


def test_a_copy_of_a_home_that_is_served_is_another_home(cli: CommandLine, tmp_path: Path) -> None:
    with found_by_home(cli.home):
        copy = replace(cli, home=Path(shutil.copytree(cli.home, tmp_path / "copy")))
        assert server_of(cli.home) is not None and server_of(copy.home) is None
        copy.ok("remember", "The copy has a note of its own.")
    assert "of its own" in copy.ok("search", "note of its own")
    assert cli.run("search", "note of its own").out == ""


def test_of_two_servers_the_first_does_not_take_the_address_of_the_second_away(tmp_path: Path) -> None:
    with announce_server(tmp_path, "http://127.0.0.1:1", "first"):
        second = announce_server(tmp_path, "http://127.0.0.1:2", "second")
        second.__enter__()
    assert (found := server_of(tmp_path)) and found.instance == "second"
    second.__exit__(None, None, None)
    assert server_of(tmp_path) is None


def test_of_two_servers_the_first_is_found_again_when_the_second_ends(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        with announce_server(tmp_path, url, "first"):
            with announce_server(tmp_path, "http://127.0.0.1:2", "second"):
                assert (found := server_of(tmp_path)) and found.instance == "second"
            assert (found := server_of(tmp_path)) and (found.url, found.instance) == (url, "first")
        assert server_of(tmp_path) is None


@pytest.mark.parametrize("text", ["", "{", "[]", '{"url": 1}', '{"url": "http://x\\r\\nX: y", "instance": "a"}'])
def test_a_broken_address_file_is_none(cli: CommandLine, text: str) -> None:
    (cli.home / ".server.json").write_text(text)
    (cli.home / ".server.json").chmod(0o600)
    assert "Tuesdays" in cli.ok("search", "deploys")


def announce(home: Path, url: str, version: str) -> None:
    file = home / ".server.json"
    file.write_text(json.dumps(ServerAddress(url, "gone", 1, 0.0, version)._asdict()))
    file.chmod(0o600)


def test_the_address_of_a_server_that_was_killed_does_no_harm(cli: CommandLine) -> None:
    from memory_service._version import __version__

    with closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))
        announce(cli.home, f"http://127.0.0.1:{taken.getsockname()[1]}", __version__)
        assert "Tuesdays" in cli.ok("search", "deploys")


def test_another_server_at_the_address_of_a_dead_one_gets_nothing(cli: CommandLine, tmp_path: Path) -> None:
    from memory_service._version import __version__

    other = CommandLine(home=tmp_path / "other")
    with found_by_home(other.home) as url:
        announce(cli.home, url, __version__)
        cli.ok("remember", "For this home alone.")
        assert "this home alone" in cli.ok("search", "home alone")
    assert not (other.home / "default").exists()


def test_a_server_of_another_version_is_named_and_not_used(cli: CommandLine) -> None:
    with found_by_home(cli.home) as url:
        announce(cli.home, url, "9.9.9")
        run = cli.run("search", "deploys")
        assert run.code == 0 and "Tuesdays" in run.out
        assert f"{url} is version 9.9.9" in run.err and run.err.count("\n") == 1
        row = next(line for line in cli.ok("status").splitlines() if line.startswith("server"))
        assert url in row and "commands work without it" in row and "version 9.9.9" in row
        checked = cli.run("doctor")
        assert checked.code == 1 and "WRONG server: " in checked.out and "Restart it" in checked.out
    # Killed, and then the package was upgraded: nobody is there to be restarted.
    announce(cli.home, url, "9.9.9")
    assert "Tuesdays" in cli.ok("search", "deploys")
    assert "server     none on this home" in cli.ok("status").splitlines()


def test_status_and_doctor_show_the_server_that_commands_go_through(cli: CommandLine) -> None:
    assert json.loads(cli.ok("status", "--json"))["server"] is None
    assert "server:" not in cli.run("doctor").out
    with found_by_home(cli.home, api_keys={"right": "default"}) as url:
        found = server_of(cli.home)
        assert found is not None
        own = with_variables(cli, MEMORY_SERVICE_API_KEY="right")
        shown = {"url": url, "version": found.version, "pid": found.pid, "used": True, "reason": ""}
        assert json.loads(own.ok("status", "--json"))["server"] == shown
        row = f"server     {url}, version {found.version}, process {found.pid}; commands go through it"
        assert row in own.ok("status").splitlines()
        assert f"ok    server: {url}, version" in own.run("doctor").out
        stranger = json.loads(with_variables(cli, MEMORY_SERVICE_API_KEY="wrong").ok("status", "--json"))["server"]
        assert not stranger["used"] and "MEMORY_SERVICE_API_KEY" in stranger["reason"]


def test_a_key_is_needed_as_over_http(cli: CommandLine) -> None:
    with found_by_home(cli.home, api_keys={"right": "default"}) as url:
        assert "Tuesdays" in with_variables(broken(cli), MEMORY_SERVICE_API_KEY="right").ok("search", "deploys")
        for key in ("", "wrong"):
            run = with_variables(cli, MEMORY_SERVICE_API_KEY=key).run("search", "deploys")
            assert run.code == 0 and "Tuesdays" in run.out
            assert "MEMORY_SERVICE_API_KEY" in run.err and run.err.count("\n") == 1
        named = with_variables(cli, MEMORY_SERVICE_URL=url, MEMORY_SERVICE_API_KEY="wrong")
        named.run("search", "deploys").failed_with("no known key")


def test_the_server_that_is_named_is_used_wherever_the_home_is(cli: CommandLine, tmp_path: Path) -> None:
    away = CommandLine(home=tmp_path / "away")
    with found_by_home(cli.home) as url:
        named = with_variables(away, MEMORY_SERVICE_URL=f"{url}/")
        assert "Tuesdays" in named.ok("search", "deploys")
        assert not away.home.exists()
        # --home on the command line is nearer than the environment.
        looked = named.run("search", "deploys", "--home", str(away.home))
        assert looked.code == 0 and f"nothing found in the workspace default of {away.home}" in looked.err
        named.run("status").failed_with("MEMORY_SERVICE_URL names a server", "--home")


@pytest.mark.parametrize("url", ["ftp://x", "127.0.0.1:8765", "http://"])
def test_an_address_that_is_none_is_refused(cli: CommandLine, url: str) -> None:
    with_variables(cli, MEMORY_SERVICE_URL=url).run("search", "q").failed_with("no address of a server", "Set one")


def test_a_named_server_that_is_not_there_is_an_error(cli: CommandLine) -> None:
    with closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))
        named = with_variables(cli, MEMORY_SERVICE_URL=f"http://127.0.0.1:{taken.getsockname()[1]}")
        named.run("search", "q").failed_with("was not reached", "unset MEMORY_SERVICE_URL")


class _Stranger(http.server.BaseHTTPRequestHandler):
    answers: tuple[int, bytes] = (200, b"<html>")

    def do_POST(self) -> None:
        self.send_response(self.answers[0])
        self.end_headers()
        self.wfile.write(self.answers[1])

    def log_message(self, format: str, *args: object) -> None:
        """No word on stderr."""


@pytest.mark.parametrize("answer", [(200, b"<html>"), (200, b"[]"), (404, b"not here"), (404, b'{"detail": "x"}')])
def test_a_program_that_is_no_memory_service_is_told(cli: CommandLine, answer: tuple[int, bytes]) -> None:
    handler = type("Handler", (_Stranger,), {"answers": answer})
    with http.server.HTTPServer(("127.0.0.1", 0), handler) as stranger:
        threading.Thread(target=stranger.serve_forever, daemon=True).start()
        named = with_variables(cli, MEMORY_SERVICE_URL=f"http://127.0.0.1:{stranger.server_port}")
        named.run("search", "q").failed_with("version")
        stranger.shutdown()


def test_a_refused_command_asks_again_once_when_the_server_says(cli: CommandLine) -> None:
    asked, body = list[str](), b'{"error":{"code":"overloaded","message":"Too many searches wait. Nothing was done."}}'

    class Busy(_Stranger):
        def do_POST(self) -> None:
            asked.append(self.path)
            self.send_response(503)
            self.send_header("Retry-After", "1")
            self.end_headers()
            self.wfile.write(body)

    with http.server.HTTPServer(("127.0.0.1", 0), Busy) as stranger:
        threading.Thread(target=stranger.serve_forever, daemon=True).start()
        named = with_variables(cli, MEMORY_SERVICE_URL=f"http://127.0.0.1:{stranger.server_port}")
        named.run("search", "q").failed_with("Too many searches wait", "Nothing was done")
        stranger.shutdown()
    assert len(asked) == 2


def test_a_command_of_its_own_process_finds_the_server(cli: CommandLine) -> None:
    with process(cli):
        done = broken(cli).spawn("search", "deploys")
    assert (done.code, done.err) == (0, "") and "Tuesdays" in done.out


def test_a_search_waits_until_the_server_has_indexed_a_large_change(cli: CommandLine) -> None:
    with process(cli, MEMORY_SERVICE_EMBEDDING_MODEL="minilm"):
        cli.run("search", "zebra")
        # Large by its bytes: nobody indexes so much in passing.
        lines = [f"- Order {n} was packed at station {n % 9}, shelf {n}.".ljust(180) for n in range(200)]
        cli.write("memory/large.md", lines)
        time.sleep(1.2)  # a server looks for changes at most once a second
        quick = cli.run("search", "order 170 station", "--no-wait", "--json")
        found = cli.run("search", "order 170 station", "--json")
        assert found.code == quick.code == 0
        assert json.loads(found.out)["degraded"] == []
        assert "Order 170 " in json.loads(found.out)["results"][0]["text"]
