"""A storage: everything that the service keeps for one home, in one engine.

Invariants: a workspace that is looked at is not made; names are checked here; what stands above the protocols names no
engine, and touches no disk and no database.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from memory_service.storage.coordination import Coordination
from memory_service.storage.documents import DocumentStore
from memory_service.storage.record_store import RecordStore

if TYPE_CHECKING:
    from indexer import IndexStore, Source
    from memory_service.schemas.base import PendingErasure
    from memory_service.storage.home_join import HomeJoin
    from memory_service.storage.logs import LogStore


# Name of the secret by which references to compactions are sealed.
SEALING_KEY = "sealing.key"


@dataclass(frozen=True, kw_only=True)
class WorkspaceStorage:
    """The parts of the storage that are of one workspace, which need not be there.

    Attributes:
        documents: Its memory files.
        records: Its small records.
        scratch: A folder of this machine for what is derived, such as an index; on files that of the workspace.
        open_logs: Makes `logs`; many calls need none, and the code of logs is not loaded for them.
        open_source: Makes what its index is made of: documents, logs, and on this machine folders beside them.
        open_index: Makes the store of its index.
        read_extra: Reads a file of a folder beside it, whose path is as its index lists it; `NotFound` where there is
            no such file, as in an engine that has no folders.
    """

    documents: DocumentStore
    records: RecordStore
    scratch: Path
    open_logs: Callable[[], LogStore]
    open_source: Callable[[], Source]
    open_index: Callable[[], IndexStore]
    read_extra: Callable[[str], bytes]

    @cached_property
    def logs(self) -> LogStore:
        """The logs of its sessions."""
        return self.open_logs()


class WorkspaceContents(NamedTuple):
    """Numbers on a workspace, told without an index.

    Attributes:
        modified_at: Time of the last change of a document or a log; where there is none, of the workspace.
        project: The folder of the coding agent's project that it is of; empty for none.
    """

    documents: int
    sessions: int
    modified_at: dt.datetime
    project: str


class StorageCheck(NamedTuple):
    """A part that an engine stands on, tried by using it.

    Attributes:
        remedy: What mends it; empty if it is sound.
    """

    name: str
    detail: str
    remedy: str


class Storage(Protocol):
    """The storage of a home.

    Every method that takes the name of a workspace raises `InvalidName` for one that cannot be such a name, and
    `StorageFailed` where the disk or the database fails.
    """

    @property
    def place(self) -> str:
        """Where it is, for messages."""

    @property
    def coordination(self) -> Coordination:
        """Locks, leases and messages of the processes that work on it."""

    @property
    def records(self) -> RecordStore:
        """The small records that are of no workspace."""

    def workspaces(self) -> list[str]:
        """Names of all workspaces, sorted."""

    def contains(self, name: str) -> bool:
        """True if there is a workspace of this name."""

    def make(self, name: str) -> None:
        """Makes a workspace, unless it is there.

        Raises:
            InvalidName: Something else stands in its place.
        """

    def workspace(self, name: str) -> WorkspaceStorage:
        """The parts that are of a workspace; one that is not there is empty."""

    def temporary_workspace(self) -> AbstractContextManager[WorkspaceStorage]:
        """The parts of a new, empty workspace that no list shows, and that is gone after the block."""

    def contents(self, name: str) -> WorkspaceContents:
        """Numbers on a workspace that is there.

        Raises:
            NotFound: It is gone.
        """

    def secret(self, name: str, size_bytes: int) -> bytes:
        """Random bytes of this home, made once by whoever asks first; only the home's owner can read them."""

    def stored_secret(self, name: str) -> bytes | None:
        """The bytes of a secret; None as long as nobody asked for it."""

    def store_secret(self, name: str, raw: bytes) -> None:
        """Makes a secret of these bytes, as of another home, unless there is one."""

    def sweep(self, name: str) -> None:
        """Removes what killed writers left half-written of a workspace, and of the home; not of the documents."""

    def join(self, home: Path, *, dry_run: bool = False) -> HomeJoin:
        """Copies what another home, a folder, has and this one lacks.

        Args:
            home: The folder.
            dry_run: Whether nothing is done but to look.

        Raises:
            InvalidRequest: It is no home, the same one, or one of a newer version; or this engine joins none.
            StorageFailed: Something cannot be read or written; what was copied stays.
        """

    def other_homes(self) -> list[HomeJoin]:
        """Homes that somebody may have written to instead of this one, and what this one lacks of them."""

    def note_erasure(self) -> Sequence[PendingErasure]:
        """Notes that something was erased; gives where it may still be, none of files.

        Raises:
            StorageFailed: The note could not be stored.
        """

    def rewrite(self) -> Sequence[str]:
        """Takes what was erased out of the engine's own files now; gives the names of the parts that it rewrote.

        Raises:
            StorageFailed: A part could not be rewritten; the others are.
        """

    def now(self) -> dt.datetime:
        """The time in UTC, the same for all processes that work on the home.

        Raises:
            StorageFailed: The clock that they share cannot be asked.
        """

    def fault(self) -> StorageCheck | None:
        """The reason why nothing can be written, and its remedy; None if it can. Writes nothing."""

    def checks(self) -> Sequence[StorageCheck]:
        """Checks of what the engine stands on beside the home; none of files."""

    def close(self) -> None:
        """Gives back what the storage holds."""
