from __future__ import annotations

import datetime as dt
from typing import Any

from memory_service.compaction.record import PinRecord
from memory_service.compaction.snapshot import Snapshot, snapshot_of
from memory_service.compaction.view import project
from memory_service.messages.sizes import count_tokens
from memory_service.sessions.records import Pending
from tests.memory_service.compaction.test_view import SHAPE, compacted, session
from tests.memory_service.rooms import calls, result, says, system, user

NOW = dt.datetime(2026, 11, 20, 9, tzinfo=dt.UTC)


def taken(*said: dict[str, Any], then: Any = ()) -> Snapshot:
    state = session(*said, then=then)
    view = project(state, SHAPE)
    made = snapshot_of(state, view, SHAPE, now=NOW)
    assert view.repairs or made.tokens == view.tokens
    return made


def test_system_messages_and_pins_are_fixed() -> None:
    made = taken(system("规矩"), user("a"), says("b"), then=(PinRecord(pin_id="p", text="周五绝不部署"),))
    assert [each.seq for each in made.tail] == [2, 3]
    assert made.fixed_tokens >= count_tokens("规矩") + count_tokens("周五绝不部署")
    assert (made.settled, made.request_tokens, made.now) == (False, 0, NOW)


def test_a_checkpoint_is_counted_with_its_request() -> None:
    made = taken(user("请求在这里"), calls("a"), result("a", "1"), says("x"), then=(compacted(4, upto=4),))
    assert made.request_tokens == count_tokens("请求在这里") and made.summary_tokens > made.request_tokens
    assert made.settled and made.most_request_tokens == SHAPE.request_chars // 4


def test_news_and_pruning_settle_nothing() -> None:
    said = [user("a"), says("b"), user("c")]
    assert not taken(*said, then=(compacted(3, stage="prune", upto=3),)).settled
    assert not taken(*said, then=(compacted(3, upto=2),)).settled


def test_what_waits_and_what_is_pinned_is_told() -> None:
    state = (
        Pending(call_ids=("a",)),
        PinRecord(pin_id="p", target=3),
        compacted(0, stage="prune", cleared={5: "x"}, stripped=(1,)),
    )
    made = taken(user("x"), calls("a"), result("a", "1"), calls("b"), result("b", "2"), says("y"), then=state)
    assert made.live == {"a"} and made.protected == {3} and made.cleared == {5: "x"} and made.stripped == {1}
