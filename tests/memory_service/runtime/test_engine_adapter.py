"""Through the service: an engine of somebody else answers, and when it fails, the service does and says so."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from indexer.testing import HashEmbedder
from memory_service.errors import InvalidRequest
from memory_service.messages.repair import repair_messages
from memory_service.messages.shapes import Message, text_of
from memory_service.prompts.build import BuiltContext
from memory_service.runtime.base import CompactionCall
from memory_service.schemas.compaction import CompactRequest, OverflowRequest, SessionContextRequest
from memory_service.service import MemoryService
from memory_service.service.short_term import WorkspaceSessions
from tests.memory_service.engines.plugins import installed
from tests.serving import settings
from tests.waiting import until

S, W = "support-42", "default"
PIN = "周五绝不部署"
OFF = {"mode": "off"}
BY_RULES = ("flush: embedding_model is none, so rules alone tell what lasts.",)
CALL = SessionContextRequest(recall="never", system_prompt="You are 助手.")


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Callable[..., MemoryService]]:
    services = list[MemoryService]()

    def open_service(engine: str, **values: object) -> MemoryService:
        # A window so small that it is soon full.
        given = settings(
            tmp_path / "home", context_engine=engine, context_window=8_000, embedding_model="none", **values
        )
        services.append(MemoryService(given, embedder=HashEmbedder()))
        return services[-1]

    with installed(tmp_path / "site-packages"):
        yield open_service
        for service in services:
            service.close()


def sessions_of(service: MemoryService) -> WorkspaceSessions:
    return service.sessions(W, make=True)


def engine_of(service: MemoryService) -> Any:
    guard = sessions_of(service)._services.engine
    assert guard is not None and guard.info is not None
    return guard._engine


def say(sessions: WorkspaceSessions, count: int, begin: int = 0, words: int = 60) -> None:
    said = list[Message]()
    for at in range(begin, begin + count):
        said.append({"role": "user", "content": f"第 {at} 个问题 question {at} " + "word " * words})
        said.append({"role": "assistant", "content": f"回答 {at} " + "ok " * words})
    sessions.append(S, said)


def texts(made: BuiltContext) -> str:
    return "\n".join(map(text_of, made.prompt.messages))


def sound(made: BuiltContext, most: int = 8_000) -> None:
    assert made.prompt.tokens.total <= most
    assert not repair_messages(made.prompt.messages).repairs


def test_the_engine_decides_what_goes_to_the_model(opened: Callable[..., MemoryService]) -> None:
    sessions = sessions_of(opened("forgetless"))
    say(sessions, 3)
    made = sessions.context(S, CALL)
    assert made.prompt.messages == (
        {"role": "system", "content": "You are 助手."},
        {"role": "user", "content": "只有这一句"},
    )
    assert made.degraded == () and made.prompt.tokens.tail > 0
    assert len(sessions.store.log_view(S).messages) == 6


@pytest.mark.parametrize("name", ["sliding-window", "last-messages"])
def test_who_owns_compaction_is_left_to_it(opened: Callable[..., MemoryService], name: str) -> None:
    sessions = sessions_of(opened(name))
    say(sessions, 20, words=240)
    made = sessions.context(S, CALL)
    sound(made)
    assert made.degraded == BY_RULES and made.compaction is None and made.flush is not None
    assert "question 19" in texts(made) and "question 0 " not in texts(made)
    assert sessions.compactions.past(S) == []
    sound(sessions.context(S, SessionContextRequest(recall="never", max_tokens=900)), 900)


def test_who_does_not_own_compaction_gets_a_compacted_view_and_is_told(opened: Callable[..., MemoryService]) -> None:
    service = opened("full", flush=OFF)
    sessions = sessions_of(service)
    say(sessions, 60)
    made = sessions.context(S, CALL)
    sound(made)
    assert made.degraded == () and made.compaction is not None and made.compaction.applied
    assert "compact threshold" in engine_of(service).calls


def test_memories_and_pins_stand_in_the_prompt_whatever_the_engine_gives(opened: Callable[..., MemoryService]) -> None:
    sessions = sessions_of(opened("sliding-window", flush=OFF))
    sessions.store.pin(S, text=PIN)
    say(sessions, 60)
    made = sessions.context(S, CALL)
    sound(made)
    assert texts(made).count(PIN) == 1 and made.prompt.tokens.summary > 0
    sessions.store.pin(S, text="长" * 200)
    tight = sessions.context(S, SessionContextRequest(recall="never", max_tokens=900))
    sound(tight, 900)
    assert "长" * 200 in texts(tight)
    sessions.store.unpin(S, sessions.store.pins(S)[-1].pin_id)
    sessions.append(S, [{"role": "user", "content": f"重复：{PIN}"}])
    again = sessions.context(S, CALL)
    assert texts(again).count(PIN) == 1 and again.prompt.tokens.summary == 0


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("raises", "ZeroDivisionError"),
        ("raises-at-ingest", "KeyError"),
        ("orphan", "NotWireValid"),
        ("greedy", "OverBudget"),
        ("gone", "ModuleNotFoundError"),
    ],
)
def test_when_it_fails_the_service_answers_and_says_so(
    opened: Callable[..., MemoryService], name: str, fault: str
) -> None:
    service, plain = opened(name, flush=OFF), opened("default", flush=OFF)
    sessions = sessions_of(service)
    say(sessions, 60)
    made = sessions.context(S, CALL)
    sound(made)
    assert f"engine: {name} failed ({fault})" in made.degraded[0] and "the default engine answers" in made.degraded[0]
    # It owned compaction, or seemed to: what it left undone is done.
    assert "question 59" in texts(made)
    assert made.prompt.messages == sessions_of(plain).context(S, CALL).prompt.messages
    assert len(sessions.store.log_view(S).messages) == 120
    more = sessions.append(S, [{"role": "user", "content": "还在吗？"}])
    assert fault in more.degraded[0]
    status = service.status(W)
    assert any(fault in line for line in status.degraded)
    finding = next(each for each in service.examine(W) if each.name == "engine")
    assert not finding.ok and fault in finding.detail and "context_engine" in finding.remedy


def test_a_sound_engine_passes_the_doctor(opened: Callable[..., MemoryService]) -> None:
    service = opened("full")
    sessions_of(service)
    finding = next(each for each in service.examine(W) if each.name == "engine")
    assert finding.ok and finding.detail == "Sliding window 1.0 assembles a prompt"
    assert service.status(W).degraded == []
    assert all(each.name != "engine" for each in opened("default").examine(W))


def test_an_unknown_engine_is_refused_at_once(opened: Callable[..., MemoryService]) -> None:
    with pytest.raises(InvalidRequest, match="'滑动' is unknown"):
        opened("滑动")


@pytest.mark.parametrize("name", ["sliding-window", "stubborn"])
def test_an_overflow_is_recovered_with_a_smaller_prompt_of_the_engine(
    opened: Callable[..., MemoryService], name: str
) -> None:
    service = opened(name, flush=OFF)
    sessions = sessions_of(service)
    say(sessions, 80)
    before = sessions.context(S, CALL)
    error = OverflowRequest(error="This model's maximum context length is 8000 tokens. Your messages have 9000 tokens.")
    once = sessions.recover(S, error)
    assert once.action == "retry" and once.context is not None
    assert once.context.prompt.tokens.total < before.prompt.tokens.total * 0.7
    assert name == "stubborn" or "compact overflow" in engine_of(service).calls
    assert "question 79" in texts(once.context)
    assert sessions.context(S, CALL).prompt.tokens.total < before.prompt.tokens.total * 0.7
    # The second time the service itself makes the prompt, of a view that it compacted.
    twice = sessions.recover(S, error)
    assert twice.action in ("retry", "give_up")
    if twice.context is not None:
        assert twice.context.prompt.tokens.summary > 0


def test_who_owns_compaction_compacts_when_a_person_asks(opened: Callable[..., MemoryService]) -> None:
    service = opened("sliding-window")
    sessions = sessions_of(service)
    say(sessions, 20)
    made = sessions.compactions.compact(S, CompactionCall(request=CompactRequest(force=True)))
    assert (made.applied, made.compaction_id, made.stage, made.method) == (True, None, "engine", "engine")
    assert (made.tokens_before, made.reason) == (900, "a smaller window")
    assert sessions.compactions.past(S) == []
    plan = sessions.compactions.compact(S, CompactionCall(request=CompactRequest(mode="plan", force=True)))
    assert plan.stage != "engine"


def test_a_refused_compaction_is_refused_to_the_engine_too(opened: Callable[..., MemoryService]) -> None:
    from memory_service.errors import Conflict
    from memory_service.hooks import Refused

    service = opened("sliding-window")
    service.hooks.before_compaction(lambda intent: Refused("夜间不压缩"))
    say(sessions_of(service), 5)
    with pytest.raises(Conflict, match="夜间不压缩"):
        sessions_of(service).compactions.compact(S, CompactionCall(request=CompactRequest(force=True)))
    assert "compact manual" not in engine_of(service).calls


def test_what_is_said_reaches_the_engine_soon_and_after_the_log_has_it(opened: Callable[..., MemoryService]) -> None:
    service = opened("full")
    sessions = sessions_of(service)
    say(sessions, 3)
    engine = engine_of(service)
    until(lambda: len(engine.heard.get(S, [])) == 6 and engine.calls[-1] == "after_turn")
    assert "assemble" not in engine.calls


def test_what_another_process_said_reaches_the_engine_with_the_next_prompt(
    opened: Callable[..., MemoryService],
) -> None:
    service, beside = opened("sliding-window"), opened("default")
    say(sessions_of(service), 1)
    sessions_of(service).context(S, CALL)
    say(sessions_of(beside), 1, begin=1)
    assert "question 1 " in texts(sessions_of(service).context(S, CALL))
    assert len(engine_of(service).heard[S]) == 4


def test_an_erased_session_is_erased_in_the_engine(opened: Callable[..., MemoryService]) -> None:
    service = opened("full")
    sessions = sessions_of(service)
    say(sessions, 1)
    sessions.context(S, CALL)
    assert sessions.store.delete(S).degraded == []
    assert S not in engine_of(service).heard


def test_subagents_are_told_to_the_engine_and_the_service_closes_it(opened: Callable[..., MemoryService]) -> None:
    service = opened("full")
    sessions = sessions_of(service)
    say(sessions, 1)
    sessions.subagents.spawn(S, "child", ttl_seconds=60)
    sessions.subagents.end("child", "completed")
    engine = engine_of(service)
    service.close()
    assert [call for call in engine.calls if call.startswith(("spawn", "ended", "dispose"))] == [
        f"spawn {S} child 60",
        "ended child completed",
        "dispose",
    ]
