"""The notation of the setting `extra_paths`: which folders are indexed with a workspace, and what of them.

Invariants: pure; what cannot be read is refused with what to write instead, never guessed.

An entry is `[NAME=]FOLDER[::GLOB,GLOB,!GLOB]`. Entries of one text are parted by `;`.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from indexer.common import lazy_regex
from memory_service.home import WORKSPACE_NAME

_NAME = lazy_regex(r"[^\W_][^/\\@:;,=\"'<>|*?!\[\]{}\x00-\x1f\x7f]{0,63}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtraPath:
    """A folder to index with a workspace.

    Attributes:
        name: What the paths in it begin with, after an `@`.
        folder: Where it lies; absolute.
        globs: Which files of it; see `indexer.sources.folders`.
    """

    name: str
    folder: Path
    globs: tuple[str, ...]


def _read_extra_path(entry: str) -> ExtraPath:
    """Reads one entry.

    Raises:
        ValueError: It cannot be read, or has no folder or no name.
    """
    place, _, globs = entry.strip().partition("::")
    name, is_named, folder = place.partition("=")
    if not is_named or "/" in name or "\\" in name or name.startswith("~"):
        # A folder may have "=" in its own name.
        name, folder = "", place
    path = absolute_folder(folder.strip(), entry)
    name = unicodedata.normalize("NFC", name.strip() if is_named and folder != place else path.name)
    if _NAME.fullmatch(name) is None or name != name.strip():
        raise ValueError(f"{entry!r} needs a name of up to 64 letters, digits, '-', '_' and '.': write NAME={folder}")
    return ExtraPath(name=name, folder=path, globs=_globs(globs, entry))


def read_extra_paths(entries: tuple[str, ...]) -> tuple[ExtraPath, ...]:
    """Reads the entries of one workspace.

    Raises:
        ValueError: One cannot be read, or two have one name.
    """
    paths: dict[str, ExtraPath] = {}
    for extra in map(_read_extra_path, entries):
        if extra.name in paths:
            raise ValueError(
                f"{paths[extra.name].folder} and {extra.folder} would both be {extra.name}: "
                f"give one a name, such as {extra.name}-2={extra.folder}"
            )
        paths[extra.name] = extra
    return tuple(paths.values())


def by_workspace(value: object, default: str) -> object:
    """Brings what the setting may be, a text, a list or a table of these, into the form of a table of lists.

    Args:
        value: What was set.
        default: The workspace that is meant where none is named.

    Raises:
        ValueError: It is none of these, or a table names what cannot be a workspace.
    """
    if isinstance(value, Mapping):
        wrong = next((name for name in value if not WORKSPACE_NAME.fullmatch(str(name))), None)
        if wrong is not None:
            raise ValueError(f"{wrong!r} is no name of a workspace: use a-z, 0-9, '.', '_' and '-'")
        return {name: split_entries(entries) for name, entries in value.items()}
    return {default: split_entries(value)}


def split_entries(value: object) -> object:
    """The entries of a setting: the parts of a text, or the members of a list as they are.

    Raises:
        ValueError: It is neither.
    """
    if isinstance(value, str):
        return tuple(part for part in value.split(";") if part.strip())
    if isinstance(value, Sequence):
        return value
    raise ValueError(f"{value!r} is no folder: write a folder, a list of folders, or a table of these by workspace")


def absolute_folder(folder: str, entry: str) -> Path:
    """The path of a folder that an entry names.

    Raises:
        ValueError: It is no absolute path.
    """
    try:
        path = Path(folder).expanduser()
    except RuntimeError:
        raise ValueError(
            f"{entry!r} begins with the home of a user who is not known here: write an absolute path"
        ) from None
    if "\0" in folder:
        raise ValueError(f"{entry!r} has a NUL character in it: leave it out")
    if not path.is_absolute() or ".." in path.parts:
        raise ValueError(f"{entry!r} is no absolute path: write NAME=FOLDER::GLOBS with one, or one that begins with ~")
    return path


def _globs(globs: str, entry: str) -> tuple[str, ...]:
    texts = tuple(glob.strip() for glob in globs.split(",") if glob.strip())
    if any(glob in ("!", "/", "!/") or "\n" in glob or "\r" in glob for glob in texts):
        raise ValueError(f"{entry!r} has a glob that matches nothing: write such as *.md,!drafts/")
    return texts
