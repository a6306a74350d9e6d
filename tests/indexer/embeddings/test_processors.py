from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from indexer.common.throttle import THROTTLE
from indexer.embeddings.onnx_session import run_in_threads, usable_processors
from tests.indexer.common.test_throttle import elsewhere


def all_of_them() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@pytest.mark.parametrize("content", [None, "max 100000", "", "100 0", "many few", "100000000 100000"])
def test_without_a_quota_they_are_all_ours(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "cpu.max").write_text(content)
    assert usable_processors(cgroups=tmp_path) == all_of_them()


@pytest.mark.parametrize(("quota", "expected"), [("50000", 1), ("100000", 1), ("150000", 2)])
def test_a_quota_limits(tmp_path: Path, quota: str, expected: int) -> None:
    (tmp_path / "cpu.max").write_text(f"{quota} 100000\n")
    assert usable_processors(cgroups=tmp_path) == min(expected, all_of_them())


def test_a_quota_of_the_first_version_limits(tmp_path: Path) -> None:
    (tmp_path / "cpu").mkdir()
    (tmp_path / "cpu" / "cpu.cfs_quota_us").write_text("-1\n")
    (tmp_path / "cpu" / "cpu.cfs_period_us").write_text("100000\n")
    assert usable_processors(cgroups=tmp_path) == all_of_them()
    (tmp_path / "cpu" / "cpu.cfs_quota_us").write_text("100000\n")
    assert usable_processors(cgroups=tmp_path) == 1


def test_the_runs_of_background_work_rest_while_somebody_is_waited_for() -> None:
    done = list[int]()

    def work(places: list[int]) -> None:
        time.sleep(0.05)
        done.extend(places)

    started = time.monotonic()
    with elsewhere(THROTTLE.foreground), THROTTLE.background():
        run_in_threads([10] * 8, work, threads=2, run_tokens=10, name="test")
    # Four runs for each of two, with a rest as long as a run before all but the first.
    assert time.monotonic() - started >= 0.05 * 4 + 0.04 * 3
    assert sorted(done) == list(range(8))
