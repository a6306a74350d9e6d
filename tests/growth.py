"""Time that grows with the amount of work: told apart from the noise of a machine that does other things besides."""

import gc
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from time import thread_time

_ROUNDS = 12
_CLOCK_SECONDS = 0.0005
"""What no clock tells reliably: less than this counts as this."""


def _seconds(work: Callable[[], object]) -> float:
    """Processor seconds of this thread alone: neither waiting counts nor the collection of what other tests left."""
    gc.disable()
    try:
        started = thread_time()
        work()
        return thread_time() - started
    finally:
        gc.enable()


def assert_costs_at_most(times: float, work: Callable[[], object], reference: Callable[[], object]) -> None:
    """Fails unless `work` takes at most `times` as long as `reference` does, both at their best.

    They run in turn, and again while the ratio is too large: noise only ever adds time, so that what is really slower
    stays slower in every round, and what is not shows it in one of the first. What remembers its answers has to be
    given something else each time.
    """
    least_work = least_reference = float("inf")
    for _ in range(_ROUNDS):
        least_reference = min(least_reference, _seconds(reference))
        least_work = min(least_work, _seconds(work))
        if least_work <= times * max(least_reference, _CLOCK_SECONDS):
            return
    raise AssertionError(f"{least_work:.4f} s, where {times} times {least_reference:.4f} s are allowed")


def assert_grows_at_most(times: float, work: Callable[[int], object], small: int, large: int) -> None:
    """Fails unless `work(large)` takes at most `times` as long as `work(small)`."""
    assert_costs_at_most(times, lambda: work(large), lambda: work(small))


_PROSE = "The ferry to Gotland leaves at nine, and tea is at four; the port is 8443. " * 14_000
_WORD = re.compile(r"\w+")


@cache
def _seconds_of_a_reading() -> float:
    """Processor seconds for a megabyte read word by word, at its best."""
    return min(_seconds(lambda: sum(1 for _ in _WORD.finditer(_PROSE))) for _ in range(5))


@contextmanager
def at_most_readings(most: float) -> Iterator[None]:
    """Fails where the block takes more processor time than to read a megabyte word by word so many times.

    The limit for what hostile texts may cost: some ten times of what they do, and far below what grows with a square.
    """
    # A collection of what all tests before have left would count as work of the block.
    is_collected = gc.isenabled()
    gc.disable()
    started = thread_time()
    try:
        yield
    finally:
        if is_collected:
            gc.enable()
    readings = (thread_time() - started) / _seconds_of_a_reading()
    assert readings <= most, f"It took as long as {readings:.0f} readings of a megabyte, and may take {most}."
