"""What docs/mcp.md tells hosts: each of its settings is read as the host reads it, and the tools answer."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from tests.memory_service.mcp.hosts import CHINESE, answer_of, by_http, by_stdio
from tests.pages import blocks, table
from tests.serving import found_by_home

PAGE = "docs/mcp.md"
KEY, ADDRESS, HOME = "the-key", "http://127.0.0.1:8765", "/home/me/memories"
MOST_LINES = 15


def entries() -> Iterator[tuple[str, dict[str, Any]]]:
    """What a host knows of the server, for each recipe: what to start, or which address to call."""
    for language, text in blocks(PAGE):
        assert text.count("\n") <= MOST_LINES
        if language == "json":
            yield text, json.loads(text)["mcpServers"]["memory"]
        elif language == "toml":
            yield text, tomllib.loads(text)["mcp_servers"]["memory"]
        elif not language:
            yield from ((line, _added(shlex.split(line))) for line in text.splitlines())


def _added(words: list[str]) -> dict[str, Any]:
    """The entry that `claude mcp add` makes."""
    assert words[:3] == ["claude", "mcp", "add"]
    if "--" in words:
        command, *arguments = words[words.index("--") + 1 :]
        return {"command": command, "args": arguments}
    assert words[3:5] == ["--transport", "http"]
    return {"url": words[-1]}


RECIPES = list(entries())


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with found_by_home(tmp_path_factory.mktemp("recipes"), api_keys={KEY: "*"}) as address:
        yield address


async def remember(client: Client) -> None:
    assert len((await client.list_tools()).tools) == 6
    answer_of(await client.call_tool("remember", {"text": CHINESE}))
    found = answer_of(await client.call_tool("search", {"query": "谁负责数据库备份？"}))
    assert CHINESE in found["results"][0]["text"]


@pytest.mark.parametrize("entry", [entry for _, entry in RECIPES], ids=[f"{n}" for n in range(len(RECIPES))])
def test_a_host_finds_its_tools(entry: dict[str, Any], url: str, tmp_path: Path) -> None:
    told = json.dumps(entry).replace(ADDRESS, url).replace(HOME, str(tmp_path / "home"))
    entry = json.loads(re.sub(r"\$\{env:\w+\}", KEY, told))
    if "url" in entry:
        headers = entry.get("headers", {}) or {"Authorization": f"Bearer {KEY}"}
        by_http(entry["url"].removesuffix("/mcp"), remember, headers=headers)
        return
    assert entry["command"] == "memory-service" and entry["args"][0] == "mcp"
    by_stdio(tmp_path / "unused", remember, *entry["args"][1:], environment=entry.get("env", {}))
    assert (tmp_path / "home").exists() != ("--url" in entry["args"]) and not (tmp_path / "unused").exists()


def test_there_is_a_recipe_for_each_way() -> None:
    ways = ["command" if "command" in entry else "url" for _, entry in RECIPES]
    assert (ways.count("command"), ways.count("url")) == (4, 2)


def test_the_table_of_tools_is_the_list(url: str) -> None:
    listed = by_http(url, lambda client: client.list_tools(), headers={"X-API-Key": KEY}).tools
    told = {cells[0].strip("`"): set(re.findall(r"`(\w+)`", cells[1])) for cells in table(PAGE, "tool")}
    assert told == {tool.name: set(tool.input_schema["properties"]) for tool in listed}
