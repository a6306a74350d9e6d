"""Who may use MCP over HTTP, and for which workspace: as on every other route, in both eras."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from indexer.testing import HashEmbedder
from memory_service.service import MemoryService
from tests.memory_service.mcp.hosts import BY_WORDS, ENGLISH, ERAS, answer_of, by_http, by_stdio, failure_of
from tests.serving import RunningServer, own_process, serving, settings

KEYS = {"key-team": "team", "key-all": "*"}
CALL = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {"name": "remember", "arguments": {"text": ENGLISH}},
}
TYPES = {"Accept": "application/json, text/event-stream"}


@pytest.fixture
def keyed(tmp_path: Path) -> Iterator[RunningServer]:
    values = settings(tmp_path / "home", api_keys=KEYS, max_body_bytes=4096)
    with serving(MemoryService(values, embedder=HashEmbedder())) as server:
        yield server


async def remember(client: Client) -> None:
    answer_of(await client.call_tool("remember", {"text": ENGLISH}))


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    ("headers", "workspace"),
    [
        ({"Authorization": "Bearer key-team"}, "team"),
        ({"X-API-Key": "key-team", "X-Memory-Workspace": "team"}, "team"),
        ({"Authorization": "Bearer key-all"}, "default"),
        ({"Authorization": "Bearer key-all", "X-Memory-Workspace": "other"}, "other"),
    ],
)
def test_a_key_leads_to_its_workspace(keyed: RunningServer, headers: dict[str, str], workspace: str, era: str) -> None:
    by_http(keyed.url, remember, headers=headers, era=era)
    assert [folder.name for folder in keyed.home.iterdir() if folder.is_dir()] == [workspace]


@pytest.mark.parametrize(
    ("headers", "status", "code"),
    [
        ({}, 401, "unauthorized"),
        ({"Authorization": "Bearer key-tea"}, 401, "unauthorized"),
        ({"Authorization": "Bearer key-team", "X-Memory-Workspace": "other"}, 403, "forbidden"),
        ({"Authorization": "Bearer key-team", "X-Memory-Workspace": "*"}, 403, "forbidden"),
        ({"Authorization": "Bearer key-team", "Origin": "https://evil.example"}, 403, "forbidden"),
        ({"Authorization": "Bearer key-team", "Origin": "null"}, 403, "forbidden"),
    ],
)
def test_whoever_may_not_is_turned_away_before_the_protocol(
    keyed: RunningServer, headers: dict[str, str], status: int, code: str
) -> None:
    answer = keyed.http.post("/mcp", json=CALL, headers=TYPES | headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
    assert not keyed.home.exists() or not any(keyed.home.iterdir())
    with pytest.raises(MCPError, match="Server returned an error response"):
        by_http(keyed.url, remember, headers=headers)
    assert not keyed.home.exists() or not any(keyed.home.iterdir())


def test_pages_of_other_sites_are_turned_away_without_keys(running_server: RunningServer) -> None:
    for headers in ({"Origin": "https://evil.example"}, {"Host": "evil.example", "Origin": "http://evil.example"}):
        assert running_server.http.post("/mcp", json=CALL, headers=TYPES | headers).status_code == 403
    own = {"Origin": running_server.url}
    assert running_server.http.post("/mcp", json=CALL, headers=TYPES | own).status_code == 200


def test_what_is_missing_was_looked_for_where_the_key_may_know(keyed: RunningServer) -> None:
    async def read(client: Client) -> str:
        return failure_of(await client.call_tool("get", {"id": "memory/2026-01-01.md"}))

    told = by_http(keyed.url, read, headers={"X-API-Key": "key-team"})
    assert told.endswith("It was looked for in the workspace team of this server.")
    told = by_http(keyed.url, read, headers={"X-API-Key": "key-all", "X-Memory-Workspace": "team"})
    assert told.endswith(f"It was looked for in the workspace team of {keyed.place}.")


def test_a_large_body_is_refused(keyed: RunningServer) -> None:
    answer = keyed.http.post("/mcp", content=b" " * 5000, headers={"X-API-Key": "key-all"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "too_large")


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_there_is_no_stream_to_open_and_no_session_to_end(running_server: RunningServer, method: str) -> None:
    answer = running_server.http.request(method, "/mcp", headers=TYPES)
    assert (answer.status_code, answer.headers["Allow"]) == (405, "POST")


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'"x"', b'{"jsonrpc": "2.0"}', b"[" * 100_000, b"\xff"])
def test_what_is_no_message_is_refused(running_server: RunningServer, content: bytes) -> None:
    for revision in ({}, {"MCP-Protocol-Version": "2026-07-28"}, {"MCP-Protocol-Version": "1999-01-01"}):
        headers = {**TYPES, "Content-Type": "application/json", **revision}
        answer = running_server.http.post("/mcp", content=content, headers=headers)
        assert 400 <= answer.status_code < 500 and "Traceback" not in answer.text


def test_the_session_of_a_header_is_that_of_a_handle(running_server: RunningServer) -> None:
    for session_id in ("one", "two"):
        said = running_server.http.post(
            f"/v1/workspaces/default/sessions/{session_id}/messages",
            json={"messages": [{"role": "user", "content": f"我叫韩梅梅，这是{session_id}。"}]},
        )
    seq = said.raise_for_status().json()["first_seq"]

    async def read(client: Client) -> str:
        return str(answer_of(await client.call_tool("get", {"id": f"log:{seq}"}))["text"])

    assert by_http(running_server.url, read, headers={"X-Memory-Session": "two"}) == "我叫韩梅梅，这是two。"


def test_half_a_character_in_a_message_can_be_read(running_server: RunningServer) -> None:
    said = running_server.http.post(
        "/v1/workspaces/default/sessions/one/messages",
        content=b'{"messages": [{"role": "user", "content": "half \\ud83d of it"}]}',
        headers={"Content-Type": "application/json"},
    )

    async def read(client: Client) -> str:
        handle = f"log:{said.raise_for_status().json()['first_seq']}"
        return str(answer_of(await client.call_tool("get", {"id": handle}))["text"])

    for era in ("auto", "legacy"):
        assert by_http(running_server.url, read, era=era) == "half ? of it"


def test_a_command_tells_why_a_server_turns_it_away(keyed: RunningServer) -> None:
    for arguments, words in (
        (["--api-key", "wrong"], "no known key"),
        (["--api-key", "key-team", "--workspace", "other"], "not for the workspace"),
    ):
        done = subprocess.run(
            [sys.executable, "-m", "memory_service", "mcp", "--url", keyed.url, *arguments],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=240, check=False,
        )  # fmt: skip
        assert done.returncode == 1 and words in done.stderr and done.stdout == ""
        assert done.stderr.count("\n") == 1


def test_a_command_outlives_its_server(tmp_path: Path) -> None:
    with own_process(tmp_path / "home", BY_WORDS) as (url, pid):

        async def ask(client: Client) -> str:
            await remember(client)
            os.kill(pid, signal.SIGKILL)
            return failure_of(await client.call_tool("search", {"query": "deploys"}))

        told = by_stdio(tmp_path / "unused", ask, "--url", url)
    assert told.startswith(f"No memory-service answers at {url}.")
