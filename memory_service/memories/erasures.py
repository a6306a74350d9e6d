"""Marks of erasures that are under way, by which another process ends what one left undone.

Invariants: while something is being erased, a durable mark says so; it goes when nothing is left, and stays if the
process is killed or a part fails. Who holds the lock and finds the mark knows that nobody is at work on it any more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

from memory_service.errors import MemoryServiceError, StorageFailed
from memory_service.schemas.base import PendingErasure
from memory_service.storage.coordination import Coordination
from memory_service.storage.record_store import RecordKind, RecordStore

_KEY = "erasing"
# Who only looks whether there is something to end does not wait for those who are at work.
_LOOK_SECONDS = 0.01


class Erasures:
    """The erasures of one workspace.

    Args:
        records: Its small records.
        coordination: That of the home.
        workspace: Its name.
        note: Notes that something was erased; gives where the engine of the storage still has it.
    """

    def __init__(
        self,
        records: RecordStore,
        coordination: Coordination,
        workspace: str,
        note: Callable[[], Sequence[PendingErasure]] = tuple,
    ) -> None:
        self._records = records
        self._coordination = coordination
        self._note = note
        self._is_noted = False
        self._lock = f"{workspace}/.locks/erase"
        # On a full disk there may be no room for a mark.
        self._unmarked = False
        self._copies = dict[str, Callable[[], None]]()

    @property
    def is_marked(self) -> bool:
        """True if something is being erased, or was and is not gone everywhere."""
        return self._unmarked or self._has_mark()

    def add_copies(self, name: str, sweep: Callable[[], None]) -> None:
        """Name what takes texts that files do not have any more out of copies that were made of them.

        Args:
            name: What the copies are, for people.
            sweep: Called at every erasure; raises `MemoryServiceError` where some of them stay.
        """
        self._copies[name] = sweep

    def sweep_copies(self) -> list[str]:
        """Take what is erased out of all copies; what could not be done."""
        left = list[str]()
        for name, sweep in self._copies.items():
            try:
                sweep()
            except MemoryServiceError as error:
                left.append(f"{name}: {error}")
        return left

    def erase_answers(self) -> list[str]:
        """Erase the answers that are given again to those who ask again; what could not be done."""
        try:
            self._records.erase(RecordKind.SESSION_REPLY)
        except StorageFailed as error:
            return [f"answers: {error}"]
        return []

    def mark(self) -> None:
        """Says durably that something is being erased.

        Raises:
            StorageFailed: There is no room for it.
        """
        self._records.put(RecordKind.ERASURE, _KEY, b"", expected=None)

    @contextmanager
    def under_way(self) -> Iterator[list[str]]:
        """Marks the workspace while something is erased; gives the list of what could not be done.

        What is refused, before anything was erased, leaves the mark as it was.
        """
        with self._coordination.lock(self._lock):
            before, self._is_noted = self.is_marked, False
            with suppress(StorageFailed):
                self.mark()
            left = list[str]()
            try:
                yield left
            except MemoryServiceError as error:
                if error.status < 500 and not before:
                    self._unmark()
                raise
            if not self._is_noted:
                self._note()
            if left:
                self._unmarked = not self._has_mark()
            elif not before:
                self._unmark()

    def pending(self) -> list[PendingErasure]:
        """Notes what is being erased, which is committed; gives where the storage still has it.

        Raises:
            StorageFailed: The note could not be stored.
        """
        self._is_noted = True
        return list(self._note())

    def end_broken(self, work: Callable[[], list[str]]) -> list[str]:
        """Ends what was broken off, if something was and nobody is at it.

        Args:
            work: Leaves no trace of what is gone from the files; gives what of that could not be done.
        """
        is_marked = self.is_marked
        if not is_marked:
            return []
        with suppress(MemoryServiceError), self._coordination.lock(self._lock, timeout_seconds=_LOOK_SECONDS):
            left = work() if self.is_marked else []
            if not left:
                self._note()
                self._unmark()
                self._unmarked = False
            return left
        return []

    def _has_mark(self) -> bool:
        return self._records.version(RecordKind.ERASURE, _KEY) is not None

    def _unmark(self) -> None:
        self._records.erase(RecordKind.ERASURE, key=_KEY)
