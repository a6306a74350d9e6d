"""Watching of real folders: what it tells, what it passes over, and what it does when it fails."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexer.sources.watch import Settling, Watch, Watched, WatchState, WatchTiming
from tests.waiting import eventually

# Whole looks are rare, so that a test sees what events do.
_BY_EVENTS = WatchTiming(look_seconds=3600.0, check_seconds=0.1)


class Told:
    """A watch at work, and what it told so far."""

    def __init__(self, homes: Collection[Watched], timing: WatchTiming) -> None:
        self.homes = list(homes)
        self.calls: list[tuple[Path, tuple[str, ...]]] = []
        self.stop = threading.Event()
        self.watch = Watch(lambda: self.homes, self._on_change, self.stop, timing=timing)
        self.thread = threading.Thread(target=self.watch.run)

    def _on_change(self, root: Path, paths: Collection[str]) -> float:
        self.calls.append((root, tuple(paths)))
        return 0.0

    def paths(self) -> set[str]:
        return {path for _, paths in self.calls for path in paths}

    def looks(self, root: Path) -> int:
        return sum(1 for told, paths in self.calls if told == root and not paths)

    def state(self) -> WatchState:
        return self.watch.state(self.homes[0].root)


def written_and_told(told: Told, path: str) -> bool:
    """Write a file and see whether it is told by name: the whole look that a new beginning brings tells no names."""
    (told.homes[0].root / path).write_text("- again\n")
    time.sleep(0.5)
    return path in told.paths()


@contextmanager
def watching(*homes: Watched, timing: WatchTiming = _BY_EVENTS) -> Iterator[Told]:
    told = Told(homes, timing)
    told.thread.start()
    try:
        assert eventually(lambda: all(told.looks(home.root) > 0 for home in homes))
        yield told
    finally:
        told.stop.set()
        told.thread.join(60)
        assert not told.thread.is_alive()


@pytest.fixture
def home(tmp_path: Path) -> Watched:
    (tmp_path / "workspace" / "memory").mkdir(parents=True)
    (tmp_path / "workspace" / "sessions").mkdir()
    return Watched(root=tmp_path / "workspace")


def test_a_change_is_told_by_name_and_only_once_it_is_quiet(home: Watched) -> None:
    with watching(home) as told:
        assert told.state() == WatchState(mode="events")
        log = home.root / "memory" / "log.md"
        begun = time.monotonic()
        for number in range(20):
            with log.open("a") as file:
                file.write(f"- line {number}\n")
            time.sleep(0.02)
        seconds = time.monotonic() - begun
        assert eventually(lambda: "memory/log.md" in told.paths())
        calls = len(told.calls)
        for path in ("MEMORY.md", "memory/日记.md", "sessions/talk-1.jsonl"):
            (home.root / path).write_text("- new\n")
        assert eventually(lambda: {"MEMORY.md", "memory/日记.md", "sessions/talk-1.jsonl"} <= told.paths())
        assert calls < 8 or seconds > 1.0, "twenty changes in a row are a few, not twenty"
        (home.root / "memory" / "log.md").unlink()
        before = len(told.calls)
        assert eventually(lambda: "memory/log.md" in {path for _, paths in told.calls[before:] for path in paths})


def test_our_own_files_and_those_of_no_interest_tell_nothing(home: Watched) -> None:
    (home.root / "receipts").mkdir()
    (home.root / "memory" / ".git").mkdir()
    with watching(home) as told:
        for path in ("index.sqlite", "index.sqlite-wal", "index-2.sqlite.pack", "x.lock", "receipts/r.json"):
            (home.root / path).write_text("x")
        for path in ("memory/.draft.md", "memory/.git/a.md", "memory/a.txt", "sessions/talk.lock", "notes.md"):
            (home.root / path).write_text("x")
        (home.root / "sessions" / "talk.blobs").mkdir()
        (home.root / "MEMORY.md").write_text("- last\n")
        assert eventually(lambda: "MEMORY.md" in told.paths())
        assert told.paths() == {"MEMORY.md"}
        assert told.looks(home.root) == 1


def test_new_folders_are_followed_to_any_depth(home: Watched) -> None:
    with watching(home) as told:
        deep = home.root / "memory" / "a" / "b"
        deep.mkdir(parents=True)
        (deep / "early.md").write_text("- before anybody watched\n")
        assert eventually(lambda: told.looks(home.root) > 1)
        (deep / "late.md").write_text("- by event\n")
        assert eventually(lambda: "memory/a/b/late.md" in told.paths())


def test_a_folder_that_was_removed_and_made_anew_is_followed_again(home: Watched) -> None:
    with watching(home) as told:
        shutil.rmtree(home.root)
        assert eventually(lambda: told.state().mode == "polling" and "is not there" in told.state().reason)
        (home.root / "memory").mkdir(parents=True)
        assert eventually(lambda: told.state().mode == "events")
        assert eventually(lambda: written_and_told(told, "memory/back.md"))


def test_links_are_not_followed(home: Watched, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (home.root / "memory" / "link").symlink_to(outside)
    with watching(home) as told:
        (outside / "secret.md").write_text("- not ours\n")
        (home.root / "MEMORY.md").write_text("- ours\n")
        assert eventually(lambda: "MEMORY.md" in told.paths())
        assert told.paths() == {"MEMORY.md"}


def test_a_change_in_an_extra_folder_asks_for_a_look(home: Watched, tmp_path: Path) -> None:
    extra = tmp_path / "code"
    (extra / "src" / "node_modules").mkdir(parents=True)
    with watching(Watched(root=home.root, extra=(extra,))) as told:
        (extra / "src" / "node_modules" / "left.py").write_text("x = 1\n")
        (extra / "src" / "draft.py~").write_text("x = 1\n")
        (home.root / "MEMORY.md").write_text("- first\n")
        assert eventually(lambda: "MEMORY.md" in told.paths())
        assert told.looks(home.root) == 1
        (extra / "src" / "main.py").write_text("x = 1\n")
        assert eventually(lambda: told.looks(home.root) == 2)
        (extra / ".gitignore").write_text("*.py\n")
        assert eventually(lambda: told.looks(home.root) == 3)


def test_workspaces_come_and_go(home: Watched, tmp_path: Path) -> None:
    other = Watched(root=tmp_path / "other")
    (other.root / "memory").mkdir(parents=True)
    with watching(home) as told:
        told.homes.append(other)
        assert eventually(lambda: told.watch.state(other.root).mode == "events" and told.looks(other.root) == 1)
        assert told.looks(home.root) == 1, "the others need no look for it"
        (other.root / "MEMORY.md").write_text("- hello\n")
        assert eventually(lambda: (other.root, ("MEMORY.md",)) in told.calls)
        told.homes.remove(other)
        assert eventually(lambda: told.watch.state(other.root).mode == "off")
        (home.root / "MEMORY.md").write_text("- still here\n")
        assert eventually(lambda: (home.root, ("MEMORY.md",)) in told.calls)


def test_a_failure_of_events_is_a_state_with_its_reason_and_passes(home: Watched) -> None:
    impatient = WatchTiming(look_seconds=3600.0, check_seconds=0.1, poll_seconds=0.3, retry_seconds=1.5)
    with watching(home, timing=impatient) as told:
        odd = os.fsencode(home.root / "memory") + b"/\xff.md"
        try:
            with open(odd, "wb"):
                pass
        except OSError:
            pytest.skip("names are Unicode on this system")
        assert eventually(lambda: told.state().mode == "polling")
        assert "tells of no changes" in told.state().reason
        looks = told.looks(home.root)
        assert eventually(lambda: told.looks(home.root) >= looks + 2)
        os.unlink(odd)
        assert eventually(lambda: told.state().mode == "events")
        assert eventually(lambda: written_and_told(told, "MEMORY.md"))


def test_too_many_folders_are_polled(home: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("indexer.sources.watch._MOST_FOLDERS", 4)
    for number in range(4):
        (home.root / "memory" / str(number)).mkdir()
    with watching(home, timing=WatchTiming(check_seconds=0.1, poll_seconds=0.2)) as told:
        assert eventually(lambda: "more than 4 folders" in told.state().reason)
        looks = told.looks(home.root)
        assert eventually(lambda: told.looks(home.root) >= looks + 2)


def test_whole_looks_come_by_themselves_and_take_their_share_at_most(home: Watched) -> None:
    timing = WatchTiming(check_seconds=0.1, look_seconds=0.2)
    with watching(home, timing=timing) as told:
        assert eventually(lambda: told.looks(home.root) >= 3)
    stop, looks = threading.Event(), list[float]()

    def slow_look(_: Path, __: Collection[str]) -> float:
        looks.append(time.monotonic())
        return 0.02

    watch = Watch(lambda: [home], slow_look, stop, timing=WatchTiming(look_seconds=0.0, check_seconds=0.1))
    thread = threading.Thread(target=watch.run)
    thread.start()
    assert eventually(lambda: len(looks) >= 2)
    stop.set()
    thread.join(60)
    # 20 ms are 2 % of a second.
    assert looks[1] - looks[0] >= 1.0


def test_it_waits_without_work(home: Watched) -> None:
    with watching(home) as told:
        used, begun = time.process_time(), time.monotonic()
        time.sleep(0.5)
        assert time.process_time() - used < (time.monotonic() - begun) / 2
        assert len(told.calls) == 1


@given(st.lists(st.tuples(st.sampled_from("abc"), st.floats(0.001, 0.5)), max_size=40))
def test_every_path_is_given_out_once_quiet_or_at_last(steps: list[tuple[str, float]]) -> None:
    settling, now = Settling(quiet_seconds=0.2, most_seconds=2.0), 100.0
    noted: dict[str, list[float]] = {}
    for path, pause in steps:
        for ready in settling.take_ready(now):
            times = noted.pop(ready)
            assert now - times[-1] >= 0.2 or now - times[0] >= 2.0
        assert all(now - times[0] < 2.0 and now - times[-1] < 0.2 for times in noted.values())
        settling.note(path, now)
        noted.setdefault(path, []).append(now)
        now += pause
    assert set(settling.take_ready(now + 0.2)) == set(noted)
    assert len(settling) == 0
