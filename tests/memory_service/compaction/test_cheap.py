from __future__ import annotations

import datetime as dt
from dataclasses import replace

import pytest

from memory_service.compaction.prune_steps import PriorPruning, PruningMode, PruningRules
from memory_service.compaction.pruning import PruningRequest, prune, truncate_results
from memory_service.messages.shapes import Message, is_tool_result, text_of
from memory_service.messages.sizes import Numbered, number_message
from tests.growth import at_most_readings
from tests.memory_service.compaction.talk import calls, log, result, says, user
from tests.memory_service.rooms import image, words

NOW = dt.datetime(2026, 11, 20, 9, tzinfo=dt.UTC)
RULES = PruningRules()


def work(count: int, tokens: int = 2_000) -> tuple[Numbered, ...]:
    said = list[Message]()
    for at in range(count):
        said += [user(f"{at}"), calls(f"c{at}"), result(f"c{at}", f"{at} " + words(tokens)), says(f"第 {at} 个回答")]
    return log(*said)


def pruning_request(tail: tuple[Numbered, ...], mode: PruningMode = "to_target", **more: object) -> PruningRequest:
    tokens = sum(each.tokens for each in tail)
    made = PruningRequest(
        mode=mode, tokens=tokens, target_tokens=tokens // 4, usable_tokens=tokens, window_tokens=tokens, now=NOW
    )
    return replace(made, **more)  # type: ignore[arg-type]


def test_off_is_off() -> None:
    tail = work(5)
    done = prune(tail, RULES, pruning_request(tail, "off"), PriorPruning())
    assert done.tail is tail and (done.gain, done.cleared, done.steps) == (0, {}, ())


@pytest.mark.parametrize("mode", ["to_target", "cache_ttl", "budget"])
def test_what_is_gained_is_what_the_tail_is_smaller_by(mode: PruningMode) -> None:
    tail = work(60)
    done = prune(tail, RULES, pruning_request(tail, mode, last_used_at=NOW - dt.timedelta(hours=1)), PriorPruning())
    before, after = sum(each.tokens for each in tail), sum(each.tokens for each in done.tail)
    assert done.gain == before - after > 0 and done.cleared
    assert done.steps[0].tokens_before == before and done.steps[-1].tokens_after == after
    assert [each.seq for each in done.tail] == [each.seq for each in tail]
    assert {each.seq for each, old in zip(done.tail, tail, strict=True) if each is not old} == set(done.cleared)


def test_a_warm_cache_is_left_alone() -> None:
    tail = work(60)
    done = prune(
        tail, RULES, pruning_request(tail, "cache_ttl", last_used_at=NOW - dt.timedelta(seconds=60)), PriorPruning()
    )
    assert done.gain == 0


def test_duplicates_go_first_and_are_not_counted_again() -> None:
    same = "同样的输出 " + words(1_000)
    said = list[Message]()
    for at in range(8):
        said += [user(f"{at}"), calls(f"c{at}"), result(f"c{at}", same), says("ok")]
    tail = log(*said)
    done = prune(tail, RULES, pruning_request(tail, hard=True), PriorPruning())
    assert done.steps[0].name == "duplicates" and done.steps[0].count >= 6
    assert sum(step.tokens_before - step.tokens_after for step in done.steps) == done.gain
    assert done.gain == sum(each.tokens for each in tail) - sum(each.tokens for each in done.tail)


def test_what_is_protected_or_runs_stays() -> None:
    tail = work(20)
    prior = PriorPruning(protected={3}, pending={"c1"}, already={11: "[stub]"})
    done = prune(tail, RULES, pruning_request(tail, hard=True), prior)
    assert done.cleared and not {3, 7} & set(done.cleared)


def test_media_give_way_only_where_the_rest_is_not_enough() -> None:
    turns = [(number_message(image(f"图 {at}"), 0).message, says("ok")) for at in range(6)]  # type: ignore[arg-type]
    tail = log(*[each for turn in turns for each in turn], user("go"))
    enough = prune(tail, RULES, pruning_request(tail, target_tokens=10**6), PriorPruning())
    assert enough.stripped == ()
    done = prune(tail, RULES, pruning_request(tail, target_tokens=10), PriorPruning())
    assert done.stripped == (1, 3, 5, 7, 9) and done.steps[-1].name == "media", "the newest is still looked at"
    hard = prune(tail, RULES, pruning_request(tail, target_tokens=10, hard=True), PriorPruning())
    assert hard.stripped == (1, 3, 5, 7, 9, 11)


@pytest.mark.parametrize("chinese", [False, True])
@pytest.mark.parametrize("room", [600, 2_000, 5_000])
def test_results_are_squeezed_into_the_room_there_is(room: int, chinese: bool) -> None:
    tail = log(
        user("x"), calls("a"), result("a", words(3_000, chinese=chinese)), calls("b"), result("b", words(100)),
        calls("c"), result("c", words(4_000, chinese=chinese)),
    )  # fmt: skip
    done = truncate_results(tail, room)
    size = sum(each.tokens for each in done.tail)
    assert size <= room and size > 0.8 * room, "as large as fits"
    assert set(done.cleared) >= {3, 7} and all("log:" in done.cleared[seq] for seq in (3, 7))
    kept = {each.seq: text_of(each.message) for each in done.tail}
    assert kept == {each.seq: done.cleared.get(each.seq, text_of(each.message)) for each in tail}
    assert text_of(done.tail[2].message)[:20] == text_of(tail[2].message)[:20]


def test_what_is_protected_is_not_squeezed() -> None:
    tail = log(user("x"), calls("a"), result("a", words(3_000)), calls("b"), result("b", words(3_000)))
    done = truncate_results(tail, 3_500, protected_numbers=(3,))
    assert set(done.cleared) == {5} and done.tail[2] is tail[2]


def test_without_room_a_few_words_stay() -> None:
    tail = log(user("x"), calls("a"), result("a", words(3_000)))
    assert 0 < sum(each.tokens for each in truncate_results(tail, 1).tail) < 250


def test_results_that_fit_stay_as_they_are() -> None:
    tail = work(3, 50)
    done = truncate_results(tail, 10**6)
    assert done.cleared == {} and all(old is new for old, new in zip(tail, done.tail, strict=True))


def test_a_megabyte_takes_no_time() -> None:
    tail = log(user("x"), *[m for at in range(20) for m in (calls(f"c{at}"), result(f"c{at}", "备x " * 5_000))])
    with at_most_readings(500):
        done = truncate_results(tail, 5_000)
    assert sum(each.tokens for each in done.tail) <= 5_000
    assert all(is_tool_result(each.message) for each in done.tail[2::2])
