from __future__ import annotations

import pytest

from memory_service.compaction.cut import (
    KeepRules,
    covered_by,
    cut_by_count,
    cut_by_tokens,
    cut_by_turns,
    has_running_call,
    turns_of,
)
from memory_service.messages.shapes import Message
from memory_service.messages.sizes import Numbered, number_message
from tests.growth import at_most_readings
from tests.memory_service.compaction.talk import calls, chat, log, result, says, user


def system(text: str) -> Message:
    return {"role": "system", "content": text}


def sized(*sizes: int) -> tuple[Numbered, ...]:
    """Turns of a user's and an assistant's message, each of so many tokens with its frame."""
    said = [user("x" * 4 * (size - 4)) if at % 2 == 0 else says("x" * 4 * (size - 4)) for at, size in enumerate(sizes)]
    return log(*said)


@pytest.mark.parametrize(
    ("usable", "tokens"), [(1_000, 1_000), (4_000, 2_000), (24_000, 6_000), (108_000, 20_000), (1_000_000, 20_000)]
)
def test_a_quarter_stays_within_its_bounds(usable: int, tokens: int) -> None:
    assert KeepRules().tokens(usable) == tokens


@pytest.mark.parametrize(
    ("window", "count"),
    [(8_000, 5), (16_000, 5), (31_999, 5), (32_000, 10), (199_999, 50), (200_000, 100), (10**6, 100)],
)
def test_messages_by_the_window(window: int, count: int) -> None:
    rules = KeepRules(
        messages_by_window=((16_000, 5), (32_000, 10), (64_000, 20), (128_000, 50), (200_000, 100)),
        emergency_messages=2,
    )
    assert rules.last_messages(window, emergency=False) == count
    assert rules.last_messages(window, emergency=True) == 2
    assert KeepRules().last_messages(window, emergency=True) is None


def test_turns_begin_where_the_user_speaks_again() -> None:
    said = log(says("a"), user("b"), user("c"), says("d"), calls("x"), result("x", "1"), user("e"))
    assert turns_of(said) == [1, 6] and turns_of(()) == []


def test_as_much_stays_as_fits() -> None:
    said = sized(10, 10, 10, 10, 10, 10)
    assert [cut_by_tokens(said, keep) for keep in (0, 10, 20, 40, 59, 60)] == [5, 5, 4, 2, 2, 0]
    assert cut_by_tokens((), 100) == 0


def test_a_border_before_a_user_is_worth_a_third_of_the_tail() -> None:
    said = sized(100, 10, 100, 10, 10, 90)
    assert cut_by_tokens(said, 110) == 4, "behind the user's message would be 3, which fits"
    far = log(user("x" * 400), says("x" * 400), says("x" * 400), says("x" * 160), user("x"), says("y"))
    assert cut_by_tokens(far, 160) == 2, "the user's message is too far to go there"


def test_calls_stay_with_their_results() -> None:
    said = log(user("a"), calls("x"), result("x", "1" * 400), says("b"), calls("y"), result("y", "2" * 400))
    assert cut_by_tokens(said, 110) == 4 and cut_by_tokens(said, 30) == 4
    assert [cut_by_count(said, count) for count in (0, 1, 2, 3, 4, 5, 9)] == [4, 4, 4, 3, 1, 1, 0]


def test_what_one_message_was_read_as_stays_together() -> None:
    first, *rest = log(calls("x"), result("x", "1"))
    said = (first, *rest, number_message(user("go on"), 2), number_message(says("ok"), 3))
    assert cut_by_count(said, 2) == 0 and cut_by_tokens(said, 12) in (0, 3)


def test_what_runs_is_never_cut_off() -> None:
    said = log(user("a"), calls("x"), result("y", "?"), user("b"), says("c"), user("d"))
    for live, at in (({"x"}, 1), (set[str](), 5)):
        assert cut_by_tokens(said, 5, live=live) == at
    assert cut_by_count(said, 1, live={"x"}) == 1 and cut_by_turns(said, 1, live={"x"}) == 1
    assert has_running_call(said, {"x"}) and not has_running_call(said, set())
    assert has_running_call(log(user("a"), calls("x")), set()), "the last unit may still be answered"
    assert not has_running_call(log(user("a"), calls("x"), result("x", "1")), {"x"})


def test_an_interim_result_is_no_answer() -> None:
    said = log(user("a"), calls("x"), result("x", "still running", interim=True))
    assert has_running_call(said, set()) and cut_by_count(said, 0) == 1


def test_the_last_turns_stay_whatever_they_take() -> None:
    said = chat(8)
    assert said[cut_by_turns(said, 6)].message == said[8].message
    assert cut_by_turns(said, 8) == cut_by_turns(said, 99) == 0


@pytest.mark.parametrize(("at", "whole", "prefix"), [(4, 4, 0), (5, 4, 1), (6, 4, 2), (7, 4, 3), (2, 2, 0), (8, 8, 0)])
def test_the_last_turn_gives_its_first_half_apart_where_it_is_split(at: int, whole: int, prefix: int) -> None:
    said = log(user("0"), says("1"), says("2"), says("3"), user("4"), says("5"), says("6"), says("7"))
    covered, half = covered_by(said, at)
    assert (len(covered), len(half)) == (whole, prefix)
    assert covered + half == said[:at]


def test_system_messages_are_covered_by_nothing() -> None:
    covered, half = covered_by(log(system("s"), user("a"), system("规矩"), says("b"), user("c")), 4)
    assert [each.message["role"] for each in covered + half] == ["user", "assistant"]


def test_long_sessions_take_no_time() -> None:
    said = chat(2_500, chars=40)
    with at_most_readings(250):
        cut_by_tokens(said, 20_000), cut_by_turns(said, 6), cut_by_count(said, 100), has_running_call(said, {"c1"})
