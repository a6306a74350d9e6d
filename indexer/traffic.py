"""Owns who goes first in a process: searches and small writes before a rebuild.

Invariants: whoever passes never waits here; a rebuild waits at most as long as it has just worked, so it
always comes to its end.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

# Longer waits would gain nothing: a search takes a few milliseconds.
_LONGEST_SECONDS = 0.05


class Traffic:
    """Counts what passes, so that work in the background can give way.

    Python runs one thread at a time, and a thread that computes keeps the others waiting for 5 ms whenever they ask
    for their turn, which a search does some fifty times. A rebuild that stands still while a search passes costs it
    one such stretch of computing instead.
    """

    def __init__(self) -> None:
        self._changing = threading.Condition()
        self._passing = 0
        self._worked_since = time.monotonic()

    @contextmanager
    def passing(self) -> Iterator[None]:
        """Something that people wait for."""
        with self._changing:
            self._passing += 1
        try:
            yield
        finally:
            with self._changing:
                self._passing -= 1
                if not self._passing:
                    self._changing.notify_all()

    def give_way(self) -> None:
        """Wait for what passes; called by a rebuild, as often as it can."""
        worked = time.monotonic() - self._worked_since
        with self._changing:
            if self._passing:
                self._changing.wait_for(lambda: not self._passing, timeout=min(worked, _LONGEST_SECONDS))
        self._worked_since = time.monotonic()


# One for the whole process, as the interpreter that is shared is one.
TRAFFIC = Traffic()
