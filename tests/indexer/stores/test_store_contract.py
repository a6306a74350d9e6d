"""What every `IndexStore` promises. A new engine is one more parameter of `open_store`."""

from __future__ import annotations

import datetime as dt
import itertools
import random
import re
import secrets
import shutil
import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import indexer
from indexer.errors import StoreBusy, StoreReplaced
from indexer.language.names import greeted_name
from indexer.language.search_terms import passage_terms
from indexer.stores.base import (
    FileState,
    FileWrite,
    Head,
    IndexStore,
    NewPassage,
    OfFile,
    OfRanges,
    OfSharedThings,
    OfTags,
    OfThings,
    StoredPassage,
    Unembedded,
    Written,
    passages_of,
)
from indexer.stores.postgres.postgres_database import PostgresDatabase
from indexer.stores.postgres.postgres_index import open_postgres_index
from indexer.stores.sqlite import SqliteStore
from indexer.sync.plan import text_hash
from indexer.testing import HashEmbedder
from indexer.types import Cue, Fingerprint, LineRange, Passage, SearchFilter
from tests.indexer.memory_store import InMemoryStore
from tests.postgres import TestDatabases

DIMENSIONS = 16
MADE = Fingerprint(model="hash", dimensions=DIMENSIONS, rules="r", schema=1)
EMBEDDER = HashEmbedder(DIMENSIONS)

# Of a file on a disk: its size, times and inode.
VERSION = struct.pack("<qqqQ", 2**40, 1_700_000_000_123_456_789, 2, 2**63 - 1)

Open = Callable[[], IndexStore]


@pytest.fixture
def database_address(request: pytest.FixtureRequest) -> str:
    """The address of a database, of its own if it is put back, if the test is of the store that is in one."""
    if "postgres" not in request.node.callspec.id:
        return ""
    name = "migrated_database" if "snapshot" in request.fixturenames else "shared_database"
    return str(request.getfixturevalue(name))


@pytest.fixture(params=["sqlite", "memory", "postgres"])
def open_store(request: pytest.FixtureRequest, tmp_path: Path, database_address: str) -> Iterator[Open]:
    """Opens the same store anew each time, as another process would."""
    opened: list[IndexStore] = []
    databases: list[PostgresDatabase] = []
    shared, workspace = InMemoryStore(), secrets.token_hex(8)

    def connect() -> IndexStore:
        match request.param:
            case "sqlite":
                opened.append(SqliteStore(tmp_path / "index.sqlite", busy_seconds=5))
            case "memory":
                opened.append(shared.reopen())
            case "postgres":
                databases.append(PostgresDatabase(database_address))
                opened.append(open_postgres_index(databases[-1], workspace, tmp_path))
        return opened[-1]

    yield connect
    for store in opened:
        store.close()
    for database in databases:
        database.close()


Snapshot = Callable[[], Callable[[], None]]


@pytest.fixture
def snapshot(request: pytest.FixtureRequest, open_store: Open, tmp_path: Path, database_address: str) -> Snapshot:
    """Remembers what the store holds; its answer puts that back, as a restored file or the loss of the last writes."""

    def remember() -> Callable[[], None]:
        store = open_store()
        if isinstance(store, InMemoryStore):
            return store.snapshot()
        if database_address:
            databases: TestDatabases = request.getfixturevalue("postgres_databases")
            return databases.snapshot(database_address)
        store.scrub()
        shutil.copy(tmp_path / "index.sqlite", tmp_path / "former")
        return put_back

    def put_back() -> None:
        for end in ("-wal", "-shm"):
            (tmp_path / f"index.sqlite{end}").unlink(missing_ok=True)
        (tmp_path / "former").replace(tmp_path / "index.sqlite")

    return remember


@pytest.fixture
def store(open_store: Open) -> IndexStore:
    made = open_store()
    made.begin(MADE)
    return made


def state(
    path: str, *, content_hash: str = "h", failure: str = "", source: str = "memory", checked_ns: int = 4
) -> FileState:
    return FileState(
        path=path,
        source=source,  # type: ignore[arg-type]
        size_bytes=2**40,
        version=VERSION,
        checked_ns=checked_ns,
        content_hash=content_hash,
        failure=failure,
    )


def passage(
    text: str, *, date: dt.date | None = None, label: str | None = None, line: int = 1, tags: tuple[str, ...] = ()
) -> Passage:
    return Passage(start_line=line, end_line=line, text=text, date=date, label=label, tags=tags)


def new(at: int, made: Passage, *, path: str = "", embedded: bool = True) -> NewPassage:
    vector = EMBEDDER.embed_query(made.text).astype("<f4").tobytes() if embedded else None
    return NewPassage(
        ordinal=at,
        passage=made,
        text_hash=text_hash(made.text),
        terms=passage_terms(made, path),
        vector=vector,
        greeted=greeted_name(made.text),
    )


def put(
    store: IndexStore,
    path: str,
    made: Sequence[str | Passage],
    *,
    expected: int = 0,
    embedded: bool = True,
    source: str = "memory",
) -> Written:
    passages = [text if isinstance(text, Passage) else passage(text, line=at + 1) for at, text in enumerate(made)]
    inserted = tuple(new(at, each, path=path, embedded=embedded) for at, each in enumerate(passages))
    write = FileWrite(path=path, state=state(path, source=source), expected_revision=expected, inserted=inserted)
    return store.write([write])


def removal(store: IndexStore, path: str) -> FileWrite:
    removed = tuple((known.key, passage_terms(known.passage, path)) for known in passages_of(store, path))
    return FileWrite(path=path, state=None, expected_revision=store.file_states()[path].revision, removed=removed)


def keys_of(store: IndexStore, path: str) -> list[int]:
    return [known.key for known in passages_of(store, path)]


def found(store: IndexStore, text: str, *, limit: int = 10, kept: SearchFilter | None = None) -> list[str]:
    keys, _ = store.nearest(EMBEDDER.embed_query(text), limit, kept or SearchFilter())
    stored = store.passages(keys.tolist())
    return [stored[key].passage.text for key in keys.tolist()]


def tagged(store: IndexStore, *tags: str) -> list[str]:
    keys = [key for posting in store.postings(OfTags(tags)) for key in posting.keys.tolist()]
    return [each.passage.text for _, each in sorted(store.passages(keys).items())]


def test_a_store_is_at_most_sixteen_methods() -> None:
    methods = [name for name, each in vars(IndexStore).items() if callable(each) and not name.startswith("_")]
    assert len(methods) <= 16, methods


def test_no_part_outside_asks_which_store_it_is() -> None:
    root = Path(indexer.__file__).parent
    named = re.compile(r"isinstance\([^)]*Store\b|SqliteStore|InMemoryStore|indexer\.stores\.(?!base\b)")
    for path in (*root.rglob("*.py"), *(root.parent / "memory_service").rglob("*.py")):
        # Frameworks that are adapted to have stores of their own.
        assert path.parent.name in ("stores", "postgres", "integrations") or not named.search(
            path.read_text(encoding="utf-8")
        ), path


def test_before_the_first_write_there_is_nothing(open_store: Open, tmp_path: Path) -> None:
    store = open_store()
    assert store.head().fingerprint is None
    assert store.head().revision == 0
    assert store.file_versions(1) == {}
    assert store.file_states() == {}
    assert store.file_versions() == {}
    for which in (
        OfFile("MEMORY.md", 0),
        OfRanges((("MEMORY.md", 0, 9),)),
        Unembedded(9),
        OfThings((1,), 9, 1),
        OfSharedThings(9),
    ):
        assert store.passages(which) == {}
    assert store.postings(["x"]) == []
    assert tagged(store, "ops") == []
    store.check()
    store.scrub()
    assert store.head().generation == ""
    assert store.head(0) == Head(revision=0, generation="")
    with store.reading():
        assert len(store.corpus(None)) == 0
        assert len(store.corpus(None, since=5)) == 0
    assert list(tmp_path.iterdir()) == [], "looking makes no file"


def test_a_fingerprint_stays(store: IndexStore, open_store: Open) -> None:
    assert store.head().fingerprint == open_store().head().fingerprint == MADE


def test_what_is_written_is_read_back(store: IndexStore, open_store: Open) -> None:
    made = Passage(
        start_line=3,
        end_line=5,
        text="Grüße, 世界 🎉 \u202e'; DROP TABLE",
        heading=("Ä", 'with "quotes"'),
        opens_section=True,
        date=dt.date(2026, 11, 20),
        label="Ann",
        cues=Cue.TIME | Cue.ANSWER,
    )
    written = put(store, "memory/ü 'x'.md", [made])
    other = open_store()
    (known,) = passages_of(other, "memory/ü 'x'.md")
    assert (known.passage, known.ordinal, known.text_hash) == (made, 0, text_hash(made.text))
    (stored,) = other.passages([known.key, 10**12]).values()
    assert (stored.passage, stored.path, stored.source, stored.ordinal) == (made, "memory/ü 'x'.md", "memory", 0)
    states = other.file_states()
    assert written.refused == ()
    assert states["memory/ü 'x'.md"].revision == written.revision == other.head().revision
    assert states["memory/ü 'x'.md"].version == VERSION
    assert states["memory/ü 'x'.md"]._replace(revision=0) == state("memory/ü 'x'.md")


@pytest.mark.parametrize("version", [VERSION, b"\0" * 32, b"\xff" * 32, VERSION[:8] + b"\xff" * 24, b"7"])
def test_a_version_is_any_bytes(store: IndexStore, open_store: Open, version: bytes) -> None:
    made = state("memory/a.md")._replace(version=version)
    store.write([FileWrite(path=made.path, state=made, expected_revision=0)])
    assert open_store().file_states()[made.path].version == open_store().file_versions()[made.path] == version


def test_known_versions_are_those_of_the_states(store: IndexStore) -> None:
    assert store.file_versions() == {}
    settled = state("memory/a.md")
    store.write([FileWrite(path="memory/later.md", state=state("memory/later.md", checked_ns=0), expected_revision=0)])
    states = (
        settled, settled._replace(path="memory/b.md", content_hash=""), state("memory/c.md", checked_ns=0),
        settled._replace(path="@p/d.py", source="files", failure="it is UTF-16"),
    )  # fmt: skip
    store.write([FileWrite(path=each.path, state=each, expected_revision=0) for each in states])
    assert store.file_versions() == {path: each.known_version for path, each in store.file_states().items()}
    assert {path for path, stat in store.file_versions().items() if stat} == {"memory/a.md"}
    # What is known of a file becomes certain, or changes, without any of its passages.
    for again in (settled._replace(path="memory/later.md"), settled._replace(path="memory/later.md", version=b"7")):
        revision = store.file_states()["memory/later.md"].revision
        store.write([FileWrite(path="memory/later.md", state=again, expected_revision=revision)])
        assert store.file_versions()["memory/later.md"] == again.known_version != b""
    store.write([removal(store, "memory/a.md")])
    assert "memory/a.md" not in store.file_versions()


def test_revisions_and_keys_only_grow(store: IndexStore) -> None:
    revisions, keys = [store.head().revision], list[int]()
    for number in range(4):
        put(store, f"memory/{number}.md", ["a", "b"])
        keys += keys_of(store, f"memory/{number}.md")
        revisions.append(store.head().revision)
    store.write([removal(store, "memory/3.md")])
    revisions.append(store.head().revision)
    store.begin(MADE)
    revisions.append(store.head().revision)
    put(store, "memory/5.md", ["c"])
    keys += keys_of(store, "memory/5.md")
    assert revisions == sorted(set(revisions))
    assert keys == sorted(set(keys))


def test_things_that_several_passages_state(store: IndexStore) -> None:
    texts = ["Ana lives in Lisbon.", "Ana moved to Porto.", "Ben lives in Rome."]
    things = [(1, 2), (1,), (3,)]
    inserted = tuple(
        replace(new(number, passage(text), path="MEMORY.md"), things=stated)
        for number, (text, stated) in enumerate(zip(texts, things, strict=True))
    )
    write = FileWrite(path="MEMORY.md", state=state("MEMORY.md"), expected_revision=0, inserted=inserted)
    store.write([write], fact_rules="facts")
    assert [each.passage.text for each in store.passages(OfSharedThings(9)).values()] == [texts[1], texts[0]]
    assert [each.passage.text for each in store.passages(OfSharedThings(1)).values()] == [texts[1]]
    talk = replace(new(0, passage("Ana likes Porto."), path="sessions/s1.jsonl"), things=(1,))
    told = FileWrite(
        path="sessions/s1.jsonl",
        state=state("sessions/s1.jsonl", source="sessions"),
        expected_revision=0,
        inserted=(talk,),
    )
    store.write([told], fact_rules="facts")
    assert [each.passage.text for each in store.passages(OfSharedThings(1)).values()] == ["Ana likes Porto."]
    of_notes = OfSharedThings(1, ("memory",))
    assert [each.passage.text for each in store.passages(of_notes).values()] == [texts[1]], "they are chosen first"


def test_a_thing_that_counts_only_beside_another(store: IndexStore) -> None:
    inserted = tuple(
        replace(new(number, passage(text), path="MEMORY.md"), things=things)
        for number, (text, things) in enumerate([("One.", (1, 11)), ("Two.", (1, 2)), ("Three.", (2,))])
    )
    write = FileWrite(path="MEMORY.md", state=state("MEMORY.md"), expected_revision=0, inserted=inserted)
    store.write([write], fact_rules="facts")

    def texts(*things: int, besides: tuple[int, ...] = ()) -> list[str]:
        which = OfThings(things, 9, least=2, besides=besides)
        return [each.passage.text for each in store.passages(which).values()]

    assert sorted(texts(1)) == sorted(texts(1, besides=(11,))) == ["One.", "Two."]
    assert texts(1, besides=(12,)) == []
    assert sorted(texts(1, 2, besides=(12, 0))) == ["Three.", "Two."]
    assert texts(2, 1, besides=(12,)) == texts(1), "what has none beside it is read as it is"


def test_passages_of_tags(store: IndexStore) -> None:
    tags = {"one": ("ops/deploy/late", "home"), "two": ("ops",), "three": ("operations",), "four": ()}
    inserted = tuple(new(number, passage(text, tags=tags[text]), path="MEMORY.md") for number, text in enumerate(tags))
    store.write([FileWrite(path="MEMORY.md", state=state("MEMORY.md"), expected_revision=0, inserted=inserted)])
    assert tagged(store, "ops") == ["one", "two"]
    assert tagged(store, "ops/deploy") == tagged(store, "ops", "home") == ["one"]
    assert tagged(store, "deploy") == tagged(store, "ops", "none") == tagged(store, "") == []
    revision = store.file_states()["MEMORY.md"].revision
    one, two, *_ = sorted(store.passages(OfFile("MEMORY.md")))
    moved = ((one, 0, passage("one", tags=("new",))),)
    write = FileWrite(
        path="MEMORY.md", state=state("MEMORY.md"), expected_revision=revision, moved=moved, removed=((two, ("two",)),)
    )
    store.write([write])
    assert (tagged(store, "ops"), tagged(store, "new")) == ([], ["one"])


def test_a_reset_forgets_everything(store: IndexStore) -> None:
    put(store, "memory/a.md", ["one", "two"])
    other = Fingerprint(model="", dimensions=0, rules="r2", schema=1)
    store.begin(other)
    assert store.head().fingerprint == other
    assert store.file_states() == {}
    assert store.counts().passages == store.counts().files == 0
    assert store.postings(["on"]) == []
    put(store, "memory/a.md", ["one"], embedded=False)
    assert store.counts().passages == 1


def test_every_making_has_a_name_of_its_own(store: IndexStore, open_store: Open) -> None:
    first = store.head().generation
    put(store, "memory/a.md", ["one"])
    assert first
    assert store.head().generation == open_store().head().generation == first
    store.begin(MADE)
    assert store.head().generation == open_store().head().generation != first


def test_what_is_taken_back_is_another_generation(store: IndexStore, open_store: Open, snapshot: Snapshot) -> None:
    """So that nobody takes what is written under the same revisions and keys for what he knows."""
    put(store, "memory/a.md", ["one"])
    put_back = snapshot()
    put(store, "memory/b.md", ["xylophone"])
    replica, lost = open_store(), store.head()
    seen = replica.corpus(None)
    assert (seen.revision, seen.generation) == (lost.revision, lost.generation)
    put_back()
    put(open_store(), "memory/c.md", ["tambourine"])
    now = replica.head()
    assert now.generation not in ("", lost.generation)
    assert open_store().head().generation == store.head().generation == now.generation, "and all agree"
    corpus = replica.corpus(seen)
    assert [file.path for file in corpus.files] == ["memory/a.md", "memory/c.md"]
    assert corpus.keys.tolist() == store.corpus(None).keys.tolist()
    with replica.reading():
        assert replica.head().generation == now.generation
        assert replica.corpus(corpus) is corpus


class _Slow(tuple[NewPassage, ...]):
    """Passages that are handed over slowly: once, after the first of them, something else happens."""

    meanwhile: Callable[[], None] | None = None

    def __iter__(self) -> Iterator[NewPassage]:
        for each in super().__iter__():
            yield each
            meanwhile, self.meanwhile = self.meanwhile, None
            if meanwhile:
                meanwhile()


def check_keys_grow_in_commit_order(open_store: Open) -> None:
    slow, quick, reader = open_store(), open_store(), open_store()
    begun, overtaken = threading.Event(), threading.Event()

    def meanwhile() -> None:
        begun.set()
        overtaken.wait(0.5)

    passages = _Slow([new(0, passage("late one")), new(1, passage("late two"))])
    passages.meanwhile = meanwhile
    late = FileWrite(path="memory/late.md", state=state("memory/late.md"), expected_revision=0, inserted=passages)
    writer = threading.Thread(target=slow.write, args=([late],))
    writer.start()
    assert begun.wait(60)
    # Either waits for the other write, or overtakes it.
    put(quick, "memory/quick.md", ["quick"])
    told = reader.corpus(None)
    overtaken.set()
    writer.join()
    all_keys = reader.corpus(told).keys
    later = np.setdiff1d(all_keys, told.keys)
    assert len(all_keys) == 3
    assert not len(later) or later.min() > told.keys.max(), "keys do not grow in commit order"


def test_keys_grow_in_commit_order(store: IndexStore, open_store: Open) -> None:
    """A reader that knows the passages up to a key asks for those with larger ones."""
    check_keys_grow_in_commit_order(open_store)


class _KeysFromSequence(InMemoryStore):
    """A store that draws the keys of a write before its turn to write comes, as from a sequence."""

    _drawn: Iterator[int] = iter(())

    def write(self, writes: Sequence[FileWrite], **options: Any) -> Written:
        self._drawn = iter([next(self._generations.numbers) for write in writes for _ in write.inserted])
        return super().write(writes, **options)

    def _numbers(self) -> Iterator[int]:
        return itertools.chain(self._drawn, self._generations.numbers)


def test_a_store_that_draws_keys_from_a_sequence_breaks_the_contract() -> None:
    shared = _KeysFromSequence()
    shared.begin(MADE)
    with pytest.raises(AssertionError, match="commit order"):
        check_keys_grow_in_commit_order(shared.reopen)


def test_changes_are_what_was_written_and_what_went(store: IndexStore, open_store: Open) -> None:
    made = open_store().head().revision
    put(store, "memory/a.md", ["one"])
    first = put(store, "memory/b.md", ["two"]).revision
    put(store, "sessions/c.jsonl", ["three"], source="sessions")
    before = open_store().head(made)
    numbers = {path: file for file, path, _ in before.files}
    assert sorted(before.files) == sorted(
        (numbers[path], path, "sessions" if path.startswith("s") else "memory") for path in store.file_states()
    )
    assert before.gone == ()
    assert store.head(before.revision) == replace(before, files=())
    store.write([removal(store, "memory/a.md")])
    put(store, "memory/b.md", ["four"], expected=first)
    # The same path anew is another file.
    put(store, "memory/a.md", ["five"])
    after = store.head(before.revision)
    assert after.revision == store.head().revision
    assert {path for _, path, _ in after.files} == {"memory/a.md", "memory/b.md"}
    assert {file for file, _, _ in after.files} & set(numbers.values()) == {numbers["memory/b.md"]}
    assert after.gone == (numbers["memory/a.md"],)
    assert store.head(made).gone == after.gone
    store.begin(MADE)
    assert store.head(made).gone == ()
    assert store.head(made).generation != after.generation


def test_a_corpus_can_begin_at_a_revision(store: IndexStore, open_store: Open) -> None:
    put(store, "memory/b.md", ["one"])
    since = put(store, "memory/c.md", ["two"]).revision
    assert len(store.corpus(None, since=since)) == 0
    put(store, "memory/a.md", ["three", "four"])
    put(store, "memory/c.md", ["five"], expected=since)
    tail = store.corpus(None, since=since)
    assert [file.path for file in tail.files] == ["memory/a.md", "memory/c.md"]
    assert len(store.corpus(tail)) == 5, "another beginning is another corpus"
    assert store.corpus(tail, since=since) is tail
    store.write([removal(open_store(), "memory/a.md"), removal(store, "memory/b.md")])
    put(store, "memory/d.md", ["six"])
    later = store.corpus(tail, since=since)
    assert [file.path for file in later.files] == ["memory/c.md", "memory/d.md"]
    assert later.files[0] is tail.files[1], "what nobody changed is not read again"


def test_a_corpus_brought_up_to_date_is_the_one_made_anew(store: IndexStore) -> None:
    chance = random.Random(1)
    corpus = None
    for step in range(60):
        path = f"memory/{chance.randrange(6)}.md"
        known = store.file_states().get(path)
        if step % 25 == 24:
            store.begin(MADE)
        elif known and chance.random() < 0.4:
            store.write([removal(store, path)])
        else:
            texts = [f"{step} {n}" for n in range(chance.randrange(3))]
            put(store, path, texts, expected=known.revision if known else 0)
        corpus, anew = store.corpus(corpus), store.corpus(None)
        assert [file.path for file in corpus.files] == [file.path for file in anew.files]
        assert corpus.keys.tolist() == anew.keys.tolist()
        assert (corpus.revision, corpus.generation) == (anew.revision, anew.generation)


def test_the_passages_of_a_file_can_be_had_from_a_place_on(store: IndexStore) -> None:
    put(store, "memory/a.md", ["one", "two", "three"])
    put(store, "memory/b.md", ["four"])
    for first, texts in ((0, ["one", "two", "three"]), (2, ["three"]), (3, [])):
        assert [known.passage.text for known in passages_of(store, "memory/a.md", first=first)] == texts
    assert passages_of(store, "memory/a.md", first=-1) == passages_of(store, "memory/a.md")[-1:]
    assert passages_of(store, "memory/c.md", first=-1) == []


def test_ranges_of_files_can_be_had_at_once(store: IndexStore) -> None:
    put(store, "memory/a.md", [passage(f"word{number}", line=number + 1) for number in range(9)])
    put(store, "memory/b.md", ["other"])
    ranges = OfRanges((("memory/b.md", 0, 9), ("memory/c.md", 0, 9), ("memory/a.md", 3, 6), ("memory/a.md", 5, 7)))
    some = [each.passage.text for each in store.passages(ranges).values()]
    assert some == ["other", "word3", "word4", "word5", "word6"]
    assert not store.passages(OfRanges((("memory/a.md", 3, 3),))) and not store.passages(OfRanges(()))


def test_a_write_is_refused_when_the_file_changed_meanwhile(store: IndexStore, open_store: Open) -> None:
    first = put(store, "memory/a.md", ["one"]).revision
    assert put(open_store(), "memory/a.md", ["two"]).refused == ("memory/a.md",), "it is known already"
    second = put(open_store(), "memory/a.md", ["two"], expected=first).revision
    refused = put(store, "memory/a.md", ["three"], expected=first)
    assert refused.refused == ("memory/a.md",)
    assert [known.passage.text for known in passages_of(store, "memory/a.md")] == ["one", "two"]
    assert store.file_states()["memory/a.md"].revision == second
    gone = FileWrite(path="memory/a.md", state=None, expected_revision=first)
    assert store.write([gone]).refused == ("memory/a.md",)


def test_two_writes_of_one_file_count_in_their_order(store: IndexStore) -> None:
    put(store, "memory/a.md", ["one"])
    anew = FileWrite(
        path="memory/a.md", state=state("memory/a.md"), expected_revision=0, inserted=(new(0, passage("two")),)
    )
    assert store.write([removal(store, "memory/a.md"), anew]).refused == ()
    assert [known.passage.text for known in passages_of(store, "memory/a.md")] == ["two"]
    assert store.write([anew, anew]).refused == ("memory/a.md", "memory/a.md")
    store.check()


def test_what_another_wrote_since_the_last_look_is_no_damage(open_store: Open) -> None:
    mine, other = open_store(), open_store()
    mine.begin(MADE)
    for n in range(3):
        put(mine, f"memory/{n}.md", ["one quokka"])
    assert mine.postings(["quokka"])
    for n in range(3, 60):
        put(other, f"memory/{n}.md", [f"quokka {n}"])
    mine.check()
    for n in range(60):
        other.write([removal(other, f"memory/{n}.md")])
    mine.check()


def test_one_refused_file_does_not_stop_the_others(store: IndexStore) -> None:
    put(store, "memory/a.md", ["one"])
    writes = [
        FileWrite(path=path, state=state(path), expected_revision=0, inserted=(new(0, passage("x")),))
        for path in ("memory/a.md", "memory/b.md")
    ]
    assert store.write(writes).refused == ("memory/a.md",)
    assert len(keys_of(store, "memory/b.md")) == 1


def test_a_write_that_fails_leaves_nothing(store: IndexStore) -> None:
    put(store, "memory/a.md", ["one"])
    before = (store.head().revision, store.counts().passages, keys_of(store, "memory/a.md"))
    bad = NewPassage(ordinal=1, passage=passage("bad"), text_hash=b"", terms=("bad",), vector=b"\x00" * 7)
    writes = [
        FileWrite(
            path="memory/b.md", state=state("memory/b.md"), expected_revision=0, inserted=(new(0, passage("good")),)
        ),
        FileWrite(path="memory/c.md", state=state("memory/c.md"), expected_revision=0, inserted=(bad,)),
    ]
    with pytest.raises(Exception):  # noqa: B017  (each engine's own)
        store.write(writes)
    assert (store.head().revision, store.counts().passages, keys_of(store, "memory/a.md")) == before
    assert store.postings(["good"]) == store.postings(["bad"]) == []
    assert set(store.file_states()) == {"memory/a.md"}
    put(store, "memory/b.md", ["good"])
    assert len(store.postings(["good"])) == 1


def test_a_moved_passage_keeps_its_key_and_its_vector(store: IndexStore) -> None:
    revision = put(store, "memory/a.md", ["one", "two"]).revision
    one, two = keys_of(store, "memory/a.md")
    moved = Passage(start_line=9, end_line=9, text="two", heading=("New",), label="Bob", cues=Cue.TIME)
    write = FileWrite(
        path="memory/a.md",
        state=state("memory/a.md"),
        expected_revision=revision,
        moved=((two, 0, moved),),
        removed=((one, ("on",)),),
    )
    store.write([write])
    (known,) = passages_of(store, "memory/a.md")
    assert (known.key, known.ordinal, known.passage) == (two, 0, moved)
    assert found(store, "two") == ["two"]
    assert store.postings(["on"]) == []


def test_a_removed_file_is_gone(store: IndexStore) -> None:
    put(store, "memory/a.md", [passage("Ann speaks", label="Ann"), passage("Ann: Hey Kate!", label="Ann")])
    put(store, "memory/b.md", ["other"])
    assert sorted(store.corpus(None).label_names.values()) == ["Ann", "kate"]
    store.write([removal(store, "memory/a.md")])
    assert set(store.file_states()) == {"memory/b.md"}
    assert passages_of(store, "memory/a.md") == []
    assert store.postings(["speak", "ann"]) == []
    assert found(store, "Ann speaks") == ["other"]
    assert store.vectors_of_texts([text_hash("Ann speaks")]) == {}
    assert store.corpus(None).label_names == {}


def test_postings_count_the_terms_of_each_passage(store: IndexStore) -> None:
    put(store, "memory/a.md", ["red red fish", "blue fish", "猫"])
    keys = keys_of(store, "memory/a.md")
    postings = {posting.term: posting for posting in store.postings(["red", "fish", "猫", "none", "or", '"'])}
    assert set(postings) == {"red", "fish", "猫"}
    assert postings["red"].keys.tolist() == keys[:1] and postings["red"].counts.tolist() == [2]
    assert postings["fish"].keys.tolist() == keys[:2] and postings["fish"].counts.tolist() == [1, 1]


def test_what_some_passages_were_stored_with_is_told_by_the_index(store: IndexStore) -> None:
    put(store, "memory/2026-11-01.md", ["red red fish", "blue fish", "猫"])
    put(store, "memory/2026-11-02.md", ["red"])
    first, _, last = keys_of(store, "memory/2026-11-01.md")
    told = {
        (posting.term, key): count
        for posting in store.postings(None, among=[first, last])
        for key, count in zip(posting.keys.tolist(), posting.counts.tolist(), strict=True)
    }
    assert told == {("red", first): 2, ("fish", first): 1, ("猫", last): 1}
    assert store.postings(None, among=[]) == store.postings(None, among=[last + 99]) == []


def test_vectors_come_back_as_they_went_in(store: IndexStore) -> None:
    put(store, "memory/a.md", ["one", "two", "three"])
    put(store, "memory/b.md", ["without"], embedded=False)
    keys = keys_of(store, "memory/a.md")
    for asked in (None, keys):
        found_keys, vectors = store.vectors(asked)
        assert sorted(found_keys.tolist()) == keys
        by_key = dict(zip(found_keys.tolist(), vectors, strict=True))
        assert np.array_equal(by_key[keys[1]], EMBEDDER.embed_query("two"))
    assert store.vectors([10**12])[0].tolist() == []
    hashed = [text_hash("two"), text_hash("without"), text_hash("never")]
    assert store.vectors_of_texts(hashed) == {hashed[0]: EMBEDDER.embed_query("two").astype("<f4").tobytes()}


def check_a_vector_is_found_wherever_it_stands(store: IndexStore) -> None:
    """A text has its vector if any file has it, whichever files hold the text without one, and as they go."""
    hashed, files = text_hash("同一句话 twice"), ("memory/a.md", "memory/b.md", "memory/c.md")
    for states in itertools.product((None, False, True), repeat=len(files)):
        held = {path: each for path, each in zip(files, states, strict=True) if each is not None}
        for path, embedded in held.items():
            put(store, path, ["before", "同一句话 twice"], embedded=embedded)
        while held:
            assert (hashed in store.vectors_of_texts([hashed])) == any(held.values()), (states, held)
            path, _ = held.popitem()
            store.write([removal(store, path)])
        assert store.vectors_of_texts([hashed]) == {}


def test_a_vector_is_found_wherever_it_stands(store: IndexStore) -> None:
    check_a_vector_is_found_wherever_it_stands(store)


def lacking(
    store: IndexStore, limit: int = 9, *, below: int | None = None, paths: Sequence[str] | None = None
) -> list[str]:
    return [each.passage.text for each in store.passages(Unembedded(limit, below, paths)).values()]


def test_passages_without_a_vector_are_told_newest_first(store: IndexStore) -> None:
    put(store, "memory/a.md", ["one"])
    put(store, "memory/b.md", ["two", "三", "four"], embedded=False)
    put(store, "memory/b/c.md", ["five"], embedded=False)
    assert lacking(store) == ["five", "four", "三", "two"]
    assert lacking(store, 2) == ["five", "four"]
    assert lacking(store, below=min(store.passages(Unembedded(2)))) == ["三", "two"]
    assert lacking(store, paths=["memory/b/"]) == ["five"]
    assert lacking(store, paths=["memory/b.md", "memory/a.md"]) == ["four", "三", "two"]
    assert len(lacking(store, paths=["memory"])) == 4


def test_a_vector_that_comes_later_leaves_the_passage_as_it_is(store: IndexStore) -> None:
    put(store, "memory/a.md", ["one", "two"])
    put(store, "memory/b.md", ["三", "four"], embedded=False)
    three, four = keys_of(store, "memory/b.md")
    before = store.head().revision
    vectors = [
        (key, EMBEDDER.embed_query(text).astype("<f4").tobytes()) for key, text in ((three, "三"), (four, "four"))
    ]
    store.write((), vectors=[*vectors, (10**12, vectors[0][1])], made_with=MADE)
    assert lacking(store) == [] and keys_of(store, "memory/b.md") == [three, four]
    assert found(store, "三")[:1] == ["三"] and len(found(store, "x")) == 4
    assert found(store, "x", kept=SearchFilter(sources=("sessions",))) == []
    assert [path for _, path, _ in store.head(before).files] == ["memory/b.md"]
    store.write((), vectors=vectors, made_with=MADE)
    assert len(found(store, "x")) == 4, "a vector that is there stays"
    with pytest.raises(StoreReplaced):
        store.write((), vectors=vectors, made_with=replace(MADE, model="other"))


def test_an_index_of_words_takes_vectors_once(open_store: Open) -> None:
    store, other = open_store(), open_store()
    words = Fingerprint(model="", dimensions=0, rules="r", schema=1)
    store.begin(words)
    put(store, "memory/a.md", ["one"], embedded=False)
    wanted = replace(words, model="m", dimensions=DIMENSIONS)
    assert store.begin(wanted, keeping=words) == wanted == other.head().fingerprint
    assert other.begin(replace(wanted, model="late"), keeping=words) == wanted, "another process was first"
    vector = EMBEDDER.embed_query("one").astype("<f4").tobytes()
    other.write((), vectors=[(keys_of(store, "memory/a.md")[0], vector)], made_with=wanted)
    assert found(store, "one") == ["one"]


def test_counts(store: IndexStore) -> None:
    put(store, "memory/a.md", ["one", "two"])
    put(store, "memory/b.md", ["three"], embedded=False)
    store.write([FileWrite(path="c", state=state("c", failure="bad"), expected_revision=0)])
    counts = store.counts()
    assert (counts.files, counts.passages, counts.embedded, counts.failed_files) == (3, 3, 2, 1)
    assert counts.size_bytes > 0
    assert counts.updated_at is not None
    assert abs((dt.datetime.now(dt.UTC) - counts.updated_at).total_seconds()) < 60


MANY = 700


@pytest.fixture
def varied(store: IndexStore) -> IndexStore:
    """Passages whose nearness to "fish" falls from file to file."""
    for number in range(4):
        made = [
            passage(f"fish {'other ' * number}{at}", date=dt.date(2026, 1 + number, 1) if number else None, line=at + 1)
            for at in range(MANY // 4)
        ]
        put(store, f"memory/{'ab'[number % 2]}/{number}%_.md", made, source=("memory", "files")[number // 2])
    return store


@pytest.mark.parametrize(
    ("kept", "files"),
    [
        (SearchFilter(), {0, 1, 2, 3}),
        (SearchFilter(sources=("files",)), {2, 3}),
        (SearchFilter(sources=("memory", "sessions")), {0, 1}),
        (SearchFilter(path_prefix="memory/a/"), {0, 2}),
        (SearchFilter(path_prefix="memory/a/2%"), {2}),
        (SearchFilter(path_prefix="memory/%"), set()),
        (SearchFilter(since=dt.date(2026, 3, 1)), {2, 3}),
        (SearchFilter(until=dt.date(2026, 3, 1)), {1, 2}),
        (SearchFilter(since=dt.date(2026, 3, 1), until=dt.date(2026, 3, 1)), {2}),
        (SearchFilter(sources=("files",), path_prefix="memory/b", since=dt.date(2026, 1, 1)), {3}),
    ],
)
def test_nearest_is_exact_among_what_a_filter_keeps(varied: IndexStore, kept: SearchFilter, files: set[int]) -> None:
    query = EMBEDDER.embed_query("fish")
    keys, cosines = varied.nearest(query, 30, kept)
    all_keys, vectors = varied.vectors(None)
    stored = varied.passages(all_keys.tolist())
    allowed = np.array([int(stored[key].path[9]) in files for key in all_keys.tolist()], bool)
    best = np.sort((vectors @ query)[allowed])[::-1][:30]
    assert cosines == pytest.approx(best, abs=1e-5)
    assert np.all(np.diff(cosines) <= 0)
    assert {int(stored[key].path[9]) for key in keys.tolist()} <= files


@pytest.mark.parametrize("limit", [1, 7, 60, 4096])
def test_near_ties_have_one_order(store: IndexStore, limit: int) -> None:
    chance, query = np.random.default_rng(5), EMBEDDER.embed_query("fish")
    beside = chance.standard_normal((120, len(query))) * np.geomspace(3e-4, 6e-3, 60).repeat(2)[:, np.newaxis]
    made = (query + beside / np.sqrt(len(query))).astype("<f4")
    made[50] = made[7]
    inserted = [replace(new(at, passage(f"number {at}", line=at + 1)), vector=made[at].tobytes()) for at in range(120)]
    write = FileWrite(path="memory/a.md", state=state("memory/a.md"), expected_revision=0, inserted=tuple(inserted))
    assert not store.write([write]).refused
    keys, vectors = store.vectors(None)
    order = np.argsort(keys)
    rows, wanted = vectors[order].astype(np.float64), query.astype(np.float64)
    exact = rows @ wanted / np.sqrt((rows * rows).sum(axis=1) * (wanted @ wanted))
    assert len(np.unique(exact.round(12))) == 119, "all others can be told apart"
    best = np.lexsort((keys[order], -exact.round(13)))[:limit]
    near_keys, cosines = store.nearest(query, limit, SearchFilter())
    assert near_keys.tolist() == keys[order][best].tolist()
    assert cosines == pytest.approx(exact[best], abs=1e-6)


def lines(file: int, first: int, last: int) -> LineRange:
    """Lines of one of the files of `varied`."""
    return LineRange(path=f"memory/{'ab'[file % 2]}/{file}%_.md", start_line=first, end_line=last)


@pytest.mark.parametrize("limit", [1, 30, 4096])
@pytest.mark.parametrize(
    "kept",
    [
        SearchFilter(without=(lines(0, 1, MANY),)),
        SearchFilter(without=(lines(0, 1, MANY - 3),)),
        SearchFilter(without=(lines(0, 5, 7), lines(0, 6, 20), lines(1, 2, 2))),
        SearchFilter(without=(lines(2, 1, 3),), path_prefix="memory/a/", sources=("files",)),
        SearchFilter(without=(LineRange(path="memory/a/0%_", start_line=1, end_line=MANY),)),
        SearchFilter(without=(lines(0, 9, 8),)),
        SearchFilter(without=tuple(lines(number, 1, MANY) for number in range(4))),
    ],
)
def test_nearest_leaves_out_ranges_of_lines(varied: IndexStore, kept: SearchFilter, limit: int) -> None:
    query = EMBEDDER.embed_query("fish")
    keys, cosines = varied.nearest(query, limit, kept)
    all_keys, vectors = varied.vectors(None)
    stored = varied.passages(all_keys.tolist())
    allowed = np.array([stays(stored[key], kept) for key in all_keys.tolist()], bool)
    assert all(stays(stored[key], kept) for key in keys.tolist())
    assert len(keys) == min(limit, int(allowed.sum()))
    assert cosines == pytest.approx(np.sort((vectors @ query)[allowed])[::-1][: len(keys)], abs=1e-5)


@pytest.mark.parametrize("limit", [5, 4096])
def test_nearest_keeps_what_a_range_covers_in_part(store: IndexStore, limit: int) -> None:
    made = [replace(passage(text, line=line), end_line=line + 2) for text, line in (("鱼 one", 1), ("鱼 two", 4))]
    put(store, "memory/a.md", made)
    kept = SearchFilter(without=(LineRange(path="memory/a.md", start_line=1, end_line=5),))
    assert found(store, "鱼", limit=limit, kept=kept) == ["鱼 two"]


def stays(found: StoredPassage, kept: SearchFilter) -> bool:
    first, last = found.passage.start_line, found.passage.end_line
    hidden = any(r.path == found.path and r.start_line <= first and last <= r.end_line for r in kept.without)
    return found.path.startswith(kept.path_prefix) and (not kept.sources or found.source in kept.sources) and not hidden


def test_more_neighbours_than_there_are(store: IndexStore) -> None:
    put(store, "memory/a.md", ["one", "two"])
    assert len(found(store, "one", limit=100_000)) == 2


def test_a_corpus_is_in_reading_order(store: IndexStore) -> None:
    put(store, "memory/b.md", [passage("b one", label="Ann"), passage("b two")])
    put(store, "memory/a.md", [passage("a one", date=dt.date(2026, 1, 2)), "a two"])
    put(store, "memory/empty.md", [])
    corpus = store.corpus(None)
    assert [file.path for file in corpus.files] == ["memory/a.md", "memory/b.md"]
    assert corpus.keys.tolist() == keys_of(store, "memory/a.md") + keys_of(store, "memory/b.md")
    assert corpus.days.tolist() == [dt.date(2026, 1, 2).toordinal(), 0, 0, 0]
    assert corpus.chars.tolist() == [5, 5, 5, 5]
    assert list(corpus.speakers.values()) == ["Ann"]
    assert corpus.labels[2] in corpus.speakers


def test_a_corpus_of_another_store_is_not_taken_over(store: IndexStore) -> None:
    put(store, "memory/a.md", ["one"])
    before = store.corpus(None)
    store.begin(MADE)
    put(store, "memory/a.md", ["two"])
    after = store.corpus(before)
    assert after.keys.tolist() == keys_of(store, "memory/a.md")
    assert not set(after.keys) & set(before.keys)


def test_reading_shows_one_state(store: IndexStore, open_store: Open) -> None:
    put(store, "memory/a.md", ["one"])
    other = open_store()
    with store.reading():
        before = store.head().revision
        put(other, "memory/b.md", ["two"])
        assert store.head().revision == before
        assert set(store.file_states()) == {"memory/a.md"}
        with store.reading():
            assert len(store.corpus(None)) == 1
        assert store.postings(["two"]) == []
    assert set(store.file_states()) == {"memory/a.md", "memory/b.md"}


def test_an_error_inside_a_reading_does_not_hold_it_open(store: IndexStore, open_store: Open) -> None:
    put(store, "memory/a.md", ["one"])
    with pytest.raises(ZeroDivisionError), store.reading():
        store.head()
        raise ZeroDivisionError
    put(open_store(), "memory/b.md", ["two"])
    assert len(store.file_states()) == 2


def test_a_pack_is_fetched_as_it_was_published(store: IndexStore, open_store: Open, tmp_path: Path) -> None:
    pack, other = tmp_path / "a.pack", open_store()
    pack.write_bytes(bytes(range(256)) * 8_000)
    assert store.segments.fetch(newer_than=0) is None
    store.segments.publish(pack, generation=store.head().generation, revision=3)
    pieces = other.segments.fetch(newer_than=0)
    if pieces is None:
        assert isinstance(store, SqliteStore), "its pack is where it was made"
        return
    assert b"".join(pieces) == pack.read_bytes()
    assert other.segments.fetch(newer_than=3) is None
    pack.write_bytes(b"smaller")
    other.segments.publish(pack, generation=other.head().generation, revision=5)
    assert b"".join(store.segments.fetch(newer_than=3) or ()) == b"smaller"
    store.begin(MADE)
    assert other.segments.fetch(newer_than=0) is None, "it was of another generation"
    store.segments.publish(pack, generation=store.head().generation, revision=1)
    store.segments.publish(None, generation="", revision=0)
    assert other.segments.fetch(newer_than=0) is None
    store.segments.publish(pack, generation="another", revision=9)
    assert other.segments.fetch(newer_than=0) is None, "what it was made of may have been taken back"


def test_one_machine_packs_at_a_time(store: IndexStore, open_store: Open) -> None:
    other = open_store()
    with store.segments.hold_lock():
        if isinstance(store, SqliteStore):
            return  # The file itself has a lock.
        with pytest.raises(StoreBusy), other.segments.hold_lock():
            pass
    with other.segments.hold_lock():
        pass


def test_a_closed_store_may_be_used_again(store: IndexStore) -> None:
    put(store, "memory/a.md", ["one"])
    store.close()
    assert len(store.file_states()) == 1
    store.close()
