"""Following of file changes of workspaces, in the background.

Invariants: one thread for all workspaces, and at most 32 of them at a time; it indexes what it finds the way a
search would, so a change that the service made itself costs a look and no more; it ends between two files.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from indexer import Index, IndexerError, SyncPlan, SyncReport, Watch, Watched, WatchState, WatchTiming
from indexer.common import THROTTLE
from memory_service.memories.long_term import LongTermMemory
from memory_service.runtime import index_answers
from memory_service.schemas.status import ReindexReport

_log = logging.getLogger("memory_service.runtime.watching")

_MOST_WORKSPACES = 32
# One that was used in the last minute gives no room to another, so that many in turn do not drive each other out.
_KEPT_SECONDS = 60.0
# As much patience as a request that just began to index deserves.
_END_SECONDS = 10.0
_NOT_HERE = "not by this process; `serve` and `reindex --watch` do it"


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
        state = self._watch.state(known_value.memory.index.files.root)
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
            return [_watched_folders(value.memory.index) for value in self._followed.values()]

    def _index_changes(self, root: Path, paths: Collection[str]) -> float:
        with self._changing:
            memory = next(
                (value.memory for value in self._followed.values() if value.memory.index.files.root == root), None
            )
        with THROTTLE.background():
            return memory.catch_up(paths, cancelled=self._stop.is_set) if memory else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncedChange:
    """Sync of one or several changes.

    Attributes:
        paths: The files that looked changed.
        failure: Why it could not be; then there is no report.
    """

    paths: tuple[str, ...]
    report: ReindexReport
    failure: str = ""


def follow(
    index: Index,
    on_followed: Callable[[SyncedChange], None],
    stop: threading.Event,
    *,
    only: Sequence[str] = (),
    timing: WatchTiming | None = None,
) -> None:
    """Index what changes, until told to stop.

    Args:
        index: What to keep up to date.
        on_followed: Told of every change after it was indexed.
        stop: Ends it.
        only: Files or folders to look at; all, unless given.
        timing: See `indexer.sources.watch`.
    """
    text = ""

    def index_changes(_: Path, paths: Collection[str]) -> float:
        nonlocal text
        started_time = time.monotonic()
        texts, failure = tuple[str, ...](), ""
        named_paths = [path for path in paths if _is_within(path, only)]
        if paths and not named_paths:
            return 0.0
        try:
            plan = index.plan(named_paths or only, missing_ok=True)
            looked_seconds, texts = time.monotonic() - started_time, _to_do(plan)
            report = index.sync(texts, missing_ok=True, cancelled=stop.is_set) if texts else SyncReport()
        except IndexerError as error:
            looked_seconds, failure, report = time.monotonic() - started_time, str(error), SyncReport()
        if (texts and not failure and _did(report)) or failure != text:
            on_followed(SyncedChange(paths=texts, report=index_answers.reindex_report(report), failure=failure))
        text = failure
        return looked_seconds

    Watch(lambda: [_watched_folders(index)], index_changes, stop, timing=timing or WatchTiming()).run()


def _watched_folders(index: Index) -> Watched:
    root, *extra = index.files.folders
    return Watched(root=root, extra=tuple(extra))


def _to_do(plan: SyncPlan) -> tuple[str, ...]:
    return (*(file.path for file in (*plan.added, *plan.suspects, *plan.unsure)), *plan.removed)


def _did(report: SyncReport) -> bool:
    return bool(report.added or report.changed or report.removed or report.failed)


def _is_within(path: str, only: Sequence[str]) -> bool:
    return not only or any(path == text or path.startswith(text.rstrip("/") + "/") for text in only)
