"""The `IndexStore` seam and the values that cross it.

Invariants: a write happens whole or not at all; a reader never sees half of one; the store computes no
terms and no vectors, it is handed both.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from indexer.corpus import Corpus, Floats, Ints
from indexer.types import Fingerprint, Passage, SearchFilter, SourceKind, Vectors

# State of a file's content, opaque to all but its source.
Version: TypeAlias = bytes
# That of no file.
NO_VERSION: Version = b""
# A store is asked for at most so many neighbours at once: sqlite-vec tells no more.
NEAREST_LIMIT = 4096


class FileState(NamedTuple):
    """State of a file in the index, known without reading it again.

    The fields from the path to the version are those of `SourceFile`, in its order.

    Attributes:
        version: State of the content that was read.
        checked_ns: Time when the content was read; 0 if a later change need not show in the version.
        content_hash: Hash of the indexed bytes; empty without any.
        failure: Why it could not be indexed; empty if it could.
        revision: The store's revision that wrote this state; 0 before it is stored.
    """

    path: str
    source: SourceKind
    size_bytes: int
    version: Version
    checked_ns: int
    content_hash: str
    failure: str = ""
    revision: int = 0

    @property
    def partial(self) -> bool:
        """True if a sync was interrupted after storing a part of the file."""
        return not self.content_hash and not self.failure

    @property
    def known_version(self) -> Version:
        """The version; `NO_VERSION` if the file has to be looked at, or reported, in any case."""
        return NO_VERSION if self.failure or self.partial or not self.checked_ns else self.version


class StoredPassage(NamedTuple):
    """A passage as it is stored.

    Attributes:
        key: The store's key; never given twice, and larger than those of all writes that were committed before.
        ordinal: Position in its file, from 0.
        text_hash: Hash of its text, to match it when the file is read again.
    """

    key: int
    path: str
    source: SourceKind
    ordinal: int
    passage: Passage
    text_hash: bytes = b""


class OfFile(NamedTuple):
    """The passages of a file, in reading order.

    Attributes:
        first: Position of the first one; -1 means the last one alone.
    """

    path: str
    first: int = 0


class OfRanges(NamedTuple):
    """The passages of some ranges of files, range by range, in reading order.

    Attributes:
        ranges: Path, position of the first passage, and position of the first one that is left out.
    """

    ranges: tuple[tuple[str, int, int], ...]


class Unembedded(NamedTuple):
    """Passages without a vector, the newest first.

    Attributes:
        limit: Largest number of them.
        below: Only those with a smaller key.
        paths: Only those of these files, or of files in these folders.
    """

    limit: int
    below: int | None = None
    paths: Collection[str] | None = None


class OfThings(NamedTuple):
    """Passages that state facts of some things, see `indexer.language.facts`.

    Attributes:
        things: Numbers of the things; those that fewer passages than `least` speak of are left out.
        limit: Most passages of each thing, of the highest authority the newest dated ones and as many of the last
            undated ones; -1 for all.
        besides: For each thing another one, without which it is left out; 0 for none.
    """

    things: tuple[int, ...]
    limit: int
    least: int = 1
    besides: tuple[int, ...] = ()


class OfSharedThings(NamedTuple):
    """Passages that state a thing which another one states, too, the last stored first.

    Attributes:
        limit: Largest number of them.
        sources: Kinds of source that they are of; empty means all.
    """

    limit: int
    sources: tuple[SourceKind, ...] = ()


class OfTags(NamedTuple):
    """Passages that have all of some tags, see `SearchFilter.tags`."""

    tags: tuple[str, ...]


# Which passages: those of some keys, or as described at the class.
Which: TypeAlias = Sequence[int] | OfFile | OfRanges | Unembedded | OfThings | OfSharedThings


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPassage:
    """A passage to store: position in its file, terms, vector, the name that it greets, things that it states."""

    ordinal: int
    passage: Passage
    text_hash: bytes
    terms: tuple[str, ...]
    vector: bytes | None
    greeted: str = ""
    things: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FileWrite:
    """Changes of the index for one file.

    Attributes:
        state: The file's new state; None removes the file.
        expected_revision: Revision of the file's state that the plan was made from, 0 for a file that was not in the
            index. The write is refused when another process has changed it meanwhile.
        inserted: New passages.
        moved: Passages that stay: key, new ordinal, new lines.
        removed: Passages to remove: key, and the terms they were stored with.
        stated: Things that stored passages state, by key; they take the place of those stored before.
    """

    path: str
    state: FileState | None
    expected_revision: int
    inserted: tuple[NewPassage, ...] = ()
    moved: tuple[tuple[int, int, Passage], ...] = ()
    removed: tuple[tuple[int, tuple[str, ...]], ...] = ()
    stated: tuple[tuple[int, tuple[int, ...]], ...] = ()

    @property
    def changes_passages(self) -> bool:
        """True if more changes than the state of the file; otherwise the file keeps its revision."""
        return bool(self.state is None or self.inserted or self.moved or self.removed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """Result of a write.

    Attributes:
        revision: New revision of the written files.
        refused: Paths that another process had changed meanwhile; nothing was written for them.
    """

    revision: int
    refused: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """Present state of an index, and its changes after some revision.

    Attributes:
        revision: A number that grows with every write, by any process; 0 before the first.
        generation: A random name for this generation of the index; knowledge of another generation is void. It is a new
            one after every `begin`, and whenever something that was told is taken back, so that revisions and keys may
            be given again: an older file was put in the place of the index, or a store that does not wait for its disk
            lost the last writes. Empty before the first.
        fingerprint: Fingerprint of the index; None for one that was never begun.
        files: Number, path and source of each present file that was written since.
        gone: Numbers of the files that were removed since.
        fact_rules: Version of the rules that the facts of all passages were read with; empty where some were not.
    """

    revision: int
    generation: str
    fingerprint: Fingerprint | None = None
    files: tuple[tuple[int, str, SourceKind], ...] = ()
    gone: tuple[int, ...] = ()
    fact_rules: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TermPosting:
    """Keys of the passages with one term, ascending, and its frequency in each."""

    term: str
    keys: Ints
    counts: Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class TermEntries:
    """Postings grouped by term.

    Attributes:
        terms: Hash of each group's term, see `term_hashes`, shape (g,), in no order.
        sizes: Postings of each group, shape (g,); of a store at least 1, and one group for each term.
        passages: Passages of each term, group after group, shape (m,): keys of a store, ascending within each group, or
            rows of a segment, in no order.
        counts: Frequency of the term in that passage, at least 1, shape (m,).
    """

    terms: NDArray[np.uint64]
    sizes: Ints
    passages: NDArray[np.integer]
    counts: NDArray[np.integer]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreCounts:
    """Numbers of an index's files, passages and bytes; of the bytes an estimate will do."""

    files: int
    passages: int
    embedded: int
    failed_files: int
    size_bytes: int
    updated_at: dt.datetime | None


class SegmentSource(Protocol):
    """Source of an index's packed segment, within one `reading` of its store, and the path of the segment.

    A store that several machines share keeps the pack that one of them publishes, one for each generation, and has a
    lock of packing for all of them. Where the pack lies beside the index nothing is fetched, and its own lock will do.
    """

    def path(self) -> Path | None:
        """File of the segment, beside the index; None where there is no such place, and nothing is packed."""
        ...

    def sync(self) -> None:
        """Have the disk hold what was read, so that a packed segment is never ahead of its index after a crash."""
        ...

    def terms(self) -> Iterator[TermEntries]:
        """Every term and the passages with it, in chunks."""
        ...

    def vectors(self) -> Iterator[tuple[Ints, Vectors]]:
        """Every stored vector: keys of shape (m,), float32 of shape (m, dimensions), in chunks of any size."""
        ...

    def hold_lock(self, seconds: float = 0.0) -> AbstractContextManager[None]:
        """Hold the lock of packing within the block.

        Args:
            seconds: How long to wait for it.

        Raises:
            StoreBusy: Another machine holds it.
        """
        return nullcontext()

    def fetch(self, *, newer_than: int) -> Iterator[bytes] | None:
        """The pack that the store keeps, piece by piece; None if it keeps none that is newer.

        Its notes may name a former generation: one that has ended because something may have been taken back, in a
        store that has the pack still, and so all that it was made of.

        Args:
            newer_than: The revision of the pack that is here; 0 for none.
        """
        return None

    def publish(self, pack: Path | None, *, generation: str, revision: int) -> None:
        """Keep a pack in the place of the one before, whole or not at all.

        Args:
            pack: The file; None keeps none from now on.
            generation: The one that it was made of; if that is not the present one any more, nothing is kept.
            revision: The revision that it was made at.
        """
        return


class Unfinished(NamedTuple):
    """An unfinished generation: its name for people, and its store, which the caller closes."""

    name: str
    store: IndexStore


class Room(NamedTuple):
    """Disk space of the generation in use and of the next one."""

    live_bytes: int
    made_bytes: int
    folder: Path


class BesideState(NamedTuple):
    """State of rebuilds: one is running, in whatever process; there are generations beside the one in use."""

    running: bool
    others: bool


class Beside(Protocol):
    """The next generation of an index, beside the one in use, which answers until the switch."""

    def state(self) -> BesideState:
        """Present state; changes nothing."""
        ...

    def hold_lock(self) -> AbstractContextManager[None]:
        """Hold the lock of rebuilds within the block; remains of former ones are deleted.

        Raises:
            StoreBusy: Somebody holds it.
            StoreReadOnly: No generation can be made here.
        """
        ...

    def unfinished_generation(self) -> Unfinished | None:
        """The generation that is being made, or whose making was interrupted; None if there is none."""
        ...

    def next(self, fingerprint: Fingerprint) -> IndexStore:
        """The store to fill, within `locked`: the unfinished one if it has this fingerprint, else an empty one."""
        ...

    def room(self) -> Room | None:
        """Disk space that the store of the last `next` needs; None where no disk is needed."""
        ...

    def switching(self) -> AbstractContextManager[Callable[[Callable[[str], None]], None]]:
        """Have writers wait within the block; a call of its value puts the next generation in use.

        That call gets a function for the name of every step; for tests, which end the process there.
        """
        ...

    def remove(self) -> None:
        """Delete the unfinished generation."""
        ...

    def retire(self, reached: Callable[[str], None]) -> None:
        """Delete the former generation, once nobody reads it any more."""
        ...


class IndexStore(Protocol):
    """Store of passages, their terms and their vectors, with sixteen methods to read, write and maintain it."""

    @property
    def schema(self) -> int:
        """Version of its tables; an index of another one is rebuilt."""
        ...

    @property
    def segments(self) -> SegmentSource:
        """Source of its packed segment."""
        ...

    @property
    def beside(self) -> Beside:
        """Its next generation."""
        ...

    # Reads.

    def head(self, since: int | None = None) -> Head:
        """Present state of the index; with a revision of this generation also the files changed after it.

        It costs as much as it returns.
        """
        ...

    def file_states(self, paths: Collection[str] | None = None) -> dict[str, FileState]:
        """The states of the given files, or of every one, by path."""
        ...

    def file_versions(self, limit: int | None = None) -> dict[str, Version]:
        """Known versions, by path: of every file, or of at most so many; see `FileState.known_version`."""
        ...

    def passages(self, which: Which) -> dict[int, StoredPassage]:
        """Passages by key: of some keys, a file, ranges or things, or without a vector, in the order described there.

        Unknown keys and files are left out.
        """
        ...

    def corpus(self, previous: Corpus | None, *, since: int = 0) -> Corpus:
        """The passages of all files that were written after a revision, as columns.

        Unchanged files of `previous` are not read again, if it is of the same `since`.
        """
        ...

    def postings(
        self, terms: Collection[str] | OfTags | None, *, among: Collection[int] | None = None
    ) -> list[TermPosting]:
        """The passages of each term, or those of some keys alone; terms without any are left out.

        With None instead of terms, all that were stored with those keys, by whatever rules: all of the index is read.
        With tags, the passages that have them, as those of one term.
        """
        ...

    def nearest(self, vector: Vectors, limit: int, filter: SearchFilter) -> tuple[Ints, Floats]:
        """Exact nearest neighbours, at most `NEAREST_LIMIT`: keys and cosines, nearest first."""
        ...

    def vectors(self, keys: Sequence[int] | None) -> tuple[Ints, Vectors]:
        """Stored vectors by key, or all of them: keys of shape (m,), vectors of shape (m, dimensions)."""
        ...

    def counts(self) -> StoreCounts:
        """Numbers of the index's files, passages and bytes."""
        ...

    # Writes, each in one transaction.

    def begin(
        self, fingerprint: Fingerprint, *, only_missing: bool = False, keeping: Fingerprint | None = None
    ) -> Fingerprint:
        """Drop everything and begin again with a fingerprint.

        Args:
            fingerprint: The new fingerprint.
            only_missing: Leave an index alone that another process has begun meanwhile.
            keeping: Drop nothing: an index of words with this fingerprint takes vectors from now on. One with any other
                is left alone.

        Returns:
            The fingerprint of the index now.
        """
        ...

    def write(
        self,
        writes: Sequence[FileWrite],
        *,
        vectors: Sequence[tuple[int, bytes]] = (),
        made_with: Fingerprint | None = None,
        fact_rules: str = "",
    ) -> Written:
        """Apply all changes, except for files whose expected revision no longer holds.

        Args:
            writes: The changes, file by file.
            vectors: Vectors of passages without one, by key; removed passages are ignored.
            made_with: Expected fingerprint of the index.
            fact_rules: The facts of all passages are read with these rules now.

        Raises:
            StoreReplaced: It has another one.
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
        """Erase removed passages from every file of the store."""
        ...

    def close(self) -> None:
        """Close every connection."""
        ...


def passages_of(store: IndexStore, path: str, *, first: int = 0) -> list[StoredPassage]:
    """The stored passages of a file from a position on, in reading order; from -1, the last one alone."""
    return list(store.passages(OfFile(path, first)).values())
