"""How bytes reach the disk and come back: locked, durable, whole or not at all.

Invariants: what was acknowledged is on the disk, with its directory entry; an append that fails leaves the
file as it was; a replaced file is the old one or the new one, never half of each; no symbolic link is
followed; every `OSError` leaves as an error of `memory_service.errors` that says what to do.
"""

from __future__ import annotations

import datetime as dt
import errno
import os
import re
import secrets
import shutil
import stat
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from indexer import sync_file
from indexer.common import lazy_regex
from memory_service.errors import InvalidName, NotFound, StorageFailed, TooLarge

if TYPE_CHECKING:
    from filelock import FileLock

Signature = tuple[int, int, int, int]

# Whatever a home has is for the user that runs the service alone; whatever the process allows may only be less.
FILE_MODE, FOLDER_MODE = 0o600, 0o700
MAX_READ_BYTES = 64 * 1024 * 1024
_BINARY = getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)
_PIECE_BYTES = 1 << 20
# As the index packs the stat of a file: the largest number of a database.
_MOST = (1 << 63) - 1
_FIRST_SECOND, _LAST_SECOND = (dt.datetime(*day, tzinfo=dt.UTC).timestamp() for day in ((1, 1, 1), (9999, 12, 31)))
_LOCK_SECONDS = 30.0
# Less is no room for a page and an index of it.
_LEAST_FREE_BYTES = 1 << 20
# Another process asks for the lock this often; the default of filelock, 50 ms, is many appends long.
_POLL_SECONDS = 0.002
_DRAFT = lazy_regex(r"\.(?:(.+)\.)?[0-9a-f]{16}\.tmp", re.DOTALL)
# Longer than anybody writes a small file.
_DRAFT_SECONDS = 60.0
# With what stands around it, the name of a draft has less than the 255 bytes that a name may have.
_DRAFT_BYTES = 200
NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
_REMEDIES = {
    errno.ENOSPC: "the disk is full. Free some space, then send it again",
    errno.EDQUOT: "the disk quota is used up. Free some space, then send it again",
    errno.EFBIG: "the file would be larger than the system allows. Split it, or raise the limit",
    errno.EROFS: "the file system is read-only. Mount it writable, or choose another home",
    errno.EACCES: "permission was denied. Give the user that runs the service access to the file and its folder",
    errno.EPERM: "it is not permitted. Give the user that runs the service access to the file and its folder",
    errno.EMFILE: "too many files are open. Raise the limit of open files",
    errno.ENAMETOOLONG: "the file system does not allow so long a path. Choose a shorter one",
}


@contextmanager
def storage_errors(path: str) -> Iterator[None]:
    """Turns what the operating system says about `path` into an error of the service."""
    try:
        yield
    except FileNotFoundError as error:
        raise NotFound(f"There is no file {path}. List the files of the workspace to see what is there.") from error
    except (NotADirectoryError, IsADirectoryError) as error:
        raise InvalidName(f"The path {path} takes a file for a folder, or the reverse. Choose another one.") from error
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise InvalidName(f"The path {path} is a symbolic link. Put the file itself there.") from error
        reason = _REMEDIES.get(error.errno or 0, f"{error.strerror or error}. Check the disk and the folder")
        raise StorageFailed(f"{path} could not be read or written: {reason}.") from error


def signature(status: os.stat_result) -> Signature:
    """The numbers that tell one state of a file from another without reading it."""
    mtime_ns = max(-_MOST, min(status.st_mtime_ns, _MOST))
    return status.st_size, mtime_ns, status.st_ino & _MOST, status.st_ctime_ns


def modified_at(status: os.stat_result) -> dt.datetime:
    """Time of a file's last change."""
    return moment(status.st_mtime)


def moment(seconds: float) -> dt.datetime:
    """A time of a file; the nearest that a date has for one that lies before the year 1 or after 9999."""
    return dt.datetime.fromtimestamp(max(_FIRST_SECOND, min(seconds, _LAST_SECOND)), dt.UTC)


def current_signature(target: Path | str) -> Signature | None:
    """The signature of the file that is there now; None if there is none."""
    try:
        return signature(os.lstat(target))
    except FileNotFoundError:
        return None


class WriteLock:
    """Lets one writer at a time into a folder, among the threads of this process and all processes.

    Args:
        path: The lock file; it is made when it is needed, and stays.
        timeout_seconds: How long to wait for the others.
    """

    def __init__(self, path: Path, *, timeout_seconds: float = _LOCK_SECONDS) -> None:
        self._path = path
        self._timeout = timeout_seconds
        self._threads = threading.Lock()
        self._processes: FileLock | None = None

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Waits for the lock; makes its folder if need be.

        Raises:
            StorageFailed: Others kept the lock too long.
        """
        if not self._threads.acquire(timeout=self._timeout):
            raise self._busy()
        try:
            processes = self._acquire()
            try:
                yield
            finally:
                processes.release()
        finally:
            self._threads.release()

    def _acquire(self) -> FileLock:
        # To import it takes longer than all else here, and a hook that only leaves a file has no need of it.
        from filelock import FileLock, Timeout

        folder = self._path.parent
        lock = self._processes = self._processes or FileLock(self._path, thread_local=False, mode=FILE_MODE)
        with storage_errors(f"A write needs the lock folder {folder.parent.name}/{folder.name}, which"):
            if folder.is_symlink():
                raise InvalidName(f"The folder {folder.name} is a symbolic link. Remove it; a new one is made.")
            make_folder(folder)
            try:
                lock.acquire(timeout=self._timeout, poll_interval=_POLL_SECONDS)
            except Timeout as error:
                raise self._busy() from error
        return lock

    def _busy(self) -> StorageFailed:
        return StorageFailed(
            f"The write lock {self._path.name} was not free within {self._timeout:g} seconds. "
            "Try again; if it stays so, stop the process that holds it."
        )


def is_at(target: Path, descriptor: int) -> bool:
    """True if an open file is the one at a path: an editor that saves by renaming puts another one there."""
    try:
        return os.path.samestat(os.lstat(target), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def drop_empty(target: Path, descriptor: int) -> None:
    """Removes an open file that has nothing in it, if it still is the one at its path."""
    if not os.fstat(descriptor).st_size and is_at(target, descriptor):
        target.unlink(missing_ok=True)


def write_fault(folder: Path) -> str:
    """Why nothing can be written into a folder, or where it would be made; empty if it can. Writes nothing."""
    place = folder.absolute()
    try:
        while not place.exists():
            place = place.parent
        if not place.is_dir():
            return "it is not a folder"
        if not os.access(place, os.W_OK | os.X_OK):
            is_read_only = hasattr(os, "statvfs") and os.statvfs(place).f_flag & os.ST_RDONLY
            return "its file system is read-only" if is_read_only else "it cannot be written"
        return "the disk is full" if shutil.disk_usage(place).free < _LEAST_FREE_BYTES else ""
    except OSError as error:
        return f"it cannot be used ({error.strerror})"


def make_folder(folder: Path, *, mode: int = FOLDER_MODE) -> None:
    """Creates a folder and those above it, so that they outlive a power cut."""
    if folder.is_dir():
        return
    make_folder(folder.parent, mode=mode)
    with suppress(FileExistsError):
        folder.mkdir(mode=mode)
    sync_folder(folder.parent)


def sync_folder(folder: Path) -> None:
    """Makes the names in a folder durable, where the system knows such a thing."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        sync_file(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def open_no_follow(target: Path, flags: int = os.O_RDONLY, *, mode: int = FILE_MODE) -> Iterator[int]:
    """The descriptor of a file that is opened without following a link; `mode` is that of one that is made."""
    descriptor = os.open(target, flags | _BINARY, mode)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def check_size(descriptor: int, path: str) -> None:
    """Refuses an open file that memory may have no room for.

    Raises:
        TooLarge: It has more than `MAX_READ_BYTES`.
    """
    size = os.fstat(descriptor).st_size
    if size > MAX_READ_BYTES:
        raise TooLarge(f"The file {path} has {size:,} bytes, and {MAX_READ_BYTES:,} can be read. Split it.")


def read_signed(target: Path, path: str) -> tuple[bytes, Signature]:
    """All of a file, whose name for messages is `path`, and its state when it was read."""
    with open_no_follow(target) as descriptor:
        check_size(descriptor, path)
        seen_signature = signature(os.fstat(descriptor))
        return read_all(descriptor), seen_signature


def read_all(descriptor: int) -> bytes:
    """The whole content of an open file."""
    os.lseek(descriptor, 0, os.SEEK_SET)
    with open(descriptor, "rb", closefd=False) as stream:
        return stream.read()


def pieces(descriptor: int, start: int = 0) -> Iterator[bytes]:
    """The content of an open file from a byte on, in pieces that fit into memory; one such reader at a time."""
    with open(descriptor, "rb", closefd=False) as stream:
        stream.seek(start)
        while piece := stream.read(_PIECE_BYTES):
            yield piece


def whole_lines(descriptor: int) -> Iterator[bytes]:
    """The lines of an open file, with the LF that ends each; what stands behind the last LF is none."""
    with open(descriptor, "rb", closefd=False) as stream:
        stream.seek(0)
        yield from (line for line in stream if line.endswith(b"\n"))


def append_durably(descriptor: int, raw: bytes) -> None:
    """Appends all of `raw` and waits for the disk; if that fails, the file is as it was before."""
    before = os.fstat(descriptor).st_size
    try:
        _write_all(descriptor, raw)
        sync_file(descriptor)
    except BaseException:
        with suppress(OSError):
            truncate_durably(descriptor, before)
        raise


def truncate_durably(descriptor: int, size: int) -> None:
    """Cuts an open file to `size` bytes and waits for the disk."""
    os.ftruncate(descriptor, size)
    sync_file(descriptor)


def replace_durably(
    target: Path,
    raw: bytes | Iterable[bytes],
    *,
    expected: Signature | None,
    mode: int = FILE_MODE,
    drafts: Path | None = None,
) -> bool:
    """Puts `raw` in the place of a file, in one step.

    Args:
        target: The file; its folder exists.
        raw: The new content, whole or in pieces.
        expected: The signature of the content that `raw` was made from; None if there was no file.
        mode: Mode of a new file; one that is there keeps its own.
        drafts: Folder of the same disk in which it is written; that of the file unless given. For a file that no lock
            guards it is one in which nobody sweeps the drafts of others.

    Returns:
        Whether it was done. If somebody else changed the file meanwhile, theirs stays.

    Raises:
        StorageFailed: The new content stands there, but the disk did not confirm it.
    """
    draft = _draft_of(drafts / target.name if drafts else target)
    try:
        with open_no_follow(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode=mode) as descriptor:
            if expected is not None:
                _copy_rights(target, draft)
            for piece in (raw,) if isinstance(raw, bytes) else raw:
                _write_all(descriptor, piece)
            sync_file(descriptor)
        if current_signature(target) != expected:
            draft.unlink()
            return False
        os.replace(draft, target)
    except BaseException:
        with suppress(OSError):
            draft.unlink()
        raise
    _confirm(target, "has its new content")
    return True


def replace_undurably(target: Path, raw: bytes) -> None:
    """Puts `raw` in the place of a file, in one step, without waiting for the disk: a power cut may lose it."""
    draft = _draft_of(target)
    try:
        with open_no_follow(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL) as descriptor:
            _write_all(descriptor, raw)
        os.replace(draft, target)
    except BaseException:
        with suppress(OSError):
            draft.unlink()
        raise


def overwrite_durably(target: Path, versions: Iterable[bytes], *, expected: Signature) -> bool:
    """Changes a file where it stands, which takes no room on the disk.

    Args:
        target: The file.
        versions: Its content, and what follows it, step by step, each of as many bytes. A process that is killed leaves
            one of them, or the bytes that differ between two half written.
        expected: The signature of the content.

    Returns:
        Whether it was done. If somebody else changed the file meanwhile, theirs stays.
    """
    with open_no_follow(target, os.O_RDWR) as descriptor:
        if signature(os.fstat(descriptor)) != expected:
            return False
        for before, after in pairwise(versions):
            differing = [at for at, (old, new) in enumerate(zip(before, after, strict=True)) if old != new]
            if differing:
                start, end = differing[0], differing[-1] + 1
                os.lseek(descriptor, start, os.SEEK_SET)
                _write_all(descriptor, after[start:end])
                sync_file(descriptor)
        return is_at(target, descriptor)


def _draft_of(target: Path) -> Path:
    """Where the next content of a file is written: it tells whose it is, however long that name is."""
    name = target.name.encode()[:_DRAFT_BYTES].decode(errors="ignore")
    return target.parent / f".{name}.{secrets.token_hex(8)}.tmp"


def draft_files(folder: Path, *, of: str = "") -> list[Path]:
    """Temporary files that crashed writers left in a folder, by the beginning of their names.

    Who holds the lock of the file may remove it.
    """
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry in entries if entry.is_file(follow_symlinks=False)]
    except (FileNotFoundError, NotADirectoryError):
        return []
    pairs = [(name, match) for name in names if (match := _DRAFT.fullmatch(name))]
    return [folder / name for name, match in pairs if (match[1] or of).startswith(of)]


def sweep(folders: Iterable[Path], *, of: str = "") -> None:
    """Removes such drafts from some folders; their lock is held."""
    for folder in folders:
        for draft in draft_files(folder, of=of):
            draft.unlink(missing_ok=True)


def sweep_old(folders: Iterable[Path]) -> None:
    """Removes drafts that no lock guards, once whoever wrote them must be gone."""
    for draft in (draft for folder in folders for draft in draft_files(folder)):
        with suppress(OSError):
            if time.time() - draft.stat().st_mtime > _DRAFT_SECONDS:
                draft.unlink()


def remove_durably(target: Path) -> None:
    """Removes a file for good.

    Raises:
        StorageFailed: It is gone, but the disk did not confirm it.
    """
    target.unlink()
    _confirm(target, "is gone")


def _confirm(target: Path, state: str) -> None:
    """Makes what was done to a name durable; that it was done is true even if this fails."""
    try:
        sync_folder(target.parent)
    except OSError as error:
        raise StorageFailed(
            f"{target.name} {state}, but the disk did not confirm it ({error.strerror}): a power cut may undo that. "
            "Check the disk, then look at the file."
        ) from error


def contains_word(descriptor: int, word: bytes) -> bool:
    """True if a word stands in an open file, whose size does not matter."""
    os.lseek(descriptor, 0, os.SEEK_SET)
    before = b""
    while piece := os.read(descriptor, _PIECE_BYTES):
        if word in (seen_raw := before + piece):
            return True
        before = seen_raw[max(0, len(seen_raw) - len(word) + 1) :]
    return False


def _write_all(descriptor: int, raw: bytes) -> None:
    rest = memoryview(raw)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _copy_rights(source: Path, target: Path) -> None:
    """Gives a new file the mode of the old one and, where that is allowed, its owner."""
    status = os.lstat(source)
    if hasattr(os, "chown"):
        with suppress(PermissionError):
            os.chown(target, status.st_uid, status.st_gid)
    os.chmod(target, stat.S_IMODE(status.st_mode))
