"""What the service follows, how many of it, and what it says of it."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from indexer.sources.watch import WatchState
from indexer.testing import HashEmbedder
from indexer.types import Vectors
from memory_service.service import MemoryService
from tests.indexer.rebuilds import write_schema
from tests.serving import settings
from tests.waiting import eventually


def opened(home: Path) -> MemoryService:
    return MemoryService(settings(home), embedder=HashEmbedder())


def watched(service: MemoryService, workspace: str) -> WatchState:
    # A status uses the workspace, which is then followed.
    return service._workspaces.watching.state(workspace)


def test_nothing_is_watched_unless_it_was_asked_for(tmp_path: Path) -> None:
    with opened(tmp_path) as service:
        service.remember("one", "A first note.")
        assert watched(service, "one").mode == "off"
        assert watched(service, "one").reason.startswith("not by this process")
        assert "watching" not in [thread.name for thread in threading.enumerate()]


def test_changes_of_others_are_indexed_large_or_small_and_the_thread_ends(tmp_path: Path) -> None:
    with opened(tmp_path) as service:
        service.watch()
        service.remember("one", "A first note.")
        assert eventually(lambda: watched(service, "one").mode == "events")
        memory = tmp_path / "one" / "memory"
        (memory / "small.md").write_text("- a small change\n")
        (memory / "large.md").write_text("".join(f"- line {line} of a large change\n" for line in range(2_000)))
        for number in range(300):
            (memory / f"many-{number}.md").write_text(f"- one of many: {number}\n")
        assert eventually(lambda: service.status("one").dirty == 0)
        (memory / "large.md").unlink()
        assert eventually(lambda: service.status("one").dirty == 0)
        assert service.status("one").files == 302
    assert "watching" not in [thread.name for thread in threading.enumerate()]


def test_what_the_service_writes_is_embedded_once(tmp_path: Path) -> None:
    asked = list[str]()

    class Counting(HashEmbedder):
        def embed_documents(self, texts: Sequence[str]) -> Vectors:
            asked.extend(texts)
            return super().embed_documents(texts)

    with MemoryService(settings(tmp_path), embedder=Counting()) as service:
        service.watch()
        for number in range(5):
            service.remember("one", f"Note number {number}.")
            time.sleep(0.3)
        assert sorted(set(asked)) == sorted(asked)


def test_so_many_workspaces_are_followed_and_others_say_why_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memory_service.runtime.watching._MOST_WORKSPACES", 2)
    with opened(tmp_path) as service:
        service.watch()
        for name in ("one", "two", "three"):
            service.remember(name, "A note.")
        assert eventually(lambda: watched(service, "two").mode == "events")
        assert watched(service, "three").mode == "off"
        assert "2 other workspaces" in watched(service, "three").reason
        monkeypatch.setattr("memory_service.runtime.watching._KEPT_SECONDS", 0.0)
        service.status("two")
        service.status("three")
        assert eventually(lambda: watched(service, "three").mode == "events")
        assert watched(service, "one").mode == "off"


def test_a_defect_is_told_and_does_not_end_the_watching(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(tmp_path) as service:
        service.remember("one", "A note.")
        with monkeypatch.context() as broken:
            broken.setattr("memory_service.memories.long_term.LongTermMemory.catch_up", None)
            service.watch()
            service.status("one")
            assert eventually(lambda: "defect (TypeError)" in watched(service, "one").reason)
            assert watched(service, "one").mode == "off"


def test_an_index_of_another_schema_is_made_anew_in_the_background(tmp_path: Path) -> None:
    with opened(tmp_path) as service:
        service.remember("one", "备用钥匙 the spare key")
    write_schema(tmp_path / "one", 1)
    with opened(tmp_path) as service:
        assert any("older version" in each for each in service.status("one").degraded)
        service.watch()
        assert eventually(lambda: not any("older version" in each for each in service.status("one").degraded))
        found = service.search("one", "spare key")
        assert (found.mode, found.results[0].text) == ("hybrid", "备用钥匙 the spare key")
