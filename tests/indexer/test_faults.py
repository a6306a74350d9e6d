"""What can happen to the packed part of a large index: searches answer, and the status says what is wrong."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from indexer import Index, Mode, SearchFilter, StoreCorrupt, StoreError, StoreReadOnly
from indexer.stores.base import FileWrite, TermEntries, passages_of
from indexer.stores.sqlite import SqliteSegments, SqliteStore
from indexer.testing import HashEmbedder
from indexer.types import Vectors
from tests.indexer.sources.test_scan import reachable
from tests.indexer.workspace import TODAY, Workspace, make_old, run_python, run_unprivileged
from tests.waiting import until

QUESTION, ANSWER = "quokka number3x4", "On day 3 the quokka number3x4 was seen behind the greenhouse."


def index_of(workspace: Workspace, *, pack_passages: int = 0) -> Index:
    return Index(workspace.root, HashEmbedder(), pack_passages=pack_passages, today=lambda: TODAY)


def fill(workspace: Workspace, *, items: int = 20) -> None:
    for day in range(1, 6):
        texts = [f"On day {day} the quokka number{day}x{n} was seen behind the greenhouse." for n in range(items)]
        make_old(workspace.write_items(f"memory/2026-11-{day:02}.md", texts))


@pytest.fixture
def packed(workspace: Workspace) -> Workspace:
    """A workspace whose index is packed."""
    fill(workspace)
    index = index_of(workspace)
    assert index.sync().degraded == ()
    assert (index.status().packed, index.status().slow) == (100, "")
    index.close()
    return workspace


def pack_of(workspace: Workspace) -> Path:
    (found,) = workspace.root.glob("*.pack")
    return found


def settle(index: Index) -> None:
    """Let it note that no file has changed within the grain of the clock: then it has nothing to write."""
    time.sleep(0.1)
    index.sync()


def answer(index: Index) -> str:
    return index.search(QUESTION, limit=1).hits[0].passage.text


def until_packed(index: Index) -> None:
    """Wait for a packing in the background."""
    until(lambda: bool(index.status().packed))


def test_an_index_without_its_packed_part_is_slow_and_says_so(packed: Workspace) -> None:
    pack_of(packed).unlink()
    index = index_of(packed)
    assert index.status().slow == (
        "index: none of its 100 passages is packed, so searches are slower. Run `memory-service reindex`."
    )
    assert index_of(packed, pack_passages=100).status().slow == "", "a small one need not be packed"
    assert index.sync().degraded == ()
    assert (index.status().packed, index.status().slow, answer(index)) == (100, "", ANSWER)
    index.close()


@pytest.mark.parametrize("content", [b"", b"# Notes\n", b"\0" * 9000, None], ids=["empty", "text", "zeros", "other"])
def test_a_file_that_is_none_of_it_is_named_and_made_anew(
    packed: Workspace, tmp_path: Path, content: bytes | None
) -> None:
    if content is None:
        other = Workspace(tmp_path / "other")
        fill(other)
        index = index_of(other)
        index.sync()
        index.close()
        content = pack_of(other).read_bytes()
    pack_of(packed).write_bytes(content)
    index = index_of(packed)
    assert "as index.sqlite.pack is damaged, or of another index. Run" in index.status().slow
    assert answer(index) == ANSWER
    index.sync()
    assert (index.status().packed, index.status().slow, answer(index)) == (100, "", ANSWER)
    index.close()


CUT = """
import sys
from pathlib import Path
from indexer import Index
from indexer.testing import HashEmbedder
from indexer.types import Vectors
index = Index(Path(sys.argv[1]), HashEmbedder(), pack_passages=0)
index.search("quokka")
(pack,) = Path(sys.argv[1]).glob("*.pack")
with open(pack, "r+b") as stream:
    stream.truncate(int(sys.argv[2]))
print(index.search("quokka number3x4", limit=1).hits[0].passage.text)
index.sync()
print(index.search("quokka number3x4", limit=1).hits[0].passage.text, index.status().packed)
"""


@pytest.mark.parametrize("size", [0, 12_000])
def test_one_that_is_cut_short_in_use_does_not_end_the_process(packed: Workspace, size: int) -> None:
    assert pack_of(packed).stat().st_size > size
    assert run_python(CUT, packed.root, size).splitlines() == [ANSWER, f"{ANSWER} 100"]


def test_one_whose_bytes_changed_is_found_out(packed: Workspace) -> None:
    pack = pack_of(packed)
    whole = pack.read_bytes()
    start = whole.index(b"\0" * 8)
    for seed in range(5):
        chance, damaged = random.Random(seed), bytearray(whole)
        for _ in range(len(whole) // 50):
            damaged[chance.randrange(start, len(whole))] ^= 1 << chance.randrange(8)
        pack.write_bytes(damaged)
        # Nothing is packed anew under the hands of the test.
        index = index_of(packed, pack_passages=10**6)
        with pytest.raises(StoreCorrupt, match=r"packed part .* is damaged\. Delete it and run `memory-service reind"):
            index.check()
        assert len(index.search(QUESTION, limit=1).hits) <= 1, "a wrong answer, but no defect"
        index.close()
        pack.unlink(missing_ok=True)
    index = index_of(packed)
    index.sync()
    index.check()
    assert answer(index) == ANSWER
    index.close()


def test_one_that_leads_nowhere_is_done_without(packed: Workspace) -> None:
    """Every row number that is out of bounds ends a search with an IndexError."""
    whole = pack_of(packed).read_bytes()
    start = whole.index(b"\0" * 8)
    pack_of(packed).write_bytes(whole[:start] + b"\x7f" * (len(whole) - start))
    index = index_of(packed)
    assert answer(index) == ANSWER
    until_packed(index)
    assert (index.status().slow, answer(index)) == ("", ANSWER)
    index.check()
    index.close()


def test_a_folder_in_its_place_is_named_by_all_who_meet_it(packed: Workspace) -> None:
    pack_of(packed).unlink()
    place = packed.root / "index.sqlite.pack"
    (place / "something").mkdir(parents=True)
    index = index_of(packed)
    (told,) = index.sync().degraded
    assert told == index.status().slow
    assert told.startswith("index: it could not be packed, searches are slower.")
    assert "(Is a directory)" in told
    assert answer(index) == ANSWER
    with pytest.raises(StoreError, match="may hold what was erased"):
        index.scrub()
    shutil.rmtree(place)
    index.scrub()
    assert index.sync().degraded == ()
    assert index.status().slow == ""
    index.close()


KILLED = """
import os, sys
from pathlib import Path
from indexer import Index
from indexer.testing import HashEmbedder
from indexer.types import Vectors
index = Index(Path(sys.argv[1]), HashEmbedder(), pack_passages=0)
{step} = lambda *_: os.kill(os.getpid(), 9)
index.sync()
"""


@pytest.mark.parametrize("step", ["os.fsync", "os.replace"])
@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_a_packing_that_is_killed_leaves_an_index_and_no_rubbish(packed: Workspace, step: str) -> None:
    pack_of(packed).unlink()
    done = subprocess.run([sys.executable, "-c", KILLED.format(step=step), str(packed.root)], check=False)
    assert done.returncode == -9
    assert len(left_over(packed)) == 1
    index = index_of(packed)
    assert answer(index) == ANSWER
    until_packed(index)
    assert left_over(packed) == []
    assert answer(index) == ANSWER
    index.close()


@pytest.mark.parametrize("day", [1, 3, 5])
def test_words_that_other_rules_made_do_not_keep_an_index_from_being_packed(packed: Workspace, day: int) -> None:
    pack_of(packed).unlink()
    store, path = packed.store(), f"memory/2026-11-{day:02}.md"
    # As a version does whose rules make other terms of the same texts.
    removed = tuple((known.key, ("another", "term")) for known in passages_of(store, path))
    revision = store.file_states([path])[path].revision
    assert not store.write([FileWrite(path=path, state=None, expected_revision=revision, removed=removed)]).refused
    store.close()
    index = index_of(packed)
    assert index.sync().degraded == ()
    assert index.status().packed == 100
    assert answer(index) == ANSWER
    index.check()
    index.close()


def test_a_damaged_packed_part_is_not_made_to_look_sound_by_an_erasure(packed: Workspace) -> None:
    pack, index = pack_of(packed), index_of(packed)
    content = bytearray(pack.read_bytes())
    content[-4_000:-3_900] = bytes(100)
    pack.write_bytes(content)
    (packed.root / "memory/2026-11-05.md").unlink()
    index.sync(["memory/2026-11-05.md"])
    index.scrub()
    assert not pack.exists(), "of what is damaged none knows what it holds"
    assert answer(index) == ANSWER
    index.sync()
    assert index.status().packed == 80
    index.check()
    index.close()


class Slow(HashEmbedder):
    """Embeds questions, and of the texts of an index so far those of one day."""

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        made = super().embed_documents(texts)
        made[["day 2" not in text and len(texts) > 1 for text in texts]] = 0
        return made


@pytest.mark.parametrize("mode", ["hybrid", "text", "vector"])
def test_a_packed_index_of_words_is_searched_while_it_takes_vectors(workspace: Workspace, mode: Mode) -> None:
    fill(workspace)
    words = Index(workspace.root, None, pack_passages=0, today=lambda: TODAY)
    words.sync()
    assert words.status().packed == 100
    words.close()
    index = Index(workspace.root, Slow(), pack_passages=1_000, today=lambda: TODAY)
    assert index.sync().embedded == 20
    assert index.status().packed == 100, "what has a vector now stands beside it"
    for question, found in ((QUESTION, ANSWER), (QUESTION.replace("3x4", "2x4"), ANSWER.replace("3", "2"))):
        if mode != "vector" or "2x4" in question:
            assert index.search(question, mode=mode, limit=1).hits[0].passage.text == found
    (workspace.root / "memory/2026-11-04.md").unlink()
    index.sync(["memory/2026-11-04.md"])
    index.scrub()
    assert len(index.search("quokka", mode=mode, limit=200).hits) == (20 if mode == "vector" else 80)
    index.close()


@pytest.mark.parametrize("mode", ["hybrid", "text", "vector"])
def test_a_filter_may_leave_packed_passages_without_vectors_alone(workspace: Workspace, mode: Mode) -> None:
    fill(workspace)
    index = Index(workspace.root, Slow(), pack_passages=0, today=lambda: TODAY)
    assert index.sync().embedded == 20
    kept = SearchFilter(path_prefix="memory/2026-11-03")
    found = index.search(QUESTION, mode=mode, filter=kept).hits
    assert [hit.passage.text for hit in found][:1] == ([] if mode == "vector" else [ANSWER])
    index.close()


def test_what_was_left_of_a_packing_goes_with_what_is_erased(packed: Workspace) -> None:
    draft = packed.write(".index.sqlite.pack.4711.tmp", "whatever it held")
    index = index_of(packed)
    index.scrub()
    assert not draft.exists()
    assert index.status().packed == 100
    index.close()


def left_over(workspace: Workspace) -> list[str]:
    return [path.name for path in workspace.root.glob(".*.tmp")]


def test_what_packings_left_goes_with_their_generation(packed: Workspace) -> None:
    packed.write(".index.sqlite.pack.4711.tmp", "of one that was killed")
    index = index_of(packed)
    for _ in range(3):
        index.sync(full=True)
    assert left_over(packed) == []
    assert [path.name for path in packed.root.glob(".*.pack.lock")] == [".index-4.sqlite.pack.lock"]
    packed.write(".index-3.sqlite.pack.4711.tmp", "of one that was killed later")
    index.scrub()
    assert left_over(packed) == []
    index.close()


class Overtaken(SqliteSegments):
    """Terms of an index that is made anew while they are read."""

    rebuild: Callable[[], object]

    def terms(self) -> Iterator[TermEntries]:
        rebuilding = threading.Thread(target=self.rebuild)
        rebuilding.start()
        rebuilding.join()
        yield from super().terms()


@pytest.mark.parametrize("earlier", [0, 1])
def test_a_packing_that_ends_after_its_generation_leaves_nothing(packed: Workspace, earlier: int) -> None:
    index = index_of(packed)
    for _ in range(earlier):
        index.sync(full=True)
    pack_of(packed).unlink()
    store = SqliteStore(packed.root / "index.sqlite")
    store.segments = slow = Overtaken(store.path, store._database)
    slow.rebuild = lambda: index.sync(full=True)
    late = Index(packed.root, HashEmbedder(), store=store, pack_passages=0, today=lambda: TODAY)
    assert late.pack() == ()
    assert [path.name for path in packed.root.glob("*.pack")] == [f"index-{earlier + 2}.sqlite.pack"]
    assert answer(late) == ANSWER
    assert late.status().packed == 100
    late.close()
    index.close()


FULL = """
import resource, signal, sys
from pathlib import Path
from indexer import Index
from indexer.testing import HashEmbedder
from indexer.types import Vectors
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000))
index = Index(Path(sys.argv[1]), HashEmbedder(), pack_passages=0)
print(*index.sync().degraded)
print(index.status().slow)
print(index.search("quokka number3x4", limit=1).hits[0].passage.text)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="this system has no limit of file sizes")
def test_a_packed_part_that_the_system_has_no_room_for(workspace: Workspace) -> None:
    fill(workspace, items=60)
    index = index_of(workspace, pack_passages=10**6)
    index.sync()
    settle(index)
    assert answer(index) == ANSWER, "a shared-memory file is there, and need not grow"
    told, status, found = run_python(FULL, workspace.root).splitlines()
    assert "it could not be packed, searches are slower" in told
    assert "File too large" in told
    assert status == told
    assert found == ANSWER
    assert left_over(workspace) == []
    index.close()


@contextmanager
def small_disk(folder: Path, megabytes: int = 4) -> Iterator[Path]:
    """A disk that is soon full."""
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("a full disk is a small file system, which root alone may mount")
    folder.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(folder)], check=False
    ).returncode:
        pytest.skip("mounting is not allowed here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_a_disk_that_runs_full_while_it_is_packed(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk:
        workspace = Workspace(disk / "w")
        fill(workspace)
        index = index_of(workspace, pack_passages=10**6)
        index.sync()
        settle(index)
        index.close()
        index = index_of(workspace)
        index.status()
        filler = disk / "filler"
        filler.write_bytes(b"x" * (shutil.disk_usage(disk).free - 16 * 1024))
        (told,) = index.sync().degraded
        assert "The disk is full" in told
        assert "Free some space" in told
        assert index.status().slow == told
        assert answer(index) == ANSWER
        assert left_over(workspace) == []
        filler.unlink()
        assert index.sync().degraded == ()
        assert (index.status().packed, index.status().slow, answer(index)) == (100, "", ANSWER)
        index.close()


NOBODYS = """
import sys
from pathlib import Path
from indexer import Index, StoreError
import indexer.engine.segments.builder
index = Index(Path(sys.argv[1]), HashEmbedder(), pack_passages=0)
index.fingerprint
index.search("quokka")
drop()
for _ in range(2):
    print(index.search("quokka number3x4", limit=1).hits[0].passage.text)
    print(index.status().packed, index.status().slow)
    try:
        print("synced", *index.sync().degraded)
    except StoreError as error:
        print(type(error).__name__)
"""


@pytest.mark.skipif(os.name == "nt", reason="permissions of POSIX")
@pytest.mark.parametrize("log", [True, False])
def test_a_large_index_in_a_folder_that_cannot_be_written(packed: Workspace, log: bool) -> None:
    reachable(packed.root)
    pack_of(packed).unlink()
    holder = index_of(packed, pack_passages=10**6)
    if log:
        answer(holder)
    else:
        holder.close()
    code = NOBODYS.replace('index.search("quokka")\n', "")
    with unwritable(packed.root):
        lines = run_unprivileged(code, packed.root).splitlines()
    assert lines[0] == lines[3] == ANSWER
    for told in (lines[1], lines[4]):
        assert told.startswith("0 index: ")
        assert "searches are slower" in told
        assert "writable" in told
    assert "writable" in lines[2] or lines[2] in (StoreReadOnly.__name__, "synced")
    holder.close()


@pytest.mark.skipif(os.name == "nt", reason="permissions of POSIX")
def test_a_packed_part_that_may_not_be_read(packed: Workspace) -> None:
    reachable(packed.root)
    pack_of(packed).chmod(0)
    with unwritable(packed.root):
        lines = run_unprivileged(NOBODYS.replace('index.search("quokka")\n', ""), packed.root).splitlines()
    assert lines[0] == lines[3] == ANSWER
    assert lines[1].startswith("0 index: ")
    pack_of(packed).chmod(0o644)
    assert index_of(packed).status().slow == ""


@contextmanager
def unwritable(folder: Path) -> Iterator[None]:
    folder.chmod(0o555)
    try:
        yield
    finally:
        folder.chmod(0o755)


WRITER = """
import sys
from pathlib import Path
from indexer import Index
from indexer.testing import HashEmbedder
from indexer.types import Vectors
root = Path(sys.argv[1])
index = Index(root, HashEmbedder(), pack_passages=0)
for number in range(6):
    (root / "memory/2026-12-01.md").write_text(f"- the wombat number{number}x99 digs\\n")
    (root / f"memory/2026-12-1{number}.md").write_text(f"- the bandicoot number{number}y99 hides\\n")
    for pack in root.glob("*.pack"):
        pack.unlink()
    index.sync()
    assert index.status().packed, index.status().slow
    print(number, flush=True)
"""


def test_what_one_process_packs_another_picks_up_and_none_answers_wrongly(packed: Workspace) -> None:
    index, failures = index_of(packed), list[str]()
    over = threading.Event()

    def search() -> None:
        while not over.is_set():
            if answer(index) != ANSWER:
                failures.append("lost")
            found = [hit.passage.text for hit in index.search("wombat bandicoot", limit=20).hits]
            if len(found) != len(set(found)):
                failures.append("twice")

    searching = threading.Thread(target=search)
    searching.start()
    command = [sys.executable, "-c", WRITER, str(packed.root)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for number in map(str.strip, process.stdout):
            # What was done over there is found here, in the packed part or beside it.
            (hit,) = index.search(f"number{number}y99 bandicoot", limit=1).hits
            assert hit.passage.text == f"the bandicoot number{number}y99 hides"
    over.set()
    searching.join(60)
    assert (process.returncode, failures) == (0, [])
    assert index.status().packed == 107
    assert [hit.passage.text for hit in index.search("wombat", limit=1).hits] == ["the wombat number5x99 digs"]
    index.close()
