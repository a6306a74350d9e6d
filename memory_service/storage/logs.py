"""Session logs as every storage engine keeps them: primitives alone, of which `runtime` makes what a session can do.

Invariants: the numbers of a log begin with 1 and each is given once; a batch is there as a whole or not at all, for
every reader; what was answered is durable. An edition names one state of a log's past: as long as it is the same,
records were only added; a log that was deleted, trimmed, restored or rewritten has another, and no edition comes back.
Media are stored by their SHA-256, and a content that any log names stays. Reading creates nothing.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from memory_service.schemas.sessions import ListedSession
from memory_service.sessions.records import Appended, Body, Followed, Record, Repair, TrimRecord
from memory_service.storage.revisions import Revision

# From all records of a log, those that cannot be read as `Unknown`, to the new bodies of some, by their numbers.
Rewrite = Callable[[Iterable[Record]], Mapping[int, Body]]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogStatus:
    """A log as it stands.

    Attributes:
        last_seq: The number of the last record; 0 if there is none.
        size_bytes: Size of the records in bytes, without the media beside them.
        repairs: Faults found in the log since it was opened; for `degraded`.
    """

    last_seq: int
    size_bytes: int
    repairs: tuple[Repair, ...] = ()


class LogChange(NamedTuple):
    """A change of a log: when it was, in nanoseconds since the epoch, and the revision that the log has since."""

    at_ns: int
    revision: Revision


class TrimmedRecords(NamedTuple):
    """Records that a trim put aside, in order; `trim_seq` is the number of the record of that trim."""

    trim_seq: int
    records: Sequence[Record]


class SessionLog(Protocol):
    """The log of one session, there or not; several objects, in several processes, may stand for the same log."""

    def status(self) -> LogStatus:
        """The log as it stands."""

    def foreign(self) -> bytes | None:
        """All of a log that another program wrote, in which no record is ours; None for a log of ours."""

    def follow(self, edition: int = 0, since_seq: int = 0) -> Followed:
        """The records after `since_seq`, as `read` gives them without media; all, if the log is another edition."""

    def read(self, since_seq: int = 0, *, media: bool = True) -> Iterator[Record]:
        """The records after `since_seq` that are there now, in order, one at a time; damaged ones are skipped.

        Args:
            since_seq: The last record that is not wanted.
            media: Whether messages come as they were given; if not, a short note stands for each of the media.

        Raises:
            StorageFailed: The log cannot be read.
        """

    def append(
        self,
        bodies: Sequence[Body],
        *,
        expected_last_seq: int | None = None,
        edition: int = 0,
        at: dt.datetime | None = None,
    ) -> Appended:
        """Appends records, all or none, in one step with its checks; an empty log gets a header first.

        Args:
            bodies: The records, at least one.
            expected_last_seq: The last record that the caller has seen, if that matters.
            edition: That of the log that the records were made from, if that matters: no log is begun then.
            at: The time of the records, with a time zone; the present moment unless given.

        Raises:
            InvalidRequest: A record cannot be written.
            Conflict: The last record is another one, or the log is.
            StorageFailed: The storage did not take them; the log is as it was.
        """

    def message(self, seq: int, *, media: bool = True) -> str:
        """The JSON text of one message, as it was given.

        Raises:
            NotFound: There is no message of that number.
            StorageFailed: The log cannot be read, or what is kept beside it is damaged.
        """

    def content(self, seq: int, number: int) -> bytes:
        """A medium of a message, counted from 1.

        Raises:
            NotFound: There is none of that number.
            StorageFailed: It is damaged or cannot be read.
        """

    def outline(self, *, trimmed: bool = False) -> list[tuple[int, str]]:
        """Number and kind of each record, damaged ones too; of those that trims put aside too, if they are wanted."""

    def trim(self, keep: Collection[int], record: TrimRecord, *, expected_last_seq: int, edition: int) -> str:
        """Puts all records aside but these, and appends a record of that.

        Args:
            keep: Numbers of the records that stay.
            record: The record to append; the engine fills in its `backup` and `lines`.
            expected_last_seq: The last record that the caller has seen.
            edition: That of the log which the caller has read.

        Returns:
            The name of what was put aside.

        Raises:
            Conflict: The last record is another one, or the log is.
            StorageFailed: The storage did not take it; the log is as it was.
        """

    def restore_trim(self) -> None:
        """Takes the last trim back; what was appended since stays.

        Raises:
            NotFound: No trim is left to take back.
            StorageFailed: The storage did not take it; the log is as it was.
        """

    def trims(self) -> Iterator[TrimmedRecords]:
        """Records, with media, that `restore_trim` would bring back: of each trim that can be, the last one first."""

    def hold(self, edition: int) -> AbstractContextManager[None]:
        """Keeps a log from being deleted, trimmed or written to by others; for moments.

        Whoever stores elsewhere what was made from it does so within: it is not stored after the log was erased.

        Args:
            edition: That of the log that was read.

        Raises:
            Conflict: The log is another one now, or there is none.
        """

    def last_change(self) -> LogChange | None:
        """The last change of the log, told without a look into it; None if there is no log."""

    def tail(self, max_bytes: int | None = None) -> tuple[bytes, bool]:
        """The last lines as JSONL, and whether they are all of the log; nothing of one that cannot be read."""


class LogStore(Protocol):
    """The session logs of one workspace.

    Every method that takes the id of a session refuses one that is none with `InvalidName`.
    """

    def list(self) -> list[ListedSession]:
        """All sessions, the last active first.

        Raises:
            StorageFailed: The storage cannot be read.
        """

    def open(self, session_id: str, *, must_exist: bool = True) -> SessionLog:
        """The log of a session.

        Raises:
            NotFound: There is no such log, and there must be one.
        """

    def begin(self, session_id: str, records: Iterable[Record], trims: Iterable[TrimmedRecords] = ()) -> None:
        """Begins a log with records under their numbers and at their times, the first a header.

        Args:
            session_id: The session.
            records: The records; those of kinds that this version does not know, too.
            trims: Records that trims have put aside, as another log gives them. Each trim has its own record among
                `records` or what a later one put aside; the engine fills in its `backup` anew.

        Raises:
            Conflict: There is a log already.
            StorageFailed: The storage did not take them; there is no log then.
        """

    def containing(self, mark: bytes) -> Iterator[str]:
        """Ids of the sessions whose log, as JSONL, has some bytes in it, the last active first."""

    def rewrite(self, session_id: str, change: Rewrite, *, first: Callable[[], None]) -> None:
        """Gives records another body, and removes all that the store still has of the old ones but trims.

        Args:
            session_id: The session.
            change: Gives the new bodies; nothing is done if it raises.
            first: Erases what else was made of the records; nobody writes to the log meanwhile.

        Raises:
            NotFound: There is no such log.
            StorageFailed: The storage did not take it.
        """

    def delete(self, session_id: str, *, first: Callable[[], None] = lambda: None) -> None:
        """Removes a log, what trims and repairs left of it, and the contents that no other log names.

        Args:
            session_id: The session.
            first: Erases what else was made of it; nobody writes to the log meanwhile.

        Raises:
            NotFound: There is no such log.
            StorageFailed: The storage did not let it go; the same again goes on with it.
        """

    def unit(self) -> AbstractContextManager[None]:
        """Has all that one thread stores in the workspace meanwhile last together, where the engine can.

        For moments: no model is called within. Files have no such thing: there each write lasts by itself, in order.

        Raises:
            StorageFailed: The storage did not take it; where the engine can, none of it is there.
        """

    def has_remains(self, session_id: str) -> bool:
        """True if the log of a session, or what a trim or a repair put beside it, is there."""

    def leftovers(self) -> Sequence[str]:
        """Names of what killed writers left half-written, which may hold what is erased."""

    def sweep(self) -> None:
        """Removes these.

        Raises:
            StorageFailed: They cannot be removed.
        """
