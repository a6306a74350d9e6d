"""Time that grows with the amount of work: told apart from the noise of a machine that does other things besides."""

import gc
from collections.abc import Callable
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
