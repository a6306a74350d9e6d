"""Small records of a home or a workspace, by kind and key: what every engine of storage gives, and nothing else.

Invariants: a record is there as a whole or not at all; a version is given once, so a record that was erased and stored
again has another one; a put that names a version stores nothing if the record has another; a record that has expired
is gone for every reader.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol, TypeAlias

# Opaque: files pack the state of a file, a database its number.
RecordVersion: TypeAlias = bytes
# In the place of an expected version: whatever is there.
ANY: Final[RecordVersion] = b"*"


class RecordKind(StrEnum):
    """The kinds of records."""

    # A JSON object that begins with its `receipt_id`, which is its key; stored once.
    RECEIPT = "receipt"
    # One, empty, while something is erased: durable when it is stored.
    ERASURE = "erasure"
    # By session.
    PROMPT = "prompt"
    # How far the conversation of a host was read, by its session.
    PROGRESS = "host progress"
    OPERATION = "operation"
    REPLY = "reply"
    # An answer that may hold what was said, so that it is erased with that.
    SESSION_REPLY = "session reply"
    # One for each erasure, of a home: what it deleted is in the engine's own files until these are rewritten.
    REWRITE = "rewrite"
    # One, of a home: where it was moved from.
    MOVE = "move"
    # A key without its secret, and the time at which it was used last; of the home.
    KEY = "key"
    KEY_USE = "key use"


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """A record, with the version that a put in its place names.

    Attributes:
        session: The session that it is erased with; empty for none.
        expires: The moment from which on it is gone; None if it stays, or goes when the engine makes room.
    """

    raw: bytes
    version: RecordVersion
    session: str = ""
    expires: dt.datetime | None = None


class RecordStore(Protocol):
    """The records of one workspace, or of the home itself.

    Every method raises `StorageFailed` if the storage does not do it; then nothing has changed.
    """

    def get(self, kind: RecordKind, key: str) -> StoredRecord | None:
        """A record; None if there is none."""

    def version(self, kind: RecordKind, key: str) -> RecordVersion | None:
        """The version of a record, without its content; None if there is none."""

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
        """Store a record.

        Args:
            kind: Its kind.
            key: Its key.
            raw: Its content.
            expected: The version that it takes the place of; None if there must be none. So a claim is a put that
                expects none, and of several that claim at once one gets it.
            session: The session that it is erased with.
            expires: The moment from which on it is gone.

        Returns:
            The version; None if another one stands there, and nothing was stored.
        """

    def erase(self, kind: RecordKind, *, key: str = "", session: str = "") -> int:
        """Erase the records of a kind: one, those of a session, or all; gives their number. No byte of them is left."""

    def keys(self, kind: RecordKind) -> Iterator[str]:
        """The keys of all records of a kind."""

    def newest(self, kind: RecordKind, *, session: str = "") -> Iterator[tuple[str, StoredRecord]]:
        """The records of a kind, of a session or of all, with their keys, the last stored first, prompts in any order.

        They are fetched some at a time, and those that cannot be read are left out.
        """

    def trim(self, kind: RecordKind, *, most: int, most_bytes: int) -> None:
        """Remove what has expired, and the oldest until as many and as much are left."""

    def sweep(self) -> None:
        """Remove what killed writers left half-written."""

    def leftovers(self) -> list[str]:
        """Names of the files that killed writers left."""
