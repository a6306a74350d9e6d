"""The block in LlamaIndex's own memory and agent, with a scripted model."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from tests.integrations.places import DEPLOYS, NO_SERVER, Place, needs, run_recipe

needs("llama_index.core", "llama_index.llms.openai_like")

from llama_index.core.agent import FunctionAgent
from llama_index.core.llms import ChatMessage
from llama_index.core.memory import Memory
from llama_index.llms.openai_like import OpenAILike

from memory_service.integrations.llama_index import MemoryServiceBlock
from memory_service.testing import Reply, ScriptedServer

# Its workflows look at every attribute of an agent, deprecated ones of pydantic too.
pytestmark = [
    pytest.mark.filterwarnings("ignore:The `__.*__` attribute is deprecated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:Accessing the '.*' attribute on the instance:DeprecationWarning"),
    # Its memory never closes the database that it keeps in memory, nor its client the connection.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(autouse=True)
def _collected() -> Iterator[None]:
    """What it leaves open is collected within the test that left it."""
    yield
    gc.collect()


def order(number: str) -> str:
    """Look an order up."""
    return f"{number}: 已发货"


def remembering(block: MemoryServiceBlock, **options: Any) -> Memory:
    return Memory.from_defaults(session_id="support-42", memory_blocks=[block], **options)


def talk(server: ScriptedServer, memory: Memory, *said: str) -> None:
    """One conversation, one run after the other."""

    async def run() -> None:
        model = OpenAILike(
            model="gpt-4o", api_base=server.url, api_key="any", is_chat_model=True, is_function_calling_model=True
        )
        agent = FunctionAgent(llm=model, tools=[order], system_prompt="Be kind.", streaming=False)
        for text in said:
            await agent.run(text, memory=memory)

    asyncio.run(run())


def sent(server: ScriptedServer, at: int = -1) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = server.requests[at].body["messages"]
    return messages


def test_memories_stand_in_the_prompt_and_not_in_the_history(place: Place) -> None:
    place.remember(DEPLOYS)
    memory = remembering(MemoryServiceBlock(place.source, place.workspace))
    with ScriptedServer("On Tuesdays.", "You are welcome.") as server:
        talk(server, memory, "When do we deploy?", "Thanks!")
        assert DEPLOYS in str(sent(server, 0)) and DEPLOYS not in str(sent(server, 1))
    assert DEPLOYS not in str(asyncio.run(memory.aget_all()))


def test_what_leaves_the_queue_is_kept_in_order_and_found(place: Place) -> None:
    memory = remembering(MemoryServiceBlock(place.source, place.workspace), token_limit=300, token_flush_size=50)
    call = Reply(tool_call="order", arguments='{"number": "ORD-1"}')
    told = "I always want parcels left with the neighbour. 我的快递总是放在门卫室。"
    with ScriptedServer("Noted. " * 40, call, "It is shipped. " * 40, "Sure. " * 80, "With the neighbour.") as server:
        talk(server, memory, told, "Where is ORD-1?", "Tell me more about it.", "Where do my parcels go?")
        last = {role: [each["content"] for each in sent(server) if each["role"] == role] for role in ("user", "system")}
        assert told not in last["user"], "the queue has it no more"
        assert "neighbour" in str(last["system"]), "the block found it again"
    log = place.log("support-42")
    assert [each["role"] for each in log][:6] == ["user", "assistant", "user", "assistant", "tool", "assistant"]
    assert log[3]["tool_calls"][0]["id"] == log[4]["tool_call_id"] and log[4]["content"] == "ORD-1: 已发货"
    assert log[0]["content"] == told
    for query in ("where do parcels go?", "快递放在哪里"):
        assert place.service.search(place.workspace, query, sources=["memory"]).results


def test_a_block_takes_the_fields_of_every_block(place: Place) -> None:
    block = MemoryServiceBlock(place.source, place.workspace, name="shop", priority=1, accept_short_term_memory=False)
    assert (block.name, block.priority) == ("shop", 1)
    message = ChatMessage(role="user", content="I live in Graz.")
    asyncio.run(block.aput([message], from_short_term_memory=True, session_id="s"))
    assert asyncio.run(block.aget([])) == ""
    asyncio.run(block.aput([message], session_id="客服"))
    (name,) = place.sessions()
    assert place.log(name) == [{"role": "user", "content": "I live in Graz."}]


def test_the_agent_goes_on_without_its_memory(caplog: pytest.LogCaptureFixture) -> None:
    with ScriptedServer("On Tuesdays.", "Sure. " * 80) as server, caplog.at_level(logging.WARNING):
        memory = remembering(MemoryServiceBlock(NO_SERVER), token_limit=60, token_flush_size=20)
        talk(server, memory, "When do we deploy?", "And on Fridays? " * 20)
    for part in ("recall", "session"):
        assert f"{part}: the agent goes on without it" in caplog.text


@pytest.mark.parametrize("place", ["server"], indirect=True)
def test_the_recipe(place: Place) -> None:
    place.service.remember("default", DEPLOYS)
    with ScriptedServer(f"{DEPLOYS} I looked it up.") as server:
        printed = run_recipe("LlamaIndex", place, OPENAI_API_BASE=server.url, OPENAI_API_KEY="any")
        assert DEPLOYS in printed and DEPLOYS in str(sent(server))
