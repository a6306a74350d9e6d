"""Owns the look at the files of an index: which there are, compared with what a store knows of them.

Invariants: stat only, no content is read; of files that are named no others are looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path

from indexer.errors import SourceMissing
from indexer.files.folders import Folders
from indexer.files.sources import (
    EXTRA_MARK,
    Scan,
    is_memory_path,
    is_session_path,
    scan_paths,
    scan_workspace,
    with_folders,
)
from indexer.plan import SyncPlan, plan_sync
from indexer.stores.base import FileState, IndexStore
from indexer.types import FileFailure
from indexer.upkeep import Planned


class Survey:
    """Looks at the files of an index.

    Args:
        root: The workspace folder.
        extra: Folders beside it.
        sessions: Whether session logs count.
    """

    def __init__(self, root: Path, extra: Folders, *, sessions: bool) -> None:
        self._root = root
        self._extra = extra
        self._sessions = sessions

    def plan(self, store: IndexStore, paths: Collection[str], *, missing_ok: bool) -> Planned:
        """What a sync of a store would do, and the states compared; of named files no others are looked at."""
        if paths and all(map(self._names_file, paths)):
            own = [path for path in paths if not path.startswith(EXTRA_MARK)]
            beside = [path for path in paths if path.startswith(EXTRA_MARK)]
            scan, states = scan_paths(self._root, own).joined(self._extra.look(beside)), store.file_states(paths)
        else:
            # Nearly all files are as they were known, and none of their states is fetched.
            known = {} if paths else store.file_stats()
            scan = scan_workspace(self._root, sessions=self._sessions, known=known).joined(self._extra.scan(known))
            states = store.file_states(None if paths else known.keys())
        if not missing_ok:
            _require(paths, scan, states)
        wanted = _below(paths) if paths else None
        return plan_sync(scan, states, wanted=wanted), states

    def _names_file(self, path: str) -> bool:
        """Whether a path can only be that of a file, so that nothing else has to be looked at."""
        if path.startswith(EXTRA_MARK):
            return self._extra.names_file(path)
        return is_memory_path(path) or (self._sessions and is_session_path(path))


def failures(plan: SyncPlan, states: dict[str, FileState]) -> tuple[FileFailure, ...]:
    """What cannot be indexed: folders that cannot be seen, and files, each once."""
    files = (FileFailure(path=state.path, reason=state.failure) for state in states.values() if state.failure)
    return tuple({failure.path: failure for failure in (*plan.failures, *files)}.values())


def _require(paths: Collection[str], scan: Scan, states: dict[str, FileState]) -> None:
    """Make sure that there is something at every one of some paths, as far as can be told.

    Raises:
        SourceMissing: There is not.
    """
    there = {place for path in (*scan.files, *states) for place in with_folders(path)}
    missing = scan.gone(path for path in paths if path.rstrip("/") not in there)
    if missing:
        raise SourceMissing(
            f"There is no memory file, session log or folder {missing[0]!r}. "
            "Run `memory-service status` to see what there is."
        )


def _below(folders: Collection[str]) -> Callable[[str], bool]:
    """Whether a path is one of some files and folders, or below one."""
    named = {folder.rstrip("/") for folder in folders}
    return lambda path: not named.isdisjoint(with_folders(path))
