"""Memory files of one workspace: list, read, compare-and-swap, erase.

Invariants: what was answered is on the disk; one writer at a time, among threads and processes, while people
edit the same files with any editor and lose nothing; one text is stored once a day; looking something up, or failing
to, creates nothing. Knows nothing of the index.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from indexer.common import LRU, lazy_regex
from memory_service.errors import (
    InvalidName,
    InvalidRequest,
    MemoryServiceError,
    NotFound,
    PreconditionFailed,
    TooLarge,
)
from memory_service.memories.daily_notes import DailyNotes
from memory_service.memories.entries import EntryStore, check_complete
from memory_service.memories.file_history import FileHistory
from memory_service.memories.file_text import check_range, etag_of, measure, read_range
from memory_service.memories.workspaces import memory_path
from memory_service.schemas.memories import FileText, MemoryFile
from memory_service.storage.documents import DocumentStore, ListedDocument
from memory_service.storage.revisions import ATTEMPTS, Revision, kept_changing

MAX_FILE_BYTES = 8 * 1024 * 1024
# Each may be a passage of its own, which is embedded by itself.
MAX_FILE_LINES = 100_000
_MEASURED_FILES = 20_000
_UNWRITABLE = lazy_regex("[\x00\ud800-\udfff]")
_COMMENT = lazy_regex(r"<!--(?:.|\n)*?-->")
_KEPT_TEXTS = 64


class MemoryStore:
    """The memory files of one workspace.

    Args:
        documents: Their storage.
        now: The present moment in the time zone of the workspace.
        max_bytes: Larger files are not indexed.

    Attributes:
        documents: Their storage.
        notes: The dated ones, as far as the service writes into them.
        history: Their earlier versions.
        entries: The entries of all of them.
    """

    def __init__(
        self, documents: DocumentStore, *, now: Callable[[], dt.datetime], max_bytes: int = MAX_FILE_BYTES
    ) -> None:
        self.documents = documents
        self.notes = DailyNotes(documents, now=now)
        self.history = FileHistory(documents)
        self.entries = EntryStore(documents, self.history, max_bytes=max_bytes)
        self._measured: LRU[str, tuple[Revision, MemoryFile]] = LRU(_MEASURED_FILES)
        self._texts: LRU[str, tuple[Revision, str]] = LRU(_KEPT_TEXTS)

    def list(self) -> list[MemoryFile]:
        """All memory files, sorted by path.

        Raises:
            StorageFailed: A file or folder cannot be read.
        """
        listing = self.documents.scan()
        check_complete(listing)
        return [row for _, document in sorted(listing.documents.items()) if (row := self._row(document)) is not None]

    def read(self, path: str, start_line: int = 1, lines: int | None = None) -> FileText:
        """Reads some lines of a file: as many as asked for, and 2,000 at most.

        Raises:
            InvalidName: The path is not that of a memory file.
            InvalidRequest: A number is below 1, or the file is not UTF-8.
            NotFound: There is no such file.
        """
        check_range(start_line, lines)
        raw, _ = self.documents.read(memory_path(path))
        return read_range(raw, path, start_line=start_line, lines=lines)

    def write(self, path: str, text: str, *, if_match: str | None = None, if_none_match: bool = False) -> str:
        """Replaces a file that is still the one the caller saw, or creates one.

        Args:
            path: The file.
            text: Its whole new content.
            if_match: The etag the file must have; "*" stands for any.
            if_none_match: There must be no such file.

        Returns:
            The new etag.

        Raises:
            InvalidName: The path is not that of a memory file.
            InvalidRequest: Not exactly one condition is given, or the text cannot be stored.
            PreconditionFailed: The file is not what the caller last saw; it stays as it is.
            TooLarge: The text has more than 8 MiB, or too many lines.
            StorageFailed: The disk did not take it; the file is as it was.
        """
        raw = _encode(path, text)
        if (if_match is None) != if_none_match:
            raise InvalidRequest(
                f"Writing {path} needs one condition. Give If-Match, or If-None-Match: * for a new file."
            )
        # First without the lock, as its file would be created for nothing.
        self._check_condition(memory_path(path), if_match)
        with self._writing():
            for _ in range(ATTEMPTS):
                if self.documents.replace(path, raw, expected=self._check_condition(path, if_match)):
                    return etag_of(raw)
        raise kept_changing(path)

    def delete(self, path: str, *, if_match: str | None = None) -> None:
        """Removes a file.

        Args:
            path: The file.
            if_match: The etag the file must have; None removes whatever is there.

        Raises:
            InvalidName: The path is not that of a memory file.
            NotFound: There is no such file.
            PreconditionFailed: The file is not what the caller last saw; it stays as it is.
            StorageFailed: It cannot be removed.
        """
        if not self.exists(memory_path(path)):
            raise NotFound(f"There is no file {path}. List the files of the workspace to see what is there.")
        with self._writing():
            for _ in range(ATTEMPTS):
                revision = None if if_match is None else self._check_condition(path, if_match)
                if self.documents.remove(path, expected=revision):
                    return
        raise kept_changing(path)

    def erase_versions(self, path: str) -> int:
        """Erases the earlier versions of a file; gives how many these were.

        Raises:
            StorageFailed: They cannot be erased.
        """
        with self._writing():
            return self.history.erase(path)

    def loses(self, path: str, text: str) -> bool:
        """True if a file has a line that a new text of it has not."""
        try:
            lines = set(self.documents.read(memory_path(path)).raw.splitlines())
        except NotFound:
            return False
        return not lines <= set(text.encode("utf-8", "replace").splitlines())

    def sweep(self) -> None:
        """Removes what killed writers left: it holds what may be erased, and nobody would find it.

        Raises:
            StorageFailed: It cannot be removed.
        """
        if self.documents.leftovers():
            with self._writing():
                pass

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """The write lock; whatever others left half-written is gone then."""
        with self.documents.writing():
            self.documents.sweep()
            yield

    def _row(self, document: ListedDocument) -> MemoryFile | None:
        """Listing row of a file, which is read only if it changed since the last listing."""
        known_pair = self._measured.get(document.path)
        if known_pair and known_pair[0] == document.revision:
            return known_pair[1]
        row = self._measure(document)
        if row and document.is_settled:
            self._measured[document.path] = document.revision, row
        return row

    def _measure(self, document: ListedDocument) -> MemoryFile | None:
        """Listing row of a file; None if it vanished, or has a name that no caller could give back."""
        try:
            size_bytes, lines, etag = measure(self.documents.pieces(memory_path(document.path)))
        except (NotFound, InvalidName):
            return None
        return MemoryFile(
            path=document.path, bytes=size_bytes, lines=lines, modified_at=document.modified_at, etag=etag
        )

    def _check_condition(self, path: str, if_match: str | None) -> Revision | None:
        """The revision of the file, if it is the one that is asked for; None stands for no file."""
        try:
            raw, revision = self.documents.read(path)
        except NotFound:
            if if_match is None:
                return None
            raise PreconditionFailed(f"There is no file {path}. Create it with If-None-Match: *.") from None
        etag = etag_of(raw)
        if if_match is None:
            raise PreconditionFailed(
                f"The file {path} exists, with the etag {etag}. Read it, then write with If-Match."
            )
        if if_match not in ("*", etag):
            raise PreconditionFailed(
                f"The file {path} was changed: its etag is {etag} now. Read it again, apply your change, "
                "and write that."
            )
        return revision

    def exists(self, path: str) -> bool:
        """True if there is a file of this name, even one that cannot be read."""
        return self.documents.revision(path) is not None

    def says(self, path: str, text: str) -> bool:
        """True if a file has each line of a text of it, whatever blanks and comments stand between its words."""
        try:
            revision = self.documents.revision(path)
            known_text = self._texts.get(path)
            if known_text is None or known_text[0] != revision:
                raw, revision = self.documents.read(path)
                known_text = self._texts[path] = (
                    revision,
                    _squash_blanks(_COMMENT.sub("", raw.decode("utf-8", "replace"))),
                )
        except MemoryServiceError:
            return False
        return all(_squash_blanks(line) in known_text[1] for line in text.splitlines())


def _squash_blanks(text: str) -> str:
    return " ".join(text.split())


def _encode(path: str, text: str) -> bytes:
    if _UNWRITABLE.search(text):
        raise InvalidRequest(f"The text for {path} holds a NUL or half a surrogate pair. Leave such characters out.")
    if (lines := text.count("\n")) > MAX_FILE_LINES:
        raise TooLarge(f"The text for {path} has {lines:,} lines, more than {MAX_FILE_LINES:,}. Split the file.")
    raw = text.encode()
    if len(raw) > MAX_FILE_BYTES:
        raise TooLarge(f"The text for {path} has {len(raw):,} bytes, more than {MAX_FILE_BYTES:,}. Split the file.")
    return raw
