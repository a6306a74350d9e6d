"""An MCP host's waits: from the start of the command to the tools and to a first answer, and for each call after that.

`python -m tests.benchmarks.hosts`. Beside each stands the same without the protocol: an interpreter that imports the
protocol's package, a search in this process, a search over HTTP.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp_types.version import LATEST_HANDSHAKE_VERSION, LATEST_MODERN_VERSION

from memory_service.messages.sizes import count_tokens
from memory_service.service import MemoryService
from tests.benchmarks.cold import best_seconds
from tests.benchmarks.index import write_notes
from tests.serving import running_process

_STARTS = 3
_CALLS = 100
_QUERY = {"query": "when do we deploy?"}
_META = {
    "io.modelcontextprotocol/protocolVersion": LATEST_MODERN_VERSION,
    "io.modelcontextprotocol/clientInfo": {"name": "benchmark", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


def command(home: str) -> list[str]:
    return [sys.executable, "-m", "memory_service", "mcp", "--home", home]


def cold_start(home: str) -> tuple[float, float]:
    """Seconds from the start of the process to the list of tools, and to the answer of a first search."""
    started = time.perf_counter()
    with subprocess.Popen(command(home), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as host:
        listed = _asked(host, "tools/list", {}) and time.perf_counter() - started
        found = _asked(host, "tools/call", {"name": "search", "arguments": _QUERY})
        answered = time.perf_counter() - started
        assert found["structuredContent"]["results"]
        host.communicate()
    return listed, answered


def _asked(host: subprocess.Popen[str], method: str, params: dict[str, Any]) -> Any:
    assert host.stdin and host.stdout
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": _META}}
    host.stdin.write(json.dumps(message) + "\n")
    host.stdin.flush()
    return json.loads(host.stdout.readline())["result"]


async def calls_ms(target: Any, mode: str) -> tuple[float, int]:
    """The median of a search's milliseconds, as the official client waits; and the tokens of the list of tools."""
    async with Client(target, mode=mode) as client:
        listed = await client.list_tools()
        await client.call_tool("search", _QUERY)
        times = []
        for _ in range(_CALLS):
            started = time.perf_counter()
            await client.call_tool("search", _QUERY)
            times.append(time.perf_counter() - started)
    return _median_ms(times), count_tokens(listed.model_dump_json(by_alias=True, exclude_none=True))


def _median_ms(seconds: list[float]) -> float:
    return round(1000 * statistics.median(seconds), 1)


def median_ms(act: Callable[[], object]) -> float:
    """The median of a call's milliseconds."""
    times = []
    for _ in range(_CALLS):
        started = time.perf_counter()
        act()
        times.append(time.perf_counter() - started)
    return _median_ms(times)


def main() -> None:
    """Measure all and print one line of JSON."""
    with tempfile.TemporaryDirectory() as home:
        write_notes(Path(home) / "default", 100, 20)
        with MemoryService.open(home) as service:
            service.reindex("default")
            service.search("default", _QUERY["query"])
            bare = median_ms(lambda: service.search("default", _QUERY["query"]))
        starts = [cold_start(home) for _ in range(_STARTS)]
        figures: dict[str, Any] = {
            "tools listed, s": round(min(listed for listed, _ in starts), 2),
            "first search answered, s": round(min(answered for _, answered in starts), 2),
            "import of the package, s": best_seconds("-c", "import mcp.server"),
            "search in process, ms": bare,
        }
        stdio = StdioServerParameters(command=sys.executable, args=command(home)[1:])
        with running_process(Path(home), {}) as url, httpx.Client(base_url=url, trust_env=False) as http:
            http.post("/v1/workspaces/default/search", json=_QUERY)
            figures["search over HTTP, ms"] = median_ms(lambda: http.post("/v1/workspaces/default/search", json=_QUERY))
            for era in (LATEST_MODERN_VERSION, "legacy"):
                name = LATEST_HANDSHAKE_VERSION if era == "legacy" else era
                figures[f"stdio, {name}, ms"], tokens = asyncio.run(calls_ms(stdio, era))
                figures[f"HTTP, {name}, ms"], _ = asyncio.run(calls_ms(streamable_http_client(f"{url}/mcp"), era))
                figures[f"list of tools, {name}, tokens"] = tokens
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
