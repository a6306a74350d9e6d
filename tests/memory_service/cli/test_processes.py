"""A server, commands, a watcher and a library at once on one home: nothing is lost, nothing is in another's way."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from indexer.stores.base import passages_of
from indexer.stores.sqlite import SqliteStore
from memory_service import schemas
from memory_service.api.server import listening
from tests.memory_service.cli.commands import PROGRAM, CommandLine
from tests.serving import W
from tests.waiting import eventually

_SECONDS = 2.0
_ALLOWED = ("changed files", "another process")
# The command line with an embedder that needs no model.
WITH_VECTORS = """
import sys
from indexer.testing import HashEmbedder
from memory_service.runtime import models
from memory_service.cli.root import main
models.make_embedder = lambda settings: HashEmbedder()
main()
"""
# A library that writes files, indexes each at once, and must find it at once.
LIBRARY = """
import sys, time
from pathlib import Path
from indexer import Index, SearchFilter
from indexer.testing import HashEmbedder
root, end = Path(sys.argv[1]), time.time() + float(sys.argv[2])
index, number = Index(root, HashEmbedder()), 0
(root / "memory" / "lib").mkdir(parents=True, exist_ok=True)
while time.time() < end:
    day = f"2026-01-{number % 9 + 1:02}"
    path = f"memory/lib/{day}.md"
    draft = root / "memory" / "lib" / ".draft"
    draft.write_text("".join(f"- Library note {number} line {line}.\\n" for line in range(30)))
    draft.replace(root / path)
    index.sync([path], missing_ok=True)
    found = index.search(f"library note {number} line 3", limit=60, filter=SearchFilter(path_prefix="memory/lib/"))
    assert any(hit.passage.text == f"Library note {number} line 3." for hit in found.hits), (number, found.degraded)
    number += 1
    time.sleep(0.02)
print(number)
"""


@contextmanager
def spawned(cli: CommandLine, program: list[str], **pipes: Any) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(program, env=cli.variables, text=True, **pipes) as process:
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def served(cli: CommandLine, *options: str) -> Iterator[str]:
    with listening("127.0.0.1", 0) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    program = [sys.executable, "-c", WITH_VECTORS, "serve", "--port", url.rpartition(":")[2], *options]
    with spawned(cli, program, stderr=subprocess.DEVNULL) as process:
        assert eventually(lambda: ready(url))
        yield url
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0


def ready(url: str) -> bool:
    try:
        return httpx.get(f"{url}/health/ready", timeout=120, trust_env=False).is_success
    except httpx.TransportError:
        return False


@dataclass
class Client:
    """One who remembers, searches and forgets, and holds the service to its word."""

    url: str
    name: str
    alive: dict[str, str] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)

    def work(self, end: float) -> None:
        with httpx.Client(base_url=self.url, timeout=60, trust_env=False) as http:
            number = 0
            while time.time() < end or not self.gone:
                self._turn(http, number)
                number += 1

    def _turn(self, http: httpx.Client, number: int) -> None:
        text = f"Token{self.name}x{number}y was seen near the harbour."
        stored = answered(http.post(f"{W}/memories", json={"text": text}))
        self.alive[text] = stored["memory_id"]
        assert text in self.found(http, text), f"{text} was acknowledged and is not found"
        if number % 3 == 2:
            answered(http.delete(f"{W}/entries/{self.alive.pop(text)}"))
            self.gone.add(text)
            assert text not in self.found(http, text), f"{text} was erased and is found"
        for kept, allows in FILTERS:
            body = {"query": "library note harbour line 3", "limit": 20, **kept}
            results = answered(http.post(f"{W}/search", json=body))["results"]
            assert all(allows(result) for result in results), (kept, results)
            assert not {result["text"] for result in results} & self.gone

    def found(self, http: httpx.Client, text: str) -> list[str]:
        asked = {"query": text, "limit": 20, "mode": "text"}
        return [result["text"] for result in answered(http.post(f"{W}/search", json=asked))["results"]]


FILTERS: tuple[tuple[dict[str, Any], Callable[[dict[str, Any]], bool]], ...] = (
    ({"sources": ["sessions"]}, lambda result: bool(result["source"] == "sessions")),
    ({"path_prefix": "memory/lib/"}, lambda result: str(result["path"]).startswith("memory/lib/")),
    (
        {"since": "2026-01-03", "until": "2026-01-05", "sources": ["memory"]},
        lambda result: "2026-01-03" <= str(result["date"]) <= "2026-01-05",
    ),
    ({"mode": "vector", "until": "2026-01-02"}, lambda result: str(result["date"]) <= "2026-01-02"),
)


def answered(response: httpx.Response) -> Any:
    assert response.is_success, response.text
    answer = response.json()
    assert all(any(word in line for word in _ALLOWED) for line in answer.get("degraded", ())), answer["degraded"]
    return answer


def passages(root: Path) -> dict[str, list[object]]:
    """All that an index holds, but for its keys."""
    store = SqliteStore(root / "index.sqlite")
    try:
        known = {path: passages_of(store, path) for path in store.file_states()}
    finally:
        store.close()
    return {path: [(one.ordinal, one.passage) for one in known[path]] for path in sorted(known)}


def test_status_follows_the_workspace_until_it_is_ended(cli: CommandLine) -> None:
    cli.write("MEMORY.md", ["- The harbour opens at six."])
    program = [sys.executable, "-c", WITH_VECTORS, "status", "--follow", "--json"]
    with spawned(cli, program, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as follower:
        assert follower.stdout is not None
        number, event = 0, dict[str, Any]()
        lines = iter(follower.stdout.readline, "")
        with ThreadPoolExecutor(1) as reader:
            heard = reader.submit(lambda: next(line for line in lines if '"memories"' in line))
            while not heard.done():
                number += 1
                cli.write("memory/notes.md", [f"- Note {number}."])
                time.sleep(0.2)
            event = json.loads(heard.result())
        assert event["fields"] == {"count": 1, "path": "memory/notes.md"}
        follower.send_signal(signal.SIGINT)
        _, complaints = follower.communicate(timeout=240)
        assert (follower.returncode, complaints) == (0, "")


def test_a_crowd_on_one_home(cli: CommandLine, tmp_path: Path) -> None:
    cli.write("MEMORY.md", ["- The harbour opens at six."])
    command = [sys.executable, "-c", WITH_VECTORS]
    quiet: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with (
        served(cli) as url,
        spawned(cli, [*command, "reindex", "--watch", "--json"], **quiet) as watcher,
        ThreadPoolExecutor(4) as crowd,
    ):
        assert watcher.stdout is not None
        assert "error" not in json.loads(watcher.stdout.readline()), "it has begun, and hears a signal"
        end = time.time() + _SECONDS
        library_program = [sys.executable, "-c", LIBRARY, str(cli.workspace), str(_SECONDS)]
        library = crowd.submit(lambda: subprocess.run(library_program, env=cli.variables, check=False, **quiet))
        clients = [Client(url, name) for name in ("A", "B")]
        work = [crowd.submit(client.work, end) for client in clients]
        runs = []
        while time.time() < end:
            runs.append(subprocess.run([*command, "reindex", "--json"], env=cli.variables, check=False, **quiet))
        assert [(run.returncode, run.stderr) for run in runs] == [(0, b"")] * len(runs)
        for done in work:
            done.result()
        assert library.result().returncode == 0, library.result().stderr
        assert int(library.result().stdout) > 0
        assert all(client.alive and client.gone for client in clients)
        watcher.send_signal(signal.SIGINT)
        told, complaints = watcher.communicate(timeout=240)
        assert (watcher.returncode, complaints) == (0, "")
        assert all("error" not in json.loads(line) and not json.loads(line)["failed"] for line in told.splitlines())
        with httpx.Client(base_url=url, timeout=60, trust_env=False) as http:
            for client in clients:
                assert [text for text in client.alive if text not in client.found(http, text)] == []
                assert [text for text in client.gone if text in client.found(http, text)] == []
    last = list(clients[0].alive)[-1]
    found = subprocess.run([*command, "search", last, "--json"], env=cli.variables, check=True, **quiet)
    assert last in [result["text"] for result in json.loads(found.stdout)["results"]]
    assert subprocess.run([*command, "reindex"], env=cli.variables, check=False, **quiet).returncode == 0
    fresh = tmp_path / "fresh"
    shutil.copytree(cli.workspace, fresh / "default", ignore=shutil.ignore_patterns("index*"))
    environment = {**cli.variables, "MEMORY_SERVICE_HOME": str(fresh)}
    assert subprocess.run([*command, "reindex"], env=environment, check=False, **quiet).returncode == 0
    assert passages(cli.workspace) == passages(fresh / "default")


def test_a_command_that_is_killed_leaves_a_server_that_goes_on(cli: CommandLine) -> None:
    for number in range(40):
        cli.write(f"memory/big-{number:02}.md", [f"- Note {number} line {line} of a long file." for line in range(60)])
    command = [sys.executable, "-c", WITH_VECTORS]
    with (
        served(cli, "--no-watch") as url,
        httpx.Client(base_url=url, timeout=60, trust_env=False) as http,
        spawned(cli, [*command, "reindex"], stdout=subprocess.DEVNULL) as killed,
    ):
        assert eventually(lambda: len(stored_files(cli)) >= 3)
        os.kill(killed.pid, signal.SIGKILL)
        assert killed.wait(60) == -signal.SIGKILL
        assert len(stored_files(cli)) < 40, "it was killed before its end"
        status = answered(http.get(f"{W}/status"))
        assert status["dirty"] > 0
        assert status["watching"]["mode"] == "off"
        answered(http.post(f"{W}/memories", json={"text": "Written after the crash."}))
        asked = {"query": "written after the crash", "mode": "text"}
        assert answered(http.post(f"{W}/search", json=asked))["results"][0]["text"] == "Written after the crash."
        assert (
            subprocess.run([*command, "reindex"], env=cli.variables, check=False, capture_output=True).returncode == 0
        )
        status = answered(http.get(f"{W}/status"))
        assert (status["files"], status["passages"], status["embedded"], status["dirty"]) == (41, 2_401, 2_401, 0)


def stored_files(cli: CommandLine) -> list[str]:
    store = SqliteStore(cli.workspace / "index.sqlite")
    try:
        return list(store.file_states())
    finally:
        store.close()


def test_a_server_indexes_what_an_editor_saves_without_being_asked(cli: CommandLine) -> None:
    cli.write("MEMORY.md", ["- The harbour opens at six."])
    with served(cli) as url, httpx.Client(base_url=url, timeout=60, trust_env=False) as http:
        assert eventually(lambda: bool(answered(http.get(f"{W}/status"))["watching"]["mode"] == "events"))
        cli.write("memory/edited.md", [f"- Line {line} of what an editor saved." for line in range(2_000)])
        # Too large for a search to index in passing; and nobody searches.
        assert eventually(lambda: "memory/edited.md" in stored_files(cli))
        assert eventually(lambda: bool(answered(http.get(f"{W}/status"))["dirty"] == 0))


def test_a_follower_prints_a_line_for_each_change_and_ends_without_a_word(cli: CommandLine) -> None:
    cli.write("MEMORY.md", ["- The harbour opens at six."])
    lines = list[str]()
    program = [*PROGRAM, "reindex", "--watch"]
    with spawned(cli, program, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        stdout = process.stdout
        reader = threading.Thread(target=lambda: lines.extend(iter(stdout.readline, "")))
        reader.start()
        assert process.stderr.readline().startswith("watching for changes")
        assert eventually(lambda: edited(cli) and any(line.startswith("memory/a.md  +") for line in lines))
        process.send_signal(signal.SIGINT)
        assert (process.wait(timeout=120), process.stderr.read()) == (0, "")
        reader.join(60)
    assert lines[0].startswith("1 added")
    answer = cli.run("search", "edited", "--json").answer(schemas.SearchResults)
    assert answer.results[0].path == "memory/a.md"
    assert cli.run("reindex", "--watch", "--dry-run").code == 2


def edited(cli: CommandLine) -> bool:
    cli.write("memory/a.md", [f"- Edited at {time.monotonic()}."])
    return True
