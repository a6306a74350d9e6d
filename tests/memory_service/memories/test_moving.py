"""An index moves to the model that fits what is written: real files, a real index, in the background and at once."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from indexer import Embedder, Index, IndexerError, LanguageChoice, MultilingualE5, SearchFilter
from indexer.testing import HashEmbedder
from memory_service.memories.drafts import entry_draft
from memory_service.memories.indexing import IndexMoves
from memory_service.memories.long_term import LongTermMemory
from memory_service.memories.store import MemoryStore
from memory_service.storage.files.document_files import FileDocuments
from memory_service.storage.files.log_folder import LogFolder
from tests.indexer.workspace import CountingEmbedder
from tests.memory_service.storage.in_memory_records import erasures
from tests.waiting import until

NOW = datetime(2026, 11, 20, 14, 32, tzinfo=UTC)
ENGLISH, OTHERS = HashEmbedder(seed=1), HashEmbedder(seed=2)
DEADLINE_SECONDS = 60.0
OpenMemory = Callable[..., LongTermMemory]


@pytest.fixture
def open_memory(tmp_path: Path) -> Iterator[OpenMemory]:
    opened = []

    def open_one(embedder: Embedder | LanguageChoice | None = None) -> LongTermMemory:
        folder = tmp_path / "w"
        (folder / "memory").mkdir(parents=True, exist_ok=True)
        index = Index(folder, embedder or LanguageChoice(ENGLISH, OTHERS), today=NOW.date)
        files, logs = MemoryStore(FileDocuments(folder), now=lambda: NOW), LogFolder(folder / "sessions")
        opened.append(LongTermMemory(files, index, erasures(), lambda: logs))
        return opened[-1]

    yield open_one
    for memory in opened:
        memory.close()


def remember(memory: LongTermMemory, *texts: str) -> None:
    for text in texts:
        assert not memory.remember(entry_draft(text)).degraded


def english(count: int) -> list[str]:
    return [f"The meeting number {number} of the team is on Tuesday." for number in range(count)]


def chinese(count: int) -> list[str]:
    return [f"第{number}次会议在星期二下午举行。" for number in range(count)]


def model(memory: LongTermMemory) -> str:
    stored = memory.index.status().stored
    assert stored is not None
    return stored.model


def degraded(memory: LongTermMemory) -> tuple[str, ...]:
    return memory.search("第3次会议", limit=3, passing=SearchFilter()).degraded


def test_the_first_note_of_an_empty_memory_decides(open_memory: OpenMemory) -> None:
    memory = open_memory()
    remember(memory, *chinese(1))
    assert model(memory) == OTHERS.fingerprint
    assert degraded(memory) == ()


def test_a_command_that_waits_moves_the_index_first(open_memory: OpenMemory) -> None:
    remember(open_memory(), *english(3), *chinese(9))
    memory = open_memory()
    assert model(memory) == ENGLISH.fingerprint
    (memory.index.source.folders[0] / "memory" / "2026-11-19.md").write_text("- 星期五没有会议。\n", "utf-8")
    told = list[int]()
    memory.bring_up_to_date(lambda progress: told.append(progress.passages))
    assert model(memory) == OTHERS.fingerprint
    assert told and max(told) == 13
    assert degraded(memory) == ()


def test_a_memory_that_is_written_to_moves_in_the_background(open_memory: OpenMemory) -> None:
    memory = open_memory()
    remember(memory, *english(3), *chinese(9))
    moves = IndexMoves(memory.index, after_seconds=0.01)
    moves.note()
    problems = set[tuple[str, ...]]()

    def has_moved() -> bool:
        problems.add(degraded(memory))
        return model(memory) == OTHERS.fingerprint

    until(has_moved)
    assert problems == {()}
    moves.close()
    assert moves.problems == ()
    assert memory.index.status().unembedded == 0


def test_what_is_written_notes_a_move(open_memory: OpenMemory) -> None:
    memory = open_memory()
    remember(memory, *english(1))
    assert memory._moves._background.pending
    named = open_memory(ENGLISH)
    remember(named, *chinese(9))
    assert not named._moves._background.pending


def test_a_model_that_fails_leaves_the_index_as_it_is_and_is_named(open_memory: OpenMemory, tmp_path: Path) -> None:
    damaged = MultilingualE5(folder=tmp_path / "nothing")
    memory = open_memory(LanguageChoice(ENGLISH, damaged))
    remember(memory, *english(3), *chinese(9))
    found = memory._moves.move()
    assert len(found) == 1 and "model.onnx is missing. Reinstall" in found[0]
    assert found[0].startswith("vector: the index goes on as it was made")
    assert model(memory) == ENGLISH.fingerprint
    assert degraded(memory) == found
    assert memory.search("第3次会议", limit=1, passing=SearchFilter(), mode="vector").hits
    # A reindex that nobody wanted in full brings it up to date all the same.
    (memory.index.source.folders[0] / "memory" / "2026-11-19.md").write_text("- 星期五没有会议。\n", "utf-8")
    report = memory.sync((), full=False, on_progress=None, cancelled=lambda: False)
    assert report.added == 1 and any("model.onnx is missing" in each for each in report.degraded)


def test_a_memory_without_its_model_goes_by_words(open_memory: OpenMemory, tmp_path: Path) -> None:
    memory = open_memory(LanguageChoice(ENGLISH, MultilingualE5(folder=tmp_path / "nothing")))
    stored = memory.remember(entry_draft(chinese(1)[0]))
    assert any("model.onnx is missing" in each for each in stored.degraded)
    found = memory.search("会议", limit=3, passing=SearchFilter())
    assert [hit.passage.text for hit in found.hits] == chinese(1)
    assert any("model.onnx is missing" in each for each in found.degraded)


def test_a_disk_without_room_leaves_the_index_as_it_is_and_is_named(
    open_memory: OpenMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = open_memory()
    remember(memory, *english(3), *chinese(9))
    usage = shutil.disk_usage(memory.index.source.folders[0])
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: usage._replace(free=1_000))
    found = memory._moves.move()
    assert len(found) == 1 and found[0].startswith("index: the index goes on as it was made")
    assert "0.0 MB free. Free some space" in found[0]
    assert model(memory) == ENGLISH.fingerprint and degraded(memory) == found
    (memory.index.source.folders[0] / "memory" / "2026-11-19.md").write_text("- 星期五没有会议。\n", "utf-8")
    report = memory.sync((), full=False, on_progress=None, cancelled=lambda: False)
    assert report.added == 1 and any("MB free" in each for each in report.degraded)
    monkeypatch.undo()
    assert memory._moves.move() == ()
    assert model(memory) == OTHERS.fingerprint and degraded(memory) == ()


def test_a_move_that_is_stopped_goes_on_where_it_was(open_memory: OpenMemory) -> None:
    others = CountingEmbedder(seed=2)
    memory = open_memory(LanguageChoice(ENGLISH, others))
    remember(memory, *english(30))
    lines = "".join(f"- {text}\n" for text in chinese(300))
    (memory.index.source.folders[0] / "memory" / "2026-11-19.md").write_text(lines, "utf-8")
    memory.index.sync()
    assert model(memory) == ENGLISH.fingerprint
    stops = False

    def progress(_: object) -> None:
        nonlocal stops
        stops = bool(others.documents)

    assert memory._moves.move(cancelled=lambda: stops, on_progress=progress) == ()
    done = len(others.documents)
    if model(memory) == ENGLISH.fingerprint:
        assert memory.index.beside.others and not memory.index.beside.running
        memory.bring_up_to_date(None)
    assert model(memory) == OTHERS.fingerprint
    assert 0 < done <= len(others.documents) <= 330 + 1


def test_a_write_does_not_fail_where_no_move_can_be_found_out(tmp_path: Path) -> None:
    (tmp_path / "memory").mkdir()
    (tmp_path / "index.sqlite").write_bytes(b"no database" * 1000)
    index = Index(tmp_path, HashEmbedder())
    with pytest.raises(IndexerError):
        index.lags()
    moves = IndexMoves(index)
    moves.note()
    moves.close()
    index.close()
