"""An `IndexStore` in the memory of one process: the oracle of the contract, and a quick store for other tests.

Invariants: the contents of an index are never changed, a write puts others in their place, so a reader holds one state
for as long as it likes; no number of a passage, a file, a name or a revision is given twice; nothing is written to the
disk but the packed part, where that is asked for, and it goes with the index.
"""

from __future__ import annotations

import secrets
import shutil
import tempfile
import threading
import weakref
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from operator import attrgetter
from pathlib import Path

import numpy as np

from indexer.corpus import Corpus, Floats, Ints
from indexer.errors import StoreBusy, StoreReplaced
from indexer.language.facts import FACT_RULES
from indexer.language.terms import term_hashes
from indexer.stores.base import (
    NEAREST_LIMIT,
    BesideState,
    FileState,
    FileWrite,
    Head,
    IndexStore,
    OfFile,
    OfRanges,
    OfSharedThings,
    OfTags,
    OfThings,
    StoreCounts,
    StoredPassage,
    TermEntries,
    TermPosting,
    Unembedded,
    Unfinished,
    Version,
    Which,
    Written,
)
from indexer.stores.row_values import tag_posting
from indexer.types import Fingerprint, SearchFilter, Vectors
from tests.indexer.memory_contents import Contents, Draft, FileRows

_LOCK_SECONDS = 1.0
# Terms that are packed at once, and files whose vectors are.
_TERMS, _FILES = 4_096, 256
_PIECE = 1_000


class _Generation:
    """One generation of an index: its contents, and the lock of those who write to it."""

    def __init__(self, pack: Path | None) -> None:
        self.contents = Contents()
        self.writing = threading.RLock()
        self.pack = pack
        self.packing = threading.Lock()
        self.published: tuple[str, int, bytes] | None = None

    def remove_pack(self) -> None:
        """Delete the packed part."""
        if self.pack is not None:
            self.pack.unlink(missing_ok=True)


class _Generations:
    """The generation in use and the next one, shared by all stores of one index."""

    def __init__(self, *, packed: bool) -> None:
        self.numbers = count(1)
        self.revisions = count(1)
        self.rebuilding = threading.Lock()
        self._folder = Path(tempfile.mkdtemp(prefix="index-")) if packed else None
        if self._folder is not None:
            weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        self.live = self.new_generation()
        self.next: _Generation | None = None

    def new_generation(self) -> _Generation:
        """A generation that is not begun yet."""
        return _Generation(self._folder / f"{secrets.token_hex(4)}.pack" if self._folder else None)


class InMemoryStore:
    """An `IndexStore` without a file. See the protocol for what each method promises.

    What it holds is lost with the process. It may be given to several `Index` of one workspace, as others share a file.

    Args:
        packed: Whether a large index is packed, in a temporary folder that goes with it; without, every search by
            vectors looks at all of them.
    """

    schema = 1

    def __init__(self, *, packed: bool = False) -> None:
        self._open(_Generations(packed=packed), None)

    def _open(self, generations: _Generations, generation: _Generation | None) -> InMemoryStore:
        self._generations = generations
        self._generation = generation
        self._held = threading.local()
        self.beside = InMemoryBeside(generations, self.reopen)
        self.segments = InMemorySegments(self)
        return self

    def reopen(self, generation: _Generation | None = None) -> InMemoryStore:
        """The same index in another store, as if opened by somebody else; or the index of a next generation."""
        return type(self).__new__(type(self))._open(self._generations, generation)

    def on_machine(self, folder: Path) -> InMemoryStore:
        """The same index on another machine, which has a folder of its own for packs."""
        store = self.reopen()
        store.segments = InMemorySegments(store, folder)
        return store

    def snapshot(self) -> Callable[[], None]:
        """A function that takes back what is written from now on, as if it had been lost."""
        current, contents = self.current, self.current.contents

        def restore() -> None:
            with current.writing:
                current.contents = replace(contents, generation=secrets.token_hex(8))

        return restore

    @property
    def current(self) -> _Generation:
        """The generation that this store is of."""
        return self._generation or self._generations.live

    @property
    def contents(self) -> Contents:
        """The contents that the read of this thread sees."""
        held: Contents | None = getattr(self._held, "contents", None)
        return held or self.current.contents

    # Reads.

    def head(self, since: int | None = None) -> Head:
        """See `IndexStore`."""
        now = self.contents
        head = Head(
            revision=now.revision,
            generation=now.generation,
            fingerprint=now.fingerprint,
            fact_rules=FACT_RULES if now.generation else "",
        )
        if since is None or since == now.revision:
            return head
        files = ((file.number, path, file.state.source) for path, file in now.changed_files(since))
        gone = (number for number, revision in now.gone.items() if revision > since)
        return replace(head, files=tuple(files), gone=tuple(gone))

    def file_states(self, paths: Collection[str] | None = None) -> dict[str, FileState]:
        """See `IndexStore`."""
        files = self.contents.files
        return {path: files[path].state for path in (files if paths is None else paths) if path in files}

    def file_versions(self, limit: int | None = None) -> dict[str, Version]:
        """See `IndexStore`."""
        files = self.contents.files
        return {path: files[path].state.known_version for path in [*files][:limit]}

    def passages(self, which: Which) -> dict[int, StoredPassage]:
        """See `IndexStore`."""
        now = self.contents
        match which:
            case OfFile(path=path, first=first):
                known = list(now.files[path].rows.values()) if path in now.files else []
                rows = known[-1:] if first < 0 else [row for row in known if row.stored.ordinal >= first]
            case OfRanges(ranges=ranges):
                rows = [
                    row
                    for path, first, before in ranges
                    for row in (now.files[path].rows.values() if path in now.files else ())
                    if first <= row.stored.ordinal < before
                ]
            case Unembedded():
                rows = [row for key in now.unembedded_keys(which) if (row := now.row(key))]
            case OfThings():
                rows = [row for key in now.stating(which) if (row := now.row(key))]
            case OfSharedThings(limit=limit, sources=sources):
                rows = [row for key in now.sharing(limit, sources) if (row := now.row(key))]
            case _:
                rows = [row for key in which if (row := now.row(key))]
        return {row.stored.key: row.stored for row in rows}

    def corpus(self, previous: Corpus | None, *, since: int = 0) -> Corpus:
        """See `IndexStore`."""
        now = self.contents
        if previous is not None and (now.revision, now.generation, since) == (
            previous.revision,
            previous.generation,
            previous.since,
        ):
            return previous
        files = [file.columns for _, file in now.changed_files(since) if file.rows]
        return Corpus(
            revision=now.revision,
            files=tuple(sorted(files, key=attrgetter("path"))),
            label_names={number: name for name, number in now.labels.items()},
            generation=now.generation,
            since=since,
        )

    def postings(
        self, terms: Collection[str] | OfTags | None, *, among: Collection[int] | None = None
    ) -> list[TermPosting]:
        """See `IndexStore`."""
        found = list[TermPosting]()
        files = self.contents.files.values()
        if isinstance(terms, OfTags):
            rows = [row for file in files for row in file.tagged_rows if row.has(terms.tags)]
            return [tag_posting([row.stored.key for row in rows])]
        for term in {term for file in files for term in file.postings} if terms is None else terms:
            pairs = [pair for file in files if term in file.postings for pair in file.postings[term]]
            table = np.array(sorted(pair for pair in pairs if among is None or pair[0] in among), np.int64)
            if len(table):
                found.append(TermPosting(term=term, keys=table[:, 0], counts=table[:, 1]))
        return found

    def nearest(self, vector: Vectors, limit: int, filter: SearchFilter) -> tuple[Ints, Floats]:
        """See `IndexStore`."""
        near = [file.near(vector, filter) for file in self.contents.files.values() if file.is_among(filter)]
        keys = np.concatenate([np.empty(0, np.int64), *(keys for keys, _ in near)])
        cosines = np.concatenate([np.empty(0), *(cosines for _, cosines in near)])
        best = np.lexsort((keys, -cosines))[: min(limit, NEAREST_LIMIT)]
        return keys[best], cosines[best]

    def vectors(self, keys: Sequence[int] | None) -> tuple[Ints, Vectors]:
        """See `IndexStore`."""
        now = self.contents
        found = [(key, row.vector) for key in (now.paths if keys is None else keys) if (row := now.row(int(key)))]
        made = {key: vector for key, vector in found if vector is not None}
        flat = np.frombuffer(b"".join(made.values()), "<f4")
        return np.array([*made], np.int64), flat.reshape(len(made), -1) if made else flat.reshape(0, 0)

    def counts(self) -> StoreCounts:
        """See `IndexStore`."""
        now = self.contents
        return StoreCounts(
            files=len(now.files),
            failed_files=sum(bool(file.state.failure) for file in now.files.values()),
            passages=len(now.paths),
            embedded=sum(len(file.rows) - len(file.unembedded_keys) for file in now.files.values()),
            size_bytes=sum(file.size_bytes for file in now.files.values()),
            updated_at=now.updated_at,
        )

    def vectors_of_texts(self, text_hashes: Iterable[bytes]) -> dict[bytes, bytes]:
        """See `IndexStore`."""
        wanted, found = set(text_hashes), dict[bytes, bytes]()
        for file in self.contents.files.values():
            found |= {text: file.vectors_by_text[text] for text in wanted.intersection(file.vectors_by_text)}
        return found

    # Writes.

    def begin(
        self, fingerprint: Fingerprint, *, only_missing: bool = False, keeping: Fingerprint | None = None
    ) -> Fingerprint:
        """See `IndexStore`."""
        with self._writing() as current:
            stored = current.contents.fingerprint
            if keeping is not None and stored != keeping:
                return stored or keeping
            if only_missing and stored is not None:
                return stored
            if keeping is not None:
                current.contents = replace(current.contents, fingerprint=fingerprint)
            else:
                revision, generation = next(self._generations.revisions), secrets.token_hex(8)
                current.contents = Contents(revision=revision, generation=generation, fingerprint=fingerprint)
        return fingerprint

    def write(
        self,
        writes: Sequence[FileWrite],
        *,
        vectors: Sequence[tuple[int, bytes]] = (),
        made_with: Fingerprint | None = None,
        fact_rules: str = "",
    ) -> Written:
        """See `IndexStore`."""
        with self._writing() as current:
            if made_with is not None and current.contents.fingerprint != made_with:
                raise StoreReplaced("The index was made anew meanwhile. Bring it up to date again.")
            draft = Draft(current.contents, self._numbers(), next(self._generations.revisions))
            refused = [write.path for write in writes if not draft.apply(write)]
            draft.fill(vectors)
            current.contents = draft.contents()
        return Written(revision=draft.revision, refused=tuple(refused))

    def _numbers(self) -> Iterator[int]:
        """Numbers of the passages, files and names of a write that holds the lock."""
        return self._generations.numbers

    # Lifecycle.

    @contextmanager
    def reading(self) -> Iterator[None]:
        """See `IndexStore`."""
        if getattr(self._held, "contents", None) is not None:
            yield
            return
        self._held.contents = self.current.contents
        try:
            yield
        finally:
            self._held.contents = None

    def check(self) -> None:
        """See `IndexStore`; there is no file that could be damaged."""

    def scrub(self) -> None:
        """See `IndexStore`; what was removed is nowhere once nobody reads it any more."""

    def close(self) -> None:
        """See `IndexStore`; what is held goes with the last store that shares it."""

    @contextmanager
    def _writing(self) -> Iterator[_Generation]:
        while True:
            current = self.current
            with current.writing:
                # Whoever puts another generation in this one's place holds the lock meanwhile.
                if current is self.current:
                    yield current
                    return


class InMemorySegments:
    """The source of a packed segment of an index in memory, which keeps published packs; see `SegmentSource`.

    Args:
        store: The index.
        folder: The folder of one machine of several; without, all have the one of the index.
    """

    def __init__(self, store: InMemoryStore, folder: Path | None = None) -> None:
        self._store = store
        self._folder = folder

    def path(self) -> Path | None:
        """See `SegmentSource`."""
        if self._folder is None:
            return self._store.current.pack
        return self._folder / f"{self._store.current.contents.generation}.pack"

    @contextmanager
    def hold_lock(self, seconds: float = 0.0) -> Iterator[None]:
        """See `SegmentSource`."""
        lock = self._store.current.packing
        if not lock.acquire(timeout=seconds):
            raise StoreBusy("Another machine packs this index. Wait for it.")
        try:
            yield
        finally:
            lock.release()

    def fetch(self, *, newer_than: int) -> Iterator[bytes] | None:
        """See `SegmentSource`."""
        generation, revision, raw = self._store.current.published or ("", 0, b"")
        if generation != self._store.contents.generation or revision <= newer_than:
            return None
        return (raw[at : at + _PIECE] for at in range(0, len(raw), _PIECE))

    def publish(self, pack: Path | None, *, generation: str, revision: int) -> None:
        """See `SegmentSource`."""
        current = self._store.current
        if pack is not None and generation != current.contents.generation:
            return
        current.published = None if pack is None else (current.contents.generation, revision, pack.read_bytes())

    def sync(self) -> None:
        """See `SegmentSource`; there is no disk."""

    def terms(self) -> Iterator[TermEntries]:
        """See `SegmentSource`."""
        merged = defaultdict[str, list[tuple[int, int]]](list)
        for file in self._files():
            for term, pairs in file.postings.items():
                merged[term] += pairs
        terms = [*merged]
        for start in range(0, len(terms), _TERMS):
            chunk = terms[start : start + _TERMS]
            table = np.array([pair for term in chunk for pair in sorted(merged[term])], np.int64)
            yield TermEntries(
                terms=term_hashes(chunk),
                sizes=np.array([len(merged[term]) for term in chunk], np.int64),
                passages=table[:, 0],
                counts=table[:, 1],
            )

    def vectors(self) -> Iterator[tuple[Ints, Vectors]]:
        """See `SegmentSource`."""
        made = [file for file in self._files() if file.embedded_vectors[0].any()]
        for start in range(0, len(made), _FILES):
            part = made[start : start + _FILES]
            keys = [file.columns.table[file.embedded_vectors[0], 0] for file in part]
            yield np.concatenate(keys), np.concatenate([file.embedded_vectors[1] for file in part])

    def _files(self) -> Sequence[FileRows]:
        return [*self._store.contents.files.values()]


class InMemoryBeside:
    """The next generation of an index in memory; see `Beside`.

    Args:
        generations: Those of the index.
        opened: Opens the store of another generation.
    """

    def __init__(self, generations: _Generations, opened: Callable[[_Generation], IndexStore]) -> None:
        self._generations = generations
        self._opened = opened

    def state(self) -> BesideState:
        """See `Beside`."""
        return BesideState(running=self._generations.rebuilding.locked(), others=self._generations.next is not None)

    @contextmanager
    def hold_lock(self) -> Iterator[None]:
        """See `Beside`."""
        if not self._generations.rebuilding.acquire(timeout=_LOCK_SECONDS):
            raise StoreBusy(
                "Another rebuild of this index is running. Wait for it to end, or cancel it, and try again."
            )
        try:
            yield
        finally:
            self._generations.rebuilding.release()

    def unfinished_generation(self) -> Unfinished | None:
        """See `Beside`."""
        made = self._generations.next
        return Unfinished("next", self._opened(made)) if made is not None and made.contents.generation else None

    def next(self, fingerprint: Fingerprint) -> IndexStore:
        """See `Beside`."""
        made = self._generations.next
        if made is None or made.contents.fingerprint not in (None, fingerprint):
            self.remove()
            made = self._generations.next = self._generations.new_generation()
        return self._opened(made)

    def room(self) -> None:
        """See `Beside`; no disk is needed."""

    @contextmanager
    def switching(self) -> Iterator[Callable[[Callable[[str], None]], None]]:
        """See `Beside`."""
        with self._generations.live.writing:
            yield self._put_in_use

    def _put_in_use(self, reached: Callable[[str], None]) -> None:
        made, former = self._generations.next, self._generations.live
        assert made is not None
        if made.contents.revision < former.contents.revision:
            made.contents = replace(made.contents, revision=next(self._generations.revisions))
        self._generations.live, self._generations.next = made, None
        former.remove_pack()
        reached("put in use")

    def remove(self) -> None:
        """See `Beside`."""
        if self._generations.next is not None:
            self._generations.next.remove_pack()
        self._generations.next = None

    def retire(self, reached: Callable[[str], None]) -> None:
        """See `Beside`; it goes with its last reader."""
        reached("switched")
