"""Memory files of a workspace on the disk.

Invariants: nothing outside the folder of the workspace is touched, and no link on the way is followed; one writer of
the service at a time, among threads and processes, while people edit the same files with any editor and lose nothing;
looking something up, or failing to, creates nothing.
"""

from __future__ import annotations

import datetime as dt
import os
import stat
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from struct import Struct

from indexer import MEMORY_FOLDER, SourceFile, SourceMissing, change_times, path_for_new, path_on_disk, scan_memories
from memory_service.errors import InvalidName, NotFound
from memory_service.home import shown_name
from memory_service.storage.documents import Document, DocumentVersion, ListedDocument, Listing
from memory_service.storage.files import disk
from memory_service.storage.files.disk import Signature, open_no_follow, storage_errors
from memory_service.storage.revisions import Revision

_LOCK = Path(".locks", "memory.lock")
_MAX_SEGMENT_BYTES = 255
# A file that was written twice within a tick of its file system's clock may look as if it was not.
_TICK_SECONDS = 2.0
# As a scan of the index packs the stat of a file.
_STAT = Struct("<qqqQ")
_EPOCH = dt.datetime.fromtimestamp(0, dt.UTC)


class FileDocuments:
    """The memory files in one folder; see `DocumentStore`.

    Args:
        folder: The folder of the workspace; the first write creates it.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = disk.WriteLock(folder / _LOCK)

    def scan(self) -> Listing:
        """All documents; none where there is no workspace yet."""
        with storage_errors("the workspace"):
            try:
                scan = scan_memories(self._folder)
            except SourceMissing:
                return Listing(documents={})
            now = time.time()
            # A folder of memories that is a link elsewhere has none of this workspace.
            failures = () if (self._folder / MEMORY_FOLDER).is_symlink() else scan.failures
        return Listing(
            documents={path: _list_entry(file, now) for path, file in scan.files.items()},
            failures=failures,
        )

    def spelling(self, path: str) -> str:
        """A path as the disk spells it; one of a new file is in NFC, below the folders that are there."""
        return path if path.isascii() else path_on_disk(self._folder, path) or path_for_new(self._folder, path)

    def revision(self, path: str) -> Revision | None:
        """The revision of the file that is there now."""
        try:
            # Asked of every passage in a prompt: joining `Path`s takes as long as all else.
            return _revision(disk.signature(os.lstat(os.path.join(self._folder, path))))
        except FileNotFoundError:
            self._place(path)
            return None
        except OSError as error:
            with storage_errors(path):
                raise error

    def read(self, path: str) -> Document:
        """One document."""
        with storage_errors(path):
            raw, signature = disk.read_signed(self._place(path), path)
        return Document(raw, _revision(signature))

    def pieces(self, path: str) -> Iterator[bytes]:
        """The content of a document of any size, piece by piece."""
        with storage_errors(path), open_no_follow(self._place(path)) as descriptor:
            yield from disk.pieces(descriptor)

    def containing(self, word: bytes, paths: Collection[str]) -> list[str]:
        """Those of some documents, of any size, that have a word."""
        return [path for path in paths if self._contains(path, word)]

    def replace(
        self,
        path: str,
        raw: bytes,
        *,
        expected: Revision | None,
        blanks: Callable[[], Iterable[bytes]] | None = None,
        erases: bool = False,
    ) -> bool:
        """Puts a content in the place of the one of a revision, in one step."""
        target, signature = self._place(path), _signature(expected)
        with storage_errors(path):
            disk.make_folder(target.parent)
            try:
                return disk.replace_durably(target, raw, expected=signature)
            except FileNotFoundError:
                if signature is None or disk.current_signature(target) is not None:
                    raise
                return False
            except OSError as error:
                if blanks is None or signature is None or error.errno not in disk.NO_ROOM:
                    raise
            return disk.overwrite_durably(target, blanks(), expected=signature)

    def append(self, path: str, raw: bytes, *, expected: Revision | None) -> Revision | None:
        """Appends to the content of a revision; with nothing to append, makes that content last."""
        target = self._place(path)
        create = os.O_CREAT | os.O_EXCL if expected is None else 0
        with storage_errors(path):
            disk.make_folder(target.parent)
            try:
                with open_no_follow(target, os.O_RDWR | os.O_APPEND | create) as descriptor:
                    return _append_to(descriptor, target, raw, expected)
            except (FileExistsError, FileNotFoundError):
                return None

    def remove(self, path: str, *, expected: Revision | None = None) -> bool:
        """Removes a document, or only one of a revision."""
        target = self._place(path)
        with storage_errors(path):
            if expected is not None and disk.current_signature(target) != _signature(expected):
                return False
            disk.remove_durably(target)
        return True

    def set_time(self, path: str, modified_at: dt.datetime) -> None:
        """Gives a file the time of its last change."""
        nanoseconds = (modified_at - _EPOCH) // dt.timedelta(microseconds=1) * 1_000
        with storage_errors(path):
            os.utime(self._place(path), ns=(nanoseconds, nanoseconds))

    @property
    def has_history(self) -> bool:
        """False: a folder has one state of each file."""
        return False

    def versions(self, path: str) -> Sequence[DocumentVersion]:
        """None."""
        return ()

    def version(self, path: str, version_id: str) -> bytes:
        """None is there."""
        raise NotFound(f"There is no version {version_id} of {path}: no history is kept of files in a folder. Use git.")

    def add_version(self, path: str, version: DocumentVersion, raw: bytes) -> None:
        """Nothing is kept."""

    def erase_versions(self, holds: Callable[[str, bytes], bool]) -> int:
        """None is there."""
        return 0

    def writing(self) -> AbstractContextManager[None]:
        """Keeps all other writers of the service out."""
        return self._lock.hold()

    def leftovers(self) -> Sequence[str]:
        """Names of the drafts of killed writers."""
        drafts = (draft for folder in self._folders() for draft in disk.draft_files(folder))
        return [draft.relative_to(self._folder).as_posix() for draft in drafts]

    def sweep(self) -> None:
        """Removes the drafts of killed writers."""
        with storage_errors("the workspace"):
            disk.sweep(self._folders())

    def _folders(self) -> Iterator[Path]:
        """The folders that memory files stand in."""
        yield self._folder
        for place, _, _ in os.walk(self._folder / MEMORY_FOLDER):
            yield Path(place)

    def _contains(self, path: str, word: bytes) -> bool:
        try:
            with storage_errors(path), open_no_follow(self._folder / path) as descriptor:
                return disk.contains_word(descriptor, word)
        except NotFound:
            return False

    def _place(self, path: str) -> Path:
        """The place of a document, which need not exist yet.

        Raises:
            InvalidName: The path would leave the folder, or a component that exists is a link or of the wrong kind.
            StorageFailed: A folder on the way cannot be searched.
        """
        at = self._folder
        segments = path.split("/")
        if any(not segment or segment.startswith(".") for segment in segments):
            raise InvalidName(f"The path {shown_name(path)} would leave the workspace. Choose another one.")
        if any(len(segment.encode()) > _MAX_SEGMENT_BYTES for segment in segments):
            raise InvalidName(
                f"The path {shown_name(path)} has a part of more than {_MAX_SEGMENT_BYTES} bytes. Choose a shorter one."
            )
        for number, segment in enumerate(segments, start=1):
            at = at / segment
            with storage_errors(path):
                try:
                    mode = os.lstat(at).st_mode
                except FileNotFoundError:
                    break
            _check_kind(path, mode, is_last=number == len(segments))
        return self._folder / path


def _check_kind(path: str, mode: int, *, is_last: bool) -> None:
    if stat.S_ISLNK(mode):
        raise InvalidName(f"The path {path} leads over a symbolic link. Put the file itself there.")
    if is_last and not stat.S_ISREG(mode):
        raise InvalidName(f"The path {path} is no regular file. Choose another one.")
    if not is_last and not stat.S_ISDIR(mode):
        raise InvalidName(f"The path {path} takes a file for a folder. Choose another one.")


def _append_to(descriptor: int, target: Path, raw: bytes, expected: Revision | None) -> Revision | None:
    before = os.fstat(descriptor)
    if expected is not None and _revision(disk.signature(before)) != expected:
        return None
    try:
        disk.append_durably(descriptor, raw)
        if not before.st_size:
            disk.sync_folder(target.parent)
    except BaseException:
        if expected is None:
            with suppress(OSError):
                os.ftruncate(descriptor, 0)
                disk.drop_empty(target, descriptor)
        raise
    after = os.fstat(descriptor)
    # An editor may have written into the file meanwhile, or put another one in its place.
    if after.st_size != before.st_size + len(raw) or disk.current_signature(target) != disk.signature(after):
        return None
    return _revision(disk.signature(after))


def _list_entry(file: SourceFile, now: float) -> ListedDocument:
    mtime_ns, ctime_ns = change_times(file)
    return ListedDocument(
        path=file.path,
        size_bytes=file.size_bytes,
        modified_at=disk.moment(mtime_ns / 1e9),
        revision=file.version,
        is_settled=now - max(mtime_ns, ctime_ns) / 1e9 > _TICK_SECONDS,
    )


def _revision(signature: Signature) -> Revision:
    size_bytes, mtime_ns, inode, ctime_ns = signature
    return _STAT.pack(size_bytes, mtime_ns, ctime_ns, inode)


def _signature(revision: Revision | None) -> Signature | None:
    if revision is None:
        return None
    size_bytes, mtime_ns, ctime_ns, inode = _STAT.unpack(revision)
    return size_bytes, mtime_ns, inode, ctime_ns
