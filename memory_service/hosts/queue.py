"""Queue of hook calls whose work is done after their answer, by a process that no host waits for.

One small file for each call, `<home>/.hooks/<time>-….json`, in the order in which they came; and one for each workspace
whose index is behind. Invariants: a call that was put here outlives the process and the power; it is taken out when its
work is done, so that a worker that is killed leaves it to the next; one worker at a time works on a home; a call that
ended several workers is given up. This module loads next to nothing: a hook that has nothing to say is a file here.
"""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

from memory_service.errors import NotFound, StorageFailed
from memory_service.home import make_home
from memory_service.storage.files import disk
from memory_service.storage.files.disk import WriteLock, replace_durably, storage_errors

# The whole of a call; what it brings, where its answer is given already; what comes after both.
HookWork: TypeAlias = Literal["all", "keep", "after"]

_FOLDER = ".hooks"
_SUFFIX, _LOCK = ".json", ".lock"
_INDEX = "index-"
_MOST_STARTS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedCall:
    """A call whose work is to be done.

    Attributes:
        host: Its name.
        workspace: The named one; None for that of the project.
        call: The host's own JSON.
        work: How much of it.
        session_id: Of the conversation; empty if the host named none.
        path: Where it stands; None if it stands nowhere yet.
    """

    host: str
    workspace: str | None
    call: Mapping[str, Any] = field(repr=False)
    work: HookWork = "all"
    session_id: str = ""
    path: Path | None = None

    def encode(self) -> bytes:
        """The call as a line of JSON; escaped, as an id may hold half a surrogate pair."""
        fields = {
            "host": self.host,
            "workspace": self.workspace,
            "work": self.work,
            "session_id": self.session_id,
            "call": self.call,
        }
        return json.dumps(fields).encode()


def read_call(raw: bytes, path: Path | None = None) -> QueuedCall | None:
    """A call as it was written; None if that is none."""
    try:
        return QueuedCall(**json.loads(raw), path=path)
    except (ValueError, TypeError, RecursionError):
        return None


class CallQueue:
    """The queue of a home.

    Args:
        home: The home; it need not be there.
    """

    def __init__(self, home: Path) -> None:
        self.home = home
        self._folder = home / _FOLDER
        self._lock = WriteLock(self._folder / _LOCK, timeout_seconds=0)

    def add(self, call: QueuedCall) -> None:
        """Put a call behind the others; it is on the disk when this returns.

        Raises:
            StorageFailed: The disk did not take it.
        """
        self._put(f"{time.time_ns():020d}-{secrets.token_hex(4)}.0{_SUFFIX}", call.encode())

    def add_index(self, workspace: str) -> None:
        """Ask for the index of a workspace to be brought up to date; once, however often that is asked.

        Raises:
            StorageFailed: The disk did not take it.
        """
        self._put(f"{_INDEX}{workspace}", b"")

    def _put(self, name: str, raw: bytes) -> None:
        make_home(self.home)
        place = self._folder / name
        with storage_errors(f"{_FOLDER}/{name}"):
            disk.make_folder(self._folder)
            replace_durably(place, raw, expected=disk.current_signature(place))

    def calls(self) -> list[QueuedCall]:
        """The calls, oldest first; what is none is taken out."""
        calls = list[QueuedCall]()
        for name in self._names():
            if name.startswith(_INDEX) or not name.endswith(_SUFFIX):
                continue
            place = self._folder / name
            with suppress(OSError):
                if call := read_call(place.read_bytes(), place):
                    calls.append(call)
                else:
                    place.unlink(missing_ok=True)
        return calls

    def indexes(self) -> list[str]:
        """The workspaces whose index is to be brought up to date."""
        return [name.removeprefix(_INDEX) for name in self._names() if name.startswith(_INDEX)]

    @property
    def is_empty(self) -> bool:
        """True if no call waits."""
        return all(name.startswith(_INDEX) for name in self._names())

    def holds(self, session_id: str) -> bool:
        """True if calls of a conversation wait."""
        return any(call.session_id == session_id for call in self.calls())

    def begin(self, call: QueuedCall) -> QueuedCall | None:
        """Note that the work of a call begins; None for one that is given up, as it ended several workers."""
        if call.path is None:
            return call
        stem, _, starts = call.path.name.removesuffix(_SUFFIX).rpartition(".")
        count = int(starts) if starts.isdigit() else 0
        if count >= _MOST_STARTS:
            self.remove(call)
            return None
        return replace(call, path=self._rename(call, f"{stem}.{count + 1}{_SUFFIX}"))

    def put_back(self, call: QueuedCall) -> Path:
        """Leave a call for later, as if its work had not begun; gives where it stands then."""
        assert call.path is not None
        stem = call.path.name.removesuffix(_SUFFIX).rpartition(".")[0]
        return self._rename(call, f"{stem}.0{_SUFFIX}")

    def _rename(self, call: QueuedCall, name: str) -> Path:
        assert call.path is not None
        place = self._folder / name
        with storage_errors(f"{_FOLDER}/{name}"):
            os.replace(call.path, place)
        return place

    def remove(self, call: QueuedCall) -> None:
        """Take a call out."""
        if call.path is not None:
            with storage_errors(call.path.name), suppress(FileNotFoundError):
                call.path.unlink()

    def index_begun(self, workspace: str) -> None:
        """Take out the wish for an index: who asks for it from now on means what comes from now on."""
        with suppress(OSError):
            (self._folder / f"{_INDEX}{workspace}").unlink()

    @contextmanager
    def worked_on(self) -> Iterator[bool]:
        """Be the one that works on the queue; gives False if another one does."""
        if not self._folder.is_dir():
            yield False
            return
        manager = self._lock.hold()
        try:
            manager.__enter__()
        except (StorageFailed, NotFound):
            yield False
            return
        try:
            disk.sweep_old([self._folder])
            yield True
        finally:
            manager.__exit__(None, None, None)

    def _names(self) -> list[str]:
        try:
            with os.scandir(self._folder) as entries:
                return sorted(entry.name for entry in entries if not entry.name.startswith("."))
        except OSError:
            return []
