"""What a host of MCP meets: one memory over both transports, in both eras of the protocol, from any process."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import ListToolsResult

from indexer.testing import HashEmbedder
from memory_service.messages.sizes import count_tokens
from memory_service.service import MemoryService
from tests.indexer.workspace import run_python
from tests.memory_service.mcp.hosts import (
    BY_WORDS,
    CHINESE,
    ENGLISH,
    ERAS,
    answer_of,
    by_http,
    by_stdio,
    failure_of,
    round_robin,
)
from tests.serving import RunningServer, found_by_home, running_process, serving, settings

# Each revision once, where a process is started for it.
NEGOTIATED = ("auto", "legacy")
TOOLS = ["search", "get", "remember", "context", "forget", "status"]


async def live_through(client: Client) -> None:
    """A memory from its first word to its last, in two languages."""
    for text, question in ((ENGLISH, "when do we deploy?"), (CHINESE, "备份什么时候运行？")):
        stored = answer_of(await client.call_tool("remember", {"text": text, "tags": ["ops"]}))
        again = answer_of(await client.call_tool("remember", {"text": text, "tags": ["ops"]}))
        assert (stored["duplicate"], again["duplicate"], again["memory_id"]) == (False, True, stored["memory_id"])
        found = answer_of(await client.call_tool("search", {"query": question, "limit": 1}))["results"]
        assert text in found[0]["text"] and found[0]["title"] and found[0]["url"].startswith("memory://default/")
        original = answer_of(await client.call_tool("get", {"id": found[0]["id"]}))
        assert text in original["text"] and original["metadata"]["memory_ids"] == stored["memory_id"]
        assert answer_of(await client.call_tool("fetch", {"id": found[0]["id"]})) == original
        block = answer_of(await client.call_tool("context", {"query": question, "budget_tokens": 200}))
        assert text in block["block"] and 0 < block["tokens"] <= 200 and block["receipt_id"]
        assert answer_of(await client.call_tool("status", {}))["files"] == 1
        gone = answer_of(await client.call_tool("forget", {"memory_id": stored["memory_id"]}))
        assert gone["paths"] == [stored["path"]]
        left = await client.call_tool("search", {"query": question})
        assert all(text not in result["text"] for result in answer_of(left)["results"])
        assert "There is no memory" in failure_of(await client.call_tool("forget", {"memory_id": stored["memory_id"]}))


async def speak(client: Client) -> str:
    await live_through(client)
    return client.protocol_version


@pytest.mark.parametrize("era", ERAS)
def test_a_memory_lives_over_http(running_server: RunningServer, era: str) -> None:
    assert by_http(running_server.url, speak, era=era) == ERAS[era]


@pytest.mark.parametrize("era", NEGOTIATED)
def test_a_memory_lives_over_stdio(tmp_path: Path, era: str) -> None:
    assert by_stdio(tmp_path / "home", speak, era=era) == ERAS[era]


@pytest.mark.parametrize("era", NEGOTIATED)
def test_a_memory_lives_through_a_running_server(running_server: RunningServer, tmp_path: Path, era: str) -> None:
    assert by_stdio(tmp_path / "unused", speak, "--url", running_server.url, era=era) == ERAS[era]
    assert not (tmp_path / "unused").exists()


def test_two_processes_answer_as_one(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with (
        found_by_home(home) as one,
        running_process(home, BY_WORDS) as other,
        round_robin(one, other) as (url, counts),
    ):
        for era in NEGOTIATED:
            assert by_http(url, speak, era=era) == ERAS[era]
    assert min(counts) > 10 and max(counts) - min(counts) <= 1


def test_stdio_works_beside_a_server_on_the_same_home(tmp_path: Path) -> None:
    home = tmp_path / "home"

    async def remember(client: Client) -> None:
        answer_of(await client.call_tool("remember", {"text": CHINESE}))

    with found_by_home(home) as url:
        by_stdio(home, remember)

        async def find(client: Client) -> str:
            found = answer_of(await client.call_tool("search", {"query": "谁负责备份？"}))
            return str(found["results"][0]["text"])

        assert CHINESE in by_http(url, find)


@pytest.fixture
def listed(running_server: RunningServer) -> ListToolsResult:
    return by_http(running_server.url, lambda client: client.list_tools())


@pytest.mark.parametrize("era", ERAS)
def test_the_list_of_tools_is_small(running_server: RunningServer, era: str) -> None:
    found = by_http(running_server.url, lambda client: client.list_tools(), era=era)
    assert [tool.name for tool in found.tools] == TOOLS
    text = found.model_dump_json(by_alias=True, exclude_none=True)
    sys.stdout.write(f"the list of tools takes {count_tokens(text)} tokens in {ERAS[era]}\n")
    assert count_tokens(text) <= 1_000


def test_every_tool_has_all_hints_and_both_schemas(listed: ListToolsResult) -> None:
    hints = {}
    for tool in listed.tools:
        assert tool.annotations and tool.output_schema and tool.description
        assert tool.input_schema["type"] == tool.output_schema["type"] == "object"
        assert set(tool.output_schema["required"]) == set(tool.output_schema["properties"])
        each = tool.annotations
        hints[tool.name] = (each.read_only_hint, each.destructive_hint, each.idempotent_hint, each.open_world_hint)
    reads = (True, False, True, False)
    assert hints == dict.fromkeys(TOOLS, reads) | {
        "remember": (False, False, True, False),
        "forget": (False, True, True, False),
    }


@pytest.mark.parametrize("era", ERAS)
def test_a_connector_finds_search_and_fetch(running_server: RunningServer, era: str) -> None:
    as_connector = {"User-Agent": "openai-mcp/1.0.0"}
    for headers, path in ((as_connector, ""), ({}, "?client=connector")):
        listed = by_http(running_server.url, lambda client: client.list_tools(), era=era, headers=headers, path=path)
        assert [tool.name for tool in listed.tools] == ["search", "fetch", *TOOLS[2:]]
        assert listed.tools[1].input_schema["required"] == ["id"]


def test_the_text_of_an_answer_is_its_json(running_server: RunningServer) -> None:
    """Hosts that know no structured answers, and connectors, read the text."""

    async def ask(client: Client) -> None:
        await client.call_tool("remember", {"text": CHINESE})
        found = await client.call_tool("search", {"query": "备份"})
        (text,) = found.content
        assert text.type == "text" and json.loads(text.text) == found.structured_content
        assert CHINESE in text.text  # no escapes, which cost tokens

    by_http(running_server.url, ask)


def test_a_value_that_was_replaced_says_by_what(running_server: RunningServer) -> None:
    async def ask(client: Client) -> None:
        for day, text in (("2026-01-02", "Ana lives in Lisbon."), ("2026-03-01", "Ana moved to Porto.")):
            answer_of(await client.call_tool("remember", {"text": text, "date": day}))
        now, before = answer_of(await client.call_tool("search", {"query": "where does Ana live?"}))["results"]
        assert "Porto" in now["text"] and "replaced_by" not in now
        assert 0.5 < now["relevance"] <= 1
        assert "Lisbon" in before["text"] and before["replaced_by"] == now["id"]
        assert "history" not in now
        found = answer_of(await client.call_tool("search", {"query": "where does Ana live?", "history": True}))
        assert [(each["id"], each["date"], each["current"]) for each in found["results"][0]["history"]] == [
            (before["id"], "2026-01-02", False),
            (now["id"], "2026-03-01", True),
        ]

    by_http(running_server.url, ask)


@pytest.mark.parametrize(
    ("tool", "arguments", "words"),
    [
        ("search", {}, "The argument 'query' of search is missing"),
        ("search", {"query": "x", "limt": 3}, "The argument 'limt' of search is unknown"),
        ("search", {"query": "x", "limit": 0}, "greater than or equal to 1"),
        ("search", {"query": "x", "since": "yesterday"}, "YYYY-MM-DD"),
        ("search", {"query": 7}, "valid string"),
        ("get", {"id": ""}, "at least 1 character"),
        ("get", {"id": "memory/../../secret.md"}, "MEMORY.md"),
        ("get", {"id": "memory/2020-01-01.md"}, "no file"),
        ("remember", {"text": " "}, "text"),
        ("forget", {"memory_id": "m000000000000"}, "There is no memory"),
        ("context", {"query": "x", "budget_tokens": -1}, "greater than or equal to 0"),
        ("status", {"verbose": True}, "unknown"),
    ],
)
def test_what_cannot_be_done_is_said_to_the_model(
    running_server: RunningServer, tool: str, arguments: dict[str, object], words: str
) -> None:
    async def ask(client: Client) -> str:
        await client.call_tool("remember", {"text": ENGLISH})
        return failure_of(await client.call_tool(tool, arguments))

    for era in ("auto", "legacy"):
        assert words in by_http(running_server.url, ask, era=era)


def test_an_unknown_tool_is_an_error_of_the_protocol(running_server: RunningServer) -> None:
    for era in ("auto", "legacy"):
        with pytest.raises(MCPError, match="There is no such tool") as caught:
            by_http(running_server.url, _call_nothing, era=era)
        assert caught.value.code == -32602


async def _call_nothing(client: Client) -> MCPError | None:
    await client.call_tool("nothing", {})
    return None


def test_numbers_that_came_as_text_are_read(running_server: RunningServer) -> None:
    async def ask(client: Client) -> None:
        await client.call_tool("remember", {"text": ENGLISH, "date": "2026-11-20"})
        found = answer_of(await client.call_tool("search", {"query": "deploys", "limit": "1", "since": "2026-11-01"}))
        assert found["results"][0]["date"] == "2026-11-20"

    by_http(running_server.url, ask)


def test_a_memory_that_nobody_wrote_to_is_empty(running_server: RunningServer) -> None:
    async def ask(client: Client) -> list[object]:
        found = await client.call_tool("search", {"query": "x"})
        assert not found.is_error
        return [json.loads(part.text) for part in found.content if part.type == "text"]

    assert "Notes" not in str(by_http(running_server.url, ask))
    assert not running_server.home.exists()


def test_a_damaged_file_is_no_traceback(tmp_path: Path) -> None:
    service = MemoryService(settings(tmp_path / "home"), embedder=HashEmbedder())
    (tmp_path / "home" / "default" / "memory").mkdir(parents=True)
    (tmp_path / "home" / "default" / "memory" / "2026-11-20.md").write_bytes(b"\xff\xfe\x00broken\x80")

    async def ask(client: Client) -> str:
        return failure_of(await client.call_tool("get", {"id": "memory/2026-11-20.md"}))

    with serving(service) as server:
        assert "UTF-8" in by_http(server.url, ask)


def test_a_process_ends_with_its_input(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "memory_service", "mcp", "--home", str(tmp_path / "home")],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_process_that_waits_for_input(tmp_path: Path, number: signal.Signals) -> None:
    command = [sys.executable, "-m", "memory_service", "mcp", "--home", str(tmp_path / "home")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin and process.stdout
        process.stdin.write('no JSON\n{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["id"] == 1
        process.send_signal(number)
        assert process.wait(60) == -number


def test_bad_settings_are_said_to_the_model(tmp_path: Path) -> None:
    (tmp_path / "memory-service.toml").write_text("prot = 1\n", "utf-8")

    async def ask(client: Client) -> str:
        return failure_of(await client.call_tool("search", {"query": "x"}))

    assert "There is no setting 'prot'" in by_stdio(tmp_path, ask)


def test_nobody_else_imports_the_protocols_package() -> None:
    code = (
        "import sys, memory_service.cli.root, memory_service.api.server, memory_service.service\n"
        "import memory_service.mcp.stdio\n"
        "print([name for name in sys.modules if name.partition('.')[0] in ('mcp', 'mcp_types', 'httpx2')])"
    )
    assert run_python(code) == "[]"
