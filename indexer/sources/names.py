"""Names of files as people and disks spell them: one name in several Unicode forms, and names that no path can have.

macOS and some tools that synchronise folders write "é" as two characters, keyboards and models as one. Both are the
same name here; where a disk has a file of each spelling, an exact name means its own file.

Invariants: only stat and listings, no content; no symbolic link is entered; a name is given back as the disk has it.
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path
from stat import S_ISDIR

from indexer.types import composed

_CONTROLS = frozenset({"Cc", "Zl", "Zp"})


def name_fault(name: str, *, backslash: bool = False) -> str:
    """The fault of a name that cannot be given back as it is, such as one of two lines; empty if it has none.

    Args:
        name: A name or a path.
        backslash: Whether it may have a backslash, which other systems take for a slash.
    """
    if "\\" in name and not backslash:
        return "has a backslash in it"
    if name.isascii() and name.isprintable():
        return ""
    categories = {unicodedata.category(char) for char in name}
    if "Cs" in categories:
        return "is not UTF-8"
    return "has a control character in it" if categories & _CONTROLS else ""


def path_on_disk(folder: Path, path: str) -> str | None:
    """The path of a file or folder, as the disk spells it; None if there is none in any Unicode form.

    Args:
        folder: The folder that the path is relative to.
        path: A relative path without `.` and `..`.
    """
    return next(_spellings(folder, "", path.split("/")), None)


def path_for_new(folder: Path, path: str) -> str:
    """The path of a new file: the folders that are there as the disk spells them, the rest in the form NFC."""
    parts = path.split("/")
    for count in range(len(parts) - 1, 0, -1):
        above = path_on_disk(folder, "/".join(parts[:count]))
        if above is not None:
            return f"{above}/{composed('/'.join(parts[count:]))}"
    return composed(path)


def _spellings(folder: Path, above: str, parts: Sequence[str]) -> Iterator[str]:
    """The paths below a folder that spell some parts, the exact one first."""
    for name in _names_like(folder / above, parts[0]):
        if len(parts) == 1:
            yield above + name
        else:
            yield from _spellings(folder, f"{above}{name}/", parts[1:])


def _names_like(folder: Path, name: str) -> list[str]:
    """The names in a folder that are a name in any form: the exact one first, then the composed one."""
    wanted = composed(name)
    try:
        if not S_ISDIR(os.lstat(folder).st_mode):
            return []
        if wanted == name == unicodedata.normalize("NFD", name):
            os.lstat(folder / name)
            return [name]
        names = (each for each in os.listdir(folder) if composed(each) == wanted)
        return sorted(names, key=lambda each: (each != name, each != wanted, each))
    except OSError:
        return []
