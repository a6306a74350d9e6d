"""The memory service in ADK's own runner, with a scripted model and ADK's own tools."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from tests.integrations.places import DEPLOYS, NO_SERVER, Place, needs, run_recipe

needs("google.adk")

from google.adk.agents import LlmAgent
from google.adk.events import Event
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService, Session
from google.adk.tools import load_memory, preload_memory
from google.genai.types import Content, FunctionCall, FunctionResponse, ModelContent, Part, UserContent

from memory_service import InvalidRequest, MemoryClient
from memory_service.integrations.google_adk import MemoryServiceBackend

NEIGHBOUR = "I always want parcels left with the neighbour."


class Scripted(BaseLlm):
    """A model that says what stands in its script."""

    script: list[Part]
    seen: list[str]

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        self.seen.append(str([each.model_dump() for each in llm_request.contents]))
        yield LlmResponse(content=ModelContent(self.script.pop(0)))


@pytest.fixture
def backend(place: Place) -> MemoryServiceBackend:
    return MemoryServiceBackend(place.source)


@pytest.fixture
def user(place: Place) -> Any:
    return {"app_name": place.workspace, "user_id": "lena"}


def run(backend: MemoryServiceBackend, user: Any, tools: list[Any], script: list[str | Part], *said: str) -> Scripted:
    """The model of an agent that had some conversations, each added to the memory."""
    parts = [Part(text=each) if isinstance(each, str) else each for each in script]
    model = Scripted(model="scripted", script=parts, seen=[])

    async def talk() -> None:
        sessions = InMemorySessionService()
        agent = LlmAgent(name="shop", model=model, tools=tools)
        runner = Runner(app_name=user["app_name"], agent=agent, session_service=sessions, memory_service=backend)
        for text in said:
            session = await sessions.create_session(**user)
            async for _ in runner.run_async(user_id="lena", session_id=session.id, new_message=UserContent(text)):
                pass
            whole = await sessions.get_session(session_id=session.id, **user)
            assert whole is not None
            await backend.add_session_to_memory(whole)

    asyncio.run(talk())
    return model


def found(backend: MemoryServiceBackend, user: Any, query: str) -> list[MemoryEntry]:
    answer = asyncio.run(backend.search_memory(query=query, **user))
    return list(answer.memories)


def words(entry: MemoryEntry) -> str:
    return str((entry.content.parts or [])[0].text)


def test_what_was_said_is_preloaded_in_the_next_session(backend: MemoryServiceBackend, user: Any) -> None:
    script: list[str | Part] = ["Noted.", "With the neighbour.", "You are welcome."]
    model = run(backend, user, [preload_memory], script, NEIGHBOUR, "Where do my parcels go?", "Thanks!")
    assert "PAST_CONVERSATIONS" in model.seen[1] and "neighbour" in model.seen[1]
    assert "PAST_CONVERSATIONS" not in model.seen[2], "small talk asks for nothing"


def test_the_model_looks_up_with_adk_s_tool(backend: MemoryServiceBackend, user: Any, place: Place) -> None:
    call = Part(function_call=FunctionCall(id="c1", name="load_memory", args={"query": "快递放在哪里"}))
    script: list[str | Part] = ["好的。", call, "放在门卫室。"]
    model = run(backend, user, [load_memory], script, "我的快递总是放在门卫室。", "我的快递放在哪里？")
    assert "门卫室" in model.seen[2]
    workspace = MemoryServiceBackend.workspace(**user)
    listed = place.service.list_sessions(workspace).sessions
    logs = [place.service.messages(workspace, each.session_id, "log").messages for each in listed]
    (log,) = [each for each in logs if len(each) > 2]
    assert [each["role"] for each in log] == ["user", "assistant", "tool", "assistant"]
    assert log[1]["tool_calls"][0]["id"] == log[2]["tool_call_id"]
    assert log[2]["content"] == "[recalled]", "it is in the memory already"


def test_an_event_is_kept_once(backend: MemoryServiceBackend, user: Any, place: Place) -> None:
    events = [Event(author="user", content=UserContent("ok")), Event(author="shop", content=ModelContent("ok"))]
    events.append(Event(author="user", content=UserContent("ok")))
    session = Session(id="s", events=events[:2], **user)
    asyncio.run(backend.add_session_to_memory(session))
    asyncio.run(backend.add_events_to_memory(events=events[1:], session_id="s", **user))
    session.events = events
    asyncio.run(backend.add_session_to_memory(session))
    asyncio.run(MemoryServiceBackend(place.source).add_session_to_memory(session))
    log = place.service.messages(backend.workspace(**user), "s", "log").messages
    assert [each["role"] for each in log] == ["user", "assistant", "user"]


def test_two_calls_of_one_tool_without_ids_stay_two(backend: MemoryServiceBackend, user: Any, place: Place) -> None:
    calls = [Part(function_call=FunctionCall(name="order", args={"number": number})) for number in (1, 2)]
    given = [{"result": "已发货"}, {"result": "lost"}]
    answers = [Part(function_response=FunctionResponse(name="order", response=each)) for each in given]
    said = [
        Event(author="user", content=UserContent("Where are my orders?")),
        Event(author="shop", content=ModelContent([*calls])),
        Event(author="shop", content=UserContent([*answers])),
    ]
    asyncio.run(backend.add_session_to_memory(Session(id="s", events=said, **user)))
    log = place.service.messages(backend.workspace(**user), "s", "log").messages
    ids = [call["id"] for call in log[1]["tool_calls"]]
    assert len(set(ids)) == 2
    told = {each["tool_call_id"]: each["content"] for each in log if each["role"] == "tool"}
    assert [told[each] for each in ids] == ['{"result": "已发货"}', '{"result": "lost"}']


def test_memories_are_added_found_and_deleted(backend: MemoryServiceBackend, user: Any) -> None:
    texts = [DEPLOYS, "Lena drinks green tea.", "王芳的快递请放在门卫室。"]
    entries = [MemoryEntry(content=Content(parts=[Part(text=text)])) for text in (*texts, *texts)]
    asyncio.run(backend.add_memory(memories=entries, **user))
    for query, text in zip(("When do we deploy?", "what does Lena drink?", "快递放哪里？"), texts, strict=True):
        entry = found(backend, user, query)[0]
        assert words(entry) == text and entry.id
        asyncio.run(backend.delete_memory(memory_id=entry.id, **user))
        assert text not in map(words, found(backend, user, query))
        asyncio.run(backend.delete_memory(memory_id=entry.id, **user))
    assert found(backend, user, "When do we deploy?") == []


def test_users_and_apps_never_mix(backend: MemoryServiceBackend, user: Any) -> None:
    asyncio.run(backend.add_memory(memories=[MemoryEntry(content=UserContent(DEPLOYS))], **user))
    for other in ({"app_name": f"{user['app_name']}-lena", "user_id": ""}, {**user, "user_id": "Lena"}):
        assert found(backend, other, "When do we deploy?") == []
    owners = [("a-b", "c"), ("a", "b-c"), ("a", "B-c"), ("店", "王"), ("店", "李")]
    assert len({backend.workspace(app, name) for app, name in owners}) == 5


def test_a_client_is_refused(place: Place) -> None:
    with MemoryClient(place.url) as client, pytest.raises(InvalidRequest, match="each user needs one"):
        MemoryServiceBackend(client)  # type: ignore[arg-type]


def test_the_agent_goes_on_without_its_memory(user: Any, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        run(MemoryServiceBackend(NO_SERVER), user, [preload_memory], ["On Tuesdays."], "When do we deploy?")
    for part in ("recall", "session"):
        assert f"{part}: the agent goes on without it" in caplog.text


@pytest.mark.parametrize("place", ["server"], indirect=True)
def test_the_recipe(place: Place) -> None:
    assert "neighbour" in run_recipe("Google ADK", place)
