"""The speed of durable writes over HTTP: several clients, each asking for what it has just written.

`python -m tests.benchmarks.writes [--clients 8] [--memories 1000] [--embedding-model minilm]`

Every memory is on disk and indexed when the answer comes; each client searches for its own at once and
counts those it does not find. The reference of the same run is an append and an fsync of the same lines
by one process.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import threading
import time
from pathlib import Path

from memory_service import MemoryClient
from tests.serving import running_process


def _client(url: str, number: int, count: int, search: bool, times: list[float], missed: list[str]) -> None:
    with MemoryClient(url, workspace="writes") as memory:
        for i in range(count):
            text = f"Client {number} keeps item {i} in box c{number}x{i}."
            started = time.perf_counter()
            memory.remember(text)
            times.append(time.perf_counter() - started)
            if search and not any(
                f"c{number}x{i}." in hit.text for hit in memory.search(f"c{number}x{i}", limit=3).results
            ):
                missed.append(text)


def measure(url: str, clients: int, memories: int, *, search: bool) -> dict[str, float]:
    """Writes per second, latencies, and how many were not found at once."""
    times, missed = list[float](), list[str]()
    share = memories // clients
    offset = clients if search else 0
    threads = [
        threading.Thread(target=_client, args=(url, offset + number, share, search, times, missed))
        for number in range(clients)
    ]
    started = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.perf_counter() - started
    ordered = sorted(times)
    return {
        "clients": clients,
        "writes_per_second": round(len(times) / seconds, 1),
        "p50_ms": round(statistics.median(times) * 1000, 1),
        "p99_ms": round(ordered[int(len(ordered) * 0.99)] * 1000, 1),
        "not_found": len(missed),
    }


def bare_fsyncs(folder: Path, count: int) -> float:
    """Appends with an fsync each, per second, by one process on this disk."""
    with (folder / "bare").open("ab", buffering=0) as file:
        started = time.perf_counter()
        for i in range(count):
            file.write(f"- line {i}\n".encode())
            os.fsync(file.fileno())
        return count / (time.perf_counter() - started)


def main() -> None:
    """Run both and print one line of JSON each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--memories", type=int, default=1000)
    parser.add_argument("--embedding-model", default="minilm")
    arguments = parser.parse_args()
    environment = {"MEMORY_SERVICE_EMBEDDING_MODEL": arguments.embedding_model}
    with tempfile.TemporaryDirectory() as home, running_process(Path(home), environment) as url:
        print(json.dumps({"bare_fsyncs_per_second": round(bare_fsyncs(Path(home), 500))}))
        with MemoryClient(url, workspace="writes") as memory:
            memory.remember("The first one loads the model.")
        print(json.dumps({"writes": measure(url, arguments.clients, arguments.memories, search=False)}))
        print(json.dumps({"writes_and_searches": measure(url, arguments.clients, arguments.memories, search=True)}))


if __name__ == "__main__":
    main()
