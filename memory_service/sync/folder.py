"""A person's folder of memory files: looked at, read, replaced, and never changed while somebody else changes it.

Invariants: no link is followed; a file is replaced or removed only if it still is what was looked at, and in one step;
what cannot be synced is named, and nothing is done to it; only memory files are touched, and the folder's own notes.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from indexer import EVERGREEN, MEMORY_FOLDER, to_nfc
from memory_service.errors import InvalidName, InvalidRequest, MemoryServiceError, NotFound, TooLarge
from memory_service.home import shown_name
from memory_service.memories.file_text import etag_of, not_utf8
from memory_service.memories.workspaces import memory_path
from memory_service.storage.files.disk import storage_errors
from memory_service.storage.files.document_files import FileDocuments
from memory_service.storage.revisions import Revision
from memory_service.sync.steps import FileTrouble

NOTES_FOLDER = ".memory-sync"
_CONFLICT = re.compile(r"(?P<stem>.*)\.conflict(?:-[0-9]+)?(?P<ending>\.md)", re.IGNORECASE | re.DOTALL)
_MOST_CONFLICTS = 1_000
# Characters that names on Windows cannot have, or that mean something else there.
_NOT_ON_WINDOWS = re.compile(r'[<>:"|?*]|[. ](?:/|$)')


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderFile:
    """A file as it was looked at.

    Attributes:
        path: Its path within the folder, as the disk spells it.
        text: Its text.
        digest: Digest of the text, by which it is compared.
        revision: What tells this state of the file from another.
    """

    path: str
    text: str
    digest: str
    revision: Revision


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderScan:
    """The files of a folder by their paths in NFC, what is left out, and copies of conflicts that still lie there."""

    files: dict[str, FolderFile] = field(default_factory=dict)
    left_out: list[FileTrouble] = field(default_factory=list)
    conflicts: list[str] = field(default_factory=list)
    _blocked: set[str] = field(default_factory=set)

    def leave_out(self, path: str, reason: str, *, is_failure: bool = False) -> None:
        """Name a file or folder that is not synced."""
        self.left_out.append(FileTrouble(path=path, reason=reason, is_failure=is_failure))
        self._blocked.add(to_nfc(path))

    def blocks(self, key: str) -> bool:
        """True if a path stands for, or below, what was left out: it only seems to be missing."""
        parts = key.split("/")
        return any("/".join(parts[:count]) in self._blocked for count in range(1, len(parts) + 1))


def text_digest(text: str) -> str:
    """The digest of a text, which is that of its bytes as a file."""
    return etag_of(text.encode())


def is_conflict_copy(path: str) -> bool:
    """True for the path of a copy that a conflict left, which is not synced."""
    return _CONFLICT.fullmatch(path) is not None


class SyncFolder:
    """The folder.

    Args:
        root: Where it is; it is there.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._documents = FileDocuments(root)

    @property
    def folds_case(self) -> bool:
        """True if the disk takes names that differ in case alone for one."""
        return os.path.lexists(self.root / NOTES_FOLDER.upper())

    def scan(self) -> FolderScan:
        """Read all files.

        Raises:
            StorageFailed: The folder cannot be listed.
            NotFound: It is gone.
        """
        scan = FolderScan()
        with storage_errors(str(self.root)):
            names = sorted(os.listdir(self.root))
        for name in names:
            if name in EVERGREEN:
                self._take(name, scan)
            elif name == MEMORY_FOLDER:
                self._take_folder(name, scan)
            elif name.lower().endswith(".md") and not name.startswith(".") and not is_conflict_copy(name):
                reason = f"{shown_name(name)} is no memory file. Move it below memory/ to have it synced."
                scan.leave_out(name, reason)
            elif is_conflict_copy(name):
                scan.conflicts.append(name)
        return scan

    def _take_folder(self, folder: str, scan: FolderScan) -> None:
        place = self.root / folder
        if place.is_symlink() or not place.is_dir():
            kind = "a symbolic link" if place.is_symlink() else "no folder"
            reason = f"The folder {folder} is {kind}. Put the folder itself there."
            scan.leave_out(folder, reason)
            return
        try:
            entries = sorted(os.listdir(place))
        except OSError as error:
            reason = f"The folder {shown_name(folder)} cannot be listed ({error.strerror}). Check its permissions."
            scan.leave_out(folder, reason, is_failure=True)
            return
        for name in entries:
            path = f"{folder}/{name}"
            if name.startswith("."):
                continue
            if (self.root / path).is_dir() and not (self.root / path).is_symlink():
                self._take_folder(path, scan)
            elif is_conflict_copy(path):
                scan.conflicts.append(path)
            else:
                self._take(path, scan)

    def _take(self, path: str, scan: FolderScan) -> None:
        key = to_nfc(path)
        try:
            file = self.read(path)
        except MemoryServiceError as error:
            scan.leave_out(path, str(error), is_failure=not isinstance(error, InvalidName))
            return
        if file is None:
            return
        if other_file := scan.files.pop(key, None):
            reason = (
                f"{other_file.path} stands here under two names that differ in their Unicode form. Rename one of them."
            )
            scan.leave_out(path, reason, is_failure=True)
        elif not scan.blocks(key):
            scan.files[key] = file

    def read(self, path: str) -> FolderFile | None:
        """A file as it is now; None if there is none.

        Raises:
            InvalidName: It is a link, no regular file, or has a name that no memory file has.
            InvalidRequest: Its text cannot be stored on the server.
            StorageFailed: It cannot be read.
        """
        try:
            raw, revision = self._documents.read(memory_path(path))
        except NotFound:
            return None
        if b"\0" in raw:
            line = raw[: raw.index(b"\0")].count(b"\n") + 1
            raise InvalidRequest(f"The file {path} has a NUL in line {line}. Take it out, then sync again.")
        try:
            text = raw.decode()
        except UnicodeDecodeError:
            raise not_utf8(path, raw) from None
        return FolderFile(path=path, text=text, digest=etag_of(raw), revision=revision)

    def fault_of(self, path: str) -> str:
        """Why a file of the server cannot lie here; empty if it can."""
        try:
            memory_path(path)
        except InvalidName as error:
            return str(error)
        if os.name == "nt" and _NOT_ON_WINDOWS.search(path):
            return f"Windows allows no file {shown_name(path)}. Rename it on the server."
        return ""

    def replace(self, path: str, text: str, *, file: FolderFile | None) -> bool:
        """Put a text in the place of a file, on disk when this returns.

        Args:
            path: The file.
            text: Its new text.
            file: The file as it was looked at; None if there was none.

        Returns:
            Whether it was done: a file that has changed since stays as it is.
        """
        return self._documents.replace(path, text.encode(), expected=file.revision if file else None)

    def remove(self, file: FolderFile) -> bool:
        """Remove a file; gives whether it was done: one that has changed since stays as it is."""
        return self._documents.remove(file.path, expected=file.revision)

    def put_aside(self, file: FolderFile) -> str:
        """Copy a file beside itself under the name of a conflict, on disk when this returns.

        Returns:
            The path of the copy; of one that is there already and says the same, if there is one.

        Raises:
            TooLarge: There are too many such copies.
        """
        stem, ending = os.path.splitext(file.path)
        raw = file.text.encode()
        for number in range(1, _MOST_CONFLICTS):
            path = f"{stem}.conflict{f'-{number}' if number > 1 else ''}{ending}"
            with suppress(InvalidName):
                if self._documents.replace(path, raw, expected=None) or self._documents.read(path).raw == raw:
                    return path
        raise TooLarge(f"There are {_MOST_CONFLICTS:,} copies of conflicts beside {file.path}. Look through them.")

    def sweep(self) -> None:
        """Remove drafts that a killed run left."""
        self._documents.sweep()
