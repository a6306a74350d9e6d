"""Waiting in tests for what another thread or process does."""

from __future__ import annotations

import time
from collections.abc import Callable

# Long enough for machines that do much else: what comes at all comes much sooner.
PATIENCE_SECONDS = 120.0


def eventually(holds: Callable[[], bool], *, seconds: float = PATIENCE_SECONDS) -> bool:
    """True as soon as the condition holds; false if it does not within `seconds`."""
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def until(holds: Callable[[], bool]) -> None:
    """Wait until the condition holds, and fail if it does not."""
    assert eventually(holds), "the condition never held"
