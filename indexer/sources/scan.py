"""Scan of a workspace for files, and the reading of a file: stat first, content only when that has changed.

Invariants: nothing outside the workspace is ever listed or read, so symbolic links are left out; a file that cannot be
read is named with the reason, never taken for deleted; the content of a file is one state of it, never a mixture.

macOS and some tools that synchronise folders write "é" as two characters, keyboards and models as one. Both are one
name here, given back as the disk has it; where a disk has a file of each spelling, an exact name means its own file.
"""

from __future__ import annotations

import os
import time
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from struct import Struct
from struct import error as StructError

from indexer.common.patterns import lazy_regex
from indexer.errors import SourceMissing
from indexer.sources.base import Content, Scan, SourceFile, content_of, failed_read, with_folders
from indexer.stores.base import FileState, Version
from indexer.types import EVERGREEN, EXTRA_MARK, FileFailure, SourceKind, to_nfc

MEMORY_FOLDER = "memory"
SESSIONS_FOLDER = "sessions"
_ENDING = ".md"
_CONTROLS = frozenset({"Cc", "Zl", "Zp"})
_LOG_NAME = lazy_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}\.jsonl")
# The largest number of a database. The inodes of some file systems, overlays above all, have one bit more, and a file's
# time of change may lie behind the year 2262, or before 1677.
_MOST = (1 << 63) - 1
_READ_ATTEMPTS = 3
# The version of a file: its size in bytes, times of change (mtime and ctime, ns) and inode, in 32 bytes. One value, for
# a look compares those of all files: with a tuple it takes a tenth longer, and so does reading them.
_STAT = Struct("<qqqQ")
packed_stat, unpack_stat = _STAT.pack, _STAT.unpack
# A change that comes within the grain of the file system's clock leaves the stat as it was.
_GRAIN_NS = 50_000_000
_COARSE_GRAIN_NS = 2_000_000_000


@dataclass(slots=True)
class FolderScan:
    """A scan while it goes on.

    Attributes:
        known: Known versions by path, see `FileState.known_version`. An unchanged file is taken out; the rest in the
            end has changed or is missing.
        files: The other files, by path.
    """

    known: dict[str, Version] = field(default_factory=dict)
    files: dict[str, SourceFile] = field(default_factory=dict)
    failures: list[FileFailure] = field(default_factory=list)
    _misnamed: list[FileFailure] = field(init=False, default_factory=list)
    _known_before: int = field(init=False)

    def __post_init__(self) -> None:
        self._known_before = len(self.known)

    def new_entries(self, prefix: str, entries: Iterable[os.DirEntry[str]]) -> Iterator[tuple[str, os.DirEntry[str]]]:
        """New and changed entries of a folder, with their paths; hidden ones are left out.

        Raises:
            OSError: The stat of one of them cannot be read.
        """
        versions = self.known
        # Nearly all of a sync that finds nothing to do is in here, once for each file: no value is made of one.
        for entry in entries:
            name = entry.name
            if name[0] == ".":
                continue
            path = prefix + name
            if was := versions.get(path):
                try:
                    stat = entry.stat(follow_symlinks=False)
                    # The same stat is that of the same inode, which never becomes a link or a folder.
                    if was == packed_stat(stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino):
                        del versions[path]
                        continue
                except FileNotFoundError:
                    continue
                except StructError:
                    pass  # its time of change is none that was ever stored
            yield path, entry

    def take(self, path: str, source: SourceKind, entry: os.DirEntry[str]) -> None:
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
            shown_text = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in path)
            self._misnamed.append(FileFailure(path=shown_text, reason=f"its name {fault}; rename it"))
        return not fault

    def scan(self) -> Scan:
        """The result."""
        return Scan(
            files=self.files,
            failures=tuple(self.failures),
            misnamed=tuple(self._misnamed),
            unchanged=self._known_before - len(self.known),
        )


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


def scan_workspace(root: Path, *, sessions: bool = True, versions: dict[str, Version] | None = None) -> Scan:
    """Scan for all indexed files: memory files, and the session logs directly in sessions/.

    A folder that was never there is empty; one that held files and is gone may be a disk that is not mounted.

    Args:
        root: The workspace folder.
        sessions: Scan for session logs too.
        versions: Known versions, see `FolderScan`.

    Raises:
        SourceMissing: The workspace folder held files and is not there, or cannot be listed.
    """
    if versions:
        require_folder(root)
    look = FolderScan(known={} if versions is None else versions)
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
    return replace(look.scan(), whole=False)


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
            return f"{above}/{to_nfc('/'.join(parts[count:]))}"
    return to_nfc(path)


def _spellings(folder: Path, above: str, parts: Sequence[str]) -> Iterator[str]:
    """The paths below a folder that spell some parts, the exact one first."""
    for name in _names_like(folder / above, parts[0]):
        if len(parts) == 1:
            yield above + name
        else:
            yield from _spellings(folder, f"{above}{name}/", parts[1:])


def _names_like(folder: Path, name: str) -> list[str]:
    """The names in a folder that are a name in any form: the exact one first, then the composed one."""
    wanted_text = to_nfc(name)
    try:
        if not S_ISDIR(os.lstat(folder).st_mode):
            return []
        if wanted_text == name == unicodedata.normalize("NFD", name):
            os.lstat(folder / name)
            return [name]
        names = (text for text in os.listdir(folder) if to_nfc(text) == wanted_text)
        return sorted(names, key=lambda text: (text != name, text != wanted_text, text))
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
        return failed_read(file, f"it has {file.size_bytes:,} bytes, more than the limit of {max_bytes:,}; split it")
    try:
        content = _read_settled(place or root / file.path, file)
    except FileNotFoundError:
        return failed_read(file, "it vanished while it was read; the next reindex looks again")
    except OSError as error:
        return failed_read(file, f"it cannot be read ({error.strerror}); check its permissions")
    if content is None:
        return failed_read(file, "it changes while it is read; the next reindex looks again")
    return content


def _read_settled(absolute: Path, file: SourceFile) -> Content | None:
    for attempt in range(_READ_ATTEMPTS):
        if attempt:
            time.sleep(0.02 * attempt)
        checked_ns = time.time_ns()
        with open(absolute, "rb", opener=no_follow) as stream:
            before = source_file(file.path, os.fstat(stream.fileno()))
            raw = stream.read()
        if source_file(file.path, os.lstat(absolute)) == before and len(raw) == before.size_bytes:
            return content_of(before, raw, checked_ns)
    return None


def no_follow(path: str, flags: int) -> int:
    """Open a file, and no symbolic link; an opener for `open`."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0))


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
        with _noting_errors(folder, look), open_folder(f"{root}/{folder}") as entries:
            for path, entry in look.new_entries(f"{folder}/", entries):
                if entry.is_file(follow_symlinks=False):
                    if path.lower().endswith(_ENDING) and look.fits(path):
                        look.take(path, "memory", entry)
                elif entry.is_dir(follow_symlinks=False) and look.fits(path):
                    waiting.append(path)


def _look_at_logs(root: str, look: FolderScan) -> None:
    """Session logs, directly in their folder; other files beside them (blobs, locks, backups) have other names."""
    with _noting_errors(SESSIONS_FOLDER, look), open_folder(f"{root}/{SESSIONS_FOLDER}") as entries:
        for path, entry in look.new_entries(f"{SESSIONS_FOLDER}/", entries):
            if is_session_path(path) and entry.is_file(follow_symlinks=False):
                look.take(path, "sessions", entry)


@contextmanager
def _noting_errors(folder: str, look: FolderScan) -> Iterator[None]:
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


def _source_of(path: str) -> SourceKind:
    """Source kind of a path: memory, session or extra file."""
    if path.startswith(EXTRA_MARK):
        return "files"
    return "sessions" if is_session_path(path) else "memory"


def source_file(path: str, stat: os.stat_result) -> SourceFile:
    """A file from its stat."""
    return _file(path, _source_of(path), stat)


def _file(path: str, source: SourceKind, stat: os.stat_result) -> SourceFile:
    mtime_ns = max(-_MOST, min(stat.st_mtime_ns, _MOST))
    version = packed_stat(stat.st_size, mtime_ns, stat.st_ctime_ns, stat.st_ino & _MOST)
    return SourceFile(path, source, stat.st_size, version)


def is_settled(state: FileState) -> bool:
    """True if a file was read so long after its last change that a later one would show in its stat."""
    if not state.checked_ns or len(state.version) != _STAT.size:
        return False
    times: tuple[int, int] = unpack_stat(state.version)[1:3]
    grain = _GRAIN_NS if times[0] % 1_000_000_000 else _COARSE_GRAIN_NS
    return state.checked_ns - max(times) > grain


def change_times(file: SourceFile) -> tuple[int, int]:
    """Times of the last change of a file's content, and of the file in any way, in ns."""
    _, mtime_ns, ctime_ns, _ = unpack_stat(file.version)
    return mtime_ns, ctime_ns


def inode_of(file: SourceFile) -> int:
    """Number that a file has on its disk: one that takes its place has another."""
    inode: int = unpack_stat(file.version)[3]
    return inode
