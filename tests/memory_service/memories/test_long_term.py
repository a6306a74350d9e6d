"""What was written is found, by whom and whenever: real files, a real index."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest

from indexer import EmbeddingError, Index, SearchFilter
from indexer.testing import HashEmbedder
from indexer.types import Vectors
from memory_service.memories.drafts import EntryDraft, entry_draft
from memory_service.memories.indexing import BEING_LOOKED
from memory_service.memories.long_term import LongTermMemory
from memory_service.memories.store import MemoryStore
from memory_service.storage.files.document_files import FileDocuments
from memory_service.storage.files.log_folder import LogFolder
from tests.indexer.workspace import CountingEmbedder, FailingEmbedder
from tests.memory_service.storage.in_memory_records import erasures

NOW = datetime(2026, 11, 20, 14, 32, tzinfo=UTC)
LOOK_SECONDS = 1.0
OpenMemory = Callable[..., LongTermMemory]


@pytest.fixture
def open_memory(tmp_path: Path) -> Iterator[OpenMemory]:
    opened = []

    def open_one(embedder: HashEmbedder | None = None) -> LongTermMemory:
        folder = tmp_path / "w"
        (folder / "memory").mkdir(parents=True, exist_ok=True)
        index = Index(folder, embedder or HashEmbedder(), today=NOW.date)
        files, logs = MemoryStore(FileDocuments(folder), now=lambda: NOW), LogFolder(folder / "sessions")
        opened.append(LongTermMemory(files, index, erasures(), lambda: logs))
        return opened[-1]

    yield open_one
    for memory in opened:
        memory.close()


def texts(memory: LongTermMemory, query: str, limit: int = 3) -> list[str]:
    hits = memory.search(query, limit=limit, passing=SearchFilter()).hits
    return [hit.passage.text for hit in hits]


def degraded(memory: LongTermMemory, query: str = "quokka") -> tuple[str, ...]:
    return memory.search(query, limit=3, passing=SearchFilter()).degraded


def test_eight_threads_find_what_they_wrote(open_memory: OpenMemory) -> None:
    memory = open_memory()

    def write_and_find(thread: int) -> list[str]:
        lost = []
        for number in range(12):
            text = f"thread{thread}number{number} is here"
            entry = memory.remember(entry_draft(text))
            if entry.degraded or entry.duplicate or texts(memory, f"thread{thread}number{number}")[:1] != [text]:
                lost.append(text)
        return lost

    with ThreadPoolExecutor(8) as pool:
        assert [lost for lost in pool.map(write_and_find, range(8)) if lost] == []
    counts = memory.index.status().counts
    assert counts is not None and counts.passages == counts.embedded == 8 * 12


class SlowEmbedder(CountingEmbedder):
    """Waits for the test at the first batch."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.may_end = threading.Event(), threading.Event()
        self.batches = 0

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        self.batches += 1
        self.begun.set()
        assert self.may_end.wait(60)
        return super().embed_documents(texts)


def test_a_burst_of_writes_is_two_rounds_and_no_one_waits_with_a_lock(open_memory: OpenMemory) -> None:
    embedder = SlowEmbedder()
    memory = open_memory(embedder)
    with ThreadPoolExecutor(10) as pool:
        first = pool.submit(memory.remember, entry_draft("first"))
        assert embedder.begun.wait(60)
        others = [pool.submit(memory.remember, entry_draft(f"other {number}")) for number in range(9)]
        path = memory.files.notes.append(entry_draft("appended")).path
        while memory.files.read(path).text.count("other") < 9:
            time.sleep(0.005)
        embedder.may_end.set()
        assert all(done.result(60).degraded == [] for done in (first, *others))
    assert embedder.batches <= 3
    assert len(texts(memory, "other", limit=20)) >= 9


def test_what_people_change_is_found_by_the_next_search(open_memory: OpenMemory, tmp_path: Path) -> None:
    memory = open_memory()
    memory.remember(entry_draft("the quokka sleeps"))
    path = tmp_path / "w/memory/2026-11-20.md"
    path.write_text(path.read_text().replace("sleeps", "dances"))
    (tmp_path / "w/memory/new.md").write_text("- a wombat by hand\n")
    (tmp_path / "w/MEMORY.md").write_text("- evergreen numbat\n")
    assert texts(memory, "quokka dances")[0] == "the quokka dances"
    (tmp_path / "w/memory/new.md").unlink()
    (tmp_path / "w/MEMORY.md").write_text("- evergreen bilby\n")
    time.sleep(LOOK_SECONDS + 0.1)
    assert "evergreen bilby" in texts(memory, "evergreen numbat wombat")
    assert not {"evergreen numbat", "a wombat by hand"} & set(texts(memory, "evergreen numbat wombat"))
    assert degraded(memory) == ()


def test_a_file_that_was_there_before_is_found_by_the_first_search(open_memory: OpenMemory, tmp_path: Path) -> None:
    memory = open_memory()
    (tmp_path / "w/memory/old.md").write_text("- a wombat by hand\n")
    assert texts(memory, "wombat") == ["a wombat by hand"]


def test_looks_are_a_second_apart(open_memory: OpenMemory, tmp_path: Path) -> None:
    memory = open_memory()
    assert texts(memory, "wombat") == []
    began = time.monotonic()
    (tmp_path / "w/memory/new.md").write_text("- a wombat by hand\n")
    found = texts(memory, "wombat")
    if time.monotonic() - began < LOOK_SECONDS * 0.8:
        assert found == []
    memory.sync((), full=False, on_progress=None, cancelled=lambda: False)
    assert texts(memory, "wombat") == ["a wombat by hand"]


def test_an_answer_beside_a_look_that_takes_long_says_so(open_memory: OpenMemory, tmp_path: Path) -> None:
    memory = open_memory(embedder := SlowEmbedder())
    (tmp_path / "w/memory/new.md").write_text("- a wombat by hand\n")
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(degraded, memory, "wombat")
        assert embedder.begun.wait(60)
        assert BEING_LOOKED in degraded(memory)
        embedder.may_end.set()
        assert first.result(60) == ()
    assert degraded(memory) == () and texts(memory, "wombat") == ["a wombat by hand"]


def test_big_changes_wait_and_are_named(open_memory: OpenMemory, tmp_path: Path) -> None:
    memory = open_memory()
    memory.remember(entry_draft("the quokka sleeps"))
    big = "".join(f"- a wombat, number {number}, digs all night long\n" for number in range(1000))
    (tmp_path / "w/memory/big.md").write_text(big)
    assert degraded(memory) == (f"index: 1 changed files ({len(big):,} bytes) wait. Run `memory-service reindex`.",)
    assert texts(memory, "quokka") == ["the quokka sleeps"]
    assert degraded(memory), "as long as they wait, they are named"
    memory.sync((), full=False, on_progress=None, cancelled=lambda: False)
    assert degraded(memory) == ()
    assert "wombat" in texts(memory, "wombat")[0]


def test_what_is_written_is_found_while_big_changes_wait(open_memory: OpenMemory, tmp_path: Path) -> None:
    (tmp_path / "w/memory").mkdir(parents=True)
    (tmp_path / "w/memory/big.md").write_text("- a wombat digs all night long\n" * 2000)
    memory = open_memory()
    assert memory.remember(entry_draft("the quokka sleeps")).degraded == []
    assert texts(memory, "quokka") == ["the quokka sleeps"]


def test_a_model_that_fails_is_named_and_words_still_find(open_memory: OpenMemory) -> None:
    memory = open_memory(FailingEmbedder(EmbeddingError("The model broke. Restart it.")))
    entry = memory.remember(entry_draft("the quokka sleeps"))
    assert entry.degraded == ["vector: The model broke. Restart it."]
    assert "quokka" in memory.files.read(entry.path).text
    assert texts(memory, "quokka") == ["the quokka sleeps"]
    assert "vector: The model broke. Restart it." in degraded(memory)
    healed = open_memory()
    assert texts(healed, "quokka") == ["the quokka sleeps"]
    counts = healed.index.status().counts
    assert counts is not None and counts.embedded == counts.passages == 1


def test_one_write_without_its_vector_leaves_the_others_searchable(open_memory: OpenMemory, tmp_path: Path) -> None:
    memory = open_memory()
    (tmp_path / "w/memory/many.md").write_text("".join(f"- wombat number {number}\n" for number in range(50)))
    assert len(texts(memory, "wombat")) == 3
    memory.files.notes.append(entry_draft("the quokka sleeps"))
    open_memory(FailingEmbedder(EmbeddingError("The model broke. Restart it."))).sync(
        (), full=False, on_progress=None, cancelled=lambda: False
    )
    found = memory.index.search("quokka")
    assert (found.mode, found.hits[0].passage.text) == ("hybrid", "the quokka sleeps")


class DefectiveEmbedder(HashEmbedder):
    """Has a defect, once."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.may_end = threading.Event(), threading.Event()
        self.calls = 0

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        self.calls += 1
        if self.calls == 1:
            self.begun.set()
            assert self.may_end.wait(60)
            raise RuntimeError("a defect")
        return super().embed_documents(texts)


def test_a_defect_in_one_write_holds_up_no_other(open_memory: OpenMemory) -> None:
    embedder = DefectiveEmbedder()
    memory = open_memory(embedder)
    met: list[object] = []

    def write(text: str) -> None:
        try:
            met.append(memory.remember(entry_draft(text)).degraded)
        except RuntimeError as error:
            met.append(str(error))

    first, second = (threading.Thread(target=write, args=[text], daemon=True) for text in ("one quokka", "two quokkas"))
    first.start()
    assert embedder.begun.wait(60)
    second.start()
    embedder.may_end.set()
    first.join(60)
    second.join(60)
    assert met == ["a defect", []]
    assert sorted(texts(memory, "quokka")) == ["one quokka", "two quokkas"]


def test_a_deleted_index_comes_back(open_memory: OpenMemory, tmp_path: Path) -> None:
    memory = open_memory()
    memory.remember(entry_draft("the quokka sleeps"))
    for path in (tmp_path / "w").glob("index.sqlite*"):
        path.unlink()
    assert memory.remember(entry_draft("the wombat digs")).degraded == []
    time.sleep(LOOK_SECONDS + 0.1)
    assert texts(memory, "quokka")[0] == "the quokka sleeps"
    assert texts(memory, "wombat")[0] == "the wombat digs"


def bytes_below(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("how", ["forget", "delete", "write"])
def test_what_is_erased_leaves_no_bytes(open_memory: OpenMemory, tmp_path: Path, how: str) -> None:
    memory = open_memory()
    for number in range(20):
        memory.remember(entry_draft(f"harmless note {number}", date=NOW.date().replace(day=1)))
    entry = memory.remember(entry_draft("the password is xyzzyplugh"))
    assert texts(memory, "xyzzyplugh")[0] == "the password is xyzzyplugh"
    assert [name for name, content in bytes_below(tmp_path).items() if b"xyzzyplugh" in content]
    if how == "forget":
        gone = memory.forget(entry.memory_id)
        assert (gone.memory_id, gone.path, gone.paths) == (entry.memory_id, entry.path, [entry.path])
        missing = gone.degraded
    elif how == "delete":
        missing = memory.delete(entry.path).degraded
    else:
        missing = memory.write(entry.path, "- nothing\n", if_match="*", if_none_match=False).degraded
        assert texts(memory, "password")[0] != "the password is xyzzyplugh"
        missing += memory.delete(entry.path).degraded
    assert missing == []
    assert [name for name, content in bytes_below(tmp_path).items() if b"xyzzyplugh" in content] == []
    assert not [text for text in texts(memory, "xyzzyplugh") if "xyzzy" in text]
    assert len(memory.files.list()) == 1


def test_a_damaged_index_loses_no_write(open_memory: OpenMemory, tmp_path: Path) -> None:
    memory = open_memory()
    memory.remember(entry_draft("the quokka sleeps"))
    memory.close()
    for path in (tmp_path / "w").glob("index.sqlite-*"):
        path.unlink()
    (tmp_path / "w/index.sqlite").write_bytes(os.urandom(50_000))
    again = open_memory()
    entry = again.remember(entry_draft("the wombat digs"))
    assert len(entry.degraded) == 1 and entry.degraded[0].startswith("index: ")
    assert "Delete it and run `memory-service reindex`" in entry.degraded[0]
    assert "the wombat digs" in again.files.read(entry.path).text
    (tmp_path / "w/index.sqlite").unlink()
    assert again.sync((), full=False, on_progress=None, cancelled=lambda: False).added == 1
    assert texts(again, "wombat")[0] == "the wombat digs"


FACTS = (
    "Deploys go out on Tuesdays after the stand-up.",
    "The API listens on port 8765.",
    "李雷对花生过敏。",
    "Ingrid: I moved to Bergen in May. (on 2026-11-01)",
)


def news(*texts: str) -> list[EntryDraft]:
    return [entry_draft(text, origin="agent", session_id="s1", messages=(1, 2)) for text in texts]


def test_facts_are_stored_together_and_found_at_once(open_memory: OpenMemory, tmp_path: Path) -> None:
    memory = open_memory()
    kept, missing = memory.remember_all(news(*FACTS))
    assert missing == []
    assert [entry is not None and not entry.duplicate for entry in kept] == [True] * 4
    assert (tmp_path / "w/memory/2026-11-20.md").read_text().count("## 14:32") == 1
    assert texts(memory, "花生过敏", limit=1) == ["李雷对花生过敏。"]
    assert memory.remember_all([]) == ([], [])


def test_a_repeated_flush_adds_nothing(open_memory: OpenMemory, tmp_path: Path) -> None:
    memory = open_memory()
    memory.remember_all(news(*FACTS))
    raw = (tmp_path / "w/memory/2026-11-20.md").read_bytes()
    again = (
        "deploys go out on tuesdays after the stand-up",
        "User: On port 8765, the API listens (log:3-4)",
        "李雷对花生过敏",
        "Ingrid: I moved to Bergen in May.",
    )
    assert memory.remember_all(news(*FACTS)) == ([None] * 4, [])
    assert memory.remember_all(news(*again)) == ([None] * 4, [])
    assert (tmp_path / "w/memory/2026-11-20.md").read_bytes() == raw


def test_a_fact_is_known_from_any_memory_file_and_from_no_other(open_memory: OpenMemory, tmp_path: Path) -> None:
    memory = open_memory()
    (tmp_path / "w/memory/2025-01-02.md").write_text("- We agreed. The API listens on port 8765.\n")
    (tmp_path / "w/MEMORY.md").write_text("# Health\n\n李雷对花生过敏。\n")
    (tmp_path / "w/notes.md").write_text("- Deploys go out on Tuesdays after the stand-up.\n")
    kept, missing = memory.remember_all(news(*FACTS[:3]))
    assert [entry is not None for entry in kept] == [True, False, False]
    assert missing == []


def test_another_fact_of_the_same_words_is_stored(open_memory: OpenMemory) -> None:
    memory = open_memory()
    memory.remember_all(news(*FACTS))
    other = (
        "Deploys go out on Thursdays after the stand-up.",
        "The API listens on port 8766.",
        "李雷对花生不过敏。",
        "Marcus: I moved to Bergen in May. (on 2026-11-01)",
    )
    kept, _ = memory.remember_all(news(*other))
    assert all(kept)


def test_what_stands_twice_in_one_flush_is_stored_once(open_memory: OpenMemory) -> None:
    memory = open_memory()
    kept, _ = memory.remember_all(news(FACTS[0], "李雷对花生过敏", FACTS[0].lower(), FACTS[2], "!!"))
    assert [entry is not None for entry in kept] == [True, True, False, False, True]


def test_a_forgotten_fact_may_be_stored_again(open_memory: OpenMemory) -> None:
    memory = open_memory()
    (entry, _), _ = memory.remember_all(news(*FACTS[:2]))
    assert entry is not None
    memory.forget(entry.memory_id)
    kept, _ = memory.remember_all(news(*FACTS[:2]))
    assert [each is not None for each in kept] == [True, False]


def test_a_known_fact_is_found_among_many_like_it(open_memory: OpenMemory, tmp_path: Path) -> None:
    many = [f"The nightly backup of server {number % 40} finished after {number} minutes." for number in range(400)]
    (tmp_path / "w/memory").mkdir(parents=True)
    (tmp_path / "w/memory/2025-01-02.md").write_text("".join(f"- {text}\n" for text in many))
    memory = open_memory()
    memory.sync((), full=False, on_progress=None, cancelled=lambda: False)
    kept, _ = memory.remember_all(news(*many[::25], "The nightly backup of server 7 finished after 401 minutes."))
    assert [each is not None for each in kept] == [False] * 16 + [True]


def test_flushes_at_once_store_each_fact_once(open_memory: OpenMemory, tmp_path: Path) -> None:
    memories = [open_memory() for _ in range(3)]
    facts = [f"Rack {number} 的温度是{number}度" for number in range(15)]
    ready = threading.Barrier(6)

    def flush(thread: int) -> list[bool]:
        ready.wait(60)
        kept, missing = memories[thread % 3].remember_all(news(*facts[thread:], *facts[:thread]))
        assert missing == []
        return [entry is not None for entry in kept]

    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(flush, range(6)))
    assert sum(map(sum, answers)) == 15
    text = (tmp_path / "w/memory/2026-11-20.md").read_text()
    assert text.count("\n- ") == 15


def test_facts_are_kept_while_the_index_is_broken(open_memory: OpenMemory, tmp_path: Path) -> None:
    memory = open_memory(FailingEmbedder(EmbeddingError("no model")))
    kept, missing = memory.remember_all(news(*FACTS))
    assert all(kept)
    assert missing and "vector" in " ".join(missing)
    assert memory.remember_all(news(*FACTS))[0] == [None] * 4
