"""The callback in litellm's own calls, streams and router, against a scripted provider."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.integrations.places import DEPLOYS, NO_SERVER, Place, needs, recipes, run_recipe

needs("litellm")

from openai import OpenAI

from indexer.providers.litellm_package import litellm_package
from memory_service.integrations.litellm import MemoryLogger
from memory_service.testing import Reply, ScriptedServer, ScriptedStep
from tests.campaigns import tool_loops
from tests.wire import Provider

PROMPT = {"role": "system", "content": "You are the shop's assistant."}
T = TypeVar("T")
ORDER = {"type": "function", "function": {"name": "order", "parameters": {"type": "object", "properties": {}}}}


@pytest.fixture
def litellm() -> Any:
    package = litellm_package()
    package.logging_callback_manager._reset_all_callbacks()
    return package


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def sent(server: ScriptedServer, at: int = -1) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = server.requests[at].body["messages"]
    return messages


async def _calls(litellm: Any, server: ScriptedServer, *said: list[Any], **options: Any) -> list[Any]:
    answers = []
    for messages in said:
        call = await litellm.acompletion(
            "openai/gpt-4o", messages=messages, api_base=server.url, api_key="any", max_retries=0, **options
        )
        if options.get("stream"):
            answers.append("".join([chunk.choices[0].delta.content or "" async for chunk in call]))
        else:
            answers.append(call.choices[0].message)
    return answers


def run(litellm: Any, work: Coroutine[Any, Any, T]) -> T:
    """Run something of litellm's, and close the clients that it leaves to the next loop."""

    async def closed() -> T:
        try:
            return await work
        finally:
            await litellm.close_litellm_async_clients()
            litellm.in_memory_llm_clients_cache.flush_cache()

    return asyncio.run(closed())


def calls(litellm: Any, server: ScriptedServer, *said: list[Any], **options: Any) -> list[Any]:
    return run(litellm, _calls(litellm, server, *said, **options))


def test_memories_stand_before_the_question_and_the_answer_is_kept(litellm: Any, place: Place) -> None:
    place.remember(DEPLOYS)
    litellm.callbacks.append(MemoryLogger(place.source, place.workspace))
    said = [PROMPT, user("When do we deploy?")]
    more = [*said, {"role": "assistant", "content": "On Tuesdays."}, user("Thanks!")]
    with ScriptedServer("On Tuesdays.", "You are welcome.") as server:
        calls(litellm, server, said, more, litellm_session_id="support-42")
        system, block, question = sent(server, 0)
        assert (system, question) == tuple(said) and DEPLOYS in block["content"]
        # The block stays before the question that it is for.
        assert sent(server) == [system, block, question, *more[2:]]
    assert said == [PROMPT, user("When do we deploy?")], "the caller's list is the caller's"
    texts = [each["content"] for each in place.log("support-42")]
    assert texts == ["When do we deploy?", "On Tuesdays.", "Thanks!", "You are welcome."]


def test_a_long_conversation_fits_the_window_with_its_calls_in_pairs(litellm: Any, place: Place) -> None:
    litellm.callbacks.append(MemoryLogger(place.source, place.workspace, context_window=8_000, recall="never"))
    script: list[ScriptedStep] = []
    for at in range(12):
        script += [Reply(tool_call="order", arguments=json.dumps({"number": at})), f"ORD-{at} is shipped. " * 60]

    async def turns(server: ScriptedServer) -> list[Any]:
        said: list[Any] = [PROMPT]
        for at in range(12):
            said.append(user(f"Where is ORD-{at}? 请查一下。"))
            for _ in range(2):
                (answer,) = await _calls(litellm, server, said, metadata={"session_id": "s"}, tools=[ORDER])
                said.append(answer.model_dump(exclude_none=True))
                said += [
                    {"role": "tool", "tool_call_id": call.id, "content": "shipped, 已发货, " * 200}
                    for call in answer.tool_calls or ()
                ]
        return said

    with ScriptedServer(*script) as server:
        said = run(litellm, turns(server))
        for at in range(len(server.requests)):
            shown = sent(server, at)
            made = [call["id"] for each in shown for call in each.get("tool_calls") or ()]
            assert made == [each["tool_call_id"] for each in shown if each["role"] == "tool"]
            assert len(json.dumps(shown, ensure_ascii=False)) < 4 * 8_000
        assert "<summary>" in str(sent(server)) and sent(server)[0] == PROMPT
    assert len(said) == 1 + 12 * 4
    assert len(place.log("s")) == 48, "each once"


def test_streams_are_kept_when_they_are_over(litellm: Any, place: Place) -> None:
    place.remember(DEPLOYS)
    litellm.callbacks.append(MemoryLogger(place.source, place.workspace))

    async def streamed(server: ScriptedServer) -> list[Any]:
        said = [user("When do we deploy?")]
        answers = await _calls(litellm, server, said, stream=True, litellm_session_id="s")
        for _ in range(600):  # litellm's worker calls back behind the stream.
            if len(place.log("s")) == 2:
                break
            await asyncio.sleep(0.05)
        return answers

    with ScriptedServer("On Tuesdays, 每周二。") as server:
        assert run(litellm, streamed(server)) == ["On Tuesdays, 每周二。"]
        assert DEPLOYS in str(sent(server))
    assert [each["content"] for each in place.log("s")] == ["When do we deploy?", "On Tuesdays, 每周二。"]


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_streamed_tool_loops_are_refused_by_nobody_and_part_nowhere(tmp_path: Path, provider: Provider) -> None:
    found = tool_loops.measure(tmp_path, turns=12, talks=2, provider=provider)
    assert (found.errors, found.lost) == ([], [])
    assert sorted(found.sessions) == ["talk-0", "talk-1"]


def test_users_who_begin_alike_have_conversations_of_their_own(litellm: Any, place: Place) -> None:
    litellm.callbacks.append(MemoryLogger(place.source, place.workspace, recall="never"))
    with ScriptedServer("Hello Lena.", "Hello Ohm.") as server:
        for name in ("lena", "ohm"):
            calls(litellm, server, [user("Hi, it is me again.")], user=name)
    assert len(place.sessions()) == 2


def test_a_router_recalls_too(litellm: Any, place: Place) -> None:
    place.remember(DEPLOYS)
    litellm.callbacks.append(MemoryLogger(place.source, place.workspace))

    async def routed(server: ScriptedServer) -> str:
        deployment = {"model": "openai/gpt-4o", "api_base": server.url, "api_key": "any"}
        router = litellm.Router([{"model_name": "shop", "litellm_params": deployment}], num_retries=0)
        answer = await router.acompletion("shop", [user("When do we deploy?")], metadata={"session_id": "s"})
        return str(answer.choices[0].message.content)

    with ScriptedServer("On Tuesdays.") as server:
        assert run(litellm, routed(server)) == "On Tuesdays."
        assert DEPLOYS in str(sent(server))
    assert len(place.log("s")) == 2


def test_the_call_goes_on_without_its_memory(litellm: Any, caplog: pytest.LogCaptureFixture) -> None:
    litellm.callbacks.append(MemoryLogger(NO_SERVER))
    with ScriptedServer("On Tuesdays.") as server, caplog.at_level(logging.WARNING):
        calls(litellm, server, [PROMPT, user("When do we deploy?")])
        assert sent(server) == [PROMPT, user("When do we deploy?")]
    assert "session: the agent goes on without it" in caplog.text


def test_calls_without_a_place_for_a_memory_are_told(
    litellm: Any, place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    litellm.callbacks.append(MemoryLogger(place.source, place.workspace))
    said = [user("When do we deploy?")]
    with ScriptedServer("Tuesdays.", "Tuesdays.", "Tuesdays.") as server, caplog.at_level(logging.WARNING):
        with OpenAI(base_url=server.url, api_key="any") as client:
            litellm.completion("openai/gpt-4o", messages=said, client=client)
        assert "completion goes on without it" in caplog.text
        run(litellm, litellm.acompletion("openai/gpt-4o", said, api_base=server.url, api_key="any"))
        assert "give acompletion its messages by name" in caplog.text
        assert sent(server, 0) == sent(server, 1) == said
        run(litellm, litellm.aresponses(input="When?", model="openai/gpt-4o", api_base=server.url, api_key="any"))
        assert "aresponses goes on without it" in caplog.text


def test_the_proxy_finds_the_callback_of_its_recipe(litellm: Any, tmp_path: Path) -> None:
    from litellm.proxy.types_utils.utils import get_instance_fn

    program, config = recipes("litellm")[1:]
    (tmp_path / "memory_callback.py").write_text(program, "utf-8")
    name = config.partition("callbacks: ")[2].split()[0]
    assert isinstance(get_instance_fn(name, config_file_path=str(tmp_path / "config.yaml")), MemoryLogger)


@pytest.mark.parametrize("place", ["server"], indirect=True)
def test_the_recipe(place: Place) -> None:
    place.service.remember("default", DEPLOYS)
    with ScriptedServer(f"{DEPLOYS} I looked it up.") as server:
        environment = {"OPENAI_API_BASE": server.url, "OPENAI_API_KEY": "any", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
        assert DEPLOYS in run_recipe("litellm", place, **environment)
        assert DEPLOYS in str(sent(server)[-2])
