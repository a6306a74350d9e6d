"""Progress of the conversations of hosts: how far each transcript was read, and what the agent was given.

One small file for each conversation of a workspace, `<home>/<workspace>/.hosts/<session>.json`. Invariants: a
conversation has a progress of its own in each workspace, which no call for another one reads or changes; who changes it
holds its lock, in this process and in all others; it is replaced in one step; it makes no workspace for a conversation
that brings nothing. Faults of hooks are lines of `<home>/hooks.log`, without a word of what was said.
"""

from __future__ import annotations

import copy
import dataclasses
import datetime as dt
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from memory_service.errors import InvalidName, MemoryServiceError
from memory_service.home import WORKSPACE_NAME, make_home
from memory_service.hosts.transcripts import TranscriptPlace
from memory_service.storage.files import disk
from memory_service.storage.files.disk import WriteLock, current_signature, replace_durably, storage_errors

LOG_NAME = "hooks.log"
_FOLDER = ".hosts"
_SUFFIX, _LOCK = ".json", ".lock"
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


class ProgressFile:
    """The progress of one conversation on disk.

    Args:
        workspace: The folder of the workspace; it need not be there.
        session_id: Of the conversation.
    """

    def __init__(self, workspace: Path, session_id: str) -> None:
        self._workspace = workspace
        self._path = workspace / _FOLDER / f"{session_id}{_SUFFIX}"
        self._lock = WriteLock(self._path.with_suffix(_LOCK))

    @contextmanager
    def hold(self, *, make: bool) -> Iterator[Progress]:
        """The progress, for one at a time; what was changed in it is kept, even when the work fails.

        Args:
            make: Whether the workspace is made if it is not there. Otherwise nothing is kept of a conversation that
                has none, unless the work makes it or gives the agent rules.

        Raises:
            InvalidName: The workspace is a symbolic link.
            StorageFailed: Another hook of the conversation took too long, or the disk cannot be used.
        """
        if self._workspace.is_symlink():
            raise InvalidName(f"The workspace {self._workspace.name} is a symbolic link. Put the folder itself there.")
        if make or self._workspace.is_dir():
            with self._lock.hold():
                disk.sweep([self._path.parent], of=self._path.name)
                progress = _read(self._path) or Progress()
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
            if progress.rules or self._workspace.is_dir():
                with self._lock.hold():
                    self.keep(progress)

    def keep(self, progress: Progress) -> None:
        """Write it down now; the lock is held."""
        # Escaped: an id or a path may hold half a surrogate pair, which cannot be encoded.
        raw = json.dumps(dataclasses.asdict(progress)).encode()
        with storage_errors(self._path.name):
            replace_durably(self._path, raw, expected=current_signature(self._path))


def followed_workspace(home: Path, session_id: str, first: str) -> str:
    """The workspace that calls of a conversation had which named none; empty if there were no such calls.

    Args:
        home: The home.
        session_id: Of the conversation.
        first: Name of the workspace to look in first; empty for none.
    """
    names = [first] if first else []
    with suppress(OSError), os.scandir(home) as entries:
        names += [entry.name for entry in entries if WORKSPACE_NAME.fullmatch(entry.name) and not entry.is_symlink()]
    for name in names:
        progress = _read(home / name / _FOLDER / f"{session_id}{_SUFFIX}")
        if progress and progress.is_followed:
            return name
    return ""


def progress_drafts(workspace: Path) -> list[Path]:
    """Half-written files that killed hooks left in a workspace."""
    return disk.draft_files(workspace / _FOLDER)


def sweep_progress(workspace: Path) -> None:
    """Remove such files, but for those of hooks that run."""
    for draft in progress_drafts(workspace):
        stem = draft.name.removeprefix(".").partition(_SUFFIX)[0]
        with suppress(MemoryServiceError, OSError):
            with WriteLock(draft.with_name(f"{stem}{_LOCK}"), timeout_seconds=0).hold():
                draft.unlink(missing_ok=True)


def _read(path: Path) -> Progress | None:
    try:
        known_value = json.loads(path.read_bytes())
        place = TranscriptPlace(**known_value.pop("place"))
        # Versions before kept the workspace in the file, and all their calls followed it.
        followed_fields = {"is_followed": True} if known_value.pop("workspace", "") else {}
        return Progress(**{**known_value, **followed_fields}, place=place)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        # None yet, or of another version: the worst that comes of it is a stretch that is read again.
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


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _MOST_LINE_CHARS else f"{line[: _MOST_LINE_CHARS - 1]}…"
