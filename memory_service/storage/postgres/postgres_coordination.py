"""Coordination of the processes of a home by its database: advisory locks, leases, and messages of channels.

Invariants: a lock goes to those of one process in the order in which they came, and among processes to whoever asks
first; one is lost with the direct line of its process, and who held it gets an error. Notices are hints: each lock is
asked for again, and each channel is looked at, without any. Messages are numbered by the transaction that stores them.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Final, LiteralString

from indexer import StoreError
from indexer.stores import INCARNATION, PostgresDatabase
from memory_service.errors import StorageFailed
from memory_service.storage.coordination import KEPT_MESSAGES, LEASE_SECONDS, LOCK_SECONDS, ChannelMessage, lock_taken
from memory_service.storage.postgres.direct_line import SILENCE_SECONDS, DirectLine, Execute, LineLost
from memory_service.storage.postgres.workspace_rows import storage_errors

_RETRY_SECONDS = 0.05
# The lock of a lease is free for so long before its holder counts as gone: one whose line broke takes it again.
_GRACE_SECONDS = SILENCE_SECONDS
_KEPT_DAYS = 7
_TAKE: Final[LiteralString] = "SELECT pg_try_advisory_lock(%s)"
_STORE_LEASE: Final[LiteralString] = (
    "INSERT INTO leases (name, lock_key) VALUES (%s, %s) "
    "ON CONFLICT (name) DO UPDATE SET taken_at = clock_timestamp(), lost_at = NULL"
)
_PUBLISH: Final[LiteralString] = (
    "WITH head AS (INSERT INTO channels AS c (channel, last_number, incarnation) "
    "VALUES (%(channel)s, %(first)s, " + INCARNATION + ") "
    # Behind all numbers that a database may have given, and taken back: one is given a microsecond at most.
    "ON CONFLICT (channel) DO UPDATE SET incarnation = excluded.incarnation, "
    "last_number = greatest(c.last_number + 1, %(behind)s + 1, CASE WHEN c.incarnation <> excluded.incarnation "
    "THEN (extract(epoch FROM clock_timestamp()) * 1000000)::bigint END) RETURNING last_number), "
    "gone AS (DELETE FROM channel_messages WHERE channel = %(channel)s "
    "AND number <= (SELECT last_number FROM head) - %(kept)s) "
    "INSERT INTO channel_messages (channel, number, raw) SELECT %(channel)s, last_number, %(raw)s FROM head "
    "RETURNING number"
)


class Turns:
    """Who waits for which name in this process, first come first served."""

    def __init__(self) -> None:
        self._changing = threading.Lock()
        self._queues = dict[str, deque[threading.Event]]()

    def enter(self, name: str, seconds: float) -> bool:
        """Wait for a turn; False if it did not come."""
        turn = threading.Event()
        with self._changing:
            queue = self._queues.setdefault(name, deque())
            queue.append(turn)
            if len(queue) == 1:
                turn.set()
        if turn.wait(max(0.0, min(seconds, threading.TIMEOUT_MAX))):
            return True
        with self._changing:
            if not turn.is_set():
                queue.remove(turn)
                return False
        return True

    def leave(self, name: str) -> None:
        """Give the turn to who has waited longest."""
        with self._changing:
            queue = self._queues[name]
            queue.popleft()
            if queue:
                queue[0].set()
            else:
                del self._queues[name]


class PostgresCoordination:
    """The coordination of one home; see `Coordination`.

    Args:
        database: The database.
    """

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database
        self._line = DirectLine(database, self._hear, self._beat)
        self._turns = Turns()
        # The number of the line's connection that each was taken by; changed within the line's mutex.
        self._leases = dict[str, int]()
        self._changing = threading.Lock()
        self._waiting = dict[str, set[threading.Event]]()
        self._followers = dict[str, list[Callable[[], None]]]()
        self._known_numbers = dict[str, int]()
        self._pending = set[str]()
        self._calls = ThreadPoolExecutor(1, thread_name_prefix="messages")

    @contextmanager
    def lock(self, name: str, *, timeout_seconds: float = LOCK_SECONDS) -> Iterator[None]:
        """See `Coordination`; raises `StorageFailed` at its end as well, if it was lost meanwhile."""
        deadline = time.monotonic() + timeout_seconds
        if not self._turns.enter(name, timeout_seconds):
            raise lock_taken(name, timeout_seconds)
        try:
            number = self._take(name, deadline, timeout_seconds)
            try:
                yield
            except BaseException:
                with suppress(StorageFailed):
                    self._give_back(name, number)
                raise
            self._give_back(name, number)
        finally:
            self._turns.leave(name)

    def lane(self, name: str, *, timeout_seconds: float = LOCK_SECONDS) -> AbstractContextManager[None]:
        """See `Coordination`."""
        return self.lock(name, timeout_seconds=timeout_seconds)

    def lease(self, name: str, seconds: float = LEASE_SECONDS) -> Callable[[], None] | None:
        """See `Coordination`; the end of a process is seen in seconds."""
        del seconds
        with storage_errors(), self._line.mutex:
            if self.is_leased(name) or not self._line.rows(_TAKE, [_key(name)])[0][0]:
                return None
            number = self._line.number
            self._line.rows(_STORE_LEASE, [name, _key(name)], number=number)
            self._leases[name] = number
            # Of processes that were killed, and that nobody asked after.
            self._line.rows(
                "DELETE FROM leases WHERE taken_at < now() - make_interval(days => %s) AND name <> ALL(%s) "
                "AND pg_try_advisory_xact_lock_shared(lock_key)",
                [_KEPT_DAYS, list(self._leases)],
            )

        def give_back() -> None:
            with suppress(StoreError), self._line.mutex:
                if self._leases.pop(name, None) is not None:
                    self._line.rows(
                        "WITH gone AS (DELETE FROM leases WHERE name = %s) SELECT pg_advisory_unlock(%s)",
                        [name, _key(name)],
                    )

        return give_back

    def is_leased(self, name: str) -> bool:
        """See `Coordination`."""
        if name in self._leases:
            return True
        with storage_errors():
            rows = self._line.rows(
                "WITH seen AS MATERIALIZED (SELECT name, lost_at, pg_try_advisory_xact_lock_shared(lock_key) is_free "
                "FROM leases WHERE name = %s), marked AS (UPDATE leases SET lost_at = clock_timestamp() "
                "WHERE name = (SELECT name FROM seen WHERE is_free AND lost_at IS NULL)) "
                "SELECT NOT is_free OR lost_at IS NULL OR lost_at > clock_timestamp() - make_interval(secs => %s) "
                "FROM seen",
                [name, _GRACE_SECONDS],
            )
        return bool(rows and rows[0][0])

    def publish(self, channel: str, raw: bytes, *, first: int = 1, behind: int = 0) -> int:
        """See `Coordination`."""
        values = {"channel": channel, "first": first, "behind": behind, "raw": raw, "kept": KEPT_MESSAGES}
        with storage_errors():
            if self._database.is_in_transaction:
                # Told at once, whatever comes of the transaction.
                row = self._line.rows(_PUBLISH, values)[0]
            else:
                with self._database.transaction() as transaction:
                    row = transaction.rows(_PUBLISH, values)[0]
        number = int(row[0])
        self._line.send(f"{_mark(channel)} {number}")
        with self._changing:
            if channel in self._followers:
                self._known_numbers[channel] = max(number, self._known_numbers.get(channel, 0))
        self._tell([channel])
        return number

    def messages(self, channel: str, after: int = 0) -> Sequence[ChannelMessage]:
        """See `Coordination`."""
        with storage_errors(), self._database.transaction(read_only=True) as transaction:
            rows = transaction.rows(
                "SELECT number, raw FROM channel_messages WHERE channel = %s AND number > %s ORDER BY number",
                [channel, after],
            )
        return [ChannelMessage(number, bytes(raw)) for number, raw in rows]

    def follow(self, channel: str, heard: Callable[[], None]) -> Callable[[], None]:
        """See `Coordination`."""
        with self._changing:
            self._followers.setdefault(channel, []).append(heard)
        self._line.begin()

        def end() -> None:
            with self._changing:
                followers = self._followers.get(channel, [])
                with suppress(ValueError):
                    followers.remove(heard)
                if not followers:
                    self._followers.pop(channel, None)
                    self._known_numbers.pop(channel, None)

        return end

    def close(self) -> None:
        """Give back all leases, and listen no more."""
        names = list(self._leases)
        with suppress(StoreError), self._line.mutex:
            if names:
                self._line.rows("DELETE FROM leases WHERE name = ANY(%s)", [names])
        self._line.close()
        self._calls.shutdown()

    def _take(self, name: str, deadline: float, timeout_seconds: float) -> int:
        """Take a lock whose turn it is in this process; gives the number of the connection that holds it."""
        key, free = _key(name), threading.Event()
        with self._changing:
            self._waiting.setdefault(_mark(name), set()).add(free)
        try:
            while True:
                with storage_errors(), self._line.mutex:
                    if self._line.rows(_TAKE, [key])[0][0]:
                        return self._line.number
                left = deadline - time.monotonic()
                if left <= 0:
                    raise lock_taken(name, timeout_seconds)
                free.wait(min(left, _RETRY_SECONDS))
                free.clear()
        finally:
            with self._changing:
                self._waiting[_mark(name)].discard(free)
                if not self._waiting[_mark(name)]:
                    del self._waiting[_mark(name)]

    def _give_back(self, name: str, number: int) -> None:
        try:
            self._line.rows("SELECT pg_advisory_unlock(%s)", [_key(name)], number=number)
        except LineLost:
            raise StorageFailed(
                f"The lock {name} was lost, as the connection to the database was: others may have worked at the same "
                "time. Look at what is stored, and try again."
            ) from None
        except StoreError as error:
            raise StorageFailed(str(error)) from error
        self._line.send(_mark(name))

    def _beat(self, execute: Execute) -> None:
        """Take leases again that went with a former connection, and look for messages whose notices were lost."""
        for name, number in list(self._leases.items()):
            if number != self._line.number and execute(_TAKE, [_key(name)])[0][0]:
                execute(_STORE_LEASE, [name, _key(name)])
                self._leases[name] = self._line.number
        with self._changing:
            channels = list(self._followers)
        if channels:
            for channel, number in execute(
                "SELECT channel, last_number FROM channels WHERE channel = ANY(%s)", [channels]
            ):
                self._note(channel, number)

    def _hear(self, notice: str) -> None:
        """Take a notice: that a lock is free, or the number of a message."""
        mark, _, number = notice.partition(" ")
        with self._changing:
            for free in self._waiting.get(mark, ()):
                free.set()
            channels = [channel for channel in self._followers if number and _mark(channel) == mark]
        for channel in channels:
            self._note(channel, int(number))

    def _note(self, channel: str, number: int) -> None:
        """Have the followers of a channel called if it has a message that they have not heard of."""
        with self._changing:
            if number <= self._known_numbers.get(channel, 0):
                return
            self._known_numbers[channel] = number
            is_scheduled = bool(self._pending)
            self._pending.add(channel)
        if not is_scheduled:
            # Followers ask the database, which the thread of the line does not wait for.
            self._calls.submit(self._tell_pending)

    def _tell_pending(self) -> None:
        with self._changing:
            channels, self._pending = self._pending, set()
        self._tell(channels)

    def _tell(self, channels: Collection[str]) -> None:
        with self._changing:
            followers = [call for channel in channels for call in self._followers.get(channel, ())]
        for call in followers:
            call()


def _key(name: str) -> int:
    """The number of a lock."""
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "big", signed=True)


def _mark(name: str) -> str:
    """A name in notices, which hold no names."""
    return hashlib.blake2b(name.encode(), digest_size=8).hexdigest()
