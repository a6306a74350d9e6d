"""Watching of folders: file events as a hint, whole scans as the truth. The only file that imports watchfiles.

Invariants: whatever events say, each folder is scanned as a whole at the start and every so often; a file that is
being written is left alone until it has been quiet; nothing is watched through a symbolic link; when events fail, the
folders are scanned at short intervals, the state says so, and events are tried again; one thread waits, and never
spins.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from stat import S_ISDIR
from typing import TYPE_CHECKING, Literal

from indexer.sources.scan import MEMORY_FOLDER, SESSIONS_FOLDER, is_memory_path, is_session_path

if TYPE_CHECKING:
    from watchfiles.main import FileChange


# The library looks so often whether there are events, or whether it has to stop: 0.1 % of a core.
_STEP_MS = 50
_TICK_SECONDS = 0.2


class FileEvents:
    """File events of some folders; none after a failure, until `follow` is called again.

    Args:
        stop: Ends a wait.

    Attributes:
        failure: Why there are no events; empty while nothing is wrong.
    """

    def __init__(self, stop: threading.Event) -> None:
        self.failure = ""
        self._stop = stop
        self._changes: Generator[set[FileChange], None, None] | None = None

    def follow(self, folders: Sequence[str]) -> list[str]:
        """Switch to other folders, without those below them; gives the last paths of the former ones."""
        before, self._changes, self.failure = self._changes, None, ""
        paths = self._first(folders) if folders else []
        # Those of the new ones come already, so nothing is lost between the two.
        if before is not None:
            with suppress(OSError, RuntimeError):
                paths += [path for _, path in next(before, ())]
            before.close()
        return paths

    def wait(self) -> list[str]:
        """The next paths; none after a fraction of a second."""
        if self._changes is None:
            self._stop.wait(_TICK_SECONDS)
        return self._next()

    def close(self) -> None:
        """Stop the events."""
        self.failure = ""
        if self._changes is not None:
            self._changes.close()
            self._changes = None

    def _first(self, folders: Sequence[str]) -> list[str]:
        try:
            self._changes = _changes(folders, self._stop)
        except ImportError as error:
            # There are systems without a wheel of it.
            self.failure = f"the package watchfiles cannot be loaded ({error})"
        return self._next()

    def _next(self) -> list[str]:
        if self._changes is None:
            return []
        try:
            changes = next(self._changes, None)
        except (OSError, RuntimeError) as error:
            # Such as: no more watches for this user, or a name that is not Unicode.
            changes, self.failure = None, f"the system tells of no changes ({error})"
        if changes is None:
            self._changes = None
        return [path for _, path in changes or ()]


def _changes(folders: Sequence[str], stop: threading.Event) -> Generator[set[FileChange], None, None]:
    from watchfiles import watch

    return watch(
        *folders,
        watch_filter=None,
        debounce=round(_TICK_SECONDS * 1000),
        step=_STEP_MS,
        rust_timeout=round(_TICK_SECONDS * 1000),
        yield_on_timeout=True,
        stop_event=stop,
        recursive=False,
        ignore_permission_denied=True,
    )


# Folders watched at most: a user of an older Linux has 8,192 watches for all programs together.
_MOST_FOLDERS = 4_096
# From so many changed files on, one whole look is cheaper than a look at each of them.
_MOST_PATHS = 500
# Folders that an extra folder may have below it, and that hold no sources.
_PASSED_OVER = frozenset({"node_modules", "__pycache__", "venv"})
# Names that change without a source having changed: indexes, locks, drafts of editors.
_NO_SOURCES = ("-wal", "-shm", "-journal", ".sqlite", ".pack", ".lock", ".tmp", ".swp", ".part", "~")
_SAYS_WHAT_IS_IGNORED = ".gitignore"


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """The folders of one index.

    Attributes:
        root: The workspace folder; its memory files and session logs count.
        extra: Extra folders, with all folders below them.
    """

    root: Path
    extra: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchState:
    """State of a watch.

    Attributes:
        mode: By events; by scans at short intervals, where there are no events; or not at all.
        reason: Why it is not by events.
    """

    mode: Literal["events", "polling", "off"]
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchTiming:
    """Intervals of a watch.

    Attributes:
        quiet_seconds: A file is looked at when nothing has happened to it for so long,
        most_seconds: or, if it never rests, so long after the first change.
        look_seconds: Time between whole scans while events come,
        poll_seconds: and while they do not.
        look_share: Most of the time that whole scans of one index may take, as a share.
        check_seconds: Time between two checks of which folders exist.
        retry_seconds: Time until events are tried again after a failure.
    """

    quiet_seconds: float = 0.2
    most_seconds: float = 2.0
    look_seconds: float = 60.0
    poll_seconds: float = 2.0
    look_share: float = 0.02
    check_seconds: float = 1.0
    retry_seconds: float = 60.0


# Told of a root and of its files that changed, or of none: then any may have. Gives the seconds that it took to
# find out what is to be done, without the doing.
OnChange = Callable[[Path, Collection[str]], float]


class Settling:
    """Changed paths that wait until they have been quiet for a while.

    Args:
        quiet_seconds: How long is long enough.
        most_seconds: Longest wait of a path that never rests.
    """

    def __init__(self, *, quiet_seconds: float, most_seconds: float) -> None:
        self._quiet = quiet_seconds
        self._most = most_seconds
        self._pending: dict[str, tuple[float, float]] = {}

    def __len__(self) -> int:
        return len(self._pending)

    def note(self, path: str, now: float) -> None:
        """Add a change at `now`, in seconds of a monotonic clock."""
        first, _ = self._pending.get(path, (now, now))
        self._pending[path] = (first, now)

    def take_ready(self, now: float) -> list[str]:
        """Take out the paths that are ready."""
        ready = [
            path
            for path, (first, last) in self._pending.items()
            if now - last >= self._quiet or now - first >= self._most
        ]
        for path in ready:
            del self._pending[path]
        return ready

    def clear(self) -> None:
        """Forget all of them, as everything is scanned."""
        self._pending.clear()


@dataclass(slots=True, kw_only=True)
class _Home:
    """Folders of one index; `reason` says why there are no events of them."""

    watched: Watched
    real: str
    settling: Settling
    reason: str
    identity: tuple[object, ...] = ()
    folders: tuple[str, ...] = ()
    stale: bool = True
    look_at: float = 0.0
    not_before: float = 0.0


class Watch:
    """Watch of any number of folders. Give `run` a thread.

    Args:
        homes: Gives the folders to watch; called again and again.
        on_change: See `OnChange`. An exception of it ends `run`.
        stop: Ends `run` within a fraction of a second.
        timing: Its intervals.
    """

    def __init__(
        self,
        homes: Callable[[], Collection[Watched]],
        on_change: OnChange,
        stop: threading.Event,
        *,
        timing: WatchTiming = WatchTiming(),
    ) -> None:
        self._wanted = homes
        self._on_change = on_change
        self._stop = stop
        self._timing = timing
        self._events = FileEvents(stop)
        self._homes: dict[Path, _Home] = {}
        self._places: dict[str, list[_Home]] = {}
        self._check_at = self._retry_at = 0.0
        self._failure = ""

    def state(self, root: Path) -> WatchState:
        """State of one folder's watch."""
        home = self._homes.get(root)
        if home is None:
            return WatchState(mode="off", reason="nobody watches it")
        return WatchState(mode="polling", reason=home.reason) if home.reason else WatchState(mode="events")

    def run(self) -> None:
        """Watch until stopped."""
        try:
            while not self._stop.is_set():
                self._check(time.monotonic())
                for path in self._events.wait():
                    self._note(path, time.monotonic())
                self._tell()
        finally:
            self._events.close()
            self._homes = {}

    def _check(self, now: float) -> None:
        """See which folders exist, and follow those that are new or were replaced."""
        if self._events.failure:
            self._do_without(self._events.failure, now)
        if now < self._check_at:
            return
        # Of the thread's own time, as to follow other folders is mostly waiting.
        thread_time = time.thread_time()
        wanted_values = {watched_value.root: watched_value for watched_value in self._wanted()}
        paths = self._homes.keys() - wanted_values.keys()
        self._homes = {root: self._home(watched_value) for root, watched_value in wanted_values.items()}
        for home in self._homes.values():
            identity = _identity(home)
            home.stale = home.stale or identity != home.identity
            home.identity = identity
        if now >= self._retry_at and (paths or any(home.stale for home in self._homes.values())):
            self._follow(now)
        spent_value = time.thread_time() - thread_time
        self._check_at = time.monotonic() + max(self._timing.check_seconds, spent_value / self._timing.look_share)

    def _home(self, watched_value: Watched) -> _Home:
        home = self._homes.get(watched_value.root)
        if home is not None and home.watched == watched_value:
            return home
        timing = self._timing
        return _Home(
            watched=watched_value,
            real=os.path.realpath(watched_value.root),
            settling=Settling(quiet_seconds=timing.quiet_seconds, most_seconds=timing.most_seconds),
            reason=self._failure or "it is about to begin",
        )

    def _follow(self, now: float) -> None:
        """Subscribe to the folders that exist now. Earlier changes are found by a whole scan."""
        room = _MOST_FOLDERS
        self._places, self._failure = {}, ""
        reasons = dict[Path, str]()
        for root, home in self._homes.items():
            if home.stale:
                home.folders = tuple(islice(_folders(home), _MOST_FOLDERS + 1))
                home.look_at = now
            home.stale = False
            reasons[root] = _no_events(home, room)
            if not reasons[root]:
                room -= len(home.folders)
                for folder in home.folders:
                    self._places.setdefault(folder, []).append(home)
        paths = self._events.follow(sorted(self._places))
        for root, home in self._homes.items():
            home.reason = self._events.failure or reasons[root]
        for path in paths:
            self._note(path, time.monotonic())

    def _do_without(self, failure: str, now: float) -> None:
        self._events.close()
        self._failure, self._retry_at = failure, now + self._timing.retry_seconds
        for home in self._homes.values():
            home.reason, home.stale, home.look_at = failure, True, now

    def _note(self, path: str, now: float) -> None:
        folder, name = os.path.split(path)
        homes = self._places.get(path, []) + self._places.get(folder, [])
        if path in self._places or _is_folder(path):
            # A folder came or went, and with it files that told no events.
            for home in homes:
                home.stale = home.stale or _has_sources(home, path)
            return
        for home in homes:
            self._note_file(home, path, name, now)

    def _note_file(self, home: _Home, path: str, name: str, now: float) -> None:
        relative = _relative(home, path)
        if relative and (name.startswith(".") or not (is_memory_path(relative) or is_session_path(relative))):
            return
        if not relative and name != _SAYS_WHAT_IS_IGNORED and (name.startswith(".") or name.endswith(_NO_SOURCES)):
            return
        if relative and len(home.settling) < _MOST_PATHS:
            home.settling.note(relative, now)
        else:
            home.look_at = min(home.look_at, now + self._timing.quiet_seconds)

    def _tell(self) -> None:
        for root, home in list(self._homes.items()):
            now = time.monotonic()
            if self._stop.is_set():
                return
            if now >= max(home.look_at, home.not_before):
                self._look(root, home, now)
            elif settled_texts := home.settling.take_ready(now):
                self._on_change(root, settled_texts)

    def _look(self, root: Path, home: _Home, now: float) -> None:
        home.settling.clear()
        home.look_at = now + (self._timing.poll_seconds if home.reason else self._timing.look_seconds)
        looked_seconds = self._on_change(root, ())
        home.not_before = time.monotonic() + looked_seconds / self._timing.look_share


def _folders(home: _Home) -> Iterator[str]:
    """Folders whose files count, by their real paths."""
    if not _is_folder(home.real):
        return
    yield home.real
    yield from _with_all_below(os.path.join(home.real, MEMORY_FOLDER))
    if _is_folder(sessions := os.path.join(home.real, SESSIONS_FOLDER)):
        yield sessions
    for extra in home.watched.extra:
        yield from _with_all_below(os.path.realpath(extra))


def _with_all_below(top: str) -> Iterator[str]:
    waiting = [top] if _is_folder(top) else []
    while waiting:
        folder = waiting.pop()
        yield folder
        # One that cannot be listed is named by the look at it.
        with suppress(OSError), os.scandir(folder) as entries:
            waiting += [e.path for e in entries if e.is_dir(follow_symlinks=False) and not _is_passed_over(e.name)]


def _has_sources(home: _Home, folder: str) -> bool:
    """True if the files of a new or removed folder count."""
    relative = _relative(home, folder)
    if _is_passed_over(os.path.basename(folder)) and folder != home.real:
        return False
    return relative in ("", MEMORY_FOLDER, SESSIONS_FOLDER) or relative.startswith(f"{MEMORY_FOLDER}/")


def _relative(home: _Home, path: str) -> str:
    """A path as the index names it, relative to the workspace folder; empty outside of it."""
    within = path.removeprefix(home.real + os.sep)
    return "" if within == path else within.replace(os.sep, "/")


def _identity(home: _Home) -> tuple[object, ...]:
    """Device and inode of each folder: they change when a folder is replaced."""
    below = [os.path.join(home.real, name) for name in (MEMORY_FOLDER, SESSIONS_FOLDER)]
    return tuple(_place(str(folder)) for folder in (home.real, *below, *home.watched.extra))


def _place(folder: str) -> tuple[int, int] | None:
    try:
        stat = os.stat(folder)
    except OSError:
        return None
    return stat.st_dev, stat.st_ino


def _no_events(home: _Home, room: int) -> str:
    """Why a folder cannot be watched by events; empty if it can."""
    if not home.folders:
        return f"the folder {home.watched.root.name} is not there"
    return f"there are more than {_MOST_FOLDERS:,} folders" if len(home.folders) > room else ""


def _is_folder(path: str) -> bool:
    try:
        return S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False


def _is_passed_over(name: str) -> bool:
    return name.startswith(".") or name in _PASSED_OVER
