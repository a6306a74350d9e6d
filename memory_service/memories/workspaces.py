"""The way from names to folders and from paths to files; nothing ever leaves its folder.

Invariants: a name or path that a caller gives is refused, never repaired; every file that is read or written
lies below the folder of its workspace, with no symbolic link on the way; looking something up creates nothing.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Collection, Mapping
from pathlib import Path

from indexer import (
    EXTRA_MARK,
    ExtraFolder,
    Folders,
    composed,
    is_memory_path,
    is_session_path,
    name_fault,
    path_for_new,
    path_on_disk,
)
from indexer.common import lazy_regex
from memory_service.config import read_extra_paths
from memory_service.disk import storage_errors
from memory_service.errors import InvalidName
from memory_service.home import shown_name

_DRIVE = lazy_regex(r"[A-Za-z]:")
# "%25" too: what is decoded twice on its way would become one of the others.
_ENCODED = lazy_regex(r"%(?:2e|2f|5c|00|25)", re.IGNORECASE)
_MAX_PATH_CHARS = 512
_MAX_SEGMENT_BYTES = 255
# So many characters may one be that is decomposed.
_MOST_CHARS_OF_ONE = 4
_TOO_LONG = f"has a part of more than {_MAX_SEGMENT_BYTES} bytes"
_ALLOWED = "Use MEMORY.md, USER.md or a Markdown file below memory/, such as memory/2026-11-20.md"


def extra_folders(folder: Path, extra_paths: Mapping[str, tuple[str, ...]]) -> Folders:
    """The folders that are indexed beside a workspace: its own alone, whatever others have.

    Args:
        folder: The folder of the workspace.
        extra_paths: The setting.
    """
    read = read_extra_paths(extra_paths.get(folder.name, ()))
    extra = [ExtraFolder(name=one.name, folder=one.folder, globs=one.globs) for one in read]
    return Folders(folder, extra, private=(folder.parent,))


def memory_path(path: str) -> str:
    """Checks the path of a memory file, relative to its workspace, as a caller gave it, in any Unicode form.

    Returns:
        The same path.

    Raises:
        InvalidName: It is malformed, would leave the workspace, or is not that of a memory file.
    """
    if path.startswith(EXTRA_MARK):
        raise InvalidName(
            f"The path {shown_name(path)} is in an extra folder, which is only read. Edit it where it lies."
        )
    fault = _path_fault(path)
    if fault:
        raise InvalidName(f"The path {shown_name(path)} {fault}. {_ALLOWED}.")
    return path


def stored_path(folder: Path, path: str) -> str:
    """The path of a memory file as the disk spells it, given in any Unicode form; a new file has one in NFC.

    Args:
        folder: The folder of the workspace.
        path: The path as a caller gave it.

    Raises:
        InvalidName: `memory_path` refuses the path.
    """
    checked = memory_path(path)
    return checked if checked.isascii() else path_on_disk(folder, checked) or path_for_new(folder, checked)


def indexed_paths(paths: Collection[str], folders: Folders) -> tuple[str, ...]:
    """Paths that the index is to read, as the disk spells them: files, folders, logs, and what lies in extra folders.

    Args:
        paths: The paths as a caller gave them, in any Unicode form.
        folders: The folders that are indexed with the workspace.

    Raises:
        InvalidName: One is none of these.
    """
    # The logs of sessions are named by the service alone, and the index checks the names; so it does in extra folders.
    checked = (
        path
        if path.rstrip("/") in ("memory", "sessions") or path.startswith(EXTRA_MARK) or is_session_path(path)
        else _file_or_folder(path)
        for path in paths
    )
    return tuple(path if path.isascii() else folders.as_on_disk(path.rstrip("/")) for path in checked)


def _file_or_folder(path: str) -> str:
    # A folder below memory/ is as good as a file: checked as the file that it might hold.
    folder = path.rstrip("/")
    return memory_path(path) if path.lower().endswith(".md") else memory_path(f"{folder}/x.md").removesuffix("/x.md")


def resolve(folder: Path, path: str) -> Path:
    """The place of a memory file, which need not exist yet.

    Raises:
        InvalidName: `memory_path` refuses the path, or a component that exists is a link or of the wrong kind.
        StorageFailed: A folder on the way cannot be searched.
    """
    at = folder
    segments = memory_path(path).split("/")
    if any(len(segment.encode()) > _MAX_SEGMENT_BYTES for segment in segments):
        raise InvalidName(f"The path {shown_name(path)} {_TOO_LONG}. {_ALLOWED}.")
    for number, segment in enumerate(segments, start=1):
        at = at / segment
        with storage_errors(path):
            try:
                mode = os.lstat(at).st_mode
            except FileNotFoundError:
                break
        _check_kind(path, mode, is_last=number == len(segments))
    return folder / path


def _check_kind(path: str, mode: int, *, is_last: bool) -> None:
    if stat.S_ISLNK(mode):
        raise InvalidName(f"The path {path} leads over a symbolic link. Put the file itself there.")
    if is_last and not stat.S_ISREG(mode):
        raise InvalidName(f"The path {path} is no regular file. Choose another one.")
    if not is_last and not stat.S_ISDIR(mode):
        raise InvalidName(f"The path {path} takes a file for a folder. Choose another one.")


def _path_fault(path: str) -> str:
    """The fault of a path; empty if nothing is."""
    if not path:
        return "is empty"
    # The other form of a name, as it may stand on the disk, can be shorter.
    if (
        len(path) > _MAX_PATH_CHARS
        and len(composed(path[: _MOST_CHARS_OF_ONE * _MAX_PATH_CHARS + 1])) > _MAX_PATH_CHARS
    ):
        return f"has {len(path):,} characters, more than {_MAX_PATH_CHARS}"
    if fault := name_fault(path):
        return fault
    if path.startswith("/") or _DRIVE.match(path):
        return "is absolute"
    if _ENCODED.search(path):
        return "is percent-encoded"
    fault = next((fault for segment in path.split("/") if (fault := _segment_fault(segment))), "")
    return fault or ("" if is_memory_path(path) else "is not that of a memory file")


def _segment_fault(segment: str) -> str:
    if not segment:
        return "has an empty part"
    if segment.startswith("."):
        return "has a part that begins with a dot"
    if min(len(segment.encode()), len(composed(segment).encode())) > _MAX_SEGMENT_BYTES:
        return _TOO_LONG
    return ""
