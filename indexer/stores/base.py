"""The `IndexStore` seam and the values that cross it.

Invariants: a write happens whole or not at all; a reader never sees half of one; the store computes no
terms and no vectors, it is handed both.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Iterable, Iterator, Sequence
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
    """A passage with the key that the store gave it and its place among those of its file, from 0."""

    key: int
    path: str
    source: Source
    ordinal: int
    passage: Passage


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
class KnownPassage:
    """What a file's stored passage is recognised by when the file is read again."""

    key: int
    ordinal: int
    passage: Passage
    text_hash: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class UnembeddedPassage:
    """A stored passage that lacks a vector."""

    key: int
    text_hash: bytes
    text: str


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
class Changes:
    """What happened to an index after some revision.

    Attributes:
        revision: The revision that the index has now.
        generation: Which making of the index this is; of another one, nothing that was known holds.
        files: Number, path and source of each file that was written since, and is there now.
        gone: Numbers of the files that were forgotten since.
    """

    revision: int
    generation: str
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


class IndexStore(Protocol):
    """A durable home for passages, their terms and their vectors."""

    def fingerprint(self) -> Fingerprint | None:
        """What the index was made with; None for an empty one."""
        ...

    def reset(self, fingerprint: Fingerprint, *, only_missing: bool = False) -> None:
        """Drop everything and begin anew for a fingerprint, in one transaction.

        Args:
            fingerprint: What it is made with from now on.
            only_missing: Leave an index be that another process has begun meanwhile.
        """
        ...

    def reading(self) -> AbstractContextManager[None]:
        """One consistent view for all reads of this thread within the block."""
        ...

    def revision(self) -> int:
        """A number that grows with every write, by any process."""
        ...

    def generation(self) -> str:
        """A random name for this making of the index, another one after every `reset`; empty before the first."""
        ...

    def changed_since(self, revision: int) -> Changes:
        """What was written and forgotten after a revision of this generation; costs as much as it tells."""
        ...

    def file_states(self, paths: Collection[str] | None = None) -> dict[str, FileState]:
        """The states of the given files, or of every one, by path."""
        ...

    def file_stats(self) -> dict[str, bytes]:
        """What every file is known again by, by path; see `FileState.stat`."""
        ...

    def unembedded(
        self, limit: int, *, below: int | None = None, paths: Collection[str] | None = None
    ) -> list[UnembeddedPassage]:
        """Passages that lack a vector, the newest first.

        Args:
            limit: The most of them.
            below: Only those with a smaller key.
            paths: Only those of these files, or of files in these folders.
        """
        ...

    def begin_vectors(self, made: Fingerprint, fingerprint: Fingerprint) -> Fingerprint:
        """Let an index of words take vectors from now on; its passages stay as they are.

        Args:
            made: What it was made with; it is left alone if that is not so any more.
            fingerprint: The same with a model and its dimensions.

        Returns:
            What it is made with now.
        """
        ...

    def add_vectors(self, vectors: Sequence[tuple[int, bytes]], *, made_with: Fingerprint) -> None:
        """Give passages that lack one their vector, by key, in one transaction; passages that are gone are passed over.

        Raises:
            StoreReplaced: `made_with` is not what the index was made with.
        """
        ...

    def known_passages(self, path: str, *, first: int = 0) -> list[KnownPassage]:
        """The stored passages of a file from a place on, in reading order; places count from 0."""
        ...

    def last_passage(self, path: str) -> KnownPassage | None:
        """The last of the stored passages of a file, in reading order; None if there is none."""
        ...

    def vectors_of_texts(self, text_hashes: Iterable[bytes]) -> dict[bytes, bytes]:
        """Vectors (float32, little-endian) already stored for these texts, in whatever file."""
        ...

    def write(self, writes: Sequence[FileWrite], *, made_with: Fingerprint | None = None) -> Written:
        """Apply all in one transaction, but for files whose expected revision no longer holds.

        Raises:
            StoreReplaced: `made_with` is given and is not what the index was made with.
        """
        ...

    def corpus(self, previous: Corpus | None, *, since: int = 0) -> Corpus:
        """The passages of all files that were written after a revision, as columns.

        What `previous` holds and nobody changed is not read again, where it is of the same `since`.
        """
        ...

    def postings(self, terms: Sequence[str]) -> list[TermPosting]:
        """The passages of each term; terms without any are left out."""
        ...

    def found_by_terms(self, keys: Collection[int], terms: Collection[str]) -> bool:
        """Whether the full text still has one of some terms under one of some keys."""
        ...

    def nearest(self, vector: Vectors, limit: int, kept: SearchFilter) -> tuple[Ints, Floats]:
        """Exact nearest neighbours, at most `NEAREST_LIMIT`: keys and cosines, nearest first."""
        ...

    def vectors(self, keys: Sequence[int] | None) -> tuple[Ints, Vectors]:
        """Stored vectors by key, or all of them: keys of shape (m,), vectors of shape (m, dimensions)."""
        ...

    def passages(self, keys: Sequence[int]) -> dict[int, StoredPassage]:
        """Passages by key; unknown keys are left out."""
        ...

    def is_empty(self) -> bool:
        """Whether it knows no file; costs no more in a large index than in a small one."""
        ...

    def counts(self) -> StoreCounts:
        """How much the index holds."""
        ...

    def term_entries(self) -> Iterator[TermEntries]:
        """Every term and the passages that it occurs in, in chunks."""
        ...

    def all_vectors(self) -> Iterator[tuple[Ints, Vectors]]:
        """Every stored vector: keys of shape (m,), float32 of shape (m, dimensions), in chunks."""
        ...

    def pack_path(self) -> Path | None:
        """Where a file may be that is made from this index and goes with it; None where there is no such place."""
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
