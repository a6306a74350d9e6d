"""The campaign in small: talks through every protocol, none of whose turns fails, and each compaction undone."""

from __future__ import annotations

from itertools import repeat

import pytest

from tests.campaigns import replay, talks
from tests.storages import STORAGES


@pytest.mark.parametrize("storage", STORAGES)
def test_talks_go_through_every_protocol_whole(storage: str) -> None:
    talk = talks.made_up(2, 2)
    found = replay.measure(1, list(replay.PLAYERS), repeat(talk), window=4_500, storage=STORAGES[storage])
    assert {protocol: (each.failed, each.differ) for protocol, each in found.items()} == dict.fromkeys(found, ([], []))
    assert all(each.turns == len(talk.steps) and each.undone for each in found.values())


def test_a_call_without_its_result_and_a_result_without_its_call_are_refused() -> None:
    call = {"type": "function_call", "call_id": "a", "name": "x", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "a", "output": "."}
    assert replay.item_problems([call, output]) == []
    assert len(replay.item_problems([call])) == len(replay.item_problems([output])) == 1
    assert len(replay.item_problems([output, call])) == 2
