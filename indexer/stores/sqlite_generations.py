"""Generations of an index file, by name: the one in use, the one being made, and leftovers.

Invariants: the first generation is `index.sqlite` itself, a later one `index-<n>.sqlite` beside it, and then
`index.sqlite` is a link to it, or a file with its name where no links can be made (Windows, some drives), that is
replaced in one step; numbers only grow, so no log of one generation is ever
taken for that of another; nothing is removed but files of these names and of their packings, under the lock of a
rebuild.
"""

from __future__ import annotations

import errno
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path

from indexer.errors import StoreBusy, StoreCorrupt, StoreError, StoreFull, StoreReadOnly
from indexer.stores.base import BesideState, IndexStore, Room, Unfinished
from indexer.stores.sqlite_database import Database, name_of, real_path
from indexer.types import Fingerprint, file_mode, short_path, sync_file

_LOCK_NAME = ".rebuild.lock"
# Whoever asks whether a rebuild runs holds the lock for a moment.
_LOCK_SECONDS = 1.0
_POLL_SECONDS = 0.02
# Reads of the former generation that began before the switch are over by then.
_LAST_READS_SECONDS = 0.1
# What SQLite and the pack put beside a file, and what a packing hides there: its lock, and what it has not finished.
_BESIDE = ("", "-wal", "-shm", "-journal", ".pack")
_HIDDEN = re.compile(r"\.pack\.(lock|[0-9]+\.tmp)")


class Generations:
    """The generations of one index.

    Args:
        path: Path of the index for people, such as `<workspace>/index.sqlite`.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._name = name_of(path)

    def current(self) -> int:
        """Number of the generation in use; 0 without one."""
        if not os.path.exists(self.path) or not os.path.exists(real_path(self.path)):
            return 0
        return self._number(os.path.basename(real_path(self.path))) or 1

    def partial(self) -> Path | None:
        """File of the generation that is being made, or whose making was interrupted."""
        newest, current = max(self._numbers(), default=0), self.current()
        return self._file(newest) if current and newest > current else None

    def following(self) -> Path:
        """File of the next generation if there is no partial one."""
        return self._file(max(1, self.current(), *self._numbers()) + 1)

    def put_in_use(self, path: Path, *, reached: Callable[[str], None] = lambda step: None) -> None:
        """Switch the index to another generation, for all who open it from now on.

        Args:
            path: Its file.
            reached: Called with the name of every step; for tests, which end the process there.
        """
        link = self._link()
        with self._errors():
            with suppress(FileNotFoundError):
                link.unlink()
            _point(link, path.name)
            reached("link made")
            self._hold()
            os.replace(link, self.path)
            reached("link put")
            _sync_folder(self.path.parent)

    def _hold(self) -> None:
        """Give the file in use a second name.

        The space of a file is freed when it has lost its names and the last reader closes it: 70 ms for 100,000
        passages, in which no other thread of that process has its turn. So it has a name until nobody reads it.
        """
        self.let_go()
        # Not every file system has files of two names; there, that one waits.
        with suppress(OSError):
            os.link(real_path(self.path), self._former())

    def let_go(self) -> None:
        """Delete the former generation, which nobody reads any more."""
        self._unlink(self._former())

    def has_others(self) -> bool:
        """True if there is any generation but the one in use, or something of one."""
        current = self.current()
        numbers = chain(self._numbers(), (number for number, _ in self._packings()))
        first = self._is_elsewhere() and os.path.lexists(f"{self.path}.pack")
        return first or os.path.lexists(self._former()) or any(number != current for number in numbers)

    def remove(self, path: Path) -> None:
        """Delete a generation that is not in use."""
        for beside in _BESIDE:
            self._unlink(Path(f"{path}{beside}"))

    def tidy(self, *, let_go: bool = True) -> None:
        """Delete all but the generation in use and the partial one; with `let_go` also the former one."""
        partial, current = self.partial(), self.current()
        kept_value = {partial, self._file(current)}
        for number in self._numbers():
            if self._file(number) not in kept_value:
                self.remove(self._file(number))
        for number, name in self._packings():
            if self._file(number) not in kept_value:
                self._unlink(self.path.with_name(name))
        self._unlink(self._link())
        if let_go:
            self.let_go()
        if not current or self._is_elsewhere():
            for beside in _BESIDE[1:]:
                self._unlink(Path(f"{self.path}{beside}"))

    @contextmanager
    def hold_lock(self) -> Iterator[None]:
        """Hold the lock of rebuilds within the block.

        Raises:
            StoreBusy: Somebody holds it.
            StoreReadOnly: The folder cannot be written.
        """
        from filelock import FileLock, Timeout

        lock = FileLock(self.path.with_name(_LOCK_NAME), thread_local=False, mode=file_mode(self.path.parent))
        with self._errors():
            try:
                lock.acquire(timeout=_LOCK_SECONDS, poll_interval=_POLL_SECONDS)
            except Timeout:
                raise StoreBusy(
                    f"Another `reindex --full` of {short_path(self.path)} is running. "
                    "Wait for it to end, or cancel it, and try again."
                ) from None
        try:
            yield
        finally:
            lock.release()

    def is_locked(self) -> bool:
        """True if a rebuild is running, in whatever process."""
        from filelock import FileLock, Timeout

        place = self.path.with_name(_LOCK_NAME)
        if not place.exists():
            return False
        lock = FileLock(place, thread_local=False, mode=file_mode(place.parent))
        try:
            lock.acquire(blocking=False)
        except Timeout:
            return True
        except OSError:
            return False
        lock.release()
        return False

    def _is_elsewhere(self) -> bool:
        """True if the path stands for another file."""
        return self.path.is_symlink() or real_path(self.path) != str(self.path)

    def _unlink(self, place: Path) -> None:
        with self._errors(), suppress(FileNotFoundError):
            place.unlink()

    def _names(self) -> list[str]:
        try:
            return os.listdir(self.path.parent)
        except OSError:
            return []

    def _numbers(self) -> list[int]:
        return sorted({number for name in self._names() if (number := self._number(name))})

    def _number(self, name: str) -> int:
        match = self._name.fullmatch(name)
        return int(match[1]) if match and match[2] in _BESIDE else 0

    def _packings(self) -> Iterator[tuple[int, str]]:
        """Hidden files of packings: the number of the generation, and the name."""
        for name in self._names():
            later = self._name.fullmatch(name.removeprefix("."))
            rest = later[2] if later else name.removeprefix(f".{self.path.name}")
            if name.startswith(".") and _HIDDEN.fullmatch(rest):
                yield int(later[1]) if later else 1, name

    def _file(self, number: int) -> Path:
        return self.path.with_name(f"{self.path.stem}-{number}{self.path.suffix}")

    def _link(self) -> Path:
        return self.path.with_name(f".{self.path.name}.link")

    def _former(self) -> Path:
        return self.path.with_name(f".{self.path.name}.former")

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise StoreFull(
                    f"The disk that holds the index {short_path(self.path)} is full. "
                    "Free some space and run `memory-service reindex --full`."
                ) from error
            if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
                raise StoreReadOnly(
                    f"The folder of the index {short_path(self.path)} cannot be written. "
                    "Make it writable, or choose another --home."
                ) from error
            raise StoreError(
                f"The files of the index {short_path(self.path)} cannot be changed ({error.strerror}). "
                "Run `memory-service doctor`."
            ) from error


class SqliteBeside:
    """The next generation of an index file; see `Beside`.

    Args:
        path: The index.
        database: The one in use.
        opened: Opens the store of another generation.
    """

    def __init__(self, path: Path, database: Database, opened: Callable[[Path], IndexStore]) -> None:
        self._generations = Generations(path)
        self._database = database
        self._opened = opened
        self._place = path

    def state(self) -> BesideState:
        """See `Beside`."""
        return BesideState(running=self._generations.is_locked(), others=self._generations.has_others())

    @contextmanager
    def hold_lock(self) -> Iterator[None]:
        """See `Beside`."""
        with self._generations.hold_lock():
            self._generations.tidy()
            yield

    def unfinished_generation(self) -> Unfinished | None:
        """See `Beside`."""
        partial = self._generations.partial()
        return Unfinished(partial.name, self._opened(partial)) if partial else None

    def next(self, fingerprint: Fingerprint) -> IndexStore:
        """See `Beside`."""
        partial = self._generations.partial()
        if partial is not None and not self._is_made_with(partial, fingerprint):
            self._generations.remove(partial)
        self._place = partial or self._generations.following()
        return self._opened(self._place)

    def _is_made_with(self, partial: Path, fingerprint: Fingerprint) -> bool:
        store = self._opened(partial)
        try:
            return store.head().fingerprint == fingerprint
        except StoreCorrupt:
            return False
        finally:
            store.close()

    def room(self) -> Room:
        """See `Beside`."""
        st_size = self._place.stat().st_size if self._place.exists() else 0
        return Room(live_bytes=self._database.size_bytes(), made_bytes=st_size, folder=self._place.parent)

    @contextmanager
    def switching(self) -> Iterator[Callable[[Callable[[str], None]], None]]:
        """See `Beside`."""
        with self._database.writing():
            yield lambda reached: self._generations.put_in_use(self._place, reached=reached)

    def remove(self) -> None:
        """See `Beside`."""
        partial = self._generations.partial()
        if partial is not None:
            self._generations.remove(partial)

    def retire(self, reached: Callable[[str], None]) -> None:
        """See `Beside`."""
        self._database.drop_stale()
        reached("switched")
        self._generations.tidy(let_go=False)
        time.sleep(_LAST_READS_SECONDS)
        self._database.drop_stale()
        self._generations.let_go()


def _point(place: Path, name: str) -> None:
    """Make a link to a file beside it; where there are no links, a file with the other's name."""
    try:
        place.symlink_to(name)
    except (OSError, NotImplementedError):
        descriptor = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, file_mode(place.parent))
        with os.fdopen(descriptor, "w", encoding="ascii") as wrapper:
            wrapper.write(f"{name}\n")
            wrapper.flush()
            sync_file(wrapper.fileno())


def _sync_folder(folder: Path) -> None:
    if os.name == "nt":
        return
    place = os.open(folder, os.O_RDONLY)
    try:
        sync_file(place)
    finally:
        os.close(place)
