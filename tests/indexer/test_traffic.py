"""A rebuild gives way, and still comes to its end."""

from __future__ import annotations

import threading
import time

from indexer.traffic import Traffic


def test_an_empty_road_is_not_waited_for() -> None:
    traffic = Traffic()
    time.sleep(0.05)
    started = time.monotonic()
    traffic.give_way()
    assert time.monotonic() - started < 0.04


def test_it_waits_for_what_passes_and_no_longer() -> None:
    traffic, passing, over = Traffic(), threading.Event(), threading.Event()

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
    traffic = Traffic()
    with traffic.passing():
        traffic.give_way()
        started = time.monotonic()
        for _ in range(200):
            traffic.give_way()
        assert time.monotonic() - started < 8, "each wait is as long as the work before it, not the longest there is"


def test_what_ends_with_an_error_has_passed() -> None:
    traffic = Traffic()
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
