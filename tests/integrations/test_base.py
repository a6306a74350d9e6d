"""What all adapters share, without any framework: places, names, and messages that come back as the framework's own."""

from __future__ import annotations

import logging
from contextlib import closing
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_service import AsyncMemoryClient, InvalidRequest, MemoryClient, NotFound
from memory_service.home import check_session_id
from memory_service.integrations.base import (
    HostConversations,
    LocalMemory,
    Memory,
    PromptPlace,
    memory_of,
    missing,
    recalled_block,
    session_name,
    whole_file,
)
from tests.integrations.places import DEPLOYS, NO_SERVER, Place
from tests.memory_service.api.talking import talk


class Said:
    """A message of a framework: what is on the wire, and something that is not."""

    def __init__(self, wire: dict[str, Any]) -> None:
        self.wire = wire


def conversations(place: Place, **options: Any) -> HostConversations[Said]:
    memory = memory_of(place.source, place.workspace)
    return HostConversations[Said](memory=memory, to_wire=lambda each: each.wire, from_wire=Said, **options)


@pytest.fixture
def memory(place: Place) -> Memory:
    return memory_of(place.source, place.workspace)


def test_a_place_is_a_service_a_client_of_either_colour_or_a_url(served: Any) -> None:
    service, url = served
    assert isinstance(memory_of(service), LocalMemory)
    for source in (url, AsyncMemoryClient(url, "other", "key", 7.0), MemoryClient(url, "other", "key", 7.0)):
        memory = memory_of(source)
        assert isinstance(memory, MemoryClient)
        with memory:
            known = (memory.base_url, memory.workspace, memory.api_key, memory.timeout)
        assert known == ((url, "default", None, 30.0) if source == url else (url, "other", "key", 7.0))


def test_a_client_has_its_own_workspace_and_key(served: Any) -> None:
    service, url = served
    with closing(MemoryClient(url, "mine")) as client:
        assert memory_of(client, "mine") is client
        for workspace, key in (("other", None), (None, "key")):
            with pytest.raises(InvalidRequest, match="has its workspace and its key"):
                memory_of(client, workspace, key)
    with pytest.raises(InvalidRequest, match="takes no key"):
        memory_of(service, None, "key")


def test_both_places_answer_alike(memory: Memory, place: Place) -> None:
    stored = memory.remember(DEPLOYS, tags=["ops"])
    assert memory.search("deploys", limit=1).results[0].path == stored.path
    assert DEPLOYS in memory.context("When do we deploy?", budget_tokens=300).block
    etag = memory.put("memory/notes.md", "# Notes\n").etag
    memory.put("memory/notes.md", "# 笔记\n" * 5_000, etag=etag)
    assert whole_file(memory, "memory/notes.md")[0] == "# 笔记\n" * 5_000
    assert [file.path for file in memory.files()] == [stored.path, "memory/notes.md"]
    memory.delete("memory/notes.md")
    memory.forget(stored.memory_id)
    assert memory.files() == []
    session = memory.session("support-42", model="gpt-4o", context_window=64_000)
    session.append([{"role": "user", "content": "Hello"}], {"prompt_tokens": 9, "completion_tokens": 3})
    status = session.status()
    assert (status.model, status.context_window.tokens, status.messages) == ("gpt-4o", 64_000, 1)
    assert memory.session("support-42", context_window=32_000).conversation([{"role": "user", "content": "Hello"}])
    assert session.status().context_window.tokens == 32_000
    assert session.compact(mode="plan").compaction_id is None
    assert session.flush().written == []
    assert session.messages("log").messages == [{"role": "user", "content": "Hello"}]
    memory.delete_session("support-42")
    with pytest.raises(NotFound):
        session.status()


def test_an_extra_that_is_missing_is_named() -> None:
    error = missing("pydantic-ai", ModuleNotFoundError("No module named 'pydantic_ai'", name="pydantic_ai"))
    assert "memory_service.integrations.pydantic_ai could not import pydantic_ai" in str(error)
    assert "pip install 'memory-service[pydantic-ai]'" in str(error)


@given(st.text())
def test_every_name_has_a_session_of_its_own(name: str) -> None:
    check_session_id(session_name(name))
    assert session_name(name) != session_name(f"{name}?")


def test_a_session_is_named_as_the_conversation_where_it_can_be() -> None:
    assert session_name("support-42") == "support-42"
    assert session_name("Anna's thread").startswith("Anna-s-thread-")
    assert session_name("客服").startswith("session-")
    assert session_name("客服") != session_name("客户")


def test_what_the_view_shows_unchanged_is_the_framework_s_own(place: Place) -> None:
    said = [Said(each) for each in talk(36)]
    view, stood = conversations(place, context_window=8_000).prompt("long", said, system_prompt="Be kind.")
    assert stood.session_id == "long"
    assert view[-1] is said[-1]
    own = [each for each in view if each in said]
    assert own == [each for each in said if each in own], "in their order, each once"
    assert 1 < len(own) < len(said) and "<summary>" in view[0].wire["content"]
    assert place.log("long") == [each.wire for each in said]


def test_a_conversation_without_a_name_is_named_after_its_beginning(place: Place) -> None:
    both = conversations(place, recall="never")
    said = [Said({"role": "user", "content": "部署是哪天？"})]
    _, first = both.prompt("", said)
    both.append_answers(first, [Said({"role": "assistant", "content": "Tuesday."})])
    said += [Said({"role": "assistant", "content": "Tuesday."}), Said({"role": "user", "content": "And on holidays?"})]
    view, again = both.prompt("", said)
    assert (again.session_id, view) == (first.session_id, said) and again.seq == first.seq + 2
    _, other = both.prompt("", said[2:])
    assert other.session_id != first.session_id
    assert len(place.log(first.session_id)) == 3


def test_an_answer_that_is_told_late_stands_where_it_belongs(place: Place) -> None:
    kept = conversations(place, recall="never")
    asked = Said({"role": "user", "content": "Look into the shelf."})
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    answer = Said({"role": "assistant", "content": None, "tool_calls": [call]})
    result = Said({"role": "tool", "tool_call_id": "c1", "content": "It is empty."})
    _, first = kept.prompt("loop", [asked])
    view, second = kept.prompt("loop", [asked, answer, result])
    kept.append_answers(first, [answer])
    assert [each.wire for each in view] == place.log("loop") == [asked.wire, answer.wire, result.wire]
    done = Said({"role": "assistant", "content": "The shelf is empty."})
    kept.append_answers(second, [done])
    kept.append_answers(second, [done])
    assert place.log("loop")[3:] == [done.wire]
    kept.append_answers(first, [Said({"role": "assistant", "content": "I do not know."})])
    assert place.log("loop")[3:] == [done.wire], "another answer goes on in a branch"


def test_memories_stand_before_the_question(place: Place) -> None:
    place.remember(DEPLOYS)
    view, _ = conversations(place).prompt("s", [Said({"role": "user", "content": "When do we deploy?"})])
    assert DEPLOYS in view[0].wire["content"]
    assert view[1].wire["content"] == "When do we deploy?"


def test_the_agent_goes_on_without_its_memory(caplog: pytest.LogCaptureFixture) -> None:
    down = memory_of(NO_SERVER)
    said = [Said({"role": "user", "content": "When do we deploy?"})]
    kept = HostConversations[Said](memory=down, to_wire=lambda each: each.wire, from_wire=Said)
    with caplog.at_level(logging.WARNING):
        assert kept.prompt("s", said) == (said, ("", 0))
        kept.append_answers(PromptPlace("", 0), said)
    assert [record.name for record in caplog.records] == ["memory_service.integrations"]
    assert "session: the agent goes on without it" in caplog.text and "was not reached" in caplog.text


def test_a_new_workspace_recalls_nothing_and_small_talk_asks_for_nothing(memory: Memory, place: Place) -> None:
    assert recalled_block(memory, "When do we deploy?") == ""
    place.remember(DEPLOYS)
    assert recalled_block(memory, "Thanks!") == ""
    assert DEPLOYS in recalled_block(memory, "When do we deploy?", 300)
