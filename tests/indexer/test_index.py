"""The whole of it on real folders: what is wrong is said, what is a memory is never touched."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from indexer import (
    Index,
    IndexerError,
    SourceMissing,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreLocked,
    StoreReadOnly,
    SyncReport,
)
from indexer.documents import formats, markdown, transcripts
from indexer.language import terms
from indexer.stores.sqlite import SqliteStore
from indexer.testing import HashEmbedder
from tests.indexer.memory_store import InMemoryStore
from tests.indexer.sources.test_scan import reachable
from tests.indexer.stores.test_sqlite import beside, holding, two_sentences
from tests.indexer.talks import turns, write_log
from tests.indexer.workspace import (
    TODAY,
    CountingEmbedder,
    Workspace,
    every_store,
    make_old,
    run_python,
    run_unprivileged,
    texts,
)


@pytest.fixture
def filled(workspace: Workspace) -> Workspace:
    workspace.write_items("MEMORY.md", ["red fish", "blue fish"])
    workspace.write_items("memory/2026-11-19.md", ["one quokka", "two wombats"])
    workspace.synced(HashEmbedder()).close()
    return workspace


def raised_by(act: Callable[[], object]) -> IndexerError:
    with pytest.raises(IndexerError) as raised:
        act()
    assert two_sentences(raised.value), raised.value
    return raised.value


@every_store
def test_status_before_and_after(workspace: Workspace) -> None:
    workspace.write_items("MEMORY.md", ["one"])
    index = workspace.index(HashEmbedder())
    before = index.status()
    assert (before.counts, before.stored, before.pending, before.failed) == (None, None, 1, ())
    assert workspace.index_files() == [], "looking makes no index"
    assert len(index.plan().added) == 1
    assert workspace.index_files() == []
    index.sync()
    after = index.status()
    assert after.stored == after.current == index.fingerprint
    assert after.counts is not None
    assert (after.counts.files, after.counts.passages, after.counts.embedded) == (1, 1, 1)
    index.check()


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    index = Index(tmp_path / "none", HashEmbedder())
    assert index.sync() == SyncReport()
    assert index.search("x").hits == ()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_gone_takes_nothing_out_of_its_index(tmp_path: Path) -> None:
    folder, store = tmp_path / "notes", InMemoryStore()
    (folder / "memory").mkdir(parents=True)
    (folder / "memory" / "a.md").write_text("- quokka\n", "utf-8")
    index = Index(folder, HashEmbedder(), store=store)
    index.sync()
    folder.rename(tmp_path / "away")
    assert isinstance(raised_by(index.sync), SourceMissing)
    (tmp_path / "away").rename(folder)
    assert [hit.snippet for hit in index.search("quokka").hits] == ["quokka"]


@every_store
def test_what_a_sync_stored_is_found_by_every_index_on_the_folder(workspace: Workspace) -> None:
    first, second = workspace.index(HashEmbedder()), workspace.index(HashEmbedder())
    for number in range(5):
        workspace.write_items("memory/a.md", [f"quokka number {number}"])
        (first if number % 2 else second).sync()
        for index in (first, second):
            assert texts(index, "quokka") == [f"quokka number {number}"]


@every_store
def test_vectors_in_memory_are_those_of_the_passages_after_any_rebuild(workspace: Workspace) -> None:
    workspace.write_items("memory/a.md", ["alpha", "beta"])
    workspace.write_items("memory/b.md", ["gamma", "delta"])
    reader, writer = workspace.synced(HashEmbedder()), workspace.index(HashEmbedder())
    reader.search("alpha")
    (workspace.root / "memory/b.md").unlink()
    writer.sync()
    workspace.write_items("memory/b.md", ["epsilon", "zeta"])
    writer.sync(full=True)
    for word in ("alpha", "beta", "epsilon", "zeta"):
        (best, *_) = reader.search(word, mode="vector").hits
        assert best.passage.text == word and best.vector_score == pytest.approx(1, abs=1e-4)


@every_store
@pytest.mark.parametrize("other", [HashEmbedder(seed=1), HashEmbedder(32), None], ids=["model", "dimensions", "none"])
def test_another_model_is_named_and_mended(filled: Workspace, other: HashEmbedder | None) -> None:
    index = filled.index(other)
    found = index.search("quokka")
    assert (found.mode, found.hits[0].passage.text) == ("text", "one quokka")
    if other:
        assert len(found.degraded) == 1
        assert "made with the model hash-64-0" in found.degraded[0] and "reindex --full" in found.degraded[0]
    report = index.sync()
    assert (report.unchanged, report.embedded) == (2, 0)
    assert len(report.degraded) == 1 and "`memory-service reindex --full`" in report.degraded[0]
    assert index.status().stored != index.status().current
    index.sync(full=True)
    found = index.search("quokka")
    assert (found.mode, found.degraded) == ("hybrid" if other else "text", ())
    report = filled.index(HashEmbedder()).sync()
    if other:
        assert "made with the model" in report.degraded[0]
    else:
        assert (report.embedded, report.degraded) == (4, ()), "an index of words takes any model's vectors"


def acts(index: Index) -> list[Callable[[], object]]:
    return [lambda: index.search("quokka"), index.sync, index.status, lambda: index.sync(full=True)]


@pytest.mark.parametrize("content", [b"garbage " * 3000, None], ids=["garbage", "folder"])
def test_what_stands_in_place_of_the_index(filled: Workspace, content: bytes | None) -> None:
    before = filled.memories()
    for file in filled.index_files():
        file.unlink()
    place = filled.root / "index.sqlite"
    if content is None:
        place.mkdir()
    else:
        place.write_bytes(content)
    for act in acts(filled.index(HashEmbedder())):
        error = raised_by(act)
        assert isinstance(error, StoreCorrupt) if content else type(error) is StoreError
    assert filled.memories() == before
    if content is None:
        place.rmdir()
    else:
        place.unlink()
    assert texts(filled.synced(HashEmbedder()), "quokka")[0] == "one quokka"


def test_an_index_damaged_in_use(filled: Workspace) -> None:
    before = filled.memories()
    index = filled.index(HashEmbedder())
    index.search("quokka")
    index.scrub()
    index.close()
    place = filled.root / "index.sqlite"
    size = place.stat().st_size
    with open(place, "r+b") as stream:
        stream.write(os.urandom(size))
    for act in acts(index):
        assert isinstance(raised_by(act), StoreCorrupt)
    for file in filled.index_files():
        file.unlink()
    assert index.search("quokka").hits == ()
    index.sync()
    assert texts(index, "quokka")[0] == "one quokka"
    assert filled.memories() == before


@pytest.mark.parametrize("size", [0, 8192])
def test_an_index_cut_short_in_use_does_not_end_the_process(filled: Workspace, size: int) -> None:
    code = """
import os, sys
from pathlib import Path
from indexer import Index, StoreError
from indexer.testing import HashEmbedder
root = Path(sys.argv[1])
index = Index(root, HashEmbedder())
index.search("quokka")
index.scrub()
os.truncate(root / "index.sqlite", int(sys.argv[2]))
for act in (lambda: index.search("wombats"), index.status, index.sync, index.check):
    try:
        act()
    except StoreError as error:
        assert "Delete it" in str(error), error
index.close()
for file in root.glob("index.sqlite*"):
    file.unlink()
print(index.sync().added, index.search("wombats", mode="vector").hits[0].passage.text)
"""
    assert run_python(code, filled.root, size) == "2 two wombats"


def test_an_index_deleted_in_use_comes_back(filled: Workspace) -> None:
    index, other = filled.index(HashEmbedder()), filled.index(HashEmbedder())
    for each in (index, other):
        assert texts(each, "quokka")[0] == "one quokka"
    for file in filled.index_files():
        file.unlink()
    assert index.search("quokka").hits == ()
    assert index.status().pending == 2
    filled.write_items("memory/new.md", ["three numbats"])
    assert index.sync().added == 3
    for each in (index, other, filled.index(HashEmbedder())):
        assert texts(each, "numbats")[0] == "three numbats"
        assert each.search("two wombats", mode="vector").hits[0].passage.text == "two wombats"


def test_a_restored_file_is_not_taken_for_what_was_known(filled: Workspace, tmp_path: Path) -> None:
    index = filled.synced(HashEmbedder())
    index.scrub()
    shutil.copy(filled.root / "index.sqlite", tmp_path / "former")
    filled.write_items("memory/lost.md", ["a xylophone"])
    index.sync()
    assert texts(index, "xylophone")[0] == "a xylophone"
    (filled.root / "memory/lost.md").unlink()
    for end in ("-wal", "-shm"):
        (filled.root / f"index.sqlite{end}").unlink(missing_ok=True)
    (tmp_path / "former").replace(filled.root / "index.sqlite")
    filled.write_items("memory/new.md", ["a tambourine"])
    # In place of the lost passage, with its key and its revision.
    filled.index(HashEmbedder()).sync()
    assert texts(index, "tambourine")[0] == "a tambourine"
    assert "a tambourine" not in [hit.passage.text for hit in index.search("xylophone", mode="text").hits]


def test_a_locked_index_is_searched_and_not_written(filled: Workspace) -> None:
    store = SqliteStore(filled.root / "index.sqlite", busy_seconds=0.2)
    index = Index(filled.root, HashEmbedder(), store=store, today=lambda: TODAY)
    filled.write_items("memory/new.md", ["three numbats"])
    before = filled.memories()
    with holding(filled.root / "index.sqlite", "BEGIN IMMEDIATE"):
        assert texts(index, "quokka")[0] == "one quokka"
        assert isinstance(raised_by(index.sync), StoreLocked)
        assert isinstance(raised_by(lambda: index.sync(full=True)), StoreLocked)
    assert index.sync().added == 1
    assert filled.memories() == before


def test_a_folder_that_cannot_be_written_is_searched(filled: Workspace) -> None:
    before = filled.memories()
    reachable(filled.root)
    index = filled.index(HashEmbedder())
    index.scrub()
    index.close()
    for path in filled.root.rglob("*"):
        path.chmod(0o555 if path.is_dir() else 0o444)
    filled.root.chmod(0o555)
    code = """
from pathlib import Path
from indexer import Index, StoreError
from indexer.testing import HashEmbedder
drop()
index = Index(Path(sys.argv[1]), HashEmbedder())
print(index.search("quokka").hits[0].passage.text, index.status().pending in (0, 1, 2))
for act in (lambda: index.sync(full=True), index.scrub):
    try:
        act()
        print("done")
    except StoreError as error:
        print(type(error).__name__, str(error).count(". "))
print(index.search("wombats").hits[0].passage.text)
"""
    try:
        printed = run_unprivileged(code, filled.root).splitlines()
    finally:
        filled.root.chmod(0o755)
        (filled.root / "memory").chmod(0o755)
    assert printed[0] == "one quokka True"
    assert printed[1] == f"{StoreReadOnly.__name__} 1"
    assert printed[2] in ("done", f"{StoreReadOnly.__name__} 1")
    assert printed[3] == "two wombats"
    assert filled.memories() == before


@pytest.mark.skipif(
    os.geteuid() != 0, reason="a full disk is made with a small file system, which root alone may mount"
)
def test_a_full_disk_keeps_what_was_stored(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(disk)], check=False).returncode:
        pytest.skip("mounting is not allowed here")
    try:
        workspace = Workspace(disk / "workspace")
        for number in range(30):
            workspace.write_items(f"memory/{number:02}.md", [f"line {number} {n} of some length" for n in range(200)])
        before = workspace.memories()
        index = workspace.index(HashEmbedder())
        assert isinstance(raised_by(index.sync), StoreFull)
        assert index.search("line").hits
        assert isinstance(raised_by(index.sync), StoreFull)
        index.check()
        index.close()
        assert workspace.memories() == before
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)


def test_a_copied_folder_is_indexed_like_the_first(filled: Workspace, tmp_path: Path) -> None:
    shutil.copytree(filled.root, tmp_path / "copy")
    embedder = CountingEmbedder()
    copy = Index(tmp_path / "copy", embedder)
    assert texts(copy, "quokka")[0] == "one quokka"
    assert copy.sync().unchanged == 2
    assert embedder.documents == []


WRITER = """
import sys, time
from pathlib import Path
from indexer import Index
from indexer.testing import HashEmbedder
root = Path(sys.argv[1])
index = Index(root, HashEmbedder())
number, end = 0, time.monotonic() + float(sys.argv[2])
while number < 12 or time.monotonic() < end:
    number += 1
    path = root / f"memory/other-{number % 4}.md"
    if number % 7 == 0:
        path.unlink(missing_ok=True)
    else:
        path.write_text("".join(f"- shared quokka {number} {n}\\n" for n in range(number % 20)))
    index.sync()
    if number % int(sys.argv[3]) == 0:
        index.sync(full=True)
print(number)
"""


@pytest.mark.parametrize("rebuilds", [False, True], ids=["", "and rebuild"])
def test_searches_while_threads_and_processes_write(workspace: Workspace, rebuilds: bool) -> None:
    workspace.write_items("memory/steady.md", [f"steady quokka {n}" for n in range(50)])
    index = workspace.synced(HashEmbedder())
    done = threading.Event()

    def search(question: str) -> int:
        searches = 0
        while not done.is_set():
            hits = index.search(question, limit=20).hits
            searches += 1
            assert all(hit.passage.start_line <= hit.passage.end_line and hit.passage.text for hit in hits)
            for hit in hits:
                assert hit.path.startswith("memory/") and hit.passage.start_line == hit.ordinal + 1
        return searches

    def write() -> int:
        number = 0
        while not done.is_set():
            number += 1
            workspace.write_items("memory/own.md", [f"own quokka {number} {n}" for n in range(number % 15 + 1)])
            index.sync()
            found = texts(index, f"own quokka {number}", limit=200)
            # While another process rebuilds everything, not all of it is there.
            assert rebuilds or any(text.startswith(f"own quokka {number} ") for text in found)
        return number

    other = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(workspace.root), "0.6", "10" if rebuilds else "1000000"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with ThreadPoolExecutor(5) as pool:
        questions = ("steady quokka 7", "shared quokka", "own", "which quokka is steady?")
        searching = [pool.submit(search, question) for question in questions]
        writing = pool.submit(write)
        try:
            printed, complaint = other.communicate(timeout=240)
        finally:
            done.set()
        assert other.returncode == 0, complaint
        assert min(task.result() for task in searching) > 3
        assert writing.result() > 3 and int(printed) > 3

    index.sync()
    again = workspace.index(HashEmbedder())
    for question in questions:
        mine, theirs = (each.search(question, limit=40).hits for each in (index, again))
        assert [(hit.path, hit.passage) for hit in mine] == [(hit.path, hit.passage) for hit in theirs]
        assert [hit.vector_score for hit in mine] == pytest.approx([hit.vector_score for hit in theirs], abs=1e-5)
    index.check()


@every_store
def test_searches_do_not_wait_for_a_sync_that_embeds(workspace: Workspace) -> None:
    workspace.write_items("memory/a.md", ["one quokka"])
    embedding, go_on = threading.Event(), threading.Event()

    class Waiting(HashEmbedder):
        def embed_documents(self, texts):  # type: ignore[no-untyped-def]
            embedding.set()
            assert go_on.wait(60)
            return super().embed_documents(texts)

    index = workspace.synced(HashEmbedder())
    workspace.write_items("memory/b.md", ["two quokkas"])
    slow = threading.Thread(target=workspace.index(Waiting()).sync)
    slow.start()
    try:
        assert embedding.wait(60)
        assert texts(index, "quokka") == ["one quokka"]
        workspace.write_items("memory/c.md", ["three quokkas"])
        index.sync(["memory/c.md"])
        assert slow.is_alive(), "the model is still at its work"
    finally:
        go_on.set()
        slow.join()
    assert len(texts(index, "quokka")) == 3


@pytest.mark.parametrize("year", [-30_000, 0, 1902, 2261, 2263, 2440, 30_000])
def test_a_file_of_any_year_is_indexed(workspace: Workspace, year: int) -> None:
    moment = (year - 1970) * 365 * 86_400 * 10**9
    old, dated = (workspace.write_items(f"memory/{name}.md", [f"a wombat {name}"]) for name in ("old", "dated"))
    make_old(old)
    os.utime(dated, ns=(moment, moment))
    if os.stat(dated).st_mtime_ns != moment:
        pytest.skip("this file system has no such year")
    index = workspace.synced(HashEmbedder())
    assert len(index.search("wombat").hits) == 2
    time.sleep(0.1)
    index.sync()
    os.utime(old, ns=(moment, moment))
    assert index.status().pending == 1
    old.write_text("- a quokka\n", "utf-8")
    os.utime(old, ns=(moment, moment))
    assert (index.sync().changed, index.sync().changed) == (1, 0)
    assert texts(index, "quokka", limit=1) == ["a quokka"]
    index.close()


def test_nothing_is_left_beside_a_closed_index(filled: Workspace) -> None:
    assert [file.name for file in beside(filled.root / "index.sqlite")] == ["index.sqlite"]


@every_store
def test_rules_for_sessions_have_their_own_part_of_the_fingerprint(workspace: Workspace) -> None:
    made_by = workspace.index(None).fingerprint.rules.split("/")
    assert made_by == [markdown.PASSAGE_RULES, transcripts.TRANSCRIPT_RULES, formats.FILE_RULES, terms.TERM_RULES]


@every_store
def test_a_session_is_found_while_it_grows(workspace: Workspace) -> None:
    log = write_log(workspace.root, "start")
    index = workspace.synced(HashEmbedder())
    for number in range(12):
        log.append(turns(f"the code is c{number}x", f"第{number}个密码是甲{number}乙"))
        assert index.sync(["sessions/talk.jsonl"]).embedded == 2
        for question in (f"c{number}x", f"甲{number}乙"):
            hit = index.search(question, limit=1).hits[0]
            assert f"{number}" in hit.passage.text and hit.source == "sessions"
    assert index.status().pending == 0
