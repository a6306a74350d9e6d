"""Priority in a process: searches and small writes go before a rebuild or a packing.

Invariants: searches and writes never wait here; background work waits at most as long as it has just worked, so it
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
    """Counter of the searches and writes under way, for background work to wait for.

    Python runs one thread at a time, and a thread that computes keeps the others waiting for 5 ms whenever they ask for
    their turn, which a search does some fifty times. Work that pauses while a search runs costs it one turn alone. The
    length of a turn belongs to the process: see `on_work_behind`.
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
        """A block of work that people wait for."""
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
        """A block of long background work, in a thread that calls `give_way` often; blocks may nest."""
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
        """Call a function with True when background work begins, and with False when none is left."""
        with self._changing:
            self._listener = listener

    def give_way(self) -> None:
        """Wait until no search or write is under way."""
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
