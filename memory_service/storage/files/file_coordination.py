"""Coordination of the processes of a home by its files: locks of the system, and messages in the shared database.

Invariants: a lease is a lock of the system, so it ends with its process, however that ends; one thread looks for the
messages of other processes, and only while somebody listens.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from pathlib import Path

from memory_service.errors import StorageFailed
from memory_service.storage.coordination import LEASE_SECONDS, LOCK_SECONDS, ChannelMessage
from memory_service.storage.files.disk import WriteLock
from memory_service.storage.files.shared_database import (
    SHARED_FOLDER,
    DatabaseMessages,
    SharedDatabase,
    make_shared_folder,
)

_log = logging.getLogger("memory_service.storage")
# A look costs 30 µs.
_LOOK_SECONDS = 0.05
_SUFFIX = ".lock"


class FileCoordination:
    """The coordination of one home; see `Coordination`."""

    def __init__(self, home: Path, database: SharedDatabase) -> None:
        self._home = home
        self._messages = DatabaseMessages(database)
        self._changing = threading.Lock()
        self._followers: dict[str, list[Callable[[], None]]] = {}
        # Held for a look at the file of a lease, which comes and goes with it.
        self._leasing = WriteLock(home / SHARED_FOLDER / "leases.lock")
        self._leases = dict[Path, Callable[[], None]]()
        self._ending = threading.Event()
        self._watch: threading.Thread | None = None

    def lock(self, name: str, *, timeout_seconds: float = LOCK_SECONDS) -> AbstractContextManager[None]:
        """See `Coordination`."""
        return WriteLock(self._home / f"{name}{_SUFFIX}", timeout_seconds=timeout_seconds).hold()

    def lane(self, name: str, *, timeout_seconds: float = LOCK_SECONDS) -> AbstractContextManager[None]:
        """See `Coordination`."""
        return nullcontext()

    def lease(self, name: str, seconds: float = LEASE_SECONDS) -> Callable[[], None] | None:
        """See `Coordination`."""
        make_shared_folder(self._home)
        stack, file = ExitStack(), self._lease_file(name)
        with self._leasing.hold():
            if not self._is_free(file):
                return None
            stack.enter_context(WriteLock(file, timeout_seconds=0).hold())

        def give_back() -> None:
            with self._leasing.hold():
                if self._leases.pop(file, None) is not None:
                    file.unlink(missing_ok=True)
                    stack.close()

        self._leases[file] = give_back
        return give_back

    def is_leased(self, name: str) -> bool:
        """See `Coordination`."""
        file = self._lease_file(name)
        if not file.exists():
            return False
        with self._leasing.hold():
            if is_free := self._is_free(file):
                file.unlink(missing_ok=True)
            return not is_free

    def _is_free(self, file: Path) -> bool:
        """True if nobody has a lease; nobody takes or gives back one meanwhile."""
        try:
            with WriteLock(file, timeout_seconds=0).hold():
                return True
        except StorageFailed:
            # One that cannot be looked at is that of somebody.
            return False

    def publish(self, channel: str, raw: bytes, *, first: int = 1) -> int:
        """See `Coordination`."""
        number = self._messages.publish(channel, raw, first)
        self._tell([channel])
        return number

    def messages(self, channel: str, after: int = 0) -> Sequence[ChannelMessage]:
        """See `Coordination`."""
        return self._messages.messages(channel, after)

    def follow(self, channel: str, heard: Callable[[], None]) -> Callable[[], None]:
        """See `Coordination`."""
        with self._changing:
            self._followers.setdefault(channel, []).append(heard)
            if self._watch is None and not self._ending.is_set():
                self._watch = threading.Thread(target=self._look, name="messages", daemon=True)
                self._watch.start()

        def end() -> None:
            with self._changing:
                followers = self._followers.get(channel, [])
                with suppress(ValueError):
                    followers.remove(heard)
                if not followers:
                    self._followers.pop(channel, None)

        return end

    def close(self) -> None:
        """Give back all leases, and look for messages no more."""
        self._ending.set()
        if self._watch is not None:
            self._watch.join()
        for give_back in list(self._leases.values()):
            give_back()

    def _lease_file(self, name: str) -> Path:
        return self._home / SHARED_FOLDER / f"{name}{_SUFFIX}"

    def _look(self) -> None:
        """Tell of the messages of others until nobody listens."""
        seen_newest = -1
        while not self._ending.wait(_LOOK_SECONDS):
            with self._changing:
                if not self._followers:
                    self._watch = None
                    return
                followers = list(self._followers)
            try:
                newest = self._messages.newest()
                if newest != seen_newest:
                    # At first, and if the file was made anew, what is new is not known.
                    self._tell(self._messages.channels(seen_newest) if 0 <= seen_newest < newest else followers)
                    seen_newest = newest
            except StorageFailed:
                _log.exception("messages of other processes cannot be read")

    def _tell(self, channels: Sequence[str]) -> None:
        with self._changing:
            found_channels = [heard_value for channel in channels for heard_value in self._followers.get(channel, ())]
        for heard in found_channels:
            heard()
