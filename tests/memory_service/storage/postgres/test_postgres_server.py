"""A real server and real commands on a real database, which is away at the start, and gone in the middle."""

from __future__ import annotations

import json
import os
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
from tests.waiting import PATIENCE_SECONDS

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
                server.start()
                soon(lambda: http.post(f"{W}/memories", json=MEMORY))
                assert MEMORY["text"] in found(http)[0]
                server.kill()
            assert not any("s3cret" in text for text in texts)
    finally:
        server.close()
