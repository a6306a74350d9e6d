"""The contract of `DocumentStore`, on every engine: in files, in a PostgreSQL database, in the memory of a process."""

from __future__ import annotations

import datetime as dt
import errno
import os
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_service.errors import InvalidName, NotFound, PreconditionFailed, StorageFailed
from memory_service.memories.drafts import entry_draft
from memory_service.memories.store import MemoryStore
from memory_service.storage.documents import (
    MAX_VERSION_BYTES,
    MAX_VERSIONS,
    VERSION_AGE,
    DocumentStore,
    DocumentVersion,
    Listing,
)
from memory_service.storage.files.document_files import FileDocuments
from memory_service.storage.postgres.postgres_documents import PostgresDocuments
from tests.disk import Call, recorded
from tests.memory_service.storage.in_memory_documents import InMemoryDocuments, Shelf
from tests.memory_service.storage.postgres_workspaces import PostgresWorkspaces
from tests.memory_service.storage.postgres_workspaces import postgres_workspaces as postgres_workspaces
from tests.postgres import TestDatabases

NOW = dt.datetime(2026, 11, 20, 14, 32, tzinfo=ZoneInfo("Europe/Berlin"))
PAGE = "memory/2026-11-20.md"


class Engine(ABC):
    """One workspace of an engine: stores that share it, and faults of what it stands on.

    Attributes:
        writes_in_place: Whether a content can be blanked where it stands: a row of a database gets a new place.
    """

    writes_in_place = True

    @abstractmethod
    def open(self) -> DocumentStore:
        """Another store of the same workspace, as another process would have it."""

    @abstractmethod
    def failing(self, at: int) -> AbstractContextManager[None]:
        """A disk that refuses a change at its step of this number."""

    @abstractmethod
    def full(self) -> AbstractContextManager[None]:
        """A disk without room for another copy of a document."""


class Files(Engine):
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def open(self) -> DocumentStore:
        return FileDocuments(self._folder / "w")

    @contextmanager
    def failing(self, at: int) -> Iterator[None]:
        steps = 0

        def refuse(call: Call) -> None:
            nonlocal steps
            steps += call.name not in ("close", "open")
            if steps == at:
                raise OSError(errno.EIO, os.strerror(errno.EIO))

        with recorded(self._folder, refuse):
            yield

    @contextmanager
    def full(self) -> Iterator[None]:
        def refuse(call: Call) -> None:
            if call.path.endswith(".tmp"):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        with recorded(self._folder, refuse):
            yield


class Memory(Engine):
    def __init__(self) -> None:
        self._shelf = Shelf()

    def open(self) -> DocumentStore:
        return InMemoryDocuments(self._shelf)

    @contextmanager
    def failing(self, at: int) -> Iterator[None]:
        def refuse(_: str) -> None:
            if at == 1:
                raise StorageFailed("The disk failed. Try again.")

        with self._before(refuse):
            yield

    @contextmanager
    def full(self) -> Iterator[None]:
        def refuse(change: str) -> None:
            if change == "replace":
                raise MemoryError

        with self._before(refuse):
            yield

    @contextmanager
    def _before(self, refuse: Callable[[str], None]) -> Iterator[None]:
        self._shelf.before = refuse
        try:
            yield
        finally:
            self._shelf.before = lambda _: None


class Postgres(Engine):
    writes_in_place = False

    def __init__(self, workspaces: PostgresWorkspaces) -> None:
        self._workspaces = workspaces
        self._name = workspaces.name()

    def open(self) -> DocumentStore:
        return PostgresDocuments(self._workspaces.database(), self._name, lock=self._workspaces.lock())

    def failing(self, at: int) -> AbstractContextManager[None]:
        return self._workspaces.cutting(at)

    def full(self) -> AbstractContextManager[None]:
        return self._workspaces.cutting()


@pytest.fixture(params=["files", "memory", "postgres"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Engine:
    if request.param == "postgres":
        return Postgres(request.getfixturevalue("postgres_workspaces"))
    return Files(tmp_path) if request.param == "files" else Memory()


@pytest.fixture
def store(engine: Engine) -> DocumentStore:
    return engine.open()


def put(store: DocumentStore, path: str, raw: bytes) -> bytes:
    """Make or replace a document; gives its revision."""
    assert store.replace(path, raw, expected=store.revision(path))
    revision = store.revision(path)
    assert revision is not None
    return revision


def test_looking_makes_nothing(engine: Engine, store: DocumentStore) -> None:
    assert store.scan() == Listing(documents={})
    assert store.revision(PAGE) is None
    assert store.containing(b"x", [PAGE]) == []
    assert store.spelling(PAGE) == PAGE and not store.leftovers()
    for look in (lambda: store.read(PAGE), lambda: list(store.pieces(PAGE)), lambda: store.remove(PAGE)):
        with pytest.raises(NotFound):
            look()
    assert engine.open().scan() == Listing(documents={})


def test_a_document_is_read_as_it_was_put(engine: Engine, store: DocumentStore) -> None:
    for path, raw in (("MEMORY.md", b""), (PAGE, "备用钥匙\r\n".encode()), ("memory/a/b.md", bytes(range(256)))):
        revision = put(store, path, raw)
        for other in (store, engine.open()):
            assert other.read(path) == (raw, revision)
            assert b"".join(other.pieces(path)) == raw
            listed = other.scan().documents[path]
            assert (listed.path, listed.size_bytes, listed.revision) == (path, len(raw), revision)
            assert abs((dt.datetime.now(dt.UTC) - listed.modified_at).total_seconds()) < 60
    assert sorted(store.scan().documents) == ["MEMORY.md", PAGE, "memory/a/b.md"]


def test_a_replace_is_done_to_its_revision_alone(engine: Engine, store: DocumentStore) -> None:
    first = put(store, PAGE, b"one")
    assert not store.replace(PAGE, b"new", expected=None)
    second = put(engine.open(), PAGE, b"two, by another one")
    assert first != second
    assert not store.replace(PAGE, b"three", expected=first)
    assert store.read(PAGE) == (b"two, by another one", second)
    assert store.remove(PAGE, expected=second)
    assert not store.replace(PAGE, b"four", expected=second)
    assert store.revision(PAGE) is None


def test_an_append_is_done_to_its_revision_alone(engine: Engine, store: DocumentStore) -> None:
    first = store.append(PAGE, b"one\n", expected=None)
    assert first is not None and store.read(PAGE) == (b"one\n", first)
    assert store.append(PAGE, b"x", expected=None) is None
    second = engine.open().append(PAGE, b"two\n", expected=first)
    assert second is not None and second != first
    assert store.append(PAGE, b"x", expected=first) is None
    assert store.append(PAGE, b"", expected=second) == second
    assert store.read(PAGE) == (b"one\ntwo\n", second)
    assert store.append("memory/none.md", b"x", expected=second) is None
    assert store.revision("memory/none.md") is None


def test_a_remove_is_done_to_its_revision_alone(store: DocumentStore) -> None:
    first = put(store, PAGE, b"one")
    second = put(store, PAGE, b"two, longer")
    assert not store.remove(PAGE, expected=first)
    assert store.remove(PAGE, expected=second)
    assert not store.remove(PAGE, expected=second)
    assert store.scan() == Listing(documents={})
    put(store, PAGE, b"again")
    assert store.remove(PAGE)


def test_a_revision_tells_contents_of_one_size_apart(store: DocumentStore) -> None:
    seen = {put(store, PAGE, b"%d" % number) for number in range(10)}
    assert len(seen) == 10


def test_a_document_is_given_its_time(store: DocumentStore) -> None:
    store.replace("MEMORY.md", b"one", expected=None)
    before, at = store.revision("MEMORY.md"), dt.datetime(1999, 12, 31, 23, 59, 59, 999_999, dt.UTC)
    store.set_time("MEMORY.md", at)
    assert store.scan().documents["MEMORY.md"].modified_at == at
    assert store.read("MEMORY.md").raw == b"one"
    assert store.append("MEMORY.md", b"two", expected=store.revision("MEMORY.md")) not in (None, before)
    assert store.scan().documents["MEMORY.md"].modified_at > at
    with pytest.raises(NotFound):
        store.set_time("memory/none.md", at)


def test_those_that_have_a_word_are_named(store: DocumentStore) -> None:
    put(store, PAGE, b"x" * (1 << 20) + "备用钥匙".encode())
    put(store, "MEMORY.md", b"- other\n")
    paths = [PAGE, "MEMORY.md", "USER.md"]
    assert store.containing("用钥".encode(), paths) == [PAGE]
    assert store.containing(b"other", paths) == ["MEMORY.md"]
    assert store.containing(b"other", [PAGE]) == []


def test_a_path_is_spelled_as_it_stands_there(store: DocumentStore) -> None:
    composed, decomposed = "memory/Café.md", "memory/Cafe\u0301.md"
    assert store.spelling(decomposed) == store.spelling(composed) == composed
    put(store, decomposed, b"x")
    assert store.spelling(composed) == store.spelling(decomposed) == decomposed


def contents(store: DocumentStore, path: str) -> list[bytes]:
    """The contents of all versions of a document, the last first."""
    return [store.version(path, version.version_id) for version in store.versions(path)]


def test_what_another_content_took_the_place_of_is_a_version(engine: Engine, store: DocumentStore) -> None:
    put(store, PAGE, b"one\n")
    put(store, PAGE, b"one\ntwo\n")
    assert store.append(PAGE, b"three\n", expected=store.revision(PAGE))
    assert list(store.versions(PAGE)) == [], "an append loses nothing"
    old = store.revision(PAGE)
    put(store, PAGE, b"four\n")
    assert not store.replace(PAGE, b"x", expected=old)
    put(store, PAGE, b"five\n")
    if not store.has_history:
        assert list(engine.open().versions(PAGE)) == []
        with pytest.raises(NotFound):
            store.version(PAGE, "00")
        return
    assert contents(engine.open(), PAGE) == [b"four\n", b"one\ntwo\nthree\n"]
    last, first = store.versions(PAGE)
    assert (last.size_bytes, first.size_bytes) == (5, 14) and last.version_id != first.version_id
    assert dt.timedelta(0) <= last.replaced_at - first.replaced_at < dt.timedelta(minutes=1)
    for version_id in ("", "x", "00" * 8, "\x00", last.version_id[:-1]):
        with pytest.raises(NotFound):
            store.version(PAGE, version_id)
    with pytest.raises(NotFound):
        store.version("MEMORY.md", last.version_id)
    put(store, PAGE, b"five\n")
    assert len(store.versions(PAGE)) == 2, "nothing went"


def test_what_is_erased_is_no_version(store: DocumentStore) -> None:
    for path in (PAGE, "MEMORY.md"):
        put(store, path, b"one\n")
        put(store, path, b"two\n")
    assert store.replace(PAGE, b"three\n", expected=store.revision(PAGE), erases=True)
    count = int(store.has_history)
    assert contents(store, PAGE) == [b"one\n"] * count
    assert store.erase_versions(lambda path, raw: path == PAGE and b"one" in raw) == count
    assert contents(store, PAGE) == [] and contents(store, "MEMORY.md") == [b"one\n"] * count
    assert store.erase_versions(lambda *_: False) == 0
    assert store.remove("MEMORY.md")
    assert put(store, "MEMORY.md", b"new\n") and contents(store, "MEMORY.md") == []


def test_a_history_has_bounds(store: DocumentStore) -> None:
    if not store.has_history:
        pytest.skip("there is no history in a folder")
    now, first = dt.datetime.now(dt.UTC), put(store, PAGE, b"0")
    for number in range(1, MAX_VERSIONS + 6):
        put(store, PAGE, b"%d" % number)
    assert contents(store, PAGE) == [b"%d" % number for number in range(MAX_VERSIONS + 4, 4, -1)]
    assert first.hex() not in [version.version_id for version in store.versions(PAGE)]
    large = b"x" * (MAX_VERSION_BYTES // 4)
    for number in range(6):
        put(store, "MEMORY.md", b"%d" % number + large)
    assert [raw[:1] for raw in contents(store, "MEMORY.md")] == [b"4", b"3", b"2"]
    old, young = (DocumentVersion(f"{at:016x}", now - VERSION_AGE * at / 10, 1) for at in (11, 9))
    for version in (young, old, young):
        store.add_version("USER.md", version, b"x")
    assert list(store.versions("USER.md")) == [young]
    assert store.version("USER.md", young.version_id) == b"x"
    with pytest.raises(NotFound):
        store.version("USER.md", old.version_id)


@pytest.mark.parametrize("path", ["../a.md", "memory/../../a.md", "/a.md", "memory//a.md", "memory/.a.md", ""])
def test_no_path_leaves_the_workspace(store: DocumentStore, path: str) -> None:
    for use in (
        store.read,
        lambda path: store.replace(path, b"x", expected=None),
        lambda path: store.append(path, b"x", expected=None),
        store.remove,
    ):
        with pytest.raises(InvalidName):
            use(path)
    assert store.scan() == Listing(documents={})


@pytest.mark.parametrize("change", ["replace", "append", "remove", "make", "begin"])
def test_a_change_that_fails_leaves_one_state_or_the_other(engine: Engine, change: str) -> None:
    for at in range(1, 40):
        store, path = engine.open(), f"memory/{at}.md"
        before = put(store, path, b"one\n") if change in ("replace", "append", "remove") else None
        acts: dict[str, Callable[[], object]] = {
            "replace": lambda: store.replace(path, b"two\n", expected=before),  # noqa: B023
            "make": lambda: store.replace(path, b"two\n", expected=None),  # noqa: B023
            "append": lambda: store.append(path, b"two\n", expected=before),  # noqa: B023
            "begin": lambda: store.append(path, b"two\n", expected=None),  # noqa: B023
            "remove": lambda: store.remove(path, expected=before),  # noqa: B023
        }
        after = {"replace": b"two\n", "make": b"two\n", "append": b"one\ntwo\n", "begin": b"two\n", "remove": None}
        failed = ""
        with engine.failing(at):
            try:
                acts[change]()
            except StorageFailed as error:
                failed = str(error)
        raw = store.read(path).raw if store.revision(path) is not None else None
        old = None if before is None else b"one\n"
        assert raw in (old, after[change]), failed
        if "has its new content" not in failed and "is gone" not in failed:
            assert raw == (old if failed else after[change]), failed
        # Whoever comes next can go on, and finds nothing half-written.
        with store.writing():
            store.sweep()
        assert not store.leftovers()
        put(store, path, b"three\n")
        if not failed:
            break
    else:
        raise AssertionError("the change failed at every step")


def test_a_full_disk_blanks_where_the_text_stands(store: DocumentStore, engine: Engine) -> None:
    if not engine.writes_in_place:
        pytest.skip("a database cannot change a text where it stands: a full disk refuses that, and says so")
    revision = put(store, PAGE, b"keep\nsecret\n")
    with engine.full():
        with pytest.raises(StorageFailed):
            store.replace(PAGE, b"keep\n", expected=revision)
        assert store.read(PAGE).raw == b"keep\nsecret\n"
        steps = [b"keep\nsecret\n", b"keep\n      \n"]
        assert store.replace(PAGE, b"keep\n", expected=revision, blanks=lambda: steps)
    assert store.read(PAGE).raw == steps[-1]
    assert store.revision(PAGE) != revision


def test_one_writer_at_a_time(engine: Engine) -> None:
    inside = threading.Event()
    order = list[str]()

    def other() -> None:
        inside.wait(60)
        with engine.open().writing():
            order.append("second")

    thread = threading.Thread(target=other)
    thread.start()
    with engine.open().writing():
        inside.set()
        time.sleep(0.1)
        order.append("first")
    thread.join()
    assert order == ["first", "second"]


def test_of_many_who_append_each_is_there_once(engine: Engine) -> None:
    def add(number: int) -> None:
        store = engine.open()
        with store.writing():
            assert store.append(PAGE, b"%d\n" % number, expected=store.revision(PAGE)) is not None

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(add, range(40)))
    lines = engine.open().read(PAGE).raw.splitlines()
    assert sorted(map(int, lines)) == list(range(40))


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["replace", "append", "remove"]),
        st.sampled_from([PAGE, "MEMORY.md"]),
        st.binary(max_size=4),
        st.booleans(),
    ),
    max_size=12,
)


@settings(max_examples=60)
@given(STEPS)
def test_both_engines_answer_alike(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, str, bytes, bool]]
) -> None:
    engines = (Files(tmp_path_factory.mktemp("home")), Memory())
    answers = [list(_answers(engine, steps)) for engine in engines]
    assert answers[0] == answers[1]


def test_a_database_answers_as_memory_does(postgres_databases: TestDatabases) -> None:
    workspaces = PostgresWorkspaces(postgres_databases.migrated())

    @settings(max_examples=40)
    @given(STEPS)
    def alike(steps: list[tuple[str, str, bytes, bool]]) -> None:
        assert list(_answers(Postgres(workspaces), steps)) == list(_answers(Memory(), steps))

    alike()
    workspaces.close()
    postgres_databases.drop()


def _answers(engine: Engine, steps: list[tuple[str, str, bytes, bool]]) -> Iterator[object]:
    store, old = engine.open(), dict[str, bytes | None]()
    for name, path, raw, is_current in steps:
        now = store.revision(path)
        expected = now if is_current else old.get(path)
        old.setdefault(path, now)
        try:
            if name == "remove":
                yield store.remove(path, expected=expected)
            elif name == "append":
                yield store.append(path, raw, expected=expected) is not None
            else:
                yield store.replace(path, raw, expected=expected)
        except NotFound:
            yield "not found"
        yield {path: store.read(path).raw for path in sorted(store.scan().documents)}


def test_memories_live_on_every_engine(engine: Engine) -> None:
    files = MemoryStore(engine.open(), now=lambda: NOW)
    first = files.notes.append(entry_draft("The quokka sleeps."))
    assert files.notes.append(entry_draft("The quokka sleeps.")).duplicate
    second = files.notes.append(entry_draft("袋鼯在岸边睡觉"))
    etag = files.write("MEMORY.md", "# Rules\n", if_none_match=True)
    with pytest.raises(PreconditionFailed):
        files.write("MEMORY.md", "# Other\n", if_match="0" * 32)
    other = MemoryStore(engine.open(), now=lambda: NOW)
    assert [(row.path, row.lines) for row in other.list()] == [("MEMORY.md", 1), (PAGE, 9)]
    assert other.read("MEMORY.md").etag == etag
    assert other.says(PAGE, "The quokka  sleeps.")
    other.entries.forget(first.memory_id)
    assert not files.says(PAGE, "The quokka sleeps.")
    assert files.entries.get(second.memory_id).text == "袋鼯在岸边睡觉"
    with engine.full() if engine.writes_in_place else nullcontext():
        files.entries.forget(second.memory_id)
    other.delete("MEMORY.md")
    assert engine.open().scan() == Listing(documents={})
