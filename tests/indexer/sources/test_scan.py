from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexer.errors import SourceMissing
from indexer.sources.base import Scan, SourceFile
from indexer.sources.folders import FileSource
from indexer.sources.scan import (
    change_times,
    inode_of,
    is_memory_path,
    is_session_path,
    is_settled,
    name_fault,
    open_folder,
    packed_stat,
    path_for_new,
    path_on_disk,
    read,
    scan_memories,
    scan_paths,
    scan_workspace,
    source_file,
)
from indexer.stores.base import NO_VERSION, FileState
from indexer.sync.run import settled_state
from indexer.types import to_nfc
from tests.indexer.workspace import Workspace, make_old, run_unprivileged

MANY = 1 << 20


def scanned(workspace: Workspace, path: str) -> SourceFile:
    return scan_memories(workspace.root).files[path]


def state_of(file: SourceFile, *, checked_ns: int) -> FileState:
    return FileState(*file, checked_ns=checked_ns, content_hash="x")


@given(
    whole_seconds=st.booleans(),
    later_ns=st.sampled_from([-1, 0, 49_999_999, 50_000_000, 50_000_001, 2_000_000_000, 2_000_000_001]),
    content_hash=st.sampled_from(["", "x"]),
    failure=st.sampled_from(["", "it is UTF-16"]),
    touched_ns=st.integers(-5, 5),
)
def test_what_is_beyond_doubt_is_known_by_its_stat(
    whole_seconds: bool, later_ns: int, content_hash: str, failure: str, touched_ns: int
) -> None:
    mtime_ns = 1_700_000_000_000_000_000 + (0 if whole_seconds else 123)
    stat = (7, mtime_ns, mtime_ns + touched_ns, 9)
    file = SourceFile("memory/a.md", "memory", 7, packed_stat(*stat))
    state = state_of(file, checked_ns=max(change_times(file)) + later_ns)
    state = state._replace(content_hash=content_hash, failure=failure)
    assert is_settled(state) == (later_ns > (2_000_000_000 if whole_seconds else 50_000_000))
    stored = settled_state(FileSource(Path("w")), state)
    whole = content_hash != "" and not failure
    assert stored.known_version == (file.version if whole and is_settled(state) else NO_VERSION)
    for other in range(4):
        changed = state._replace(version=packed_stat(*(number + (at == other) for at, number in enumerate(stat))))
        assert not file.looks_like(changed)
    assert file.looks_like(state)
    assert not is_settled(state._replace(version=b"of another source"))


def test_an_inode_may_be_as_large_as_it_gets(workspace: Workspace) -> None:
    stat = os.stat(workspace.write("memory/a.md", "x"))
    times = {"st_mtime_ns": stat.st_mtime_ns, "st_ctime_ns": stat.st_ctime_ns}
    file = source_file("memory/a.md", os.stat_result((stat.st_mode, 2**64 - 1, *stat[2:]), times))
    assert 0 < inode_of(file) < 2**63


def known_by(scan: Scan) -> dict[str, bytes]:
    return {path: file.version for path, file in scan.files.items()}


def test_a_look_gives_what_is_not_as_it_was_known(workspace: Workspace, tmp_path: Path) -> None:
    gone = ("memory/gone.md", "memory/folder.md", "memory/link.md", "memory/Case.md", "sessions/gone.jsonl")
    stay = ("memory/a.md", "memory/deep/er/b.md", "memory/名.md", "sessions/a.jsonl")
    changed = ("memory/longer.md", "memory/touched.md", "memory/replaced.md", "memory/doubtful.md", "sessions/b.jsonl")
    for path in (*gone, *stay, *changed):
        workspace.write(path, "x")
    make_old(workspace.root / "memory/a.md")
    known = known_by(scan_workspace(workspace.root)) | {"memory/doubtful.md": NO_VERSION, "@other/c.md": NO_VERSION}
    for path in gone:
        (workspace.root / path).unlink()
    (workspace.root / "memory/folder.md").mkdir()
    (workspace.root / "memory/link.md").symlink_to(workspace.root / "memory/a.md")
    for path in ("memory/longer.md", "sessions/b.jsonl"):
        workspace.write(path, "xy")
    make_old(workspace.root / "memory/touched.md")
    os.replace(workspace.write("memory/.draft", "x"), workspace.root / "memory/replaced.md")
    for path in ("memory/case.md", "memory/folder.md/new.md"):
        workspace.write(path, "x")
    scan = scan_workspace(workspace.root, versions=known)
    assert (scan.unchanged, scan.failures) == (len(stay), ())
    assert set(scan.files) == {*changed, "memory/case.md", "memory/folder.md/new.md"}
    assert set(known) == {*gone, *changed, "@other/c.md"}
    assert scan.files == {path: scan_workspace(workspace.root).files[path] for path in scan.files}


def test_a_link_in_place_of_a_folder_is_not_opened(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    with open_folder(str(tmp_path)) as entries:
        assert [entry.name for entry in entries] == ["link"]
    with pytest.raises(OSError), open_folder(str(tmp_path / "link")):
        pass


def test_what_is_no_memory_file_is_not_one_because_it_is_known(workspace: Workspace) -> None:
    path = workspace.write("memory/.hidden.md", "x")
    known = {"memory/.hidden.md": source_file("memory/.hidden.md", os.lstat(path)).version}
    scan = scan_workspace(workspace.root, versions=known)
    assert (scan.files, scan.unchanged, set(known)) == ({}, 0, {"memory/.hidden.md"})


def test_scan_lists_memory_files_and_nothing_else(workspace: Workspace, tmp_path: Path) -> None:
    for path in (
        "MEMORY.md",
        "USER.md",
        "memory/2026-11-20.md",
        "memory/a/b/c.MD",
        "memory/名.md",
        "memory/- odd *.md",
    ):
        workspace.write(path, "x")
    for path in ("README.md", "memory/a.txt", "memory/.hidden.md", "memory/.git/x.md", "notes/x.md", "memory/md"):
        workspace.write(path, "x")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.md").write_text("x")
    (workspace.root / "memory" / "link.md").symlink_to(outside / "secret.md")
    (workspace.root / "memory" / "folder").symlink_to(outside)
    (workspace.root / "memory" / "folder.md").mkdir()
    os.mkfifo(workspace.root / "memory" / "pipe.md")
    scan = scan_memories(workspace.root)
    assert set(scan.files) == {
        "MEMORY.md",
        "USER.md",
        "memory/2026-11-20.md",
        "memory/a/b/c.MD",
        "memory/名.md",
        "memory/- odd *.md",
    }
    assert scan.failures == ()
    assert all(is_memory_path(path) for path in scan.files)
    assert all(file.path == path and file.source == "memory" for path, file in scan.files.items())


def test_links_in_place_of_the_known_names_are_left_out(tmp_path: Path) -> None:
    outside = Workspace(tmp_path / "outside")
    outside.write("memory/a.md", "x")
    root = tmp_path / "linked"
    root.mkdir()
    (root / "memory").symlink_to(outside.root / "memory")
    (root / "MEMORY.md").symlink_to(outside.root / "memory" / "a.md")
    scan = scan_memories(root)
    assert scan.files == {}
    assert [(failure.path, "symbolic link" in failure.reason) for failure in scan.failures] == [("memory", True)]
    assert scan.removals(["memory/a.md"]) == []


def test_a_workspace_that_is_not_there_is_empty_unless_it_held_files(tmp_path: Path) -> None:
    assert scan_memories(tmp_path / "none").files == {}
    with pytest.raises(SourceMissing, match=r"is not there\. Create it"):
        scan_workspace(tmp_path / "none", versions={"memory/a.md": b""})


def test_a_workspace_without_a_memory_folder_is_empty(tmp_path: Path) -> None:
    assert scan_memories(tmp_path).files == {}


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such names")
def test_a_name_that_is_not_utf8_is_named(workspace: Workspace) -> None:
    with open(os.fsencode(workspace.root) + b"/memory/caf\xe9.md", "w") as stream:
        stream.write("x")
    scan = scan_memories(workspace.root)
    (failure,) = scan.misnamed
    assert failure.path.encode().isascii()
    assert "not UTF-8" in failure.reason


def test_names_with_a_line_break_or_a_backslash_are_named_and_left_out(workspace: Workspace) -> None:
    for name in ("two\nlines.md", "back\\slash.md", "folder\u2028/a.md", "good.md", "no\nnote.txt"):
        workspace.write(f"memory/{name}", "- quokka\n")
    scan = scan_memories(workspace.root)
    assert set(scan.files) == {"memory/good.md"} and scan.failures == ()
    assert {each.path: each.reason for each in scan.misnamed} == {
        r"memory/two\nlines.md": "its name has a control character in it; rename it",
        r"memory/back\slash.md": "its name has a backslash in it; rename it",
        r"memory/folder\u2028": "its name has a control character in it; rename it",
    }
    index = workspace.index()
    report = index.sync()
    assert {each.path for each in report.failed} == {each.path for each in scan.misnamed}
    assert [hit.path for hit in index.search("quokka").hits] == ["memory/good.md"]
    assert not index.sync(["memory/two\nlines.md", "memory/back\\slash.md"], missing_ok=True).added


def test_folders_that_cannot_be_listed_hide_what_is_below(workspace: Workspace) -> None:
    workspace.write("memory/open/a.md", "x")
    workspace.write("memory/closed/b.md", "x")
    (workspace.root / "memory" / "closed").chmod(0)
    code = """
import os, sys
from pathlib import Path
from indexer.sources.scan import scan_memories
drop()
scan = scan_memories(Path(sys.argv[1]))
print(sorted(scan.files), [failure.path for failure in scan.failures])
print(scan.removals(["memory/closed/b.md", "memory/closed.md", "memory/c.md"]))
"""
    reachable(workspace.root)
    try:
        printed = run_unprivileged(code, workspace.root)
    finally:
        (workspace.root / "memory" / "closed").chmod(0o755)
    assert printed == "['memory/open/a.md'] ['memory/closed']\n['memory/closed.md', 'memory/c.md']"


def test_a_folder_whose_files_cannot_be_looked_at_hides_them(workspace: Workspace) -> None:
    for path in ("memory/listed/a.md", "memory/closed/b.md", "memory/c.md"):
        workspace.write(path, "x")
    code = """
import sys
from pathlib import Path
from indexer.sources.scan import scan_memories, scan_paths
drop()
paths = ["memory/listed/a.md", "memory/closed/b.md", "memory/c.md", "memory/gone.md"]
for scan in (scan_memories(Path(sys.argv[1])), scan_paths(Path(sys.argv[1]), paths)):
    print(sorted(scan.files), sorted(failure.path for failure in scan.failures))
    print(scan.removals(path for path in paths if path not in scan.files))
"""
    reachable(workspace.root)
    (workspace.root / "memory/listed").chmod(0o444)
    (workspace.root / "memory/closed").chmod(0)
    try:
        printed = run_unprivileged(code, workspace.root).splitlines()
    finally:
        for name in ("listed", "closed"):
            (workspace.root / "memory" / name).chmod(0o755)
    assert printed == ["['memory/c.md'] ['memory/closed', 'memory/listed']", "['memory/gone.md']"] * 2


def test_a_workspace_that_cannot_be_searched(workspace: Workspace) -> None:
    code = """
import os, sys
from pathlib import Path
from indexer import Index, IndexerError
drop()
index = Index(Path(sys.argv[1]), None)
for act in (index.sync, index.status, lambda: index.search("x")):
    try:
        act()
    except IndexerError as error:
        print(type(error).__name__, str(error).count(". "))
"""
    reachable(workspace.root)
    workspace.root.chmod(0)
    try:
        assert run_unprivileged(code, workspace.root) == "\n".join(["StoreError 1"] * 3)
    finally:
        workspace.root.chmod(0o755)


def reachable(folder: Path) -> None:
    """Let other users walk down to a folder below the test's own private one."""
    for parent in folder.parents:
        if parent.stat().st_uid == os.geteuid() and parent != parent.parent and not parent.stat().st_mode & 0o001:
            parent.chmod(parent.stat().st_mode | 0o011)


@pytest.mark.parametrize(
    ("path", "listed"),
    [
        ("MEMORY.md", True),
        ("USER.md", True),
        ("memory/a.md", True),
        ("memory/a/b.MD", True),
        ("memory.md", False),
        ("README.md", False),
        ("memory/a.txt", False),
        ("sub/MEMORY.md", False),
        ("memory/.hidden.md", False),
        ("memory/.git/a.md", False),
        ("memory/../../outside.md", False),
        ("memory//a.md", False),
        ("memory/a\0.md", False),
    ],
)
def test_is_memory_path(path: str, listed: bool) -> None:
    assert is_memory_path(path) is listed


def test_a_file_is_known_again_by_its_stat(workspace: Workspace) -> None:
    make_old(workspace.write("memory/a.md", "one"))
    file = scanned(workspace, "memory/a.md")
    later = state_of(file, checked_ns=time.time_ns() + 10**9)
    assert file.looks_like(later)
    assert is_settled(later)
    assert not is_settled(state_of(file, checked_ns=max(change_times(file)) + 1_000_000))
    workspace.write("memory/a.md", "two")
    make_old(workspace.root / "memory/a.md")
    assert not scanned(workspace, "memory/a.md").looks_like(later)


def test_a_file_system_with_whole_seconds_gets_a_longer_doubt(workspace: Workspace) -> None:
    path = workspace.write("memory/a.md", "one")
    os.utime(path, ns=(10**18, 10**18))
    file = scanned(workspace, "memory/a.md")
    assert not is_settled(state_of(file, checked_ns=max(change_times(file)) + 1_000_000_000))
    assert is_settled(state_of(file, checked_ns=max(change_times(file)) + 3_000_000_000))


def test_read_gives_the_text_as_it_is(workspace: Workspace) -> None:
    workspace.write("memory/a.md", "\ufeffzwölf\r\n\x00🎉".encode())
    content = read(workspace.root, scanned(workspace, "memory/a.md"), max_bytes=MANY)
    assert content.failure == ""
    assert content.text == "\ufeffzwölf\r\n\x00🎉"
    assert len(content.content_hash) == 32


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"fine\nbad \xe9 here", "byte 0xe9 in line 2"),
        ("text".encode("utf-16"), "UTF-16"),
        (b"x" * 101, "101 bytes, more than the limit of 100"),
        (b"\xed\xa0\x80", "not UTF-8"),
    ],
)
def test_a_file_without_usable_text_says_why(workspace: Workspace, raw: bytes, reason: str) -> None:
    workspace.write("memory/a.md", raw)
    content = read(workspace.root, scanned(workspace, "memory/a.md"), max_bytes=100)
    assert reason in content.failure
    assert content.text == ""


def test_a_file_that_vanished_says_so(workspace: Workspace) -> None:
    path = workspace.write("memory/a.md", "x")
    file = scanned(workspace, "memory/a.md")
    path.unlink()
    assert "vanished" in read(workspace.root, file, max_bytes=MANY).failure


def test_a_file_that_became_a_link_is_not_followed(workspace: Workspace, tmp_path: Path) -> None:
    path = workspace.write("memory/a.md", "x")
    file = scanned(workspace, "memory/a.md")
    path.unlink()
    (tmp_path / "secret").write_text("secret")
    path.symlink_to(tmp_path / "secret")
    content = read(workspace.root, file, max_bytes=MANY)
    assert content.text == "" and "cannot be read" in content.failure


def test_what_is_read_is_one_state_while_another_process_writes(workspace: Workspace) -> None:
    path = workspace.write("memory/a.md", "a" * 200_000)
    code = """
import sys
while True:
    for letter in b"ab":
        with open(sys.argv[1], "r+b", buffering=0) as stream:
            for start in range(0, 200_000, 20_000):
                stream.write(bytes([letter]) * 20_000)
"""
    writer = subprocess.Popen([sys.executable, "-c", code, str(path)])
    try:
        read_whole = 0
        for _ in range(40):
            content = read(workspace.root, scanned(workspace, "memory/a.md"), max_bytes=MANY)
            if content.failure:
                assert "changes while it is read" in content.failure
            else:
                read_whole += 1
                assert content.file.size_bytes == len(content.text) == 200_000
    finally:
        writer.kill()
        writer.wait()
    assert read(workspace.root, scanned(workspace, "memory/a.md"), max_bytes=MANY).text


LOGS = ("sessions/talk.jsonl", "sessions/A.b-c_1.jsonl", "sessions/a.jsonl.jsonl", f"sessions/{'x' * 128}.jsonl")
NO_LOGS = (
    "sessions/talk.jsonl.bak",
    "sessions/talk.jsonl.bak-2",
    "sessions/talk.jsonl.torn",
    "sessions/talk.JSONL",
    "sessions/talk.md",
    "sessions/.hidden.jsonl",
    "sessions/-x.jsonl",
    "sessions/会话.jsonl",
    "sessions/a b.jsonl",
    "sessions/.jsonl",
    f"sessions/{'x' * 129}.jsonl",
    "sessions/blobs/ab.jsonl",
    "sessions/.locks/0.lock",
    "talk.jsonl",
    "memory/talk.jsonl",
)


def test_scan_lists_session_logs_beside_memories(workspace: Workspace, tmp_path: Path) -> None:
    for path in ("MEMORY.md", "memory/名.md", *LOGS, *NO_LOGS):
        workspace.write(path, "x")
    (tmp_path / "outside.jsonl").write_text("x")
    (workspace.root / "sessions" / "link.jsonl").symlink_to(tmp_path / "outside.jsonl")
    (workspace.root / "sessions" / "folder.jsonl").mkdir()
    os.mkfifo(workspace.root / "sessions" / "pipe.jsonl")
    scan = scan_workspace(workspace.root)
    assert scan.failures == ()
    assert {file.path for file in scan.files.values() if file.source == "sessions"} == set(LOGS)
    assert {file.path for file in scan.files.values() if file.source == "memory"} == {"MEMORY.md", "memory/名.md"}
    assert set(scan_workspace(workspace.root, sessions=False).files) == {"MEMORY.md", "memory/名.md"}
    assert set(scan_memories(workspace.root).files) == {"MEMORY.md", "memory/名.md"}
    assert all(is_session_path(path) and not is_memory_path(path) for path in LOGS)
    assert not any(is_session_path(path) for path in NO_LOGS)
    assert scan_paths(workspace.root, LOGS).files == {path: scan.files[path] for path in LOGS}


def test_a_linked_folder_of_sessions_is_left_out_and_named(workspace: Workspace, tmp_path: Path) -> None:
    outside = Workspace(tmp_path / "outside")
    outside.write("sessions/talk.jsonl", "x")
    (workspace.root / "sessions").symlink_to(outside.root / "sessions")
    scan = scan_workspace(workspace.root)
    assert scan.files == {}
    assert [(failure.path, "symbolic link" in failure.reason) for failure in scan.failures] == [("sessions", True)]
    assert scan.removals(["sessions/talk.jsonl", "memory/a.md"]) == ["memory/a.md"]
    assert scan_paths(workspace.root, ["sessions/talk.jsonl"]).files == {}


def test_something_else_in_place_of_the_sessions_is_named(workspace: Workspace) -> None:
    workspace.write("sessions", "a file")
    scan = scan_workspace(workspace.root)
    assert [failure.path for failure in scan.failures] == ["sessions"]
    assert scan.removals(["sessions/talk.jsonl"]) == []


def test_a_log_is_read_as_it_is(workspace: Workspace) -> None:
    raw = b'{"seq":1}\n\xff\xfe damaged\n'
    workspace.write("sessions/talk.jsonl", raw)
    content = read(workspace.root, scan_workspace(workspace.root).files["sessions/talk.jsonl"], max_bytes=MANY)
    assert (content.raw, content.text, content.failure) == (raw, "", "")
    assert len(content.content_hash) == 32


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("café.md", ""),
        ("cafe\u0301.md", ""),
        ("备忘 🎉.md", ""),
        ("a\nb.md", "control character"),
        ("a\x7f.md", "control character"),
        ("a\u2028.md", "control character"),
        ("a\udce9.md", "not UTF-8"),
        ("a\\b.md", "backslash"),
    ],
)
def test_names_that_cannot_be_given_back(name: str, fault: str) -> None:
    found = name_fault(name)
    assert fault in found and bool(fault) == bool(found)
    if fault == "backslash":
        assert not name_fault(name, backslash=True)


def test_a_folder_counts_as_well_as_a_file(tmp_path: Path) -> None:
    (tmp_path / "Cafe\u0301").mkdir()
    assert path_on_disk(tmp_path, "Café") == "Cafe\u0301"
    assert path_on_disk(tmp_path, "Thé") is None
    assert path_on_disk(tmp_path, "none/Thé") is None
    assert path_for_new(tmp_path, "Café/the\u0301/the\u0301.md") == "Cafe\u0301/thé/thé.md"


@given(st.text(st.sampled_from("e\u0301u\u0308é한\u1112\u1161\u11ab豈が"), min_size=1, max_size=6))
def test_every_form_names_one_file(tmp_path_factory: pytest.TempPathFactory, name: str) -> None:
    folder = tmp_path_factory.mktemp("names")
    (folder / name).write_text("x")
    assert path_on_disk(folder, name) == path_on_disk(folder, to_nfc(name)) == name
