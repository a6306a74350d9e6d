"""Progress of the conversations of hosts: how far each transcript was read, and what the agent was given.

One record for each conversation of a workspace. Invariants: a conversation has a progress of its own in each workspace,
which no call for another one reads or changes; who changes it holds its lock, in this process and in all others; it is
replaced in one step; it makes no workspace for a conversation that brings nothing. Faults of hooks are lines of
`<home>/hooks.log`, without a word of what was said.
"""

from __future__ import annotations

import copy
import dataclasses
import datetime as dt
import json
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from memory_service.errors import MemoryServiceError
from memory_service.home import WORKSPACE_NAME, make_home
from memory_service.hosts.transcripts import TranscriptPlace
from memory_service.storage.base import Storage
from memory_service.storage.files import disk
from memory_service.storage.record_store import RecordKind

LOG_NAME = "hooks.log"
_FOLDER = ".hosts"
_SUFFIX = ".json"
_MOST_LOG_BYTES = 1024 * 1024
_MOST_LINE_CHARS = 500


@dataclass(slots=True, kw_only=True)
class Progress:
    """State of a conversation.

    Attributes:
        is_followed: True if calls that name no workspace have this one, wherever the agent goes.
        refused: Reasons why a file that a call names is not read, each of which the log says once.
        transcript: Path that was read from.
        place: How far.
        until: End of the stretch that is being stored; 0 for none. After a crash that same stretch is stored again,
            by the same key, so nothing stands there twice.
        again: True while a file is read whose beginning may have been stored before, as that of one that was replaced.
        rules: Digest of each file of rules, and its pins; none before the session has a message.
        told: True if the agent was given its memory since the conversation began or was compacted.
        message_ids: Ids of messages that events brought.
        asked: Ids of the last calls of tools that asked the memory: their results are not kept.
        forgotten: Number of the last message that the host has compacted: none up to it is in its view.
        owes_summary: True from a compaction of the host until the summary of our own is made.
        prompts: Numbers of the prompts in the log, by the line of the transcript that each follows.
        branch: Session that the conversation goes on in since the host went back in it; empty for its own.
        unknown: Lines of types that no version known here writes, counted by type.
    """

    is_followed: bool = False
    refused: list[str] = field(default_factory=list)
    transcript: str = ""
    place: TranscriptPlace = field(default_factory=TranscriptPlace)
    until: int = 0
    again: bool = False
    rules: dict[str, list[str]] = field(default_factory=dict)
    told: bool = False
    message_ids: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    forgotten: int = 0
    owes_summary: bool = False
    prompts: dict[str, int] = field(default_factory=dict)
    branch: str = ""
    unknown: dict[str, int] = field(default_factory=dict)


class ProgressRecord:
    """The progress of one conversation, as it is kept.

    Args:
        storage: The storage of the home.
        workspace: Name of the workspace; it need not be there.
        session_id: Of the conversation.
    """

    def __init__(self, storage: Storage, workspace: str, session_id: str) -> None:
        self._storage = storage
        self._workspace = workspace
        self._session_id = session_id

    @contextmanager
    def hold(self, *, make: bool) -> Iterator[Progress]:
        """The progress, for one at a time; what was changed in it is kept, even when the work fails.

        Args:
            make: Whether the workspace is made if it is not there. Otherwise nothing is kept of a conversation that
                has none, unless the work makes it or gives the agent rules.

        Raises:
            InvalidName: Something else stands in the place of the workspace, such as a symbolic link.
            StorageFailed: Another hook of the conversation took too long, or the storage cannot be used.
        """
        if make:
            self._storage.make(self._workspace)
        if self._storage.contains(self._workspace):
            with self._hold_lock():
                progress = _read(self._storage, self._workspace, self._session_id) or Progress()
                before = copy.deepcopy(progress)
                try:
                    yield progress
                finally:
                    if progress != before:
                        self.keep(progress)
            return
        progress = Progress()
        try:
            yield progress
        finally:
            if progress.rules:
                self._storage.make(self._workspace)
            if self._storage.contains(self._workspace):
                with self._hold_lock():
                    self.keep(progress)

    def keep(self, progress: Progress) -> None:
        """Write it down now; the lock is held."""
        # Escaped: an id or a path may hold half a surrogate pair, which cannot be encoded.
        raw = json.dumps(dataclasses.asdict(progress)).encode()
        records = self._storage.workspace(self._workspace).records
        records.put(RecordKind.PROGRESS, self._session_id, raw, session=self._session_id)

    def _hold_lock(self) -> AbstractContextManager[None]:
        return self._storage.coordination.lock(f"{self._workspace}/{_FOLDER}/{self._session_id}")


def followed_workspace(storage: Storage, session_id: str, first: str) -> str:
    """The workspace that calls of a conversation had which named none; empty if there were no such calls.

    Args:
        storage: The storage of the home.
        session_id: Of the conversation.
        first: Name of the workspace to look in first; empty for none.
    """
    names = [first] if first else []
    with suppress(MemoryServiceError):
        names += storage.workspaces()
    for name in names:
        progress = _read(storage, name, session_id)
        if progress and progress.is_followed:
            return name
    return ""


def _read(storage: Storage, workspace: str, session_id: str) -> Progress | None:
    try:
        record = storage.workspace(workspace).records.get(RecordKind.PROGRESS, session_id)
        if record is None:
            return None
        known_value = json.loads(record.raw)
        place = TranscriptPlace(**known_value.pop("place"))
        # Versions before kept the workspace in the file, and all their calls followed it.
        followed_fields = {"is_followed": True} if known_value.pop("workspace", "") else {}
        return Progress(**{**known_value, **followed_fields}, place=place)
    except (MemoryServiceError, ValueError, TypeError, KeyError, AttributeError):
        # It cannot be read, or is of another version: the worst that comes of it is a stretch that is read again.
        return None


def move_former_progress(home: Path) -> None:
    """Move what versions before kept for all workspaces together to where it belongs, so that conversations go on."""
    former = home / _FOLDER
    if former.is_symlink() or not former.is_dir():
        return
    with suppress(OSError):
        for file in former.iterdir():
            with suppress(OSError, ValueError, TypeError, KeyError):
                if file.suffix == _SUFFIX:
                    workspace = home / _check_name(json.loads(file.read_bytes())["workspace"])
                    place = workspace / _FOLDER / file.name
                    if workspace.is_dir() and not workspace.is_symlink() and not place.exists():
                        disk.make_folder(place.parent)
                        os.replace(file, place)
            file.unlink(missing_ok=True)
        former.rmdir()


def _check_name(name: str) -> str:
    if WORKSPACE_NAME.fullmatch(name) is None:
        raise ValueError(name)
    return name


def note_faults(home: Path, host: str, event: str, faults: tuple[str, ...]) -> None:
    """Append a line for each fault to the log of the home; a log that cannot be written loses them."""
    log = home / LOG_NAME
    moment = dt.datetime.now().astimezone().isoformat(timespec="seconds")
    lines = "".join(f"{moment} {host} {event or '-'}: {_one_line(fault)}\n" for fault in faults)
    with suppress(OSError):
        make_home(home)
        if log.exists() and log.stat().st_size > _MOST_LOG_BYTES:
            os.replace(log, log.with_suffix(".log.1"))
        with disk.open_no_follow(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT) as descriptor:
            os.write(descriptor, lines.encode("utf-8", "backslashreplace"))


def last_faults(home: Path, count: int) -> list[str]:
    """The last lines of the log of the home, the newest last; none where there is no log.

    Raises:
        InvalidName: The log is a link.
        StorageFailed: The log cannot be read.
    """
    log = home / LOG_NAME
    if not log.exists():
        return []
    with disk.storage_errors(LOG_NAME), disk.open_no_follow(log) as descriptor:
        # With room for the moment and the event, and four bytes for each character.
        most_bytes = count * 5 * _MOST_LINE_CHARS
        os.lseek(descriptor, max(0, os.fstat(descriptor).st_size - most_bytes), os.SEEK_SET)
        lines = os.read(descriptor, most_bytes).decode("utf-8", "replace").splitlines()
    return lines[-count:]


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _MOST_LINE_CHARS else f"{line[: _MOST_LINE_CHARS - 1]}…"
