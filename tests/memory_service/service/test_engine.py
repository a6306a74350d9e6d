"""One contract for every engine of somebody else, as they come from packages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memory_service.engines import AssembleCall, CompactCall, Compacted, ContextEngine, EnginePlace, load_engine
from memory_service.messages.repair import repair_messages
from memory_service.messages.shapes import Message, user_message
from memory_service.messages.sizes import message_tokens
from tests.memory_service.engines.plugins import installed

S = "支持".encode().hex()
ENGINES = ["sliding-window", "full", "last-messages"]


def said(count: int) -> list[Message]:
    made = list[Message]()
    for at in range(count):
        made.append({"role": "user", "content": f"第 {at} 个问题：怎么部署？ Question {at}: how? " + "字" * 30})
        call: Any = {"id": f"c{at}", "type": "function", "function": {"name": "run", "arguments": '{"x": 1}'}}
        made.append({"role": "assistant", "content": None, "tool_calls": [call]})
        made.append({"role": "tool", "tool_call_id": f"c{at}", "content": f"result {at} " + "ok " * 40})
        made.append({"role": "assistant", "content": f"回答 {at}. Answer {at}."})
    return made


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ContextEngine]:
    with installed(tmp_path / "site-packages"):
        yield load_engine(request.param, EnginePlace(workspace="default", folder=tmp_path / "engine"))


def assembled(engine: ContextEngine, history: list[Message], budget: int) -> list[Message]:
    call = AssembleCall(messages=tuple(history), query="怎么部署？")
    return list(engine.assemble(S, token_budget=budget, call=call).messages)


def test_it_says_who_it_is(engine: ContextEngine) -> None:
    assert engine.info.id and engine.info.name and isinstance(engine.info.owns_compaction, bool)


@pytest.mark.parametrize("budget", [1_100, 2_500, 60_000])
def test_a_prompt_is_valid_within_its_budget_and_ends_with_what_was_said_last(
    engine: ContextEngine, budget: int
) -> None:
    history = [*said(40), user_message("最后一个问题 the last one")]
    for message in history:
        engine.ingest(S, message)
    made = assembled(engine, history, budget)
    assert sum(map(message_tokens, made)) <= budget
    assert not repair_messages(made).repairs
    assert made[-1] == history[-1]
    if budget == 60_000:
        assert [message for message in made if message in history] == history


def test_after_a_compaction_the_prompt_is_smaller_or_it_says_that_nothing_was_done(engine: ContextEngine) -> None:
    history = said(40)
    for message in history:
        engine.ingest(S, message)
    before = sum(map(message_tokens, assembled(engine, history, 60_000)))
    done = engine.compact(S, token_budget=1_500, call=CompactCall(force=True))
    assert isinstance(done, Compacted)
    after = sum(map(message_tokens, assembled(engine, history, 60_000)))
    assert after < before if done.compacted else after == before
    assert done.reason
