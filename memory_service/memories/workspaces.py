"""Paths that callers give: of memory files, and of all that is indexed.

Invariants: a path is refused, never repaired; one that passes lies below the folder of its workspace.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import TYPE_CHECKING

from indexer import EXTRA_MARK, is_memory_path, is_session_path, name_fault, to_nfc
from indexer.common import lazy_regex
from memory_service.errors import InvalidName
from memory_service.home import shown_name
from memory_service.storage.documents import DocumentStore

if TYPE_CHECKING:
    from indexer import Index

_DRIVE = lazy_regex(r"[A-Za-z]:")
# "%25" too: what is decoded twice on its way would become one of the others.
_ENCODED = lazy_regex(r"%(?:2e|2f|5c|00|25)", re.IGNORECASE)
_MAX_PATH_CHARS = 512
_MAX_SEGMENT_BYTES = 255
# So many characters may one be that is decomposed.
_MOST_CHARS_OF_ONE = 4
_TOO_LONG = f"has a part of more than {_MAX_SEGMENT_BYTES} bytes"
_ALLOWED = "Use MEMORY.md, USER.md or a Markdown file below memory/, such as memory/2026-11-20.md"


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


def stored_path(documents: DocumentStore, path: str) -> str:
    """The path of a memory file as the store spells it, given in any Unicode form; a new file has one in NFC.

    Args:
        documents: The memory files.
        path: The path as a caller gave it.

    Raises:
        InvalidName: `memory_path` refuses the path.
    """
    return documents.spelling(memory_path(path))


def indexed_paths(paths: Collection[str], index: Index) -> tuple[str, ...]:
    """Paths that the index is to read, as its source spells them: files, folders, logs, and what lies in extra folders.

    Args:
        paths: The paths as a caller gave them, in any Unicode form.
        index: The index of the workspace.

    Raises:
        InvalidName: One is none of these.
    """
    # The logs of sessions are named by the service alone, and the index checks the names; so it does in extra folders.
    checked_paths = (
        path
        if path.rstrip("/") in ("memory", "sessions") or path.startswith(EXTRA_MARK) or is_session_path(path)
        else _file_or_folder(path)
        for path in paths
    )
    return tuple(path if path.isascii() else index.source.spelling(path.rstrip("/")) for path in checked_paths)


def _file_or_folder(path: str) -> str:
    # A folder below memory/ is as good as a file: checked as the file that it might hold.
    folder = path.rstrip("/")
    return memory_path(path) if path.lower().endswith(".md") else memory_path(f"{folder}/x.md").removesuffix("/x.md")


def _path_fault(path: str) -> str:
    """The fault of a path; empty if nothing is."""
    if not path:
        return "is empty"
    # The other form of a name, as it may stand on the disk, can be shorter.
    if len(path) > _MAX_PATH_CHARS and len(to_nfc(path[: _MOST_CHARS_OF_ONE * _MAX_PATH_CHARS + 1])) > _MAX_PATH_CHARS:
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
    if min(len(segment.encode()), len(to_nfc(segment).encode())) > _MAX_SEGMENT_BYTES:
        return _TOO_LONG
    return ""
