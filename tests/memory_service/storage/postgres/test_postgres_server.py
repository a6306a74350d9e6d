"""A real server and real commands on a real database, which is away at the start, and gone in the middle."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.postgres import NO_SERVER, PostgresServer, is_installed
from tests.serving import NO_TLS, W, own_process
from tests.waiting import PATIENCE_SECONDS, until

pytestmark = pytest.mark.skipif(not is_installed(), reason=NO_SERVER)
MEMORY = {"text": "The parcel goes out on Tuesdays."}


def environment(address: str) -> dict[str, str]:
    return {
        "MEMORY_SERVICE_DATABASE_URL": address,
        "MEMORY_SERVICE_TIMEZONE": "UTC",
        "MEMORY_SERVICE_EMBEDDING_MODEL": "none",
    }


def command(home: Path, address: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command on a home in a database."""
    return subprocess.run(
        [sys.executable, "-m", "memory_service", *arguments, "--home", str(home)],
        env={**os.environ, **environment(address)}, capture_output=True, text=True, timeout=120,
    )  # fmt: skip


@contextmanager
def client_of(home: Path, address: str) -> Iterator[httpx.Client]:
    with (
        own_process(home, environment(address), health="live") as (url, _),
        httpx.Client(base_url=url, timeout=120, verify=NO_TLS) as http,
    ):
        yield http


def soon(ask: Callable[[], httpx.Response], seconds: float = PATIENCE_SECONDS) -> Any:
    """The first answer that is none of a failure."""
    end = time.monotonic() + seconds
    while not (answer := ask()).is_success:
        assert time.monotonic() < end, answer.text
        time.sleep(0.05)
    return answer.json()


def found(http: httpx.Client) -> list[str]:
    answer = soon(lambda: http.post(f"{W}/search", json={"query": "when does the parcel go out?"}))
    return [result["text"] for result in answer["results"]]


def test_what_one_command_remembers_another_finds(migrated_database: str, tmp_path: Path) -> None:
    done = command(tmp_path / "a", migrated_database, "remember", MEMORY["text"])
    assert done.returncode == 0, done.stderr
    done = command(tmp_path / "b", migrated_database, "search", "when does the parcel go out?", "--json")
    assert MEMORY["text"] in json.loads(done.stdout)["results"][0]["text"]
    done = command(tmp_path / "c", migrated_database, "context", "parcel")
    assert MEMORY["text"] in done.stdout
    done = command(tmp_path / "c", migrated_database, "migrate")
    assert done.returncode == 0 and "up to date, nothing was done" in done.stderr
    done = command(tmp_path / "c", migrated_database, "doctor", "--json")
    checks = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
    assert [name for name, check in checks.items() if not check["ok"]] == [] and checks["locks"]["ok"]


def test_a_server_for_others_begins_without_its_database_and_lets_nobody_in_without_a_key(tmp_path: Path) -> None:
    server = PostgresServer()
    try:
        done = command(tmp_path, server.address(), "keys", "add", "own", "--json")
        key = {"X-API-Key": json.loads(done.stdout)["key"]}
        server.stop()
        open_to_others = {**environment(server.address()), "MEMORY_SERVICE_HOST": "0.0.0.0"}
        with (
            own_process(tmp_path, open_to_others, health="live") as (url, _),
            httpx.Client(base_url=url, timeout=120, verify=NO_TLS) as http,
        ):
            assert http.get("/v1/workspaces").status_code == 401
            assert http.get("/v1/workspaces", headers=key).status_code == 503
            server.start()
            assert soon(lambda: http.get("/v1/workspaces", headers=key)) is not None
            assert http.get("/v1/workspaces").status_code == 401
    finally:
        server.close()


def test_a_command_that_watches_goes_on_when_the_database_is_there_again(tmp_path: Path) -> None:
    server, log = PostgresServer(), tmp_path / "log"
    done = command(tmp_path / "b", server.address(), "remember", "The first parcel went out on Monday.")
    assert done.returncode == 0, done.stderr
    with log.open("wb") as writer:
        watching = subprocess.Popen(
            [sys.executable, "-m", "memory_service", "reindex", "--watch", "--home", str(tmp_path / "a")],
            env={**os.environ, **environment(server.address())}, stdout=writer, stderr=writer,
        )  # fmt: skip
    try:
        until(lambda: "watching for changes" in log.read_text())
        server.stop()
        until(lambda: "failed: The database" in log.read_text())
        server.start()
        until(lambda: "watching again" in log.read_text())
    finally:
        watching.send_signal(signal.SIGINT)
        watching.wait(PATIENCE_SECONDS)
        server.close()


def test_commands_take_no_server_that_has_its_memories_elsewhere(migrated_database: str, tmp_path: Path) -> None:
    plain = {name: text for name, text in environment("").items() if name != "MEMORY_SERVICE_DATABASE_URL"}
    with own_process(tmp_path, plain) as (url, _):
        done = command(tmp_path, migrated_database, "remember", MEMORY["text"])
        assert done.returncode == 0 and f"the database was used, as the server at {url}" in done.stderr
        assert not (tmp_path / "default" / "memory").exists()
    with own_process(tmp_path, environment(migrated_database)) as (url, _):
        done = command(tmp_path, migrated_database, "search", "parcel")
        assert MEMORY["text"] in done.stdout and "was used" not in done.stderr
        # Whoever names no database means that of the server, where a command goes through it, and is warned elsewhere.
        bare = {name: text for name, text in os.environ.items() if name != "MEMORY_SERVICE_DATABASE_URL"} | plain
        for arguments, words in (("search", "parcel"), MEMORY["text"]), (("sessions", "list"), "set database_url"):
            done = subprocess.run(
                [sys.executable, "-m", "memory_service", *arguments, "--home", str(tmp_path)],
                env=bare, capture_output=True, text=True, timeout=120,
            )  # fmt: skip
            assert done.returncode == 0 and words in done.stdout + done.stderr


def test_a_database_that_is_away_is_503_and_heals_without_a_restart(tmp_path: Path) -> None:
    server = PostgresServer(is_durable=True)
    server.stop()
    try:
        address = server.address().replace("postgres@", "postgres:s3cret@")
        with client_of(tmp_path, address) as http:
            texts = list[str]()
            for _ in range(2):
                for answer in (
                    http.post(f"{W}/memories", json=MEMORY),
                    http.post(f"{W}/search", json={"query": "parcel"}),
                    http.get(f"{W}/status"),
                    http.post(f"{W}/sessions", json={"title": "talk"}),
                ):
                    assert answer.status_code == 503, answer.text
                    error = answer.json()["error"]
                    assert error["code"] == "storage_failed" and "Start it" in error["message"]
                    texts.append(answer.text)
                ready = http.get("/health/ready")
                # Without a key nobody learns where the database is.
                assert ready.status_code == 503 and "The database of this server failed" in ready.text
                assert "127.0.0.1" not in ready.text and "Start it" in ready.text
                server.start()
                soon(lambda: http.post(f"{W}/memories", json=MEMORY))
                assert MEMORY["text"] in found(http)[0]
                server.kill()
            assert not any("s3cret" in text for text in texts)
    finally:
        server.close()
