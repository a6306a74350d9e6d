"""What listeners hear, when a session is at rest, and that nobody holds up who tells."""

from __future__ import annotations

import datetime as dt
import json
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_service.runtime.events import (
    KEPT_EVENTS,
    KEPT_SESSIONS,
    MAX_FIELD_CHARS,
    EventHub,
    EventKind,
    Subscription,
)
from memory_service.runtime.presence import Presence
from memory_service.schemas.sessions import SessionEvent
from memory_service.storage.files.file_storage import FileCoordination
from memory_service.storage.files.shared_database import SHARED_FOLDER, SharedDatabase
from tests.growth import assert_costs_at_most
from tests.memory_service.storage.in_memory_records import event_hub
from tests.waiting import until

W = "default"
S = "支持-42"


def kinds(events: list[SessionEvent]) -> list[str]:
    return [event.kind for event in events]


def started(work: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def waiting(hub: EventHub, count: int = 1) -> None:
    until(lambda: hub._histories[W, S].waiters >= count)


def test_an_event_says_what_happened_when_and_where() -> None:
    now = dt.datetime(2026, 11, 21, 9, 30, tzinfo=dt.UTC)
    hub = event_hub(now=lambda: now)
    with hub.subscribe(W, S) as subscription:
        told = hub.publish(W, "compaction_end", S, tokens_before=9000, tokens_after=2000, will_retry=False, kind="手动")
        assert subscription.take() == [told]
        assert subscription.take() == []
    assert (told.at, told.kind, told.session_id) == (now, "compaction_end", S)
    assert told.fields == {"tokens_before": 9000, "tokens_after": 2000, "will_retry": False, "kind": "手动"}
    assert event_hub().publish(W, "undo", S).at.tzinfo is not None


def test_events_hold_no_long_text_and_nothing_that_json_lacks() -> None:
    told = event_hub().publish(W, "flush", S, reason="原因" * 500, ratio=float("nan"), most=float("inf"), written=3)
    reason = told.fields["reason"]
    assert isinstance(reason, str) and len(reason) == MAX_FIELD_CHARS and reason.endswith("…")
    assert (told.fields["ratio"], told.fields["most"], told.fields["written"]) == (None, None, 3)
    json.dumps(dict(told.fields), allow_nan=False)
    with pytest.raises(TypeError):
        told.fields["written"] = 4


def test_sessions_and_workspaces_hear_of_themselves_alone() -> None:
    hub = event_hub()
    here, there = hub.subscribe(W, S), hub.subscribe("other", S)
    hub.publish(W, "prune", S)
    hub.publish(W, "prune", "another")
    hub.publish("other", "undo", S)
    assert (kinds(here.take()), kinds(there.take())) == (["prune"], ["undo"])


def test_who_comes_back_gets_what_was_missed() -> None:
    hub = event_hub()
    events = [hub.publish(W, "prune", S, turn=turn) for turn in range(5)]
    assert hub.subscribe(W, S).take() == []
    assert hub.subscribe(W, S, after_id=events[1].id).take() == events[2:]
    assert hub.subscribe(W, S, after_id=events[4].id).take() == []
    assert hub.subscribe(W, S, after_id=0).take() == events
    assert hub.subscribe(W, S, after_id=events[4].id + 1000).take() == events
    assert hub.subscribe(W, "new", after_id=0).take() == []


def test_who_comes_back_after_a_restart_is_told_that_something_may_be_missing() -> None:
    before = event_hub().publish(W, "prune", S)
    hub = event_hub()
    quiet = hub.subscribe(W, S, after_id=before.id)
    (dropped,) = quiet.take()
    assert (dropped.kind, dropped.fields) == ("dropped", {"count": None})
    event = hub.publish(W, "flush", S)
    assert event.id > before.id
    assert quiet.take() == [event]
    assert kinds(hub.subscribe(W, S, after_id=before.id).take()) == ["dropped", "flush"]
    assert hub.subscribe(W, S, after_id=dropped.id).take() == [event]


def test_who_is_too_slow_is_told_how_many_were_dropped() -> None:
    hub = event_hub()
    slow = hub.subscribe(W, S)
    events = [hub.publish(W, "prune", S, turn=turn) for turn in range(KEPT_EVENTS + 44)]
    dropped, *rest = slow.take()
    assert (dropped.kind, dropped.fields, dropped.session_id) == ("dropped", {"count": 44}, S)
    assert rest == events[44:]
    assert dropped.id == events[43].id
    assert hub.subscribe(W, S, after_id=dropped.id).take() == rest
    assert kinds(hub.subscribe(W, S, after_id=0).take()) == ["dropped", *["prune"] * KEPT_EVENTS]
    again, *_ = hub.subscribe(W, S, after_id=events[3].id).take()
    assert again.fields == {"count": 40}


@given(st.lists(st.one_of(st.integers(1, 400), st.none()), max_size=12))
def test_nothing_is_lost_uncounted(steps: list[int | None]) -> None:
    """Numbers publish so many events; None takes what there is."""
    hub = event_hub()
    subscription = hub.subscribe(W, S)
    expected = subscription._position
    published = heard = 0
    for step in [*steps, None]:
        for _ in range(step or 0):
            hub.publish(W, "prune", S)
            published += 1
        for event in subscription.take() if step is None else []:
            count = event.fields["count"] if event.kind == "dropped" else 1
            assert isinstance(count, int) and count > 0
            expected += count
            heard += count
            assert event.id == expected - 1
    assert heard == published


def test_idle_sessions_are_put_away_and_busy_ones_are_not() -> None:
    hub = event_hub()
    listened = hub.subscribe(W, "listened")
    hub.publish(W, "compaction_start", "compacting")
    first = hub.publish(W, "undo", "idle")
    hub.publish(W, "compaction_end", "gave up", will_retry=True)
    for number in range(KEPT_SESSIONS + 10):
        hub.publish(W, "prune", f"s{number}")
    assert len(hub._histories) == KEPT_SESSIONS
    assert {"listened", "compacting"} <= {session for _, session in hub._histories}
    assert not {"idle", "gave up"} & {session for _, session in hub._histories}
    hub.publish(W, "flush", "listened")
    assert kinds(listened.take()) == ["flush"]
    assert not hub.wait_idle(W, "compacting", 0)
    with hub.subscribe(W, "idle", after_id=first.id) as again:
        assert again.take() == [], "nothing was missed"
    with hub.subscribe(W, "idle", after_id=0) as again:
        assert again.take() == [first], "what is put away comes back"
    listened.close()
    hub.publish(W, "compaction_end", "compacting")
    for number in range(KEPT_SESSIONS):
        hub.publish(W, "prune", f"t{number}")
    assert {session[0] for _, session in hub._histories} == {"t"}


def test_sessions_that_nothing_happens_to_are_put_away_first() -> None:
    hub = event_hub()
    for number in range(KEPT_SESSIONS):
        hub.publish(W, "prune", f"s{number}")
    hub.publish(W, "flush", "s0")
    hub.publish(W, "prune", "新的")
    assert (W, "s0") in hub._histories and (W, "s1") not in hub._histories


def test_a_listener_in_a_thread_hears_all_in_order() -> None:
    hub = event_hub()
    subscription = hub.subscribe(W, S)
    heard: list[int] = []
    thread = started(lambda: heard.extend(event.id for event in subscription))
    published = [hub.publish(W, "prune", S).id for _ in range(200)]
    while len(heard) < 200 and thread.is_alive():
        time.sleep(0.001)
    subscription.close()
    thread.join(60)
    assert not thread.is_alive() and heard == published


def test_many_publishers_one_numbering() -> None:
    hub = event_hub()
    subscription = hub.subscribe(W, S)
    threads = [started(lambda: [hub.publish(W, "prune", S) for _ in range(30)]) for _ in range(8)]
    for thread in threads:
        thread.join(60)
    numbers = [event.id for event in subscription.take()]
    assert numbers == list(range(numbers[0], numbers[0] + 240))


def test_listening_ends_after_a_silence() -> None:
    hub = event_hub()
    subscription = hub.subscribe(W, S)
    hub.publish(W, "prune", S)
    before = time.monotonic()
    assert kinds(list(subscription.events(timeout_seconds=0.05))) == ["prune"]
    assert time.monotonic() - before >= 0.05


def test_news_are_called_out_and_so_is_the_end() -> None:
    hub, calls = event_hub(), list[str]()
    subscription = hub.subscribe(W, S)

    def wake() -> None:
        # Whoever is called may look at once: no lock is held.
        calls.append(",".join(kinds(subscription.take())) or "end")

    subscription.on_news(wake)
    hub.publish(W, "flush", S)
    hub.publish(W, "undo", S)
    subscription.close()
    hub.publish(W, "prune", S)
    assert calls == ["flush", "undo", "end"]


def test_closing_the_hub_ends_everybody() -> None:
    hub = event_hub()
    hub.publish(W, "compaction_start", S)
    subscription, calls, ends = hub.subscribe(W, S), list[int](), list[object]()
    subscription.on_news(lambda: calls.append(1))
    threads = [
        started(lambda: ends.append(list(hub.subscribe(W, S)))),
        started(lambda: ends.append(hub.wait_idle(W, S))),
    ]
    waiting(hub)
    last = hub.publish(W, "flush", S)
    hub.close()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert False in ends
    assert subscription.is_closed and calls == [1, 1]
    assert list(subscription) == [last]
    late = hub.subscribe(W, S, after_id=last.id)
    assert late.is_closed and list(late) == []
    hub.publish(W, "undo", S)
    assert calls == [1, 1]


def test_closing_the_hub_ends_who_only_waits() -> None:
    hub, ends = event_hub(), list[bool]()
    hub.publish(W, "compaction_start", S)
    thread = started(lambda: ends.append(hub.wait_idle(W, S)))
    waiting(hub)
    hub.close()
    thread.join(60)
    assert ends == [False]


# At rest or not


@pytest.mark.parametrize(
    ("told", "idle"),
    [
        ([], True),
        ([("compaction_start", False)], False),
        ([("compaction_start", False), ("prune", False)], False),
        ([("compaction_start", False), ("compaction_end", False)], True),
        ([("compaction_start", False), ("compaction_end", True)], False),
        ([("compaction_start", False), ("compaction_end", True), ("flush", False)], False),
        ([("compaction_start", False), ("compaction_end", True), ("compaction_start", False)], False),
        ([("compaction_start", False), ("compaction_end", True)] * 2 + [("compaction_end", False)], True),
        ([("overflow", True)], True),
    ],
)
def test_a_session_is_at_rest_when_nothing_runs_or_will(told: list[tuple[EventKind, bool]], idle: bool) -> None:
    hub = event_hub()
    for kind, will_retry in told:
        hub.publish(W, kind, S, will_retry=will_retry)
    assert hub.wait_idle(W, S, timeout_seconds=0) is idle
    assert hub.wait_idle(W, "另一个", timeout_seconds=0)
    assert hub.wait_idle("other", S, timeout_seconds=0)


def test_waiting_goes_on_until_the_retry_has_ended() -> None:
    hub, idle = event_hub(), threading.Event()
    hub.publish(W, "compaction_start", S)

    def wait() -> None:
        assert hub.wait_idle(W, S, 60)
        idle.set()

    thread = started(wait)
    waiting(hub)
    hub.publish(W, "compaction_end", S, will_retry=True)
    assert not idle.wait(0.05)
    hub.publish(W, "compaction_start", S)
    assert not idle.wait(0.05)
    hub.publish(W, "compaction_end", S, will_retry=False)
    assert idle.wait(60)
    thread.join(60)
    assert not hub._histories[W, S].waiters


def test_waiting_ends_in_time() -> None:
    hub = event_hub()
    hub.publish(W, "compaction_start", S)
    before = time.monotonic()
    assert not hub.wait_idle(W, S, 0.05)
    assert time.monotonic() - before >= 0.05
    assert not hub._histories[W, S].waiters


def test_a_waiter_takes_no_processor() -> None:
    hub = event_hub()
    hub.publish(W, "compaction_start", S)
    subscriptions = [hub.subscribe(W, S) for _ in range(20)]
    threads = [started(partial(list, one)) for one in subscriptions]
    threads += [started(lambda: hub.wait_idle(W, S, 60)) for _ in range(20)]
    waiting(hub, 20)
    used, begun = time.process_time(), time.monotonic()
    time.sleep(0.3)
    assert time.process_time() - used < (time.monotonic() - begun) / 2
    hub.close()
    for thread in threads:
        thread.join(60)


def test_a_thousand_listeners_do_not_hold_up_who_tells() -> None:
    hub = event_hub()
    subscriptions: list[Subscription] = [hub.subscribe(W, S) for _ in range(1000)]
    alone = event_hub()

    def tell(told: EventHub) -> None:
        for _ in range(1000):
            told.publish(W, "prune", S)

    # None of them reads: nothing is stored for them, so a thousand cost little more than a walk over them.
    assert_costs_at_most(100, lambda: tell(hub), lambda: tell(alone))
    assert all(kinds(one.take())[0] == "dropped" for one in subscriptions)


def hub_of(home: Path) -> EventHub:
    coordination = FileCoordination(home, SharedDatabase(home))
    return EventHub(coordination, Presence(coordination))


def heard(subscription: Subscription, count: int) -> list[SessionEvent]:
    """So many events of a subscription, and what else has come with them."""
    events: list[SessionEvent] = []

    def take() -> bool:
        events.extend(subscription.take())
        return len(events) >= count

    until(take)
    return events


def test_what_the_storage_did_not_take_is_told_once_when_it_does(tmp_path: Path) -> None:
    one, other = hub_of(tmp_path), hub_of(tmp_path)
    with one.subscribe(W, S) as here, other.subscribe(W, S) as there:
        one.publish(W, "prune", S, number=0)
        (tmp_path / SHARED_FOLDER).rename(tmp_path / "elsewhere")
        (tmp_path / SHARED_FOLDER).touch()
        late = [one.publish(W, "prune", S, number=number) for number in (1, 2)]
        assert [event.id for event in late] == [0, 0]
        (tmp_path / SHARED_FOLDER).unlink()
        (tmp_path / "elsewhere").rename(tmp_path / SHARED_FOLDER)
        # It may be given the number that the late ones would have had.
        other.publish(W, "prune", S, number=3)
        events = heard(here, 4)
        assert events == heard(there, 4)
    ids = [event.id for event in events]
    assert ids == list(range(ids[0], ids[0] + 4))
    numbers = [event.fields["number"] for event in events]
    assert sorted(map(str, numbers)) == list("0123") and numbers.index(1) < numbers.index(2)


def test_what_the_storage_never_takes_is_told_here_without_an_id_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memory_service.runtime.events._LATE_SECONDS", 0.1)
    one, other = hub_of(tmp_path), hub_of(tmp_path)
    with one.subscribe(W, S) as here, other.subscribe(W, S) as there:
        before = one.publish(W, "compaction_start", S)
        assert kinds(heard(here, 1)) == kinds(heard(there, 1)) == ["compaction_start"]
        (tmp_path / SHARED_FOLDER).rename(tmp_path / "elsewhere")
        (tmp_path / SHARED_FOLDER).touch()
        one.publish(W, "compaction_end", S, will_retry=False)
        assert [(event.kind, event.id) for event in heard(here, 1)] == [("compaction_end", before.id)]
        assert one.is_idle(W, S)
        (tmp_path / SHARED_FOLDER).unlink()
        (tmp_path / "elsewhere").rename(tmp_path / SHARED_FOLDER)
        after = other.publish(W, "prune", S)
        assert [heard(each, 1) for each in (here, there)] == [[after], [after]]
        assert after.id == before.id + 1
