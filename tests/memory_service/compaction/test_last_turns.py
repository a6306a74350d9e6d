from __future__ import annotations

import pytest

from memory_service.compaction.cut import halving_cut
from memory_service.compaction.summary import read_upto, without_tools
from memory_service.messages.reading import read_messages
from memory_service.messages.repair import MISTRAL, repair_messages
from memory_service.messages.shapes import Message, text_of, tool_calls_of
from memory_service.messages.sizes import Numbered, number_message
from memory_service.messages.writing import to_mistral, to_openai
from memory_service.messages.writing_anthropic import to_anthropic
from tests.memory_service.rooms import Wire, calls, result, says, system, turn, user, words
from tests.wire import PROVIDERS, Provider, problems, to_litellm


def log(*messages: Wire) -> list[Numbered]:
    return [number_message(read_messages([message])[0], seq) for seq, message in enumerate(messages, start=1)]


def seqs(messages: list[Numbered]) -> list[int]:
    return [each.seq for each in messages]


SAID = log(
    system("Answer briefly."),
    user("读文件"),
    {**calls("a", "b"), "content": "先看看。", "reasoning_content": "Two files."},
    result("a", "A"),
    result("b", "B"),
    {**says("Both read."), "reasoning_content": "Done."},
    calls("c"),
    result("c", "C"),
    user("And the rest?"),
    calls("d"),
    result("d", "D"),
)


def test_what_was_said_stays_and_tools_reasoning_and_empty_messages_go() -> None:
    upto = read_upto(SAID)
    assert upto == 9, "the last call and its result were read by nobody"
    shown = without_tools(SAID, upto)
    assert seqs(shown) == [1, 2, 3, 6, 9, 10, 11]
    assert text_of(shown[2].message) == "先看看。" and not tool_calls_of(shown[2].message)
    assert not any("reasoning_content" in each.message for each in shown)
    assert all(each.tokens < SAID[each.seq - 1].tokens for each in shown[2:4])
    assert without_tools(shown, upto) == shown, "and again"


@pytest.mark.parametrize(("live", "pinned", "kept"), [
    ({"b"}, (), [3, 4, 5]),
    ((), {4}, [3, 4, 5]),
    ((), {7}, [3, 7, 8]),
    ({"c"}, {8}, [3, 7, 8]),
])  # fmt: skip
def test_what_runs_and_what_is_pinned_stays_with_its_results(live: set[str], pinned: set[int], kept: list[int]) -> None:
    shown = without_tools(SAID, 9, live=live, pinned_numbers=pinned)
    assert seqs(shown) == sorted({1, 2, 6, 9, 10, 11, *kept})


def test_nothing_is_read_where_nobody_has_answered() -> None:
    assert read_upto(log(user("x"), user("y"))) == read_upto(log(calls("a"), result("a", "A"))) == read_upto([]) == 0


def sent(messages: list[Message], provider: Provider) -> list[Wire]:
    fixed = list(repair_messages(messages).messages)
    if provider == "anthropic":
        return list(to_anthropic(fixed)[1])
    if provider == "mistral":
        return list(to_mistral(repair_messages(messages, rules=MISTRAL).messages))
    return list(to_openai(fixed) if provider == "openai" else to_litellm(fixed))


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("upto", range(12))
def test_every_provider_takes_it(provider: Provider, upto: int) -> None:
    for pinned in ((), (4,), (8,)):
        shown = [each.message for each in without_tools(SAID, upto, pinned_numbers=pinned)]
        assert problems(sent(shown, provider), provider) == []


@pytest.mark.parametrize(("most", "left"), [(3_880, 40), (3_879, 20), (1_940, 20), (1_939, 10), (969, 5), (1, 1)])
def test_the_oldest_half_goes_again_and_again(most: int, left: int) -> None:
    said = log(*[message for number in range(20) for message in turn(number, 90)])
    assert sum(each.tokens for each in said) == 3_880
    assert len(said) - halving_cut(said, most) == left


def test_a_half_ends_where_a_unit_does() -> None:
    said = log(user("x"), calls("a", "b"), result("a", words(500)), result("b", words(500)), says(words(400)))
    assert halving_cut(said, 600) == 4 and halving_cut(said, 10) == 4 and halving_cut([], 1) == 0
