"""Work behind gives way, and still comes to its end."""

from __future__ import annotations

import threading
import time

from indexer.throttle import BackgroundThrottle


def test_an_empty_road_is_not_waited_for() -> None:
    traffic = BackgroundThrottle()
    time.sleep(0.05)
    started = time.monotonic()
    traffic.give_way()
    assert time.monotonic() - started < 0.04


def test_it_waits_for_what_passes_and_no_longer() -> None:
    traffic, passing, over = BackgroundThrottle(), threading.Event(), threading.Event()

    def pass_by() -> None:
        with traffic.passing():
            passing.set()
            over.wait(30)

    thread = threading.Thread(target=pass_by)
    thread.start()
    passing.wait(30)
    time.sleep(0.2)
    started = time.monotonic()
    traffic.give_way()
    waited = time.monotonic() - started
    over.set()
    thread.join()
    assert waited >= 0.04, "it has worked for long: it waits as long as it ever does"
    assert waited < 10, "what passes did not end"


def test_whoever_has_done_little_waits_little() -> None:
    traffic = BackgroundThrottle()
    with traffic.passing():
        traffic.give_way()
        started = time.monotonic()
        for _ in range(200):
            traffic.give_way()
        assert time.monotonic() - started < 8, "each wait is as long as the work before it, not the longest there is"


def test_what_ends_with_an_error_has_passed() -> None:
    traffic = BackgroundThrottle()
    for _ in range(2):
        try:
            with traffic.passing():
                raise KeyError
        except KeyError:
            pass
    time.sleep(0.2)
    started = time.monotonic()
    traffic.give_way()
    assert time.monotonic() - started < 0.04


def test_each_thread_waits_for_its_own_work() -> None:
    traffic, waited = BackgroundThrottle(), list[float]()

    def work() -> None:
        with traffic.behind():
            started = time.monotonic()
            traffic.give_way()
            waited.append(time.monotonic() - started)

    time.sleep(0.2)
    with traffic.passing():
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        started = time.monotonic()
        traffic.give_way()
    assert waited[0] < 0.04, "it has only just begun, whatever others did"
    assert time.monotonic() - started >= 0.04, "it has worked for long, whatever others did"


def test_pieces_come_whole_and_in_order_when_nothing_passes() -> None:
    traffic, seen = BackgroundThrottle(), list[int]()
    passing, over = threading.Event(), threading.Event()

    def pass_by() -> None:
        with traffic.passing():
            passing.set()
            over.wait(30)

    thread = threading.Thread(target=pass_by)
    time.sleep(0.2)
    started = time.monotonic()
    for piece in traffic.paced(range(3)):
        seen.append(piece)
        if piece == 0:
            thread.start()
            passing.wait(30)
            time.sleep(0.06)
            started = time.monotonic()
        elif piece == 1:
            assert time.monotonic() - started >= 0.04
            over.set()
            thread.join()
    assert seen == [0, 1, 2]
