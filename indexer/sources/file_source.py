"""`FileSource`: a workspace folder and the folders beside it, as an index reads them.

Invariants: nothing outside of these folders is listed or read; their files are never written.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from pathlib import Path
from threading import Event

from indexer.sources.base import Content, Scan, SourceFile
from indexer.sources.folders import Folders
from indexer.sources.scan import (
    inode_of,
    is_memory_path,
    is_session_path,
    is_settled,
    no_follow,
    read,
    require_folder,
    scan_paths,
    scan_workspace,
    source_file,
)
from indexer.sources.watch import Watch, Watched
from indexer.stores.base import FileState, Version
from indexer.types import EXTRA_MARK


class FileSource:
    """A `Source` of files: memory files and session logs of a workspace folder, and the files of folders beside it.

    Args:
        root: The workspace folder.
        sessions: Whether session logs are indexed.
        extra: Folders beside the workspace that are indexed with it.
    """

    def __init__(self, root: Path, *, sessions: bool = True, extra: Folders | None = None) -> None:
        self.root = root
        self._sessions = sessions
        self._extra = extra or Folders(root)

    @property
    def name(self) -> str:
        """See `Source`."""
        return self.root.name

    @property
    def folders(self) -> tuple[Path, ...]:
        """The folders whose files are indexed: the workspace's first, then those beside it."""
        return (self.root, *self._extra.places)

    def require(self) -> None:
        """See `Source`."""
        require_folder(self.root)

    def scan(self, versions: dict[str, Version] | None = None, paths: Collection[str] = ()) -> Scan:
        """See `Source`; if only files are named, no others are looked at."""
        if paths and all(map(self._names_file, paths)):
            own = [path for path in paths if not path.startswith(EXTRA_MARK)]
            beside = [path for path in paths if path.startswith(EXTRA_MARK)]
            return scan_paths(self.root, own).merge(self._extra.look(beside))
        if paths:
            self.require()
        versions = {} if versions is None else versions
        scan = scan_workspace(self.root, sessions=self._sessions, versions=versions)
        is_own = paths and not any(path.startswith(EXTRA_MARK) for path in paths)
        return scan if is_own else scan.merge(self._extra.scan(versions))

    def _names_file(self, path: str) -> bool:
        """True if a path can only be that of a file, so that no folder has to be scanned."""
        if path.startswith(EXTRA_MARK):
            return self._extra.names_file(path)
        return is_memory_path(path) or (self._sessions and is_session_path(path))

    def read(self, file: SourceFile, *, max_bytes: int) -> Content:
        """See `Source`."""
        return read(self.root, file, max_bytes=max_bytes, place=self._extra.locate(file.path))

    def tail(self, path: str, max_bytes: int) -> tuple[bytes, bool]:
        """See `Source`."""
        try:
            with open(self.root / path, "rb", opener=no_follow) as stream:
                start = max(0, os.fstat(stream.fileno()).st_size - max_bytes)
                stream.seek(start)
                return stream.read(max_bytes), start == 0
        except OSError:
            return b"", False

    def is_settled(self, state: FileState) -> bool:
        """See `Source`; the clock of a file system has a grain."""
        return is_settled(state)

    def is_gone(self, file: SourceFile) -> bool:
        """See `Source`."""
        place = self._extra.locate(file.path) if file.source == "files" else self.root / file.path
        try:
            now = source_file(file.path, os.lstat(place)) if place else None
        except OSError:
            return True
        return now is None or inode_of(now) != inode_of(file) or now.size_bytes < file.size_bytes

    def spelling(self, path: str) -> str:
        """See `Source`, and `Folders.as_on_disk`."""
        return self._extra.as_on_disk(path)

    def watch(self, changed: Callable[[Collection[str]], float], stop: Event) -> None:
        """See `Source`."""
        root, *extra = self.folders
        home = Watched(root=root, extra=tuple(extra))
        Watch(lambda: [home], lambda _, paths: changed(paths), stop).run()
