from __future__ import annotations

from typing import Any

import pytest

from memory_service.errors import Incompressible, InvalidRequest
from memory_service.messages.reading import read_messages
from memory_service.messages.shapes import text_of
from memory_service.messages.sizes import message_tokens
from memory_service.schemas.compaction import CompactedMessages, StatelessRequest
from tests.memory_service.rooms import (
    Room,
    calls,
    refused_by_providers,
    result,
    says,
    system,
    texts,
    turn,
    user,
    words,
)


def compacted(room: Room, messages: list[Any], **given: Any) -> CompactedMessages:
    return room.service.compact_messages(StatelessRequest(messages=messages, **{"context_window": 8_000, **given}))


def talk(turns: int, *, chinese: bool = False) -> list[Any]:
    return [message for number in range(turns) for message in turn(number, 100, chinese=chinese)]


def test_what_fits_comes_back_as_it_was(room: Room) -> None:
    said = [system("sys"), *talk(3), user("问"), calls("a"), result("a", "1")]
    made = compacted(room, said)
    assert list(made.messages) == said and not made.receipt.applied and "compaction begins" in made.receipt.reason


@pytest.mark.parametrize("chinese", [False, True])
def test_what_does_not_fit_is_compacted_and_nothing_is_kept(room: Room, chinese: bool) -> None:
    said = [system("You are 助手."), *talk(40, chinese=chinese), user("最后的问题？")]
    before = sorted(room.home.rglob("*"))
    made = compacted(room, said, pins=["周五绝不部署"])
    assert made.receipt.applied and made.receipt.compaction_id is None
    assert sum(map(message_tokens, read_messages(made.messages))) == made.receipt.tokens_after <= 3_000
    assert (
        made.messages[0] == said[0]
        and made.messages[-1] == said[-1]
        and "周五绝不部署" in texts(read_messages(made.messages))
    )
    assert refused_by_providers(read_messages(made.messages)) == [] and sorted(room.home.rglob("*")) == before
    kept = text_of(read_messages(made.messages)[2])
    assert kept == said[made.receipt.first_kept - 1]["content"], "numbers count from 1, as the caller does"


def test_it_may_be_forced_and_told_how(room: Room) -> None:
    said = talk(20)
    assert not compacted(room, said).receipt.applied
    assert compacted(room, said, force=True, target_tokens=1_000).receipt.tokens_after <= 1_000
    assert compacted(room, said, force=True, preset="turns").receipt.preset == "turns"
    assert compacted(room, said, system_prompt=words(2_500)).receipt.applied


def test_the_window_may_be_known_by_the_model(room: Room) -> None:
    made = compacted(room, talk(2), context_window=None, model="gpt-4")
    assert made.receipt.window_tokens == 8_000, "the settings win over what is known of a model"


@pytest.mark.parametrize(
    ("messages", "given"),
    [
        ([{"role": ""}], {}),
        ([user("a")], {"preset": "best"}),
        ([user("a")], {"context_window": 100}),
    ],
)
def test_what_cannot_be_compacted_is_refused(room: Room, messages: list[Any], given: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest):
        compacted(room, messages, **given)


def test_what_cannot_be_made_to_fit_is_an_error(room: Room) -> None:
    with pytest.raises(Incompressible):
        compacted(room, [user("x"), says(words(9_000))])


def test_blocks_of_anthropic_are_taken_too(room: Room) -> None:
    use = {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "run", "input": {}}]}
    told = {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": "a", "content": "好"}, {"type": "text", "text": "go"}],
    }
    made = compacted(room, [*talk(40), user("x"), use, told], force=True)
    assert [message["role"] for message in made.messages[-3:]] == ["assistant", "tool", "user"]
    assert refused_by_providers(read_messages(made.messages)) == []
