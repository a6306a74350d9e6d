"""The documents of a workspace, as bytes: what every engine of storage gives, and nothing else.

Invariants: a document is one state, never a mixture of two; a change that names a revision is done to that revision or
not at all; what was answered lasts. Pages, entries, ids and etags are made of the bytes above this protocol. A path is
relative, with slashes, and was checked by whoever took it from a caller; one that would leave the workspace is refused.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from indexer import FileFailure
from memory_service.storage.revisions import Revision

# The earlier versions that an engine with a history keeps of a file: so many, of so many bytes in all, so long.
MAX_VERSIONS: Final = 100
MAX_VERSION_BYTES: Final = 64 * 1024 * 1024
VERSION_AGE: Final = dt.timedelta(days=90)


class Document(NamedTuple):
    """A document as it was read."""

    raw: bytes
    revision: Revision


class ListedDocument(NamedTuple):
    """A document as a listing shows it.

    Attributes:
        is_settled: Whether a change from now on shows in the revision, as a clock may be too coarse for that.
    """

    path: str
    size_bytes: int
    modified_at: dt.datetime
    revision: Revision
    is_settled: bool


class DocumentVersion(NamedTuple):
    """A content that a document had, until another one took its place."""

    version_id: str
    replaced_at: dt.datetime
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """The documents of a workspace, by path.

    Attributes:
        failures: Folders that could not be listed; nothing is known of the documents below them.
    """

    documents: Mapping[str, ListedDocument]
    failures: tuple[FileFailure, ...] = ()


class DocumentStore(Protocol):
    """The memory files of one workspace: MEMORY.md, USER.md and the Markdown below memory/.

    Every method raises `StorageFailed` where the disk or the database fails, and `InvalidName` for a path that would
    leave the workspace or leads over a link. A revision that is None stands for no document.
    """

    def scan(self) -> Listing:
        """All documents; none where there is no workspace yet."""

    def spelling(self, path: str) -> str:
        """A path, given in any Unicode form, as the store has it; one of a new document is in NFC."""

    def revision(self, path: str) -> Revision | None:
        """The revision of a document as it is now; None if there is none."""

    def read(self, path: str) -> Document:
        """One document.

        Raises:
            NotFound: There is none.
            TooLarge: Memory may have no room for it.
        """

    def pieces(self, path: str) -> Iterator[bytes]:
        """The content of a document of any size, piece by piece.

        Raises:
            NotFound: There is none.
        """

    def containing(self, word: bytes, paths: Collection[str]) -> list[str]:
        """Those of some documents, of any size, that have a word; none that is gone."""

    def replace(
        self,
        path: str,
        raw: bytes,
        *,
        expected: Revision | None,
        blanks: Callable[[], Iterable[bytes]] | None = None,
        erases: bool = False,
    ) -> bool:
        """Puts a content in the place of the one of a revision, in one step.

        Where the engine has a history, the content that goes becomes a version in the same step, unless all of it
        stands at the beginning of the new one, as after an append.

        Args:
            path: The document.
            raw: The new content.
            expected: The revision of the content that `raw` was made from.
            blanks: Contents to go through step by step, in place, where a full disk has no room for a second copy:
                the expected one, and what follows it, each of as many bytes.
            erases: Whether the content that goes is to be in no history.

        Returns:
            Whether it was done; if somebody else changed the document meanwhile, theirs stays.
        """

    def append(self, path: str, raw: bytes, *, expected: Revision | None) -> Revision | None:
        """Appends to the content of a revision; with nothing to append, makes that content last.

        Returns:
            The revision of the content with `raw` at its end. None if somebody else changed the document meanwhile:
            whether `raw` stands in it, a look at it tells.
        """

    def remove(self, path: str, *, expected: Revision | None = None) -> bool:
        """Removes a document with its versions, or only one of a revision.

        Returns:
            Whether it was done; if somebody else changed the document meanwhile, theirs stays.

        Raises:
            NotFound: There is none, and no revision was named.
        """

    def set_time(self, path: str, modified_at: dt.datetime) -> None:
        """Gives a document the time of its last change, which a copy has from what it is a copy of.

        Raises:
            NotFound: There is no such document.
        """
        ...

    @property
    def has_history(self) -> bool:
        """True if versions of documents are kept; of files none is, as people have git there."""
        ...

    def versions(self, path: str) -> Sequence[DocumentVersion]:
        """The versions of a document, the last replaced first; none where there is no history."""
        ...

    def version(self, path: str, version_id: str) -> bytes:
        """The content of a version.

        Raises:
            NotFound: There is no such version.
        """
        ...

    def add_version(self, path: str, version: DocumentVersion, raw: bytes) -> None:
        """Puts a version of another store into the history, unless it is there; nothing without a history."""

    def erase_versions(self, holds: Callable[[str, bytes], bool]) -> int:
        """Erases the versions of which a function of their path and content is true; gives how many these were."""
        ...

    def writing(self) -> AbstractContextManager[None]:
        """Keeps all other writers of the service out, in this process and in others; people with an editor stay.

        Raises:
            StorageFailed: Others kept it too long.
        """

    def leftovers(self) -> Sequence[str]:
        """Names of what killed writers left half-written, which may hold what is erased."""

    def sweep(self) -> None:
        """Removes these; called within `writing`."""
