"""Owns the times of the stages of one search."""

from __future__ import annotations

import time


class Stopwatch:
    """Laps in milliseconds, by name; two of one name add up."""

    def __init__(self) -> None:
        self.laps_ms: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, name: str) -> None:
        """Book the time since the last lap under a name."""
        now = time.perf_counter()
        self.laps_ms[name] = self.laps_ms.get(name, 0.0) + (now - self._last) * 1000
        self._last = now
