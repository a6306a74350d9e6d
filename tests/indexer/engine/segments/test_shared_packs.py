"""Machines that share a store: one packs and publishes, the others fetch."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from indexer.engine.reader import IndexReader
from indexer.engine.reader_manager import IndexReaderManager
from indexer.engine.segments import builder
from indexer.engine.segments.builder import open_segment, pack_store
from indexer.engine.segments.file import Array
from indexer.errors import StoreError
from indexer.language.terms import term_hashes
from indexer.stores.base import FileWrite, IndexStore
from indexer.types import Fingerprint
from tests.indexer.engine.segments.test_quantizer import clustered, filled
from tests.indexer.memory_store import InMemorySegments, InMemoryStore

_DIMENSIONS = 8
_VECTORS = clustered(400, _DIMENSIONS, seed=5)


class Machine:
    """A process of its own machine, with the packed part of a shared index."""

    def __init__(self, shared: InMemoryStore, folder: Path, *, pack_passages: int = 100) -> None:
        folder.mkdir()
        self.store = shared.on_machine(folder)
        self.manager = IndexReaderManager(self.store, pack_passages=pack_passages)

    @property
    def path(self) -> Path:
        path = self.store.segments.path()
        assert path is not None
        return path

    @property
    def published(self) -> bytes | None:
        kept = self.store.current.published
        return None if kept is None else kept[-1]

    def read(self) -> IndexReader:
        with self.store.reading():
            return self.manager.reader(_DIMENSIONS)


@pytest.fixture
def shared() -> InMemoryStore:
    store = InMemoryStore()
    store.begin(Fingerprint(model="m", dimensions=_DIMENSIONS, rules="r", schema=1))
    store.write([filled(f"memory/{part}.md", "memory", _VECTORS, np.arange(part, 300, 3)) for part in range(3)])
    return store


@pytest.fixture
def first(shared: InMemoryStore, tmp_path: Path) -> Machine:
    """The machine that has packed."""
    machine = Machine(shared, tmp_path / "first")
    machine.manager.pack()
    return machine


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The generations of the packs that are built from now on."""
    built, build = list[str](), builder._build_arrays

    def note(store: IndexStore) -> tuple[dict[str, Array], dict[str, str]]:
        built.append(store.head().generation)
        return build(store)

    monkeypatch.setattr(builder, "_build_arrays", note)
    yield built


def test_a_first_search_has_the_pack_that_another_machine_made(
    first: Machine, shared: InMemoryStore, tmp_path: Path, built: list[str]
) -> None:
    second = Machine(shared, tmp_path / "second")
    reader = second.read()
    assert reader.packed_part is not None and len(reader.packed_part.segment) == 300
    assert second.path.read_bytes() == first.path.read_bytes()
    assert built == []


def test_a_packing_fetches_what_is_newer(
    first: Machine, shared: InMemoryStore, tmp_path: Path, built: list[str]
) -> None:
    second = Machine(shared, tmp_path / "second")
    second.read()
    shared.write([filled("memory/new.md", "memory", _VECTORS, np.arange(300, 400))])
    first.manager.pack()
    assert len(built) == 1
    before = second.read().packed_part
    second.manager.pack()
    after = second.read().packed_part
    assert before is not None and after is not None
    assert (len(before.segment), len(after.segment)) == (300, 400)
    assert len(built) == 1, "built once for both"
    # Nothing newer is there: who packs now builds.
    second.manager.pack()
    assert len(built) == 2


def test_a_pack_of_a_later_state_than_a_read_sees_is_not_used(first: Machine, shared: InMemoryStore) -> None:
    with first.store.reading():
        head = first.store.head()
        shared.write([filled("memory/new.md", "memory", _VECTORS, np.arange(300, 400))])
        other = Machine(shared, first.path.parent.with_name("second"))
        other.manager.pack()
        reader = first.manager.reader(_DIMENSIONS)
    assert reader.packed_part is not None and reader.packed_part.segment.revision <= head.revision


def test_what_is_erased_leaves_the_published_pack(first: Machine, shared: InMemoryStore, tmp_path: Path) -> None:
    mark = term_hashes(["0"]).astype("<u8").tobytes()
    assert first.published is not None and mark in first.published
    shared.write([FileWrite(path="memory/0.md", state=None, expected_revision=_revision(shared, "memory/0.md"))])
    # A machine that has no pack of its own erases from the one that is kept.
    second = Machine(shared, tmp_path / "second")
    second.manager.scrub()
    assert mark not in first.published
    assert second.path.read_bytes() == first.published
    segment = open_segment(second.path, shared.head().generation)
    assert segment is not None and "memory/0.md" not in segment.paths


def _revision(store: InMemoryStore, path: str) -> int:
    return store.file_states([path])[path].revision


def test_a_damaged_pack_is_published_no_more(first: Machine, shared: InMemoryStore) -> None:
    raw = bytearray(first.path.read_bytes())
    raw[-70] ^= 1
    first.path.write_bytes(raw)
    shared.write([FileWrite(path="memory/0.md", state=None, expected_revision=_revision(shared, "memory/0.md"))])
    first.manager.scrub()
    assert first.published is None and not first.path.exists()


class _Broken(InMemorySegments):
    """What is kept cannot be read to its end."""

    def fetch(self, *, newer_than: int) -> Iterator[bytes] | None:
        pieces = super().fetch(newer_than=newer_than)
        return None if pieces is None else self._torn(pieces)

    @staticmethod
    def _torn(pieces: Iterator[bytes]) -> Iterator[bytes]:
        yield next(pieces)
        raise StoreError("The store went away. Try again.")


def test_a_fetch_that_breaks_off_leaves_no_file_and_no_error(
    first: Machine, shared: InMemoryStore, tmp_path: Path
) -> None:
    second = Machine(shared, tmp_path / "second", pack_passages=1_000)
    second.store.segments = _Broken(second.store, tmp_path / "second")
    assert second.read().packed_part is None
    assert list((tmp_path / "second").iterdir()) == []
    with pytest.raises(StoreError, match="went away"):
        second.manager.pack()
    assert "could not be packed" in second.manager.trouble


def test_who_finds_the_lock_held_packs_nothing(shared: InMemoryStore, tmp_path: Path) -> None:
    machine = Machine(shared, tmp_path / "first")
    with shared.segments.hold_lock():
        assert pack_store(machine.store, machine.path) is None
    assert not machine.path.exists() and machine.published is None
