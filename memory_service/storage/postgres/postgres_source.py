"""The memory files and session logs of a workspace, in a PostgreSQL database, as an index reads them.

Invariants: a version is the edition and the revision of a row, so it needs no clock; while the rows are those of the
last look, their number and their revisions together say so, and none of them is listed again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from struct import Struct
from threading import Event
from typing import Final, LiteralString

from indexer import (
    Content,
    FileState,
    Scan,
    SourceFile,
    SourceMissing,
    StoreError,
    Version,
    content_of,
    failed_read,
    is_memory_path,
    is_session_path,
    name_fault,
)
from indexer.stores import PostgresDatabase, Transaction
from memory_service.storage.postgres.log_rows import last_lines
from memory_service.storage.postgres.postgres_documents import known_spelling

# While nothing is found, as often as a search looks; longer where a look takes long.
_POLL_SECONDS = 1.0
# What could not be indexed when it changed is tried again so often.
_WHOLE_SECONDS = 10.0
_LOOK_SHARE = 0.05
_VERSION = Struct(">qq")
_VANISHED_FILE = "it vanished while it was read; the next reindex looks again"
_STATE: Final[LiteralString] = """
SELECT (SELECT made_at IS NOT NULL FROM workspaces WHERE ws = %(ws)s), count(*), bit_xor(revision)
FROM (
    SELECT revision FROM documents WHERE ws = %(ws)s UNION ALL SELECT revision FROM sessions WHERE ws = %(ws)s
) everything"""
_FILES: Final[LiteralString] = """
SELECT path, octet_length(content), edition, revision FROM documents
WHERE ws = %(ws)s AND (%(paths)s::text[] IS NULL OR path = ANY(%(paths)s))
UNION ALL SELECT 'sessions/' || session || '.jsonl', size_bytes, edition, revision FROM sessions
WHERE ws = %(ws)s AND (%(sessions)s::text[] IS NULL OR session = ANY(%(sessions)s))"""


class PostgresSource:
    """A `Source` of the rows of one workspace.

    Args:
        database: The database.
        workspace: Name of the workspace.
    """

    folders: tuple[Path, ...] = ()

    def __init__(self, database: PostgresDatabase, workspace: str) -> None:
        self._database = database
        self.name = workspace
        self._look: tuple[object, Sequence[SourceFile]] = None, ()

    def require(self) -> None:
        """See `Source`."""
        with self._reading() as transaction:
            if transaction is None or not (transaction.row(_STATE, {"ws": transaction.workspace}) or [False])[0]:
                raise SourceMissing(f"The workspace {self.name} is not in {self._database.place}. Create it.")

    def scan(self, known: dict[str, Version] | None = None, paths: Collection[str] = ()) -> Scan:
        """See `Source`; if only files are named, no others are looked at."""
        if paths and all(is_memory_path(path) or is_session_path(path) for path in paths):
            with self._reading() as transaction:
                files = [] if transaction is None else _files(transaction, paths)
            return Scan(files={file.path: file for file in files}, whole=False)
        if known or paths:
            self.require()
        known = {} if known is None else known
        changes, known_before = dict[str, SourceFile](), len(known)
        for file in self._all_files():
            if known.get(file.path) == file.version:
                del known[file.path]
            else:
                changes[file.path] = file
        return Scan(files=changes, unchanged=known_before - len(known))

    def _all_files(self) -> Sequence[SourceFile]:
        with self._reading() as transaction:
            if transaction is None:
                return ()
            state, files = self._look
            now = transaction.row(_STATE, {"ws": transaction.workspace})
            if now != state:
                files = _files(transaction)
                self._look = now, files
        return files

    def read(self, file: SourceFile, *, max_bytes: int) -> Content:
        """See `Source`."""
        checked_ns = time.time_ns()
        with self._reading() as transaction:
            now = None if transaction is None else next(iter(_files(transaction, [file.path])), None)
            if transaction is None or now is None:
                return failed_read(file, _VANISHED_FILE)
            if now.size_bytes > max_bytes:
                return failed_read(
                    now, f"it has {now.size_bytes:,} bytes, more than the limit of {max_bytes:,}; split it"
                )
            if file.source == "sessions":
                raw = b"".join([*last_lines(transaction, _session_of(file.path))][::-1])
            else:
                row = transaction.row(
                    "SELECT content FROM documents WHERE ws = %s AND path = %s",
                    [transaction.workspace, file.path],
                    binary=True,
                )
                raw = row[0] if row else b""
        return content_of(now, raw, checked_ns)

    def spelling(self, path: str) -> str:
        """See `Source`."""
        if path.isascii() or name_fault(path, backslash=True):
            return path
        with self._reading() as transaction:
            return (transaction and known_spelling(transaction, path)) or path

    def tail(self, path: str, max_bytes: int) -> tuple[bytes, bool]:
        """See `Source`."""
        lines, size_bytes = list[bytes](), 0
        with self._reading() as transaction:
            for line in last_lines(transaction, _session_of(path)) if transaction else ():
                lines.append(line)
                size_bytes += len(line)
                if size_bytes > max_bytes:
                    break
        return b"".join(reversed(lines))[-max_bytes:], 0 < size_bytes <= max_bytes

    def is_settled(self, state: FileState) -> bool:
        """See `Source`; every change shows in the version."""
        return state.checked_ns > 0

    def is_gone(self, file: SourceFile) -> bool:
        """See `Source`; an edition ends with all that is not an append."""
        with self._reading() as transaction:
            now = None if transaction is None else next(iter(_files(transaction, [file.path])), None)
        if now is None or len(file.version) != _VERSION.size:
            return True
        return now.size_bytes < file.size_bytes or _VERSION.unpack(now.version)[0] != _VERSION.unpack(file.version)[0]

    def watch(self, changed: Callable[[Collection[str]], float], stop: Event) -> None:
        """See `Source`; by looks at the state of the rows, as often as a search looks."""
        state: object = None
        due = 0.0
        while not stop.is_set():
            seconds, start_time = 0.0, time.monotonic()
            try:
                with self._reading() as transaction:
                    now: object = (transaction and transaction.row(_STATE, {"ws": transaction.workspace})) or ()
                seconds = time.monotonic() - start_time
            except StoreError:
                # Whoever looks for changes now learns why it cannot, and once more when it can again.
                now = None
            if now is None or now != state or start_time >= due:
                state, due = now, start_time + _WHOLE_SECONDS
                changed(())
            stop.wait(max(_POLL_SECONDS, seconds / _LOOK_SHARE))

    @contextmanager
    def _reading(self) -> Iterator[Transaction | None]:
        number = self._database.number(self.name)
        if number is None:
            yield None
            return
        with self._database.transaction(number, read_only=True) as transaction:
            yield transaction


def _files(transaction: Transaction, paths: Collection[str] | None = None) -> list[SourceFile]:
    """The files of a workspace, or those of some paths."""
    values = {
        "ws": transaction.workspace,
        "paths": None if paths is None else [path for path in paths if is_memory_path(path)],
        "sessions": None if paths is None else [_session_of(path) for path in paths if is_session_path(path)],
    }
    return [
        SourceFile(
            path, "sessions" if is_session_path(path) else "memory", size_bytes, _VERSION.pack(edition, revision)
        )
        for path, size_bytes, edition, revision in transaction.rows(_FILES, values)
        if is_session_path(path) or is_memory_path(path)
    ]


def _session_of(path: str) -> str:
    """The session that a path is of: the reverse of `session_path`."""
    return path.removeprefix("sessions/").removesuffix(".jsonl")
