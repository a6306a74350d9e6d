"""Documents of workspaces in the memory of a process: what a second engine needs, and no more."""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count

from indexer import to_nfc
from memory_service.errors import InvalidName, NotFound, StorageFailed, TooLarge
from memory_service.storage.documents import (
    MAX_VERSION_BYTES,
    MAX_VERSIONS,
    VERSION_AGE,
    Document,
    DocumentVersion,
    ListedDocument,
    Listing,
)
from memory_service.storage.revisions import Revision

MAX_READ_BYTES = 64 * 1024 * 1024


@dataclass
class Shelf:
    """The documents of one workspace, which several stores may share.

    Attributes:
        before: Called with the name of each change before it is done; what it raises, the change raises.
    """

    documents: dict[str, tuple[bytes, Revision, dt.datetime]] = field(default_factory=dict)
    versions: dict[str, list[tuple[DocumentVersion, bytes]]] = field(default_factory=dict)
    revisions: Iterator[int] = field(default_factory=count)
    writing: threading.Lock = field(default_factory=threading.Lock)
    before: Callable[[str], None] = lambda _: None

    def put(self, path: str, raw: bytes) -> Revision:
        """Put a content there; gives its revision."""
        revision = b"%d" % next(self.revisions)
        self.documents[path] = raw, revision, dt.datetime.now(dt.UTC)
        return revision


class InMemoryDocuments:
    """The documents on a shelf; see `DocumentStore`."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._there = shelf.documents

    def scan(self) -> Listing:
        """All documents."""
        return Listing(
            documents={
                path: ListedDocument(path, len(raw), at, revision, is_settled=True)
                for path, (raw, revision, at) in self._there.items()
            }
        )

    def spelling(self, path: str) -> str:
        """A path as it stands here."""
        alike = (known for known in sorted(self._there) if to_nfc(known) == to_nfc(path))
        return path if path in self._there else next(alike, to_nfc(path))

    def revision(self, path: str) -> Revision | None:
        """The revision of a document."""
        return self._there[path][1] if _checked(path) in self._there else None

    def read(self, path: str) -> Document:
        """One document."""
        if _checked(path) not in self._there:
            raise NotFound(f"There is no document {path}. List them.")
        raw, revision, _ = self._there[path]
        if len(raw) > MAX_READ_BYTES:
            raise TooLarge(f"The document {path} is too large. Split it.")
        return Document(raw, revision)

    def pieces(self, path: str) -> Iterator[bytes]:
        """The content of a document."""
        if _checked(path) not in self._there:
            raise NotFound(f"There is no document {path}. List them.")
        yield self._there[path][0]

    def containing(self, word: bytes, paths: Collection[str]) -> list[str]:
        """Those of some documents that have a word."""
        return [path for path in paths if path in self._there and word in self._there[path][0]]

    def replace(
        self,
        path: str,
        raw: bytes,
        *,
        expected: Revision | None,
        blanks: Callable[[], Iterable[bytes]] | None = None,
        erases: bool = False,
    ) -> bool:
        """Put a content in the place of another one."""
        if self.revision(path) != expected:
            return False
        try:
            self._shelf.before("replace")
        except MemoryError:
            if blanks is None:
                raise StorageFailed(f"There is no room for {path}. Make some.") from None
            raw = list(blanks())[-1]
        before = self._there.get(path)
        if before is not None and not erases and not raw.startswith(before[0]):
            now = dt.datetime.now(dt.UTC)
            self._add(path, DocumentVersion(before[1].hex(), now, len(before[0])), before[0])
        self._shelf.put(path, raw)
        return True

    def append(self, path: str, raw: bytes, *, expected: Revision | None) -> Revision | None:
        """Append to a content."""
        if self.revision(path) != expected:
            return None
        self._shelf.before("append")
        before = self._there[path][0] if expected is not None else b""
        return expected if expected is not None and not raw else self._shelf.put(path, before + raw)

    def remove(self, path: str, *, expected: Revision | None = None) -> bool:
        """Remove a document."""
        there = self.revision(path)
        if there is None and expected is None:
            raise NotFound(f"There is no document {path}. List them.")
        if expected is not None and there != expected:
            return False
        self._shelf.before("remove")
        del self._there[path]
        self._shelf.versions.pop(path, None)
        return True

    def set_time(self, path: str, modified_at: dt.datetime) -> None:
        """Give a document the time of its last change."""
        if self.revision(path) is None:
            raise NotFound(f"There is no document {path}. List them.")
        self._there[path] = (*self._there[path][:2], modified_at)

    @property
    def has_history(self) -> bool:
        """True."""
        return True

    def versions(self, path: str) -> Sequence[DocumentVersion]:
        """The versions of a document, the last first."""
        since = dt.datetime.now(dt.UTC) - VERSION_AGE
        known = reversed(self._shelf.versions.get(_checked(path), []))
        return [version for version, _ in known if version.replaced_at > since]

    def version(self, path: str, version_id: str) -> bytes:
        """The content of a version."""
        for version, raw in self._shelf.versions.get(_checked(path), []):
            if version.version_id == version_id and version in self.versions(path):
                return raw
        raise NotFound(f"There is no version {version_id} of {path}. List them.")

    def add_version(self, path: str, version: DocumentVersion, raw: bytes) -> None:
        """Put a version of another store here."""
        if all(known.version_id != version.version_id for known, _ in self._shelf.versions.get(_checked(path), [])):
            self._add(path, version, raw)

    def erase_versions(self, holds: Callable[[str, bytes], bool]) -> int:
        """Erase versions."""
        gone = 0
        for path, known in self._shelf.versions.items():
            rest = [pair for pair in known if not holds(path, pair[1])]
            gone += len(known) - len(rest)
            known[:] = rest
        return gone

    def _add(self, path: str, version: DocumentVersion, raw: bytes) -> None:
        """Put a version to its place, and remove those that are too many."""
        known = self._shelf.versions.setdefault(path, [])
        known.append((version, raw))
        known.sort(key=lambda pair: pair[0].replaced_at)
        del known[:-MAX_VERSIONS]
        while sum(len(raw) for _, raw in known) > MAX_VERSION_BYTES:
            del known[0]

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Keep all other writers out."""
        with self._shelf.writing:
            yield

    def leftovers(self) -> Sequence[str]:
        """Nothing: what was not done is not there."""
        return ()

    def sweep(self) -> None:
        """Nothing is left over."""


def _checked(path: str) -> str:
    if any(not part or part.startswith(".") for part in path.split("/")):
        raise InvalidName(f"The path {path!r} would leave the workspace. Choose another one.")
    return path
