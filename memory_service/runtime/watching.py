"""Following of file changes of workspaces, in the background.

Invariants: one thread for all workspaces, and at most 32 of them at a time; it indexes what it finds the way a
search would, so a change that the service made itself costs a look and no more; it ends between two files.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from indexer import Watch, Watched, WatchState, WatchTiming
from indexer.common import THROTTLE

if TYPE_CHECKING:
    from memory_service.memories.long_term import LongTermMemory

_log = logging.getLogger("memory_service.runtime.watching")

_MOST_WORKSPACES = 32
# One that was used in the last minute gives no room to another, so that many in turn do not drive each other out.
_KEPT_SECONDS = 60.0
# As much patience as a request that just began to index deserves.
_END_SECONDS = 10.0
_NOT_HERE = "not by this process; `serve` and `reindex --watch` do it"
_NO_FOLDER = "it lies in no folder of this machine; each search looks for what changed"


@dataclass(slots=True, kw_only=True)
class _Followed:
    workspace: str
    memory: LongTermMemory
    used: float


class WorkspaceWatcher:
    """Follows the workspaces that are in use. Does nothing before `start`.

    Args:
        timing: See `indexer.sources.watch`.
    """

    def __init__(self, timing: WatchTiming | None = None) -> None:
        self._timing = timing or WatchTiming()
        self._changing = threading.Lock()
        self._followed: OrderedDict[str, _Followed] = OrderedDict()
        self._stop = threading.Event()
        self._watch = Watch(self._homes, self._index_changes, self._stop, timing=self._timing)
        self._thread: threading.Thread | None = None
        self._failure = ""

    def start(self) -> None:
        """Begin, in a thread of its own."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="watching", daemon=True)
            self._thread.start()

    def use(self, workspace: str, memory: LongTermMemory) -> None:
        """Follow a workspace that is being used, if there is room."""
        if self._thread is None:
            return
        now = time.monotonic()
        with self._changing:
            known_value = self._followed.get(workspace)
            if known_value is None and len(self._followed) >= _MOST_WORKSPACES:
                oldest = next(iter(self._followed.values()))
                if now - oldest.used < _KEPT_SECONDS:
                    return
                del self._followed[oldest.workspace]
            self._followed[workspace] = _Followed(workspace=workspace, memory=memory, used=now)
            self._followed.move_to_end(workspace)

    def leave(self, workspace: str) -> None:
        """Follow a workspace no more."""
        with self._changing:
            self._followed.pop(workspace, None)

    def state(self, workspace: str) -> WatchState:
        """Watch state of a workspace, with the reason if not by events."""
        if self._failure:
            return WatchState(mode="off", reason=self._failure)
        if self._thread is None:
            return WatchState(mode="off", reason=_NOT_HERE)
        with self._changing:
            known_value = self._followed.get(workspace)
        if known_value is None:
            return WatchState(mode="off", reason=f"{_MOST_WORKSPACES} other workspaces were used later")
        if not (folders := known_value.memory.index.source.folders):
            return WatchState(mode="off", reason=_NO_FOLDER)
        state = self._watch.state(folders[0])
        return WatchState(mode="off", reason="it is about to begin") if state.mode == "off" else state

    def close(self) -> None:
        """End the thread; waits for the file or the batch at hand."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(_END_SECONDS)

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._watch.run()
            except Exception as error:
                # A defect, which must not end the watching for ever, nor be met again and again.
                self._failure = f"it met a defect ({type(error).__name__}) and tries again in a minute; see the log"
                _log.exception("watching met a defect")
                self._stop.wait(self._timing.retry_seconds)
                self._failure = ""

    def _homes(self) -> list[Watched]:
        with self._changing:
            followed_folders = [value.memory.index.source.folders for value in self._followed.values()]
        return [Watched(root=folders[0], extra=folders[1:]) for folders in followed_folders if folders]

    def _index_changes(self, root: Path, paths: Collection[str]) -> float:
        with self._changing:
            memory = next(
                (value.memory for value in self._followed.values() if root in value.memory.index.source.folders[:1]),
                None,
            )
        with THROTTLE.background():
            return memory.catch_up(paths, cancelled=self._stop.is_set) if memory else 0.0
