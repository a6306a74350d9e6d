"""Owns which ignore rules hold at a place of a tree: those in its folders, and in the repository around them.

Invariants: inner rules come before outer ones; rules that cannot be read are an error, for what they hide must not be
shown; as in git, rules that are a symbolic link are none.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from stat import S_ISREG

from indexer.files.gitignore import IgnoreRules, read_rules

# What in a folder says that there are rules, and where they are; the last ones count first.
RULES_NAMES = {".git": ".git/info/exclude", ".gitignore": ".gitignore"}
_LARGEST_RULES = 1024 * 1024
_REMEDIES = {
    errno.ENAMETOOLONG: "give it a shorter path",
    errno.ELOOP: "take the link that leads back to itself away",
    errno.EIO: "check the disk",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """Rules that hold for a folder and all below it: a path counts from `cut` on, behind `prefix`."""

    rules: IgnoreRules
    cut: int
    prefix: str = ""


class Unreadable(Exception):
    """A folder, or the rules in it, cannot be read."""


def is_ignored(levels: tuple[Level, ...], folder: str, name: str, *, is_folder: bool) -> bool:
    """Whether something is ignored.

    Args:
        levels: The rules that hold where it lies, the innermost first.
        folder: The folder that it lies in, from the top of the tree, with a slash at the end; empty for the top.
        name: What it is called.
        is_folder: Whether it is a folder.
    """
    for level in levels:
        verdict = level.rules.verdict(level.prefix + folder[level.cut :], name, is_folder=is_folder)
        if verdict is not None:
            return verdict
    return False


def with_rules_in(levels: tuple[Level, ...], folder: str, names: Collection[str], way: str) -> tuple[Level, ...]:
    """The levels that hold in a folder: those of the one above, and its own.

    Args:
        levels: Those of the one above.
        folder: The folder, with a slash at the end.
        names: What is in it; of these, names that `RULES_NAMES` has count.
        way: The folder from the top of the tree, with a slash at the end.

    Raises:
        Unreadable: It has rules that cannot be read.
    """
    for name, path in RULES_NAMES.items():
        if name in names and (text := _text_of(folder + path)) is not None:
            levels = (Level(rules=read_rules(text), cut=len(way)), *levels)
    return levels


def rules_above(top: str) -> Iterator[Level]:
    """The rules of the repository that a folder lies in, the innermost first, but for those in the folder itself."""
    at, prefix = top, ""
    found: list[Level] = []
    while not os.path.lexists(os.path.join(at, ".git")):
        above, name = os.path.split(at)
        if above == at:
            return
        at, prefix = above, f"{name}/{prefix}"
        text = _text_of(os.path.join(at, ".gitignore"))
        if text is not None:
            found.append(Level(rules=read_rules(text), cut=0, prefix=prefix))
    yield from found
    if at != top and (text := _text_of(os.path.join(at, ".git", "info", "exclude"))) is not None:
        yield Level(rules=read_rules(text), cut=0, prefix=prefix)


def _text_of(path: str) -> str | None:
    """The rules in a file; None if there is none that git would read.

    Raises:
        Unreadable: There is one that cannot be read: what it hides must not be shown.
    """
    try:
        if not S_ISREG(os.lstat(path).st_mode):
            return None
        with open(path, "rb") as stream:
            raw = stream.read(_LARGEST_RULES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise Unreadable(f"its {os.path.basename(path)} {why(error).removeprefix('it ')}") from None
    if len(raw) > _LARGEST_RULES:
        raise Unreadable(f"its {os.path.basename(path)} has more than {_LARGEST_RULES:,} bytes; shorten it")
    return os.fsdecode(raw)


def why(error: OSError) -> str:
    """What the system says of a folder or file that cannot be read."""
    return f"it cannot be read ({error.strerror}); {_REMEDIES.get(error.errno or 0, 'check its permissions')}"
