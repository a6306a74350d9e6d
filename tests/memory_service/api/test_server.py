"""The server as a process of its own: what it says, when it refuses, how it ends."""

from __future__ import annotations

import os
import pty
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from memory_service.api.server import listening, serve
from memory_service.errors import InvalidRequest
from tests.serving import settings

PROGRAM = """
import sys
from memory_service.api.server import listening, serve
from memory_service.config import load_settings
serve(load_settings(home=sys.argv[1], port=0, embedding_model="none"))
"""


def test_it_prints_one_line_with_its_address_and_ends_when_told_to(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MEMORY_SERVICE_")}
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(tmp_path)], stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        assert str(tmp_path) in line and "model none" in line
        url = line.split(" ")[3]
        answer = httpx.get(f"{url}/version", trust_env=False, timeout=120)
        assert answer.json()["embedding_model"] == "none"
        assert "server" not in answer.headers
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
        assert process.stderr.read() == ""


def statuses(url: str, *keys: str) -> list[int]:
    """What a route answers to each key."""
    with httpx.Client(trust_env=False, timeout=120) as http:
        return [http.get(f"{url}/v1/workspaces", headers={"X-API-Key": key}).status_code for key in keys]


def test_keys_are_read_anew_on_sighup(tmp_path: Path) -> None:
    file = tmp_path / "memory-service.toml"
    file.write_text('api_keys = {first = "*", second = "team"}\n')
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MEMORY_SERVICE_")}
    with (
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(tmp_path)], stderr=subprocess.PIPE, text=True, env=environment
        ) as process,
        httpx.Client(trust_env=False, timeout=120) as connected,
    ):
        assert process.stderr is not None
        url = process.stderr.readline().split(" ")[3]
        assert statuses(url, "first", "second", "third") == [200, 200, 401]
        assert connected.get(f"{url}/v1/workspaces", headers={"X-API-Key": "second"}).status_code == 200

        file.write_text('api_keys = {first = "*", third = "team"}\n')
        process.send_signal(signal.SIGHUP)
        assert "The keys were read anew: 2." in process.stderr.readline()
        assert statuses(url, "first", "second", "third") == [200, 401, 200]
        assert connected.get(f"{url}/v1/workspaces", headers={"X-API-Key": "third"}).status_code == 200

        for broken in ("api_keys = {", 'api_keys = {fourth = "Team"}', "", 'api_keys = {fourth = "*"}\nprot = 1'):
            file.write_text(broken)
            process.send_signal(signal.SIGHUP)
            line = process.stderr.readline()
            assert "those of before are in use" in line and "fourth" not in line
            assert statuses(url, "first", "third", "fourth") == [200, 200, 401]
        process.send_signal(signal.SIGTERM)
        assert process.wait(120) == 0
        assert process.stderr.read() == ""


def test_a_server_ends_with_the_terminal_that_it_was_started_in(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MEMORY_SERVICE_")}
    window, terminal = pty.openpty()
    program = f"import os\nos.login_tty({terminal})\n{PROGRAM}"
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)], pass_fds=[terminal], env=environment
    ) as server:
        os.close(terminal)
        read = b""
        while not read.endswith(b"\n"):
            read += os.read(window, 4096)
        assert httpx.get(f"{read.decode().split(' ')[3]}/health/live", trust_env=False, timeout=120).status_code == 200
        os.close(window)
        assert server.wait(120) == 0


def test_a_port_in_use_is_one_clear_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(InvalidRequest, match=f"127.0.0.1 port {port}"):
            serve(settings(tmp_path, port=port, embedding_model="none"))


def test_small_answers_are_not_held_back(tmp_path: Path) -> None:
    with listening("127.0.0.1", 0) as listener:
        assert listener.proto == socket.IPPROTO_TCP
        with socket.create_connection(listener.getsockname()):
            accepted, _ = listener.accept()
            with accepted:
                assert accepted.proto == socket.IPPROTO_TCP


def test_an_open_address_without_a_key_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="there is no API key"):
        serve(settings(tmp_path, host="0.0.0.0", port=0))
