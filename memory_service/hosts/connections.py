"""Connections on disk: changes of several files done as one, and the notes that lead back.

The notes are one file in the user's state folder, `connections.json`. They have no copy of a person's file: paths and
keys of ours, and the text of values that ours took the place of. When the last connection goes, so does the file.

Invariants: a file is the old one or the new one; if one cannot be written, those before it get their content back;
notes are there before what they are of; a folder goes only if it was made for a connection and is empty; one command at
a time reads notes and changes files by them, and its lock leaves no file.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from memory_service.errors import InvalidRequest, MemoryServiceError
from memory_service.hosts.settings_files import Change, FileNote
from memory_service.storage.files.disk import (
    WriteLock,
    current_signature,
    make_folder,
    remove_durably,
    replace_durably,
    storage_errors,
    sweep,
    sync_folder,
)
from memory_service.storage.revisions import kept_changing

# Settings of a host are as open as the user makes files; those that are there keep their modes.
_OPEN_FOLDER, _OPEN_FILE = 0o777, 0o666
_VERSION = 1


@dataclass(slots=True, kw_only=True)
class ConnectionNotes:
    """Notes of all connections of a user.

    Attributes:
        path: The file that they are kept in.
        files: By path.
        folders: Made for connections.
    """

    path: Path
    files: dict[Path, FileNote] = field(default_factory=dict)
    folders: set[Path] = field(default_factory=set)

    @classmethod
    @contextmanager
    def hold(cls) -> Iterator[ConnectionNotes]:
        """The notes of this user, while no other command may change them.

        Raises:
            InvalidRequest: They cannot be read.
            StorageFailed: Another command took too long, or the disk cannot be used.
        """
        folder = _state_folder()
        paths, lock = _missing(folder), folder / "connections.lock"
        try:
            with WriteLock(lock).hold():
                try:
                    sweep([folder])
                    notes = cls.load()
                    notes.folders |= paths
                    yield notes
                    paths |= set() if notes.files else notes.folders
                finally:
                    # Who waits for the file that is gone takes the next one. Windows removes none that is open.
                    with suppress(OSError):
                        lock.unlink(missing_ok=True)
        finally:
            _remove_empty({*paths, folder})

    @classmethod
    def load(cls) -> ConnectionNotes:
        """The notes of this user as they are now.

        Raises:
            InvalidRequest: They cannot be read.
        """
        path = _state_folder() / "connections.json"
        try:
            value = json.loads(path.read_text("utf-8"))
            files = {Path(name): _note(fields) for name, fields in value["files"].items()}
            return cls(path=path, files=files, folders={Path(name) for name in value["folders"]})
        except FileNotFoundError:
            return cls(path=path)
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise InvalidRequest(
                f"The notes of connections at {path} cannot be read ({type(error).__name__}). Move the file away: "
                "without it, disconnect still takes out what is ours."
            ) from error

    def save(self) -> None:
        """Write the notes, or remove them when there are none."""
        if self.files:
            fields = {
                "version": _VERSION,
                "files": {str(path): _plain(note) for path, note in sorted(self.files.items())},
                "folders": sorted(map(str, self.folders)),
            }
            _write(self.path, json.dumps(fields, ensure_ascii=False, indent=2).encode() + b"\n")
        elif self.path.exists():
            remove_durably(self.path)

    def leave(self) -> None:
        """Remove the folders that were made and that nothing needs any more."""
        self.folders -= _remove_empty(self.folders)


def carry_out(changes: Iterable[Change]) -> set[Path]:
    """Does all changes, or none; gives the folders that had to be made.

    Raises:
        StorageFailed: A file cannot be written, or somebody else changes it.
    """
    folders = set[Path]()
    done_changes: list[Change] = []
    try:
        for change in changes:
            folders |= _missing(change.path.parent) if change.after is not None else set()
            _do(change)
            done_changes.append(change)
    except BaseException:
        for change in reversed(done_changes):
            with suppress(OSError, MemoryServiceError):
                _undo(change)
        _remove_empty(folders)
        raise
    return folders


def _do(change: Change) -> None:
    with storage_errors(str(change.path)):
        # Of a command that was killed: who is here holds the lock of all of them.
        sweep([change.path.parent], of=change.path.name)
        if change.after == change.before:
            return
        if current_signature(change.path) != change.signature:
            raise kept_changing(str(change.path))
        if change.after is None:
            remove_durably(change.path)
            return
        make_folder(change.path.parent, mode=_OPEN_FOLDER)
        if not replace_durably(change.path, change.after, expected=change.signature, mode=_OPEN_FILE):
            raise kept_changing(str(change.path))


def _undo(change: Change) -> None:
    if change.before is None:
        change.path.unlink(missing_ok=True)
    elif change.before != change.after:
        _write(change.path, change.before)


def _write(path: Path, raw: bytes) -> None:
    with storage_errors(str(path)):
        make_folder(path.parent, mode=_OPEN_FOLDER)
        if not replace_durably(path, raw, expected=current_signature(path), mode=_OPEN_FILE):
            raise kept_changing(str(path))


def _missing(folder: Path) -> set[Path]:
    """The folders that are to be made for one to be there."""
    return {path for path in (folder, *folder.parents) if not path.exists()}


def _remove_empty(folders: Iterable[Path]) -> set[Path]:
    """Removes those folders that are empty, the inner ones first; gives those that are gone."""
    gone_value = set()
    for folder in sorted(folders, key=lambda path: len(path.parts), reverse=True):
        with suppress(OSError):
            folder.rmdir()
            sync_folder(folder.parent)
        if not folder.exists():
            gone_value.add(folder)
    return gone_value


def _state_folder() -> Path:
    """Where programs of this user keep what is no setting.

    Source: XDG Base Directory Specification; on Windows the local folder of applications.
    """
    given_text = os.environ.get("LOCALAPPDATA" if os.name == "nt" else "XDG_STATE_HOME", "")
    base = Path(given_text) if given_text and Path(given_text).is_absolute() else Path.home() / ".local" / "state"
    return base / "memory-service"


def _plain(note: FileNote) -> dict[str, Any]:
    return {
        "created": note.created,
        "digest": note.digest,
        "keys": note.keys,
        "lists": note.lists,
        "made": note.made,
        "filled": list(note.filled.items()),
        "replaced": list(note.replaced.items()),
    }


def _note(fields: dict[str, Any]) -> FileNote:
    keys, lists, items = ([tuple(value) for value in fields[name]] for name in ("keys", "lists", "made"))
    values, replaced_values = (
        {tuple(each_value): text for each_value, text in fields[name]} for name in ("filled", "replaced")
    )
    return FileNote(
        created=fields["created"],
        digest=fields["digest"],
        keys=keys,
        lists=lists,
        made=items,
        filled=values,
        replaced=replaced_values,
    )
