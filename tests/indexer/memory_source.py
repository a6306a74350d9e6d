"""A `Source` in the memory of one process: the oracle of its contract."""

from __future__ import annotations

import struct
import threading
import time
from collections.abc import Callable, Collection, Mapping
from itertools import count
from pathlib import Path
from typing import NamedTuple

from indexer import SourceMissing
from indexer.sources.base import Content, Scan, SourceFile, content_of, failed_read, with_folders
from indexer.stores.base import FileState, Version
from indexer.types import SourceKind, to_nfc


class _Entry(NamedTuple):
    raw: bytes
    born: int
    changed: int


class MemorySource:
    """Files that are written by calls; the version of each is the number of its beginning and of its last change."""

    name = "notes"

    def __init__(self, files: Mapping[str, str] | None = None) -> None:
        self._files: dict[str, _Entry] = {}
        self._numbers = count(1)
        self._turn = threading.Condition()
        self._changed: set[str] = set()
        self.is_lost = False
        for path, text in (files or {}).items():
            self.write(path, text)

    def write(self, path: str, text: str | bytes) -> None:
        """Write a file, in the place of the one that is there."""
        raw, number = text.encode() if isinstance(text, str) else text, next(self._numbers)
        with self._turn:
            known = self._files.get(path)
            self._files[path] = _Entry(raw, known.born if known else number, number)
            self._tell(path)

    def remove(self, path: str) -> None:
        """Remove a file."""
        with self._turn:
            del self._files[path]
            self._tell(path)

    def _tell(self, path: str) -> None:
        self._changed.add(path)
        self._turn.notify_all()

    def require(self) -> None:
        if self.is_lost:
            raise SourceMissing(f"The notes {self.name} are not there. Bring them back.")

    def scan(self, known: dict[str, Version] | None = None, paths: Collection[str] = ()) -> Scan:
        known = {} if known is None else known
        if known or paths:
            self.require()
        wanted = {path.rstrip("/") for path in paths}
        files, unchanged = dict[str, SourceFile](), 0
        for path in self._files:
            file = self._file(path)
            if wanted and wanted.isdisjoint(with_folders(path)):
                continue
            if known.get(path) == file.version:
                unchanged += len({known.pop(path)})
            else:
                files[path] = file
        whole = not wanted or not all(path in self._files or "." in path for path in wanted)
        return Scan(files=files, unchanged=unchanged, whole=whole)

    def _file(self, path: str) -> SourceFile:
        entry = self._files[path]
        return SourceFile(path, _kind_of(path), len(entry.raw), struct.pack("<QQ", entry.born, entry.changed))

    def read(self, file: SourceFile, *, max_bytes: int) -> Content:
        if file.path not in self._files:
            return failed_read(file, "it vanished while it was read; the next reindex looks again")
        now = self._file(file.path)
        if now.size_bytes > max_bytes:
            return failed_read(now, f"it has {now.size_bytes:,} bytes, more than {max_bytes:,}; split it")
        return content_of(now, self._files[file.path].raw, time.time_ns())

    @property
    def folders(self) -> tuple[Path, ...]:
        return ()

    def spelling(self, path: str) -> str:
        return to_nfc(path)

    def tail(self, path: str, max_bytes: int) -> tuple[bytes, bool]:
        if path not in self._files:
            return b"", False
        raw = self._files[path].raw
        return raw[-max_bytes:], len(raw) <= max_bytes

    def is_settled(self, state: FileState) -> bool:
        return state.checked_ns > 0

    def is_gone(self, file: SourceFile) -> bool:
        if file.path not in self._files:
            return True
        now = self._file(file.path)
        return now.version[:8] != file.version[:8] or now.size_bytes < file.size_bytes

    def watch(self, changed: Callable[[Collection[str]], float], stop: threading.Event) -> None:
        changed(())
        while not stop.is_set():
            with self._turn:
                self._turn.wait_for(lambda: self._changed, timeout=0.05)
                paths, self._changed = self._changed, set()
            if paths:
                changed(paths)


def _kind_of(path: str) -> SourceKind:
    if path.startswith("@"):
        return "files"
    return "sessions" if path.startswith("sessions/") else "memory"
