"""Records and coordination in the memory of one process: the second implementation of their protocols, for tests."""

from __future__ import annotations

import datetime as dt
import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from memory_service.errors import StorageFailed
from memory_service.memories.erasures import Erasures
from memory_service.runtime.background import Operations
from memory_service.runtime.events import EventHub
from memory_service.runtime.presence import Presence
from memory_service.storage.coordination import KEPT_MESSAGES, LEASE_SECONDS, LOCK_SECONDS, ChannelMessage
from memory_service.storage.record_store import ANY, RecordKind, RecordVersion, StoredRecord


@dataclass(frozen=True)
class _Row:
    record: StoredRecord
    session: str
    expires: dt.datetime | None


class MemoryRecords:
    """See `RecordStore`."""

    def __init__(self) -> None:
        self._rows = dict[tuple[RecordKind, str], _Row]()
        self._numbers = itertools.count(1)
        self._changing = threading.RLock()

    def get(self, kind: RecordKind, key: str) -> StoredRecord | None:
        with self._changing:
            row = self._rows.get((kind, key))
            return row.record if row is not None and not _is_over(row) else None

    def version(self, kind: RecordKind, key: str) -> RecordVersion | None:
        found = self.get(kind, key)
        return found.version if found else None

    def put(
        self,
        kind: RecordKind,
        key: str,
        raw: bytes,
        *,
        expected: RecordVersion | None = ANY,
        session: str = "",
        expires: dt.datetime | None = None,
    ) -> RecordVersion | None:
        with self._changing:
            if expected not in (ANY, self.version(kind, key)):
                return None
            self._rows.pop((kind, key), None)
            version = b"%d" % next(self._numbers)
            self._rows[kind, key] = _Row(StoredRecord(raw, version, session, expires), session, expires)
            return version

    def erase(self, kind: RecordKind, *, key: str = "", session: str = "") -> int:
        with self._changing:
            gone = [
                at
                for at, row in self._rows.items()
                if at[0] is kind and key in ("", at[1]) and session in ("", row.session)
            ]
            for at in gone:
                del self._rows[at]
            return len(gone)

    def keys(self, kind: RecordKind) -> Iterator[str]:
        with self._changing:
            return iter([key for (other, key), row in self._rows.items() if other is kind and not _is_over(row)])

    def newest(self, kind: RecordKind, *, session: str = "") -> Iterator[tuple[str, StoredRecord]]:
        with self._changing:
            rows = [(key, row.record) for (of, key), row in self._rows.items() if of is kind and not _is_over(row)]
        return (pair for pair in reversed(rows) if session in ("", pair[1].session))

    def trim(self, kind: RecordKind, *, most: int, most_bytes: int) -> None:
        with self._changing:
            size, count = 0, 0
            for at, row in reversed([each for each in self._rows.items() if each[0][0] is kind]):
                if not _is_over(row):
                    size, count = size + len(row.record.raw), count + 1
                if _is_over(row) or count > most or size > most_bytes:
                    del self._rows[at]

    def sweep(self) -> None:
        """See `RecordStore`."""

    def leftovers(self) -> list[str]:
        return []


def _is_over(row: _Row) -> bool:
    return row.expires is not None and row.expires <= dt.datetime.now(dt.UTC)


class MemoryCoordination:
    """See `Coordination`."""

    def __init__(self) -> None:
        self._changing = threading.RLock()
        self._locks = dict[str, threading.Lock]()
        self._leases = set[str]()
        self._channels = dict[str, list[ChannelMessage]]()
        self._followers = dict[str, list[Callable[[], None]]]()

    @contextmanager
    def lock(self, name: str, *, timeout_seconds: float = LOCK_SECONDS) -> Iterator[None]:
        with self._changing:
            lock = self._locks.setdefault(name, threading.Lock())
        if not lock.acquire(timeout=timeout_seconds):
            raise StorageFailed(f"The lock {name} was not free.")
        try:
            yield
        finally:
            lock.release()

    def lane(self, name: str, *, timeout_seconds: float = LOCK_SECONDS) -> AbstractContextManager[None]:
        return self.lock(name, timeout_seconds=timeout_seconds)

    def lease(self, name: str, seconds: float = LEASE_SECONDS) -> Callable[[], None] | None:
        with self._changing:
            if name in self._leases:
                return None
            self._leases.add(name)
            return lambda: self._leases.discard(name)

    def is_leased(self, name: str) -> bool:
        return name in self._leases

    def publish(self, channel: str, raw: bytes, *, first: int = 1, behind: int = 0) -> int:
        with self._changing:
            kept = self._channels.setdefault(channel, [])
            number = max(kept[-1].number, behind) + 1 if kept else first
            kept.append(ChannelMessage(number, raw))
            del kept[:-KEPT_MESSAGES]
            followers = [*self._followers.get(channel, ())]
        for heard in followers:
            heard()
        return number

    def messages(self, channel: str, after: int = 0) -> Sequence[ChannelMessage]:
        with self._changing:
            return [message for message in self._channels.get(channel, ()) if message.number > after]

    def follow(self, channel: str, heard: Callable[[], None]) -> Callable[[], None]:
        with self._changing:
            self._followers.setdefault(channel, []).append(heard)
        return lambda: self._followers[channel].remove(heard)


def event_hub(now: Callable[[], dt.datetime] = lambda: dt.datetime.now(dt.UTC)) -> EventHub:
    """A hub of one process."""
    coordination = MemoryCoordination()
    return EventHub(coordination, Presence(coordination), now)


def new_operations() -> Operations:
    """The operations of one process, whose workspaces keep nothing of each other."""
    kept = dict[str, MemoryRecords]()
    return Operations(lambda name: kept.setdefault(name, MemoryRecords()), Presence(MemoryCoordination()))


def erasures() -> Erasures:
    """The erasures of a workspace that no other process works on."""
    return Erasures(MemoryRecords(), MemoryCoordination(), "w")
