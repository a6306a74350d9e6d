"""Memory files of one workspace: list, read, compare-and-swap, erase.

Invariants: what was answered is on the disk; one writer at a time, among threads and processes, while people
edit the same files with any editor and lose nothing; one text is stored once a day; nothing outside the
workspace is touched; looking something up, or failing to, creates nothing. Knows nothing of the index.
"""

from __future__ import annotations

import datetime as dt
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from indexer import EVERGREEN, MEMORY_FOLDER, Scan, SourceFile, SourceMissing, change_times, scan_memories
from indexer.common import LRU, lazy_regex
from memory_service import disk
from memory_service.disk import open_no_follow, storage_errors
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
from memory_service.memories.workspaces import memory_path, resolve
from memory_service.schemas.memories import FileText, MemoryFile

MAX_FILE_BYTES = 8 * 1024 * 1024
# Each may be a passage of its own, which is embedded by itself.
MAX_FILE_LINES = 100_000
MAX_LINES = 2_000
_MEASURED_FILES = 20_000
# A file that was written twice within a tick of its file system's clock may look as if it was not.
_TICK_SECONDS = 2.0
_LOCK = Path(".locks", "memory.lock")
_UNWRITABLE = lazy_regex("[\x00\ud800-\udfff]")
_COMMENT = lazy_regex(r"<!--(?:.|\n)*?-->")
_KEPT_TEXTS = 64


class MemoryStore:
    """The memory files of one workspace.

    Args:
        folder: The folder of the workspace; the first write creates it.
        now: The present moment in the time zone of the workspace.
        max_bytes: Larger files are not indexed.

    Attributes:
        notes: The dated ones, as far as the service writes into them.
        entries: The entries of all of them.
    """

    def __init__(self, folder: Path, *, now: Callable[[], dt.datetime], max_bytes: int = MAX_FILE_BYTES) -> None:
        self._folder = folder
        self._lock = disk.WriteLock(folder / _LOCK)
        self.notes = DailyNotes(folder, lock=self._lock, now=now)
        self.entries = EntryStore(folder, scan=self._scan, locked=self._locked, max_bytes=max_bytes)
        self._measured: LRU[str, tuple[SourceFile, MemoryFile]] = LRU(_MEASURED_FILES)
        self._said: LRU[str, tuple[disk.Signature | None, str]] = LRU(_KEPT_TEXTS)

    def list(self) -> list[MemoryFile]:
        """All memory files, sorted by path.

        Raises:
            StorageFailed: A file or folder cannot be read.
        """
        scan = self._scan()
        check_complete(scan)
        return [row for path in sorted(scan.files) if (row := self._row(scan.files[path])) is not None]

    def read(self, path: str, start_line: int = 1, lines: int | None = None) -> FileText:
        """Reads some lines of a file: as many as asked for, and 2,000 at most.

        Raises:
            InvalidName: The path is not that of a memory file.
            InvalidRequest: A number is below 1, or the file is not UTF-8.
            NotFound: There is no such file.
        """
        return read_range(resolve(self._folder, path), path, start_line=start_line, lines=lines)

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
        raw = _encoded(path, text)
        if (if_match is None) != if_none_match:
            raise InvalidRequest(
                f"Writing {path} needs one condition. Give If-Match, or If-None-Match: * for a new file."
            )
        target = resolve(self._folder, path)
        with storage_errors(path):
            # First without the lock, as its file would be created for nothing.
            _check_condition(path, target, if_match)
            with self._locked():
                for _ in range(disk.ATTEMPTS):
                    seen = _check_condition(path, target, if_match)
                    disk.make_folder(target.parent)
                    if disk.replace_durably(target, raw, expected=seen):
                        return disk.etag_of(raw)
        raise disk.restless(path)

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
        target = resolve(self._folder, path)
        with storage_errors(path):
            os.lstat(target)
            with self._locked():
                if if_match is not None:
                    _check_condition(path, target, if_match)
                disk.remove_durably(target)

    def loses(self, path: str, text: str) -> bool:
        """True if a file has a line that a new text of it has not."""
        try:
            with storage_errors(path), open_no_follow(resolve(self._folder, path)) as descriptor:
                lines = set(disk.read_all(descriptor).splitlines())
        except NotFound:
            return False
        return not lines <= set(text.encode("utf-8", "replace").splitlines())

    @property
    def drafts(self) -> tuple[Path, ...]:
        """Temporary files of crashed writers."""
        return tuple(draft for folder in self._folders() for draft in disk.draft_files(folder))

    def sweep(self) -> None:
        """Remove these: they hold what may be erased, and nobody would find them.

        Raises:
            StorageFailed: They cannot be removed.
        """
        if self.drafts:
            with self._locked():
                pass

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """The write lock; whatever others left half-written is gone then."""
        with self._lock.held():
            with storage_errors("the workspace"):
                disk.sweep(self._folders())
            yield

    def _folders(self) -> Iterator[Path]:
        """The folders that memory files stand in."""
        yield self._folder
        for place, _, _ in os.walk(self._folder / MEMORY_FOLDER):
            yield Path(place)

    def _scan(self) -> Scan:
        """All memory files; none if there is no workspace yet."""
        with storage_errors("the workspace"):
            try:
                scan = scan_memories(self._folder)
            except SourceMissing:
                return Scan(files={}, failures=())
            if (self._folder / MEMORY_FOLDER).is_symlink():
                return Scan(files={path: file for path, file in scan.files.items() if path in EVERGREEN}, failures=())
            return scan

    def _row(self, file: SourceFile) -> MemoryFile | None:
        """Listing row of a file, which is read only if it changed since the last listing."""
        known = self._measured.get(file.path)
        if known and known[0] == file:
            return known[1]
        row = self._measure(file.path)
        if row and time.time() - max(change_times(file)) / 1e9 > _TICK_SECONDS:
            self._measured[file.path] = file, row
        return row

    def _measure(self, path: str) -> MemoryFile | None:
        """Listing row of a file; None if it vanished, or has a name that no caller could give back."""
        try:
            with storage_errors(path), open_no_follow(self._folder / memory_path(path)) as descriptor:
                modified_at = disk.modified_at(os.fstat(descriptor))
                reader = disk.HashedReader(descriptor)
                lines = disk.count_lines(reader.pieces())
        except (NotFound, InvalidName):
            return None
        return MemoryFile(path=path, bytes=reader.size_bytes, lines=lines, modified_at=modified_at, etag=reader.etag)

    def exists(self, path: str) -> bool:
        """True if there is a file of this name, even one that cannot be read."""
        return os.path.lexists(resolve(self._folder, path))

    def says(self, path: str, text: str) -> bool:
        """True if a file has each line of a text of it, whatever blanks and comments stand between its words."""
        try:
            # Asked of every passage in a prompt: joining `Path`s takes as long as all else.
            signature = disk.current_signature(os.path.join(self._folder, path))
            known = self._said.get(path)
            if known is None or known[0] != signature:
                with storage_errors(path):
                    raw, _ = disk.read_signed(self._folder / path, path)
                said = _squashed(_COMMENT.sub("", raw.decode("utf-8", "replace")))
                known = self._said[path] = signature, said
        except (OSError, MemoryServiceError):
            return False
        return all(_squashed(line) in known[1] for line in text.splitlines())


def read_range(target: Path, path: str, *, start_line: int = 1, lines: int | None = None) -> FileText:
    """Reads some lines of a file: as many as asked for, and 2,000 at most.

    Args:
        target: Where it lies.
        path: What it is called.
        start_line: The first line.
        lines: How many.

    Raises:
        InvalidRequest: A number is below 1, or the file is not UTF-8.
        NotFound: There is no such file.
        TooLarge: It is so large that one line of it may take all memory.
    """
    if start_line < 1 or (lines is not None and lines < 1):
        raise InvalidRequest(f"start_line {start_line} and lines {lines} cannot be read. Both count from 1.")
    count = min(lines or MAX_LINES, MAX_LINES)
    with storage_errors(path), open_no_follow(target) as descriptor:
        disk.check_size(descriptor, path)
        reader = disk.HashedReader(descriptor)
        window: list[str] = []
        total = 0
        try:
            for total, line in enumerate(reader.lines(), start=1):
                if start_line <= total < start_line + count:
                    window.append(line)
        except UnicodeDecodeError as error:
            raise disk.not_utf8(path, disk.read_all(descriptor)) from error
    end_line = start_line + len(window) - 1
    return FileText(
        path=path,
        text="".join(window),
        start_line=start_line,
        end_line=end_line,
        total_lines=total,
        next_start_line=end_line + 1 if end_line < total and window else None,
        etag=reader.etag,
    )


def _check_condition(path: str, target: Path, if_match: str | None) -> disk.Signature | None:
    """The state of the file, if it is the one that is asked for; None stands for no file."""
    try:
        raw, seen = disk.read_signed(target, path)
    except FileNotFoundError:
        if if_match is None:
            return None
        raise PreconditionFailed(f"There is no file {path}. Create it with If-None-Match: *.") from None
    etag = disk.etag_of(raw)
    if if_match is None:
        raise PreconditionFailed(f"The file {path} exists, with the etag {etag}. Read it, then write with If-Match.")
    if if_match not in ("*", etag):
        raise PreconditionFailed(
            f"The file {path} was changed: its etag is {etag} now. Read it again, apply your change, and write that."
        )
    return seen


def _squashed(text: str) -> str:
    return " ".join(text.split())


def _encoded(path: str, text: str) -> bytes:
    if _UNWRITABLE.search(text):
        raise InvalidRequest(f"The text for {path} holds a NUL or half a surrogate pair. Leave such characters out.")
    if (lines := text.count("\n")) > MAX_FILE_LINES:
        raise TooLarge(f"The text for {path} has {lines:,} lines, more than {MAX_FILE_LINES:,}. Split the file.")
    raw = text.encode()
    if len(raw) > MAX_FILE_BYTES:
        raise TooLarge(f"The text for {path} has {len(raw):,} bytes, more than {MAX_FILE_BYTES:,}. Split the file.")
    return raw
