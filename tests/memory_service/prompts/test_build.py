from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from memory_service.errors import Conflict, Incompressible, InvalidRequest, NotFound, UpstreamFailed
from memory_service.memories.block_text import is_block
from memory_service.messages.shapes import text_of
from memory_service.messages.sizes import count_tokens, message_tokens
from memory_service.messages.units import REPAIR_TEXTS
from memory_service.prompts.build import BuiltContext
from memory_service.schemas.compaction import SessionContextRequest
from memory_service.testing import Reply, ScriptedModel
from tests.memory_service.rooms import (
    Room,
    S,
    W,
    calls,
    refused_by_providers,
    result,
    says,
    texts,
    tools,
    user,
    words,
)

Rooms = Callable[..., Room]


def block_of(made: BuiltContext) -> str:
    return next((text_of(each) for each in made.prompt.messages if is_block(text_of(each))), "")


def test_a_small_session_is_sent_as_it_is(room: Room) -> None:
    room.talk(2)
    made = room.context(system_prompt="You are 助手.")
    assert made.prompt.messages[0] == {"role": "system", "content": "You are 助手."}
    assert made.prompt.messages[1:] == room.view()
    tokens = made.prompt.tokens
    assert tokens.total == sum(map(message_tokens, made.prompt.messages)) and tokens.window == 8_000
    assert (made.compaction, made.flush, made.receipt, made.degraded) == (None, None, None, ())
    assert not made.recall.searched and made.recall.reason == "recall is off"


def test_who_is_not_there_has_no_context(room: Room) -> None:
    with pytest.raises(NotFound):
        room.context()


@pytest.mark.parametrize("given", [{"memory_budget_tokens": -1}, {"max_tokens": 0}, {"max_tokens": -5}])
def test_numbers_that_cannot_be_used_are_refused(room: Room, given: dict[str, int]) -> None:
    room.talk(1)
    with pytest.raises(InvalidRequest):
        room.context(**given)


@pytest.mark.parametrize("chinese", [False, True])
def test_a_full_session_is_flushed_and_compacted_first(room: Room, chinese: bool) -> None:
    room.say(user("请记住：发布永远在周二上午 10 点。 Remember: releases are always on Tuesdays at 10:00."))
    room.talk(30, 100, first=1, chinese=chinese)
    made = room.context(system_prompt="sys", query="x")
    assert made.flush is not None and made.flush.written and "周二" in room.days
    assert made.compaction is not None and made.compaction.applied and made.compaction.trigger == "threshold"
    assert made.prompt.tokens.total <= 6_000 and refused_by_providers(made.prompt.messages) == []
    assert room.events()[:3] == ["flush", "compaction_start", "compaction_end"]
    again = room.context(system_prompt="sys", query="x")
    assert (again.flush, again.compaction) == (None, None)
    assert again.prompt.messages[:3] == made.prompt.messages[:3], "the same bytes, for the cache"


@pytest.mark.parametrize("chinese", [False, True])
def test_the_room_reserved_for_memories_goes_before_a_turn_is_refused(room: Room, chinese: bool) -> None:
    room.talk(20, 100, chinese=chinese)
    made = room.context(query="day", recall="always", tools=tools(3_700))
    assert made.compaction is not None and made.compaction.applied and made.prompt.tokens.total <= 6_000 - 3_700
    assert any(each.startswith("memory: ") for each in made.degraded), made.degraded


def test_results_are_cut_down_with_room_for_a_ledger_as_long_as_what_was_decided(room: Room) -> None:
    for number in range(14):
        decided = f"第{number}天决定把服务器 host{number} 的部署改到周二，预算 {number}元，请不要动 /srv/app{number}.py"
        room.say(user(decided), says(f"好的。{decided}"))
    room.say(user("Read the logs."), calls(*"abcd"), *(result(each, words(1_900)) for each in "abcd"))
    made = room.context()
    assert made.compaction is not None and made.compaction.stage == "hard" and made.prompt.tokens.total <= 6_000
    assert refused_by_providers(made.prompt.messages) == []


def test_between_soft_and_hard_only_the_flush_is_made_once(room: Room) -> None:
    room.say(user("请记住：发布永远在周二上午 10 点。"))
    room.talk(22, 100)
    made = room.context()
    assert made.flush is not None and made.compaction is None
    room.talk(1, 100, first=22)
    assert room.context().flush is None


def test_without_auto_nothing_is_done(room: Room) -> None:
    room.talk(25, 100)
    before = room.bytes()
    made = room.context(auto=False)
    assert (made.flush, made.compaction) == (None, None) and room.bytes() == before
    room.talk(30, 100, first=25)
    with pytest.raises(Incompressible, match="ask with auto") as refused:
        room.context(auto=False)
    assert next(iter(refused.value.parts)) == "last_unit"
    room.sessions.store.update(S, {"settings": {"compaction": {"overrides": {"auto": False}}}})
    with pytest.raises(Incompressible, match="`auto` set to false"):
        room.context()


def test_a_prompt_has_no_open_call(room: Room) -> None:
    room.say(user("Go."), calls("a", "b"), result("b", "done"))
    prompt = room.context(recall="never").prompt
    assert [text_of(each) for each in prompt.messages] == ["Go.", "", REPAIR_TEXTS["en"].missing, "done"]
    assert prompt.tokens.total == sum(map(message_tokens, prompt.messages))
    assert len(room.raw_log()) == 3
    room.say(result("a", "late"))
    assert [text_of(each) for each in room.context(recall="never").prompt.messages][2:] == ["late", "done"]


def test_what_cannot_fit_names_its_largest_part(room: Room) -> None:
    room.talk(2)
    with pytest.raises(Incompressible, match="system"):
        room.context(system_prompt=words(7_000))
    with pytest.raises(Incompressible):
        room.context(tools=tools(6_500))


def test_overhead_makes_it_compact_earlier(room: Room) -> None:
    room.talk(20, 100)
    assert room.context().compaction is None
    assert room.context(system_prompt=words(900), tools=tools(900)).compaction is not None


@pytest.mark.parametrize("most", [900, 2_000, 3_500])
def test_a_longest_prompt_is_kept_to(room: Room, most: int) -> None:
    room.talk(20, 100)
    made = room.context(max_tokens=most, system_prompt="You are 助手.")
    assert sum(map(message_tokens, made.prompt.messages)) <= made.prompt.tokens.total <= most


@pytest.mark.parametrize("budget", [64, 150, 400, 2_000])
def test_memories_keep_to_their_budget_with_their_wrapper(room: Room, budget: int) -> None:
    for number in range(30):
        room.service.remember(W, f"第 {number} 号规定：billing deploys go out on day {number} at 10:00.")
    room.say(user("When does billing deploy? 规定是什么？"))
    made = room.context(recall="always", memory_budget_tokens=budget)
    block = block_of(made)
    assert count_tokens(block) <= budget and (block or budget < 100)
    assert made.receipt is not None and made.receipt.tokens == count_tokens(block)
    assert made.prompt.tokens.memory == (message_tokens({"role": "user", "content": block}) if block else 0)


def test_memories_get_what_room_is_left_and_it_is_said(rooms: Rooms) -> None:
    room = rooms(context_window=1_200, flush={"mode": "off"})
    for number in range(30):
        room.service.remember(W, f"Rule {number}: billing deploys on day {number}.")
    room.talk(1, 100)
    room.say(user("When does billing deploy?"))
    made = room.context(recall="always", memory_budget_tokens=2_000)
    assert made.prompt.tokens.total <= 1_200
    assert any(line.startswith("memory: ") and "of 2000 tokens" in line for line in made.degraded)


@pytest.mark.parametrize(
    ("said", "given", "searched"),
    [
        ("谢谢", {}, False),
        ("我们之前怎么决定部署时间的？", {}, True),
        ("thanks!", {"query": "deploy"}, True),
        ("谢谢", {"recall": "always"}, True),
        ("之前怎么决定的？", {"recall": "never"}, False),
        ("之前怎么决定的？", {"memory_budget_tokens": 0}, False),
    ],
)
def test_the_rules_decide_whether_to_search(room: Room, said: str, given: dict[str, object], searched: bool) -> None:
    room.say(user(said))
    made = room.context(**{"recall": "auto", **given})
    assert made.recall.searched is searched and made.recall.reason
    assert (made.receipt is not None) is searched


def test_a_failed_compaction_is_told_while_the_session_fits_and_raised_when_it_does_not(rooms: Rooms) -> None:
    model = ScriptedModel(*[UpstreamFailed("gone", kind="timeout")] * 9)
    room = rooms(context_window=8_000, model=model, compaction={"fallback": "none"}, flush={"mode": "off"})
    room.talk(27, 100)
    made = room.context()
    assert made.compaction is None and made.degraded[0].startswith("compaction: ")
    room.talk(20, 100, first=27)
    with pytest.raises(UpstreamFailed):
        room.context()


def test_a_small_window_is_warned_of(rooms: Rooms) -> None:
    room = rooms(context_window=4_096)
    room.talk(1)
    assert any(line.startswith("window: ") for line in room.context().degraded)


def test_old_results_are_pruned_before_anything_is_summarised(rooms: Rooms) -> None:
    room = rooms(context_window=16_000, flush={"mode": "off"})
    for number in range(10):
        room.say(user(f"{number}"), calls(f"c{number}"), result(f"c{number}", words(1_200)))
    made = room.context(memory_budget_tokens=0)
    assert made.compaction is not None and made.compaction.stage == "prune" and made.compaction.cleared
    assert made.compaction.method == "none" and refused_by_providers(made.prompt.messages) == []


def test_who_waited_looks_again(rooms: Rooms) -> None:
    """While a context waits for its turn, somebody undoes what had made the session small."""
    room = rooms(context_window=8_000)
    room.say(user("请记住：发布永远在周二上午 10 点。"))
    room.talk(40, 100)
    small = room.compact(force=True).compaction_id
    # Large enough for a flush to be due, not for a compaction.
    room.talk(17, 100, first=40)
    made = list[BuiltContext]()
    waiting = threading.Thread(target=lambda: made.append(room.context(memory_budget_tokens=0)))
    with room.sessions._services.alone(S):
        waiting.start()
        waiting.join(0.3)
        room.undo(small)
    waiting.join(60)
    assert made and made[0].compaction is not None and made[0].prompt.tokens.total <= 6_000


def test_who_waited_for_a_compaction_makes_no_second_one(rooms: Rooms) -> None:
    room = rooms(context_window=8_000, flush={"mode": "off"})
    room.talk(40, 100)
    made = list[BuiltContext]()
    waiting = threading.Thread(target=lambda: made.append(room.context(memory_budget_tokens=0)))
    with room.sessions._services.alone(S):
        waiting.start()
        waiting.join(0.3)
        room.compact()
    waiting.join(60)
    assert made and made[0].compaction is None and made[0].prompt.messages == room.view()
    assert room.events().count("compaction_start") == 1


def test_agents_are_asked_for_memories_while_there_is_time(rooms: Rooms) -> None:
    room = rooms(context_window=8_000, flush={"mode": "agent", "prompt": "写下要记住的。"})
    room.talk(22, 100)
    made = room.context()
    assert made.flush is not None and made.flush.method == "agent" and made.flush.prompt is not None
    assert "写下要记住的。" in made.flush.prompt and made.flush.written == []
    made = room.context()
    assert made.flush is not None, "it is asked again until it has answered"
    done = room.sessions.flushes.flush(S, reply="- 发布在周二上午 10 点。")
    assert [memory.text for memory in done.written] == ["发布在周二上午 10 点。"]
    assert room.context().flush is None


def test_the_last_request_is_never_missing(room: Room) -> None:
    room.talk(30, 100)
    room.say(user("最后一个问题：备份在哪里？"))
    assert "最后一个问题：备份在哪里？" in texts(room.context().prompt.messages)


def test_a_cancelled_summary_leaves_the_session(rooms: Rooms) -> None:
    room = rooms(context_window=8_000, model=ScriptedModel(Reply(text="x")), flush={"mode": "off"})
    room.talk(27, 100)
    before = room.bytes()
    made = room.sessions.context(S, SessionContextRequest(recall="never"), cancelled=lambda: True)
    assert made.compaction is None and "cancelled" in made.degraded[0] and room.bytes() == before


def test_a_hook_that_refuses_is_told(room: Room) -> None:
    from memory_service.hooks import Refused

    room.service.hooks.before_compaction(lambda intent: Refused(reason="busy"))
    room.talk(27, 100)
    assert any("busy" in line for line in room.context().degraded)
    with pytest.raises(Conflict):
        room.compact()
