"""The `IndexStore` seam and the values that cross it.

Invariants: a write happens whole or not at all; a reader never sees half of one; the store computes no
terms and no vectors, it is handed both.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from struct import Struct
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from indexer.corpus import Corpus, Floats, Ints
from indexer.types import Fingerprint, Passage, SearchFilter, Source, Vectors

# What a file is known again by, in 32 bytes: its size in bytes, times of change (mtime and ctime, ns) and inode. One
# value, for a look compares those of all files: with a tuple it takes a tenth longer, and so does reading them.
packed_stat = Struct("<qqqQ").pack
# That of no file.
NO_STAT = b""
# A store is asked for at most so many neighbours at once: sqlite-vec tells no more.
NEAREST_LIMIT = 4096
# A change that comes within the grain of the file system's clock leaves the stat as it was.
_GRAIN_NS = 50_000_000
_COARSE_GRAIN_NS = 2_000_000_000


class FileState(NamedTuple):
    """What is known of a file's content without reading it again.

    The fields from the path to the inode are those of `SourceFile`, in its order.

    Attributes:
        checked_ns: When its content was read, for telling a change within the clock's grain.
        content_hash: Hash of the bytes that were indexed; empty where none were.
        failure: Why it could not be indexed; empty where it could.
        revision: The store's revision that wrote this state; 0 before it is stored.
    """

    path: str
    source: Source
    size_bytes: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    checked_ns: int
    content_hash: str
    failure: str = ""
    revision: int = 0

    @property
    def partial(self) -> bool:
        """Whether only a part of the file was stored before a sync was interrupted."""
        return not self.content_hash and not self.failure

    @property
    def settled(self) -> bool:
        """Whether the content was read so long after its last change that a later one would show."""
        grain = _GRAIN_NS if self.mtime_ns % 1_000_000_000 else _COARSE_GRAIN_NS
        return self.checked_ns - max(self.mtime_ns, self.ctime_ns) > grain

    @property
    def stat(self) -> bytes:
        """What the file is known again by; `NO_STAT` if it has to be looked at, or told of, in any case."""
        if self.failure or self.partial or not self.settled:
            return NO_STAT
        return packed_stat(self.size_bytes, self.mtime_ns, self.ctime_ns, self.inode)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPassage:
    """A passage as it is stored.

    Attributes:
        key: What the store knows it by; never given twice.
        ordinal: Its place among those of its file, from 0.
        text_hash: What its text is recognised by when the file is read again.
    """

    key: int
    path: str
    source: Source
    ordinal: int
    passage: Passage
    text_hash: bytes = b""


class OfFile(NamedTuple):
    """The passages of a file, in reading order.

    Attributes:
        first: The place that they begin at; -1 means the last one alone.
    """

    path: str
    first: int = 0


class Unembedded(NamedTuple):
    """Passages that lack a vector, the newest first.

    Attributes:
        limit: The most of them.
        below: Only those with a smaller key.
        paths: Only those of these files, or of files in these folders.
    """

    limit: int
    below: int | None = None
    paths: Collection[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPassage:
    """A passage to store: its place among the passages of the file, its terms, its vector, and whom it greets."""

    ordinal: int
    passage: Passage
    text_hash: bytes
    terms: tuple[str, ...]
    vector: bytes | None
    greeted: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileWrite:
    """What changes in the index for one file.

    Attributes:
        state: The file's new state; None forgets the file.
        expected_revision: The revision of the file's state that the plan was made from, 0 for a file the
            index did not know. The write is refused when another process has changed it meanwhile.
        inserted: Passages that are new.
        moved: Passages that stay: key, new ordinal, new place.
        removed: Passages that go: key, and the terms they were stored with.
    """

    path: str
    state: FileState | None
    expected_revision: int
    inserted: tuple[NewPassage, ...] = ()
    moved: tuple[tuple[int, int, Passage], ...] = ()
    removed: tuple[tuple[int, tuple[str, ...]], ...] = ()

    @property
    def changes_passages(self) -> bool:
        """Whether more changes than what is known of the file; if not, the file keeps its revision."""
        return bool(self.state is None or self.inserted or self.moved or self.removed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What a write came to.

    Attributes:
        revision: The revision that the written files have now.
        refused: Paths that another process had changed meanwhile; nothing was written for them.
    """

    revision: int
    refused: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """Where an index stands, and what happened to it after some revision.

    Attributes:
        revision: A number that grows with every write, by any process; 0 before the first.
        generation: A random name for this making of the index, another one after every `begin`; of another one,
            nothing that was known holds. Empty before the first.
        fingerprint: What the index was made with; None for one that was never begun.
        files: Number, path and source of each file that was written since, and is there now.
        gone: Numbers of the files that were forgotten since.
    """

    revision: int
    generation: str
    fingerprint: Fingerprint | None = None
    files: tuple[tuple[int, str, Source], ...] = ()
    gone: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TermPosting:
    """Where one term occurs: passage keys, ascending, and how often in each."""

    term: str
    keys: Ints
    counts: Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class TermEntries:
    """Some terms and every passage they occur in.

    Attributes:
        terms: Hash of each term, see `postings.term_hashes`, shape (g,), in no order.
        sizes: Passages of each term, shape (g,), at least 1.
        keys: The store's key of each passage, term after term, ascending within each, shape (m,).
        counts: How often the term occurs in it, shape (m,).
    """

    terms: NDArray[np.uint64]
    sizes: Ints
    keys: Ints
    counts: Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreCounts:
    """How much an index holds."""

    files: int
    passages: int
    embedded: int
    failed_files: int
    size_bytes: int
    updated_at: dt.datetime | None


class SegmentSource(Protocol):
    """What a packed segment of an index is built from, within one `reading` of its store, and where it lies."""

    def path(self) -> Path | None:
        """The file of it, which goes with the index; None where there is no such place, and nothing is packed."""
        ...

    def terms(self) -> Iterator[TermEntries]:
        """Every term and the passages that it occurs in, in chunks."""
        ...

    def vectors(self) -> Iterator[tuple[Ints, Vectors]]:
        """Every stored vector: keys of shape (m,), float32 of shape (m, dimensions), in chunks."""
        ...


class Unfinished(NamedTuple):
    """A next making that is not in use yet: its name for people, and its store, which whoever asked closes."""

    name: str
    store: IndexStore


class Room(NamedTuple):
    """What the making in use and the next one take on the disk of a folder."""

    live_bytes: int
    made_bytes: int
    folder: Path


class BesideState(NamedTuple):
    """Whether a next making is at work, in whatever process, and whether there is any other than the one in use."""

    running: bool
    others: bool


class Beside(Protocol):
    """The next making of an index, beside the one in use, which goes on answering until the switch."""

    def state(self) -> BesideState:
        """How it stands; changes nothing."""
        ...

    def locked(self) -> AbstractContextManager[None]:
        """Nobody else makes or removes a next making within the block; what is left of former ones is deleted.

        Raises:
            StoreBusy: Somebody does.
            StoreReadOnly: None can be made here.
        """
        ...

    def unfinished(self) -> Unfinished | None:
        """The next making that is at work, or was interrupted; None where there is none."""
        ...

    def next(self, fingerprint: Fingerprint) -> IndexStore:
        """The store to fill, within `locked`: the unfinished one if it is made so, or one that is still to be begun."""
        ...

    def room(self) -> Room | None:
        """What the store of the last `next` has to find room for; None where no disk is needed."""
        ...

    def switching(self) -> AbstractContextManager[Callable[[Callable[[str], None]], None]]:
        """Writers of the one in use wait within the block; calling what it gives puts the next one in use.

        That is told the name of every step; for tests, which end the process there.
        """
        ...

    def remove(self) -> None:
        """Delete the unfinished one."""
        ...

    def retire(self, reached: Callable[[str], None]) -> None:
        """Give back what was in use before the switch, once nobody reads it any more."""
        ...


class IndexStore(Protocol):
    """A home for passages, their terms and their vectors: sixteen methods that read, write and keep it."""

    @property
    def schema(self) -> int:
        """Version of what it keeps; an index of another one is made anew."""
        ...

    @property
    def segments(self) -> SegmentSource:
        """What is packed beside it."""
        ...

    @property
    def beside(self) -> Beside:
        """What takes its place one day."""
        ...

    # Reads.

    def head(self, since: int | None = None) -> Head:
        """Where the index stands; with a revision of this generation also what was written and forgotten after it.

        It costs as much as it tells.
        """
        ...

    def file_states(self, paths: Collection[str] | None = None) -> dict[str, FileState]:
        """The states of the given files, or of every one, by path."""
        ...

    def file_stats(self, limit: int | None = None) -> dict[str, bytes]:
        """What files are known again by, by path: every one, or at most so many; see `FileState.stat`."""
        ...

    def passages(self, which: Sequence[int] | OfFile | Unembedded) -> dict[int, StoredPassage]:
        """Passages by key: those of some keys, of a file, or that lack a vector, in the order told there.

        Unknown keys and files are left out.
        """
        ...

    def corpus(self, previous: Corpus | None, *, since: int = 0) -> Corpus:
        """The passages of all files that were written after a revision, as columns.

        What `previous` holds and nobody changed is not read again, where it is of the same `since`.
        """
        ...

    def postings(self, terms: Collection[str], *, among: Collection[int] | None = None) -> list[TermPosting]:
        """The passages of each term, or those of some keys alone; terms without any are left out."""
        ...

    def nearest(self, vector: Vectors, limit: int, filter: SearchFilter) -> tuple[Ints, Floats]:
        """Exact nearest neighbours, at most `NEAREST_LIMIT`: keys and cosines, nearest first."""
        ...

    def vectors(self, keys: Sequence[int] | None) -> tuple[Ints, Vectors]:
        """Stored vectors by key, or all of them: keys of shape (m,), vectors of shape (m, dimensions)."""
        ...

    def counts(self) -> StoreCounts:
        """How much the index holds."""
        ...

    # Writes, each in one transaction.

    def begin(
        self, fingerprint: Fingerprint, *, only_missing: bool = False, keeping: Fingerprint | None = None
    ) -> Fingerprint:
        """Drop everything and begin anew for a fingerprint.

        Args:
            fingerprint: What it is made with from now on.
            only_missing: Leave an index be that another process has begun meanwhile.
            keeping: Drop nothing: an index of words that was made so takes vectors from now on. One that was made
                with anything else is left alone.

        Returns:
            What it is made with now.
        """
        ...

    def write(
        self,
        writes: Sequence[FileWrite],
        *,
        vectors: Sequence[tuple[int, bytes]] = (),
        made_with: Fingerprint | None = None,
    ) -> Written:
        """Apply all, but for files whose expected revision no longer holds.

        Args:
            writes: What changes, file by file.
            vectors: Vectors of passages that lack one, by key; passages that are gone are passed over.
            made_with: What the index has to be made with.

        Raises:
            StoreReplaced: It is made with something else.
        """
        ...

    def vectors_of_texts(self, text_hashes: Iterable[bytes]) -> dict[bytes, bytes]:
        """Vectors (float32, little-endian) already stored for these texts, in whatever file."""
        ...

    # Lifecycle.

    def reading(self) -> AbstractContextManager[None]:
        """One consistent view for all reads of this thread within the block."""
        ...

    def check(self) -> None:
        """Read the whole index for damage.

        Raises:
            StoreCorrupt: It is damaged.
        """
        ...

    def scrub(self) -> None:
        """Leave no trace of what was removed in any file of the store."""
        ...

    def close(self) -> None:
        """Give back every connection."""
        ...


def passages_of(store: IndexStore, path: str, *, first: int = 0) -> list[StoredPassage]:
    """The stored passages of a file from a place on, in reading order; from -1, the last one alone."""
    return list(store.passages(OfFile(path, first)).values())
