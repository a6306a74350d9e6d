"""Mixed load on a server of its own: what memory it takes, and how long each kind of request waits.

`python -m tests.campaigns.load [--requests 11000] [--connections 8] [--embedding-model minilm]`

Each connection remembers, searches, appends messages, and makes contexts, in a fixed order of kinds. One line of JSON:
resident memory before and after, and the median and the 99th percentile of each kind.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import threading
import time
from collections import defaultdict
from pathlib import Path

import httpx

from tests.serving import W, own_process

# Of twenty requests.
_MIX = ("search", "append", "remember", "search", "context", "append", "search", "remember", "search", "session") * 2
_WORDS = (
    "deploy window quokka budget 部署 周二 green door invoice 会议 rollback 发票 release latency cache owner".split()
)


def resident_bytes(pid: int) -> int:
    """What a process has in memory now."""
    status = Path(f"/proc/{pid}/status").read_text()
    [line] = [line for line in status.splitlines() if line.startswith("VmRSS:")]
    return int(line.split()[1]) * 1024


class Connection:
    """One client that asks one thing after another, and keeps what each took."""

    def __init__(self, url: str, number: int) -> None:
        self.seconds: dict[str, list[float]] = defaultdict(list)
        self.refused: list[str] = []
        self._number, self._count = number, 0
        self._session = f"load-{number}"
        self._http = httpx.Client(base_url=url, timeout=60, trust_env=False)

    def run(self, requests: int) -> None:
        """Ask so many times."""
        with self._http:
            for at in range(requests):
                self._count = at
                self._ask(_MIX[(at + self._number) % len(_MIX)])

    def _ask(self, kind: str) -> None:
        path, body = self._request(kind)
        started = time.perf_counter()
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


def measure(requests: int, connections: int, environment: dict[str, str]) -> dict[str, object]:
    """Run it; gives what was measured."""
    with tempfile.TemporaryDirectory() as home, own_process(Path(home), environment) as (url, pid):
        httpx.post(f"{url}{W}/memories", json={"text": "The first one makes the workspace."}, trust_env=False)
        httpx.post(f"{url}{W}/search", json={"query": "first"}, trust_env=False)
        before = resident_bytes(pid)
        clients = [Connection(url, number) for number in range(connections)]
        threads = [threading.Thread(target=client.run, args=(requests // connections,)) for client in clients]
        for session in {
            f"load-{n}-{part}" for n in range(connections) for part in range(requests // connections // 400 + 1)
        }:
            httpx.post(f"{url}{W}/sessions", json={"session_id": session, "context_window": 16000}, trust_env=False)
        started = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        seconds = time.perf_counter() - started
        return {
            "requests": requests,
            "connections": connections,
            "seconds": round(seconds, 1),
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
    arguments = parser.parse_args()
    environment = {"MEMORY_SERVICE_EMBEDDING_MODEL": arguments.embedding_model}
    print(json.dumps(measure(arguments.requests, arguments.connections, environment)))


if __name__ == "__main__":
    main()
