"""Who goes first in a process: searches and small writes before a rebuild or a packing.

Invariants: whoever passes never waits here; work behind waits at most as long as it has just worked, so it
always comes to its end.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

_Piece = TypeVar("_Piece")

# Longer waits would gain nothing: a search takes a few milliseconds.
_LONGEST_SECONDS = 0.05


class BackgroundThrottle:
    """Counts what passes, so that work in the background can give way.

    Python runs one thread at a time, and a thread that computes keeps the others waiting for 5 ms whenever they ask
    for their turn, which a search does some fifty times. Work that stands still while a search passes costs it one
    turn alone. How long a turn is belongs to the process: see `on_work_behind`.
    """

    def __init__(self) -> None:
        self._changing = threading.Condition()
        self._passing = 0
        self._behind = 0
        self._listener: Callable[[bool], None] = lambda busy: None
        self._made_at = time.monotonic()
        self._own = threading.local()

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

    @contextmanager
    def behind(self) -> Iterator[None]:
        """Long work in the background, of a thread that gives way as often as it can; blocks may nest."""
        with self._changing:
            if not self._behind:
                self._listener(True)
            self._behind += 1
        self._own.worked_since = time.monotonic()
        try:
            yield
        finally:
            with self._changing:
                self._behind -= 1
                if not self._behind:
                    self._listener(False)

    def on_work_behind(self, listener: Callable[[bool], None]) -> None:
        """Call a function with True when work in the background begins, and with False when none is left."""
        with self._changing:
            self._listener = listener

    def give_way(self) -> None:
        """Wait for what passes."""
        worked = time.monotonic() - getattr(self._own, "worked_since", self._made_at)
        with self._changing:
            if self._passing:
                self._changing.wait_for(lambda: not self._passing, timeout=min(worked, _LONGEST_SECONDS))
        self._own.worked_since = time.monotonic()

    def paced(self, pieces: Iterable[_Piece]) -> Iterator[_Piece]:
        """The same pieces of work, giving way before each."""
        for piece in pieces:
            self.give_way()
            yield piece


# One for the whole process, as the interpreter that is shared is one.
THROTTLE = BackgroundThrottle()
