"""What a process takes: memory of it and the processes it started, and bytes on disk."""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path

_PROC = Path("/proc")


def resident_bytes() -> int:
    """Memory of this process and its children that is resident now; of systems without /proc the most it ever was."""
    return _of_family("VmRSS:") or _most_ever()


def peak_bytes() -> int:
    """Most memory that was ever resident, this process and its children."""
    return _of_family("VmHWM:") or _most_ever()


def folder_bytes(folder: Path) -> int:
    """Bytes that the files of a folder take on disk."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _of_family(field: str) -> int:
    return sum(_of_process(process, field) for process in _family(os.getpid()))


def _family(process: int) -> list[int]:
    try:
        tasks = list((_PROC / str(process) / "task").iterdir())
        children = [int(child) for task in tasks for child in (task / "children").read_text().split()]
    except OSError:
        return [process]
    return [process, *(one for child in children for one in _family(child))]


def _of_process(process: int, field: str) -> int:
    try:
        lines = (_PROC / str(process) / "status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(field)), 0)


def _most_ever() -> int:
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024
