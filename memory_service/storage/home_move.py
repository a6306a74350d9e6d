"""A home moved to another storage: documents, logs, records and secrets, whatever engines keep the two.

Invariants: the source is only read; the target was empty, or holds a part of the same move; an item that is equal is
not copied again, so a move that was broken off goes on; nothing counts as moved that was not read again from the
target. An index is not moved, as it is made of the rest; neither are marks of erasures, messages of channels, and what
agents keep of a machine.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

from memory_service.errors import Conflict, InvalidRequest, NotFound, StorageFailed
from memory_service.sessions.codec import draft_copy, encode
from memory_service.sessions.records import Record, TrimRecord
from memory_service.storage.base import SEALING_KEY, Storage, WorkspaceStorage
from memory_service.storage.documents import VERSION_AGE, DocumentStore, DocumentVersion, ListedDocument
from memory_service.storage.logs import LogStore, SessionLog
from memory_service.storage.record_store import RecordKind, RecordStore, StoredRecord

# The place of the home's own items in a report.
HOME = ""
_MARK = "source"
# All but those of a moment, and of a move.
_KINDS = [kind for kind in RecordKind if kind not in (RecordKind.ERASURE, RecordKind.REWRITE, RecordKind.MOVE)]
# A record that goes so soon would be missing when the two are compared.
_SOON = dt.timedelta(hours=1)
# So much of a document is held in memory.
_PIECE_BYTES = 16 * 1024 * 1024


class MovePart(StrEnum):
    """The parts of a workspace that are moved; of the home itself, records and secrets."""

    DOCUMENTS = "documents"
    VERSIONS = "versions"
    SESSIONS = "sessions"
    RECORDS = "records"
    SECRETS = "secrets"


class ItemHash(NamedTuple):
    """An item that is moved: the hash of all that is kept of it, and the size of its content."""

    sha256: str
    size_bytes: int


# Items by part and name.
ItemHashes = Mapping[tuple[MovePart, str], ItemHash]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartMove:
    """A part of a workspace in both places.

    Attributes:
        workspace: The workspace; empty for the home itself.
        items: How many there are in the source.
        copied_items: How many were not in the target before.
        sha256: The hash of all of them in the source, and `target_sha256` in the target.
    """

    workspace: str
    part: MovePart
    items: int
    size_bytes: int
    copied_items: int
    sha256: str
    target_sha256: str

    @property
    def is_equal(self) -> bool:
        """True if the target has the same."""
        return self.sha256 == self.target_sha256


@dataclass(frozen=True, slots=True, kw_only=True)
class HomeMove:
    """A move as it stands.

    Attributes:
        source: Where the home was.
        target: Where it is now.
        was_finished: Whether an earlier run had finished it: then the two were only compared.
        parts: What was moved.
        changes: Items of the source that somebody changed meanwhile.
        remains: What stays in the source, each with the reason.
    """

    source: str
    target: str
    was_finished: bool
    parts: tuple[PartMove, ...]
    changes: tuple[str, ...]
    remains: tuple[str, ...]

    @property
    def is_complete(self) -> bool:
        """True if the target has all that the source has."""
        return not self.changes and all(part.is_equal for part in self.parts)


# Is told the workspace at hand, and how many of its items are looked at and how many there are.
MoveProgress = Callable[[str, int, int], object]


def move_home(
    source: Storage, target: Storage, *, receipt_days: int, progress: MoveProgress = lambda *_: None
) -> HomeMove:
    """Moves a home, or goes on with a move that was broken off; one that was finished is compared again.

    Args:
        source: The home as it is, which nobody writes to meanwhile.
        target: A storage with nothing in it, or with a part of this move.
        receipt_days: How long receipts are kept that tell no end of their own.
        progress: Is told how far the move is.

    Raises:
        InvalidRequest: There is nothing to move.
        Conflict: The target has memories of its own, or an erasure of the source was broken off.
        StorageFailed: One of the two cannot be read or written; the same again goes on.
    """
    names = source.workspaces()
    if not names:
        raise InvalidRequest(f"There is no workspace in {source.place}, so there is nothing to move. Check its name.")
    was_finished = _is_finished(source, target)
    ends = dt.datetime.now(dt.UTC) + _SOON
    move = _Move(source, target, dt.timedelta(days=receipt_days), ends, progress)
    before = {name: move.versions(name) for name in names}
    if not was_finished:
        # There is no home before there is a workspace.
        target.make(names[0])
        _store_mark(source, target, is_finished=False)
    parts = [part for name in (HOME, *names) for part in move.parts(name, copies=not was_finished)]
    changes = [
        change
        for name in sorted({*names, *source.workspaces()})
        for change in _changes(name, before.get(name, {}), move.versions(name))
    ]
    result = HomeMove(
        source=source.place,
        target=target.place,
        was_finished=was_finished,
        parts=tuple(parts),
        changes=tuple(changes),
        remains=tuple(move.remains),
    )
    if result.is_complete and not was_finished:
        _store_mark(source, target, is_finished=True)
    return result


def _is_finished(source: Storage, target: Storage) -> bool:
    """True if the target has all of the source already.

    Raises:
        Conflict: It has something else, or the source is half of another move.
    """
    if source.place == target.place:
        raise InvalidRequest(f"The home would be moved to where it is: {source.place}. Name another place.")
    if (mark := _mark(source)) and not mark["is_finished"]:
        raise Conflict(f"{source.place} has only a part of {mark['source']}. Finish that move first.")
    if mark := _mark(target):
        if mark["source"] != source.place:
            raise Conflict(f"{target.place} has what was moved from {mark['source']}. Name an empty place.")
        return bool(mark["is_finished"])
    for name in target.workspaces():
        workspace = target.workspace(name)
        if workspace.documents.scan().documents or workspace.logs.list():
            raise Conflict(f"{target.place} has memories already, as in the workspace {name}. Name an empty place.")
    secret = target.stored_secret(SEALING_KEY)
    if secret is not None and secret != source.stored_secret(SEALING_KEY):
        raise Conflict(f"{target.place} has a secret of its own, {SEALING_KEY}. Name an empty place.")
    return False


def _mark(storage: Storage) -> dict[str, str | bool]:
    record = storage.records.get(RecordKind.MOVE, _MARK)
    mark: dict[str, str | bool] = json.loads(record.raw) if record else {}
    return mark


def _store_mark(source: Storage, target: Storage, *, is_finished: bool) -> None:
    raw = json.dumps({"source": source.place, "is_finished": is_finished}).encode()
    target.records.put(RecordKind.MOVE, _MARK, raw)


class _Move:
    """The items of both places, and the way from one to the other."""

    def __init__(
        self, source: Storage, target: Storage, receipts_for: dt.timedelta, ends: dt.datetime, progress: MoveProgress
    ) -> None:
        self._source = source
        self._target = target
        self._receipts_for = receipts_for
        self._ends = ends
        self._progress = progress
        self.remains = list[str]()
        self._times = dict[tuple[str, str], dt.datetime]()
        self._replaced = dict[tuple[str, str], DocumentVersion]()

    def parts(self, name: str, *, copies: bool) -> Iterator[PartMove]:
        """The parts of a workspace, copied if they are to be, as they are in both places then."""
        if name and copies:
            self._target.make(name)
        items, there = self._items(self._source, name), self._items(self._target, name)
        if name:
            self.remains += _foreign_logs(name, self._source.workspace(name).logs)
            self.remains += self._versions_left(name)
        missing = [key for key, item in items.items() if there.get(key) != item]
        if copies:
            for key in there.keys() - items.keys():
                self._remove(name, *key)
            for number, key in enumerate(missing):
                self._progress(name, number, len(missing))
                # What went meanwhile is told by the versions.
                with suppress(NotFound):
                    self._copy(name, *key)
            there = self._items(self._target, name) if missing or there.keys() - items.keys() else there
        for part in MovePart:
            own = {key: item for key, item in items.items() if key[0] is part}
            other = {key: item for key, item in there.items() if key[0] is part}
            if own or other:
                yield PartMove(
                    workspace=name,
                    part=part,
                    items=len(own),
                    size_bytes=sum(item.size_bytes for item in own.values()),
                    copied_items=sum(key[0] is part for key in missing) if copies else 0,
                    sha256=_hash_of_items(own),
                    target_sha256=_hash_of_items(other),
                )

    def versions(self, name: str) -> dict[str, bytes]:
        """The versions of all items of a workspace, for a comparison later."""
        workspace = self._source.workspace(name)
        listing = workspace.documents.scan()
        if listing.failures:
            failure = listing.failures[0]
            raise StorageFailed(f"{failure.path} of the workspace {name} cannot be listed. Make it readable.")
        versions = {path: document.revision for path, document in listing.documents.items()}
        for row in workspace.logs.list():
            change = workspace.logs.open(row.session_id).last_change()
            versions[f"the session {row.session_id}"] = b"%d:%s" % change if change else b""
        if any(workspace.records.keys(RecordKind.ERASURE)):
            raise Conflict(
                f"An erasure in the workspace {name} was broken off. Open it once, as with `memory-service status "
                f"--workspace {name}`, which finishes that; then move."
            )
        for kind, key in self._records(workspace.records):
            versions[f"the {kind} {key}"] = workspace.records.version(kind, key) or b""
        return versions

    def _items(self, storage: Storage, name: str) -> dict[tuple[MovePart, str], ItemHash]:
        """All that is kept of a workspace, or of the home itself."""
        items = dict[tuple[MovePart, str], ItemHash]()
        records = storage.workspace(name).records if name else storage.records
        if name:
            workspace = storage.workspace(name)
            for path, document in workspace.documents.scan().documents.items():
                if storage is self._source:
                    self._times[name, path] = document.modified_at
                with suppress(NotFound):
                    items[MovePart.DOCUMENTS, path] = _hash_of_document(workspace.documents, document)
            for key, version in self._versions(name, storage).items():
                if storage is self._source:
                    self._replaced[name, key] = version
                with suppress(NotFound):
                    items[MovePart.VERSIONS, key] = _hash_of_version(workspace.documents, *_version_of(key), version)
            for session_id in _sessions(workspace.logs):
                with suppress(NotFound):
                    items[MovePart.SESSIONS, session_id] = _hash_of_log(workspace.logs.open(session_id))
        elif (secret := storage.stored_secret(SEALING_KEY)) is not None:
            items[MovePart.SECRETS, SEALING_KEY] = ItemHash(hashlib.sha256(secret).hexdigest(), len(secret))
        for kind, key in self._records(records):
            if record := records.get(kind, key):
                digest = hashlib.sha256(f"{record.session}\n".encode() + record.raw).hexdigest()
                items[MovePart.RECORDS, f"{kind}/{key}"] = ItemHash(digest, len(record.raw))
        return items

    def _versions(self, name: str, storage: Storage) -> dict[str, DocumentVersion]:
        """The versions of documents that stay for a while, if both places keep any."""
        if not all(each.workspace(name).documents.has_history for each in (self._source, self._target)):
            return {}
        documents = storage.workspace(name).documents
        return {
            f"{path}@{version.version_id}": version
            for path in documents.scan().documents
            for version in documents.versions(path)
            if version.replaced_at + VERSION_AGE > self._ends
        }

    def _versions_left(self, name: str) -> Iterator[str]:
        """The history that is lost where the target keeps none."""
        documents = self._source.workspace(name).documents
        if documents.has_history and not self._target.workspace(name).documents.has_history:
            if count := sum(len(documents.versions(path)) for path in documents.scan().documents):
                yield f"{name}: {count:,} earlier versions of memory files, as folders keep none"

    def _records(self, records: RecordStore) -> Iterator[tuple[RecordKind, str]]:
        """The records that stay for a while."""
        for kind in _KINDS:
            for key in sorted(records.keys(kind)):
                if record := records.get(kind, key):
                    end = self._end_of(kind, key, record)
                    if end is None or end > self._ends:
                        yield kind, key

    def _end_of(self, kind: RecordKind, key: str, record: StoredRecord) -> dt.datetime | None:
        """The moment from which on a record is gone; files forget receipts by their day, which their key tells."""
        if record.expires or kind is not RecordKind.RECEIPT:
            return record.expires
        return dt.datetime.strptime(key[1:9], "%Y%m%d").replace(tzinfo=dt.UTC) + self._receipts_for

    def _copy(self, name: str, part: MovePart, key: str) -> None:
        """Puts an item of the source into the target."""
        if part is MovePart.SECRETS:
            self._target.store_secret(key, self._source.stored_secret(key) or b"")
        elif part is MovePart.RECORDS:
            self._copy_record(_records_of(self._source, name), _records_of(self._target, name), key)
        elif part is MovePart.DOCUMENTS:
            target = self._target.workspace(name).documents
            _copy_document(self._source.workspace(name).documents, target, key)
            target.set_time(key, self._times[name, key])
        elif part is MovePart.VERSIONS:
            path, version_id = _version_of(key)
            raw = self._source.workspace(name).documents.version(path, version_id)
            self._target.workspace(name).documents.add_version(path, self._replaced[name, key], raw)
        else:
            _copy_log(self._source.workspace(name), self._target.workspace(name), key)

    def _copy_record(self, source: RecordStore, target: RecordStore, item: str) -> None:
        kind_name, _, key = item.partition("/")
        kind = RecordKind(kind_name)
        if record := source.get(kind, key):
            if target.version(kind, key) is not None:
                target.erase(kind, key=key)
            end = self._end_of(kind, key, record)
            target.put(kind, key, record.raw, expected=None, session=record.session, expires=end)

    def _remove(self, name: str, part: MovePart, key: str) -> None:
        """Removes an item that the source had when the move was begun, and has no more."""
        if part is MovePart.RECORDS:
            kind, _, record = key.partition("/")
            _records_of(self._target, name).erase(RecordKind(kind), key=record)
        elif part is MovePart.DOCUMENTS:
            self._target.workspace(name).documents.remove(key)
        elif part is MovePart.VERSIONS:
            path, version_id = _version_of(key)
            documents = self._target.workspace(name).documents
            with suppress(NotFound):  # it went with its document
                gone = documents.version(path, version_id)
                documents.erase_versions(lambda other_path, raw: other_path == path and raw == gone)
        elif part is MovePart.SESSIONS:
            self._target.workspace(name).logs.delete(key)


def _records_of(storage: Storage, name: str) -> RecordStore:
    return storage.workspace(name).records if name else storage.records


def _copy_document(source: DocumentStore, target: DocumentStore, path: str) -> None:
    pieces = _larger_pieces(source.pieces(path))
    first = next(pieces, b"")
    if not target.replace(path, first, expected=target.revision(path), erases=True):
        raise Conflict(f"Somebody else wrote {path} of the target meanwhile. Keep others away, and move again.")
    for piece in pieces:
        target.append(path, piece, expected=target.revision(path))


def _larger_pieces(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes in few pieces, as each is one durable write."""
    gathered = bytearray()
    for piece in pieces:
        gathered += piece
        if len(gathered) >= _PIECE_BYTES:
            yield bytes(gathered)
            gathered.clear()
    yield bytes(gathered)


def _copy_log(source: WorkspaceStorage, target: WorkspaceStorage, session_id: str) -> None:
    log = source.logs.open(session_id)
    if target.logs.open(session_id, must_exist=False).status().last_seq:
        target.logs.delete(session_id)
    target.logs.begin(session_id, log.read(), log.trims())


def _sessions(logs: LogStore) -> list[str]:
    """The sessions whose log is ours, and not empty."""
    return sorted(row.session_id for row in logs.list() if logs.open(row.session_id).status().last_seq)


def _foreign_logs(workspace: str, logs: LogStore) -> Iterator[str]:
    for row in logs.list():
        if row.last_seq is None and logs.open(row.session_id).foreign():
            yield f"{workspace}: the session {row.session_id} is the log of another program, which it stays with"


def _hash_of_document(documents: DocumentStore, document: ListedDocument) -> ItemHash:
    """The hash of the time of a document's last change and of its content."""
    digest, size_bytes = hashlib.sha256(f"{document.modified_at.astimezone(dt.UTC):%FT%T.%f}\n".encode()), 0
    for piece in documents.pieces(document.path):
        digest.update(piece)
        size_bytes += len(piece)
    return ItemHash(digest.hexdigest(), size_bytes)


def _version_of(key: str) -> tuple[str, str]:
    """The path and the id of a version, from the name of its item."""
    path, _, version_id = key.rpartition("@")
    return path, version_id


def _hash_of_version(documents: DocumentStore, path: str, version_id: str, version: DocumentVersion) -> ItemHash:
    """The hash of when a content was replaced, and of that."""
    raw = documents.version(path, version_id)
    digest = hashlib.sha256(f"{version.replaced_at.astimezone(dt.UTC):%FT%T.%f}\n".encode() + raw)
    return ItemHash(digest.hexdigest(), len(raw))


def _hash_of_log(log: SessionLog) -> ItemHash:
    """The hash of all records of a log, with media, and of those that trims have put aside."""
    digest, size_bytes = hashlib.sha256(), 0
    for line in _lines(log.read()):
        digest.update(line)
        size_bytes += len(line)
    for trim_seq, records in log.trims():
        digest.update(b"trim %d\n" % trim_seq)
        for line in _lines(records):
            digest.update(line)
    return ItemHash(digest.hexdigest(), size_bytes)


def _lines(records: Iterable[Record]) -> Iterator[bytes]:
    """Records as lines, which hold the hashes of their media, without the names that an engine gives to trims."""
    for record in records:
        body = record.body
        named = replace(record, body=replace(body, backup="")) if isinstance(body, TrimRecord) else record
        yield encode(draft_copy(named), seq=record.seq, ts=record.ts)


def _hash_of_items(items: ItemHashes) -> str:
    digest = hashlib.sha256()
    for (_, name), item in sorted(items.items()):
        digest.update(f"{name}\0{item.sha256}\n".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def _changes(workspace: str, before: Mapping[str, bytes], after: Mapping[str, bytes]) -> Iterator[str]:
    for item in sorted(before.keys() | after.keys()):
        if before.get(item) != after.get(item):
            yield f"{workspace}: {item}"
