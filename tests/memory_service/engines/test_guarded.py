"""What an engine of somebody else may do without harm: fail, hang, lie, and change what it was given."""

from __future__ import annotations

import copy
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_service.engines import AssembleCall, CompactCall, EnginePlace, GuardedEngine, load_engine
from memory_service.engines.guarded import EngineFault, TimeLimits, _run_within
from memory_service.messages.repair import repair_messages
from memory_service.messages.shapes import Message
from memory_service.messages.sizes import Numbered, message_tokens, number_message

S = "support-42"
SECRET = "消息的正文"
QUICK = TimeLimits(call=0.2, load=5, compact=0.2)


def talk(count: int) -> list[Numbered]:
    roles: tuple[Literal["user"], Literal["assistant"]] = ("user", "assistant")
    made: list[Message] = [{"role": roles[at % 2], "content": f"第 {at} 句 sentence {at}"} for at in range(count)]
    return [number_message(message, at + 5) for at, message in enumerate(made)]


def call_of(history: Sequence[Numbered]) -> AssembleCall:
    return AssembleCall(messages=tuple(each.message for each in history), query="问")


class Guarded:
    """An engine behind its guard, and the engine itself."""

    def __init__(self, name: str, folder: Path) -> None:
        place = EnginePlace(workspace="default", folder=folder)
        self.engines: list[Any] = []

        def load() -> Any:
            self.engines.append(load_engine(name, place))
            return self.engines[-1]

        self.guard = GuardedEngine(name, load, limits=QUICK)

    @property
    def engine(self) -> Any:
        return self.engines[-1]

    def assembled(self, history: Sequence[Numbered], *, session: str = S, budget: int = 1_000) -> Any:
        return self.guard.assemble(session, history, token_budget=budget, call=call_of(history))


@pytest.fixture
def full(tmp_path: Path) -> Guarded:
    return Guarded("full", tmp_path)


def test_nothing_is_loaded_before_it_is_asked(full: Guarded) -> None:
    full.guard.dispose()
    assert full.guard.failures(S) == () and full.engines == []
    assert full.guard.info is not None and len(full.engines) == 1


def test_everything_is_ingested_once_in_order_before_a_prompt_is_assembled(full: Guarded) -> None:
    history = talk(10)
    assert full.assembled(history[:4]) == tuple(each.message for each in history[:4])
    assert full.assembled(history) == tuple(each.message for each in history)
    full.guard.hear(S, history)
    assert full.engine.heard[S] == [each.message for each in history]
    assert full.engine.calls == ["bootstrap", "batch 4", "after_turn", "assemble", "batch 6", "after_turn", "assemble"]
    assert full.guard.problems() == ()


def test_what_an_engine_knows_already_is_not_ingested_again(full: Guarded) -> None:
    full.guard.hear("known", talk(5))
    assert full.engine.calls == ["bootstrap", "batch 3"]
    assert full.engine.heard["known"] == [each.message for each in talk(5)[2:]]


def test_one_that_says_it_knows_more_than_there_is_gets_what_comes_after(full: Guarded) -> None:
    full.guard.hear("known", talk(1))
    full.guard.hear("known", talk(3))
    assert full.engine.heard["known"] == [each.message for each in talk(3)[1:]]


def test_a_long_history_comes_in_batches(full: Guarded) -> None:
    full.guard.hear(S, talk(600))
    assert full.engine.calls == ["bootstrap", "batch 256", "batch 256", "batch 88", "after_turn"]


def test_an_engine_without_batches_is_told_one_by_one(tmp_path: Path) -> None:
    window = Guarded("sliding-window", tmp_path)
    window.guard.hear(S, talk(3))
    assert window.engine.calls == ["ingest"] * 3


def test_what_is_optional_is_asked_of_those_that_have_it(full: Guarded, tmp_path: Path) -> None:
    window = Guarded("sliding-window", tmp_path)
    for each in (full, window):
        each.guard.hear(S, talk(2))
        each.guard.begin_subagent(S, "child", 60.0)
        each.guard.end_subagent("child", "completed")
        assert each.guard.forget(S) == ()
        each.guard.dispose()
        assert each.guard.problems() == ()
    assert full.engine.calls[-4:] == [f"spawn {S} child 60.0", "ended child completed", "forget", "dispose"]


def test_a_session_that_was_erased_begins_anew(full: Guarded) -> None:
    full.guard.hear(S, talk(4))
    full.guard.forget(S)
    full.guard.hear(S, talk(2))
    assert len(full.engine.heard[S]) == 2


FAULTS = [
    ("raises", "ZeroDivisionError"),
    ("raises-at-ingest", "KeyError"),
    ("exits", "SystemExit"),
    ("orphan", "NotWireValid"),
    ("shapeless", "NotWireValid"),
    ("numbers", "NotWireValid"),
    ("nothing", "NotAssembled"),
    ("silent", "NoMessages"),
    ("greedy", "OverBudget"),
]


@pytest.mark.parametrize(("name", "fault"), FAULTS)
def test_an_engine_that_fails_is_in_quarantine_for_the_session(tmp_path: Path, name: str, fault: str) -> None:
    bad, history = Guarded(name, tmp_path), talk(4)
    assert bad.assembled(history) is None
    told = f"engine: {name} failed ({fault}); the default engine answers. Restart or change context_engine."
    assert bad.guard.failures(S) == (told,)
    assert fault in bad.guard.problems()[0] and SECRET not in bad.guard.problems()[0]
    assert not bad.guard.usable(S) and bad.guard.usable("another")
    calls = len(bad.engine.calls)
    assert bad.assembled(history) is None
    bad.guard.hear(S, talk(9))
    assert bad.guard.compact(S, token_budget=9, call=CompactCall()) is None
    assert len(bad.engine.calls) == calls


def test_one_that_fails_in_three_sessions_is_asked_for_none(tmp_path: Path) -> None:
    bad = Guarded("raises", tmp_path)
    for session in ("a", "b", "c"):
        assert bad.guard.usable("d")
        assert bad.assembled(talk(2), session=session) is None
    assert not bad.guard.usable("d")
    assert "ZeroDivisionError" in bad.guard.failures("d")[0]


def test_one_that_takes_too_long_is_asked_for_none(tmp_path: Path) -> None:
    slow = Guarded("slow", tmp_path)
    assert slow.assembled(talk(2)) is None
    assert not slow.guard.usable("another")
    assert slow.assembled(talk(2), session="another") is None
    assert "(TimedOut)" in slow.guard.problems()[0] and "(TimedOut)" in slow.guard.failures("another")[0]


@pytest.mark.parametrize(
    ("name", "fault"),
    [("gone", "ModuleNotFoundError"), ("unmakable", "PermissionError"), ("no-engine", "TypeError")],
)
def test_one_that_cannot_be_loaded_says_so(tmp_path: Path, name: str, fault: str) -> None:
    bad = Guarded(name, tmp_path)
    assert bad.assembled(talk(2)) is None and bad.guard.info is None
    assert f"({fault}) while it was loaded" in bad.guard.problems()[0]
    bad.guard.dispose()
    assert len(bad.guard.forget(S)) == 1


def test_a_compaction_has_to_say_what_it_did(tmp_path: Path, full: Guarded) -> None:
    made = full.guard.compact(S, token_budget=70, call=CompactCall(trigger="overflow"))
    assert made is not None and made.compacted and made.tokens_after == 70
    bad = Guarded("bad-compact", tmp_path)
    assert bad.guard.compact(S, token_budget=70, call=CompactCall()) is None
    assert "(NotCompacted)" in bad.guard.failures(S)[0]


def test_what_an_engine_changes_is_its_own(tmp_path: Path) -> None:
    vandal, history = Guarded("vandal", tmp_path), talk(6)
    before = copy.deepcopy(history)
    made = vandal.assembled(history)
    assert history == before
    vandal.engine.heard[S][0]["content"] = "later"
    assert made == tuple(each.message for each in before)
    parts = [number_message({"role": "user", "content": [{"type": "text", "text": "部分"}]}, 1)]
    made = vandal.assembled(parts, session="parts")
    vandal.engine.heard["parts"][0]["content"][0]["text"] = "later"
    assert made == (parts[0].message,) and made[0]["content"] == [{"type": "text", "text": "部分"}]


@settings(max_examples=40, deadline=None)
@given(budget=st.integers(25, 400), sizes=st.lists(st.integers(1, 120), min_size=1, max_size=30))
def test_a_prompt_is_in_budget_and_valid_or_there_is_none(
    tmp_path_factory: pytest.TempPathFactory, budget: int, sizes: list[int]
) -> None:
    window = Guarded("sliding-window", tmp_path_factory.getbasetemp())
    roles: tuple[Any, ...] = ("user", "assistant")
    history = [number_message({"role": roles[at % 2], "content": "字" * size}, at + 1) for at, size in enumerate(sizes)]
    made = window.assembled(history, budget=budget)
    if made is None:
        assert "(NoMessages)" in window.guard.failures(S)[0] and history[-1].tokens > budget - 20
    else:
        assert sum(map(message_tokens, made)) <= budget and not repair_messages(made).repairs
        assert made[-1] == history[-1].message


def test_work_within_its_time_gives_its_result_or_its_error() -> None:
    assert _run_within(60, lambda: "好", name="x") == "好"
    assert _run_within(60, lambda: None, name="x") is None
    with pytest.raises(LookupError):
        _run_within(60, lambda: [][0], name="x")
    with pytest.raises(EngineFault, match="TimedOut"):
        _run_within(0.01, lambda: time.sleep(1), name="x")
