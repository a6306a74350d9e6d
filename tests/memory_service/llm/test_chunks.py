from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_service.llm.chunks import (
    adaptive_ratio,
    chunk_tokens,
    chunks,
    first_chunk,
    group_by_unit,
    group_tokens,
    is_oversized,
    parts,
)
from memory_service.messages.shapes import Message, is_tool_result, tool_calls_of
from memory_service.messages.sizes import Numbered
from tests.memory_service.compaction.talk import calls, log, result, says, user


def sized(*tokens: int) -> tuple[Numbered, ...]:
    return tuple(replace(each, tokens=size) for each, size in zip(log(*[user("x")] * len(tokens)), tokens, strict=True))


# Seed 003, 3.2: 50 messages of 1,000 tokens in a window of 100,000 are normal.
RATIOS = {
    "normal": ([1_000] * 50, 100_000, 0.4),
    "just a tenth": ([10_000] * 5, 120_000, 0.4),
    "above a tenth": ([11_000] * 5, 120_000, 0.4 - 2 * 0.11),
    "large": ([20_000] * 5, 100_000, 0.15),
    "larger than the window": ([200_000], 100_000, 0.15),
    "nothing": ([], 100_000, 0.4),
    "no window": ([10], 0, 0.4),
}


@pytest.mark.parametrize("case", RATIOS)
def test_the_ratio_falls_with_the_mean_message(case: str) -> None:
    tokens, window, expected = RATIOS[case]
    assert adaptive_ratio(sized(*tokens), window) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("window", "ratio", "expected"),
    [(200_000, 0.4, 75_904), (128_000, 0.15, 15_104), (16_000, 0.4, 3_200), (8_000, 0.15, 600), (1, 0.4, 1)],
)
def test_the_overhead_is_taken_off_a_chunk(window: int, ratio: float, expected: int) -> None:
    assert chunk_tokens(window, ratio) == expected


def test_oversized_is_more_than_half_the_window_with_the_margin() -> None:
    fits, over = sized(41_666, 41_667)
    assert not is_oversized(fits, 100_000)
    assert is_oversized(over, 100_000)


def test_chunks_are_as_large_as_they_may_be() -> None:
    found = chunks(sized(100, 100, 100, 100, 100), 240)
    assert [len(chunk) for chunk in found] == [2, 2, 1]


def test_what_is_too_large_is_a_chunk_of_its_own() -> None:
    found = chunks(sized(10, 900, 10, 10), 100)
    assert [[each.tokens for each in chunk] for chunk in found] == [[10], [900], [10, 10]]


def test_parts_are_equal_shares() -> None:
    assert [len(part) for part in parts(sized(*[100] * 10), 2)] == [5, 5]
    assert [len(part) for part in parts(sized(*[100] * 10), 3)] == [3, 4, 3]
    assert [[each.tokens for each in part] for part in parts(sized(900, 50, 50), 2)] == [[900], [50, 50]]
    assert [len(part) for part in parts(sized(7), 3)] == [1]
    assert parts((), 2) == []


message = st.sampled_from(
    [
        user("u"),
        says("部署在周二" * 30),
        calls("a"),
        result("a", "r" * 900),
        result("b", "x"),
        calls("b", text="t" * 99),
    ]
)


@given(st.lists(message, max_size=40), st.integers(1, 3_000))
@settings(max_examples=100)
def test_chunks_hold_every_message_once_and_part_no_unit(messages: list[Message], most: int) -> None:
    history = log(*messages)
    found = chunks(history, most)
    assert tuple(each for chunk in found for each in chunk) == history
    assert all(found)
    for chunk in found:
        units = group_by_unit(chunk)
        assert sum(map(group_tokens, units)) * 1.2 <= most or len(units) == 1
    _keeps_units(history, found)
    for chunk, following in pairwise(found):
        assert (group_tokens(chunk) + group_tokens(group_by_unit(following)[0])) * 1.2 > most


@given(st.lists(message, max_size=40), st.integers(1, 6))
@settings(max_examples=100)
def test_parts_hold_every_message_once_and_part_no_unit(messages: list[Message], count: int) -> None:
    history = log(*messages)
    found = parts(history, count)
    assert tuple(each for part in found for each in part) == history
    assert all(found) and len(found) <= count
    _keeps_units(history, found)
    largest = max(map(group_tokens, group_by_unit(history)), default=0)
    assert all(group_tokens(part) <= group_tokens(history) / count + largest for part in found)


def _keeps_units(history: tuple[Numbered, ...], found: list[tuple[Numbered, ...]]) -> None:
    assert [unit for piece in found for unit in group_by_unit(piece)] == group_by_unit(history)


def test_a_call_stays_with_its_results() -> None:
    history = log(user("a"), calls("a"), result("a", "x" * 4_000), user("b"))
    found = chunks(history, 10)
    assert [[each.seq for each in chunk] for chunk in found] == [[1], [2, 3], [4]]
    assert tool_calls_of(found[1][0].message) and is_tool_result(found[1][1].message)


def test_the_first_chunk_begins_anywhere() -> None:
    groups = group_by_unit(sized(100, 100, 100, 100))
    assert first_chunk(groups, 1, 240) == 3
    assert first_chunk(groups, 3, 1) == 4
