"""The provider in the Agent Framework's own loop, with a scripted model."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

import pytest

from tests.integrations.places import DEPLOYS, NO_SERVER, Place, needs, run_recipe

needs("agent_framework", "agent_framework_openai")

from agent_framework import Agent, AgentSession
from agent_framework.openai import OpenAIChatCompletionClient

from memory_service.integrations.agent_framework import MemoryProvider
from memory_service.testing import Reply, ScriptedServer


def order(number: str) -> str:
    """Look an order up."""
    return f"{number}: 已发货"


def talk(server: ScriptedServer, provider: MemoryProvider, *said: str) -> AgentSession:
    """The session of one conversation, one run after the other."""

    async def run() -> AgentSession:
        client = OpenAIChatCompletionClient(model="gpt-4o", base_url=server.url, api_key="any")
        agent = Agent(client=client, instructions="Be kind.", tools=[order], context_providers=[provider])
        session = agent.create_session(session_id="support-42")
        for text in said:
            await agent.run(text, session=session)
        await client.client.close()
        return session

    return asyncio.run(run())


def sent(server: ScriptedServer, at: int = -1) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = server.requests[at].body["messages"]
    return messages


def test_memories_stand_before_the_question_and_in_no_history(place: Place) -> None:
    place.remember(DEPLOYS)
    with ScriptedServer("On Tuesdays.", "You are welcome.") as server:
        session = talk(server, MemoryProvider(place.source, place.workspace), "When do we deploy?", "Thanks!")
        assert DEPLOYS in str(sent(server, 0)[-2:]) and "When do we deploy?" in str(sent(server, 0)[-1])
        assert DEPLOYS not in str(sent(server, 1)) and "On Tuesdays." in str(sent(server, 1))
    assert DEPLOYS not in json.dumps(session.to_dict(), default=str)
    said = ["When do we deploy?", "On Tuesdays.", "Thanks!", "You are welcome."]
    assert [each["content"] for each in place.log("support-42")] == said


def test_calls_of_tools_and_facts_are_kept(place: Place) -> None:
    call = Reply(tool_call="order", arguments='{"number": "ORD-1"}')
    with ScriptedServer(call, "It is shipped.", "Noted.") as server:
        provider = MemoryProvider(place.source, place.workspace)
        talk(server, provider, "Where is ORD-1?", "I always want parcels left with the neighbour. 我的包裹放门卫室。")
    log = place.log("support-42")
    assert [each["role"] for each in log] == ["user", "assistant", "tool", "assistant", "user", "assistant"]
    assert log[1]["tool_calls"][0]["id"] == log[2]["tool_call_id"] and log[2]["content"] == "ORD-1: 已发货"
    found = place.service.search(place.workspace, "where do parcels go?", sources=["memory"]).results
    assert "neighbour" in found[0].text


def test_a_user_is_told_in_another_conversation(place: Place) -> None:
    with ScriptedServer("Noted.", "At the gate.") as server:
        talk(server, MemoryProvider(place.source, place.workspace), "我的快递总是放在门卫室。")
        talk(server, MemoryProvider(place.source, place.workspace), "我的快递放在哪里？")
        assert "门卫室" in str(sent(server)[-2])


def test_the_agent_goes_on_without_its_memory(caplog: pytest.LogCaptureFixture) -> None:
    with ScriptedServer("On Tuesdays.") as server, caplog.at_level(logging.WARNING):
        talk(server, MemoryProvider(NO_SERVER), "When do we deploy?")
        assert [each["role"] for each in sent(server)] == ["system", "user"]
    for part in ("recall", "session"):
        assert f"{part}: the agent goes on without it" in caplog.text


@pytest.mark.parametrize("place", ["server"], indirect=True)
def test_the_recipe(place: Place) -> None:
    place.service.remember("default", DEPLOYS)
    with ScriptedServer(f"{DEPLOYS} I looked it up.") as server:
        printed = run_recipe("Microsoft Agent Framework", place, OPENAI_BASE_URL=server.url, OPENAI_API_KEY="any")
        assert DEPLOYS in printed and DEPLOYS in str(sent(server)[:-1])
