from __future__ import annotations

import datetime as dt
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from memory_service.errors import InvalidName, NotFound, StorageFailed
from memory_service.storage.files import disk


def test_a_replacement_made_from_an_older_state_is_not_done(tmp_path: Path) -> None:
    target = tmp_path / "a.md"
    assert disk.replace_durably(target, b"one", expected=None)
    seen = disk.current_signature(target)
    target.write_bytes(b"by hand")
    assert not disk.replace_durably(target, b"two", expected=seen)
    assert not disk.replace_durably(target, b"two", expected=None)
    assert target.read_bytes() == b"by hand" and os.listdir(tmp_path) == ["a.md"]
    assert disk.replace_durably(target, b"two", expected=disk.current_signature(target))
    assert target.read_bytes() == b"two" and os.listdir(tmp_path) == ["a.md"]


def test_a_file_that_vanished_is_not_brought_back(tmp_path: Path) -> None:
    target = tmp_path / "a.md"
    disk.replace_durably(target, b"one", expected=None)
    seen = disk.current_signature(target)
    target.unlink()
    with pytest.raises(NotFound), disk.storage_errors("a.md"):
        disk.replace_durably(target, b"two", expected=seen)
    assert os.listdir(tmp_path) == []


def test_a_lock_keeps_others_out_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / ".locks" / "a.lock"
    same = disk.WriteLock(path, timeout_seconds=0.05)
    other = disk.WriteLock(path, timeout_seconds=0.05)

    def enter(lock: disk.WriteLock) -> str:
        try:
            with lock.hold():
                return "in"
        except StorageFailed as error:
            return str(error)

    with ThreadPoolExecutor(1) as pool:
        with same.hold():
            for lock in (same, other):
                assert "was not free within 0.05 seconds. Try again" in pool.submit(enter, lock).result()
        assert [pool.submit(enter, lock).result() for lock in (same, other)] == ["in", "in"]


def test_a_link_is_not_opened(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a")
    (tmp_path / "link").symlink_to(tmp_path / "a")
    with pytest.raises(InvalidName), disk.storage_errors("link"), disk.open_no_follow(tmp_path / "link"):
        raise AssertionError("the link was followed")


@pytest.mark.parametrize(
    ("seconds", "day"),
    [(1_700_000_000, (2023, 11, 14)), (10**12, (9999, 12, 31)), (-(10**12), (1, 1, 1)), (1e30, (9999, 12, 31))],
)
def test_a_time_of_change_is_a_date_whatever_it_is(tmp_path: Path, seconds: float, day: tuple[int, int, int]) -> None:
    fields: list[float] = list(os.stat(tmp_path))
    fields[stat.ST_MTIME] = seconds
    assert disk.modified_at(os.stat_result(fields)).date() == dt.date(*day)
