"""One contract for every engine: the service's own, and those of somebody else as they come from packages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from indexer.testing import HashEmbedder
from memory_service.engines import AssembleCall, CompactCall, Compacted, ContextEngine, EnginePlace, load_engine
from memory_service.messages import Message, message_tokens, user_message
from memory_service.messages.repair import repaired
from memory_service.service import MemoryService
from memory_service.service.short_term import DefaultEngine
from tests.memory_service.engines.plugins import installed
from tests.serving import settings

S = "支持".encode().hex()
ENGINES = ["default", "sliding-window", "full", "last-messages"]


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
    with (
        installed(tmp_path / "site-packages"),
        MemoryService(settings(tmp_path / "home"), embedder=HashEmbedder()) as service,
    ):
        if request.param == "default":
            yield DefaultEngine(service.sessions("default", make=True))
        else:
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
    assert not repaired(made).repairs
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


def test_the_default_engine_keeps_sessions_beyond_its_life_and_erases_them(tmp_path: Path) -> None:
    for known in (0, 8):
        with MemoryService(settings(tmp_path / "home"), embedder=HashEmbedder()) as service:
            engine = DefaultEngine(service.sessions("default", make=True))
            assert engine.bootstrap(S) == known
            if not known:
                engine.ingest_batch(S, said(2))
            else:
                assert engine.forget(S) == () and engine.bootstrap(S) == 0


def test_the_default_engine_begins_and_ends_subagents(tmp_path: Path) -> None:
    with MemoryService(settings(tmp_path / "home"), embedder=HashEmbedder()) as service:
        engine = DefaultEngine(service.sessions("default", make=True))
        engine.ingest_batch(S, said(1))
        assert engine.prepare_subagent_spawn(S, "child", 60).session_id == "child"
        engine.ingest("child", {"role": "assistant", "content": "完成了"})
        assert engine.on_subagent_ended("child", "completed").parent == S
