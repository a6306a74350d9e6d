"""The capability in Pydantic AI's own agent loop, with a scripted model and with its test model."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from tests.integrations.places import DEPLOYS, NO_SERVER, Place, needs, run_recipe

needs("pydantic_ai")

from pydantic_ai import Agent, BinaryContent, ModelRetry
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ThinkingPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from memory_service.integrations.pydantic_ai import MemoryCapability
from memory_service.testing import Reply, ScriptedServer, ScriptedStep

PROMPT = "You are the shop's assistant."
PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010804000000b51c0c020000000b4944415478da6364f80f00010501012718e3660000000049454e44ae426082"
)


def order(number: str) -> str:
    """Look an order up."""
    if number == "ORD-0":
        raise ModelRetry("There is no ORD-0.")
    return f"{number}: " + "shipped with the parcel service, 已发货, " * 60


def turns(count: int) -> Iterator[ScriptedStep]:
    for at in range(1, count + 1):
        yield Reply(tool_call="order", arguments=json.dumps({"number": f"ORD-{at}"}))
        yield f"ORD-{at} is shipped. " * 60


def talk(server: ScriptedServer, capability: MemoryCapability, *said: Any, **options: Any) -> list[ModelMessage]:
    """What was said in one conversation, one run after the other."""

    async def run() -> list[ModelMessage]:
        async with OpenAIProvider(base_url=server.url, api_key="any") as provider:
            model = OpenAIChatModel("gpt-4o", provider=provider)
            agent = Agent(model, instructions=PROMPT, tools=[order], capabilities=[capability], **options)
            history: list[ModelMessage] = []
            for text in said:
                done = await agent.run(text, message_history=history, conversation_id="support-42")
                history = done.all_messages()
            return history

    return asyncio.run(run())


def sent(server: ScriptedServer, at: int = -1) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = server.requests[at].body["messages"]
    return messages


def test_memories_stand_before_the_question_and_not_in_the_history(place: Place) -> None:
    place.remember(DEPLOYS)
    with ScriptedServer("On Tuesdays.", "You are welcome.") as server:
        history = talk(server, MemoryCapability(place.source, place.workspace), "When do we deploy?", "Thanks!")
        system, block, question = sent(server, 0)
        assert (system["content"], question["content"]) == (PROMPT, "When do we deploy?")
        assert DEPLOYS in block["content"]
        # The block stays before the question that it is for.
        assert sent(server)[:3] == sent(server, 0)
        assert [each["content"] for each in sent(server)[3:]] == ["On Tuesdays.", "Thanks!"]
    assert len(history) == 4 and "Deploys go out" not in str(history)
    assert [each["content"] for each in place.log("support-42")][1::2] == ["On Tuesdays.", "You are welcome."]


def test_a_long_conversation_fits_the_window_with_its_calls_in_pairs(place: Place) -> None:
    capability = MemoryCapability(place.source, place.workspace, context_window=8_000)
    with ScriptedServer(*turns(14)) as server:
        history = talk(server, capability, *(f"Where is ORD-{at}? 请查一下。" for at in range(1, 15)))
        for at in range(len(server.requests)):
            said = sent(server, at)
            calls = [call["id"] for each in said for call in each.get("tool_calls") or ()]
            assert calls == [each["tool_call_id"] for each in said if each["role"] == "tool"]
            assert len(json.dumps(said, ensure_ascii=False)) < 4 * 8_000
        assert "<summary>" in str(sent(server)) and str(sent(server)).count(PROMPT) == 1
    assert len(history) == 14 * 4, "the history has everything"
    assert len(place.log("support-42")) == 14 * 4, "and so has the log, once"


def test_an_edited_history_goes_on_in_a_branch(place: Place) -> None:
    capability = MemoryCapability(place.source, place.workspace, recall="never")
    with ScriptedServer("Tuesdays.", "Fridays never.", "Mondays never.") as server:

        async def run() -> None:
            async with OpenAIProvider(base_url=server.url, api_key="any") as provider:
                agent = Agent(OpenAIChatModel("gpt-4o", provider=provider), capabilities=[capability])
                first = await agent.run("When do we deploy?", conversation_id="s")
                for text in ("And on Fridays?", "And on Mondays?"):
                    await agent.run(text, message_history=first.all_messages(), conversation_id="s")

        asyncio.run(run())
        assert "Fridays" not in str(sent(server))
    branch = next(name for name in place.sessions() if name != "s")
    assert [each["content"] for each in place.log(branch)][2:] == ["And on Mondays?", "Mondays never."]


def test_pictures_retries_and_system_prompts_reach_the_model_as_they_are(place: Place) -> None:
    picture = BinaryContent(PIXEL, media_type="image/png")
    with ScriptedServer(Reply(tool_call="order", arguments='{"number": "ORD-0"}'), "It is gone.", "Yes.") as server:
        talk(
            server,
            MemoryCapability(place.source, place.workspace, recall="never"),
            ["What is this, and ORD-0?", picture],
            "Are you sure?",
            system_prompt="Be kind.",
        )
        roles = [each["role"] for each in sent(server)]
        assert roles == ["system", "system", "user", "assistant", "tool", "assistant", "user"]
        assert {each["content"] for each in sent(server)[:2]} == {PROMPT, "Be kind."}
        assert sent(server)[2]["content"][1]["image_url"]["url"].startswith("data:image/png;base64,iVBOR")
        assert "There is no ORD-0." in sent(server)[4]["content"]


def test_what_a_message_has_beside_its_words_is_kept(place: Place) -> None:
    """Thinking and signatures go back to the model, which only sees its own messages again where they are unchanged."""
    seen: list[list[ModelMessage]] = []

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        seen.append(messages)
        return ModelResponse(parts=[ThinkingPart("Hm.", signature="c2lnbmVk"), TextPart("On Tuesdays.")])

    agent = Agent(FunctionModel(answer), capabilities=[MemoryCapability(place.source, place.workspace, recall="never")])

    async def run() -> tuple[list[ModelMessage], list[ModelMessage]]:
        first = await agent.run("When do we deploy?", conversation_id="s")
        second = await agent.run("Really?", message_history=first.all_messages(), conversation_id="s")
        return first.all_messages(), second.all_messages()

    first, second = asyncio.run(run())
    assert seen[1][1].parts == first[1].parts
    assert len(second) == 4


def test_streams_are_kept(place: Place) -> None:
    place.remember(DEPLOYS)
    with ScriptedServer("On Tuesdays.") as server:

        async def run() -> list[str]:
            async with OpenAIProvider(base_url=server.url, api_key="any") as provider:
                model = OpenAIChatModel("gpt-4o", provider=provider)
                agent = Agent(model, capabilities=[MemoryCapability(place.source, place.workspace)])
                async with agent.run_stream("When do we deploy?", conversation_id="s") as streamed:
                    return [text async for text in streamed.stream_text(debounce_by=None)]

        assert asyncio.run(run())[-1] == "On Tuesdays."
        assert DEPLOYS in str(sent(server))
    assert [each["content"] for each in place.log("s")] == ["When do we deploy?", "On Tuesdays."]


def test_the_agent_goes_on_without_its_memory(caplog: pytest.LogCaptureFixture) -> None:
    with ScriptedServer("On Tuesdays.") as server, caplog.at_level(logging.WARNING):
        history = talk(server, MemoryCapability(NO_SERVER), "When do we deploy?")
        assert [each["content"] for each in sent(server)] == [PROMPT, "When do we deploy?"]
    assert len(history) == 2
    assert "session: the agent goes on without it" in caplog.text


@pytest.mark.parametrize("place", ["server"], indirect=True)
def test_the_recipe(place: Place) -> None:
    place.service.remember("default", DEPLOYS)
    with ScriptedServer(f"{DEPLOYS} I looked it up.") as server:
        assert DEPLOYS in run_recipe("Pydantic AI", place, OPENAI_BASE_URL=server.url, OPENAI_API_KEY="any")
        assert DEPLOYS in str(sent(server)[-2])
