"""Memory files of a workspace as rows of a PostgreSQL database.

Invariants: a change is one statement, which compares the revision itself; a revision is random, so none comes back,
even where a standby or a backup does not know the last ones; a path is a name and no folder of another document.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from struct import Struct
from struct import error as StructError
from typing import Any, Final, LiteralString

from indexer import name_fault, to_nfc
from indexer.stores import PostgresDatabase, Transaction
from memory_service.errors import InvalidName, NotFound, TooLarge
from memory_service.home import shown_name
from memory_service.storage.documents import (
    MAX_VERSION_BYTES,
    MAX_VERSIONS,
    VERSION_AGE,
    Document,
    DocumentVersion,
    ListedDocument,
    Listing,
)
from memory_service.storage.postgres.workspace_rows import WorkspaceRows, new_state
from memory_service.storage.revisions import Revision

# As files: more than memory may have room for, at once.
_MAX_READ_BYTES = 64 * 1024 * 1024
_MAX_SEGMENT_BYTES = 255
# An index of PostgreSQL takes keys of up to 2,704 bytes.
_MAX_PATH_BYTES = 2048
_REVISION = Struct(">q")
_BOUNDS: Final = {"age": VERSION_AGE, "most_versions": MAX_VERSIONS, "most_bytes": MAX_VERSION_BYTES}
# So much of a history is in memory at once, and a version more.
_CHUNK_BYTES = 16 * 1024 * 1024

_READ: Final[LiteralString] = """
SELECT revision, octet_length(content), CASE WHEN octet_length(content) <= %(most)s THEN content END
FROM documents WHERE ws = %(ws)s AND path = %(path)s"""
_IN_THE_WAY: Final[LiteralString] = """
SELECT FROM documents
WHERE ws = %(ws)s AND (path = ANY(%(folders)s) OR (path > %(path)s || '/' AND path < %(path)s || '0'))"""
_INSERT: Final[LiteralString] = (
    """
INSERT INTO documents (ws, path, composed, edition, revision, content)
SELECT %(ws)s, %(path)s, %(composed_path)s, %(revision)s, %(revision)s, %(raw)s WHERE NOT EXISTS ("""
    + _IN_THE_WAY
    + ") ON CONFLICT (ws, path) DO NOTHING RETURNING 1"
)
_REPLACE: Final[LiteralString] = """
UPDATE documents SET content = %(raw)s, edition = %(revision)s, revision = %(revision)s, changed_at = clock_timestamp()
WHERE ws = %(ws)s AND path = %(path)s AND revision = %(before)s RETURNING 1"""
# A revision stands for one content: that of the snapshot is the one that is replaced, if it is replaced at all.
_REPLACE_WITH_HISTORY: Final[LiteralString] = (
    """
WITH before AS (
    SELECT content FROM documents WHERE ws = %(ws)s AND path = %(path)s AND revision = %(before)s
), after AS ("""
    + _REPLACE
    + """), added AS (
    INSERT INTO document_versions (ws, path, version, replaced_at, content)
    SELECT %(ws)s, %(path)s, %(before)s, clock_timestamp(), content FROM before, after
    WHERE substr(%(raw)s, 1, octet_length(content)) <> content
    RETURNING octet_length(content) AS size_bytes
), older AS (
    SELECT version, row_number() OVER newest AS place, sum(octet_length(content)) OVER newest AS size_bytes
    FROM document_versions WHERE ws = %(ws)s AND path = %(path)s
    WINDOW newest AS (ORDER BY replaced_at DESC, version)
), gone AS (
    DELETE FROM document_versions v USING added WHERE v.ws = %(ws)s AND (
        v.replaced_at <= now() - %(age)s OR (v.path = %(path)s AND v.version IN (
            SELECT version FROM older
            WHERE place >= %(most_versions)s OR older.size_bytes + added.size_bytes > %(most_bytes)s
        ))
    )
)
SELECT 1 FROM after"""
)
_APPEND: Final[LiteralString] = """
UPDATE documents SET content = content || %(raw)s, revision = %(revision)s, changed_at = clock_timestamp()
WHERE ws = %(ws)s AND path = %(path)s AND revision = %(before)s RETURNING 1"""

_SET_TIME: Final[LiteralString] = (
    "UPDATE documents SET changed_at = %(modified_at)s WHERE ws = %(ws)s AND path = %(path)s RETURNING 1"
)
_REMOVE: Final[LiteralString] = """
WITH gone AS (
    DELETE FROM documents WHERE ws = %(ws)s AND path = %(path)s
    AND (%(revision)s::bigint IS NULL OR revision = %(revision)s) RETURNING path
), versions AS (DELETE FROM document_versions v USING gone WHERE v.ws = %(ws)s AND v.path = gone.path)
SELECT 1 FROM gone"""
_VERSIONS: Final[LiteralString] = """
SELECT version, replaced_at, octet_length(content) FROM document_versions
WHERE ws = %(ws)s AND path = %(path)s AND replaced_at > now() - %(age)s ORDER BY replaced_at DESC, version"""
_ADD_VERSION: Final[LiteralString] = """
INSERT INTO document_versions (ws, path, version, replaced_at, content)
VALUES (%(ws)s, %(path)s, %(version)s, %(replaced_at)s, %(raw)s) ON CONFLICT DO NOTHING RETURNING 1"""
_ERASE_VERSIONS: Final[LiteralString] = """
DELETE FROM document_versions v USING unnest(%(paths)s::text[], %(versions)s::bigint[]) gone(path, version)
WHERE v.ws = %(ws)s AND v.path = gone.path AND v.version = gone.version RETURNING 1"""


class PostgresDocuments:
    """The memory files of one workspace; see `DocumentStore`.

    Args:
        database: The database.
        workspace: Name of the workspace, which the first write makes.
        lock: Keeps all other writers out while a block runs.
    """

    def __init__(
        self,
        database: PostgresDatabase,
        workspace: str,
        *,
        lock: Callable[[], AbstractContextManager[None]],
    ) -> None:
        self._rows = WorkspaceRows(database, workspace)
        self._lock = lock

    def scan(self) -> Listing:
        """All documents; none where there is no workspace yet."""
        rows = self._rows.read("SELECT path, octet_length(content), changed_at, revision FROM documents WHERE ws = %s")
        return Listing(
            documents={
                path: ListedDocument(path, size_bytes, changed_at, _REVISION.pack(revision), is_settled=True)
                for path, size_bytes, changed_at, revision in rows
            }
        )

    def spelling(self, path: str) -> str:
        """A path as it is stored; one of a new document is in NFC, below the folders that are there."""
        if path.isascii() or name_fault(path, backslash=True):
            return path
        composed_path = to_nfc(path)
        with self._rows.reading() as transaction:
            if transaction is None:
                return composed_path
            return known_spelling(transaction, path) or _below_known_folders(transaction, composed_path)

    def revision(self, path: str) -> Revision | None:
        """The revision of a document as it is now; None if there is none."""
        row = self._row("SELECT revision FROM documents WHERE ws = %(ws)s AND path = %(path)s", path)
        return None if row is None else _REVISION.pack(row[0])

    def read(self, path: str) -> Document:
        """One document."""
        row = self._row(_READ, path, most=_MAX_READ_BYTES)
        if row is None:
            raise _no_document(path)
        revision, size_bytes, raw = row
        if raw is None:
            raise TooLarge(f"The file {path} has {size_bytes:,} bytes, and {_MAX_READ_BYTES:,} can be read. Split it.")
        return Document(raw, _REVISION.pack(revision))

    def pieces(self, path: str) -> Iterator[bytes]:
        """The content of a document of any size."""
        row = self._row("SELECT content FROM documents WHERE ws = %(ws)s AND path = %(path)s", path)
        if row is None:
            raise _no_document(path)
        yield row[0]

    def containing(self, word: bytes, paths: Collection[str]) -> list[str]:
        """Those of some documents, of any size, that have a word."""
        rows = self._rows.read(
            "SELECT path FROM documents WHERE ws = %s AND path = ANY(%s) AND position(%s::bytea IN content) > 0",
            [path for path in paths if not name_fault(path, backslash=True)],
            word,
        )
        there = {path for (path,) in rows}
        return [path for path in paths if path in there]

    def replace(
        self,
        path: str,
        raw: bytes,
        *,
        expected: Revision | None,
        blanks: Callable[[], Iterable[bytes]] | None = None,
        erases: bool = False,
    ) -> bool:
        """Puts a content in the place of the one of a revision, in one step; no row goes through `blanks`."""
        if expected is None:
            return self._insert(path, raw) is not None
        query = _REPLACE if erases else _REPLACE_WITH_HISTORY
        return self._update(query, path, raw, expected) is not None

    def append(self, path: str, raw: bytes, *, expected: Revision | None) -> Revision | None:
        """Appends to the content of a revision."""
        if expected is None:
            return self._insert(path, raw)
        if not raw:
            return expected if self.revision(path) == expected else None
        return self._update(_APPEND, path, raw, expected)

    def remove(self, path: str, *, expected: Revision | None = None) -> bool:
        """Removes a document, or only one of a revision."""
        _check(path)
        is_done = self._rows.are_there and bool(
            self._rows.write(_REMOVE, {"path": path, "revision": _number(expected)})
        )
        if not is_done and expected is None:
            raise _no_document(path)
        return is_done

    def set_time(self, path: str, modified_at: dt.datetime) -> None:
        """Gives a document the time of its last change."""
        _check(path)
        if not self._rows.are_there or not self._rows.write(_SET_TIME, {"path": path, "modified_at": modified_at}):
            raise _no_document(path)

    @property
    def has_history(self) -> bool:
        """True."""
        return True

    def versions(self, path: str) -> Sequence[DocumentVersion]:
        """The versions of a document, the last replaced first."""
        _check(path)
        rows = self._rows.read(_VERSIONS, path=path, age=VERSION_AGE)
        return [DocumentVersion(_REVISION.pack(version).hex(), *row) for version, *row in rows]

    def version(self, path: str, version_id: str) -> bytes:
        """The content of a version."""
        query: LiteralString = (
            "SELECT content FROM document_versions WHERE ws = %(ws)s AND path = %(path)s AND version = %(version)s "
            "AND replaced_at > now() - %(age)s"
        )
        row = self._row(query, path, version=_version_number(version_id), age=VERSION_AGE)
        if row is None:
            raise NotFound(f"There is no version {shown_name(version_id)} of {path}. List its versions.")
        return bytes(row[0])

    def add_version(self, path: str, version: DocumentVersion, raw: bytes) -> None:
        """Puts a version of another store here."""
        _check(path)
        number = _version_number(version.version_id)
        values = {"path": path, "version": number, "replaced_at": version.replaced_at, "raw": raw}
        self._rows.write(_ADD_VERSION, values)

    def erase_versions(self, holds: Callable[[str, bytes], bool]) -> int:
        """Erases the versions of which a function is true, which are fetched some at a time."""
        rows = self._rows.read("SELECT path, version, octet_length(content) FROM document_versions WHERE ws = %s")
        gone = [pair for chunk in _chunks(rows) for pair in self._versions_among(chunk, holds)]
        if not gone:
            return 0
        paths, versions = map(list, zip(*gone, strict=True))
        return len(self._rows.write(_ERASE_VERSIONS, {"paths": paths, "versions": versions}))

    def _versions_among(
        self, pairs: Sequence[tuple[str, int]], holds: Callable[[str, bytes], bool]
    ) -> Iterator[tuple[str, int]]:
        """Those of some versions of which a function is true."""
        query: LiteralString = (
            "SELECT v.path, v.version, content FROM document_versions v, "
            "unnest(%(paths)s::text[], %(versions)s::bigint[]) wanted(path, version) "
            "WHERE v.ws = %(ws)s AND v.path = wanted.path AND v.version = wanted.version"
        )
        paths, versions = map(list, zip(*pairs, strict=True))
        for path, version, raw in self._rows.read(query, paths=paths, versions=versions):
            if holds(path, bytes(raw)):
                yield path, version

    def writing(self) -> AbstractContextManager[None]:
        """Keeps all other writers of the service out."""
        return self._lock()

    def leftovers(self) -> Sequence[str]:
        """Nothing: what was not committed is not there."""
        return ()

    def sweep(self) -> None:
        """Nothing is left over."""

    def _row(self, query: LiteralString, path: str, **values: object) -> tuple[Any, ...] | None:
        """The row of a document."""
        _check(path)
        return next(iter(self._rows.read(query, path=path, **values)), None)

    def _insert(self, path: str, raw: bytes) -> Revision | None:
        """Makes a document; None if there is one."""
        _check(path)
        parts = path.split("/")
        folders = ["/".join(parts[:count]) for count in range(1, len(parts))]
        revision = self._write(_INSERT, path, raw, composed_path=to_nfc(path), folders=folders)
        if revision is None and self.revision(path) is None and self._blocks(path, folders):
            raise InvalidName(f"The path {shown_name(path)} takes a file for a folder. Choose another one.")
        return revision

    def _blocks(self, path: str, folders: Sequence[str]) -> bool:
        """True if another document stands where a folder of a path would be, or below the path."""
        return bool(self._rows.read("SELECT WHERE EXISTS (" + _IN_THE_WAY + ")", path=path, folders=folders))

    def _update(self, query: LiteralString, path: str, raw: bytes, before: Revision) -> Revision | None:
        """Changes a document of a revision; None if it has another one."""
        _check(path)
        return self._write(query, path, raw, before=_number(before)) if self._rows.are_there else None

    def _write(self, query: LiteralString, path: str, raw: bytes, **values: object) -> Revision | None:
        """The new revision of a document; None if the statement found nothing to change."""
        revision = new_state()
        values |= {"path": path, "raw": raw, "revision": revision, **_BOUNDS}
        return _REVISION.pack(revision) if self._rows.write(query, values) else None


def known_spelling(transaction: Transaction, path: str) -> str | None:
    """The path of a document in any Unicode form, as it is stored; None if there is none."""
    row = transaction.row(
        "SELECT path FROM documents WHERE ws = %s AND composed = %s "
        "ORDER BY path <> %s, path <> composed, path LIMIT 1",
        [transaction.workspace, to_nfc(path), path],
    )
    return None if row is None else str(row[0])


def _below_known_folders(transaction: Transaction, composed_path: str) -> str:
    """The path of a new document: the folders of others as they are spelled there, the rest composed."""
    parts = composed_path.split("/")
    for count in range(len(parts) - 1, 0, -1):
        above = "/".join(parts[:count])
        row = transaction.row(
            "SELECT path FROM documents WHERE ws = %s AND composed > %s AND composed < %s ORDER BY path LIMIT 1",
            [transaction.workspace, f"{above}/", f"{above}0"],
        )
        if row is not None:
            return "/".join([*row[0].split("/")[:count], *parts[count:]])
    return composed_path


def _number(revision: Revision | None) -> int | None:
    """A revision as its row has it; one of another engine is that of no row."""
    if revision is None:
        return None
    return int(_REVISION.unpack(revision)[0]) if len(revision) == _REVISION.size else 0


def _version_number(version_id: str) -> int:
    """The number of a version; 0, which none has, for an id that is none."""
    try:
        return int(_REVISION.unpack(bytes.fromhex(version_id))[0])
    except (ValueError, StructError):
        return 0


def _chunks(rows: Iterable[tuple[Any, ...]]) -> Iterator[list[tuple[str, int]]]:
    """Versions, in parts that can be in memory at once."""
    chunk, size_bytes = list[tuple[str, int]](), 0
    for path, version, length in rows:
        chunk.append((path, version))
        size_bytes += length
        if size_bytes >= _CHUNK_BYTES:
            yield chunk
            chunk, size_bytes = [], 0
    if chunk:
        yield chunk


def _check(path: str) -> None:
    """Makes sure that a path is one of a document.

    Raises:
        InvalidName: It would leave the workspace, or cannot be stored.
    """
    parts = path.split("/")
    fault = name_fault(path, backslash=True)
    if fault:
        raise InvalidName(f"The path {shown_name(path)} {fault}. Choose another one.")
    if any(not part or part.startswith(".") for part in parts):
        raise InvalidName(f"The path {shown_name(path)} would leave the workspace. Choose another one.")
    if any(len(part.encode()) > _MAX_SEGMENT_BYTES for part in parts):
        raise InvalidName(
            f"The path {shown_name(path)} has a part of more than {_MAX_SEGMENT_BYTES} bytes. Choose a shorter one."
        )
    if len(path.encode()) > _MAX_PATH_BYTES:
        raise InvalidName(f"The path {shown_name(path)} has more than {_MAX_PATH_BYTES:,} bytes. Choose a shorter one.")


def _no_document(path: str) -> NotFound:
    return NotFound(f"There is no file {path}. List the files of the workspace to see what is there.")
