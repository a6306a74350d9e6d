"""The largest request that each kind of route takes: how long it is at work, and what memory it needs.

`python -m tests.campaigns.largest [--kinds append,compact] [--megabytes 16] [--embedding-model minilm]`

Each kind has a server of its own, so that nothing of another one is still at work. One line of JSON for each: the
size of the body, the answer's status, seconds on the clock and of the server's processor, resident memory before and at
most.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import httpx

from tests.campaigns.load import resident_bytes
from tests.serving import NO_TLS, W, own_process

_S = f"{W}/sessions/large"
_TIMEOUT_SECONDS = 600
# What a body takes beside the texts in it.
_ROOM_BYTES = 4096
_MESSAGE_CHARS = 3_999_000
_STATELESS_CHARS = 3_990_000
_FILE_BYTES = 8 * 1024 * 1024
_FILE_LINES = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request, and those that have to be answered before it."""

    method: str
    path: str
    body: Mapping[str, Any]
    before: tuple[Request, ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)


def _said(number: int) -> str:
    """A sentence that no other one is like, with what a summary looks for."""
    return (
        f"On day {number} we decided to move host{number}.example.org to /srv/app{number}/main.py, as the release "
        f"{number}.{number % 7} fails; 第{number}天决定把服务器部署到周二。 "
    )


def _text(size_bytes: int, begin: int = 0) -> str:
    """A text of so many bytes, or a little less."""
    parts, room, number = list[str](), size_bytes, begin
    while room > 0:
        parts.append(_said(number))
        room -= len(parts[-1].encode()) + 1
        number += 1
    return "".join(parts[:-1])


def _messages(size_bytes: int, count: int) -> list[dict[str, str]]:
    """So many messages of one size, together of so many bytes."""
    each = size_bytes // count - 50
    roles = ("user", "assistant")
    return [{"role": roles[n % 2], "content": _text(each, n * 7)[:_MESSAGE_CHARS] or f"{n}"} for n in range(count)]


def _post(path: str, body: Mapping[str, Any], *before: Request) -> Request:
    return Request(method="POST", path=path, body=body, before=before)


def _put(lines: list[str]) -> Request:
    text = "\n".join(lines).encode()[: _FILE_BYTES - 4].decode(errors="ignore")
    path = f"{W}/memories/memory/large.md"
    return Request(method="PUT", path=path, body={"text": text}, headers={"If-None-Match": "*"})


def _appended(room: int, count: int) -> Request:
    return _post(f"{_S}/messages", {"messages": _messages(room, count)})


def _filled(room: int) -> tuple[Request, ...]:
    begun = _post(f"{W}/sessions", {"session_id": "large", "context_window": 32_000})
    return begun, _appended(room, 10_000)


_NOTES = tuple(
    _post(f"{W}/memories", {"text": _text(99_000, 1_000 * n)}) for n in range(3)
)  # Some hundred passages to find.

KINDS: Mapping[str, Callable[[int], Request]] = MappingProxyType(
    {
        "append 10,000 messages": lambda room: _appended(room, 10_000),
        "append 5 long messages": lambda room: _appended(room, 5),
        "context of 10,000 messages": lambda room: _post(f"{_S}/context", {"recall": "always"}, *_filled(room)),
        "context of 5 long messages": lambda room: _post(f"{_S}/context", {}, _filled(0)[0], _appended(room, 5)),
        "compact 10,000 messages": lambda room: _post(f"{_S}/compact", {"force": True}, *_filled(room)),
        "flush 10,000 messages": lambda room: _post(f"{_S}/flush", {}, *_filled(room)),
        "flush a reply": lambda room: _post(f"{_S}/flush", {"reply": _lines(199_000)}, *_filled(room)),
        "overflow": lambda room: _post(f"{_S}/overflow", {"error": _text(900_000)}, *_filled(room)),
        "stateless, 10,000 messages": lambda room: _stateless(room, 10_000),
        "stateless, 5 long messages": lambda room: _stateless(room, 5),
        "PUT 100,000 lines": lambda room: _put([f"- {_said(n)[:75]}" for n in range(_FILE_LINES)]),
        "PUT one line": lambda room: _put([_text(_FILE_BYTES)]),
        "PUT 100,000 empty items": lambda room: _put(["- "] * _FILE_LINES),
        "remember": lambda room: _post(f"{W}/memories", {"text": _text(99_000), "tags": ["t" * 40] * 16}),
        "search": lambda room: _post(f"{W}/search", {"query": _text(10_000)[:9_999], "limit": 200}, *_NOTES),
        "context block": lambda room: _post(
            f"{W}/context",
            {"query": _text(10_000)[:9_999], "budget_tokens": 200_000, "system_prompt": _text(990_000)},
            *_NOTES,
        ),
    }
)


def _lines(size_bytes: int) -> str:
    return _text(size_bytes).replace("。 ", "。\n- ")[:size_bytes]


def _stateless(room: int, count: int) -> Request:
    said = _messages(room, count)
    for message in said:
        message["content"] = message["content"][: _STATELESS_CHARS // count]
    body = {"messages": said, "context_window": 32_000, "force": True}
    return _post("/v1/compact", body)


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _peak_bytes(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


def measure(kind: str, room_bytes: int, environment: dict[str, str]) -> dict[str, object]:
    """Send it to a server of its own; gives what was measured."""
    request = KINDS[kind](room_bytes - _ROOM_BYTES)
    with (
        tempfile.TemporaryDirectory() as home,
        own_process(Path(home), environment) as (url, pid),
        httpx.Client(base_url=url, timeout=_TIMEOUT_SECONDS, trust_env=False, verify=NO_TLS) as http,
    ):
        for earlier in request.before:
            _sent(http, earlier).raise_for_status()
        time.sleep(1)
        before, cpu = resident_bytes(pid), _cpu_seconds(pid)
        # From here on, the most is counted anew.
        Path(f"/proc/{pid}/clear_refs").write_text("5")
        started = time.perf_counter()
        answer = _sent(http, request)
        found = {
            "kind": kind,
            "body_mb": round(len(json.dumps(request.body, ensure_ascii=False).encode()) / 2**20, 1),
            "status": answer.status_code,
            "seconds": round(time.perf_counter() - started, 1),
            "cpu_seconds": round(_cpu_seconds(pid) - cpu, 1),
            "before_mb": before >> 20,
            "peak_mb": _peak_bytes(pid) >> 20,
            "degraded": [told[:120] for told in answer.json().get("degraded", [])],
        }
        # What it still has to index is of no use.
        os.kill(pid, signal.SIGKILL)
        return found


def _sent(http: httpx.Client, request: Request) -> httpx.Response:
    raw = json.dumps(request.body, ensure_ascii=False).encode()
    headers = {"Content-Type": "application/json", **request.headers}
    return http.request(request.method, request.path, content=raw, headers=headers)


def measured(kinds: list[str], megabytes: int, environment: dict[str, str]) -> Iterator[dict[str, object]]:
    """All kinds whose names begin so."""
    for kind in KINDS:
        if any(kind.startswith(name) for name in kinds):
            yield measure(kind, megabytes << 20, environment)


def main() -> None:
    """Run it and print a line of JSON for each kind."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kinds", default="", help="beginnings of names, with commas; empty for all")
    parser.add_argument("--megabytes", type=int, default=16, help="size of the largest body")
    parser.add_argument("--embedding-model", default="minilm")
    arguments = parser.parse_args()
    environment = {"MEMORY_SERVICE_EMBEDDING_MODEL": arguments.embedding_model}
    for found in measured(arguments.kinds.split(","), arguments.megabytes, environment):
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
