"""Scan of a workspace for files, and the reading of a file: stat first, content only when that has changed.

Invariants: nothing outside the workspace is ever listed or read, so symbolic links are left out; a file that cannot be
read is named with the reason, never taken for deleted; the content of a file is one state of it, never a mixture.

macOS and some tools that synchronise folders write "é" as two characters, keyboards and models as one. Both are one
name here, given back as the disk has it; where a disk has a file of each spelling, an exact name means its own file.
"""

from __future__ import annotations

import codecs
import hashlib
import os
import time
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from struct import error as StructError
from typing import BinaryIO, NamedTuple

from indexer.common.patterns import lazy_regex
from indexer.errors import SourceMissing
from indexer.language.languages import Writing, language_of, writing_of
from indexer.stores.base import FileState, packed_stat
from indexer.types import EVERGREEN, EXTRA_MARK, FileFailure, Passage, Source, composed

MEMORY_FOLDER = "memory"
SESSIONS_FOLDER = "sessions"
_ENDING = ".md"
_CONTROLS = frozenset({"Cc", "Zl", "Zp"})
_LOG_NAME = lazy_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}\.jsonl")
# The largest number of a database. The inodes of some file systems, overlays above all, have one bit more, and a file's
# time of change may lie behind the year 2262, or before 1677.
_MOST = (1 << 63) - 1
_READ_ATTEMPTS = 3
# Where a NUL shows that a file of an extra folder is no text, as git looks for it.
_SNIFFED_BYTES = 8 * 1024
# To tell the languages of a workspace so many files are looked at, so much of all pages together and of each log, and
# so many passages of them: 40 ms of a processor.
_SAMPLED_FILES = 24
_SAMPLED_BYTES = 72 * 1024
_SAMPLED_LOG_BYTES = 32 * 1024
_SAMPLED_PASSAGES = 240
_REMEMBERED_FILES = 2_048


class SourceFile(NamedTuple):
    """A file as its directory entry shows it."""

    path: str
    source: Source
    size_bytes: int
    mtime_ns: int
    ctime_ns: int
    inode: int

    def looks_like(self, state: FileState) -> bool:
        """True if the file has the stat of a stored state."""
        return self[2:] == state[2:6]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """Result of a scan.

    Attributes:
        files: New and changed files, by path.
        failures: Folders that could not be listed; nothing is known of the files below them.
        misnamed: Files and folders that are left out for their names.
        unchanged: Number of files that are as they were known.
    """

    files: dict[str, SourceFile]
    failures: tuple[FileFailure, ...]
    misnamed: tuple[FileFailure, ...] = ()
    unchanged: int = 0

    def gone(self, paths: Iterable[str]) -> list[str]:
        """Those of some missing paths that are really removed, not hidden by a folder that failed."""
        failed = {failure.path for failure in self.failures}
        return [path for path in paths if failed.isdisjoint(with_folders(path))]

    def joined(self, other: Scan) -> Scan:
        """This scan and another one together."""
        return Scan(
            files=self.files | other.files,
            failures=(*self.failures, *other.failures),
            misnamed=(*self.misnamed, *other.misnamed),
            unchanged=self.unchanged + other.unchanged,
        )


@dataclass(slots=True)
class FolderScan:
    """A scan while it goes on.

    Attributes:
        known: Known stat of files by path, see `FileState.stat`. An unchanged file is taken out; the rest in the end
            has changed or is missing.
        files: The other files, by path.
    """

    known: dict[str, bytes] = field(default_factory=dict)
    files: dict[str, SourceFile] = field(default_factory=dict)
    failures: list[FileFailure] = field(default_factory=list)
    _misnamed: list[FileFailure] = field(init=False, default_factory=list)
    _known_before: int = field(init=False)

    def __post_init__(self) -> None:
        self._known_before = len(self.known)

    def others(self, prefix: str, entries: Iterable[os.DirEntry[str]]) -> Iterator[tuple[str, os.DirEntry[str]]]:
        """New and changed entries of a folder, with their paths; hidden ones are left out.

        Raises:
            OSError: The stat of one of them cannot be read.
        """
        known = self.known
        # Nearly all of a sync that finds nothing to do is in here, once for each file: no value is made of one.
        for entry in entries:
            name = entry.name
            if name[0] == ".":
                continue
            path = prefix + name
            if was := known.get(path):
                try:
                    stat = entry.stat(follow_symlinks=False)
                    # The same stat is that of the same inode, which never becomes a link or a folder.
                    if was == packed_stat(stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino):
                        del known[path]
                        continue
                except FileNotFoundError:
                    continue
                except StructError:
                    pass  # its time of change is none that was ever stored
            yield path, entry

    def take(self, path: str, source: Source, entry: os.DirEntry[str]) -> None:
        """Add a file; one that was removed after the listing is ignored.

        Raises:
            OSError: Its stat cannot be read.
        """
        try:
            stat = entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            return
        self.files[path] = _file(path, source, stat)

    def fail(self, path: str, reason: str) -> None:
        """Add a path that is not looked at, and why."""
        self.failures.append(FileFailure(path=path.encode("utf-8", "backslashreplace").decode(), reason=reason))

    def fits(self, path: str, *, backslash: bool = False) -> bool:
        """True if a path can be given back, see `name_fault`; one that cannot is left out, and named."""
        fault = name_fault(path, backslash=backslash)
        if fault:
            shown = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in path)
            self._misnamed.append(FileFailure(path=shown, reason=f"its name {fault}; rename it"))
        return not fault

    def scan(self) -> Scan:
        """The result."""
        return Scan(
            files=self.files,
            failures=tuple(self.failures),
            misnamed=tuple(self._misnamed),
            unchanged=self._known_before - len(self.known),
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


def require_folder(root: Path) -> None:
    """Make sure that a workspace folder exists.

    Raises:
        SourceMissing: It does not.
    """
    if not root.is_dir():
        raise SourceMissing(f"The workspace folder {root.name} is not there. Create it, or write a first memory.")


def scan_memories(root: Path) -> Scan:
    """Scan for memory files: MEMORY.md, USER.md and all Markdown below memory/; none where there is no folder yet.

    Raises:
        SourceMissing: The workspace folder cannot be listed.
    """
    return scan_workspace(root, sessions=False)


def scan_workspace(root: Path, *, sessions: bool = True, known: dict[str, bytes] | None = None) -> Scan:
    """Scan for all indexed files: memory files, and the session logs directly in sessions/.

    A folder that was never there is empty; one that held files and is gone may be a disk that is not mounted.

    Args:
        root: The workspace folder.
        sessions: Scan for session logs too.
        known: Known stat of files, see `FolderScan`.

    Raises:
        SourceMissing: The workspace folder held files and is not there, or cannot be listed.
    """
    if known:
        require_folder(root)
    look = FolderScan(known={} if known is None else known)
    _look_at_evergreen(root, look)
    if _is_own(root, MEMORY_FOLDER, look):
        _look_at_memories(str(root), look)
    if sessions and _is_own(root, SESSIONS_FOLDER, look):
        _look_at_logs(str(root), look)
    return look.scan()


def scan_paths(root: Path, paths: Collection[str]) -> Scan:
    """Scan of some files alone; those that are not there, or are reached by a link, are left out."""
    look = FolderScan()
    for path in paths:
        *folders, file = reversed(list(with_folders(path)))
        at = ""
        try:
            for folder in folders:
                if not S_ISDIR(os.lstat(root / folder).st_mode):
                    break
                at = folder
            else:
                stat = os.lstat(root / file)
                if S_ISREG(stat.st_mode):
                    look.files[path] = source_file(path, stat)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            look.fail(at or path, f"it cannot be read ({error.strerror}); check its permissions")
    return look.scan()


def with_folders(path: str) -> Iterator[str]:
    """A path and its folders, from the inside out."""
    while path:
        yield path
        path = path.rpartition("/")[0]


def name_fault(name: str, *, backslash: bool = False) -> str:
    """The fault of a name that cannot be given back as it is, such as one of two lines; empty if it has none.

    Args:
        name: A name or a path.
        backslash: Whether it may have a backslash, which other systems take for a slash.
    """
    if "\\" in name and not backslash:
        return "has a backslash in it"
    if name.isascii() and name.isprintable():
        return ""
    categories = {unicodedata.category(char) for char in name}
    if "Cs" in categories:
        return "is not UTF-8"
    return "has a control character in it" if categories & _CONTROLS else ""


def path_on_disk(folder: Path, path: str) -> str | None:
    """The path of a file or folder, as the disk spells it; None if there is none in any Unicode form.

    Args:
        folder: The folder that the path is relative to.
        path: A relative path without `.` and `..`.
    """
    return next(_spellings(folder, "", path.split("/")), None)


def path_for_new(folder: Path, path: str) -> str:
    """The path of a new file: the folders that are there as the disk spells them, the rest in the form NFC."""
    parts = path.split("/")
    for count in range(len(parts) - 1, 0, -1):
        above = path_on_disk(folder, "/".join(parts[:count]))
        if above is not None:
            return f"{above}/{composed('/'.join(parts[count:]))}"
    return composed(path)


def _spellings(folder: Path, above: str, parts: Sequence[str]) -> Iterator[str]:
    """The paths below a folder that spell some parts, the exact one first."""
    for name in _names_like(folder / above, parts[0]):
        if len(parts) == 1:
            yield above + name
        else:
            yield from _spellings(folder, f"{above}{name}/", parts[1:])


def _names_like(folder: Path, name: str) -> list[str]:
    """The names in a folder that are a name in any form: the exact one first, then the composed one."""
    wanted = composed(name)
    try:
        if not S_ISDIR(os.lstat(folder).st_mode):
            return []
        if wanted == name == unicodedata.normalize("NFD", name):
            os.lstat(folder / name)
            return [name]
        names = (each for each in os.listdir(folder) if composed(each) == wanted)
        return sorted(names, key=lambda each: (each != name, each != wanted, each))
    except OSError:
        return []


def is_memory_path(path: str) -> bool:
    """True if a path, relative to the workspace, is one that `scan_memories` would list."""
    if not path.startswith(MEMORY_FOLDER + "/"):
        return path in EVERGREEN
    if not path.lower().endswith(_ENDING) or any(part in path for part in ("//", "/.")):
        return False
    return not name_fault(path)


def session_path(session_id: str) -> str:
    """Path of a session's log, relative to the workspace."""
    return f"{SESSIONS_FOLDER}/{session_id}.jsonl"


def is_session_path(path: str) -> bool:
    """True if a path, relative to the workspace, is that of a session log."""
    folder, _, name = path.partition("/")
    return folder == SESSIONS_FOLDER and _LOG_NAME.fullmatch(name) is not None


def read(root: Path, file: SourceFile, *, max_bytes: int, place: Path | None = None) -> Content:
    """Read one file. A failure is part of the result, not an exception.

    Args:
        root: The workspace folder.
        file: The file as scanned.
        max_bytes: A larger one is not read.
        place: Its absolute path, if not below the workspace folder.
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


def read_writing(root: Path, *, sessions: bool = True) -> Writing:
    """The languages of a workspace's memories and conversations, from a sample; none where there is no such folder.

    The same files give the same answer in every process, and a file is read again only when it has changed. What tools
    printed does not count, nor do the folders beside the workspace, which may be full of code, nor what cannot be read.

    Args:
        root: The workspace folder.
        sessions: Whether its conversations count.
    """
    try:
        files = list(scan_workspace(root, sessions=sessions).files.values())
    except SourceMissing:
        files = []
    # Some of many, the same ones each time, whatever is added beside them.
    files.sort(key=lambda file: hashlib.blake2b(file.path.encode("utf-8", "surrogateescape")).digest())
    parts = min(_SAMPLED_FILES, len(files))
    return writing_of(share for file in files[:parts] for share in _languages_in(root, file, parts))


@lru_cache(_REMEMBERED_FILES)
def _languages_in(root: Path, file: SourceFile, parts: int) -> tuple[tuple[str, float], ...]:
    """Languages of a file as it is now, each with the number of passages in it, from its part of the whole sample."""
    try:
        with open(root / file.path, "rb", opener=_no_follow) as stream:
            if file.source == "sessions":
                # The newest of a conversation.
                pieces = [_lines_at(stream, file, max(0, file.size_bytes - _SAMPLED_LOG_BYTES), _SAMPLED_LOG_BYTES)]
            else:
                pieces = _spread_lines(stream, file, _SAMPLED_BYTES // parts)
        passages = [passage for piece in pieces for passage in _sampled_passages(file, piece)]
    except Exception:  # of readers of any content; why a file cannot be read is said where it is indexed
        return ()
    looked_at = passages[:: max(1, len(passages) * parts // _SAMPLED_PASSAGES)]
    share = sum(map(len, pieces)) / max(1, file.size_bytes)
    standing_for = len(passages) / max(1, len(looked_at)) / max(share, 1e-9)
    found = Counter(language_of(passage.text) for passage in looked_at)
    return tuple((language, number * standing_for) for language, number in found.items())


def _spread_lines(stream: BinaryIO, file: SourceFile, most: int) -> list[bytes]:
    """Lines of a file: all, or so many bytes of its beginning, its middle and its end."""
    if file.size_bytes <= most:
        return [stream.read(most)]
    piece = most // 3
    last = file.size_bytes - piece
    return [_lines_at(stream, file, start, piece) for start in (0, last // 2, last)]


def _lines_at(stream: BinaryIO, file: SourceFile, start: int, most: int) -> bytes:
    """Whole lines of a file from a byte on."""
    stream.seek(start)
    raw = stream.read(most)
    if start:
        raw = raw.partition(b"\n")[2]
    return raw if start + most >= file.size_bytes else raw[: raw.rfind(b"\n") + 1]


def _sampled_passages(file: SourceFile, raw: bytes) -> list[Passage]:
    # Late: what lists files needs no reader of them.
    from indexer.documents.incremental import Splitter
    from indexer.documents.transcripts import split_transcript

    if file.source == "sessions":
        return [passage for passage in split_transcript(raw) if passage.role not in ("tool", "pasted")]
    return Splitter().split(raw.decode("utf-8", "replace"), file.path)


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


def _look_at_evergreen(root: Path, look: FolderScan) -> None:
    for name in EVERGREEN:
        try:
            stat = os.lstat(root / name)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise SourceMissing(
                f"The workspace folder {root.name} cannot be read ({error.strerror}). Check its permissions."
            ) from error
        if S_ISREG(stat.st_mode):
            look.files[name] = source_file(name, stat)


def _is_own(root: Path, name: str, look: FolderScan) -> bool:
    if (root / name).is_symlink():
        look.fail(name, "it is a symbolic link; put the folder itself there")
        return False
    return True


def _look_at_memories(root: str, look: FolderScan) -> None:
    waiting = [MEMORY_FOLDER]
    while waiting:
        folder = waiting.pop()
        with _told(folder, look), open_folder(f"{root}/{folder}") as entries:
            for path, entry in look.others(f"{folder}/", entries):
                if entry.is_file(follow_symlinks=False):
                    if path.lower().endswith(_ENDING) and look.fits(path):
                        look.take(path, "memory", entry)
                elif entry.is_dir(follow_symlinks=False) and look.fits(path):
                    waiting.append(path)


def _look_at_logs(root: str, look: FolderScan) -> None:
    """Session logs, directly in their folder; other files beside them (blobs, locks, backups) have other names."""
    with _told(SESSIONS_FOLDER, look), open_folder(f"{root}/{SESSIONS_FOLDER}") as entries:
        for path, entry in look.others(f"{SESSIONS_FOLDER}/", entries):
            if is_session_path(path) and entry.is_file(follow_symlinks=False):
                look.take(path, "sessions", entry)


@contextmanager
def _told(folder: str, look: FolderScan) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        pass  # a folder that is not there, or went meanwhile, has nothing in it
    except OSError as error:
        look.fail(folder, f"it cannot be listed ({error.strerror}); check its permissions")


@contextmanager
def open_folder(folder: str) -> Iterator[Iterator[os.DirEntry[str]]]:
    """Entries of a folder, in no order; a link that took its place meanwhile is refused.

    It is opened by its descriptor where possible: the system need not resolve the path from the root for each file
    then, which is a sixth of a walk.
    """
    if os.scandir not in os.supports_fd:
        with os.scandir(folder) as entries:
            yield entries
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        with os.scandir(descriptor) as entries:
            yield entries
    finally:
        os.close(descriptor)


def _source_of(path: str) -> Source:
    """Source kind of a path: memory, session or extra file."""
    if path.startswith(EXTRA_MARK):
        return "files"
    return "sessions" if is_session_path(path) else "memory"


def source_file(path: str, stat: os.stat_result) -> SourceFile:
    """A file from its stat."""
    return _file(path, _source_of(path), stat)


def _file(path: str, source: Source, stat: os.stat_result) -> SourceFile:
    mtime_ns = max(-_MOST, min(stat.st_mtime_ns, _MOST))
    return SourceFile(path, source, stat.st_size, mtime_ns, stat.st_ctime_ns, stat.st_ino & _MOST)
