"""The store in Strands' own agent and memory manager, with a scripted model."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from tests.integrations.places import DEPLOYS, NO_SERVER, Place, needs, run_recipe

needs("strands", "openai")

from strands import Agent
from strands.memory import MemoryManager
from strands.memory.types import AddMessagesContext
from strands.models.openai import OpenAIModel

from memory_service import ConnectionFailed, InvalidRequest
from memory_service.integrations.strands import StrandsStore
from memory_service.testing import Reply, ScriptedServer

NEIGHBOUR = "I always want parcels left with the neighbour."


def talk(server: ScriptedServer, store: StrandsStore, *said: str, **options: Any) -> Agent:
    """The agent of one conversation, one turn after the other."""
    model = OpenAIModel(model_id="gpt-4o", client_args={"base_url": server.url, "api_key": "any"})
    agent = Agent(model=model, memory_manager=MemoryManager(stores=[store], **options), callback_handler=None)
    for text in said:
        agent(text)
    return agent


def sent(server: ScriptedServer, at: int = -1) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = server.requests[at].body["messages"]
    return messages


def add(store: StrandsStore, *texts: str, numbers: list[int] | None = None) -> None:
    messages: Any = [{"role": "user", "content": [{"text": text}]} for text in texts]
    asyncio.run(store.add_messages(messages, AddMessagesContext(sequence_numbers=numbers) if numbers else None))


def test_memories_stand_in_the_prompt_and_not_in_the_history(place: Place) -> None:
    place.remember(DEPLOYS)
    with ScriptedServer("On Tuesdays.", "You are welcome.") as server:
        agent = talk(server, StrandsStore(place.source, place.workspace), "When do we deploy?", "Thanks!")
        assert DEPLOYS in str(sent(server, 0)) and DEPLOYS not in str(sent(server, 1))
    assert DEPLOYS not in str(agent.messages)
    assert place.sessions() == [], "nothing is kept without extraction"


def test_what_was_said_is_kept_once_and_its_facts_are_found(place: Place) -> None:
    store = StrandsStore(place.source, place.workspace, session_id="support-42", extraction=True)
    with ScriptedServer("Noted.", "好的。", *(["Sure."] * 5)) as server:
        talk(server, store, NEIGHBOUR, "我的快递总是放在门卫室。", *(f"Question {at}" for at in range(5)))
    log = [each["content"] for each in place.log("support-42")]
    assert len(log) == 14 and log[:4] == [NEIGHBOUR, "Noted.", "我的快递总是放在门卫室。", "好的。"]
    for query, text in (("where do parcels go?", "neighbour"), ("快递放在哪里？", "门卫室")):
        assert text in place.service.search(place.workspace, query, sources=["memory"], limit=1).results[0].text


def test_the_model_saves_and_finds_with_strands_own_tools(place: Place) -> None:
    store = StrandsStore(place.source, place.workspace, max_search_results=1)
    with ScriptedServer(
        Reply(tool_call="add_memory", arguments='{"entries": ["Parcels go to the neighbour."]}'),
        "Saved.",
        Reply(tool_call="search_memory", arguments='{"query": "where do parcels go"}'),
        "With the neighbour.",
    ) as server:
        talk(server, store, "Keep that.", "Well?", add_tool_config=True, injection=False)
        assert "Parcels go to the neighbour." in str(sent(server)[-1])
    (file,) = place.service.files(place.workspace)
    assert "- Parcels go to the neighbour." in (place.folder / file.path).read_text("utf-8")


def test_a_batch_that_is_sent_again_is_kept_once(place: Place) -> None:
    store = StrandsStore(place.source, place.workspace, session_id="s")
    add(store, "ok", "ok", numbers=[0, 2])
    add(store, "ok", "ok", "ok", numbers=[0, 2, 3])
    assert len(place.log("s")) == 3
    add(StrandsStore(place.source, place.workspace, session_id="s"), "ok", numbers=[0])
    add(store, "ok")
    assert len(place.log("s")) == 5


def test_tools_and_other_blocks_are_kept_where_strands_sends_them(place: Place) -> None:
    store = StrandsStore(place.source, place.workspace, session_id="s")
    result = {"toolUseId": "c", "status": "success", "content": [{"text": "已发货"}, {"json": {"at": "门卫室"}}]}
    messages: Any = [
        {"role": "user", "content": [{"text": "Where is it?"}, {"image": {"format": "png", "source": {}}}]},
        {"role": "assistant", "content": [{"toolUse": {"toolUseId": "c", "name": "order", "input": {"n": 1}}}]},
        {"role": "user", "content": [{"toolResult": result}]},
    ]
    asyncio.run(store.add_messages(messages))
    asked, called, answered = place.log("s")
    assert asked["content"] == "Where is it?\n[image]"
    assert called["tool_calls"][0]["function"] == {"name": "order", "arguments": '{"n": 1}'}
    assert answered == {"role": "tool", "tool_call_id": "c", "content": '已发货\n{"at": "门卫室"}'}


@pytest.mark.parametrize("tool", ["search_memory", "look_up"])
def test_what_was_looked_up_is_not_kept_again(place: Place, tool: str) -> None:
    place.remember(DEPLOYS)
    store = StrandsStore(place.source, place.workspace, session_id="s")
    with ScriptedServer(Reply(tool_call=tool, arguments='{"query": "When do we deploy?"}'), "Soon.") as server:
        agent = talk(server, store, "Well?", search_tool_config={"name": tool}, injection=False)
        assert DEPLOYS in str(sent(server)[-1])
    asyncio.run(store.add_messages(agent.messages))
    assert [each["content"] for each in place.log("s")] == ["Well?", None, "[recalled]", "Soon."]


def test_adding_twice_writes_once_and_a_read_only_store_not_at_all(place: Place) -> None:
    store = StrandsStore(place.source, place.workspace)
    both = [asyncio.run(store.add(DEPLOYS, {"tags": ["ops"], "else": 1})) for _ in range(2)]
    assert both[0] == both[1]
    (entry,) = asyncio.run(store.search("When do we deploy?"))
    assert entry.content.startswith(DEPLOYS) and "memory/" in (entry.metadata or {})["source"]
    closed = StrandsStore(place.source, place.workspace, writable=False)
    with pytest.raises(InvalidRequest, match="is read-only"):
        asyncio.run(closed.add("Other"))
    with pytest.raises(InvalidRequest, match="is read-only"):
        add(closed, "Other")
    assert len(asyncio.run(closed.search("When do we deploy?"))) == 1


def test_a_tag_is_one_word_and_a_great_number_of_results_is_the_most_there_can_be(place: Place) -> None:
    store = StrandsStore(place.source, place.workspace, max_search_results=5_000)
    asyncio.run(store.add(NEIGHBOUR, {"tags": "ops"}))
    asyncio.run(store.add(DEPLOYS, {"tags": ["work", "运维"]}))
    (file,) = place.service.files(place.workspace)
    text = place.service.get(place.workspace, file.path).text
    assert "#ops" in text and "#work #运维" in text and "#o " not in text
    assert len(asyncio.run(store.search("When do we deploy?"))) == 2


def test_the_agent_goes_on_without_its_memory(caplog: pytest.LogCaptureFixture) -> None:
    store = StrandsStore(NO_SERVER, extraction=True)
    with ScriptedServer("On Tuesdays.") as server, caplog.at_level(logging.WARNING):
        talk(server, store, "When do we deploy?")
    assert "recall: the agent goes on without it" in caplog.text
    assert "memory extraction failed" in caplog.text
    with pytest.raises(ConnectionFailed):
        add(store, "told to Strands, which tries again")


@pytest.mark.parametrize("place", ["server"], indirect=True)
def test_the_recipe(place: Place) -> None:
    place.service.remember("default", DEPLOYS)
    with ScriptedServer(f"{DEPLOYS} I looked it up.") as server:
        printed = run_recipe("Strands", place, OPENAI_BASE_URL=server.url, OPENAI_API_KEY="any")
        assert DEPLOYS in printed and DEPLOYS in str(sent(server))
