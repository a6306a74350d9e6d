"""The middleware in LangChain's own agent loop, with a scripted model."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from tests.integrations.places import DEPLOYS, NO_SERVER, Place, needs, run_recipe

needs("langchain", "langchain_openai")

from langchain.agents import create_agent
from langchain.tools import tool
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import SecretStr

from memory_service.integrations.langchain import MemoryMiddleware
from memory_service.testing import Reply, ScriptedServer, ScriptedStep

PROMPT = "You are the shop's assistant."


@tool
def order(number: str) -> str:
    """Look an order up."""
    return f"{number}: " + "shipped with the parcel service, 已发货, " * 60


def agent_of(server: ScriptedServer, middleware: MemoryMiddleware) -> Any:
    model = ChatOpenAI(model="gpt-4o", base_url=server.url, api_key=SecretStr("any"), max_retries=0)
    return create_agent(model, [order], system_prompt=PROMPT, middleware=[middleware], checkpointer=InMemorySaver())


def turns(count: int) -> Iterator[ScriptedStep]:
    for at in range(count):
        yield Reply(tool_call="order", arguments=json.dumps({"number": f"ORD-{at}"}))
        yield f"ORD-{at} is shipped. " * 60


def say(agent: Any, text: str, thread: str = "support-42") -> list[Any]:
    said: list[Any] = agent.invoke({"messages": [HumanMessage(text)]}, {"configurable": {"thread_id": thread}})[
        "messages"
    ]
    return said


def sent(server: ScriptedServer, at: int = -1) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = server.requests[at].body["messages"]
    return messages


def assert_calls_are_paired(messages: list[dict[str, Any]]) -> None:
    waiting: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            assert message["tool_call_id"] == waiting.pop(0)
        else:
            assert not waiting
            waiting = [call["id"] for call in message.get("tool_calls") or ()]
    assert not waiting


def test_memories_stand_before_the_question_and_not_in_the_state(place: Place) -> None:
    place.remember(DEPLOYS)
    with ScriptedServer("On Tuesdays.", "You are welcome.") as server:
        agent = agent_of(server, MemoryMiddleware(place.source, place.workspace))
        assert [each.text for each in say(agent, "When do we deploy?")] == ["When do we deploy?", "On Tuesdays."]
        say(agent, "Thanks!")
        system, block, question = sent(server, 0)
        assert (system["content"], question["content"]) == (PROMPT, "When do we deploy?")
        assert DEPLOYS in block["content"]
        # The block stays before the question that it is for.
        assert sent(server)[:3] == sent(server, 0)
        assert [each["content"] for each in sent(server)[3:]] == ["On Tuesdays.", "Thanks!"]
    assert [each["content"] for each in place.log("support-42")][-2:] == ["Thanks!", "You are welcome."]
    assert place.service.session_status(place.workspace, "support-42").messages == 4


def test_a_long_thread_fits_the_window_with_its_calls_in_pairs(place: Place) -> None:
    with ScriptedServer(*turns(14)) as server:
        agent = agent_of(server, MemoryMiddleware(place.source, place.workspace, context_window=8_000))
        for at in range(14):
            said = say(agent, f"Where is ORD-{at}? 请查一下。")
        for at in range(len(server.requests)):
            assert_calls_are_paired(sent(server, at))
            assert len(str(sent(server, at))) < 4 * 8_000
        assert "<summary>" in str(sent(server))
        assert str(sent(server)).count(PROMPT) == 1
    assert [each.type for each in said] == ["human", "ai", "tool", "ai"] * 14, "the state has everything"
    assert len(place.log("support-42")) == 14 * 4, "and so has the log, once"
    assert place.service.compactions(place.workspace, "support-42").compactions


def test_a_new_process_goes_on_where_the_thread_was(place: Place) -> None:
    saver = InMemorySaver()
    for text in ("When do we deploy?", "And on holidays?"):
        with ScriptedServer("Tuesdays.") as server:
            model = ChatOpenAI(model="gpt-4o", base_url=server.url, api_key=SecretStr("any"))
            agent = create_agent(
                model, middleware=[MemoryMiddleware(place.source, place.workspace)], checkpointer=saver
            )
            say(agent, text)
    assert [each["content"] for each in place.log("support-42")] == [
        "When do we deploy?", "Tuesdays.", "And on holidays?", "Tuesdays.",
    ]  # fmt: skip


def test_an_edited_thread_goes_on_in_a_branch(place: Place) -> None:
    config: Any = {"configurable": {"thread_id": "support-42"}}
    with ScriptedServer("Tuesdays.", "Fridays never.", "Mondays never.") as server:
        agent = agent_of(server, MemoryMiddleware(place.source, place.workspace, recall="never"))
        say(agent, "When do we deploy?")
        question, answer = say(agent, "And on Fridays?")[-2:]
        agent.update_state(config, {"messages": [RemoveMessage(question.id), RemoveMessage(answer.id)]})
        say(agent, "And on Mondays?")
        assert "Fridays" not in str(sent(server))
    branch = next(name for name in place.sessions() if name != "support-42")
    assert [each["content"] for each in place.log(branch)][2:] == ["And on Mondays?", "Mondays never."]
    assert place.log("support-42")[-1]["content"] == "Fridays never."


def test_pictures_and_blocks_of_text_reach_the_model_as_they_are(place: Place) -> None:
    pixel = (
        "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"
        "+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    )
    content: list[Any] = [
        {"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": {"url": pixel}},
    ]
    with ScriptedServer("A pixel.", "Yes.") as server:
        agent = agent_of(server, MemoryMiddleware(place.source, place.workspace, recall="never"))
        config: Any = {"configurable": {"thread_id": "support-42"}}
        agent.invoke({"messages": [HumanMessage(content)]}, config)
        say(agent, "Are you sure?")
        assert sent(server, 0)[1]["content"] == content
        assert len(sent(server)) == 4


def test_it_works_asynchronously_and_in_streams(place: Place) -> None:
    place.remember(DEPLOYS)

    async def talk(agent: Any) -> list[Any]:
        config = {"configurable": {"thread_id": "客服"}}
        await agent.ainvoke({"messages": "When do we deploy?"}, config)
        return [part async for part in agent.astream({"messages": "Really?"}, config, stream_mode="messages")]

    with ScriptedServer("On Tuesdays.", "Yes, really.") as server:
        parts = asyncio.run(talk(agent_of(server, MemoryMiddleware(place.source, place.workspace))))
        assert DEPLOYS in str(sent(server, 0))
    assert "".join(chunk.text for chunk, _ in parts if isinstance(chunk, AIMessage)) == "Yes, really."
    (session_id,) = place.sessions()
    assert [each["content"] for each in place.log(session_id)][1::2] == ["On Tuesdays.", "Yes, really."]


def test_the_agent_goes_on_without_its_memory(caplog: pytest.LogCaptureFixture) -> None:
    with ScriptedServer("On Tuesdays.") as server, caplog.at_level(logging.WARNING):
        said = say(agent_of(server, MemoryMiddleware(NO_SERVER)), "When do we deploy?")
        assert [each["content"] for each in sent(server)] == [PROMPT, "When do we deploy?"]
    assert said[-1].text == "On Tuesdays."
    assert "session: the agent goes on without it" in caplog.text


@pytest.mark.parametrize("place", ["server"], indirect=True)
def test_the_recipe(place: Place) -> None:
    place.service.remember("default", DEPLOYS)
    with ScriptedServer(f"{DEPLOYS} I looked it up.") as server:
        assert DEPLOYS in run_recipe("LangChain", place, OPENAI_BASE_URL=server.url, OPENAI_API_KEY="any")
        assert DEPLOYS in str(sent(server)[-2])
