"""Owns the look at the files of an index: which there are, compared with what a store knows of them.

Invariants: stat only, no content is read; of files that are named no others are looked at.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from indexer.embeddings.base import Embedder
from indexer.errors import SourceMissing
from indexer.files.folders import Folders
from indexer.files.sources import EXTRA_MARK, is_memory_path, is_session_path, scan_paths, scan_workspace
from indexer.plan import Settled, SyncPlan, plan_sync
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

    def plan(
        self, store: IndexStore, paths: Collection[str], *, embedder: Embedder | None, missing_ok: bool
    ) -> Planned:
        """What a sync of a store would do, and the states compared; of named files no others are looked at."""
        incomplete = store.unembedded_paths() if embedder else set()
        settled: set[str] = set()
        if paths and all(map(self._names_file, paths)):
            own = [path for path in paths if not path.startswith(EXTRA_MARK)]
            beside = [path for path in paths if path.startswith(EXTRA_MARK)]
            scan, states = scan_paths(self._root, own).joined(self._extra.look(beside)), store.file_states(paths)
        else:
            scan = scan_workspace(self._root, sessions=self._sessions).joined(self._extra.scan())
            looked = Settled(scan, incomplete)
            states = store.file_states(unless=None if paths else looked.has)
            settled = looked.paths
        for path in () if missing_ok else paths:
            if not any(_within(known, [path]) for known in (*scan.files, *states)) and scan.covers(path):
                raise SourceMissing(
                    f"There is no memory file, session log or folder {path!r}. "
                    "Run `memory-service status` to see what there is."
                )
        wanted = (lambda path: _within(path, paths)) if paths else None
        plan = plan_sync(scan, states, incomplete=incomplete, settled=settled, wanted=wanted)
        return plan, states

    def _names_file(self, path: str) -> bool:
        """Whether a path can only be that of a file, so that nothing else has to be looked at."""
        if path.startswith(EXTRA_MARK):
            return self._extra.names_file(path)
        return is_memory_path(path) or (self._sessions and is_session_path(path))


def failures(plan: SyncPlan, states: dict[str, FileState]) -> tuple[FileFailure, ...]:
    """What cannot be indexed: folders that cannot be seen, and files, each once."""
    files = (FileFailure(path=state.path, reason=state.failure) for state in states.values() if state.failure)
    return tuple({failure.path: failure for failure in (*plan.failures, *files)}.values())


def _within(path: str, wanted: Collection[str]) -> bool:
    return any(path == folder or path.startswith(folder.rstrip("/") + "/") for folder in wanted)
