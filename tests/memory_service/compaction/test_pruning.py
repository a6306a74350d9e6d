from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from memory_service.compaction.prune_steps import PriorPruning, Pruned, PruningRules, pruned_view
from memory_service.compaction.pruning import _cache_ttl, _to_target, budget
from memory_service.messages.shapes import Message, text_of
from memory_service.messages.sizes import Numbered, number_message
from memory_service.text.placeholders import OLD_CLEARED, OUTPUT_REMOVED
from tests.memory_service.messages.test_repair import IMAGE, says, system, user

DEFAULT = PruningRules()
NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
LONG_AGO = NOW - timedelta(seconds=301)
OPENCLAW = PruningRules(placeholder=OLD_CLEARED)
OPENCODE = PruningRules(placeholder=OLD_CLEARED)
SEED_002 = PruningRules(placeholder=OUTPUT_REMOVED, by_result=True)


def step(call_id: str, text: str, *, tool: str = "bash", image: bool = False, **keys: Any) -> list[Message]:
    """A call and its result."""
    content: Any = [{"type": "text", "text": text}, IMAGE] if image else text
    function = {"name": tool, "arguments": json.dumps({"command": f"run {call_id}"})}
    call = {"id": call_id, "type": "function", "function": function}
    return [
        cast(Message, {"role": "assistant", "content": None, "tool_calls": [call]}),
        cast(Message, {"role": "tool", "tool_call_id": call_id, "content": content, **keys}),
    ]


def view(*messages: Message, at: str = "") -> list[Numbered]:
    return [number_message(message, seq, at) for seq, message in enumerate(messages, start=1)]


def size(messages: list[Numbered]) -> int:
    return sum(each.tokens for each in messages)


def work(*results: str, replies: int = 3, **keys: Any) -> list[Numbered]:
    """A user who asks, a call for each result, and replies that end it; results have the numbers 3, 5, 7 …"""
    steps = [message for index, text in enumerate(results) for message in step(f"c{index}", text, **keys)]
    return view(user("go"), *steps, *(says(f"reply {index}") for index in range(replies)))


def pruned(messages: list[Numbered], rules: PruningRules = OPENCLAW, **prior: Any) -> Pruned:
    wanted = {"window_tokens": 40_000, "tokens": size(messages), "now": NOW, "last_used_at": LONG_AGO, **prior}
    return _cache_ttl(messages, rules, **wanted)


# -- OpenClaw: when the cache is cold -----------------------------------------------------------------------------


def test_a_warm_cache_is_left_alone() -> None:
    messages = work("a" * 100_000)
    warm = pruned(messages, last_used_at=NOW - timedelta(seconds=299))
    assert (warm.cleared, warm.gain_tokens) == ({}, 0)
    assert warm.notes == ("The provider's prompt cache is still warm.",)
    assert pruned(messages).cleared
    assert pruned(messages, last_used_at=None).cleared


def test_nothing_happens_below_thirty_percent_of_the_window() -> None:
    messages = work("a" * 5_000)
    assert not pruned(messages, tokens=11_999).cleared
    assert pruned(messages, tokens=12_000).cleared


def test_from_thirty_percent_on_results_over_4000_characters_keep_1500_at_both_ends() -> None:
    messages = work("h" * 2_001 + "t" * 2_000, "a" * 4_000)
    done = pruned(messages, tokens=12_000)
    assert [*done.cleared] == [3]
    head, notice, tail = done.cleared[3].split("\n")
    assert (head, tail) == ("h" * 1_500, "t" * 1_500)
    assert notice == "[... 1,001 characters left out; log:3]"
    assert done.tokens_before == 12_000
    assert 12_000 - done.tokens_after == size(messages) - size(pruned_view(messages, done.cleared))


def test_chinese_results_are_shortened_by_their_tokens() -> None:
    done = pruned(work("头" * 601 + "尾" * 600, "中" * 1_000), tokens=12_000)
    assert [*done.cleared] == [3]
    head, _, tail = done.cleared[3].split("\n")
    assert (head, tail) == ("头" * 375, "尾" * 375)


def test_from_half_of_the_window_on_the_oldest_are_cleared_until_below_it() -> None:
    messages = work(*("a" * 4_000 for _ in range(20)))
    tokens = size(messages)
    done = pruned(messages, window_tokens=2 * (tokens - 2_500), tokens=tokens)
    assert done.cleared == {seq: f"{OLD_CLEARED} log:{seq}" for seq in (3, 5, 7)}
    assert done.tokens_after < tokens - 2_500


@pytest.mark.parametrize(("results", "clears"), [(12, 0), (13, 13)])
def test_less_than_50000_characters_are_not_cleared(results: int, clears: int) -> None:
    assert len(pruned(work(*("a" * 4_000 for _ in range(results))), tokens=99_000).cleared) == clears


def test_clearing_may_be_off() -> None:
    done = pruned(work(*("a" * 9_000 for _ in range(20))), PruningRules(hard_clear=False), tokens=99_000)
    assert len(done.cleared) == 20
    assert all(text.startswith("a" * 1_500) for text in done.cleared.values())


def test_what_the_last_three_replies_need_stays() -> None:
    assert [*pruned(work("a" * 9_000, "a" * 9_000, replies=2), tokens=13_000).cleared] == [3]
    assert [*pruned(work("a" * 9_000, "a" * 9_000, replies=3), tokens=13_000).cleared] == [3, 5]
    assert not pruned(work("a" * 9_000, replies=1), tokens=13_000).cleared


def test_nothing_before_the_first_user_message_is_touched() -> None:
    messages = view(system("s"), *step("a", "b" * 9_000), user("go"), *step("c", "d" * 9_000), *[says("x")] * 3)
    assert [*pruned(messages, tokens=13_000).cleared] == [6]


def test_the_last_three_results_with_images_stay() -> None:
    messages = work(*("图" * 4_000 for _ in range(5)), image=True)
    done = pruned(messages, tokens=99_000, rules=PruningRules(min_prunable_chars=0))
    assert [*done.cleared] == [3, 5]
    assert done.stripped == (3, 5)
    shown = pruned_view(messages, done.cleared, done.stripped)[2].message
    assert text_of(shown).endswith("cleared; log:3]\n[Attached image/png: file; log:3#1]")


def test_tools_are_allowed_and_denied_by_pattern_and_denying_wins() -> None:
    steps = [*step("a", "x" * 9_000, tool="Web_Fetch"), *step("b", "x" * 9_001, tool="bash"), *step("c", "x" * 9_002)]
    messages = view(user("go"), *steps, *[says("x")] * 3)

    def touched(**keys: tuple[str, ...]) -> list[int]:
        return [*pruned(messages, PruningRules(**cast(Any, keys)), tokens=13_000).cleared]

    assert touched() == [3, 5, 7]
    assert touched(allow_tools=("web_*",)) == [3]
    assert touched(deny_tools=("BASH",)) == [3]
    assert touched(allow_tools=("*",), deny_tools=("web*",)) == [5, 7]


def test_seed_002_looks_at_each_result_by_itself() -> None:
    texts = ("a" * 81_000, "b" * 9_000, "c" * 3_900, "旧" * 23_000)
    done = pruned(work(*texts), SEED_002, tokens=1)
    assert done.cleared[3] == f"{OUTPUT_REMOVED} log:3"
    assert done.cleared[5].startswith("b" * 1_500 + "\n[...")
    assert 7 not in done.cleared
    assert done.cleared[9] == f"{OUTPUT_REMOVED} log:9"


def test_seed_002_counts_the_age_of_each_result() -> None:
    old, young = (stamp.isoformat() for stamp in (LONG_AGO, NOW - timedelta(seconds=200)))
    messages = work("a" * 9_000, "b" * 9_000)
    messages[2] = number_message(messages[2].message, 3, old)
    messages[4] = number_message(messages[4].message, 5, young)
    assert [*pruned(messages, SEED_002, last_used_at=NOW).cleared] == [3]


# -- opencode: a budget of tool output ----------------------------------------------------------------------------


def turns(*sizes: int, recent: int = 2, **keys: Any) -> list[Numbered]:
    """A turn with results of so many tokens, then short turns."""
    steps = [message for at, tokens in enumerate(sizes) for message in step(f"c{at}", "a" * 4 * (tokens - 4), **keys)]
    return view(user("go"), *steps, *(message for _ in range(recent) for message in (user("and"), says("so"))))


def test_the_newest_40000_tokens_of_output_stay() -> None:
    done = budget(turns(*[10_000] * 8), OPENCODE)
    assert [*done.cleared] == [3, 5, 7, 9]
    assert done.cleared[3] == "[Old tool result content cleared] log:3"
    assert 39_900 < done.gain_tokens < 40_000


def test_the_result_that_goes_over_the_budget_is_cleared() -> None:
    assert [*budget(turns(25_000, 39_000), OPENCODE).cleared] == [3]
    assert not budget(turns(20_001, 40_000 - 20_001), OPENCODE).cleared


@pytest.mark.parametrize(("old", "clears"), [(20_000, 0), (20_001, 1)])
def test_it_is_done_only_for_more_than_20000_tokens(old: int, clears: int) -> None:
    done = budget(turns(old, 40_000), OPENCODE)
    assert len(done.cleared) == clears
    assert bool(done.gain_tokens) == bool(clears)


def test_the_last_two_turns_do_not_count() -> None:
    assert not budget(turns(*[10_000] * 8, recent=1), OPENCODE).cleared
    recent = view(*(each.message for each in turns(*[10_000] * 8)), *step("z", "z" * 400_000), says("done"))
    assert [*budget(recent, OPENCODE).cleared] == [3, 5, 7, 9]


def test_skills_stay_and_do_not_count() -> None:
    assert not budget(turns(*[10_000] * 8, tool="skill"), OPENCODE).cleared
    assert not budget(turns(*[10_000] * 8, tool="Skill"), OPENCODE).cleared


def test_the_walk_ends_where_a_result_was_cleared_before() -> None:
    messages = turns(*[10_000] * 12)
    assert len(budget(messages, OPENCODE).cleared) == 8
    assert not budget(messages, OPENCODE, prior=PriorPruning(already={19: f"{OLD_CLEARED} log:19"})).cleared
    assert len(budget(messages, OPENCODE, prior=PriorPruning(already={9: f"{OLD_CLEARED} log:9"})).cleared) == 4
    trim = PriorPruning(already={19: "a" * 1_500 + "\n[... 37,000 characters left out; log:19]\n" + "a" * 1_500})
    assert [*budget(messages, OPENCODE, prior=trim).cleared] == [3, 5, 7, 9, 11, 13, 15, 17]


# -- The default: down to a target --------------------------------------------------------------------------------


def aimed(messages: list[Numbered], target: int, rules: PruningRules = DEFAULT, **keys: Any) -> Pruned:
    return _to_target(
        messages, rules, **{"tokens": size(messages), "target_tokens": target, "window_tokens": 30_000, **keys}
    )


def test_old_results_are_shortened_oldest_first_until_it_is_enough() -> None:
    messages = work(*(f"{index}" * 8_000 for index in range(10)))
    done = aimed(messages, size(messages) - 3_500)
    assert [*done.cleared] == [3, 5, 7]
    assert done.cleared[5].startswith("1" * 1_500 + "\n[...")
    assert done.tokens_after == size(pruned_view(messages, done.cleared)) <= size(messages) - 3_500
    assert done.notes == ("3 old results were shortened.",)


def test_when_that_is_not_enough_the_oldest_are_cleared() -> None:
    messages = work(*("a" * 8_000 for _ in range(10)))
    done = aimed(messages, 9_500)
    assert done.cleared[3] == "[bash: `run c0` -> 8,000 characters, cleared; log:3]"
    cleared = [seq for seq, text in done.cleared.items() if "cleared; log:" in text]
    assert cleared == [3, 5]
    assert done.tokens_after <= 9_500
    assert aimed(messages, 9_500, PruningRules(hard_clear=False)).tokens_after > 9_500


@pytest.mark.parametrize("letter", ["a", "查"])
def test_the_newest_fifth_of_what_is_usable_stays(letter: str) -> None:
    text = letter * (2_210 if letter == "查" else 7_984)
    messages = work(*[text] * 10)
    done = aimed(messages, 0)
    assert [*done.cleared] == [3, 5, 7, 9, 11, 13, 15, 17]
    assert len(aimed(messages, 0, usable_tokens=15_000).cleared) == 9
    assert len(aimed(messages, 0, PruningRules(protect_tokens=0)).cleared) == 10


def test_at_most_40000_tokens_stay_however_large_the_window_is() -> None:
    messages = work(*["a" * 40_000] * 10)
    assert len(aimed(messages, 0, window_tokens=1_000_000).cleared) == 7


def test_a_gain_that_is_not_worth_the_cache_is_not_taken() -> None:
    messages = work("a" * 16_000, "b" * 100_000)
    assert aimed(messages, 1, window_tokens=300_000).notes == (
        "Pruning would gain 0 tokens; it is done from 4,096 on.",
    )
    messages = work("a" * 16_000, *["b" * 3_900] * 60)
    done = aimed(messages, size(messages) - 2_000, window_tokens=200_000)
    assert (done.cleared, done.gain_tokens) == ({}, 0)
    assert "it is done from 4,096 on" in done.notes[0]
    assert [*aimed(messages, size(messages) - 2_000, window_tokens=200_000, force=True).cleared] == [3]
    assert [
        *aimed(messages, size(messages) - 2_000, window_tokens=30_000, rules=PruningRules(min_gain_share=0.03)).cleared
    ]


def test_a_small_window_asks_for_a_twentieth_of_it() -> None:
    messages = work("a" * 8_000, "b" * 3_000)
    assert [*aimed(messages, 1_900, window_tokens=4_000).cleared] == [3]


def test_a_view_that_is_small_enough_is_left_alone() -> None:
    messages = work("a" * 90_000)
    assert aimed(messages, size(messages)).cleared == {}


def test_errors_pins_open_and_unread_results_stay() -> None:
    text = "错误 " * 3_000
    settled = [
        *step("bad", text, is_error=True),
        *step("pin", text),
        *step("late", text),
        *step("half", text, interim=True),
    ]
    messages = view(user("go"), *settled, *step("old", text), *step("unread", text))
    done = _to_target(
        messages,
        PruningRules(protect_tokens=0),
        tokens=size(messages),
        target_tokens=0,
        window_tokens=30_000,
        prior=PriorPruning(protected={5}, pending={"late"}),
    )
    assert [*done.cleared] == [11]


def test_what_was_shortened_before_can_be_cleared_later() -> None:
    messages = work(*("a" * 8_000 for _ in range(10)))
    first = aimed(messages, size(messages) - 3_000)
    prior = PriorPruning().after(first)
    again = aimed(messages, 9_000, tokens=first.tokens_after, prior=prior)
    assert set(first.cleared) <= {seq for seq, text in again.cleared.items() if "cleared; log:" in text}
    after = pruned_view(messages, prior.after(again).already)
    assert size(after) == again.tokens_after
