"""A rebuild beside the index in use: nothing stops answering, nothing is lost, wherever it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from indexer import EmbedderUnavailable, EmbeddingError, StoreBusy, StoreFull, SyncCancelled, SyncProgress
from indexer.common.throttle import THROTTLE
from indexer.stores.sqlite import SqliteStore
from indexer.testing import HashEmbedder
from indexer.types import Vectors
from tests.indexer.rebuilds import content, files_of, has_files, is_whole, rebuild, texts
from tests.indexer.stores.test_sqlite import two_sentences
from tests.indexer.workspace import CountingEmbedder, FailingEmbedder, Workspace, every_store

STEPS = ("begun", "filled", "adopted", "caught up", "locked", "link made", "link put", "switched")


@every_store
@pytest.mark.parametrize("step", STEPS)
def test_it_is_searched_and_written_at_every_step(filled: Workspace, step: str) -> None:
    if step.startswith("link") and not filled.keeps_files:
        pytest.skip("an index in memory is put in use at once")
    index, other = filled.index(HashEmbedder(seed=1)), filled.index(HashEmbedder(seed=1))
    writers, written = list[threading.Thread](), threading.Event()

    def write() -> None:
        # One transaction, which waits for the lock of a file that is not the index any more when it gets it.
        filled.write_items("memory/new.md", ["new wombat"])
        other.sync(["memory/new.md"])
        assert texts(other, "wombat") == ["new wombat"], "durable and found when it answers"
        filled.write_items("memory/1.md", ["quokka changed"])
        (filled.root / "memory/2.md").unlink()
        other.sync(["memory/1.md", "memory/2.md"], missing_ok=True)
        written.set()

    def reached(now: str) -> None:
        if now != step:
            return
        assert texts(other, "quokka q3x2")[0] == "quokka q3x2"
        assert len(content(other)) == 20
        writers.append(threading.Thread(target=write))
        writers[0].start()
        if step in ("locked", "link made"):
            time.sleep(0.3)
            assert writers[0].is_alive(), "writers wait, or what they write would be lost"
        else:
            assert written.wait(60)

    rebuild(index, reached)
    assert written.wait(60)
    for each in (index, other, filled.index(HashEmbedder(seed=1))):
        assert texts(each, "wombat") == ["new wombat"]
        assert len(content(each)) == 14
    assert has_files(filled, "index-2.sqlite", "index.sqlite")
    index.sync()
    is_whole(filled, index)


@every_store
@pytest.mark.usefixtures("without_links")
@pytest.mark.parametrize("step", ["filled", "locked", "link made", "link put", "switched"])
def test_so_it_is_where_there_are_no_links(filled: Workspace, step: str) -> None:
    test_it_is_searched_and_written_at_every_step(filled, step)
    assert not (filled.root / "index.sqlite").is_symlink()
    following = filled.index(HashEmbedder(seed=2))
    rebuild(following)
    assert has_files(filled, "index-3.sqlite", "index.sqlite")
    is_whole(filled, following)


KILLED = """
import os, signal, sys
from pathlib import Path
from indexer import Index
from indexer.testing import HashEmbedder
from tests.indexer.rebuilds import rebuild
def reached(step):
    if step == sys.argv[2]:
        os.kill(os.getpid(), signal.SIGKILL)
rebuild(Index(Path(sys.argv[1]), HashEmbedder(seed=1)), reached)
"""


@pytest.mark.parametrize("step", STEPS)
def test_a_rebuild_that_is_killed_leaves_a_whole_index(filled: Workspace, step: str) -> None:
    reader = filled.index(HashEmbedder(seed=1))
    assert len(content(reader)) == 20
    done = subprocess.run([sys.executable, "-c", KILLED, str(filled.root), step], capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    switched = step in ("link put", "switched")
    assert len(content(reader)) == 20
    for each in (reader, filled.index(HashEmbedder(seed=1))):
        assert len(texts(each, "quokka", limit=100)) == 20
        filled.write_items("memory/new.md", ["new wombat"])
        each.sync(["memory/new.md"])
        assert texts(each, "wombat") == ["new wombat"]
    index = filled.index(HashEmbedder(seed=1))
    assert (index.status().stored == index.fingerprint) == switched
    left = index.status().rebuild
    assert (left is None) == switched
    assert left is None or (left.name, left.running, left.current) == ("index-2.sqlite", False, True)
    embedder = CountingEmbedder(seed=1)
    filled.index(embedder).sync(full=True)
    if not switched and step != "begun":
        assert embedder.documents == ["new wombat"], "it goes on from where it was"
    assert has_files(filled, f"index-{3 if switched else 2}.sqlite", "index.sqlite")
    assert [file.name for file in filled.root.glob("index.sqlite-*")] == []
    is_whole(filled, index)


@every_store
def test_one_that_is_stopped_goes_on_from_there(filled: Workspace) -> None:
    for number in range(40):
        filled.write_items(f"memory/more-{number:02}.md", [f"wombat {number} {n}" for n in range(30)])
    first, second = CountingEmbedder(seed=1), CountingEmbedder(seed=1)
    seen: list[SyncProgress] = []
    index = filled.index(first)
    with pytest.raises(SyncCancelled):
        index.sync(full=True, on_progress=seen.append, cancelled=lambda: len(first.documents) > 300)
    assert 300 < len(first.documents) < 1000
    state = index.status().rebuild
    assert state is not None and state.passages == state.embedded == len(first.documents)
    assert 0 < state.files < state.total_files == 45 and not state.running and state.current
    assert len(content(index)) == 20, "the index in use is as it was"
    report = filled.index(second).sync(full=True, on_progress=seen.append)
    assert report.embedded == len(second.documents)
    assert not set(first.documents) & set(second.documents)
    assert index.status().rebuild is None
    assert seen[-1].done == seen[-1].total
    is_whole(filled, index)


@every_store
def test_what_another_model_has_begun_is_deleted(filled: Workspace) -> None:
    def stop(step: str) -> None:
        if step == "filled":
            raise SyncCancelled("Enough. Go on.")

    with pytest.raises(SyncCancelled):
        rebuild(filled.index(HashEmbedder(seed=2)), stop)
    index = filled.index(HashEmbedder(seed=1))
    state = index.status().rebuild
    assert state is not None and not state.current
    index.sync(full=True)
    assert has_files(filled, "index-2.sqlite", "index.sqlite")
    is_whole(filled, index)


@every_store
def test_vectors_of_the_same_model_are_taken_over(filled: Workspace) -> None:
    embedder = CountingEmbedder()
    index = filled.index(embedder)
    report = index.sync(full=True)
    assert (report.embedded, report.reused, embedder.documents) == (0, 20, [])
    best = index.search("quokka q3x2", mode="vector").hits[0]
    assert best.passage.text == "quokka q3x2" and best.vector_score == pytest.approx(1, abs=1e-4)
    other = CountingEmbedder(seed=1)
    assert filled.index(other).sync(full=True).embedded == len(other.documents) == 20


@every_store
def test_a_missing_or_empty_index_is_made_in_its_place(workspace: Workspace) -> None:
    workspace.write_items("memory/a.md", ["quokka"])
    index = workspace.index(HashEmbedder())
    index.sync(full=True)
    assert has_files(workspace, "index.sqlite") and not (workspace.root / "index.sqlite").is_symlink()
    (workspace.root / "memory/a.md").unlink()
    index.sync()
    workspace.index(HashEmbedder(seed=1)).sync()
    assert has_files(workspace, "index.sqlite"), "nothing is kept alive of an empty one"
    workspace.write_items("memory/a.md", ["quokka"])
    later = workspace.index(HashEmbedder(seed=1))
    assert later.sync().degraded == () and later.search("quokka").mode == "hybrid"


@every_store
def test_generation_after_generation(filled: Workspace) -> None:
    reader = filled.index(HashEmbedder(seed=3))
    revision, keys = 0, set[int]()
    for number in range(2, 7):
        index = filled.index(HashEmbedder(seed=number % 2))
        index.sync(full=True)
        store = index._store
        assert store.head().revision > revision, "it only grows"
        revision = store.head().revision
        found = set(store.corpus(None).keys.tolist())
        assert not found & keys, "no key is used twice"
        keys |= found
        assert has_files(filled, f"index-{number}.sqlite", "index.sqlite")
        assert len(content(reader)) == 20
        index.close()


def test_a_clock_that_goes_back_gives_no_number_twice(filled: Workspace) -> None:
    store = SqliteStore(filled.root / "index.sqlite")
    ahead = 1 << 60
    with store._database.writing():
        store._database.run("UPDATE meta SET value = ? WHERE name = 'revision'", (ahead,))
        store._database.run("UPDATE sqlite_sequence SET seq = ? WHERE name = 'passages'", (ahead,))
    future = time.time() + 10 * 365 * 86400
    os.utime(filled.root / "memory/1.md", (future, future))
    reader = filled.index(HashEmbedder())
    reader.sync()
    reader.search("quokka")
    index, numbers = filled.index(HashEmbedder(seed=1)), list[tuple[int, int]]()

    def reached(step: str) -> None:
        if step == "filled":
            for number in range(9):
                filled.write_items("memory/2.md", [f"quokka number{number}"])
                reader.sync(["memory/2.md"])
        if step == "locked":
            corpus = reader._store.corpus(None)
            numbers.append((corpus.revision, int(corpus.keys.max())))

    rebuild(index, reached)
    states, corpus = index._store.file_states(), index._store.corpus(None)
    assert numbers[0] > (ahead, ahead)
    assert min(state.revision for state in states.values()) > numbers[0][0], "what was planned for one fits no other"
    assert int(corpus.keys.min()) > numbers[0][1], "what is held in memory by key is never taken for another passage"
    filled.write_items("memory/1.md", ["quokka changed"])
    os.utime(filled.root / "memory/1.md", (1, 1))
    index.sync()
    assert "quokka changed" in texts(reader, "quokka changed")
    store.close()
    is_whole(filled, index)


@every_store
def test_a_search_that_embeds_its_question_during_the_switch(filled: Workspace) -> None:
    class Switching(HashEmbedder):
        switched = False

        def embed_query(self, text: str) -> Vectors:
            if not self.switched:
                self.switched = True
                filled.index(HashEmbedder()).sync(full=True)
            return super().embed_query(text)

    index = filled.index(Switching())
    found = index.search("quokka q3x2", limit=20)
    assert index._embedder is not None and has_files(filled, "index-2.sqlite", "index.sqlite")
    assert found.hits[0].passage.text == "quokka q3x2" and len(found.hits) == 20
    assert (found.mode, found.degraded) == ("hybrid", ())


@every_store
def test_one_at_a_time(filled: Workspace) -> None:
    index = filled.index(HashEmbedder(seed=1))

    def reached(step: str) -> None:
        if step == "filled":
            state = index.status().rebuild
            assert state is not None and state.running and state.files == 5
            with pytest.raises(StoreBusy) as raised:
                filled.index(HashEmbedder(seed=1)).sync(full=True)
            assert two_sentences(raised.value)

    rebuild(index, reached)
    assert index.status().rebuild is None


@every_store
def test_it_is_known_as_work_behind_for_as_long_as_it_takes(filled: Workspace) -> None:
    told, during = [False], set[bool]()
    THROTTLE.on_work_behind(told.append)
    try:
        rebuild(filled.index(HashEmbedder(seed=1)), lambda step: during.add(told[-1]))
    finally:
        THROTTLE.on_work_behind(lambda busy: None)
    assert during == {True}
    assert told[-1] is False


@every_store
def test_every_write_that_was_answered_is_in_the_next_generation(filled: Workspace) -> None:
    """A thread writes without a pause, so there is never a moment in which nothing is left to bring over."""
    over, written, index = threading.Event(), list[int](), filled.index(HashEmbedder(seed=1))
    writer_index = filled.index(HashEmbedder(seed=1))

    def write() -> None:
        number = 0
        while not over.is_set():
            path = f"memory/w-{number % 7}.md"
            filled.write_items(path, [f"wombat number{number}"])
            assert writer_index.sync([path]).failed == ()
            assert texts(writer_index, f"number{number}") == [f"wombat number{number}"]
            written.append(number)
            number += 1

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(4):
            index.sync(full=True)
            last = written[-1] if written else -1
            assert last < 0 or any(texts(index, f"number{n}") for n in range(last, last + 8))
    finally:
        over.set()
        writer.join(60)
    assert len(written) > 5
    for number in written[-7:]:
        assert texts(index, f"number{number}") == [f"wombat number{number}"]
    index.sync()
    is_whole(filled, index)


@pytest.mark.parametrize("what", ["index", "everything"])
def test_an_index_that_is_deleted_meanwhile_or_afterwards(filled: Workspace, what: str) -> None:
    index, other = filled.index(HashEmbedder(seed=1)), filled.index(HashEmbedder(seed=1))

    def delete() -> None:
        for file in filled.root.glob("index.sqlite*" if what == "index" else "index*"):
            file.unlink()

    rebuild(index, lambda step: delete() if step == "filled" and what == "index" else None)
    for each in (index, other):
        assert len(content(each)) == 20
    delete()
    for each in (index, other):
        assert content(each) == []
        assert each.status().counts is None and each.status().pending == 5
    index.sync()
    for each in (index, other):
        assert len(content(each)) == 20
    index.sync(full=True)
    assert len(files_of(filled)) == 2, "what the deleted link stood for is gone too"
    is_whole(filled, index)


def test_room_is_looked_for_first(filled: Workspace) -> None:
    index = filled.index(HashEmbedder(seed=1))
    with pytest.raises(
        StoreFull, match=r"needs 0\.\d MB beside the index in use, and its disk has 0\.0 MB free"
    ) as raised:
        rebuild(index, free_bytes=lambda folder: 1000)
    assert two_sentences(raised.value)
    assert has_files(filled, "index.sqlite") and len(content(index)) == 20


@pytest.mark.skipif(os.geteuid() != 0, reason="a full disk is a small file system, which root alone may mount")
def test_a_disk_that_runs_full(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(disk)], check=False).returncode:
        pytest.skip("mounting is not allowed here")
    try:
        workspace = Workspace(disk / "w")
        workspace.write_items("memory/a.md", [f"quokka {n} of some length" for n in range(900)])
        index = workspace.synced(None)
        before = content(index)
        (disk / "filler").write_bytes(b"x" * 200_000)
        with pytest.raises(StoreFull, match="the rebuild was given up") as raised:
            rebuild(workspace.index(HashEmbedder(512)), free_bytes=lambda folder: 1 << 40)
        assert two_sentences(raised.value)
        assert has_files(workspace, "index.sqlite") and content(index) == before
        assert index.status().rebuild is None
        index.close()
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)


def test_a_model_that_fails_takes_no_vectors_away(filled: Workspace) -> None:
    store = SqliteStore(filled.root / "index.sqlite")
    made = store.head().fingerprint
    assert made is not None
    with store._database.writing():
        store._database.run("UPDATE passages SET text_hash = zeroblob(16)")
    store.close()
    broken = filled.index(FailingEmbedder(EmbedderUnavailable("The model is gone. Bring it back.")))
    with pytest.raises(EmbeddingError, match="The model is gone") as raised:
        broken.sync(full=True)
    assert two_sentences(raised.value)
    index = filled.index(HashEmbedder())
    assert index.search("quokka q3x2").mode == "hybrid"
    state = index.status().rebuild
    assert state is not None and (state.passages, state.embedded) == (20, 0)
    index.sync(full=True)
    counts = index.status().counts
    assert counts is not None and counts.passages == counts.embedded == 20


@every_store
def test_another_model_that_fails_is_made_up_for_later(filled: Workspace) -> None:
    class Later(FailingEmbedder):
        fingerprint = "hash-64-1"

    broken = Later(EmbedderUnavailable("The model is gone. Bring it back."))
    broken.fingerprint = HashEmbedder(seed=1).fingerprint
    report = filled.index(broken).sync(full=True)
    assert "vector: The model is gone. Bring it back." in report.degraded
    index = filled.index(HashEmbedder(seed=1))
    assert index.sync().embedded == 20
    is_whole(filled, index)
