"""Owns how many processors there are for us: a container often has fewer than the machine.

Invariants: reads only; what cannot be read does not limit.
"""

from __future__ import annotations

import math
import os
from pathlib import Path

_CGROUPS = Path("/sys/fs/cgroup")


def usable_processors(*, cgroups: Path = _CGROUPS) -> int:
    """Processors that this process may keep busy: its affinity, and the quota of its control group.

    Args:
        cgroups: Where the control groups are mounted.
    """
    if hasattr(os, "sched_getaffinity"):
        count = len(os.sched_getaffinity(0))
    else:
        count = os.cpu_count() or 1
    share = _quota(cgroups)
    return count if share is None else max(1, min(count, math.ceil(share)))


def _quota(cgroups: Path) -> float | None:
    """Processors of the group's quota; None where there is none. Source: kernel.org, admin-guide/cgroup-v2, cpu.max."""
    found = _words(cgroups / "cpu.max") or [
        *_words(cgroups / "cpu" / "cpu.cfs_quota_us"),
        *_words(cgroups / "cpu" / "cpu.cfs_period_us"),
    ]
    if len(found) != 2 or not all(word.isdigit() for word in found) or int(found[1]) == 0:
        return None
    return int(found[0]) / int(found[1])


def _words(path: Path) -> list[str]:
    try:
        return path.read_text("ascii").split()
    except (OSError, ValueError):
        return []
