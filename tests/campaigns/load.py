"""Mixed load on a server of its own: what memory it takes, and how long each kind of request waits.

`python -m tests.campaigns.load [--requests 11000] [--connections 8] [--embedding-model minilm] [--home H --first N]`

With `--home` the run goes on in that folder, which stays; its requests count from `--first` for each connection, so a
short run on a home that a long one left tells what the end of the long one was like.

Each connection remembers, searches, appends messages, and makes contexts, in a fixed order of kinds. One line of JSON:
resident memory before and after, the server's processor time for each request, and the median and the 99th percentile
of each kind.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import threading
import time
from collections import defaultdict
from contextlib import nullcontext
from pathlib import Path

import httpx

from tests.serving import NO_TLS, W, own_process

# Of twenty requests.
_MIX = ("search", "append", "remember", "search", "context", "append", "search", "remember", "search", "session") * 2
_WORDS = (
    "deploy window quokka budget 部署 周二 green door invoice 会议 rollback 发票 release latency cache owner".split()
)

_TRIES = 4


def resident_bytes(pid: int) -> int:
    """What a process has in memory now."""
    status = Path(f"/proc/{pid}/status").read_text()
    [line] = [line for line in status.splitlines() if line.startswith("VmRSS:")]
    return int(line.split()[1]) * 1024


def processor_seconds(pid: int) -> float:
    """How long a process was on a processor until now."""
    times = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13]
    return sum(map(int, times)) / os.sysconf("SC_CLK_TCK")


class Connection:
    """One client that asks one thing after another, and keeps what each took."""

    def __init__(self, url: str, number: int) -> None:
        self.seconds: dict[str, list[float]] = defaultdict(list)
        self.refused: list[str] = []
        self._number, self._count = number, 0
        self._session = f"load-{number}"
        self._http = httpx.Client(base_url=url, timeout=60, trust_env=False, verify=NO_TLS)

    def run(self, requests: range) -> None:
        """Ask these, by their numbers."""
        with self._http:
            for at in requests:
                self._count = at
                self._ask(_MIX[(at + self._number) % len(_MIX)])

    def _ask(self, kind: str) -> None:
        path, body = self._request(kind)
        started = time.perf_counter()
        answer = self._http.post(f"{W}/{path}", json=body)
        for _ in range(_TRIES - 1):
            # A machine that others keep busy may answer a search late: it is sent again when the server says.
            if answer.status_code != 503:
                break
            time.sleep(int(answer.headers["Retry-After"]))
            answer = self._http.post(f"{W}/{path}", json=body)
        self.seconds[kind].append(time.perf_counter() - started)
        if not answer.is_success:
            self.refused.append(f"{kind}: {answer.status_code} {answer.text[:200]}")

    def _request(self, kind: str) -> tuple[str, dict[str, object]]:
        said = " ".join(_WORDS[(self._count * step + self._number) % len(_WORDS)] for step in range(1, 9))
        mark = f"c{self._number}x{self._count}"
        session = f"sessions/{self._session}-{self._count // 400}"
        messages = [{"role": "user", "content": f"{mark}: {said}?"}, {"role": "assistant", "content": f"{said}. " * 6}]
        kinds: dict[str, tuple[str, dict[str, object]]] = {
            "search": ("search", {"query": said}),
            "remember": ("memories", {"text": f"Client {self._number} keeps {mark}: {said}."}),
            "append": (f"{session}/messages", {"messages": messages}),
            "context": ("context", {"query": said, "budget_tokens": 1000}),
            "session": (f"{session}/context", {"system_prompt": "Be brief."}),
        }
        return kinds[kind]


def measure(
    requests: int, connections: int, environment: dict[str, str], *, home: Path | None = None, first: int = 0
) -> dict[str, object]:
    """Run it; gives what was measured.

    Args:
        requests: How many.
        connections: How many clients share them.
        environment: Settings of the server.
        home: Where to go on; a new one that is removed afterwards, unless given.
        first: The number of the first request of each connection; that of a home's earlier runs are taken.
    """
    numbers = range(first, first + requests // connections)
    with (
        nullcontext(home) if home else tempfile.TemporaryDirectory() as folder,
        own_process(Path(folder), environment) as (url, pid),
    ):
        httpx.post(
            f"{url}{W}/memories", json={"text": "The first one makes the workspace."}, trust_env=False, verify=NO_TLS
        )
        httpx.post(f"{url}{W}/search", json={"query": "first"}, trust_env=False, verify=NO_TLS)
        before = resident_bytes(pid)
        clients = [Connection(url, number) for number in range(connections)]
        threads = [threading.Thread(target=client.run, args=(numbers,)) for client in clients]
        for session in {
            f"load-{n}-{at // 400}" for n in range(connections) for at in numbers if at == first or at % 400 == 0
        }:
            httpx.post(
                f"{url}{W}/sessions",
                json={"session_id": session, "context_window": 16000},
                trust_env=False,
                verify=NO_TLS,
            )
        started, worked = time.perf_counter(), processor_seconds(pid)
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        seconds = time.perf_counter() - started
        return {
            "requests": requests,
            "connections": connections,
            "seconds": round(seconds, 1),
            "processor_ms_each": round((processor_seconds(pid) - worked) / len(numbers) / connections * 1000, 2),
            "before_mb": before >> 20,
            "after_mb": resident_bytes(pid) >> 20,
            "ms": {
                kind: _summary([s for client in clients for s in client.seconds[kind]]) for kind in sorted(set(_MIX))
            },
            "refused": [each for client in clients for each in client.refused][:5],
        }


def _summary(seconds: list[float]) -> dict[str, float]:
    ordered = sorted(seconds)
    return {
        "p50": round(statistics.median(ordered) * 1000, 1),
        "p99": round(ordered[int(len(ordered) * 0.99)] * 1000, 1),
        "max": round(ordered[-1] * 1000, 1),
    }


def main() -> None:
    """Run it and print one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=11_000)
    parser.add_argument("--connections", type=int, default=8)
    parser.add_argument("--embedding-model", default="minilm")
    parser.add_argument("--home", type=Path)
    parser.add_argument("--first", type=int, default=0)
    arguments = parser.parse_args()
    environment = {"MEMORY_SERVICE_EMBEDDING_MODEL": arguments.embedding_model}
    found = measure(arguments.requests, arguments.connections, environment, home=arguments.home, first=arguments.first)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
