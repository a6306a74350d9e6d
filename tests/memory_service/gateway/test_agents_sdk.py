"""The OpenAI Agents SDK through the gateway: its own runner, with its own session that compacts."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, Literal

import openai
import pytest

from memory_service.testing import Reply
from tests.memory_service.gateway.talking import Gateway, gateway
from tests.serving import W

agents = pytest.importorskip("agents")
TURNS = 9


def look(at: str) -> str:
    """Look at a file."""
    return f"{at}: " + "x" * 16_000


async def talk(gate: Gateway, mode: Literal["input", "auto"]) -> list[Any]:
    """Several turns with a tool each; gives what the session of the client has at the end."""
    agents.set_tracing_disabled(True)
    http = openai.DefaultAsyncHttpxClient(verify=False)
    async with openai.AsyncOpenAI(base_url=gate.url, api_key="any", max_retries=0, http_client=http) as client:
        model = agents.OpenAIResponsesModel("gpt-4.1", client)
        agent = agents.Agent(name="agent", model=model, tools=[agents.function_tool(look)])
        own = agents.SQLiteSession("client")
        session = agents.memory.OpenAIResponsesCompactionSession("client", own, client=client, compaction_mode=mode)
        for number in range(TURNS):
            result = await agents.Runner.run(agent, f"Look at src/{number}.py.", session=session)
            assert result.final_output == f"Done {number}."
        items = await session.get_items()
        own.close()
    return list(items)


def pairs(items: list[dict[str, Any]]) -> tuple[list[str], list[str]]:
    called = [item["call_id"] for item in items if item.get("type") == "function_call"]
    return called, [item["call_id"] for item in items if item.get("type") == "function_call_output"]


@pytest.mark.parametrize("mode", ["input", "auto"])
def test_the_sessions_of_the_sdk_compact_here_and_no_call_parts_from_its_output(
    tmp_path: Path, mode: Literal["input", "auto"]
) -> None:
    replies = [
        reply
        for number in range(TURNS)
        for reply in (
            Reply(tool_call="look", arguments=f'{{"at": "src/{number}.py"}}', thinking="Which one?"),
            Reply(text=f"Done {number}."),
        )
    ]
    with gateway(tmp_path, *replies) as gate:
        items = asyncio.run(talk(gate, mode))
        assert sum(item.get("type") == "compaction" for item in items) == 1
        for request in gate.upstream.requests:
            called, done = pairs(request.body["input"])
            assert called == done
        [session] = gate.sessions()
        http = gate.server.http
        found = http.get(f"{W}/sessions/{session}/compactions").json()["compactions"]
        assert len(found) >= 2 and all(each["applied"] for each in found)
        said = [message["content"] for message in gate.log(session) if message["role"] == "user"]
        assert said == [f"Look at src/{number}.py." for number in range(TURNS)]
        for each in found:
            assert http.post(f"{W}/sessions/{session}/compactions/{each['compaction_id']}/undo").status_code == 200
        view = http.get(f"{W}/sessions/{session}/messages", params={"view": "model"}).json()["messages"]
        log = http.get(f"{W}/sessions/{session}/messages", params={"view": "log"}).json()["messages"]
        beyond = ("_items", "_answer", "reasoning_content")
        assert view == [{key: value for key, value in each.items() if key not in beyond} for each in log]
