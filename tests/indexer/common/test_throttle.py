"""Work behind gives way to what people wait for, and still comes to its end."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager

import pytest

from indexer.common.throttle import BackgroundThrottle

_WORK_SECONDS = 0.3
_LONG = 0.25


@pytest.fixture(autouse=True)
def long_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits that no delay of a busy machine looks like."""
    monkeypatch.setattr("indexer.common.throttle._LONGEST_SECONDS", _WORK_SECONDS)
    monkeypatch.setattr("indexer.common.throttle._AWAITED_SECONDS", 20.0)


@contextmanager
def elsewhere(block: Callable[[], AbstractContextManager[None]]) -> Iterator[None]:
    """Another thread is in a block."""
    inside, over = threading.Event(), threading.Event()

    def stay() -> None:
        with block():
            inside.set()
            over.wait(60)

    thread = threading.Thread(target=stay)
    thread.start()
    assert inside.wait(60)
    try:
        yield
    finally:
        over.set()
        thread.join()


def passes(traffic: BackgroundThrottle) -> bool:
    """True if work does not wait: if it does in no more than some of the tries, the machine was busy."""
    for _ in range(10):
        if waited(traffic) < _LONG:
            return True
        time.sleep(_WORK_SECONDS)
    return False


def waited(traffic: BackgroundThrottle) -> float:
    started = time.monotonic()
    traffic.yield_to_foreground()
    return time.monotonic() - started


def test_an_empty_road_is_not_waited_for() -> None:
    traffic = BackgroundThrottle()
    with traffic.background():
        time.sleep(_WORK_SECONDS)
        assert passes(traffic)


def test_it_waits_for_what_passes_and_no_longer() -> None:
    traffic = BackgroundThrottle()
    with traffic.background():
        time.sleep(_WORK_SECONDS)
        with elsewhere(traffic.foreground):
            seconds = waited(traffic)
    assert seconds >= _LONG, "it has worked for long: it waits as long as it ever does"


def test_only_what_is_behind_gives_way() -> None:
    traffic = BackgroundThrottle()
    with elsewhere(traffic.foreground):
        assert passes(traffic)


def test_nobody_gives_way_to_himself_or_to_what_is_behind() -> None:
    traffic = BackgroundThrottle()
    with traffic.foreground(), traffic.background():
        time.sleep(_WORK_SECONDS)
        assert passes(traffic)
        with elsewhere(lambda: in_turn(traffic.background(), traffic.foreground)):
            time.sleep(_WORK_SECONDS)
            assert passes(traffic)


@contextmanager
def in_turn(first: AbstractContextManager[None], then: Callable[[], AbstractContextManager[None]]) -> Iterator[None]:
    with first, then():
        yield


def test_who_waits_for_what_is_behind_is_not_given_way_to() -> None:
    traffic = BackgroundThrottle()

    @contextmanager
    def waiting() -> Iterator[None]:
        with traffic.foreground(), traffic.waiting():
            yield

    with traffic.background(), elsewhere(waiting):
        time.sleep(_WORK_SECONDS)
        assert passes(traffic)


def test_after_a_wait_it_passes_again() -> None:
    traffic = BackgroundThrottle()

    @contextmanager
    def after_a_wait() -> Iterator[None]:
        with traffic.foreground():
            with traffic.waiting():
                pass
            yield

    with traffic.background(), elsewhere(after_a_wait):
        time.sleep(_WORK_SECONDS)
        assert waited(traffic) >= _LONG


def test_a_call_that_takes_long_is_waited_for_at_its_beginning_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    traffic = BackgroundThrottle()
    with traffic.background(), elsewhere(traffic.foreground):
        time.sleep(_WORK_SECONDS)
        assert waited(traffic) >= _LONG
        monkeypatch.setattr("indexer.common.throttle._AWAITED_SECONDS", 0.1)
        time.sleep(_WORK_SECONDS)
        assert passes(traffic)


def test_whoever_has_done_little_waits_little() -> None:
    traffic = BackgroundThrottle()
    with elsewhere(traffic.foreground), traffic.background():
        traffic.yield_to_foreground()
        least = min(waited(traffic) for _ in range(200))
        assert least < _LONG, "each wait is as long as the work before it, not the longest there is"


def test_what_ends_with_an_error_has_passed() -> None:
    traffic = BackgroundThrottle()
    for _ in range(2):
        with pytest.raises(KeyError), traffic.foreground():
            raise KeyError
    with traffic.background():
        time.sleep(_WORK_SECONDS)
        assert passes(traffic)


def test_each_thread_waits_for_its_own_work() -> None:
    traffic, others = BackgroundThrottle(), list[float]()

    def work() -> None:
        with traffic.background():
            others.append(waited(traffic))

    with traffic.background():
        time.sleep(_WORK_SECONDS)
        with elsewhere(traffic.foreground):
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
            own = waited(traffic)
    assert others[0] < own, "it has only just begun, whatever others did"
    assert own >= _LONG, "it has worked for long, whatever others did"


def test_pieces_come_whole_and_in_order() -> None:
    traffic, pauses = BackgroundThrottle(), list[float]()
    with traffic.background(), elsewhere(traffic.foreground):
        pieces = traffic.pace(range(3))
        assert next(pieces) == 0
        for expected in (1, 2):
            time.sleep(_WORK_SECONDS)
            started = time.monotonic()
            assert next(pieces) == expected
            pauses.append(time.monotonic() - started)
    assert min(pauses) >= _LONG


def test_helpers_give_way_as_the_thread_that_they_help() -> None:
    traffic = BackgroundThrottle()

    def seconds() -> float:
        with ThreadPoolExecutor(1) as pool:
            started = time.monotonic()
            list(pool.map(traffic.handed_on(lambda piece: time.sleep(_WORK_SECONDS)), range(4)))
            return time.monotonic() - started

    with elsewhere(traffic.foreground):
        assert any(seconds() < 4 * _WORK_SECONDS + 2 * _LONG for _ in range(10)), "a busy machine is not so each time"
        with traffic.background():
            assert seconds() >= 4 * _WORK_SECONDS + 3 * _LONG


@pytest.mark.skipif(sys.platform != "linux", reason="only there a thread has a priority of its own")
def test_helpers_are_nice_to_other_programs_and_nobody_else_changes() -> None:
    traffic, seen = BackgroundThrottle(), list[int]()

    def look(piece: int) -> None:
        seen.append(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))

    before = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
    for block in (traffic.foreground, traffic.background):
        with block(), ThreadPoolExecutor(1) as pool:
            list(pool.map(traffic.handed_on(look), range(2)))
    assert seen == [before, before, max(before, 10), max(before, 10)]
    assert os.getpriority(os.PRIO_PROCESS, threading.get_native_id()) == before
