"""Interface of a session log, wherever it keeps its records."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from memory_service.schemas.compaction import LedgerEntry
from memory_service.sessions.records import Appended, Body, Followed, Record, Repair, SessionHeader


class SessionLog(Protocol):
    """Store of the records of one session."""

    @property
    def last_seq(self) -> int:
        """The number of the last record; 0 if there is none."""

    @property
    def size_bytes(self) -> int:
        """Size of the records in bytes, without the media beside them."""

    @property
    def header(self) -> SessionHeader | None:
        """The last header; None if the log is empty."""

    @property
    def repairs(self) -> tuple[Repair, ...]:
        """Faults found in the log since it was opened; for `degraded`."""

    def foreign(self) -> bytes | None:
        """The whole file, if it holds lines and none is a record of ours; None for a log of ours."""

    def append(self, bodies: Sequence[Body], *, expected_last_seq: int | None = None, edition: int = 0) -> Appended:
        """Appends records, all or none of them, and waits for the disk; an empty log gets a header first.

        Args:
            bodies: The records, at least one.
            expected_last_seq: The last record that the caller has seen, if that matters.
            edition: That of the log that the records were made from, if that matters: no log is begun then.

        Raises:
            InvalidRequest: A record cannot be written.
            Conflict: The last record is another one, or the log is.
            StorageFailed: The disk did not take them; the log is as it was.
        """

    def begin(self, records: Iterable[Record]) -> None:
        """Begins this log with records of another one, under their numbers and at their times.

        Args:
            records: The first of that log, with their media.

        Raises:
            Conflict: There is a log already.
            StorageFailed: The disk did not take them; there is no log then.
        """

    def held(self, edition: int) -> AbstractContextManager[None]:
        """Keeps a log from being deleted, trimmed or written to by others; for moments.

        Whoever stores elsewhere what was made from it does so within: it is not stored after the log was erased.

        Args:
            edition: That of the log that was read.

        Raises:
            Conflict: The log is another one now, or there is none.
        """

    def follow(self, edition: int = 0, since_seq: int = 0) -> Followed:
        """The records after `since_seq`, as `read` gives them without media; all, if the log is another edition."""

    def read(self, since_seq: int = 0, *, media: bool = True) -> Iterator[Record]:
        """The records after `since_seq`, in order, one at a time; what is damaged is skipped.

        Args:
            since_seq: The last record that is not wanted.
            media: Whether messages come as they were given; if not, a short note stands for each of the media.

        Raises:
            StorageFailed: The log cannot be read.
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

    def trim(
        self,
        keep_last: int,
        *,
        also: Collection[int] = (),
        head: int | None = None,
        ledger: tuple[LedgerEntry, ...] = (),
        expected_last_seq: int | None = None,
        edition: int = 0,
    ) -> str:
        """Shortens the log to its last lines; what the view is built on, such as pins and compactions, stays too.

        Args:
            keep_last: How many lines stay, whatever they are; of the older ones, messages and usage go.
            also: Messages that stay, however old.
            head: The compaction that counts; see `Trimmed`.
            ledger: What it has gathered.
            expected_last_seq: The last record that the caller has seen, if that matters.
            edition: That of the log which the caller has read, if that matters.

        Returns:
            The name of what has the log as it was.

        Raises:
            InvalidRequest: `keep_last` is negative.
            NotFound: There is no log.
            Conflict: The last record is another one, or the log is.
            StorageFailed: The disk did not take it; the log is as it was.
        """

    def restore_trim(self) -> None:
        """Takes the last trim back; what was appended since stays.

        Raises:
            NotFound: No trim is left to take back.
            StorageFailed: The disk did not take it; the log is as it was.
        """
