"""More than a server can do: a burst of contexts, and many mixed connections for minutes, each on a server of its own.

`python -m tests.campaigns.overload [burst|mixed] [--contexts 900] [--connections 100] [--seconds 180]`

`burst` sends all contexts at once, one connection each, and asks for the health of the server beside them. `mixed` has
connections that search, append, make contexts and talk through the gateway one after the other, and that go on at once
after a refusal, as the worst of clients do. One line of JSON: answers by status, those that are neither good nor a 503
with `Retry-After`, the times of each kind and of the health, and the processor time of the server. The clients run in
another process than the server, on the same machine.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx

from indexer.testing import Request
from memory_service.testing import ScriptedServer, ScriptedStep
from tests.campaigns.load import processor_seconds
from tests.serving import NO_TLS, W, own_process

_WORDS = (
    "deploy window quokka budget 部署 周二 green door invoice 会议 rollback 发票 release latency cache owner".split()
)
_MIX = ("search", "append", "context", "gateway")
_NOTES = 300
_LOOK_EVERY_SECONDS = 0.1


@dataclass(slots=True)
class Tally:
    """What was answered, and how long it took, by kind."""

    statuses: Counter[str] = field(default_factory=Counter)
    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    odd: list[str] = field(default_factory=list)

    async def ask(self, kind: str, url: str, path: str, body: dict[str, Any] | None = None) -> None:
        """Send one request on a connection of its own and note its answer."""
        started = time.perf_counter()
        try:
            status, headers, content = await _exchanged(url, path, body)
        except (OSError, ValueError) as error:
            self.odd.append(f"{kind}: {type(error).__name__}")
            return
        self.seconds[kind].append(time.perf_counter() - started)
        self.statuses[f"{kind} {status}"] += 1
        if status >= 400 and not (status == 503 and b"retry-after: " in headers.lower()):
            self.odd.append(f"{kind}: {status} {content[:200]!r}")

    def summary(self, pid: int, worked: float, seconds: float) -> dict[str, Any]:
        """All of it as values for JSON."""
        return {
            "seconds": round(seconds, 1),
            "processor_seconds": round(processor_seconds(pid) - worked, 1),
            "load_average": os.getloadavg()[0],
            "answers": dict(sorted(self.statuses.items())),
            "odd": len(self.odd),
            "first_odd": self.odd[:5],
            "seconds_of": {kind: _times(each) for kind, each in sorted(self.seconds.items())},
        }


def _times(seconds: list[float]) -> dict[str, float]:
    ordered = sorted(seconds)
    at = {"p50": 0.5, "p99": 0.99, "max": 1.0}
    return {name: round(ordered[min(int(len(ordered) * share), len(ordered) - 1)], 3) for name, share in at.items()}


def _words(number: int) -> str:
    return " ".join(_WORDS[(number * step) % len(_WORDS)] for step in range(1, 8))


def _request(kind: str, client: int, number: int) -> tuple[str, dict[str, Any]]:
    said = _words(client + number)
    asked = {"role": "user", "content": f"c{client}x{number}: {said}?"}
    kinds: dict[str, tuple[str, dict[str, Any]]] = {
        "search": (f"{W}/search", {"query": said}),
        "append": (f"{W}/sessions/s{client}-{number // 100}/messages", {"messages": [asked]}),
        "context": (f"{W}/context", {"query": said, "budget_tokens": 1000}),
        "gateway": ("/v1/chat/completions", {"model": "gpt-4o", "stream": bool(number % 8), "messages": [asked]}),
    }
    return kinds[kind]


async def _exchanged(url: str, path: str, body: dict[str, Any] | None) -> tuple[int, bytes, bytes]:
    """Status, head and body of an answer. A bare socket: a client library takes more of a processor than the server."""
    content = b"" if body is None else json.dumps(body).encode()
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    try:
        head = f"{'GET' if body is None else 'POST'} {path} HTTP/1.1\r\nHost: {parts.netloc}\r\nConnection: close\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
        writer.write(head.encode() + content)
        headers, _, answer = (await reader.read()).partition(b"\r\n\r\n")
    finally:
        writer.close()
    return int(headers.split(b" ", 2)[1]), headers, answer


async def _looks(url: str, tally: Tally, asked: asyncio.Future[Any], every_seconds: float) -> None:
    """Look at health, numbers and status time and again, on connections of their own as an orchestrator does."""
    while not asked.done():
        for path in ("/health/ready", "/health/live", "/metrics", f"{W}/status"):
            await tally.ask(path.rpartition("/")[2], url, path)
        await asyncio.sleep(every_seconds)
    await asked


async def burst(url: str, contexts: int) -> Tally:
    """So many contexts at once, and looks at the health until all are answered."""
    tally = Tally()
    requests = [_request("context", number, number) for number in range(contexts)]
    asked = asyncio.gather(*(tally.ask("context", url, path, body) for path, body in requests))
    await _looks(url, tally, asked, _LOOK_EVERY_SECONDS)
    return tally


async def mixed(url: str, connections: int, seconds: float) -> Tally:
    """So many connections for a time, each of which asks one thing after the other."""
    tally, ends = Tally(), time.perf_counter() + seconds

    async def connection(client: int) -> None:
        number = client
        while time.perf_counter() < ends:
            kind = _MIX[number % len(_MIX)]
            await tally.ask(kind, url, *_request(kind, client, number))
            number += 1

    asked = asyncio.gather(*map(connection, range(connections)))
    await _looks(url, tally, asked, 10 * _LOOK_EVERY_SECONDS)
    return tally


class _Speaker(ScriptedServer):
    """A model that always has something to say."""

    def step(self, request: Request) -> ScriptedStep:
        """See `ScriptedServer`."""
        return "The release goes out on Tuesday."


@contextmanager
def server(environment: dict[str, str]) -> Iterator[tuple[str, int]]:
    """A server with some notes and a scripted model behind its gateway, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder, _Speaker() as upstream:
        home = Path(folder)
        (home / "default" / "memory").mkdir(parents=True)
        lines = [f"- Note {at}: {_words(at)}." for at in range(_NOTES)]
        (home / "default" / "memory" / "2026-03-02.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
        upstreams = json.dumps({"scripted": {"protocol": "openai", "base_url": upstream.url}})
        given = {"MEMORY_SERVICE_GATEWAY__UPSTREAMS": upstreams, **environment}
        with own_process(home, given) as (url, pid):
            httpx.post(f"{url}{W}/reindex", json={}, trust_env=False, verify=NO_TLS)
            httpx.post(f"{url}{W}/search", json={"query": "first"}, trust_env=False, timeout=60, verify=NO_TLS)
            yield url, pid


def measure(ask: Callable[[str], Coroutine[Any, Any, Tally]], environment: dict[str, str]) -> dict[str, Any]:
    """Run one of both on a server of its own."""
    with server(environment) as (url, pid):
        worked, started = processor_seconds(pid), time.perf_counter()
        tally: Tally = asyncio.run(ask(url))
        return tally.summary(pid, worked, time.perf_counter() - started)


def main() -> None:
    """Run it and print a line of JSON for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", choices=["burst", "mixed"], default=["burst", "mixed"])
    parser.add_argument("--contexts", type=int, default=900)
    parser.add_argument("--connections", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=180)
    parser.add_argument("--embedding-model", default="minilm")
    given = parser.parse_args()
    environment = {"MEMORY_SERVICE_EMBEDDING_MODEL": given.embedding_model}
    asks: dict[str, Callable[[str], Coroutine[Any, Any, Tally]]] = {
        "burst": lambda url: burst(url, given.contexts),
        "mixed": lambda url: mixed(url, given.connections, given.seconds),
    }
    for what in given.what:
        print(json.dumps({"what": what, **measure(asks[what], environment)}), flush=True)


if __name__ == "__main__":
    main()
