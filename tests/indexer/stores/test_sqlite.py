"""What is particular to SQLite: settings, files beside the index, and what its failures mean."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import apsw
import numpy as np
import pytest
import sqlite_vec

from indexer.errors import StoreCorrupt, StoreError, StoreLocked
from indexer.stores.base import passages_of
from indexer.stores.sqlite import SqliteStore
from indexer.stores.sqlite_database import Database
from indexer.types import SearchFilter
from tests.indexer.sources.test_scan import reachable
from tests.indexer.stores.test_store_contract import MADE, passage, put, removal
from tests.indexer.workspace import run_unprivileged


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "index.sqlite"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    made = SqliteStore(path, busy_seconds=5)
    made.begin(MADE)
    yield made
    made.close()


def beside(path: Path) -> list[Path]:
    return sorted(path.parent.glob(path.name + "*"))


def row_counts(path: Path) -> dict[str, int]:
    """Rows of every table, those that virtual tables keep for themselves included."""
    connection = apsw.Connection(str(path))
    connection.enable_load_extension(True)
    connection.load_extension(sqlite_vec.loadable_path())
    names = [
        str(row[0]) for row in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
    ]
    counts = {name: len(connection.execute(f'SELECT 1 FROM "{name}"').fetchall()) for name in names}
    connection.close()
    return counts


@contextmanager
def holding(path: Path, sql: str) -> Iterator[None]:
    """Another process that has run a statement in a transaction and keeps it open."""
    code = """
import sys, apsw
connection = apsw.Connection(sys.argv[1])
connection.execute(sys.argv[2]).fetchall()
connection.execute("SELECT count(*) FROM meta").fetchall()
print("ready", flush=True)
sys.stdin.read()
"""
    other = subprocess.Popen(
        [sys.executable, "-c", code, str(path), sql], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert other.stdout is not None and other.stdout.readline() == "ready\n"
    try:
        yield
    finally:
        other.communicate()


def two_sentences(error: BaseException) -> bool:
    return str(error).count(". ") == 1 and str(error).endswith((".", "lost."))


def test_every_connection_has_its_settings(path: Path) -> None:
    database = Database(path)
    with database.writing():
        settings = {
            name: database.value(f"PRAGMA {name}")
            for name in ("journal_mode", "synchronous", "secure_delete", "temp_store", "cache_size")
        }
    assert settings == {
        "journal_mode": "wal",
        "synchronous": 1,
        "secure_delete": 1,
        "temp_store": 2,
        "cache_size": -16384,
    }
    database.close()


def test_looking_makes_no_file(path: Path) -> None:
    store = SqliteStore(path)
    assert not passages_of(store, "memory/a.md")
    assert beside(path) == []


def test_what_is_removed_is_gone_from_every_table(store: SqliteStore, path: Path) -> None:
    before = row_counts(path)
    put(store, "memory/a.md", [passage(f"quokka {n}", label="Ann") for n in range(200)])
    store.write([removal(store, "memory/a.md")])
    after = row_counts(path)
    # What is counted on, what keeps its chunks for reuse, and what FTS5 counts its segments with.
    book_keeping = {"sqlite_sequence", "meta", "gone", "vectors_info", "terms_config"}
    left = {name: count for name, count in after.items() if count > before[name] and name not in book_keeping}
    assert not {name: count for name, count in left.items() if not name.startswith(("vectors_", "terms_"))}
    assert after["vectors"] == after["vectors_rowids"] == after["terms_docsize"] == after["postings"] == 0
    assert sum(left.values()) < 12


def test_after_a_scrub_no_file_has_a_removed_word(store: SqliteStore, path: Path) -> None:
    kept = [f"harmless line {n} about ordinary things" for n in range(300)]
    put(store, "memory/a.md", kept)
    secret = passage("Zyxomatic passwords: hunter2secretly", label="Wombatina")
    put(store, "memory/b.md", [secret, *kept[:5]])
    (vector,) = [row.tobytes() for row in store.vectors([passages_of(store, "memory/b.md")[0].key])[1]]
    store.write([removal(store, "memory/b.md")])
    store.scrub()
    for file in beside(path):
        raw = file.read_bytes()
        for trace in (b"zyxomatic", b"zyxomat", b"hunter2secret", b"wombatina"):
            assert trace not in raw.lower(), (file.name, trace)
        assert vector not in raw, (file.name, "vector")
    assert len(store.postings(["harmless"])[0].keys) == 300


def test_a_scrub_says_when_a_reader_keeps_the_log(path: Path) -> None:
    store = SqliteStore(path, busy_seconds=0.2)
    store.begin(MADE)
    put(store, "memory/a.md", ["secret"])
    with holding(path, "BEGIN"):
        store.write([removal(store, "memory/a.md")])
        with pytest.raises(StoreLocked) as raised:
            store.scrub()
        assert two_sentences(raised.value)
    store.scrub()
    store.close()


def test_a_writer_waits_and_then_says_so(path: Path) -> None:
    store = SqliteStore(path, busy_seconds=0.2)
    store.begin(MADE)
    with holding(path, "BEGIN IMMEDIATE"):
        assert store.file_states() == {}, "readers do not wait"
        with pytest.raises(StoreLocked) as raised:
            put(store, "memory/a.md", ["x"])
        assert two_sentences(raised.value)
    assert put(store, "memory/a.md", ["x"]).refused == ()
    store.close()


@pytest.mark.parametrize("leave", [(), ("-wal", "-shm")], ids=["all", "main file only"])
def test_an_index_that_is_deleted_in_use_is_made_anew(store: SqliteStore, path: Path, leave: tuple[str, ...]) -> None:
    put(store, "memory/a.md", ["one"])
    before = store.corpus(None)
    for file in beside(path):
        if not file.name.endswith(leave or "none"):
            file.unlink()
    assert store.head().fingerprint is None
    assert store.file_states() == {}
    assert len(store.corpus(before)) == 0
    store.begin(MADE)
    put(store, "memory/b.md", ["two"])
    other = SqliteStore(path)
    assert set(other.file_states()) == set(store.file_states()) == {"memory/b.md"}
    after = store.corpus(before)
    assert not set(after.keys) & set(before.keys), "keys of the deleted file are in memory elsewhere"
    assert after.revision > before.revision
    store.check()
    other.close()


def test_an_index_that_is_replaced_in_use_is_opened_anew(store: SqliteStore, path: Path, tmp_path: Path) -> None:
    put(store, "memory/a.md", ["one"])
    other_path = tmp_path / "other" / "index.sqlite"
    other_path.parent.mkdir()
    other = SqliteStore(other_path)
    other.begin(MADE)
    put(other, "memory/other.md", ["two"])
    other.close()
    for file in beside(path):
        file.unlink()
    shutil.copy(other_path, path)
    assert set(store.file_states()) == {"memory/other.md"}


@pytest.mark.parametrize("content", [b"not a database at all " * 500, b"SQLite format 3\x00" + b"\xff" * 9000])
def test_a_file_that_is_no_index(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    store = SqliteStore(path)
    for act in (store.head, lambda: store.begin(MADE), store.check, lambda: store.corpus(None)):
        with pytest.raises(StoreCorrupt) as raised:
            act()
        assert "Delete it and run" in str(raised.value)


def test_damage_inside_is_found(store: SqliteStore, path: Path) -> None:
    put(store, "memory/a.md", [f"line {n} with some words to fill pages" for n in range(500)])
    store.scrub()
    store.close()
    raw = bytearray(path.read_bytes())
    for start in range(8 * 4096, len(raw) - 4096, 3 * 4096):
        raw[start : start + 4096] = os.urandom(4096)
    path.write_bytes(raw)
    with pytest.raises(StoreCorrupt) as raised:
        SqliteStore(path).check()
    assert "Delete it and run" in str(raised.value)


def test_an_empty_file_is_an_empty_index(path: Path) -> None:
    path.touch()
    store = SqliteStore(path)
    assert store.head().fingerprint is None and store.file_states() == {}
    store.begin(MADE)
    assert store.head().fingerprint == MADE
    store.close()


def test_a_folder_in_its_place(path: Path) -> None:
    path.mkdir()
    store = SqliteStore(path)
    for act in (store.head, lambda: store.begin(MADE)):
        with pytest.raises(StoreError) as raised:
            act()
        assert two_sentences(raised.value)


READ_ONLY = """
import os, sys
from pathlib import Path
from indexer.errors import StoreError
from indexer.stores.sqlite import SqliteStore
from tests.indexer.stores.test_store_contract import MADE, put
drop()
store = SqliteStore(Path(sys.argv[1]))
try:
    print(len(store.file_states()), store.counts().passages, len(store.postings(["on"])))
except StoreError as error:
    print(type(error).__name__)
for act in (lambda: put(store, "memory/c.md", ["x"]), lambda: store.begin(MADE)):
    try:
        act()
    except StoreError as error:
        print(type(error).__name__, str(error).count(". "))
"""


@pytest.mark.parametrize("log", ["none", "with its memory", "alone"])
def test_a_folder_that_cannot_be_written(tmp_path: Path, log: str) -> None:
    folder = tmp_path / "made"
    folder.mkdir()
    store = SqliteStore(folder / "index.sqlite")
    store.begin(MADE)
    store.scrub()
    put(store, "memory/a.md", ["one"])
    closed = tmp_path / "closed"
    closed.mkdir()
    if log == "none":
        store.scrub()
        shutil.copy(folder / "index.sqlite", closed)
    else:
        # A process that was killed leaves its log behind: what it wrote last is in there alone.
        for file in beside(folder / "index.sqlite"):
            if not (log == "alone" and file.name.endswith("-shm")):
                shutil.copy(file, closed)
    for file in closed.iterdir():
        file.chmod(0o444)
    closed.chmod(0o555)
    reachable(closed)
    try:
        printed = run_unprivileged(READ_ONLY, closed / "index.sqlite").splitlines()
    finally:
        closed.chmod(0o755)
        store.close()
    assert printed[0] in ({"1 1 1", "StoreReadOnly"} if log == "alone" else {"1 1 1"}), "never an index without its log"
    assert printed[1:] == ["StoreReadOnly 1"] * 2


@pytest.mark.skipif(
    os.geteuid() != 0, reason="a full disk is made with a small file system, which root alone may mount"
)
def test_a_full_disk(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)], check=False).returncode:
        pytest.skip("mounting is not allowed here")
    code = """
import sys
from pathlib import Path
from indexer.errors import StoreFull
from indexer.stores.sqlite import SqliteStore
from tests.indexer.stores.test_store_contract import MADE, put
store = SqliteStore(Path(sys.argv[1]) / "index.sqlite")
store.begin(MADE)
written = 0
try:
    for number in range(1000):
        put(store, f"memory/{number}.md", [f"word{number} " * 80 for _ in range(20)])
        written += 1
except StoreFull as error:
    other = SqliteStore(store.path)
    print(str(error).count(". "), written == len(store.file_states()), written == len(other.file_states()))
store.check()
"""
    try:
        done = subprocess.run(
            [sys.executable, "-c", code, str(disk)], capture_output=True, text=True, timeout=240, check=False
        )
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)
    assert done.stdout == "1 True True\n", done.stderr


def test_a_process_that_is_killed_while_it_writes_leaves_whole_writes(path: Path) -> None:
    code = """
import sys
from pathlib import Path
from indexer.stores.sqlite import SqliteStore
from tests.indexer.stores.test_store_contract import MADE, put
store = SqliteStore(Path(sys.argv[1]))
store.begin(MADE)
for number in range(100000):
    put(store, f"memory/{number}.md", ["one", "two", "three"])
    print(number, flush=True)
"""
    other = subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, text=True)
    assert other.stdout is not None
    for line in other.stdout:
        if line == "40\n":
            break
    other.kill()
    other.communicate()
    store = SqliteStore(path)
    store.check()
    files = len(store.file_states())
    assert files >= 41
    assert store.counts().passages == store.counts().embedded == 3 * files
    assert len(store.postings(["two"])[0].keys) == len(store.vectors(None)[0]) // 3 == files
    store.close()


def test_threads_share_a_store(store: SqliteStore) -> None:
    def act(number: int) -> int:
        if number % 3 == 0:
            return len(put(store, f"memory/{number}.md", [f"word {number}"]).refused)
        with store.reading():
            assert len(store.corpus(None)) == len(store.file_states())
        return 0

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(act, range(90))) == 0
    assert store.counts().files == 30


def test_errors_in_threads_leave_the_connections_usable(store: SqliteStore) -> None:
    too_short = np.zeros(3, np.float32)

    def fail(number: int) -> None:
        with pytest.raises(StoreError), store.reading():
            store.nearest(too_short, 5, SearchFilter())
        assert put(store, f"memory/{number}.md", ["y"]).refused == ()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(fail, range(40)))
    assert store.counts().files == 40
    store.check()
