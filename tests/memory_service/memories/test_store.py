from __future__ import annotations

import datetime as dt
import errno
import os
import re
import signal
import stat
import subprocess
import sys
import tempfile
import textwrap
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexer.documents.entries import fold_words, short_hash
from memory_service.errors import (
    InvalidName,
    InvalidRequest,
    NotFound,
    PreconditionFailed,
    StorageFailed,
    TooLarge,
)
from memory_service.memories.drafts import entry_draft
from memory_service.memories.entries import HeldEntry
from memory_service.memories.format import find_entries
from memory_service.memories.store import MAX_FILE_BYTES, MemoryStore
from memory_service.storage.files.document_files import FileDocuments
from tests.disk import Call, check_durable, recorded

ROOT = Path(__file__).parents[3]
NOW = dt.datetime(2026, 11, 20, 14, 32, tzinfo=ZoneInfo("Europe/Berlin"))
AT = "2026-11-20T13:32:00.000Z"
DAY = NOW.date()
TODAY = "memory/2026-11-20.md"
IN_CHILD = """
import datetime as dt, os, sys
from pathlib import Path
from memory_service.memories.store import MemoryStore
from memory_service.storage.files.document_files import FileDocuments
from memory_service.memories.drafts import entry_draft
from memory_service.errors import *
now = dt.datetime(2026, 11, 20, 14, 32, tzinfo=dt.timezone.utc)
folder = Path(sys.argv[1])
files = MemoryStore(FileDocuments(folder), now=lambda: now)
"""


@pytest.fixture
def files(tmp_path: Path) -> MemoryStore:
    return MemoryStore(FileDocuments(tmp_path / "w"), now=lambda: NOW)


def _child(code: str, folder: Path, *arguments: str) -> subprocess.Popen[str]:
    source = IN_CHILD + textwrap.dedent(code)
    command = [sys.executable, "-W", "error", "-c", source, str(folder), *arguments]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _finish(child: subprocess.Popen[str]) -> str:
    out, err = child.communicate(timeout=240)
    assert child.returncode == 0, err
    return out


def _put(folder: Path, path: str, content: str | bytes) -> Path:
    target = folder / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content.encode() if isinstance(content, str) else content)
    return target


def _hash(text: str) -> str:
    return short_hash(fold_words(text))


def _paths(gone: Sequence[HeldEntry]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(each.path for each in gone))


def _all(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# Append


def test_a_memory_is_in_the_file_of_its_day(files: MemoryStore, tmp_path: Path) -> None:
    first = files.notes.append(entry_draft("Never deploy on Fridays.", tags=("ops",), origin="user"))
    second = files.notes.append(entry_draft("one\ntwo", date=dt.date(2026, 11, 2)))
    third = files.notes.append(entry_draft("three"))
    assert (tmp_path / "w" / TODAY).read_text() == (
        "# 2026-11-20\n\n"
        f"## 14:32\n<!-- memory id={first.memory_id} origin=user at={AT} "
        f"hash={_hash('Never deploy on Fridays. #ops')} -->\n"
        "- Never deploy on Fridays. #ops\n\n"
        f"## 14:32\n<!-- memory id={third.memory_id} origin=agent at={AT} hash={_hash('three')} -->\n- three\n"
    )
    # What is noted for another day was not said on it.
    assert f"<!-- memory id={second.memory_id} origin=agent hash=" in (tmp_path / "w" / second.path).read_text()
    assert (first.path, first.start_line, first.end_line) == (TODAY, 5, 5)
    assert (second.path, second.start_line, second.end_line) == ("memory/2026-11-02.md", 5, 6)
    assert files.read(TODAY, third.start_line, 1).text == "- three\n"
    assert not first.duplicate


def test_the_day_is_that_of_the_workspace_not_of_the_server(tmp_path: Path) -> None:
    late = dt.datetime(2026, 11, 20, 23, 30, tzinfo=dt.UTC).astimezone(ZoneInfo("Asia/Shanghai"))
    appended = MemoryStore(FileDocuments(tmp_path), now=lambda: late).notes.append(entry_draft("x"))
    assert appended.path == "memory/2026-11-21.md"
    assert "## 07:30\n" in (tmp_path / appended.path).read_text()


def test_one_text_is_stored_once_a_day(files: MemoryStore, tmp_path: Path) -> None:
    first = files.notes.append(entry_draft("浇水 on  Monday", tags=("a",)))
    before = _all(tmp_path)
    again = files.notes.append(entry_draft(" 浇水 on\nMonday #a "))
    assert again.duplicate
    assert (again.memory_id, again.start_line, again.end_line) == (first.memory_id, 5, 5)
    assert _all(tmp_path) == before
    assert not files.notes.append(entry_draft("浇水 on Monday #a", date=dt.date(2026, 11, 2))).duplicate


def test_a_line_by_hand_counts_and_can_be_forgotten(files: MemoryStore, tmp_path: Path) -> None:
    target = _put(tmp_path / "w", TODAY, "Some notes\n\n- buy cake\n- call Mara\n")
    found = files.notes.append(entry_draft("buy cake"))
    assert found.duplicate and (found.start_line, found.end_line) == (3, 3)
    assert _paths(files.entries.forget(found.memory_id)) == (TODAY,)
    assert target.read_text() == "Some notes\n\n- call Mara\n"
    assert not files.notes.append(entry_draft("buy cake")).duplicate


def test_what_a_person_writes_between_appends_survives(files: MemoryStore, tmp_path: Path) -> None:
    target = tmp_path / "w" / TODAY
    files.notes.append(entry_draft("one"))
    target.write_text("x" + target.read_text()[1:] + "- by hand")
    assert files.notes.append(entry_draft("by hand")).duplicate
    second = files.notes.append(entry_draft("two"))
    assert files.read(TODAY, second.start_line, 1).text == "- two\n"
    content = target.read_text()
    assert content.startswith("x 2026-11-20\n\n## 14:32\n") and "- one\n- by hand\n\n## 14:32\n" in content
    target.write_text(content.replace("- two", "- TWO"))
    assert files.notes.append(entry_draft("TWO")).duplicate
    assert not files.notes.append(entry_draft("two")).duplicate
    target.unlink()
    assert not files.notes.append(entry_draft("one")).duplicate


def test_crlf_and_missing_last_line_end(files: MemoryStore, tmp_path: Path) -> None:
    target = _put(tmp_path / "w", TODAY, b"# Day\r\n\r\nnote")
    appended = files.notes.append(entry_draft("one\ntwo"))
    content = target.read_bytes()
    assert content.startswith(b"# Day\r\n\r\nnote\r\n\r\n## 14:32\r\n") and content.endswith(b"- one\r\n  two\r\n")
    assert content.count(b"\n") == content.count(b"\r\n")
    assert files.read(TODAY, appended.start_line, 2).text == "- one\r\n  two\r\n"
    files.entries.forget(appended.memory_id)
    assert target.read_bytes() == b"# Day\r\n\r\nnote\r\n"


def test_an_empty_file_is_a_new_one(files: MemoryStore, tmp_path: Path) -> None:
    target = _put(tmp_path / "w", TODAY, "")
    files.notes.append(entry_draft("one"))
    assert target.read_text().startswith("# 2026-11-20\n\n## 14:32\n")


def test_nothing_is_appended_to_a_file_in_another_encoding(files: MemoryStore, tmp_path: Path) -> None:
    target = _put(tmp_path / "w", TODAY, b"# Day\n\ncaf\xe9 au lait\n")
    with pytest.raises(InvalidRequest, match="line 3 shows"):
        files.notes.append(entry_draft("one"))
    assert target.read_bytes() == b"# Day\n\ncaf\xe9 au lait\n"


def test_a_write_that_was_cut_within_a_character_does_not_block_the_day(files: MemoryStore, tmp_path: Path) -> None:
    target = _put(tmp_path / "w", TODAY, b"# Day\n\n- caf\xc3")
    files.notes.append(entry_draft("one"))
    assert target.read_bytes().startswith(b"# Day\n\n- caf\n\n## 14:32\n")


TEXTS = st.lists(st.text(max_size=40).filter(lambda text: bool(re.search(r"[^\W_]", text))), min_size=1, max_size=6)


@given(TEXTS, st.booleans())
def test_forgetting_everything_leaves_nothing(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], crlf: bool
) -> None:
    folder = tmp_path_factory.mktemp("w")
    files = MemoryStore(FileDocuments(folder), now=lambda: NOW)
    if crlf:
        _put(folder, TODAY, b"by hand\r\n")
    ids = [files.notes.append(entry_draft(text)).memory_id for text in texts]
    for memory_id in dict.fromkeys(ids):
        files.entries.forget(memory_id)
    assert _all(folder) == {".locks/memory.lock": b"", **({TODAY: b"by hand\r\n"} if crlf else {})}


def test_threads_append_each_memory_once(tmp_path: Path) -> None:
    files = [MemoryStore(FileDocuments(tmp_path), now=lambda: NOW) for _ in range(2)]
    texts = [f"memory {number % 60}" for number in range(120)]
    with ThreadPoolExecutor(8) as pool:
        appended = list(pool.map(lambda number: files[number % 2].notes.append(entry_draft(texts[number])), range(120)))
    entries = find_entries((tmp_path / TODAY).read_text(), DAY)
    assert len(entries) == len({entry.memory_id for entry in entries}) == 60
    assert sum(not one.duplicate for one in appended) == 60
    for text, one in zip(texts, appended, strict=True):
        assert files[0].read(TODAY, one.start_line, 1).text == f"- {text}\n"


def test_processes_append_side_by_side(tmp_path: Path) -> None:
    code = """
    for number in range(60):
        text = f"shared {number}" if number % 3 == 0 else f"{sys.argv[2]} {number}"
        one = files.notes.append(entry_draft(text))
        print(one.memory_id, one.start_line, text, sep="\\t")
    """
    children = [_child(code, tmp_path, name) for name in ("left", "right")]
    acknowledged = [line.split("\t") for child in children for line in _finish(child).splitlines()]
    lines = (tmp_path / TODAY).read_text().split("\n")
    entries = find_entries("\n".join(lines), DAY)
    assert len(acknowledged) == 120
    assert sorted({one[0] for one in acknowledged}) == sorted(entry.memory_id for entry in entries)
    assert all(lines[int(line) - 1] == f"- {text}" for _, line, text in acknowledged)


def test_swaps_and_appends_at_the_same_time_lose_nothing(files: MemoryStore, tmp_path: Path) -> None:
    stop = threading.Event()
    target, saved = tmp_path / "w" / TODAY, 0
    files.notes.append(entry_draft("start"))

    def edit() -> None:
        nonlocal saved
        while not stop.is_set():
            page = files.read(TODAY)
            try:
                files.write(TODAY, f"{page.text}- by hand {saved}\n", if_match=page.etag)
            except PreconditionFailed:
                continue
            saved += 1

    editor = threading.Thread(target=edit)
    editor.start()
    appended = [files.notes.append(entry_draft(f"memory {number}")) for number in range(60)]
    stop.set()
    editor.join()
    lines = target.read_text().splitlines()
    assert [line for line in lines if line.startswith("- by hand")] == [f"- by hand {n}" for n in range(saved)]
    assert [line for line in lines if line.startswith("- mem")] == [f"- memory {n}" for n in range(60)]
    assert not any(one.duplicate for one in appended)


# Failing disks and dying processes


def test_an_append_that_does_not_fit_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    code = """
    import resource, signal
    files.notes.append(entry_draft("first"))
    before = (folder / "memory/2026-11-20.md").read_bytes()
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
    for write in (
        lambda: files.notes.append(entry_draft("x" * 5000)),
        lambda: files.notes.append(entry_draft("x" * 5000, date=dt.date(2026, 1, 1))),
        lambda: files.write("memory/2026-11-20.md", "x" * 5000, if_match="*"),
        lambda: files.write("memory/new.md", "x" * 5000, if_none_match=True),
    ):
        try:
            write()
        except StorageFailed as error:
            print(error)
    assert (folder / "memory/2026-11-20.md").read_bytes() == before
    assert os.listdir(folder / "memory") == ["2026-11-20.md"]
    files.notes.append(entry_draft("second"))
    """
    out = _finish(_child(code, tmp_path)).splitlines()
    assert len(out) == 4 and all("larger than the system allows" in line for line in out)
    assert len(find_entries((tmp_path / TODAY).read_text(), DAY)) == 2


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk")
def test_a_full_disk_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)], capture_output=True)
    if mounted.returncode:
        pytest.skip("this system allows no mounts")
    try:
        files = MemoryStore(FileDocuments(disk / "w"), now=lambda: NOW)
        first = files.notes.append(entry_draft("first"))
        before = _all(disk)
        for text in ("x" * 90_000, "y" * 90_000):
            with pytest.raises(StorageFailed, match=r"disk is full\. Free some space"):
                files.notes.append(entry_draft(text))
            with pytest.raises(StorageFailed, match="disk is full"):
                files.write("memory/a.md", text, if_none_match=True)
        assert _all(disk) == before
        _put(disk, "filler", b"x" * 4096 * 12)
        with pytest.raises(StorageFailed, match="disk is full"):
            files.notes.append(entry_draft("z" * 20_000))
        assert (disk / "w" / TODAY).read_bytes() == before["w/" + TODAY]
        (disk / "filler").unlink()
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        with pytest.raises(StorageFailed, match="read-only"):
            files.notes.append(entry_draft("second"))
        assert files.read(TODAY, first.start_line, 1).text == "- first\n"
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_what_was_acknowledged_outlives_kill_9(tmp_path: Path) -> None:
    code = """
    number = int(sys.argv[2])
    while True:
        one = files.notes.append(entry_draft(f"memory {number} " + "浇水" * 3000))
        os.write(1, f"{one.memory_id}\\n".encode())
        number += 1
    """
    acknowledged: list[str] = []
    for attempt in range(3):
        child = _child(code, tmp_path, str(attempt * 1_000_000))
        assert child.stdout is not None
        # From the descriptor itself: what a text stream has read ahead, `communicate` does not give.
        raw, out = b"", child.stdout.fileno()
        while raw.count(b"\n") < 20 and (piece := os.read(out, 65536)):
            raw += piece
        child.send_signal(signal.SIGKILL)
        while piece := os.read(out, 65536):
            raw += piece
        child.communicate()
        acknowledged += raw.decode().split("\n")[:-1]
    files = MemoryStore(FileDocuments(tmp_path), now=lambda: NOW)
    files.notes.append(entry_draft("afterwards"))
    found = [entry.memory_id for entry in find_entries((tmp_path / TODAY).read_bytes().decode(), DAY)]
    assert len(acknowledged) == len(set(acknowledged)) >= 60
    assert set(acknowledged) <= set(found) and len(found) == len(set(found)) <= len(acknowledged) + 4


def test_a_folder_without_permission_is_named_with_the_remedy() -> None:
    code = """
    import filelock  # it imports what another user may not read, where Python is root's own
    if os.geteuid() == 0:
        os.setgid(65534)
        os.setuid(65534)
    for use in (
        lambda: files.notes.append(entry_draft("x")),
        lambda: files.write("MEMORY.md", "x", if_match="*"),
        lambda: files.delete("MEMORY.md"),
        lambda: files.read("USER.md"),
        lambda: files.list(),
        lambda: files.entries.forget("m0123456789ab"),
    ):
        try:
            use()
        except StorageFailed as error:
            print(error)
    """
    # Not tmp_path: another user may not look into that.
    with tempfile.TemporaryDirectory() as base:
        Path(base).chmod(0o755)
        folder = Path(base, "w")
        _put(folder, "MEMORY.md", "all\n")
        _put(folder, "USER.md", "mine\n").chmod(0)
        folder.chmod(0o555)
        try:
            out = _finish(_child(code, folder)).splitlines()
        finally:
            folder.chmod(0o755)
    assert len(out) == 6 and all("permission was denied. Give the user" in line for line in out)


def test_links_are_neither_read_nor_written(files: MemoryStore, tmp_path: Path) -> None:
    outside, folder = tmp_path / "outside", tmp_path / "w"
    secret = _put(outside, "2026-11-20.md", "- secret\n")
    folder.mkdir()
    (folder / "memory").symlink_to(outside)
    (folder / "MEMORY.md").symlink_to(secret)
    uses: list[Callable[[str], object]] = [
        files.read,
        files.delete,
        lambda path: files.write(path, "x", if_match="*"),
        lambda path: files.write(path, "x", if_none_match=True),
        lambda path: files.notes.append(entry_draft("secret")),
    ]
    for path in (TODAY, "MEMORY.md", "memory/new.md"):
        for use in uses:
            with pytest.raises(InvalidName, match="symbolic link"):
                use(path)
    assert files.list() == []
    (folder / "memory").unlink()
    (folder / "memory").mkdir()
    (folder / "memory" / "2026-11-20.md").symlink_to(secret)
    with pytest.raises(InvalidName, match="symbolic link"):
        files.notes.append(entry_draft("x"))
    assert _all(outside) == {"2026-11-20.md": b"- secret\n"}


def test_a_link_in_place_of_the_lock_is_refused(files: MemoryStore, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / ".locks").symlink_to(tmp_path / "outside")
    with pytest.raises(InvalidName, match="symbolic link"):
        files.notes.append(entry_draft("x"))
    assert _all(tmp_path) == {}


# List and read


def test_a_listing_tells_what_there_is(files: MemoryStore, tmp_path: Path) -> None:
    assert files.list() == []
    folder = tmp_path / "w"
    _put(folder, "MEMORY.md", "a\nb")
    _put(folder, "memory/sub/x.MD", b"a\r\nb\rc\xe9\n\x0b\xe2\x80\xa8")
    _put(folder, "memory/2026-11-20.md", "")
    for other in ("memory/.hidden.md", "memory/a.txt", "index.sqlite", "notes.md"):
        _put(folder, other, "x")
    os.utime(folder / "MEMORY.md", (1_700_000_000, 1_700_000_000))
    listed = files.list()
    assert [(file.path, file.bytes, file.lines) for file in listed] == [
        ("MEMORY.md", 3, 2), ("memory/2026-11-20.md", 0, 0), ("memory/sub/x.MD", 12, 4),
    ]  # fmt: skip
    assert listed[0].modified_at == dt.datetime.fromtimestamp(1_700_000_000, dt.UTC)
    assert listed[0].modified_at.utcoffset() == dt.timedelta(0)
    assert listed[0].etag == files.read("MEMORY.md").etag


def test_a_listing_reads_what_changed_alone(
    files: MemoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memory_service.storage.files.document_files._TICK_SECONDS", -1.0)
    for name in ("memory/a.md", "memory/b.md"):
        _put(tmp_path / "w", name, "one")
    first = files.list()
    when = (tmp_path / "w/memory/b.md").stat().st_mtime_ns
    _put(tmp_path / "w", "memory/b.md", "two")
    os.utime(tmp_path / "w/memory/b.md", ns=(when, when))
    again = files.list()
    assert again[0] is first[0] and again[1].etag == files.read("memory/b.md").etag != first[1].etag


@pytest.mark.parametrize(
    ("start", "lines", "text", "end", "following"),
    [
        (1, None, "one\ntwo\r\nthree\rfo\x0bur\u2028\x85", 4, None),
        (1, 2, "one\ntwo\r\n", 2, 3),
        (2, 2, "two\r\nthree\r", 3, 4),
        (4, 1, "fo\x0bur\u2028\x85", 4, None),
        (5, 1, "", 4, None),
        (99, None, "", 98, None),
    ],
)
def test_lines_are_read_exactly(
    files: MemoryStore, tmp_path: Path, start: int, lines: int | None, text: str, end: int, following: int | None
) -> None:
    _put(tmp_path / "w", "MEMORY.md", "one\ntwo\r\nthree\rfo\x0bur\u2028\x85")
    part = files.read("MEMORY.md", start, lines)
    assert (part.text, part.start_line, part.end_line, part.next_start_line) == (text, start, end, following)
    assert part.total_lines == 4


@given(st.text(st.sampled_from("a\r\n\u2028é"), max_size=40), st.integers(1, 5))
def test_pages_put_together_are_the_file(tmp_path_factory: pytest.TempPathFactory, text: str, lines: int) -> None:
    folder = tmp_path_factory.mktemp("w")
    _put(folder, "MEMORY.md", text)
    files, parts, at = MemoryStore(FileDocuments(folder), now=lambda: NOW), "", 1
    while at:
        part = files.read("MEMORY.md", at, lines)
        parts, at = parts + part.text, part.next_start_line or 0
    assert parts == text


def test_a_giant_file_is_read_in_parts(files: MemoryStore, tmp_path: Path) -> None:
    _put(tmp_path / "w", "MEMORY.md", "".join(f"line {number}\r\n" for number in range(1, 900_001)))
    part = files.read("MEMORY.md", 899_000)
    assert (part.total_lines, part.end_line, part.next_start_line) == (900_000, 900_000, None)
    assert part.text.startswith("line 899000\r\n") and part.text.endswith("line 900000\r\n")
    capped = files.read("MEMORY.md", lines=5_000)
    assert (capped.end_line, capped.next_start_line) == (2_000, 2_001)


def test_what_cannot_be_read_is_told(files: MemoryStore, tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="List the files"):
        files.read("MEMORY.md")
    assert not (tmp_path / "w").exists()
    _put(tmp_path / "w", "MEMORY.md", b"a\nb\r\nc\r" + "é".encode() + b"\xff\n")
    with pytest.raises(InvalidRequest, match="line 4 shows"):
        files.read("MEMORY.md")
    for start, lines in ((0, None), (-1, 1), (1, 0)):
        with pytest.raises(InvalidRequest, match="count from 1"):
            files.read("MEMORY.md", start, lines)
    with pytest.raises(InvalidName):
        files.read("memory/../../etc/passwd")


# Write and delete


def test_a_file_is_replaced_only_by_who_saw_it(files: MemoryStore, tmp_path: Path) -> None:
    etag = files.write("memory/team/a.md", "one\r\n", if_none_match=True)
    target = tmp_path / "w/memory/team/a.md"
    assert target.read_bytes() == b"one\r\n" and files.read("memory/team/a.md").etag == etag
    target.chmod(0o640)
    newer = files.write("memory/team/a.md", "two", if_match=etag)
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    with pytest.raises(PreconditionFailed, match=f"its etag is {newer} now"):
        files.write("memory/team/a.md", "three", if_match=etag)
    with pytest.raises(PreconditionFailed, match="exists"):
        files.write("memory/team/a.md", "three", if_none_match=True)
    target.write_text("by hand")
    with pytest.raises(PreconditionFailed, match="Read it again"):
        files.write("memory/team/a.md", "three", if_match=newer)
    assert target.read_text() == "by hand"
    files.write("memory/team/a.md", "", if_match="*")
    assert target.read_bytes() == b"" and os.listdir(target.parent) == ["a.md"]


def test_a_refused_write_creates_nothing(files: MemoryStore, tmp_path: Path) -> None:
    for condition in ("*", "0" * 32):
        with pytest.raises(PreconditionFailed, match=r"no file MEMORY\.md"):
            files.write("MEMORY.md", "x", if_match=condition)
    with pytest.raises(InvalidRequest, match="one condition"):
        files.write("MEMORY.md", "x")
    with pytest.raises(InvalidRequest, match="one condition"):
        files.write("MEMORY.md", "x", if_match="*", if_none_match=True)
    for text in ("a\0", "a\ud800"):
        with pytest.raises(InvalidRequest, match="NUL"):
            files.write("MEMORY.md", text, if_none_match=True)
    with pytest.raises(TooLarge, match="Split"):
        files.write("MEMORY.md", "é" * (MAX_FILE_BYTES // 2 + 1), if_none_match=True)
    with pytest.raises(InvalidName):
        files.write("../MEMORY.md", "x", if_none_match=True)
    with pytest.raises(NotFound):
        files.delete("MEMORY.md")
    with pytest.raises(NotFound):
        files.entries.forget("m0123456789ab")
    assert list(tmp_path.iterdir()) == []


def test_of_many_writers_one_wins(files: MemoryStore) -> None:
    etag = files.write("MEMORY.md", "start", if_none_match=True)

    def write(number: int) -> bool:
        try:
            files.write("MEMORY.md", f"from {number}", if_match=etag)
        except PreconditionFailed:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        won = [number for number, done in enumerate(pool.map(write, range(24))) if done]
    assert [f"from {number}" for number in won] == [files.read("MEMORY.md").text]


def test_a_deleted_file_is_gone(files: MemoryStore, tmp_path: Path) -> None:
    files.notes.append(entry_draft("x"))
    files.delete(TODAY)
    with pytest.raises(NotFound):
        files.delete(TODAY)
    assert not files.notes.append(entry_draft("x")).duplicate


# Forget


def test_an_entry_is_erased_wherever_a_person_moved_it(files: MemoryStore, tmp_path: Path) -> None:
    folder = tmp_path / "w"
    first = files.notes.append(entry_draft("keep"))
    second = files.notes.append(entry_draft("move"))
    lines = (folder / TODAY).read_text().splitlines(keepends=True)
    copied = "".join(lines[first.end_line + 2 :])
    _put(folder, "MEMORY.md", f"# Rules\n\n{copied}\nmine\n")
    _put(folder, "memory/other.md", f"<!-- memory id={second.memory_id}0 -->\n- other, see {second.memory_id}\n")
    assert _paths(files.entries.forget(second.memory_id)) == ("MEMORY.md", TODAY)
    assert (folder / "MEMORY.md").read_text() == "# Rules\n\nmine\n"
    assert [entry.memory_id for entry in find_entries((folder / TODAY).read_text(), DAY)] == [first.memory_id]
    assert "other" in (folder / "memory/other.md").read_text()
    with pytest.raises(NotFound, match="erased before"):
        files.entries.forget(second.memory_id)
    files.entries.forget(first.memory_id)
    assert not (folder / TODAY).exists()


def test_erasing_works_in_a_file_of_any_encoding(files: MemoryStore, tmp_path: Path) -> None:
    entry = b"<!-- memory id=m0123456789ab -->\n- secret\n"
    target = _put(tmp_path / "w", "memory/notes.md", b"caf\xe9\n\n" + entry)
    target.chmod(0o600)
    files.entries.forget("m0123456789ab")
    assert target.read_bytes() == b"caf\xe9\n" and stat.S_IMODE(target.stat().st_mode) == 0o600


@pytest.mark.parametrize("memory_id", ["", "m", "../x", "m0123456789ab -->", "x" * 99, "\0"])
def test_an_unknown_memory_is_not_found(files: MemoryStore, memory_id: str) -> None:
    files.notes.append(entry_draft("x"))
    with pytest.raises(NotFound):
        files.entries.forget(memory_id)


def _no_drafts(call: Call) -> None:
    if call.path.endswith(".tmp"):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("comment", [True, False], ids=["written by the service", "written by hand"])
def test_a_full_disk_forgets_where_the_text_stands(tmp_path: Path, comment: bool) -> None:
    files = MemoryStore(FileDocuments(tmp_path), now=lambda: NOW)
    for text in ("The quokka sleeps.", "袋鼯在岸边睡觉", "The koala eats."):
        files.notes.append(entry_draft(text))
    if not comment:
        lines = [line for line in (tmp_path / TODAY).read_text().splitlines() if "memory id=" not in line]
        _put(tmp_path, TODAY, "\n".join(lines).encode())
    entries = find_entries((tmp_path / TODAY).read_text(), DAY)
    size = (tmp_path / TODAY).stat().st_size
    with recorded(tmp_path, _no_drafts) as tape:
        assert _paths(files.entries.forget(entries[1].memory_id)) == (TODAY,)
        with pytest.raises(NotFound):
            files.entries.forget(entries[1].memory_id)
    check_durable(tape)
    text = (tmp_path / TODAY).read_text()
    assert (len(text.encode()), "袋鼯" in text) == (size, False)
    assert [entry.text_hash for entry in find_entries(text, DAY)] == [entries[at].text_hash for at in (0, 2)]
    assert sorted(file.name for file in (tmp_path / "memory").iterdir()) == [Path(TODAY).name]
    files.notes.append(entry_draft("The bilby hides."))
    assert len(find_entries((tmp_path / TODAY).read_text(), DAY)) == 3


def test_a_full_disk_and_a_kill_leave_an_entry_that_can_be_forgotten(tmp_path: Path) -> None:
    files = MemoryStore(FileDocuments(tmp_path), now=lambda: NOW)
    made = files.notes.append(entry_draft("The quokka sleeps.\n\nBehind the greenhouse."))
    files.notes.append(entry_draft("The koala eats."))

    def killed(call: Call) -> None:
        _no_drafts(call)
        if call.name == "fsync" and call.path == TODAY:
            raise KeyboardInterrupt

    with recorded(tmp_path, killed), pytest.raises(KeyboardInterrupt):
        files.entries.forget(made.memory_id)
    text = (tmp_path / TODAY).read_text()
    assert ("quokka" in text, "greenhouse" in text, made.memory_id in text) == (False, False, True)
    assert _paths(MemoryStore(FileDocuments(tmp_path), now=lambda: NOW).entries.forget(made.memory_id)) == (TODAY,)
    assert made.memory_id not in (tmp_path / TODAY).read_text()


def test_a_full_disk_and_an_editor_that_saves_meanwhile(tmp_path: Path) -> None:
    files = MemoryStore(FileDocuments(tmp_path), now=lambda: NOW)
    made = files.notes.append(entry_draft("The quokka sleeps."))
    files.notes.append(entry_draft("The koala eats."))
    page = (tmp_path / TODAY).read_bytes()
    saves = iter([b"- mine\n", b"- mine too\n"])

    def edited(call: Call) -> None:
        if call.path == TODAY and call.name in ("open", "write", "fsync") and (more := next(saves, b"")):
            other = tmp_path / "memory" / "saved"
            other.write_bytes(page + more)
            other.replace(tmp_path / TODAY)
        _no_drafts(call)

    with recorded(tmp_path, edited):
        files.entries.forget(made.memory_id)
    text = (tmp_path / TODAY).read_text()
    assert ("quokka" in text, "koala" in text, "mine too" in text) == (False, True, True)
