"""A home on the disk: one folder for each workspace, what all share, and the coordination of its processes by files.

Invariants: a name is refused, never repaired; a link is no workspace; looking something up makes nothing. A lock and a
lease are locks of the system, so they end with their process, however that ends; messages go through the shared
database, and one thread looks for those of other processes, only while somebody listens.
"""

from __future__ import annotations

import datetime as dt
import logging
import os
import secrets
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from indexer import ExtraFolder, FileSource, Folders, change_times, scan_workspace, sync_file
from indexer.stores import DEFAULT_STORE, open_store
from memory_service.config.extra_paths import read_extra_paths
from memory_service.errors import InvalidName, NotFound, StorageFailed
from memory_service.home import WORKSPACE_NAME, check_workspace, make_home, project_of_workspace
from memory_service.storage.base import StorageCheck, WorkspaceContents, WorkspaceStorage
from memory_service.storage.coordination import LEASE_SECONDS, LOCK_SECONDS, ChannelMessage
from memory_service.storage.files import disk
from memory_service.storage.files.disk import WriteLock, storage_errors
from memory_service.storage.files.document_files import FileDocuments
from memory_service.storage.files.file_records import home_records, workspace_records
from memory_service.storage.files.shared_database import (
    SHARED_FOLDER,
    DatabaseMessages,
    DatabaseRecords,
    SharedDatabase,
    make_shared_folder,
)

if TYPE_CHECKING:
    from memory_service.schemas.base import PendingErasure
    from memory_service.storage.home_join import HomeJoin
    from memory_service.storage.logs import LogStore


_log = logging.getLogger("memory_service.storage")
# A look costs 30 µs.
_LOOK_SECONDS = 0.05
_SUFFIX = ".lock"


class FileCoordination:
    """The coordination of one home; see `Coordination`."""

    def __init__(self, home: Path, database: SharedDatabase) -> None:
        self._home = home
        self._messages = DatabaseMessages(database)
        self._changing = threading.Lock()
        self._followers: dict[str, list[Callable[[], None]]] = {}
        # Held for a look at the file of a lease, which comes and goes with it.
        self._leasing = WriteLock(home / SHARED_FOLDER / "leases.lock")
        self._leases = dict[Path, Callable[[], None]]()
        self._ending = threading.Event()
        self._watch: threading.Thread | None = None

    def lock(self, name: str, *, timeout_seconds: float = LOCK_SECONDS) -> AbstractContextManager[None]:
        """See `Coordination`."""
        return WriteLock(self._home / f"{name}{_SUFFIX}", timeout_seconds=timeout_seconds).hold()

    def lane(self, name: str, *, timeout_seconds: float = LOCK_SECONDS) -> AbstractContextManager[None]:
        """See `Coordination`."""
        return nullcontext()

    def lease(self, name: str, seconds: float = LEASE_SECONDS) -> Callable[[], None] | None:
        """See `Coordination`."""
        make_shared_folder(self._home)
        stack, file = ExitStack(), self._lease_file(name)
        with self._leasing.hold():
            if not self._is_free(file):
                return None
            stack.enter_context(WriteLock(file, timeout_seconds=0).hold())

        def give_back() -> None:
            with self._leasing.hold():
                if self._leases.pop(file, None) is not None:
                    file.unlink(missing_ok=True)
                    stack.close()

        self._leases[file] = give_back
        return give_back

    def is_leased(self, name: str) -> bool:
        """See `Coordination`."""
        file = self._lease_file(name)
        if not file.exists():
            return False
        with self._leasing.hold():
            if is_free := self._is_free(file):
                file.unlink(missing_ok=True)
            return not is_free

    def _is_free(self, file: Path) -> bool:
        """True if nobody has a lease; nobody takes or gives back one meanwhile."""
        try:
            with WriteLock(file, timeout_seconds=0).hold():
                return True
        except StorageFailed:
            # One that cannot be looked at is that of somebody.
            return False

    def publish(self, channel: str, raw: bytes, *, first: int = 1, behind: int = 0) -> int:
        """See `Coordination`."""
        number = self._messages.publish(channel, raw, first, behind)
        self._tell([channel])
        return number

    def messages(self, channel: str, after: int = 0) -> Sequence[ChannelMessage]:
        """See `Coordination`."""
        return self._messages.messages(channel, after)

    def follow(self, channel: str, heard: Callable[[], None]) -> Callable[[], None]:
        """See `Coordination`."""
        with self._changing:
            self._followers.setdefault(channel, []).append(heard)
            if self._watch is None and not self._ending.is_set():
                self._watch = threading.Thread(target=self._look, name="messages", daemon=True)
                self._watch.start()

        def end() -> None:
            with self._changing:
                followers = self._followers.get(channel, [])
                with suppress(ValueError):
                    followers.remove(heard)
                if not followers:
                    self._followers.pop(channel, None)

        return end

    def close(self) -> None:
        """Give back all leases, and look for messages no more."""
        self._ending.set()
        if self._watch is not None:
            self._watch.join()
        for give_back in list(self._leases.values()):
            give_back()

    def _lease_file(self, name: str) -> Path:
        return self._home / SHARED_FOLDER / f"{name}{_SUFFIX}"

    def _look(self) -> None:
        """Tell of the messages of others until nobody listens."""
        seen_newest = -1
        while not self._ending.wait(_LOOK_SECONDS):
            with self._changing:
                if not self._followers:
                    self._watch = None
                    return
                followers = list(self._followers)
            try:
                newest = self._messages.newest()
                if newest != seen_newest:
                    # At first, and if the file was made anew, what is new is not known.
                    self._tell(self._messages.channels(seen_newest) if 0 <= seen_newest < newest else followers)
                    seen_newest = newest
            except StorageFailed:
                _log.exception("messages of other processes cannot be read")

    def _tell(self, channels: Sequence[str]) -> None:
        with self._changing:
            found_channels = [heard_value for channel in channels for heard_value in self._followers.get(channel, ())]
        for heard in found_channels:
            heard()


_SESSIONS = "sessions"
_TEMPORARY = ".doctor-"


class FileStorage:
    """The files of one home; see `Storage`.

    Args:
        home: The folder that holds one folder for each workspace; it need not exist yet.
        index_store: Name of the store of the indexes.
        extra_paths: The setting of the folders that are indexed beside workspaces.
    """

    def __init__(
        self,
        home: Path,
        *,
        index_store: str = DEFAULT_STORE,
        extra_paths: Mapping[str, tuple[str, ...]] = MappingProxyType({}),
    ) -> None:
        self._home = home
        self._index_store = index_store
        self._extra_paths = extra_paths
        self._database = SharedDatabase(home)
        self.coordination = FileCoordination(home, self._database)
        self.records = home_records(home, DatabaseRecords(self._database, ""))

    @property
    def place(self) -> str:
        """The folder of the home."""
        return str(self._home)

    def workspaces(self) -> list[str]:
        """Names of all workspaces, sorted; a link is none."""
        if not self._home.exists():
            return []
        with storage_errors(f"the home {self._home}"), os.scandir(self._home) as entries:
            return sorted(
                e.name for e in entries if WORKSPACE_NAME.fullmatch(e.name) and e.is_dir(follow_symlinks=False)
            )

    def contains(self, name: str) -> bool:
        """True if a workspace has a folder that is no link."""
        folder = self._folder(name)
        with storage_errors(self._name_for_messages(name)):
            return not folder.is_symlink() and folder.is_dir()

    def make(self, name: str) -> None:
        """Makes the folder of a workspace, unless it is there.

        Raises:
            InvalidName: A link or a file stands in its place.
        """
        folder = self._folder(name)
        with storage_errors(self._name_for_messages(name)):
            if folder.is_symlink():
                raise InvalidName(f"{self._name_for_messages(name)} is a symbolic link. Put the folder itself there.")
            make_home(self._home)
            disk.make_folder(folder)
            if not folder.is_dir():
                raise InvalidName(
                    f"A file stands where the folder of {self._name_for_messages(name)} would be. Move it away."
                )

    def workspace(self, name: str) -> WorkspaceStorage:
        """The files of a workspace."""
        return self._parts(self._folder(name))

    @contextmanager
    def temporary_workspace(self) -> Iterator[WorkspaceStorage]:
        """The files of a new folder, which is in the home, if there is one, and gone after the block."""
        place = self._home if self._home.exists() else None
        with tempfile.TemporaryDirectory(prefix=_TEMPORARY, dir=place) as folder:
            yield self._parts(Path(folder))

    def _parts(self, folder: Path) -> WorkspaceStorage:
        return WorkspaceStorage(
            documents=FileDocuments(folder),
            records=workspace_records(folder, DatabaseRecords(self._database, folder.name)),
            scratch=folder,
            open_logs=lambda: _logs_in(folder / _SESSIONS),
            open_source=lambda: FileSource(folder, extra=self._extra_folders(folder)),
            open_index=lambda: open_store(self._index_store, folder),
            read_extra=lambda path: _read_extra(self._extra_folders(folder), path),
        )

    def _extra_folders(self, folder: Path) -> Folders:
        """The folders that are indexed beside a workspace: its own alone, whatever others have."""
        read = read_extra_paths(self._extra_paths.get(folder.name, ()))
        extra = [ExtraFolder(name=path.name, folder=path.folder, globs=path.globs) for path in read]
        return Folders(folder, extra, private=(folder.parent,))

    def contents(self, name: str) -> WorkspaceContents:
        """Numbers on a workspace, from a look at its files."""
        folder = self._folder(name)
        with storage_errors(self._name_for_messages(name)):
            status = folder.stat()
            files = scan_workspace(folder).files.values()
        changes = [disk.moment(change_times(file)[0] / 1e9) for file in files]
        sessions = sum(file.source == "sessions" for file in files)
        return WorkspaceContents(
            documents=len(files) - sessions,
            sessions=sessions,
            modified_at=max(changes, default=disk.modified_at(status)),
            project=project_of_workspace(folder),
        )

    def secret(self, name: str, size_bytes: int) -> bytes:
        """Random bytes in a file of the home."""
        raw = self.stored_secret(name)
        if raw is None:
            self.store_secret(name, secrets.token_bytes(size_bytes))
            raw = self.stored_secret(name)
        if raw is None or len(raw) != size_bytes:
            raise StorageFailed(f"The file {name} in the home is damaged. Restore it, or remove it to begin anew.")
        return raw

    def stored_secret(self, name: str) -> bytes | None:
        """The bytes in a file of the home."""
        with suppress(NotFound), storage_errors(name), disk.open_no_follow(self._home / name) as descriptor:
            return disk.read_all(descriptor)
        return None

    def store_secret(self, name: str, raw: bytes) -> None:
        """Makes a file of the home, unless it is there."""
        with storage_errors(name):
            make_home(self._home)
            _store_secret(self._home / name, raw)

    def sweep(self, name: str) -> None:
        """Removes drafts of killed writers of sessions, and of what lies in the home itself."""
        # Most have none, and the code of sessions is not loaded to find none.
        sessions = self._folder(name) / _SESSIONS
        if any(map(disk.draft_files, _folders_of_sessions(sessions))):
            _logs_in(sessions).sweep()
        disk.sweep_old([self._home])
        self.records.sweep()

    def join(self, home: Path, *, dry_run: bool = False) -> HomeJoin:
        """Copies what another home has and this one lacks; see `memory_service.storage.files.joining`."""
        from memory_service.storage.files.joining import join, plan_join

        return (plan_join if dry_run else join)(self._home, home)

    def other_homes(self) -> list[HomeJoin]:
        """Homes beside this one that have what it lacks."""
        from memory_service.storage.files.joining import other_homes

        return other_homes(self._home)

    def note_erasure(self) -> list[PendingErasure]:
        """Nothing: what is erased leaves no byte in a file."""
        return []

    def rewrite(self) -> list[str]:
        """Nothing: what is erased leaves no byte in a file."""
        return []

    def now(self) -> dt.datetime:
        """The time of the machine."""
        return dt.datetime.now(dt.UTC)

    def fault(self) -> StorageCheck | None:
        """The reason why nothing can be written into the home, or where it would be made."""
        fault = disk.write_fault(self._home)
        return StorageCheck("home", fault, "Mend that, or choose another --home.") if fault else None

    def checks(self) -> Sequence[StorageCheck]:
        """None: the home itself is all."""
        return ()

    def close(self) -> None:
        """Gives back what the processes of the home share."""
        self.coordination.close()
        self._database.close()

    def _folder(self, name: str) -> Path:
        check_workspace(name)
        return self._home / name

    def _name_for_messages(self, name: str) -> str:
        """A workspace for messages, with the home that it is looked for in."""
        return f"the workspace {name} of the home {self._home}"


def _read_extra(folders: Folders, path: str) -> bytes:
    place = folders.locate(path)
    if place is None:
        raise NotFound(f"The file {path} is in no extra folder, or lies over a symbolic link now. Search for it.")
    with storage_errors(path):
        return disk.read_signed(place, path)[0]


def _logs_in(sessions: Path) -> LogStore:
    from memory_service.storage.files.log_folder import LogFolder

    return LogFolder(sessions)


def _folders_of_sessions(sessions: Path) -> Iterator[Path]:
    """Folders in which drafts of sessions may lie: of the logs, and of the contents of media, two levels below."""
    yield sessions
    yield from sessions.glob("*/[0-9a-f][0-9a-f]")
    yield from sessions.glob(".*/[0-9a-f][0-9a-f]")


def _store_secret(file: Path, raw: bytes) -> None:
    """Writes bytes, unless another process was first: a link is made of a whole file, or not at all."""
    draft = file.with_name(f".{file.name}.{secrets.token_hex(8)}.tmp")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, disk.FILE_MODE)
    try:
        os.write(descriptor, raw)
        sync_file(descriptor)
        with suppress(FileExistsError):
            os.link(draft, file)
    finally:
        os.close(descriptor)
        draft.unlink()
    disk.sync_folder(file.parent)
