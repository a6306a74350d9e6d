"""How much freed memory the C library keeps for itself.

glibc gives each thread a heap of its own, and what a burst of requests has freed stays in all of them: a server with
dozens of threads grows to several times what it uses. Two heaps are enough, since one thread at a time runs Python.
Elsewhere nothing is done.
"""

from __future__ import annotations

import ctypes
import sys
from contextlib import suppress

# Source: glibc's malloc.h.
_M_TRIM_THRESHOLD = -1
_M_ARENA_MAX = -8
_ARENAS = 2
_TRIM_BYTES = 128 * 1024


def limit_heaps() -> None:
    """Set it for this process; heaps that are there already stay, so it comes before the threads."""
    if sys.platform != "linux":
        return
    with suppress(OSError, AttributeError):  # another C library
        libc = ctypes.CDLL(None)
        libc.mallopt(_M_ARENA_MAX, _ARENAS)
        libc.mallopt(_M_TRIM_THRESHOLD, _TRIM_BYTES)
