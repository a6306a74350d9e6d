"""The `Source` seam: what an index is made of, and the values that cross it.

Invariants: a version is opaque to all but its source, and differs whenever the content may; a scan reads no content;
what cannot be seen is named with the reason, never taken for removed; the content of a file is one state of it, never a
mixture.
"""

from __future__ import annotations

import codecs
import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import NamedTuple, Protocol

from indexer.stores.base import FileState, Version
from indexer.types import FileFailure, SourceKind

# Where a NUL shows that a file of an extra folder is no text, as git looks for it.
_SNIFFED_BYTES = 8 * 1024


class SourceFile(NamedTuple):
    """A file as a scan sees it.

    Attributes:
        version: State of its content; another one may be another content.
    """

    path: str
    source: SourceKind
    size_bytes: int
    version: Version

    def looks_like(self, state: FileState) -> bool:
        """True if the file has the version of a stored state."""
        return self.version == state.version


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """Result of a scan.

    Attributes:
        files: New and changed files, by path.
        failures: Folders that could not be listed; nothing is known of the files below them.
        misnamed: Files and folders that are left out for their names.
        unchanged: Number of files that are as they were known.
        whole: True if everything was looked at; False if the named files alone were.
    """

    files: dict[str, SourceFile]
    failures: tuple[FileFailure, ...] = ()
    misnamed: tuple[FileFailure, ...] = ()
    unchanged: int = 0
    whole: bool = True

    def removals(self, paths: Iterable[str]) -> list[str]:
        """Those of some missing paths that are really removed, not hidden by a folder that failed."""
        failed_paths = {failure.path for failure in self.failures}
        return [path for path in paths if failed_paths.isdisjoint(with_folders(path))]

    def merge(self, other: Scan) -> Scan:
        """This scan and another one together."""
        return Scan(
            files=self.files | other.files,
            failures=(*self.failures, *other.failures),
            misnamed=(*self.misnamed, *other.misnamed),
            unchanged=self.unchanged + other.unchanged,
            whole=self.whole and other.whole,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """A file as read: its text, or why it has none; a session log as bytes, in `raw`."""

    file: SourceFile
    checked_ns: int
    content_hash: str = ""
    text: str = ""
    raw: bytes = b""
    failure: str = ""


class Source(Protocol):
    """Files that an index is made of: those of a folder, or rows of a database."""

    @property
    def name(self) -> str:
        """Name of the source, for messages."""
        ...

    @property
    def folders(self) -> tuple[Path, ...]:
        """The folders of this machine whose files they are, the workspace's first; none for rows of a database."""
        ...

    def require(self) -> None:
        """Make sure that the source is there, however empty.

        Raises:
            SourceMissing: It is not.
        """
        ...

    def scan(self, known: dict[str, Version] | None = None, paths: Collection[str] = ()) -> Scan:
        """Look at all files, or at those of some paths.

        Args:
            known: Versions by path. An unchanged file is taken out; the rest in the end has changed or is missing.
            paths: Files and folders to look at; empty means all. More may be looked at, see `Scan.whole`.

        Raises:
            SourceMissing: The source is not there, and files of it are known, or it cannot be listed.
        """
        ...

    def read(self, file: SourceFile, *, max_bytes: int) -> Content:
        """Read one file; a failure is part of the result. One of more than `max_bytes` is not read."""
        ...

    def spelling(self, path: str) -> str:
        """A path, given in any Unicode form, as the source has it; as it was given, where nothing is there."""
        ...

    def tail(self, path: str, max_bytes: int) -> tuple[bytes, bool]:
        """The last bytes of a session log, and whether they are all of it; nothing where it cannot be read."""
        ...

    def is_settled(self, state: FileState) -> bool:
        """True if the content was read so long after its last change that a later one would show in the version."""
        ...

    def is_gone(self, file: SourceFile) -> bool:
        """True if a file that was read was removed, replaced or cut since: it may have been erased."""
        ...

    def watch(self, changed: Callable[[Collection[str]], float], stop: Event) -> None:
        """Tell of changes until told to stop.

        Args:
            changed: Called with the paths that changed, or with none: then any may have. Gives the seconds that it took
                to find out what is to be done, without the doing.
            stop: Ends the watch.
        """
        ...


def with_folders(path: str) -> Iterator[str]:
    """A path and its folders, from the inside out."""
    while path:
        yield path
        path = path.rpartition("/")[0]


def content_of(file: SourceFile, raw: bytes, checked_ns: int) -> Content:
    """Content of a file from its bytes.

    Args:
        file: The file that they are of.
        raw: All its bytes.
        checked_ns: Time when they were read.
    """
    content_hash = hashlib.blake2b(raw, digest_size=16).hexdigest()
    if file.source == "sessions":
        # Its lines are read one by one: a damaged one is no reason to leave out the others.
        return Content(file=file, checked_ns=checked_ns, content_hash=content_hash, raw=raw)
    if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return failed_read(file, "it is UTF-16, not UTF-8; save it as UTF-8", content_hash, checked_ns)
    if file.source == "files" and b"\0" in raw[:_SNIFFED_BYTES]:
        # Not text at all, whatever it is called: there is nothing in it that a person could mend.
        return Content(file=file, checked_ns=checked_ns, content_hash=content_hash)
    try:
        return Content(file=file, checked_ns=checked_ns, content_hash=content_hash, text=raw.decode("utf-8"))
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        reason = f"it is not UTF-8 (byte 0x{raw[error.start]:02x} in line {line}); save it as UTF-8"
        return failed_read(file, reason, content_hash, checked_ns)


def failed_read(file: SourceFile, reason: str, content_hash: str = "", checked_ns: int = 0) -> Content:
    """Content of a file that cannot be indexed, with the reason."""
    return Content(file=file, checked_ns=checked_ns, content_hash=content_hash, failure=reason)
