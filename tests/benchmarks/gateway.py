"""What the gateway adds to a call: the same scripted provider asked directly and through it, turn about, in one run.

`python -m tests.benchmarks.gateway [--talks 10] [--turns 12] [--memories 300] [--streams 50] [--megabytes 32]
[--long 600] [--only processor] [--json]`

Talks grow as a client's do, each call with all that was said before, and every turn asks for what is remembered. Per
protocol: medians to the whole answer and to the first piece of a stream, direct, through the gateway, and with memory
left out; and what a call takes of the server's processors, in a short talk and in a long one, all that it leaves to
the background included. Then streams at once, each read to its end and looked for in its session, and the server's
memory while one long answer streams through.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import httpx

from memory_service.testing import Reply, ScriptedServer
from tests.campaigns.load import processor_seconds, resident_bytes
from tests.serving import NO_TLS, W, own_process

_ASKED_AGAIN = 60  # calls of one stream, at most
_SAID = "They go out on Tuesdays, after the stand-up, and Dana signs them off."
_PROTOCOLS = {"chat": "chat/completions", "messages": "messages", "responses": "responses"}
_SAMPLE_SECONDS = 0.01
_WARM_TURNS = 4
_REST_SECONDS = 1.5
_LINE = "The pots of clay stand on their shelf, each with a label in ink. "


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    """A base URL, and headers that say what memory does there."""

    name: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)


@contextmanager
def gateway_process(
    home: Path, upstream: str, environment: Mapping[str, str] = MappingProxyType({})
) -> Iterator[tuple[str, int]]:
    """A server of its own before an upstream that speaks all protocols; gives its URL and its process."""
    upstreams = {
        "openai": {"protocol": "openai", "base_url": upstream},
        "anthropic": {"protocol": "anthropic", "base_url": upstream.removesuffix("/v1")},
    }
    with own_process(home, {**environment, "MEMORY_SERVICE_GATEWAY__UPSTREAMS": json.dumps(upstreams)}) as running:
        yield running


def turn_body(protocol: str, messages: list[dict[str, Any]], *, stream: bool) -> dict[str, Any]:
    """The body of a call that says all this."""
    body: dict[str, Any] = {"model": "scripted", "stream": stream}
    body["input" if protocol == "responses" else "messages"] = messages
    return body | ({"max_tokens": 500} if protocol == "messages" else {})


def asked(http: httpx.Client, door: Door, protocol: str, body: dict[str, Any]) -> tuple[float, float]:
    """Seconds to the first piece of the answer and to its end."""
    begun = time.perf_counter()
    with http.stream("POST", f"{door.url}/{_PROTOCOLS[protocol]}", json=body, headers=door.headers) as answer:
        pieces = answer.iter_raw()
        next(pieces)
        first = time.perf_counter() - begun
        for _ in pieces:
            pass
        assert answer.is_success, answer.status_code
    return first, time.perf_counter() - begun


def compared(
    doors: list[Door], protocol: str, talks: int, turns: int, *, stream: bool
) -> dict[str, tuple[float, float]]:
    """Median milliseconds to the first piece and to the end, by door."""
    seconds: dict[str, list[tuple[float, float]]] = defaultdict(list)
    with httpx.Client(timeout=60, trust_env=False, verify=NO_TLS) as http:
        for talk in range(talks):
            said: list[dict[str, Any]] = []
            for turn in range(turns):
                asking = f"Which day is service {(talk * turns + turn) % 97} deployed, {protocol} {stream} {talk}?"
                said.append({"role": "user", "content": asking})
                body = turn_body(protocol, said, stream=stream)
                for door in doors:
                    seconds[door.name].append(asked(http, door, protocol, body))
                said.append({"role": "assistant", "content": _SAID})
    return {
        name: (_median_ms([first for first, _ in times]), _median_ms([whole for _, whole in times]))
        for name, times in ((name, times[_WARM_TURNS:]) for name, times in seconds.items())
    }


def processor_ms(door: Door, pid: int, protocol: str, long: int, *, talks: int, turns: int) -> float:
    """Milliseconds of the server's processors that a call takes, in talks that begin with so many messages.

    The first call of a talk, which brings its beginning, is not counted; what is indexed behind the others is.
    """
    worked = 0.0
    with httpx.Client(timeout=60, trust_env=False, verify=NO_TLS) as http:
        for talk in range(talks):
            said = [
                {"role": ("user", "assistant")[at % 2], "content": f"Part {at} of {talk}, {long}: " + _LINE * 3}
                for at in range(long)
            ]
            for turn in range(turns + 1):
                asking = f"Which day is service {(talk * turns + turn) % 97} deployed, {protocol} {long} {talk}?"
                said.append({"role": "user", "content": asking})
                asked(http, door, protocol, turn_body(protocol, said, stream=True))
                said.append({"role": "assistant", "content": _SAID})
                if turn == 0:
                    worked -= _at_rest(pid)
            worked += _at_rest(pid)
    return round(worked * 1000 / talks / turns, 1)


def _at_rest(pid: int) -> float:
    """Seconds that a server has worked, once it does nothing any more."""
    before, now = -1.0, processor_seconds(pid)
    while now > before:
        time.sleep(_REST_SECONDS)
        before, now = now, processor_seconds(pid)
    return now


def _median_ms(seconds: list[float]) -> float:
    return round(statistics.median(seconds) * 1000, 1)


async def streamed_at_once(url: str, count: int) -> dict[str, object]:
    """So many streams at the same time; those whose text, or whose turn in the session, is not whole are counted."""
    async with httpx.AsyncClient(base_url=url, timeout=120, trust_env=False) as http:
        begun = time.perf_counter()
        texts = await asyncio.gather(*(_streamed(http, number) for number in range(count)))
        seconds = time.perf_counter() - begun
        kept = [await http.get(f"{W}/sessions/stream-{n}/messages", params={"view": "log"}) for n in range(count)]
    assert all(answer.is_success for answer in kept), [answer.text for answer in kept if not answer.is_success]
    logs = [[message["content"] for message in answer.json()["messages"]] for answer in kept]
    return {
        "streams": count,
        "broken": sum(text != _SAID for text in texts),
        "not_kept": sum(log != [_asking(n), _SAID] for n, log in enumerate(logs)),
        "seconds": round(seconds, 2),
    }


def _asking(number: int) -> str:
    return f"Which day is service {number} deployed?"


async def _streamed(http: httpx.AsyncClient, number: int) -> str:
    """The text of one stream; a call that a busy server refuses is sent again when the server says, as clients do."""
    body = turn_body("chat", [{"role": "user", "content": _asking(number)}], stream=True)
    headers = {"X-Memory-Session": f"stream-{number}"}
    text, wait = "", 0.0
    for _ in range(_ASKED_AGAIN):
        await asyncio.sleep(wait)
        async with http.stream("POST", "/v1/chat/completions", json=body, headers=headers) as answer:
            if answer.status_code == httpx.codes.SERVICE_UNAVAILABLE:
                wait = float(answer.headers["Retry-After"])
                continue
            async for line in answer.aiter_lines():
                if line.startswith("data: {"):
                    choices = json.loads(line[6:])["choices"]
                    text += "".join(choice["delta"].get("content") or "" for choice in choices)
            break
    return text


def streamed_through(url: str, pid: int, megabytes: int) -> dict[str, float]:
    """The server's memory while an answer of so many megabytes streams through it."""
    before, most, ended = resident_bytes(pid), [0], threading.Event()

    def watch() -> None:
        while not ended.wait(_SAMPLE_SECONDS):
            most[0] = max(most[0], resident_bytes(pid))

    watching = threading.Thread(target=watch)
    watching.start()
    read = 0
    body = turn_body("chat", [{"role": "user", "content": f"Write {megabytes} MB."}], stream=True)
    try:
        with httpx.stream(
            "POST", f"{url}/v1/chat/completions", json=body, timeout=120, trust_env=False, verify=NO_TLS
        ) as answer:
            for piece in answer.iter_raw():
                read += len(piece)
    finally:
        ended.set()
        watching.join()
    grown = max(0, most[0] - before)
    return {"streamed_mb": read >> 20, "grown_mb": grown >> 20, "grown_mb_per_mb": round(grown / max(read, 1), 3)}


def measure(
    talks: int, turns: int, memories: int, streams: int, megabytes: int, protocols: list[str], script: list[Reply],
    *, long: int = 0, only: str = "",
) -> dict[str, object]:  # fmt: skip
    """All figures, from one server."""
    figures: dict[str, object] = {}
    with (
        tempfile.TemporaryDirectory() as home,
        ScriptedServer(*script) as upstream,
        gateway_process(Path(home), upstream.url) as (url, pid),
    ):
        with httpx.Client(base_url=url, timeout=60, trust_env=False, verify=NO_TLS) as http:
            for number in range(memories):
                text = f"Service {number} is deployed on {_day(number)}; Dana signs it off in room {number}."
                http.post(f"{W}/memories", json={"text": text}).raise_for_status()
        gate = f"{url}/v1"
        doors = [Door(name="direct", url=upstream.url), Door(name="gateway", url=gate)]
        doors.append(Door(name="off", url=gate, headers={"X-Memory-Mode": "off"}))
        for protocol in protocols if long else ():
            for beginning, many in ((0, talks), (long, max(1, talks // 5))):
                name = f"{protocol}, {f'{beginning} messages' if beginning else 'short talk'}, processor ms of a call"
                figures[name] = processor_ms(doors[1], pid, protocol, beginning, talks=many, turns=turns)
        if only:
            return figures
        for protocol in protocols:
            for stream in (False, True):
                worked = processor_seconds(pid)
                found = compared(doors, protocol, talks, turns, stream=stream)
                name = f"{protocol}, {'stream' if stream else 'whole'}"
                figures[name] = _row(found) | {
                    "processor_ms_each": round((processor_seconds(pid) - worked) * 1000 / talks / turns, 1)
                }
        figures["at once"] = asyncio.run(streamed_at_once(url, streams))
        figures["one long stream"] = streamed_through(url, pid, megabytes)
    return figures


def _row(found: dict[str, tuple[float, float]]) -> dict[str, object]:
    direct, gateway = found["direct"], found["gateway"]
    return {
        "first_more_ms": round(gateway[0] - direct[0], 1),
        "whole_more_ms": round(gateway[1] - direct[1], 1),
        "ms": dict(found),
    }


def _day(number: int) -> str:
    return ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday")[number % 5]


def script(calls: int, megabytes: int) -> list[Reply]:
    """Short answers, then a long one of large pieces."""
    long = " ".join("x" * 16_383 for _ in range(megabytes * 64))
    return [*[Reply(text=_SAID)] * calls, Reply(text=long, pause_seconds=0.0005)]


def _shown(figures: Mapping[str, object]) -> None:
    for name, row in figures.items():
        print(f"{name:20} {json.dumps(row)}")


def main() -> None:
    """Measure all and print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--talks", type=int, default=10)
    parser.add_argument("--turns", type=int, default=12)
    parser.add_argument("--memories", type=int, default=300)
    parser.add_argument("--streams", type=int, default=50)
    parser.add_argument("--megabytes", type=int, default=32)
    parser.add_argument("--protocols", default="chat,messages")
    parser.add_argument("--long", type=int, default=600)
    parser.add_argument("--only", choices=["processor"], default="")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    protocols = given.protocols.split(",")
    calls = (6 * given.talks * given.turns + 2 * given.talks * (given.turns + 1)) * len(protocols) + given.streams
    figures = measure(
        given.talks, given.turns, given.memories, given.streams, given.megabytes, protocols,
        script(calls, given.megabytes), long=given.long, only=given.only,
    )  # fmt: skip
    figures = {"cores": os.cpu_count(), **figures}
    if given.json:
        print(json.dumps(figures))
    else:
        _shown(figures)


if __name__ == "__main__":
    main()
