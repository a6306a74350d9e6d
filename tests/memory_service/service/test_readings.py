"""What a view takes: by the provider's counts, where there are any that still hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from memory_service.messages.sizes import Usage
from tests.memory_service.rooms import Room, S, says, user, words

Rooms = Callable[..., Room]


def answered(room: Room, factor: float, text: str = "好", **given: Any) -> Any:
    """Ask for a context, and append an answer with what the provider counted: a multiple of the estimate."""
    counted = int(factor * room.context(memory_budget_tokens=0).prompt.estimated.total)
    return room.sessions.append(S, [says(text)], usage=Usage(input_tokens=counted, output_tokens=5, **given))


def test_without_counts_it_is_the_estimate(room: Room) -> None:
    room.talk(3)
    made = room.sessions.snapshot(S).reading()
    assert (made.tokens, made.source, made.scale) == (room.view_tokens(), "estimate", 1.0)


@pytest.mark.parametrize("chinese", [False, True])
def test_a_provider_that_counts_more_makes_it_compact_earlier(rooms: Rooms, chinese: bool) -> None:
    room = rooms(context_window=8_000, flush={"mode": "off"})
    room.talk(20 if chinese else 18, 100, chinese=chinese)
    assert room.sessions.store.summary(S).pressure == "ok"
    made = answered(room, 1.5)
    assert made.source == "usage" and made.pressure == "hard"
    snapshot = room.sessions.snapshot(S)
    assert snapshot.reading().scale == pytest.approx(1.5, abs=0.01)
    assert snapshot.reading().tokens == pytest.approx(1.5 * room.view_tokens(), rel=0.02)
    done = room.context(memory_budget_tokens=0)
    assert done.compaction is not None and done.prompt.tokens.total <= 6_000
    assert done.prompt.tokens.total == pytest.approx(1.5 * room.view_tokens(), rel=0.02)


def test_a_provider_that_counts_less_makes_it_compact_later(rooms: Rooms) -> None:
    room = rooms(context_window=8_000, flush={"mode": "off"})
    room.talk(24, 100)
    assert answered(room, 0.7).pressure == "ok"
    room.talk(4, 100, first=24)
    assert room.view_tokens() > 5_400 and room.context(memory_budget_tokens=0).compaction is None


def test_a_count_from_before_a_compaction_is_no_anchor_any_more(rooms: Rooms) -> None:
    room = rooms(context_window=8_000, flush={"mode": "off"})
    room.talk(20, 100)
    assert answered(room, 1.0).tokens > 4_000
    receipt = room.compact(force=True)
    snapshot = room.sessions.snapshot(S)
    assert snapshot.reading(is_anchored=True).tokens == pytest.approx(receipt.tokens_after, rel=0.02)
    assert room.sessions.store.summary(S).pressure == "ok"
    room.undo(receipt.compaction_id)
    anchored = room.sessions.snapshot(S).reading(is_anchored=True)
    assert anchored.tokens == pytest.approx(room.view_tokens(), rel=0.02), "the count of the compacted view is not used"
    assert answered(room, 1.0).tokens == pytest.approx(room.view_tokens() + 5, rel=0.02)


def test_another_models_count_tells_nothing(rooms: Rooms) -> None:
    room = rooms(context_window=8_000, flush={"mode": "off"})
    room.sessions.store.create(S, model="my-model")
    room.talk(10, 100)
    assert answered(room, 2.0, model="another-model").source == "estimate"
    assert answered(room, 2.0, model="provider/my-model-2026-01-01").source == "usage"


def test_what_came_after_a_count_is_estimated(rooms: Rooms) -> None:
    room = rooms(context_window=32_000, flush={"mode": "off"})
    room.talk(10, 100)
    counted = answered(room, 1.2).tokens
    made = room.sessions.append(S, [user(words(1_000))])
    assert made.tokens == pytest.approx(counted + 1.2 * 1_004, rel=0.01)


@pytest.mark.parametrize(("factor", "scale"), [(100.0, 2.5), (0.01, 0.6)])
def test_a_wild_count_does_not_decide(rooms: Rooms, factor: float, scale: float) -> None:
    room = rooms(context_window=64_000, flush={"mode": "off"})
    room.talk(5, 100)
    answered(room, factor)
    assert room.sessions.snapshot(S).reading().scale == pytest.approx(scale)
