"""What every `Source` promises. Another one is one more parameter of `place`."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Collection
from pathlib import Path

import pytest

from indexer import FileSource, SourceMissing
from indexer.sources.base import Content, Source
from indexer.stores.base import FileState
from memory_service.sessions.codec import decode
from memory_service.storage.postgres.postgres_documents import PostgresDocuments
from memory_service.storage.postgres.postgres_logs import PostgresLogs
from memory_service.storage.postgres.postgres_source import PostgresSource
from tests.indexer.memory_source import MemorySource
from tests.indexer.workspace import make_old
from tests.memory_service.storage.postgres_workspaces import PostgresWorkspaces
from tests.memory_service.storage.postgres_workspaces import postgres_workspaces as postgres_workspaces

MANY = 1 << 20
LINES = tuple(
    f'{{"seq":{seq},"ts":"2026-11-20T14:32:00.000Z","message":{{"role":"user","content":"{text}"}}}}\n'
    for seq, text in ((1, "one"), (2, "two"))
)
A, B, LOG = "memory/a.md", "memory/deep/b.md", "sessions/talk.jsonl"
SECONDS = 60.0


class Place:
    """A source, and the hands that change what is in it: here those of files, or of a source in memory."""

    def __init__(self, source: Source, root: Path | None = None) -> None:
        self.source = source
        self._root = root

    def write(self, path: str, text: str | bytes) -> None:
        if self._root is None:
            assert isinstance(self.source, MemorySource)
            self.source.write(path, text)
            return
        file = self._root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode() if isinstance(text, str) else text)

    def remove(self, path: str) -> None:
        if self._root is None:
            assert isinstance(self.source, MemorySource)
            self.source.remove(path)
        else:
            (self._root / path).unlink()

    def replace(self, path: str, text: str) -> None:
        """Another file in the place of one."""
        if self._root is None:
            self.remove(path)
            self.write(path, text)
        else:
            self.write("draft", text)
            (self._root / "draft").replace(self._root / path)

    def lose(self) -> None:
        if self._root is None:
            assert isinstance(self.source, MemorySource)
            self.source.is_lost = True
        else:
            shutil.rmtree(self._root)

    def age(self, path: str) -> None:
        """Have the last change of a file long ago, as far as a clock tells of it."""
        if self._root is not None:
            make_old(self._root / path)

    def read(self, path: str, *, max_bytes: int = MANY) -> Content:
        return self.source.read(self.source.scan(paths=[path]).files[path], max_bytes=max_bytes)


class PostgresPlace(Place):
    """The hands that change rows, as those who store memories and sessions do."""

    def __init__(self, workspaces: PostgresWorkspaces) -> None:
        name = workspaces.name()
        super().__init__(PostgresSource(workspaces.database(), name))
        self._workspaces = workspaces
        self._documents = PostgresDocuments(workspaces.database(), name, lock=workspaces.lock())
        self._logs = PostgresLogs(workspaces.database(), name)

    def write(self, path: str, text: str | bytes) -> None:
        raw = text.encode() if isinstance(text, str) else text
        revision = None if path == LOG else self._documents.revision(path)
        if path == LOG:
            self._logs.begin("talk", (decode(line).record for line in raw.splitlines(keepends=True)))
        elif revision and raw.startswith(before := self._documents.read(path).raw):
            assert self._documents.append(path, raw[len(before) :], expected=revision)
        else:
            assert self._documents.replace(path, raw, expected=revision)

    def remove(self, path: str) -> None:
        if path == LOG:
            self._logs.delete("talk")
        else:
            self._documents.remove(path)

    def replace(self, path: str, text: str) -> None:
        assert self._documents.replace(path, text.encode(), expected=self._documents.revision(path))

    def lose(self) -> None:
        with self._workspaces.database().transaction() as transaction:
            transaction.execute("UPDATE workspaces SET made_at = NULL")

    def age(self, path: str) -> None:
        """Nothing: no clock tells of a change."""


@pytest.fixture(params=["files", "memory", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "postgres":
        made: Place = PostgresPlace(request.getfixturevalue("postgres_workspaces"))
    else:
        root = tmp_path / "w"
        made = Place(FileSource(root), root) if request.param == "files" else Place(MemorySource())
    for path, text in ((A, "one\n"), (B, "two two\n"), (LOG, "".join(LINES))):
        made.write(path, text)
        made.age(path)
    return made


def state_of(content: Content) -> FileState:
    return FileState(*content.file, checked_ns=content.checked_ns, content_hash=content.content_hash)


def test_a_scan_gives_all_files_with_their_kind_and_size(place: Place) -> None:
    scan = place.source.scan()
    found = {file.path: (file.source, file.size_bytes) for file in scan.files.values()}
    assert found == {A: ("memory", 4), B: ("memory", 8), LOG: ("sessions", 2 * len(LINES[0]))}
    assert (scan.whole, scan.unchanged, scan.failures, scan.misnamed) == (True, 0, (), ())
    assert place.source.scan().files == scan.files


def test_a_change_shows_in_the_version(place: Place) -> None:
    before = place.source.scan().files
    place.write(A, "other\n")
    place.replace(B, "two two\n")
    after = place.source.scan().files
    assert [path for path in after if after[path].version != before[path].version] == [A, B]


def test_what_is_as_it_was_known_is_taken_out(place: Place) -> None:
    known = {path: file.version for path, file in place.source.scan().files.items()}
    place.write(A, "one more\n")
    place.remove(LOG)
    place.write("memory/new.md", "new\n")
    scan = place.source.scan(known)
    assert (set(scan.files), set(known), scan.unchanged) == ({A, "memory/new.md"}, {A, LOG}, 1)


def test_files_that_are_named_are_looked_at_alone(place: Place) -> None:
    scan = place.source.scan(paths=[A, "memory/none.md", LOG])
    assert (set(scan.files), scan.whole) == ({A, LOG}, False)
    assert scan.files[A] == place.source.scan().files[A]


def test_a_folder_that_is_named_is_looked_at_with_all_below(place: Place) -> None:
    scan = place.source.scan(paths=["memory/deep"])
    assert B in scan.files and scan.whole


def test_a_source_that_is_lost_is_not_taken_for_empty(place: Place) -> None:
    place.source.require()
    known = {path: file.version for path, file in place.source.scan().files.items()}
    place.lose()
    with pytest.raises(SourceMissing):
        place.source.require()
    with pytest.raises(SourceMissing):
        place.source.scan(known)
    with pytest.raises(SourceMissing):
        place.source.scan(paths=["memory"])


def test_a_page_is_read_as_text_and_a_log_as_bytes(place: Place) -> None:
    page, log = place.read(A), place.read(LOG)
    assert (page.text, page.raw, page.failure) == ("one\n", b"", "")
    assert (log.text, log.raw, log.failure) == ("", "".join(LINES).encode(), "")
    place.write("memory/same.md", "one\n")
    assert place.read("memory/same.md").content_hash == page.content_hash != log.content_hash
    assert page.file == place.source.scan().files[A]


def test_what_cannot_be_indexed_is_a_failure_of_its_reading(place: Place) -> None:
    place.write("memory/bytes.md", b"fine\n\xff\n")
    assert "byte 0xff in line 2" in place.read("memory/bytes.md").failure
    assert "8 bytes" in place.read(B, max_bytes=7).failure and not place.read(B, max_bytes=8).failure
    file = place.source.scan().files[A]
    place.remove(A)
    assert "vanished" in place.source.read(file, max_bytes=MANY).failure


def test_what_is_read_is_as_it_is_now_with_its_version(place: Place) -> None:
    file = place.source.scan().files[A]
    place.write(A, "one and a half\n")
    content = place.source.read(file, max_bytes=MANY)
    assert content.text == "one and a half\n"
    assert content.file == place.source.scan().files[A] != file


def test_the_end_of_a_log(place: Place) -> None:
    first, second = (line.encode() for line in LINES)
    assert place.source.tail(LOG, 9) == (second[-9:], False)
    assert place.source.tail(LOG, len(second)) == (second, False)
    assert place.source.tail(LOG, 2 * len(first)) == place.source.tail(LOG, MANY) == (first + second, True)
    assert place.source.tail("sessions/none.jsonl", 9) == (b"", False)


def test_what_was_read_long_after_its_change_is_settled(place: Place) -> None:
    state = state_of(place.read(A))
    # The change of a file is its own; a name or a mode is changed by the clock.
    assert place.source.is_settled(state._replace(checked_ns=state.checked_ns + 10**10))
    assert not place.source.is_settled(state._replace(checked_ns=0))


def test_a_file_is_gone_when_it_was_removed_replaced_or_cut(place: Place) -> None:
    before = place.source.scan().files
    assert not any(map(place.source.is_gone, before.values()))
    place.write(A, "one\nand more\n")
    assert not place.source.is_gone(before[A]), "it grew"
    place.write(A, "o")
    place.replace(B, "two two and more\n")
    place.remove(LOG)
    assert all(map(place.source.is_gone, before.values()))


def test_a_watch_tells_of_what_changes_until_it_is_stopped(place: Place) -> None:
    stop, begun, heard = threading.Event(), threading.Event(), threading.Event()

    def changed(paths: Collection[str]) -> float:
        begun.set()
        if "memory/new.md" in paths or (not paths and "memory/new.md" in place.source.scan().files):
            heard.set()
        return 0.0

    thread = threading.Thread(target=place.source.watch, args=(changed, stop))
    thread.start()
    try:
        assert begun.wait(SECONDS), "it begins with a look at all"
        place.write("memory/new.md", "new\n")
        assert heard.wait(SECONDS)
    finally:
        stop.set()
        thread.join(SECONDS)
    assert not thread.is_alive()
