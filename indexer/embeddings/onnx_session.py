"""The parts of a model in ONNX Runtime: session, batches, and the processors for them.

Invariants: importing this module does not import ONNX Runtime; nothing leaves this machine; a run has one thread, and a
call several runs. A limit of processors that cannot be read does not count.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from indexer.common.throttle import THROTTLE
from indexer.embeddings.base import runs_by_length
from indexer.providers.environment import variables

_CGROUPS = Path("/sys/fs/cgroup")


def usable_processors(*, cgroups: Path = _CGROUPS) -> int:
    """Number of processors that this process may use: its affinity, and the quota of its control group.

    A container often has fewer than the machine.

    Args:
        cgroups: Folder where the control groups are mounted.
    """
    if hasattr(os, "sched_getaffinity"):
        count = len(os.sched_getaffinity(0))
    else:
        count = os.cpu_count() or 1
    share = _quota(cgroups)
    return count if share is None else max(1, min(count, math.ceil(share)))


def _quota(cgroups: Path) -> float | None:
    """Processors of the group's quota; None without one. Source: kernel.org, admin-guide/cgroup-v2, cpu.max."""
    words = _words(cgroups / "cpu.max") or [
        *_words(cgroups / "cpu" / "cpu.cfs_quota_us"),
        *_words(cgroups / "cpu" / "cpu.cfs_period_us"),
    ]
    if len(words) != 2 or not all(word.isdigit() for word in words) or int(words[1]) == 0:
        return None
    return int(words[0]) / int(words[1])


def _words(path: Path) -> list[str]:
    try:
        return path.read_text("ascii").split()
    except (OSError, ValueError):
        return []


def start_session(path: Path) -> Any:
    """A session of ONNX Runtime for a graph; the package is imported, and its errors have no common base."""
    # From 1.29 on it keeps a device id and a record of its use below ~/.cache and sends them home, unless told not
    # to before it starts: nothing leaves this machine. Source: github.com/microsoft/onnxruntime/pull/27379
    with variables(ORT_DISABLE_TELEMETRY="1"):
        import onnxruntime

        return _start_session(onnxruntime, path)


def _start_session(onnxruntime: Any, path: Path) -> Any:
    options = onnxruntime.SessionOptions()
    # One thread for a run, and several runs at a time. Two threads for one run spin while they wait for each other: on
    # two busy cores that is 1.6 times the processor time and 1.7 times the wait; a query on an idle machine takes
    # 2.4 ms by two and 3.4 ms by one. Source: our measurement.
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 3  # errors
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


# Beyond that many runs at a time, memory's bandwidth is the limit, and the processor is taken from others.
_MAX_THREADS = 4


def default_threads() -> int:
    """Runs at a time in one call where nobody says how many."""
    return min(usable_processors(), _MAX_THREADS)


def pad_batch(batch: Sequence[Sequence[int]], *, padding: int = 0) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Token ids of texts, and which of them count, both of shape (texts, longest), as int64 and int32.

    Args:
        batch: Token ids of each text.
        padding: The id behind the shorter ones.
    """
    shape = (len(batch), max(len(ids) for ids in batch))
    rows, mask = np.full(shape, padding, np.int64), np.zeros(shape, np.int32)
    for row, ids in enumerate(batch):
        rows[row, : len(ids)] = ids
        mask[row, : len(ids)] = 1
    return rows, mask


def run_in_threads(
    lengths: Sequence[int], work: Callable[[list[int]], None], *, threads: int, run_tokens: int, name: str
) -> None:
    """Call `work` with the places of texts of similar length, several calls at a time.

    Args:
        lengths: Tokens of each text; at least one text.
        work: Called with each run's places, from several threads.
        threads: Most calls at a time.
        run_tokens: Most tokens of a run, padding included.
        name: Of the threads.
    """
    # Few texts are shared out, too: who waits for them waits for the slowest run.
    share = math.ceil(sum(lengths) / threads) + max(lengths) - 1
    runs = list(runs_by_length(lengths, min(run_tokens, share)))
    if len(runs) == 1:
        work(runs[0])
        return
    with ThreadPoolExecutor(min(threads, len(runs)), name) as pool:
        for _ in pool.map(THROTTLE.handed_on(work), runs):
            pass
