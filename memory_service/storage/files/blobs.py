"""Content store beside the logs: media of messages in files of their own.

Invariants: a content is stored by its hash, and on the disk before anything names it; what is read is what was written,
or an error; nothing outside the folder is touched, and no symbolic link is followed.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from indexer.common import lazy_regex
from memory_service.errors import InvalidName, NotFound, StorageFailed
from memory_service.storage.files import disk
from memory_service.storage.files.disk import open_no_follow, storage_errors

_SHA256 = lazy_regex(r"[0-9a-f]{64}")


class Blobs:
    """The contents beside the logs of one folder.

    Args:
        folder: Where they are; the first one creates it.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, content: bytes) -> tuple[str, bool]:
        """Stores a content, unless it is there.

        Returns:
            Its SHA-256 in hexadecimal digits, and whether it was not there before.

        Raises:
            InvalidName: A symbolic link stands where it would go.
            StorageFailed: The disk did not take it.
        """
        sha256 = hashlib.sha256(content).hexdigest()
        target = self._place(sha256)
        with storage_errors(_blob_name(sha256)):
            try:
                is_new = self._read(target) != content
            except FileNotFoundError:
                is_new = True
            if is_new:
                disk.make_folder(target.parent)
                disk.replace_durably(target, content, expected=disk.current_signature(target))
            else:
                # Who stored it may have died before the disk had its name.
                disk.sync_folder(target.parent)
        return sha256, is_new

    def get(self, sha256: str) -> bytes:
        """A content.

        Raises:
            NotFound: It is not there.
            StorageFailed: It is damaged or cannot be read.
        """
        with storage_errors(_blob_name(sha256)):
            content = self._read(self._place(sha256))
        if hashlib.sha256(content).hexdigest() != sha256:
            raise StorageFailed(f"The file {_blob_name(sha256)} is damaged. Restore it from a backup.")
        return content

    def remove(self, sha256: str) -> None:
        """Removes a content for good, if it is there."""
        with storage_errors(_blob_name(sha256)):
            target = self._place(sha256)
            if target.exists():
                disk.remove_durably(target)

    def hashes(self) -> Iterator[str]:
        """The SHA-256 of every content."""
        for folder in self.folders():
            yield from sorted(file.name for file in folder.iterdir() if _SHA256.fullmatch(file.name))

    def folders(self) -> list[Path]:
        """Folders of the contents."""
        return [folder for folder in sorted(self._folder.glob("[0-9a-f][0-9a-f]")) if not folder.is_symlink()]

    def _place(self, sha256: str) -> Path:
        if _SHA256.fullmatch(sha256) is None:
            raise NotFound("There is no content of that name. Take the name from the log.")
        target = self._folder / sha256[:2] / sha256
        for folder in (self._folder, target.parent):
            with storage_errors("blobs"):
                if folder.is_symlink():
                    raise InvalidName(f"The folder {folder.name} of blobs is a symbolic link. Put the folder there.")
        return target

    def _read(self, target: Path) -> bytes:
        with open_no_follow(target, os.O_RDONLY) as descriptor:
            return disk.read_all(descriptor)


def _blob_name(sha256: str) -> str:
    return f"blobs/{sha256[:2]}/{sha256[:12]}…"
