from __future__ import annotations

from typing import Any

import pytest

from memory_service.compaction.view import Conversation, project
from memory_service.messages.sizes import message_tokens
from memory_service.prompts.blocks import prompt_of
from memory_service.prompts.prompt_records import InjectedBlock
from tests.memory_service.compaction.test_view import SHAPE, compacted, session, shown
from tests.memory_service.rooms import calls, refused_by_providers, result, says, system, user

MEMORY = "<relevant_context>周二部署</relevant_context>"


def memory(state: Conversation, text: str = MEMORY) -> list[InjectedBlock]:
    """A block for the last turn of a conversation."""
    turn = max((each.seq for each in state.messages if each.message["role"] == "user"), default=0)
    return [InjectedBlock(seq=turn, said="", asked="", text=text, receipt_id="")]


def roles(*said: dict[str, Any], then: Any = (), **given: Any) -> list[str]:
    state = session(*said, then=then)
    made = prompt_of(
        project(state, SHAPE), window_tokens=8_000, **{"system_prompt": "P", "blocks": memory(state), **given}
    )
    assert refused_by_providers(made.messages) == [] or said[0].get("role") == "assistant"
    return ["memory" if each.get("content") == MEMORY else each["role"] for each in made.messages]


def test_what_changes_least_stands_first_and_memories_before_their_turn() -> None:
    said = [system("S"), user("1"), says("2"), user("3"), calls("a"), result("a", "4")]
    assert roles(*said) == ["system", "system", "user", "assistant", "memory", "user", "assistant", "tool"]
    assert roles(*said, then=(compacted(4),)) == ["system", "system", "user", "memory", "user", "assistant", "tool"]


def test_memories_never_part_a_call_from_its_results() -> None:
    said = [user("1"), calls("a"), result("a", "2"), calls("b"), result("b", "3")]
    assert roles(*said, then=(compacted(2),))[:4] == ["system", "user", "memory", "assistant"]


def test_without_anything_there_is_nothing() -> None:
    assert roles(user("x"), blocks=[], system_prompt="") == ["user"]


@pytest.mark.parametrize("scale", [0.6, 1.0, 1.37, 2.5])
def test_the_parts_add_up(scale: float) -> None:
    state = session(system("S"), user("问题"), says("two"), user("three"), then=(compacted(4),))
    made = prompt_of(
        project(state, SHAPE), system_prompt="You are 助手.", blocks=memory(state), window_tokens=8_000, scale=scale
    )
    tokens = made.tokens
    estimate = sum(map(message_tokens, made.messages))
    assert made.estimated.total == estimate
    assert tokens.system + tokens.memory + tokens.summary + tokens.tail == tokens.total
    assert estimate * scale <= tokens.total < estimate * scale + 1.01 and tokens.window == 8_000


def test_nothing_of_the_view_is_changed() -> None:
    state = session(user("a"), says("b"), user("c"))
    view = project(state, SHAPE)
    made = prompt_of(view, blocks=memory(state), window_tokens=8_000)
    assert tuple(each for each in made.messages if each.get("content") != MEMORY) == view.messages
    assert shown(state) == ["a", "b", "c"]
