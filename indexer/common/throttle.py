"""Priority in a process: what people wait for goes before work in the background.

Invariants: what people wait for never waits here; background work waits at most as long as it has just worked, so it
always comes to its end; nobody gives way to who has been under way for long, as that waits for something else: a model,
a lock, a disk.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar

_Piece = TypeVar("_Piece")

# Longer waits would gain nothing: a search takes a few milliseconds.
_LONGEST_SECONDS = 0.05
_AWAITED_SECONDS = 1.0
# Beside a program that starts, a thread of this niceness gets a tenth of a processor; on an idle machine all of it.
_NICENESS = 10


class BackgroundThrottle:
    """Register of the calls that people wait for, and of the work behind them, which gives way.

    Python runs one thread at a time, and a thread that computes keeps the others waiting for 5 ms whenever they ask for
    their turn, which a search does some fifty times. Work that pauses while a search runs costs it one turn alone. The
    length of a turn belongs to the process: see `on_work_behind`.
    """

    def __init__(self) -> None:
        self._changing = threading.Condition()
        # Since when, by thread.
        self._passing: dict[int, float] = {}
        self._behind = 0
        self._listener: Callable[[bool], None] = lambda busy: None
        self._own = threading.local()

    @contextmanager
    def foreground(self) -> Iterator[None]:
        """A block of work that people wait for, also as a decorator; of what is behind, a part like any other."""
        thread = threading.get_ident()
        if self._is_behind or thread in self._passing:
            yield
            return
        with self._changing:
            self._passing[thread] = time.monotonic()
        try:
            yield
        finally:
            self._leave(thread)

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """A wait within `passing` for another thread's work, which need not give way meanwhile."""
        thread = threading.get_ident()
        since = self._leave(thread)
        try:
            yield
        finally:
            if since is not None:
                with self._changing:
                    self._passing[thread] = since

    @contextmanager
    def background(self) -> Iterator[None]:
        """A block of long background work, in a thread that calls `give_way` often; blocks may nest."""
        with self._changing:
            if not self._behind:
                self._listener(True)
            self._behind += 1
        depth, self._own.depth = self._depth, self._depth + 1
        self._own.worked_since = time.monotonic()
        try:
            yield
        finally:
            self._own.depth = depth
            with self._changing:
                self._behind -= 1
                if not self._behind:
                    self._listener(False)

    def on_work_behind(self, listener: Callable[[bool], None]) -> None:
        """Call a function with True when background work begins, and with False when none is left."""
        with self._changing:
            self._listener = listener

    def yield_to_foreground(self) -> None:
        """Wait until nobody else is waited for; at once in a thread that is not behind."""
        if not self._is_behind:
            return
        if self._passing:
            worked_value = time.monotonic() - self._own.worked_since
            with self._changing:
                self._changing.wait_for(self._is_free, timeout=min(worked_value, _LONGEST_SECONDS))
        self._own.worked_since = time.monotonic()

    def pace(self, pieces: Iterable[_Piece]) -> Iterator[_Piece]:
        """The same pieces of work, giving way before each."""
        for piece in pieces:
            self.yield_to_foreground()
            yield piece

    def handed_on(self, work: Callable[[_Piece], None]) -> Callable[[_Piece], None]:
        """The same work for helpers of this thread: if it is behind, they give way, to other programs too.

        Args:
            work: A piece of it, for a thread that ends when this work has ended.
        """
        if not self._is_behind:
            return work

        def pace_piece(piece: _Piece) -> None:
            if not self._is_behind:
                self._own.depth, self._own.worked_since = 1, time.monotonic()
                _be_nice()
            self.yield_to_foreground()
            work(piece)

        return pace_piece

    @property
    def _depth(self) -> int:
        return getattr(self._own, "depth", 0)

    @property
    def _is_behind(self) -> bool:
        return self._depth > 0

    def _is_free(self) -> bool:
        """True if no other thread has been waited for, for a short time."""
        own, earliest = threading.get_ident(), time.monotonic() - _AWAITED_SECONDS
        return not any(since > earliest and thread != own for thread, since in self._passing.items())

    def _leave(self, thread: int) -> float | None:
        with self._changing:
            since = self._passing.pop(thread, None)
            if not self._passing:
                self._changing.notify_all()
        return since


def _be_nice() -> None:
    """Lower the priority of this thread for good; only Linux has one for each thread."""
    if sys.platform != "linux":
        return
    thread = threading.get_native_id()
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, thread, max(_NICENESS, os.getpriority(os.PRIO_PROCESS, thread)))


# One for the whole process, as the interpreter that is shared is one.
THROTTLE = BackgroundThrottle()
