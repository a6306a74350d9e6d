"""Runs `Index.sync` on real files; faults are made for real."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from indexer import EmbedderUnavailable, EmbeddingError, Index, SourceMissing, SyncCancelled, SyncProgress, SyncReport
from indexer.documents.transcripts import split_transcript
from indexer.sources.folders import FileSource
from indexer.sources.scan import unpack_stat
from indexer.stores.base import Unembedded, passages_of
from indexer.stores.sqlite import SqliteStore
from indexer.sync import vectors
from indexer.sync.vectors import BATCH_TEXTS
from indexer.testing import HashEmbedder
from indexer.types import Vectors
from tests.growth import assert_costs_at_most
from tests.indexer import talks
from tests.indexer.sources.test_scan import reachable
from tests.indexer.stores.test_sqlite import row_counts
from tests.indexer.talks import message, turns, write_log
from tests.indexer.test_corpus import edit
from tests.indexer.workspace import (
    LONG_AGO_NS,
    CountingEmbedder,
    FailingEmbedder,
    Workspace,
    every_store,
    make_old,
    run_python,
    run_unprivileged,
    texts,
)
from tests.memory_service.storage.log_steps import trim


def counted(report: SyncReport) -> tuple[int, int, int, int]:
    return report.added, report.changed, report.removed, report.unchanged


def reasons(report: SyncReport) -> dict[str, str]:
    return {failure.path: failure.reason for failure in report.failed}


def after(calls: int) -> Callable[[], bool]:
    """A `cancelled` that says so from a given call on."""
    left = [calls]

    def cancelled() -> bool:
        left[0] -= 1
        return left[0] < 0

    return cancelled


def after_embedding(embedder: CountingEmbedder, texts: int) -> Callable[[], bool]:
    """A `cancelled` that says so once so many more texts were embedded."""
    enough = len(embedder.documents) + texts
    return lambda: len(embedder.documents) >= enough


def settle(index: Index) -> None:
    """Look again when no file is as young as the clock's grain, so that none is in doubt any more."""
    time.sleep(0.06)
    index.sync()


def dump(index: Index) -> list[tuple[object, ...]]:
    """All that an index holds, but for keys and times."""
    store = index._store
    store.check()
    held: list[tuple[object, ...]] = []
    for path, state in sorted(store.file_states().items()):
        held.append((path, state.size_bytes, state.content_hash, state.failure))
        held += [(path, known.ordinal, known.passage) for known in passages_of(store, path)]
    if isinstance(store, SqliteStore):
        counts = row_counts(store.path)
        assert (counts["vectors"], counts["terms_docsize"]) == (counts["passages"],) * 2
    return held


@every_store
def test_add_change_and_remove(workspace: Workspace) -> None:
    embedder = CountingEmbedder()
    workspace.write_items("MEMORY.md", ["red", "green", "blue"])
    workspace.write_items("memory/a.md", ["one", "two"])
    index = workspace.index(embedder)
    assert counted(index.sync()) == (2, 0, 0, 0)
    assert sorted(embedder.documents) == ["blue", "green", "one", "red", "two"]
    embedder.documents.clear()

    workspace.write_items("MEMORY.md", ["yellow", "red", "blue"])
    (workspace.root / "memory/a.md").unlink()
    workspace.write_items("memory/b.md", ["four"])
    report = index.sync()
    assert counted(report) == (1, 1, 1, 0)
    assert sorted(embedder.documents) == ["four", "yellow"], "what stays is not embedded again"
    assert (report.embedded, report.reused) == (2, 0)
    assert sorted(texts(index, "everything", limit=9)) == ["blue", "four", "red", "yellow"]
    assert index.status().pending == 0, "just written is not the same as changed"


@every_store
def test_touching_a_file_changes_nothing(workspace: Workspace) -> None:
    embedder = CountingEmbedder()
    file = workspace.write_items("memory/a.md", ["one", "two"])
    index = workspace.synced(embedder)
    before = dump(index)
    make_old(file)
    assert index.status().pending == 1, "only reading it tells"
    report = index.sync()
    assert counted(report) == (0, 0, 0, 1)
    assert (report.embedded, report.reused) == (0, 0)
    assert dump(index) == before


@every_store
def test_a_renamed_file_keeps_its_vectors(workspace: Workspace) -> None:
    embedder = CountingEmbedder()
    file = workspace.write_items("memory/2026-01-01.md", ["one", "two"])
    index = workspace.synced(embedder)
    embedder.documents.clear()
    file.rename(workspace.root / "memory/2026-01-02.md")
    report = index.sync()
    assert counted(report) == (1, 0, 1, 0)
    assert embedder.documents == []
    assert (report.embedded, report.reused) == (0, 2)
    assert {hit.passage.date.day for hit in index.search("one").hits if hit.passage.date} == {2}


@every_store
def test_the_same_text_is_embedded_once(workspace: Workspace) -> None:
    embedder = CountingEmbedder()
    workspace.write_items("memory/a.md", ["same", "same", "other"])
    workspace.write_items("memory/b.md", ["same"])
    index = workspace.synced(embedder)
    workspace.write_items("memory/c.md", ["same"])
    report = index.sync()
    assert sorted(embedder.documents) == ["other", "same"]
    assert (report.embedded, report.reused) == (0, 1)


def test_a_sync_with_nothing_to_do_opens_no_memory_file(workspace: Workspace) -> None:
    for number in range(20):
        workspace.write_items(f"memory/{number}.md", ["one"])
    settle(workspace.synced(HashEmbedder()))
    code = """
import sys
from pathlib import Path
from indexer import Index
from indexer.testing import HashEmbedder
opened = []
def hear(event, arguments):
    if event == "open" and str(arguments[0]).endswith(".md"):
        opened.append(arguments[0])
sys.addaudithook(hear)
def sync():
    opened.clear()
    report = Index(Path(sys.argv[1]), HashEmbedder()).sync()
    print(report.unchanged, report.changed, len(opened))
sync()
(Path(sys.argv[1]) / "memory/3.md").write_text("- two")
sync()
"""
    assert run_python(code, workspace.root).splitlines() == ["20 0 0", "19 1 2"], "one written, one read"


@every_store
def test_an_edit_within_the_grain_of_the_clock_is_noticed(workspace: Workspace) -> None:
    index = workspace.index(HashEmbedder())
    path = workspace.write("memory/a.md", "- aaaa")
    for letter in "bcdefgh":
        index.sync()
        before = path.stat()
        with open(path, "r+b") as stream:
            stream.write(f"- {letter * 4}".encode())
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert path.stat().st_size == before.st_size and path.stat().st_mtime_ns == before.st_mtime_ns
        assert counted(index.sync()) == (0, 1, 0, 0)
        assert texts(index, letter * 4) == [letter * 4]


@every_store
def test_paths_restrict_a_sync(workspace: Workspace) -> None:
    for path in ("MEMORY.md", "memory/a/x.md", "memory/ab/y.md"):
        workspace.write_items(path, ["one"])
    index = workspace.index(HashEmbedder())
    assert index.sync(["memory/a"]).added == 1
    assert index.sync(["memory/a/", "MEMORY.md"]).added == 1
    (workspace.root / "memory/a/x.md").unlink()
    assert counted(index.sync(["MEMORY.md"])) == (0, 0, 0, 1)
    assert counted(index.sync(["memory/a/x.md"])) == (0, 0, 1, 0)
    assert [file.path for file in index.plan().added] == ["memory/ab/y.md"]
    for path in ("notes/z", "memory/not-yet.md", "memory/z"):
        with pytest.raises(SourceMissing, match=rf"'{path}'\. Run"):
            index.sync([path])
        assert index.sync([path], missing_ok=True).added == 0


@every_store
def test_what_took_the_place_of_a_file(workspace: Workspace) -> None:
    for path in ("memory/Case.md", "memory/folder.md", "memory/link.md", "memory/stays.md"):
        workspace.write_items(path, [path])
    index = workspace.synced(HashEmbedder())
    (workspace.root / "memory/Case.md").rename(workspace.root / "memory/case.md")
    for path in ("memory/folder.md", "memory/link.md"):
        (workspace.root / path).unlink()
    workspace.write_items("memory/folder.md/inside.md", ["inside"])
    (workspace.root / "memory/link.md").symlink_to(workspace.root / "memory/stays.md")
    assert counted(index.sync()) == (2, 0, 3, 1)
    assert set(index._store.file_states()) == {"memory/case.md", "memory/folder.md/inside.md", "memory/stays.md"}
    assert counted(index.sync()) == (0, 0, 0, 3)


@every_store
def test_a_sync_of_named_files_looks_at_no_other(workspace: Workspace) -> None:
    for number in range(3):
        workspace.write_items(f"memory/{number}.md", [f"item {number}"])
    index = workspace.synced(HashEmbedder())
    for number in range(3):
        workspace.write_items(f"memory/{number}.md", [f"changed {number}"])
    assert counted(index.sync(["memory/1.md"])) == (0, 1, 0, 0)
    (workspace.root / "memory/1.md").unlink()
    (workspace.root / "memory/1.md").symlink_to(workspace.root / "memory/2.md")
    assert counted(index.sync(["memory/1.md"])) == (0, 0, 1, 0)
    assert {file.path for file in index.plan().suspects} == {"memory/0.md", "memory/2.md"}


def test_a_full_sync_indexes_all_whatever_the_paths(workspace: Workspace) -> None:
    embedder = CountingEmbedder()
    workspace.write_items("MEMORY.md", ["one"])
    workspace.write_items("memory/a.md", ["two"])
    index = workspace.synced(embedder)
    before = dump(index)
    report = index.sync(["MEMORY.md"], full=True)
    assert counted(report) == (2, 0, 0, 0)
    assert (report.reused, embedder.documents) == (2, ["one", "two"]), "the vectors are those of the index before"
    assert dump(index) == before


def test_a_long_log_need_not_be_read_to_its_end_to_stop(workspace: Workspace) -> None:
    write_log(workspace.root, *(f"item {n} 第{n}条" for n in range(2_000)))
    index = workspace.index(HashEmbedder())
    read = list[int]()

    def cancelled() -> bool:
        read.append(len(read))
        return len(read) > 50

    with pytest.raises(SyncCancelled):
        index.sync(cancelled=cancelled)
    assert len(read) == 51
    counts = index.status().counts
    assert counts is None or counts.passages == 0
    index.sync()
    assert len(held_texts(index)) == 2_000


def test_a_slow_model_need_not_end_its_batch_to_stop(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors, "_TURN_SECONDS", 0.02)
    monkeypatch.setattr(vectors, "_FIRST_CHARS", 1_000)
    monkeypatch.setattr(vectors, "_LEAST_CHARS", 1_000)

    class Slow(CountingEmbedder):
        def embed_documents(self, texts: Sequence[str]) -> Vectors:
            time.sleep(0.01 * len(texts))
            return super().embed_documents(texts)

    embedder, looks = Slow(), list[int]()
    workspace.write_items("memory/long.md", [f"item {n} " + "很长的一条 long " * 30 for n in range(100)])
    index = workspace.index(embedder)

    def cancelled() -> bool:
        looks.append(len(embedder.documents))
        return len(embedder.documents) > 0

    with pytest.raises(SyncCancelled):
        index.sync(cancelled=cancelled)
    assert 0 < len(embedder.documents) < 50, "it ended within the batch"
    index.sync()
    assert len(held_texts(index, "memory/long.md")) == 100


@every_store
def test_progress_knows_the_totals_from_the_start(workspace: Workspace) -> None:
    sizes = 0
    for number in range(5):
        sizes += workspace.write_items(f"memory/{number}.md", [f"line {number} {n}" for n in range(150)]).stat().st_size
    index = workspace.index(HashEmbedder())
    seen: list[SyncProgress] = []
    index.sync(on_progress=seen.append)
    assert {(progress.total, progress.total_bytes) for progress in seen} == {(5, sizes)}
    assert [progress.done for progress in seen] == [1, 2, 3, 4, 5]
    assert (seen[-1].done_bytes, seen[-1].passages) == (sizes, 750)


def test_a_cancelled_sync_goes_on_where_it_stopped(workspace: Workspace) -> None:
    embedder = CountingEmbedder()
    for number in range(8):
        workspace.write_items(f"memory/{number}.md", [f"line {number} {n}" for n in range(200)])
    index = workspace.index(embedder)
    with pytest.raises(SyncCancelled, match=r"stopped after \d of 8 files and \d+ passages\. Run it again"):
        index.sync(cancelled=after_embedding(embedder, 400))
    stored = len(embedder.documents)
    assert 0 < stored < 1600
    assert index.status().counts is not None
    index.sync()
    assert len(embedder.documents) == len(set(embedder.documents)) == 1600
    held = dump(index)
    (workspace.root / "index.sqlite").unlink()
    assert held == dump(workspace.synced(HashEmbedder()))


@every_store
def test_runs_that_are_stopped_after_each_second_of_work_get_to_the_end(workspace: Workspace) -> None:
    embedder = CountingEmbedder()
    texts = [f"{number} " + "word " * 200 for number in range(60)]
    workspace.write_items("memory/long.md", texts)
    write_log(workspace.root, *(f"said {text}" for text in texts))
    index = workspace.index(embedder)
    runs = 0
    while True:
        try:
            index.sync(cancelled=after_embedding(embedder, 1))
            break
        except SyncCancelled:
            runs += 1
        counts = index.status().counts
        assert counts is not None and counts.embedded == len(embedder.documents), "what was embedded is stored"
    assert runs > 3
    assert len(held_texts(index, "memory/long.md")) == 60 and len(held_texts(index)) == 60
    assert len(embedder.documents) == len(set(embedder.documents)), "no text is embedded twice"


@every_store
def test_progress_tells_the_passages_before_the_first_is_stored(workspace: Workspace) -> None:
    workspace.write_items("memory/long.md", [f"{number} " + "word " * 200 for number in range(60)])
    workspace.write("memory/short.md", "one passage\n")
    seen: list[SyncProgress] = []
    workspace.index(HashEmbedder()).sync(on_progress=seen.append)
    assert {progress.total_passages for progress in seen} == {61}
    stored = [progress.passages for progress in seen]
    assert stored == sorted(stored) and stored[-1] == 61 and len(stored) > 3, "one file is several steps"


def test_progress_counts_passages_that_get_their_vector_later(workspace: Workspace) -> None:
    workspace.write_items("memory/long.md", [f"{number} " + "word " * 200 for number in range(60)])
    workspace.synced(FailingEmbedder(EmbedderUnavailable("It is gone. Get it.")))
    seen: list[SyncProgress] = []
    workspace.index(HashEmbedder()).sync(on_progress=seen.append)
    assert seen[-1].passages == seen[-1].total_passages == 60


@every_store
@pytest.mark.parametrize("stop", [2, 3, 4, 5])
def test_a_huge_file_is_stored_in_slices(workspace: Workspace, stop: int) -> None:
    embedder = CountingEmbedder()
    huge = workspace.write_items("memory/huge.md", [f"line number {n}" for n in range(5 * BATCH_TEXTS + 9)])
    time.sleep(0.06)
    index = workspace.index(embedder)
    with pytest.raises(SyncCancelled):
        index.sync(cancelled=after(stop))
    stored = len(embedder.documents)
    assert stored % BATCH_TEXTS == 0
    assert index.status().pending == 1, "a file that is stored in part is not done"
    report = index.sync()
    assert sum(counted(report)) == 1 and report.unchanged == 0
    assert len(embedder.documents) == len(set(embedder.documents)) == 5 * BATCH_TEXTS + 9
    held = passages_of(workspace.store(), "memory/huge.md")
    assert [known.passage.start_line for known in held] == list(range(1, len(held) + 1))
    assert counted(index.sync()) == (0, 0, 0, 1)
    huge.unlink()
    index.sync()
    assert dump(index) == []


def test_a_killed_sync_goes_on_where_it_stopped(workspace: Workspace) -> None:
    for number in range(12):
        workspace.write_items(f"memory/{number:02}.md", [f"line {number} {n}" for n in range(260)])
    workspace.write_items("memory/99.md", [f"slice {n}" for n in range(4 * BATCH_TEXTS)])
    code = """
import sys, time
from pathlib import Path
from indexer import Index
from indexer.testing import HashEmbedder
class Slow(HashEmbedder):
    def embed_documents(self, texts):
        print(len(texts), flush=True)
        return super().embed_documents(texts)
Index(Path(sys.argv[1]), Slow()).sync()
"""
    embedded = 0
    for batches in (4, 5, 3):
        run = subprocess.Popen([sys.executable, "-c", code, str(workspace.root)], stdout=subprocess.PIPE, text=True)
        assert run.stdout is not None
        for _ in range(batches):
            embedded += int(run.stdout.readline() or 0)
        run.send_signal(signal.SIGKILL)
        run.communicate()
    embedder = CountingEmbedder()
    index = workspace.synced(embedder)
    total = 12 * 260 + 4 * BATCH_TEXTS
    # Of each run, one batch at most was embedded and not stored.
    assert len(embedder.documents) <= total - (embedded - 3 * 520)
    held = dump(index)
    (workspace.root / "index.sqlite").unlink()
    assert held == dump(workspace.synced(HashEmbedder()))


BAD: dict[str, tuple[bytes, str]] = {
    "memory/latin.md": (b"gr\xfc\xdfe", "not UTF-8"),
    "memory/wide.md": ("- x".encode("utf-16"), "UTF-16"),
    "memory/large.md": (b"- x\n" * 3000, "more than the limit"),
}


@every_store
def test_bad_files_are_named_and_the_rest_goes_on(workspace: Workspace) -> None:
    index = workspace.index(HashEmbedder(), max_file_bytes=10_000)
    for path in BAD:
        workspace.write_items(path, [f"earlier words of {path}"])
    workspace.write_items("memory/good.md", ["good"])
    index.sync()
    for path, (raw, _) in BAD.items():
        workspace.write(path, raw)
    workspace.write_items("memory/later.md", ["later"])
    for _ in range(3):
        report = index.sync()
        assert {path: reason in reasons(report)[path] for path, (_, reason) in BAD.items()} == dict.fromkeys(BAD, True)
        assert len(report.failed) == 3
        assert {failure.path for failure in index.status().failed} == set(BAD)
        assert index.status().pending == 0, "it failed, and is not to be done"
        assert all(f"earlier words of {path}" in texts(index, "earlier words", limit=9) for path in BAD)
    assert counted(report) == (0, 0, 0, 2)
    for path in BAD:
        workspace.write_items(path, [f"mended {path}"])
    assert index.sync().failed == ()
    assert index.status().failed == ()
    assert not any("earlier" in text for text in texts(index, "earlier words", limit=9))


@every_store
def test_a_file_that_never_was_good(workspace: Workspace) -> None:
    workspace.write("memory/bad.md", b"\xff")
    index = workspace.index(HashEmbedder())
    for _ in range(2):
        assert set(reasons(index.sync())) == {"memory/bad.md"}
    (workspace.root / "memory/bad.md").unlink()
    assert counted(index.sync()) == (0, 0, 1, 0)
    assert index.status().failed == ()


def test_what_may_not_be_read_is_named_and_stays_searchable(workspace: Workspace) -> None:
    for path in ("memory/file.md", "memory/folder/below.md", "memory/open.md"):
        workspace.write_items(path, [f"words in {path}"])
    reachable(workspace.root)
    workspace.synced(HashEmbedder()).close()
    for entry in (workspace.root, *workspace.root.rglob("*")):
        entry.chmod(0o777)
    (workspace.root / "memory/file.md").chmod(0)
    (workspace.root / "memory/folder").chmod(0)
    code = """
from pathlib import Path
from indexer import Index
from indexer.testing import HashEmbedder
drop()
index = Index(Path(sys.argv[1]), HashEmbedder())
for _ in range(2):
    report = index.sync()
    print([f.path for f in report.failed], report.removed, sorted(h.path for h in index.search("words in").hits))
"""
    try:
        printed = run_unprivileged(code, workspace.root).splitlines()
    finally:
        (workspace.root / "memory/folder").chmod(0o755)
    everything = ["memory/file.md", "memory/folder/below.md", "memory/open.md"]
    assert printed == [f"{['memory/file.md', 'memory/folder']} 0 {everything}"] * 2


@every_store
def test_links_are_not_followed(workspace: Workspace, tmp_path: Path) -> None:
    workspace.write_items("memory/a.md", ["inside"])
    index = workspace.synced(HashEmbedder())
    (tmp_path / "secret.md").write_text("- outside")
    (workspace.root / "memory/link.md").symlink_to(tmp_path / "secret.md")
    (workspace.root / "memory/a.md").unlink()
    (workspace.root / "memory/a.md").symlink_to(tmp_path / "secret.md")
    assert counted(index.sync()) == (0, 0, 1, 0)
    assert texts(index, "outside inside") == []


def test_what_is_deleted_leaves_no_trace(workspace: Workspace) -> None:
    ordinary = [f"ordinary line {n}" for n in range(100)]
    workspace.write_items("memory/a.md", ordinary)
    workspace.write("memory/b.md", "# Project Xylotomous\n\n- Wombatina: zyxomatic\n- Wombatina: hunter2ing\n")
    workspace.write_items("memory/c.md", [*ordinary[:3], "Quokkatown: grumblesome", "Quokkatown: again"])
    index = workspace.synced(HashEmbedder())
    index.search("wombatina")
    (workspace.root / "memory/b.md").unlink()
    workspace.write_items("memory/c.md", ordinary[:3])
    index.sync()
    index.scrub()
    for file in workspace.index_files():
        raw = file.read_bytes().lower()
        for trace in (b"xylotom", b"wombatin", b"zyxomat", b"hunter2", b"quokkatown", b"grumbl"):
            assert trace not in raw, (file.name, trace)
    counts = row_counts(workspace.root / "index.sqlite")
    assert (counts["files"], counts["passages"], counts["vectors"], counts["labels"]) == (2, 103, 103, 0)


def with_small_files(workspace: Workspace, folders: int) -> Index:
    for folder in range(folders):
        (workspace.root / f"memory/{folder:02}").mkdir(parents=True)
        for number in range(100):
            (workspace.root / f"memory/{folder:02}/{number:02}.md").write_bytes(
                b"- tea %d\n- milk %d\n" % (folder, number)
            )
    return workspace.index(None)


@pytest.mark.parametrize("folders", [32])
def test_thousands_of_small_files(workspace: Workspace, tmp_path: Path, folders: int) -> None:
    few, many = with_small_files(Workspace(tmp_path / "few"), folders // 4), with_small_files(workspace, folders)
    few.sync()
    assert counted(many.sync()) == (folders * 100, 0, 0, 0)
    time.sleep(0.06)
    for index in (few, many):
        index.sync()
    assert counted(many.sync()) == (0, 0, 0, folders * 100)
    assert_costs_at_most(8, many.sync, few.sync)
    hits = many.search(f"tea {folders - 1}", limit=60).hits
    assert {hit.passage.text for hit in hits[:1]} == {f"tea {folders - 1}"}


@pytest.mark.parametrize("error", [EmbedderUnavailable("It is gone. Get it."), EmbeddingError("It failed. Try again.")])
def test_an_embedder_that_fails_leaves_text_and_is_made_up_for(workspace: Workspace, error: EmbeddingError) -> None:
    for number in range(4):
        workspace.write_items(f"memory/{number}.md", [f"line {number} {n}" for n in range(300)])
    failing = workspace.index(FailingEmbedder(error, calls=2))
    report = failing.sync()
    assert report.added == 4 and report.failed == ()
    assert report.degraded == (f"vector: {error}",)
    assert report.embedded == 600
    counts = failing.status().counts
    assert counts is not None and (counts.passages, counts.embedded) == (1200, 600)
    assert (failing.status().pending, failing.status().unembedded) == (0, 600)
    assert texts(failing, "line 3 299")[0] == "line 3 299"

    assert workspace.synced(FailingEmbedder(error)).status().unembedded == 600, (
        "it is tried again, and stays to be done"
    )
    embedder = CountingEmbedder()
    mended = workspace.index(embedder)
    report = mended.sync()
    assert report.degraded == ()
    assert len(embedder.documents) == report.embedded == 600
    assert counted(report) == (0, 0, 0, 4)
    assert counted(mended.sync()) == (0, 0, 0, 4)
    held = dump(mended)
    (workspace.root / "index.sqlite").unlink()
    assert held == dump(workspace.synced(HashEmbedder()))


class SpoiltEmbedder(HashEmbedder):
    """Makes something else of the vectors that it gives, until it is mended."""

    def __init__(self, spoil: Callable[[Vectors], Vectors]) -> None:
        super().__init__(16)
        self.spoil: Callable[[Vectors], Vectors] | None = spoil

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        made = super().embed_documents(texts)
        return self.spoil(made) if self.spoil else made


def with_row(value: float) -> Callable[[Vectors], Vectors]:
    """One vector, of the second text, has this value throughout."""

    def spoil(made: Vectors) -> Vectors:
        made[1] = value
        return made

    return spoil


@every_store
@pytest.mark.parametrize(
    ("spoil", "left", "said"),
    [
        (lambda made: made[:3], 0, "hash gave 3 vectors for 5 texts"),
        (lambda made: np.concatenate([made, made]), 0, "hash gave 10 vectors for 5 texts"),
        (lambda made: made[:0], 0, "hash gave 0 vectors for 5 texts"),
        (lambda made: made[:, :7], 0, "vectors of 7 numbers, and of 16 before"),
        (lambda made: made[0], 0, "16 vectors for 5 texts"),
        (with_row(float("nan")), 4, "1 vectors for 5 texts that are not finite or have no length"),
        (with_row(float("inf")), 4, "1 vectors for 5 texts that are not finite or have no length"),
        (with_row(0.0), 4, "1 vectors for 5 texts that are not finite or have no length"),
        (lambda made: made * np.float32(0), 0, "5 vectors for 5 texts that are not finite or have no length"),
    ],
    ids=["fewer", "more", "none", "other length", "one row", "nan", "infinite", "zero", "all zero"],
)
def test_what_is_no_vector_is_never_stored(
    workspace: Workspace, spoil: Callable[[Vectors], Vectors], left: int, said: str
) -> None:
    workspace.write_items("memory/a.md", [f"quokka number {n}" for n in range(5)])
    embedder = SpoiltEmbedder(spoil)
    index = workspace.index(embedder)
    report = index.sync()
    assert report.added == 1
    assert report.embedded == left
    assert len(report.degraded) == 1
    assert said in report.degraded[0]
    assert "quokka" not in report.degraded[0]
    store = workspace.store()
    _, vectors = store.vectors(None)
    assert len(vectors) == left
    assert np.isfinite(vectors).all()
    assert len(index.search("quokka", limit=9, mode="text").hits) == 5
    assert len(index.search("quokka number 1", limit=9).hits) == 5
    embedder.spoil = None
    mended = index.sync()
    assert mended.degraded == ()
    assert mended.embedded == 5 - left
    assert len(store.vectors(None)[0]) == 5
    store.close()


@every_store
def test_a_vector_of_another_length_than_one_is_stored_as_if_it_were(workspace: Workspace) -> None:
    workspace.write_items("memory/a.md", ["one", "two"])
    workspace.synced(SpoiltEmbedder(lambda made: made * np.float32(40)))
    store = workspace.store()
    _, vectors = store.vectors(None)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-6)
    store.close()


@every_store
def test_many_files_are_noted_and_forgotten_together(workspace: Workspace) -> None:
    files = [workspace.write_items(f"memory/{n:03}.md", [f"number {n}", "alike"]) for n in range(450)]
    index = workspace.synced()
    store = workspace.store()
    for file in files:
        make_old(file)
    before = store.head().revision
    assert counted(index.sync()) == (0, 0, 0, 450)
    assert store.head().revision - before == 1
    assert {unpack_stat(state.version)[1] for state in store.file_states().values()} == {LONG_AGO_NS}
    for file in files[1:]:
        file.unlink()
    before = store.head().revision
    assert counted(index.sync()) == (0, 0, 449, 1)
    assert store.head().revision - before <= 5
    assert sorted(texts(index, "number alike")) == ["alike", "number 0"]
    store.check()
    store.close()


@every_store
def test_a_long_file_is_stored_in_short_writes_without_a_model_too(workspace: Workspace) -> None:
    long = "word " * 230
    workspace.write("memory/a.md", "\n\n".join(f"{n} {long}" for n in range(700)))
    seen: list[SyncProgress] = []
    workspace.index().sync(on_progress=seen.append)
    stored = [progress.passages for progress in seen]
    assert stored[-1] == 700
    assert max(np.diff([0, *stored])) * len(long) < 300_000


@every_store
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_any_edits_end_in_the_index_that_a_fresh_one_has(workspace: Workspace, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    index = workspace.synced(HashEmbedder())
    for number in range(12):
        for _ in range(3):
            edit(workspace, chance, number)
            day = workspace.root / "memory/2026-11-20.md"
            with open(day, "a") as stream:
                stream.write(
                    chance.choice(["## 14:0%d\n\n- entry\n", "- more %d\n", "\n# 2026-11-0%d\n", "Ann: %d\n"]) % number
                )
        index.sync()
        fresh_root = tmp_path / f"fresh-{number}"
        shutil.copytree(workspace.root, fresh_root, ignore=shutil.ignore_patterns("index.sqlite*"))
        fresh = Index(fresh_root, HashEmbedder())
        fresh.sync()
        assert dump(index) == dump(fresh)
        fresh.close()
    index.close()


SYNC = """
import sys
from pathlib import Path
from indexer import Index
from indexer.testing import HashEmbedder
index = Index(Path(sys.argv[1]), HashEmbedder())
for number in range(int(sys.argv[3])):
    for path in ("memory/shared.md", f"memory/{sys.argv[2]}.md"):
        with open(Path(sys.argv[1]) / path, "a") as stream:
            stream.write(f"- line {number} of {sys.argv[2]}\\n")
    index.sync()
"""


def test_two_processes_sync_at_once(workspace: Workspace) -> None:
    for number in range(6):
        workspace.write_items(f"memory/{number}.md", [f"line {number} {n}" for n in range(100)])
    runs = [
        subprocess.Popen(
            [sys.executable, "-c", SYNC, str(workspace.root), name, "12"], stderr=subprocess.PIPE, text=True
        )
        for name in ("first", "second")
    ]
    for run in runs:
        _, complaint = run.communicate(timeout=240)
        assert run.returncode == 0, complaint
    index = workspace.synced(HashEmbedder())
    held = dump(index)
    assert sum(1 for row in held if row[0] == "memory/shared.md") == 25
    for file in workspace.index_files():
        file.unlink()
    assert held == dump(workspace.synced(HashEmbedder()))


class Interrupted(HashEmbedder):
    """Calls something at each batch: what it is of has been read, and is not stored yet."""

    def __init__(self, call: Callable[[], None]) -> None:
        super().__init__()
        self._call = call

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        self._call()
        return super().embed_documents(texts)


@every_store
def test_what_stays_in_a_file_is_found_all_the_time_while_others_replace_it(workspace: Workspace) -> None:
    other, found = workspace.index(HashEmbedder()), list[list[str]]()
    workspace.write_items("memory/a.md", ["the quokka sleeps", "the combination is 4711"])
    other.sync()

    def replace_file() -> None:
        found.append(texts(other, "quokka")[:1])
        number = len(found)
        if number <= 3:
            file = workspace.write_items("memory/new.md", ["the quokka sleeps", f"line {number}"])
            file.rename(workspace.root / "memory/a.md")

    index = workspace.index(Interrupted(replace_file))
    workspace.write_items("memory/a.md", ["the quokka sleeps", "the combination is 4711", "line 0"])
    assert index.sync(["memory/a.md"]).degraded == ()
    assert found == [["the quokka sleeps"]] * 4
    assert sorted(texts(other, "the quokka sleeps line 4711")) == ["line 3", "the quokka sleeps"]
    other.close()
    index.close()


@every_store
def test_what_is_new_and_erased_while_it_is_indexed_does_not_stay(workspace: Workspace) -> None:
    def erase() -> None:
        (workspace.root / "memory/a.md").unlink()
        assert workspace.synced(HashEmbedder()).status().counts

    workspace.write_items("memory/b.md", ["the quokka sleeps"])
    workspace.synced(HashEmbedder()).close()
    workspace.write_items("memory/a.md", ["the combination is 4711"])
    index = workspace.index(Interrupted(erase))
    index.sync(["memory/a.md"])
    assert texts(index, "combination 4711") == ["the quokka sleeps"] and not index.passages_of(["memory/a.md"])
    assert not [file for file in workspace.index_files() if b"4711" in file.read_bytes()]
    index.close()


@every_store
def test_a_file_that_others_change_again_and_again_is_named(workspace: Workspace) -> None:
    def change() -> None:
        other.sync()
        lines = (workspace.root / "memory/a.md").read_text()
        workspace.write("memory/a.md", f"{lines}- line {len(lines)}\n")

    workspace.write_items("memory/a.md", ["the quokka sleeps"])
    index, other = workspace.index(Interrupted(change)), workspace.index(HashEmbedder())
    [reason] = index.sync(["memory/a.md"]).degraded
    assert reason.startswith("index: others changed memory/a.md again and again meanwhile.")
    other.close()
    index.close()


@every_store
def test_a_file_that_grows_while_it_is_indexed(workspace: Workspace) -> None:
    file = workspace.write_items("memory/a.md", ["start"])
    code = """
import sys
for number in range(3000):
    with open(sys.argv[1], "a") as stream:
        stream.write(f"- line {number}\\n")
"""
    index = workspace.index(None)
    writer = subprocess.Popen([sys.executable, "-c", code, str(file)])
    while writer.poll() is None:
        for failure in index.sync().failed:
            assert "changes while it is read" in failure.reason
    index.sync()
    counts = index.status().counts
    assert counts is not None and counts.passages == 3001


LOG = "sessions/talk.jsonl"


def held_texts(index: Index, path: str = LOG) -> list[str]:
    return [known.passage.text for known in passages_of(index._store, path)]


@every_store
def test_sessions_are_added_grow_and_go(workspace: Workspace) -> None:
    embedder = CountingEmbedder()
    workspace.write_items("MEMORY.md", ["red"])
    log = write_log(workspace.root, "the quokka sleeps", "小袋鼠在睡觉")
    index = workspace.index(embedder)
    assert counted(index.sync()) == (2, 0, 0, 0)
    assert sorted(embedder.documents) == ["red", "the quokka sleeps", "小袋鼠在睡觉"]
    embedder.documents.clear()

    log.append(turns("a wombat digs"))
    report = index.sync([LOG])
    assert counted(report) == (0, 1, 0, 0)
    assert embedder.documents == ["a wombat digs"]
    assert report.embedded == 1
    assert held_texts(index) == ["the quokka sleeps", "小袋鼠在睡觉", "a wombat digs"]
    (hit,) = index.search("小袋鼠", limit=1).hits
    assert (hit.path, hit.source, hit.passage.start_line, hit.passage.end_line) == (LOG, "sessions", 3, 3)

    (workspace.root / LOG).unlink()
    assert counted(index.sync([LOG])) == (0, 0, 1, 0)
    assert texts(index, "wombat") == ["red"]
    assert [row[0] for row in dump(index)] == ["MEMORY.md", "MEMORY.md"]


@every_store
def test_a_session_that_grows_ends_as_in_a_fresh_index(workspace: Workspace, tmp_path: Path) -> None:
    log = write_log(workspace.root, "Anna: one?", "Ben: two", "安娜：三")
    index = workspace.synced(HashEmbedder())
    for contents in (["Anna: four"], ["安娜：五？", "六"], ["2023-05-08 Ben: seven", "eight " * 500], ["Anna: four"]):
        log.append(turns(*contents))
        index.sync([LOG])
    shutil.copytree(workspace.root / "sessions", tmp_path / "fresh" / "sessions")
    fresh = Index(tmp_path / "fresh", HashEmbedder())
    fresh.sync()
    assert dump(index) == dump(fresh)


@every_store
@pytest.mark.parametrize("knows", [True, False])
def test_a_session_changed_before_its_end_is_read_anew(workspace: Workspace, knows: bool) -> None:
    log = write_log(workspace.root, "one", "two", "三")
    index = workspace.synced(HashEmbedder())
    log.append(turns("four"))
    index.sync()
    raw = (workspace.root / LOG).read_bytes()
    (workspace.root / LOG).write_bytes(raw.replace(b'"two"', b'"TWO"'))
    log.append(turns("five"))
    (index if knows else workspace.index(HashEmbedder())).sync()
    assert held_texts(index) == ["one", "TWO", "三", "four", "five"]
    trim(log, 3)
    index.sync()
    assert held_texts(index) == ["三", "four", "five"]
    log.restore_trim()
    index.sync()
    assert held_texts(index) == ["one", "TWO", "三", "four", "five"]
    dump(index)


@every_store
def test_two_indexes_take_turns_with_a_session(workspace: Workspace) -> None:
    log = write_log(workspace.root, "start")
    both = [workspace.index(HashEmbedder()), workspace.index(HashEmbedder())]
    for number in range(8):
        log.append(turns(f"Anna: {number}", f"小明：{number}"))
        both[number % 3 % 2].sync([LOG])
        dump(both[0])
    expected = [passage.text for passage in split_transcript((workspace.root / LOG).read_bytes())]
    assert held_texts(both[0]) == expected


@every_store
def test_a_half_written_batch_is_indexed_when_it_is_whole(workspace: Workspace) -> None:
    lines = talks.batches(turns("one"), turns("two", "三"))
    index = workspace.index(HashEmbedder())
    for end, held in ((2, ["one"]), (3, ["one"]), (4, ["one", "two", "三"])):
        workspace.write(LOG, b"".join(lines[:end]))
        assert index.sync([LOG]).failed == ()
        assert held_texts(index) == held
    workspace.write(LOG, b"".join(lines) + b'{"seq":5,"ba')
    assert index.sync([LOG]).failed == ()
    assert held_texts(index) == ["one", "two", "三"]


@every_store
def test_a_damaged_session_is_no_failure(workspace: Workspace) -> None:
    header, one, _, three = talks.batches(*([m] for m in turns("one", "two", "三")))
    workspace.write(LOG, header + one + b"\xff\xfe\x00 damaged\n" + three)
    workspace.write("sessions/foreign.jsonl", b'{"role":"user","content":"of another program"}\n')
    workspace.write("sessions/empty.jsonl", b"")
    index = workspace.index(HashEmbedder())
    (failure,) = index.sync().failed
    assert failure.path == "sessions/foreign.jsonl" and "format that is not known" in failure.reason
    assert held_texts(index) == ["one", "三"]
    assert index.status().failed == (failure,)


@every_store
def test_logs_have_a_limit_of_their_own(workspace: Workspace) -> None:
    workspace.write(LOG, b"".join(talks.batches(turns("word " * 100))))
    workspace.write("memory/a.md", "word " * 100)
    small = workspace.index(HashEmbedder(), max_file_bytes=100)
    assert [failure.path for failure in small.sync().failed] == ["memory/a.md"]
    smaller = workspace.index(HashEmbedder(), max_log_bytes=100)
    failed = reasons(smaller.sync(full=True))
    assert list(failed) == [LOG] and "more than the limit of 100" in failed[LOG]


@every_store
def test_sessions_can_be_left_out(workspace: Workspace) -> None:
    workspace.write_items("MEMORY.md", ["red"])
    write_log(workspace.root, "blue")
    with_sessions = workspace.synced(HashEmbedder())
    assert sorted(texts(with_sessions, "any")) == ["blue", "red"]
    without = Index(FileSource(workspace.root, sessions=False), HashEmbedder(), store=workspace.store())
    assert without.status().pending == 1
    assert counted(without.sync()) == (0, 0, 1, 1)
    assert texts(without, "any") == ["red"]
    assert without.status().pending == 0
    with pytest.raises(SourceMissing, match="session log"):
        without.sync([LOG])
    assert counted(without.sync([LOG], missing_ok=True)) == (0, 0, 0, 0)
    assert counted(with_sessions.sync([LOG])) == (1, 0, 0, 0)


@every_store
def test_paths_name_sessions_and_their_folder(workspace: Workspace) -> None:
    workspace.write_items("memory/a.md", ["one"])
    write_log(workspace.root, "two")
    write_log(workspace.root, "三", session_id="other")
    index = workspace.index(HashEmbedder())
    assert counted(index.sync([LOG, "memory/a.md"])) == (2, 0, 0, 0)
    assert counted(index.sync(["sessions"])) == (1, 0, 0, 1)
    with pytest.raises(SourceMissing):
        index.sync(["sessions/none.jsonl"])


@every_store
def test_vectors_that_a_grown_session_lacks_are_made_up_for(workspace: Workspace) -> None:
    log = write_log(workspace.root, "one", "二")
    failing = FailingEmbedder(EmbeddingError("It is away. Wait."), calls=1)
    index = workspace.index(failing)
    index.sync()
    for content in ("three", "四"):
        log.append([message(content)])
        assert index.sync([LOG]).degraded
    failing.calls = 9
    log.append([message("five")])
    index.sync([LOG])
    store = workspace.store()
    assert store.passages(Unembedded(1)) == {}
    store.close()
    assert held_texts(index) == ["one", "二", "three", "四", "five"]
    dump(index)


@every_store
def test_a_long_session_is_stored_in_slices(workspace: Workspace) -> None:
    log = write_log(workspace.root, *(f"item {n}" for n in range(2 * BATCH_TEXTS + 10)))
    index = workspace.index(HashEmbedder())
    with pytest.raises(SyncCancelled):
        # Every passage is one look, and so is every slice.
        index.sync(cancelled=after(2 * BATCH_TEXTS + 10 + 2))
    counts = index.status().counts
    assert counts is not None and 0 < counts.passages < 2 * BATCH_TEXTS
    log.append(turns("最后"))
    index.sync([LOG])
    assert held_texts(index) == [f"item {n}" for n in range(2 * BATCH_TEXTS + 10)] + ["最后"]
    dump(index)


@every_store
def test_ten_more_messages_cost_no_second_reading(workspace: Workspace) -> None:
    log = write_log(workspace.root, *(f"message {n}" for n in range(300)))
    index = workspace.synced(HashEmbedder())
    seen = list[int]()
    log.append(turns(*(f"more {n}" for n in range(10))))
    report = index.sync([LOG], on_progress=lambda progress: seen.append(progress.passages))
    assert (seen[-1], report.embedded + report.reused) == (10, 10)
