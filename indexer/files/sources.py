"""Owns what there is to index and how a file is read: stat first, content only when that has changed.

Invariants: nothing outside the workspace is ever listed or read, so symbolic links are left out; a file
that cannot be read is named with the reason, never taken for deleted; what is read is one state of the
file, not the mixture of two.
"""

from __future__ import annotations

import codecs
import hashlib
import os
import re
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from stat import S_ISDIR, S_ISREG
from typing import NamedTuple

from indexer.errors import SourceMissing
from indexer.stores.base import FileState
from indexer.types import EVERGREEN, FileFailure, Source

MEMORY_FOLDER = "memory"
SESSIONS_FOLDER = "sessions"
# What the paths of extra folders begin with, and no path of a workspace does.
EXTRA_MARK = "@"
_LOG_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}\.jsonl")
# A change that comes within the grain of the file system's clock leaves the stat as it was.
_GRAIN_NS = 50_000_000
_COARSE_GRAIN_NS = 2_000_000_000
_READ_ATTEMPTS = 3
# Where a NUL shows that a file of an extra folder is no text, as git looks for it.
_SNIFFED_BYTES = 8 * 1024


class SourceFile(NamedTuple):
    """A file as its directory entry shows it.

    A tuple, as `FileState` is: a scan makes one for every file, and they are compared.
    """

    path: str
    source: Source
    size_bytes: int
    mtime_ns: int
    ctime_ns: int
    inode: int

    def is_settled_as(self, state: FileState) -> bool:
        """Whether its content is what is indexed, beyond doubt: the one question that most files need."""
        # Both begin with the same fields. In one piece, as a sync that finds nothing to do asks little else.
        if state[:6] != self or state.failure or not state.content_hash:
            return False
        mtime_ns, ctime_ns = self.mtime_ns, self.ctime_ns
        grain = _GRAIN_NS if mtime_ns % 1_000_000_000 else _COARSE_GRAIN_NS
        return state.checked_ns - (mtime_ns if mtime_ns > ctime_ns else ctime_ns) > grain

    def looks_like(self, state: FileState) -> bool:
        """Whether the file's stat is the one that `state` tells of."""
        return self[2:] == state[2:6]

    def settled_before(self, state: FileState) -> bool:
        """Whether the file was read so long after its last change that a later one would show."""
        grain = _GRAIN_NS if self.mtime_ns % 1_000_000_000 else _COARSE_GRAIN_NS
        return state.checked_ns - max(self.mtime_ns, self.ctime_ns) > grain


# Half of the time that the class itself takes.
_made = partial(tuple.__new__, SourceFile)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """What a look at the folders found.

    Attributes:
        files: Files by path.
        failures: Folders that could not be listed; nothing is known of what lies below them.
    """

    files: dict[str, SourceFile]
    failures: tuple[FileFailure, ...]

    def covers(self, path: str) -> bool:
        """Whether a path that is missing here is really gone, and not below a folder that failed."""
        return not any(path.startswith(failure.path.rstrip("/") + "/") for failure in self.failures)

    def joined(self, other: Scan) -> Scan:
        """What two looks found together."""
        files = self.files | other.files if other.files else self.files
        return Scan(files=files, failures=(*self.failures, *other.failures))


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """A file as it was read: its text, or why it has none; a session log as it is, in `raw`."""

    file: SourceFile
    checked_ns: int
    content_hash: str = ""
    text: str = ""
    raw: bytes = b""
    failure: str = ""


def require_folder(root: Path) -> None:
    """Make sure that a workspace is there.

    Raises:
        SourceMissing: It is not.
    """
    if not root.is_dir():
        raise SourceMissing(f"The workspace folder {root} is not there. Create it, or write a first memory.")


def scan_memories(root: Path) -> Scan:
    """Look for memory files in a workspace: MEMORY.md, USER.md and all Markdown below memory/.

    Raises:
        SourceMissing: The workspace folder itself is not there or cannot be listed.
    """
    require_folder(root)
    files: dict[str, SourceFile] = {}
    failures: list[FileFailure] = []
    for name in EVERGREEN:
        try:
            stat = os.lstat(root / name)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise SourceMissing(
                f"The workspace folder {root} cannot be read ({error.strerror}). Check its permissions."
            ) from error
        if S_ISREG(stat.st_mode):
            files[name] = source_file(name, stat)
    files |= _folder(root, MEMORY_FOLDER, failures)
    return Scan(files=files, failures=tuple(failures))


def scan_workspace(root: Path, *, sessions: bool = True) -> Scan:
    """Look for all that is indexed in a workspace: memory files, and the session logs directly in sessions/.

    Raises:
        SourceMissing: The workspace folder itself is not there or cannot be listed.
    """
    memories = scan_memories(root)
    if not sessions:
        return memories
    failures = list(memories.failures)
    logs = _folder(root, SESSIONS_FOLDER, failures)
    return Scan(files=memories.files | logs, failures=tuple(failures))


def _folder(root: Path, name: str, failures: list[FileFailure]) -> dict[str, SourceFile]:
    if (root / name).is_symlink():
        failures.append(FileFailure(path=name, reason="it is a symbolic link; put the folder itself there"))
        return {}
    list_all = _walk if name == MEMORY_FOLDER else _logs
    return list_all(str(root / name), name, failures)


def scan_paths(root: Path, paths: Collection[str]) -> Scan:
    """Look at some files alone; those that are not there, or are reached by a link, are left out."""
    files = {}
    for path in paths:
        try:
            above = [os.lstat(root / folder).st_mode for folder in PurePosixPath(path).parents if folder.name]
            stat = os.lstat(root / path)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            failure = FileFailure(path=path, reason=f"it cannot be read ({error.strerror}); check its permissions")
            return Scan(files={}, failures=(failure,))
        if S_ISREG(stat.st_mode) and all(S_ISDIR(mode) for mode in above):
            files[path] = source_file(path, stat)
    return Scan(files=files, failures=())


def is_memory_path(path: str) -> bool:
    """Whether a path, relative to the workspace, is one that `scan_memories` would list."""
    return path in EVERGREEN or (path.startswith(MEMORY_FOLDER + "/") and path.lower().endswith(".md"))


def is_session_path(path: str) -> bool:
    """Whether a path, relative to the workspace, is that of a session log."""
    folder, _, name = path.partition("/")
    return folder == SESSIONS_FOLDER and _LOG_NAME.fullmatch(name) is not None


def read(root: Path, file: SourceFile, *, max_bytes: int, place: Path | None = None) -> Content:
    """Read one file. A reason why it has no text is part of the answer, not an exception.

    Args:
        root: The workspace folder.
        file: The file as it was found.
        max_bytes: A larger one is not read.
        place: Where it lies, if not below the workspace folder.
    """
    if file.size_bytes > max_bytes:
        return _failed(file, f"it has {file.size_bytes:,} bytes, more than the limit of {max_bytes:,}; split it")
    try:
        settled = _read_settled(place or root / file.path, file)
    except FileNotFoundError:
        return _failed(file, "it vanished while it was read; the next reindex looks again")
    except OSError as error:
        return _failed(file, f"it cannot be read ({error.strerror}); check its permissions")
    if settled is None:
        return _failed(file, "it changes while it is read; the next reindex looks again")
    return settled


def _read_settled(absolute: Path, file: SourceFile) -> Content | None:
    for attempt in range(_READ_ATTEMPTS):
        if attempt:
            time.sleep(0.02 * attempt)
        checked_ns = time.time_ns()
        with open(absolute, "rb", opener=_no_follow) as stream:
            before = source_file(file.path, os.fstat(stream.fileno()))
            raw = stream.read()
        if source_file(file.path, os.lstat(absolute)) == before and len(raw) == before.size_bytes:
            return _decoded(before, checked_ns, raw)
    return None


def _no_follow(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0))


def _decoded(file: SourceFile, checked_ns: int, raw: bytes) -> Content:
    content_hash = hashlib.blake2b(raw, digest_size=16).hexdigest()
    if file.source == "sessions":
        # Its lines are read one by one: a damaged one is no reason to leave out the others.
        return Content(file=file, checked_ns=checked_ns, content_hash=content_hash, raw=raw)
    if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return _failed(file, "it is UTF-16, not UTF-8; save it as UTF-8", content_hash, checked_ns)
    if file.source == "files" and b"\0" in raw[:_SNIFFED_BYTES]:
        # Not text at all, whatever it is called: there is nothing in it that a person could mend.
        return Content(file=file, checked_ns=checked_ns, content_hash=content_hash)
    try:
        return Content(file=file, checked_ns=checked_ns, content_hash=content_hash, text=raw.decode("utf-8"))
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        reason = f"it is not UTF-8 (byte 0x{raw[error.start]:02x} in line {line}); save it as UTF-8"
        return _failed(file, reason, content_hash, checked_ns)


def _failed(file: SourceFile, reason: str, content_hash: str = "", checked_ns: int = 0) -> Content:
    return Content(file=file, checked_ns=checked_ns, content_hash=content_hash, failure=reason)


def _walk(top: str, name: str, failures: list[FileFailure]) -> dict[str, SourceFile]:
    """Markdown files at any depth, by path, in no order."""
    files: dict[str, SourceFile] = {}
    waiting = [(top, name)]
    while waiting:
        folder, prefix = waiting.pop()
        try:
            # Nearly all of a scan is in here, once for each file.
            for entry in _entries(folder):
                name = entry.name
                if name[0] == "." or entry.is_symlink():
                    continue
                path = f"{prefix}/{name}"
                if not name.isascii() and not _is_text(name):
                    shown = path.encode("utf-8", "backslashreplace").decode()
                    failures.append(FileFailure(path=shown, reason="its name is not UTF-8; rename it"))
                elif name[-3:].lower() == ".md" and (stat := _regular(entry)):
                    files[path] = _file(path, "memory", stat)
                elif entry.is_dir(follow_symlinks=False):
                    waiting.append((f"{folder}/{name}", path))
        except OSError as error:
            _fail(prefix, error, failures)
    return files


def _logs(folder: str, prefix: str, failures: list[FileFailure]) -> dict[str, SourceFile]:
    """Session logs, directly in their folder; what is kept beside them (blobs, locks, backups) has other names."""
    files: dict[str, SourceFile] = {}
    try:
        for entry in _entries(folder):
            if _LOG_NAME.fullmatch(entry.name) and (stat := _regular(entry)):
                path = f"{prefix}/{entry.name}"
                files[path] = _file(path, "sessions", stat)
    except OSError as error:
        _fail(prefix, error, failures)
    return files


def _entries(folder: str) -> Iterator[os.DirEntry[str]]:
    """What is in a folder, in no order; opened by its descriptor where that can be.

    The system need not find the way from the root to each file then: a sixth of a walk.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY) if os.scandir in os.supports_fd else None
    try:
        with os.scandir(folder if descriptor is None else descriptor) as entries:
            yield from entries
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _fail(prefix: str, error: OSError, failures: list[FileFailure]) -> None:
    # A folder that is not there, or went meanwhile, has nothing in it.
    if not isinstance(error, FileNotFoundError):
        reason = f"it cannot be listed ({error.strerror}); check its permissions"
        failures.append(FileFailure(path=prefix, reason=reason))


def _regular(entry: os.DirEntry[str]) -> os.stat_result | None:
    """The stat of a regular file."""
    try:
        return entry.stat(follow_symlinks=False) if entry.is_file(follow_symlinks=False) else None
    except OSError:
        # It went between the listing and the look at it: the same as not listed.
        return None


def _is_text(name: str) -> bool:
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def source_of(path: str) -> Source:
    """What a path is that of."""
    if path.startswith(EXTRA_MARK):
        return "files"
    return "sessions" if is_session_path(path) else "memory"


def source_file(path: str, stat: os.stat_result) -> SourceFile:
    """A file as its stat shows it."""
    return _file(path, source_of(path), stat)


def _file(path: str, source: Source, stat: os.stat_result) -> SourceFile:
    return _made((path, source, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino))
