"""Wrong bodies and wrong answers: what the doors for agents do with what no client and no provider should send.

`python -m tests.campaigns.fuzz [--bodies 20000] [--kinds 160] [--seed 1] [--only bodies|answers|line]`

Bodies: true bodies of the gateway's routes, of MCP, of the hooks of all hosts, of compaction and of sessions, changed
in a few places, and bodies made of the OpenAPI document and of the tools' schemas, changed too; sent to a server of its
own. Counted are answers of 5xx but those that name a failure of the upstream, answers that take over ten seconds,
tracebacks and defects in the logs. Answers: so many kinds for each protocol, as a stream and in one piece; each is
asked for directly and through the gateway, and bytes, status and end have to be the same; then the conversation goes
on. Line: 30 MB in one line of a stream, in pieces of 10 kB, beside the same with line ends. One line of JSON for each
part, with the first cases of each kind of fault.
"""

from __future__ import annotations

import argparse
import http.client
import json
import random
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import httpx

from memory_service.hosts import HOSTS
from tests.campaigns.answers import PATHS, Answer, RawUpstream, answers
from tests.campaigns.load import resident_bytes
from tests.campaigns.mutations import made_of, mutated, written
from tests.serving import NO_TLS, own_process

_HANG_SECONDS = 10.0
# Of what is not measured, and where a busy machine makes all of it slow.
_PATIENCE_SECONDS = 120.0
_WORKERS = 4
_SHOWN = 12
_MOST_KINDS = 160
_LINE_BYTES = 30_000_000
_PIECE_BYTES = 10_000
_JSON = {"content-type": "application/json"}
_MCP = {**_JSON, "accept": "application/json, text/event-stream"}
_NAMED = ("upstream_failed", "too_many_requests", "call_cancelled")
# Streams without an end, and what would index for minutes.
_LEFT_OUT = ("/events", "/reindex", "/v1/hooks", "/v1/chat", "/v1/responses", "/v1/messages")


@dataclass(frozen=True, slots=True, kw_only=True)
class Seed:
    """A true request."""

    method: str
    path: str
    body: Mapping[str, Any]
    headers: Mapping[str, str] = field(default_factory=lambda: _JSON)


@dataclass(slots=True)
class Faults:
    """What went wrong, by kind, with the first cases."""

    counts: Counter[str] = field(default_factory=Counter)
    cases: dict[str, str] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, kind: str, case: str) -> None:
        """Count one."""
        with self.lock:
            self.counts[kind] += 1
            self.cases.setdefault(kind, case)

    def shown(self) -> dict[str, object]:
        """The counts, and a case of each of the first kinds."""
        return {
            "faults": sum(self.counts.values()),
            "kinds": dict(self.counts),
            "cases": dict([*self.cases.items()][:_SHOWN]),
        }


@contextmanager
def fuzzed_server(home: Path, upstream: RawUpstream) -> Iterator[tuple[str, int, Path]]:
    """A server before the upstream; gives its URL, its process and its log."""
    base = f"http://127.0.0.1:{upstream.port}"
    upstreams = {
        "openai": {"protocol": "openai", "base_url": f"{base}/v1"},
        "anthropic": {"protocol": "anthropic", "base_url": base},
    }
    home.mkdir(exist_ok=True)
    log = home / "server.log"
    environment = {
        "MEMORY_SERVICE_EMBEDDING_MODEL": "none",
        "MEMORY_SERVICE_GATEWAY__UPSTREAMS": json.dumps(upstreams),
    }
    with own_process(home / "home", environment, log=log) as (url, pid):
        yield url, pid, log


# Bodies


def gateway_seeds() -> list[Seed]:
    """True calls of clients."""
    call = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": '{"a": 1}'}}
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
    tool = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}
    chat: list[dict[str, Any]] = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "When do we deploy?"}, picture]},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": "Tuesday"},
        {"role": "assistant", "content": "On Tuesday."},
        {"role": "user", "content": "And then?", "name": "kim"},
    ]
    thought = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
    used = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"a": 1}}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": "Tuesday"}]}
    marked = {"type": "text", "text": "So?", "cache_control": {"type": "ephemeral"}}
    messages = [
        {"role": "user", "content": "When do we deploy?"},
        {"role": "assistant", "content": [thought, {"type": "text", "text": "I look."}, used]},
        {"role": "user", "content": [result, marked]},
    ]
    items = [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "When do we deploy?"}]},
        {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [{"type": "summary_text", "text": "Hm."}],
            "encrypted_content": "x",
        },
        {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "call_1", "output": "Tuesday"},
        {"type": "custom_tool_call", "call_id": "call_2", "name": "look", "input": "x"},
        {"type": "custom_tool_call_output", "call_id": "call_2", "output": [{"type": "input_text", "text": "x"}]},
        {"type": "compaction", "encrypted_content": "memory-service.v1.abc"},
        {"role": "user", "content": "And then?"},
    ]
    named = {"metadata": {"session_id": "s"}, "prompt_cache_key": "k", "user": "kim"}
    bodies: list[tuple[str, dict[str, Any]]] = [
        (PATHS["chat"], {"messages": chat, "tools": [tool], "n": 1, **named, "stream_options": {"x": True}}),
        (PATHS["chat"], {"messages": [{"role": "user", "content": "/compact"}]}),
        (PATHS["messages"], {
            "max_tokens": 9, "system": [{"type": "text", "text": "Be brief."}], "messages": messages,
            "metadata": {"user_id": "u"}, "context_management": {"edits": [{"type": "clear_thinking"}]},
        }),
        (f"{PATHS['messages']}/count_tokens", {"messages": messages}),
        (PATHS["responses"], {
            "input": items, "instructions": "Be brief.", **named,
            "context_management": [{"type": "compaction", "compact_threshold": 2_000}],
        }),
        (PATHS["responses"], {"input": "Hi", "previous_response_id": "resp_1", "conversation": {"id": "c"}}),
        (PATHS["responses"], {"input": [items[0], {"type": "compaction_trigger"}]}),
        (f"{PATHS['responses']}/compact", {"input": items[:4], "instructions": "Be brief."}),
        (f"{PATHS['responses']}/compact", {"input": "Hi"}),
    ]  # fmt: skip
    return [
        Seed(method="POST", path=path, body={"model": "m", "stream": stream, **body})
        for path, body in bodies
        for stream in (False, True)
    ]


def hook_seeds(folder: Path) -> list[Seed]:
    """True calls of hosts, with a transcript that is there."""
    transcript = folder / "transcript.jsonl"
    lines = [{"type": "user", "message": {"role": "user", "content": f"Kim owns {n}."}} for n in range(5)]
    transcript.write_text("".join(json.dumps(line) + "\n" for line in lines))
    base = {"session_id": "s-1", "cwd": str(folder), "transcript_path": str(transcript), "model": "m", "turn_id": "t"}
    said = [
        {"id": "v1", "role": "user", "content": "Kim owns billing."},
        {"id": "v2", "role": "assistant", "content": "Ok."},
    ]
    events: dict[str, dict[str, Any]] = {
        "SessionStart": {"source": "startup"}, "UserPromptSubmit": {"prompt": "Who owns billing?"},
        "Stop": {"last_assistant_message": "Kim."}, "PreCompact": {"trigger": "auto"}, "SessionEnd": {},
        "sessionStart": {"workspace_roots": [str(folder)]}, "beforeSubmitPrompt": {"prompt": "Who owns billing?"},
        "afterAgentResponse": {"text": "Kim."}, "prompt": {"prompt": "Who?", "messages": said},
        "stop": {"messages": said}, "session_start": {}, "pre_compact": {"messages": said},
    }  # fmt: skip
    return [
        Seed(method="POST", path=f"/v1/hooks/{host}", body={**base, "hook_event_name": name, **fields})
        for host in HOSTS
        for name, fields in events.items()
    ]


def mcp_seeds(url: str) -> Iterator[Callable[[random.Random], Seed]]:
    """Makers of true calls of tools, and of the protocol's other requests."""
    head = {"jsonrpc": "2.0", "id": 1}
    client = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
    asking = {**head, "method": "tools/list", "params": {}}
    listing = httpx.post(
        f"{url}/mcp", json=asking, headers=_MCP, trust_env=False, verify=NO_TLS, timeout=_PATIENCE_SECONDS
    )
    tools = listing.json()["result"]["tools"]
    for method, params in (("initialize", client), ("tools/list", {}), ("ping", {})):
        body = {**head, "method": method, "params": params}
        yield lambda rng, body=body: Seed(method="POST", path="/mcp", body=body, headers=_MCP)  # type: ignore[misc]

    def calling(tool: Mapping[str, Any], rng: random.Random) -> Seed:
        schema = tool["inputSchema"]
        given = made_of(schema, schema.get("$defs", {}), rng)
        body = {**head, "method": "tools/call", "params": {"name": tool["name"], "arguments": given}}
        return Seed(method="POST", path="/mcp", body=body, headers=_MCP)

    for tool in tools:
        yield lambda rng, tool=tool: calling(tool, rng)  # type: ignore[misc]


def document_seeds(url: str) -> Iterator[Callable[[random.Random], Seed]]:
    """Makers of requests to all routes that take a body, out of the OpenAPI document."""
    document = httpx.get(f"{url}/openapi.json", trust_env=False, verify=NO_TLS, timeout=_PATIENCE_SECONDS).json()
    shapes = document["components"]["schemas"]
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            if "requestBody" not in operation or any(part in path for part in _LEFT_OUT):
                continue
            schema = operation["requestBody"]["content"]["application/json"]["schema"]

            def make(rng: random.Random, path: str = path, method: str = method, schema: Any = schema) -> Seed:
                place = path.replace("{workspace}", f"w{rng.randrange(20)}").replace(
                    "{session_id}", f"s{rng.randrange(9)}"
                )
                while "{" in place:
                    begin, _, rest = place.partition("{")
                    place = (
                        f"{begin}{rng.choice(('1', 'x', 'memory/2026-11-20.md', 'MEMORY.md'))}{rest.partition('}')[2]}"
                    )
                body = made_of(schema, shapes, rng)
                return Seed(method=method.upper(), path=place, body=body if isinstance(body, dict) else {})

            yield make


def _fixed(seed: Seed) -> Callable[[random.Random], Seed]:
    return lambda rng: seed


class Sender:
    """Sends bodies and judges the answers."""

    def __init__(self, url: str, faults: Faults, statuses: Counter[str], hang_seconds: float) -> None:
        self._hang_seconds = hang_seconds
        self._http = httpx.Client(
            base_url=url, timeout=hang_seconds, trust_env=False, verify=NO_TLS, follow_redirects=False
        )
        self._faults = faults
        self._statuses = statuses

    def close(self) -> None:
        """Give back the connection."""
        self._http.close()

    def send(self, seed: Seed, content: bytes, rng: random.Random) -> None:
        """Send one."""
        headers = dict(seed.headers)
        if seed.path.startswith(tuple(PATHS.values())):
            headers["X-Memory-Workspace"] = f"w{rng.randrange(20)}"
            if rng.random() < 0.2:
                headers["X-Memory-Mode"] = rng.choice(("off", "read-only"))
            if rng.random() < 0.2:
                headers["X-Memory-Session"] = f"s{rng.randrange(9)}"
        begun = time.perf_counter()
        case = f"{seed.path} {headers.get('X-Memory-Mode', '')} {content[:600]!r}"
        try:
            answer = self._http.request(seed.method, seed.path, content=content, headers=headers)
        except httpx.TimeoutException:
            self._faults.add(f"hang {seed.path.partition('?')[0]}", case)
            return
        except httpx.HTTPError as error:
            self._faults.add(f"{type(error).__name__} {seed.path}", case)
            return
        with self._faults.lock:
            self._statuses[f"{answer.status_code // 100}xx"] += 1
        if answer.status_code >= 500 and not (
            answer.status_code in (502, 503) and any(c in answer.text for c in _NAMED)
        ):
            self._faults.add(f"{answer.status_code} {seed.path}", f"{case} -> {answer.text[:200]}")
        if time.perf_counter() - begun > self._hang_seconds:
            self._faults.add(f"slow {seed.path}", case)


def fuzz_bodies(folder: Path, bodies: int, seed: int, *, hang_seconds: float = _HANG_SECONDS) -> dict[str, object]:
    """Send so many bodies to a server of its own; an answer that takes longer counts as none."""
    faults, statuses = Faults(), Counter[str]()
    with RawUpstream() as upstream, fuzzed_server(folder, upstream) as (url, pid, log):
        calls, hooks = [*map(_fixed, gateway_seeds())], [*map(_fixed, hook_seeds(folder))]
        doors = [calls, hooks, [*mcp_seeds(url)], [*document_seeds(url)]]
        begun, before = time.perf_counter(), 0

        def work(worker: int) -> None:
            nonlocal before
            rng, sender = random.Random(f"{seed} {worker}"), Sender(url, faults, statuses, hang_seconds)
            with closing(sender):
                for number in range(bodies // _WORKERS):
                    made = rng.choice(rng.choices(doors, (4, 2, 2, 2))[0])(rng)
                    content = written(made.body) if rng.random() < 0.05 else mutated(rng, made.body)
                    sender.send(made, content, rng)
                    if worker == 0 and number == bodies // _WORKERS // 10:
                        before = resident_bytes(pid)

        with ThreadPoolExecutor(_WORKERS) as workers:
            for done in [workers.submit(work, worker) for worker in range(_WORKERS)]:
                done.result()
        after = resident_bytes(pid)
    _judge_logs(folder, log, faults)
    return {
        "part": "bodies", "bodies": bodies // _WORKERS * _WORKERS, "seconds": round(time.perf_counter() - begun),
        "statuses": dict(statuses), "before_mb": before >> 20, "after_mb": after >> 20, **faults.shown(),
    }  # fmt: skip


def _judge_logs(folder: Path, log: Path, faults: Faults) -> None:
    text = log.read_text(errors="replace")
    for block in text.split("Traceback (most recent call last)")[1:]:
        lines = block.splitlines()
        own = [line.strip() for line in lines if "memory_service" in line or "indexer/" in line]
        end = next((line for line in lines[1:] if line and not line.startswith((" ", "\t"))), "")
        faults.add(f"traceback: {end[:100]} {own[-1] if own else ''}", "\n".join(lines[-40:])[:1500])
    hooks = folder / "home" / "hooks.log"
    for line in hooks.read_text(errors="replace").splitlines() if hooks.exists() else ():
        if "defect" in line:
            faults.add(f"hooks.log: {line.partition('defect')[2][:90]}", line)


# Answers


@dataclass(frozen=True, slots=True)
class Received:
    """What a client received: status, type and encoding, bytes, and whether the answer came to its end."""

    status: int
    kind: str
    encoding: str
    content: bytes
    is_whole: bool


def received(port: int, path: str, body: Mapping[str, Any], headers: Mapping[str, str]) -> tuple[Received, str]:
    """Ask over a connection of its own; gives what came, byte for byte, and what the gateway says is missing."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_PATIENCE_SECONDS)
    try:
        connection.request("POST", path, json.dumps(body), {**_JSON, **headers})
        answer = connection.getresponse()
        try:
            content, is_whole = answer.read(), True
        except http.client.IncompleteRead as error:
            content, is_whole = error.partial, False
        kind, encoding = answer.headers.get("content-type", ""), answer.headers.get("content-encoding", "")
        return Received(answer.status, kind, encoding, content, is_whole), answer.headers.get("x-memory-degraded", "")
    finally:
        connection.close()


def _turn(protocol: str, model: str, words: list[str], *, stream: bool) -> dict[str, Any]:
    said = [{"role": ("user", "assistant")[at % 2], "content": text} for at, text in enumerate(words)]
    body: dict[str, Any] = {"model": model, "stream": stream, "input" if protocol == "responses" else "messages": said}
    return body | ({"max_tokens": 9} if protocol == "messages" else {})


def fuzz_answers(folder: Path, kinds: int, seed: int) -> dict[str, object]:
    """Ask for so many kinds of answers, directly and through the gateway."""
    faults, degraded, count = Faults(), 0, 0
    with RawUpstream() as upstream, fuzzed_server(folder, upstream) as (url, pid, log):
        port = int(url.rpartition(":")[2])
        before = resident_bytes(pid)
        for protocol in PATHS:
            for stream in (True, False):
                made = answers(protocol, stream=stream, count=_MOST_KINDS, seed=seed)
                made = random.Random(seed).sample(made, min(kinds, len(made)))
                for answer, model in zip(made, upstream.named(made), strict=True):
                    count += 1
                    degraded += _compare(port, upstream.port, protocol, answer, model, stream=stream, faults=faults)
        after = resident_bytes(pid)
        counted = httpx.get(f"{url}/metrics", trust_env=False, verify=NO_TLS, timeout=_PATIENCE_SECONDS).text
    _judge_logs(folder, log, faults)
    [missed] = [
        float(line.split()[1]) for line in counted.splitlines() if 'degraded_answers_total{part="answer"}' in line
    ]
    return {
        "part": "answers", "answers": count, "degraded_in_headers": degraded, "degraded_counted": missed,
        "before_mb": before >> 20, "after_mb": after >> 20, **faults.shown(),
    }  # fmt: skip


def _compare(
    port: int, direct_port: int, protocol: str, answer: Answer, model: str, *, stream: bool, faults: Faults
) -> bool:
    """Ask for one answer twice, and go on with the conversation; gives whether a header says that memory lacks it."""
    asking = f"When is {model} deployed?"
    name = f"{protocol}, {'stream' if stream else 'whole'}: {answer.name}"
    body = _turn(protocol, model, [asking], stream=stream)
    direct, _ = received(direct_port, PATHS[protocol], body, {})
    through, missing = received(port, PATHS[protocol], body, {})
    if through != direct:
        faults.add(f"other bytes ({name})", f"{_short(direct)} became {_short(through)}")
    went_on, _ = received(
        port, PATHS[protocol], _turn(protocol, "m", [asking, "On Tuesday.", "And then?"], stream=stream), {}
    )
    if went_on.status != 200 or not went_on.is_whole or b"Tuesday" not in went_on.content:
        faults.add(f"the next turn ({name})", _short(went_on))
    return "answer:" in missing


def _short(one: Received) -> str:
    head = f"{one.status} {one.kind!r} {one.encoding!r} whole={one.is_whole} {len(one.content)} bytes"
    return f"{head} {one.content[:80]!r} … {one.content[-80:]!r}"


# One line


def measure_line(folder: Path, size_bytes: int = _LINE_BYTES) -> dict[str, object]:
    """A stream with so many bytes in one line, beside the same with line ends: seconds and memory."""
    line = [b"data: " + b"x" * (_PIECE_BYTES - 6), *[b"x" * _PIECE_BYTES] * (size_bytes // _PIECE_BYTES - 1)]
    ends = [b'data: {"x":"' + b"x" * (_PIECE_BYTES - 16) + b'"}\n\n'] * (size_bytes // _PIECE_BYTES)
    made = [
        Answer(name=name, pieces=pieces, kind="text/event-stream") for name, pieces in (("ends", ends), ("line", line))
    ]
    found: dict[str, object] = {"part": "line", "megabytes": size_bytes / 1e6}
    for each in made:
        with RawUpstream() as upstream, fuzzed_server(folder / each.name, upstream) as (url, pid, _):
            port, [model] = int(url.rpartition(":")[2]), upstream.named([each])
            received(port, PATHS["chat"], _turn("chat", "m", ["Hi"], stream=True), {})
            before = resident_bytes(pid)
            Path(f"/proc/{pid}/clear_refs").write_text("5")
            begun = time.perf_counter()
            through, _ = received(port, PATHS["chat"], _turn("chat", model, ["Write."], stream=True), {})
            seconds = time.perf_counter() - begun
            peak = int(Path(f"/proc/{pid}/status").read_text().partition("VmHWM:")[2].split()[0]) << 10
            assert through.is_whole and through.content == b"".join(each.pieces), "other bytes"
            found |= {f"{each.name}_seconds": round(seconds, 2), f"{each.name}_more_mb": round((peak - before) / 1e6)}
    return found


PARTS: Mapping[str, Callable[[Path, argparse.Namespace], dict[str, object]]] = MappingProxyType(
    {
        "bodies": lambda folder, given: fuzz_bodies(folder, given.bodies, given.seed),
        "answers": lambda folder, given: fuzz_answers(folder, given.kinds, given.seed),
        "line": lambda folder, given: measure_line(folder),
    }
)


def main() -> None:
    """Run it and print a line of JSON for each part."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bodies", type=int, default=20_000)
    parser.add_argument(
        "--kinds", type=int, default=_MOST_KINDS, help="of wrong answers, for each protocol, streamed or not"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=[*PARTS])
    given = parser.parse_args()
    for name, part in PARTS.items():
        if given.only in (None, name):
            with tempfile.TemporaryDirectory() as folder:
                print(json.dumps(part(Path(folder), given)), flush=True)


if __name__ == "__main__":
    main()
