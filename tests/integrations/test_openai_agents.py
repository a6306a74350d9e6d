"""A session of the Agents SDK in its own loop, with a scripted model."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from tests.integrations.places import DEPLOYS, NO_SERVER, Place, needs, run_recipe

needs("agents")

from agents import Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, RunConfig, Runner, function_tool
from agents.memory import Session, SQLiteSession
from agents.memory.session import is_openai_responses_compaction_aware_session
from openai import AsyncOpenAI

from memory_service import ConnectionFailed
from memory_service.integrations.openai_agents import MemoryServiceSession
from memory_service.testing import Reply, ScriptedServer, ScriptedStep

QUIET = RunConfig(tracing_disabled=True)
CALLS: list[Any] = [
    {"type": "function_call", "call_id": f"call_{at}", "name": "order", "arguments": f'{{"number": "ORD-{at}"}}'}
    for at in (1, 2)
]
ITEMS: list[Any] = [
    {"role": "user", "content": "Where are my orders? 我的订单在哪里？"},
    {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Look both up."}]},
    *CALLS,
    {"type": "function_call_output", "call_id": "call_1", "output": "shipped"},
    {"type": "function_call_output", "call_id": "call_2", "output": [{"type": "input_text", "text": "lost"}]},
    {
        "type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
        "content": [{"type": "output_text", "text": "One is on its way.", "annotations": [], "logprobs": []}],
    },
    {"role": "user", "content": [{"type": "input_text", "text": "And the other?"}]},
]  # fmt: skip


@pytest.fixture
def session(place: Place) -> MemoryServiceSession:
    return MemoryServiceSession("support-42", place.source, place.workspace)


def another(place: Place, **options: Any) -> MemoryServiceSession:
    """The session as another process opens it."""
    return MemoryServiceSession("support-42", place.source, place.workspace, **options)


@function_tool
def order(number: str) -> str:
    """Look an order up."""
    return f"{number}: " + "shipped with the parcel service, 已发货, " * 60


def turns(count: int) -> Iterator[ScriptedStep]:
    for at in range(count):
        yield Reply(tool_call="order", arguments=json.dumps({"number": f"ORD-{at}"}))
        yield f"ORD-{at} is shipped. " * 60


def talk(
    server: ScriptedServer,
    session: Session,
    *said: str,
    model: type[Any] = OpenAIResponsesModel,
    config: RunConfig = QUIET,
) -> list[str]:
    """Answers of an agent to what is said to it, one after the other."""

    async def run() -> list[str]:
        async with AsyncOpenAI(base_url=server.url, api_key="any", max_retries=0) as client:
            shop = Agent(
                name="shop", instructions="Be kind.", model=model("gpt-4o", openai_client=client), tools=[order]
            )
            return [
                str((await Runner.run(shop, text, session=session, run_config=config, max_turns=20)).final_output)
                for text in said
            ]

    return asyncio.run(run())


def items_of(session: Session, limit: int | None = None) -> list[Any]:
    return list(asyncio.run(session.get_items(limit)))


def test_it_is_a_session_that_compacts_itself(session: MemoryServiceSession) -> None:
    assert isinstance(session, Session)
    assert is_openai_responses_compaction_aware_session(session)


def test_items_come_back_as_they_were(session: MemoryServiceSession, place: Place) -> None:
    assert items_of(session) == []
    asyncio.run(session.add_items([]))
    asyncio.run(session.add_items(ITEMS[:3]))
    asyncio.run(session.add_items(ITEMS[3:]))
    assert items_of(session) == items_of(another(place)) == ITEMS
    assert items_of(session, 2) == ITEMS[-2:]
    assert items_of(session, 0) == []
    assert place.service.session_search(place.workspace, "support-42", "订单").results


def test_a_limit_of_the_settings_is_kept(place: Place) -> None:
    from agents.memory import SessionSettings

    limited = another(place, session_settings=SessionSettings(limit=3))
    asyncio.run(limited.add_items(ITEMS))
    assert items_of(limited) == ITEMS[-3:]
    assert items_of(limited, 1) == ITEMS[-1:]


def test_the_same_operations_give_what_the_sdk_s_own_session_gives(session: MemoryServiceSession, place: Place) -> None:
    async def play(one: Session) -> list[Any]:
        seen: list[Any] = [await one.pop_item()]
        await one.add_items(ITEMS)
        for _ in range(4):
            seen += [await one.pop_item(), await one.get_items()]
        await one.add_items(ITEMS[-2:])
        seen += [await one.get_items(3)]
        await one.clear_session()
        seen += [await one.get_items(), await one.pop_item()]
        await one.add_items(ITEMS[:1])
        seen += [await one.get_items(), await one.pop_item(), await one.pop_item(), await one.get_items()]
        return seen

    assert asyncio.run(play(session)) == asyncio.run(play(SQLiteSession("support-42")))
    assert place.sessions() == [], "what was cleared is erased, with its branches"


def test_another_process_goes_on_behind_a_pop(session: MemoryServiceSession, place: Place) -> None:
    asyncio.run(session.add_items(ITEMS))
    assert asyncio.run(session.pop_item()) == ITEMS[-1]
    asyncio.run(another(place).add_items(ITEMS[-1:]))
    assert items_of(another(place)) == ITEMS
    assert place.log("support-42")[-1]["content"] == "And the other?", "the log of before has it still"


def test_a_name_that_looks_like_a_branch_is_a_conversation_of_its_own(place: Place) -> None:
    names = ("order", "order.branch-1", "order.branch-2", "order branch-1")
    sessions = {name: MemoryServiceSession(name, place.source, place.workspace) for name in names}
    for name, each in sessions.items():
        asyncio.run(each.add_items([{"role": "user", "content": name}]))
    for name, each in sessions.items():
        assert items_of(each) == [{"role": "user", "content": name}]
    asyncio.run(sessions["order.branch-1"].clear_session())
    left = [items_of(MemoryServiceSession(name, place.source, place.workspace)) for name in names]
    assert [bool(items) for items in left] == [True, False, True, True]


def test_agents_of_both_protocols_remember_the_conversation(place: Place) -> None:
    for at, model in enumerate((OpenAIResponsesModel, OpenAIChatCompletionsModel)):
        session = MemoryServiceSession(f"talk {at}", place.source, place.workspace)
        with ScriptedServer(*turns(1), "You are welcome.") as server:
            assert talk(server, session, "Where is ORD-0?", "Thanks!", model=model)[-1] == "You are welcome."
            body = server.requests[-1].body
            said = body.get("input") or body["messages"]
        assert "Where is ORD-0?" in str(said[:2]) and "ORD-0 is shipped." in str(said) and len(items_of(session)) == 6


@pytest.mark.parametrize("model", [OpenAIResponsesModel, OpenAIChatCompletionsModel])
def test_a_long_conversation_fits_the_window(place: Place, model: type[Any]) -> None:
    session = another(place, context_window=6_000)
    with ScriptedServer(*turns(10)) as server:
        talk(server, session, *(f"Where is ORD-{at}? 请查一下。" for at in range(10)), model=model)
        for request in server.requests:
            assert len(json.dumps(request.body, ensure_ascii=False)) < 4 * 6_000
        last = server.requests[-1].body
    assert "<summary>" in str(last.get("input") or last["messages"])
    items = items_of(session)
    calls = [item["call_id"] for item in items if item.get("type") == "function_call"]
    assert calls == [item["call_id"] for item in items if item.get("type") == "function_call_output"]
    assert len(calls) < 10
    assert place.service.compactions(place.workspace, "support-42").compactions
    assert sum(each["role"] == "user" for each in place.log("support-42")) == 10, "the log has everything"


def test_a_forced_compaction_keeps_what_is_new_and_can_be_undone(session: MemoryServiceSession, place: Place) -> None:
    items: list[Any] = [item for _ in range(20) for item in ({"role": "user", "content": "Where is it? " * 99}, *ITEMS)]
    asyncio.run(session.add_items(items))
    asyncio.run(session.run_compaction({"force": True}))
    less = items_of(session)
    assert len(less) < len(items) and "<summary>" in str(less[0]) and less[-len(ITEMS) :] == ITEMS
    asyncio.run(session.add_items(ITEMS[:1]))
    assert items_of(session) == [*less, ITEMS[0]]
    assert asyncio.run(session.pop_item()) == ITEMS[0]
    assert items_of(session) == less
    place.service.undo(place.workspace, place.sessions()[0] if len(place.sessions()) == 1 else _branch(place))
    assert items_of(session) == items


def _branch(place: Place) -> str:
    return next(name for name in place.sessions() if ".branch-" in name)


def test_memories_are_recalled_and_not_kept_in_the_session(place: Place) -> None:
    place.remember(DEPLOYS)
    session = another(place)
    config = RunConfig(tracing_disabled=True, call_model_input_filter=session.recall)
    with ScriptedServer("On Tuesdays.", "You are welcome.") as server:
        talk(server, session, "When do we deploy?", "Thanks!", config=config)
        block, question = server.requests[0].body["input"]
        assert DEPLOYS in block["content"] and question["content"] == "When do we deploy?"
        assert "Deploys go out" not in str(server.requests[1].body["input"])
    assert [item["role"] for item in items_of(session)] == ["user", "assistant"] * 2


def test_recall_that_fails_stops_no_agent_and_a_history_that_fails_does(caplog: pytest.LogCaptureFixture) -> None:
    down = MemoryServiceSession("s", NO_SERVER)
    config = RunConfig(tracing_disabled=True, call_model_input_filter=down.recall)
    with ScriptedServer("On Tuesdays.") as server, caplog.at_level(logging.WARNING):
        assert talk(server, SQLiteSession("s"), "When do we deploy?", config=config) == ["On Tuesdays."]
        assert "recall: the agent goes on without it" in caplog.text
        with pytest.raises(ConnectionFailed):
            talk(server, down, "When do we deploy?")


@pytest.mark.parametrize("place", ["server"], indirect=True)
def test_the_recipe(place: Place) -> None:
    place.service.remember("default", DEPLOYS)
    with ScriptedServer(f"{DEPLOYS} I looked it up.") as server:
        printed = run_recipe("OpenAI Agents SDK", place, OPENAI_BASE_URL=server.url, OPENAI_API_KEY="any")
    assert DEPLOYS in printed


def test_each_call_of_a_long_run_fits_the_window(place: Place) -> None:
    session = another(place, context_window=8_000)
    config = RunConfig(tracing_disabled=True, call_model_input_filter=session.recall)
    steps: list[ScriptedStep] = [
        Reply(tool_call="order", arguments=json.dumps({"number": f"ORD-{at}"})) for at in range(12)
    ]
    for model in (OpenAIResponsesModel, OpenAIChatCompletionsModel):
        with ScriptedServer(*steps, "All are shipped.") as server:
            [answer] = talk(server, session, "Where are all of my orders?", model=model, config=config)
            assert answer == "All are shipped." and len(server.requests) == 13
            sent = [json.dumps(request.body, ensure_ascii=False) for request in server.requests]
            assert all("Where are all of my orders?" in each and len(each) < 28_000 for each in sent)
            assert len(json.dumps(place.log("support-42"), ensure_ascii=False)) > 28_000
        asyncio.run(session.clear_session())
