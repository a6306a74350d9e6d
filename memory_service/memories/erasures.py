"""Marks of erasures that are under way, by which another process ends what one left undone.

Invariants: while something is being erased, a mark says so on the disk; it goes when nothing is left, and stays if the
process is killed or a part fails. Who holds the lock and finds the mark knows that nobody is at work on it any more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from memory_service.errors import (
    MemoryServiceError,
)
from memory_service.storage.files import disk
from memory_service.storage.files.disk import WriteLock

_FOLDER = ".locks"
# Who only looks whether there is something to end does not wait for those who are at work.
_LOOK_SECONDS = 0.01


class Erasures:
    """The erasures of one workspace.

    Args:
        folder: The folder of the workspace.
    """

    def __init__(self, folder: Path) -> None:
        self._mark = folder / _FOLDER / "erasing"
        self._lock = WriteLock(folder / _FOLDER / "erase.lock")
        self._look = WriteLock(folder / _FOLDER / "erase.lock", timeout_seconds=_LOOK_SECONDS)
        # On a full disk there may be no room for a mark.
        self._unmarked = False

    @property
    def is_marked(self) -> bool:
        """True if something is being erased, or was and is not gone everywhere."""
        return self._unmarked or self._mark.exists()

    @contextmanager
    def under_way(self) -> Iterator[list[str]]:
        """Marks the workspace while something is erased; gives the list of what could not be done.

        What is refused, before anything was erased, leaves the mark as it was.
        """
        with self._lock.hold():
            before = self.is_marked
            with suppress(OSError):
                self._mark.touch(mode=disk.FILE_MODE)
                disk.sync_folder(self._mark.parent)
            left = list[str]()
            try:
                yield left
            except MemoryServiceError as error:
                if error.status < 500 and not before:
                    self._mark.unlink(missing_ok=True)
                raise
            if left:
                self._unmarked = not self._mark.exists()
            elif not before:
                self._mark.unlink(missing_ok=True)

    def end_broken(self, work: Callable[[], list[str]]) -> list[str]:
        """Ends what was broken off, if something was and nobody is at it.

        Args:
            work: Leaves no trace of what is gone from the files; gives what of that could not be done.
        """
        is_found = self.is_marked
        if not is_found:
            return []
        with suppress(MemoryServiceError), self._look.hold():
            left = work() if self.is_marked else []
            if not left:
                self._mark.unlink(missing_ok=True)
                self._unmarked = False
            return left
        return []
