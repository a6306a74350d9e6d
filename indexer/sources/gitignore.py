"""Ignore rules in the notation of `.gitignore`: their patterns, and the rules that hold in a folder.

Invariants: the last rule that matches decides, as in git, inner rules before outer ones; a pattern that git would
never match matches nothing; no pattern takes more than linear time in the length of a name, whoever wrote it; rules
that cannot be read are an error, for the files that they hide must not be shown; as in git, rules that are a symbolic
link are none.

A walk asks from the top down and stays out of what is ignored, so a rule for a folder need not be asked about the
files below it. `pathspec` 1.1.1 is no replacement: it has no `[[:alpha:]]`, refuses a whole file for a pattern that
ends in a backslash, and with `/**/a/**/a/…/b` comes to no end.
Source: gitignore(5), and git's own wildmatch.c, which the tests ask.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from stat import S_ISREG

_POSIX = {
    "alnum": "a-zA-Z0-9", "alpha": "a-zA-Z", "blank": " \\t", "digit": "0-9", "lower": "a-z", "upper": "A-Z",
    "punct": "!-/:-@\\[-`{-~", "space": " \\t-\\r", "xdigit": "0-9A-Fa-f", "graph": "!-~", "print": " -~",
    "cntrl": "\\x00-\\x1f\\x7f",
}  # fmt: skip
_POSIX_CLASS = re.compile(r"\[:([a-z]*):\]")
_SPECIAL = re.compile(r"[*?\[\\]")
_LONGEST_PATTERN = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Names:
    """Patterns for the last part of a path."""

    literals: frozenset[str]
    starts: tuple[str, ...]
    ends: tuple[str, ...]
    other: re.Pattern[str] | None

    def match(self, name: str) -> bool:
        if name in self.literals or name.endswith(self.ends) or name.startswith(self.starts):
            return True
        return self.other is not None and self.other.fullmatch(name) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Group:
    """Consecutive rules with the same verdict; those for folders alone are apart."""

    ignored: bool
    names: _Names
    folder_names: _Names
    paths: re.Pattern[str] | None
    folder_paths: re.Pattern[str] | None

    def match_folder(self, name: str, path: str) -> bool:
        return self.folder_names.match(name) or (
            self.folder_paths is not None and self.folder_paths.fullmatch(path) is not None
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class IgnoreRules:
    """The rules of one file, the last ones first."""

    groups: tuple[_Group, ...]

    def verdict(self, folder: str, name: str, *, is_folder: bool) -> bool | None:
        """True if a file or folder is ignored, False if a rule excepts it, None without a rule for it.

        Args:
            folder: Its folder, relative to that of the rules, with a slash at the end; empty for the same.
            name: Its name.
            is_folder: True for a folder.
        """
        for group in self.groups:
            # In one piece: a walk asks this of every file.
            names, paths = group.names, group.paths
            if (
                name in names.literals
                or name.endswith(names.ends)
                or name.startswith(names.starts)
                or (names.other is not None and names.other.fullmatch(name) is not None)
                or (paths is not None and paths.fullmatch(folder + name) is not None)
                or (is_folder and group.match_folder(name, folder + name))
            ):
                return group.ignored
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rule:
    pattern: str
    ignored: bool
    folders_only: bool
    anchored: bool


@lru_cache(maxsize=512)
def read_rules(text: str) -> IgnoreRules:
    """Rules of a `.gitignore` file; undecodable bytes stand in it as in the names of files."""
    lines = text.removeprefix("\ufeff").split("\n")
    rules = [rule for line in lines if (rule := _rule(line.removesuffix("\r"))) is not None]
    groups = [_group(is_ignored, list(same)) for is_ignored, same in groupby(rules, key=lambda rule: rule.ignored)]
    return IgnoreRules(groups=tuple(reversed(groups)))


def _rule(line: str) -> _Rule | None:
    if line.startswith("#"):
        return None
    pattern = _without_trailing_spaces(line)
    is_ignored = not pattern.startswith("!")
    pattern = pattern if is_ignored else pattern[1:]
    folders_only = pattern.endswith("/")
    pattern = pattern.removesuffix("/")
    is_anchored = "/" in pattern
    pattern = pattern.removeprefix("/")
    if not pattern or len(pattern) > _LONGEST_PATTERN:
        return None
    return _Rule(pattern=pattern, ignored=is_ignored, folders_only=folders_only, anchored=is_anchored)


def _without_trailing_spaces(line: str) -> str:
    bare = line.rstrip(" ")
    backslashes = len(bare) - len(bare.rstrip("\\"))
    return bare + " " if backslashes % 2 and len(bare) < len(line) else bare


def _group(is_ignored: bool, rules: list[_Rule]) -> _Group:
    def names(folders_only: bool) -> _Names:
        return _names([r.pattern for r in rules if not r.anchored and r.folders_only is folders_only])

    def paths(folders_only: bool) -> re.Pattern[str] | None:
        return _any_of([_path_regex(r.pattern) for r in rules if r.anchored and r.folders_only is folders_only])

    return _Group(
        ignored=is_ignored,
        names=names(False),
        folder_names=names(True),
        paths=paths(False),
        folder_paths=paths(True),
    )


def _names(patterns: list[str]) -> _Names:
    """Patterns sorted by cost: most are a name, or the beginning or end of one."""
    literals, starts, ends, other_texts = set[str](), list[str](), list[str](), list[str | None]()
    for pattern in patterns:
        if not _SPECIAL.search(pattern):
            literals.add(pattern)
        elif pattern[0] == "*" and not _SPECIAL.search(pattern, 1):
            ends.append(pattern[1:])
        elif pattern[-1] == "*" and not _SPECIAL.search(pattern[:-1]):
            starts.append(pattern[:-1])
        else:
            other_texts.append(_segment_regex(pattern))
    return _Names(literals=frozenset(literals), starts=tuple(starts), ends=tuple(ends), other=_any_of(other_texts))


def _any_of(regexes: list[str | None]) -> re.Pattern[str] | None:
    possible = [regex for regex in regexes if regex is not None]
    return re.compile("|".join(f"(?:{regex})" for regex in possible), re.DOTALL) if possible else None


def _path_regex(pattern: str) -> str | None:
    """A regular expression for a whole path; None for a pattern that matches nothing.

    Between two `**` the first place that fits is as good as any other, so nothing is ever tried twice.
    """
    parts: list[list[str]] = [[]]
    for segment in pattern.split("/"):
        if segment == "**":
            parts.append([])
        else:
            regex = _segment_regex(segment) if segment else None
            if regex is None:
                return None
            parts[-1].append(regex)
    if len(parts) == 1:
        return "/".join(parts[0])
    first, *middle, last = ("/".join(part) for part in parts)
    start = f"{first}/" if first else ""
    between = "".join(f"(?>(?:[^/]+/)*?{part}/)" for part in middle if part)
    return start + between + (f"(?:[^/]+/)*{last}" if last else ".+")


def _segment_regex(glob: str) -> str | None:
    """A regular expression for one part of a path; None for a pattern that matches nothing."""
    chunks: list[str] = [""]
    at = 0
    while at < len(glob):
        char = glob[at]
        at += 1
        if char == "*":
            if chunks[-1] or len(chunks) == 1:
                chunks.append("")
        elif char == "?":
            chunks[-1] += "[^/]"
        elif char == "[":
            class_regex = _class_regex(glob, at)
            if class_regex is None:
                return None
            at, regex = class_regex
            chunks[-1] += regex
        else:
            if char == "\\":
                if at == len(glob):
                    return None
                char = glob[at]
                at += 1
            chunks[-1] += re.escape(char)
    first, *rest = chunks
    if not rest:
        return first
    middle = "".join(f"(?>[^/]*?{chunk})" for chunk in rest[:-1])
    return f"{first}{middle}[^/]*{rest[-1]}"


def _class_regex(glob: str, at: int) -> tuple[int, str] | None:
    """End and regular expression of a bracket expression after its `[`; None if it does not end."""
    is_negated = at < len(glob) and glob[at] in "!^"
    start = at = at + is_negated
    items = ""
    while at < len(glob) and (glob[at] != "]" or at == start):
        if posix := _POSIX_CLASS.match(glob, at):
            if posix[1] not in _POSIX:
                return None
            items += _POSIX[posix[1]]
            at = posix.end()
            continue
        low, at = _class_char(glob, at)
        if at + 1 < len(glob) and glob[at] == "-" and glob[at + 1] != "]":
            high, at = _class_char(glob, at + 1)
            items += f"{re.escape(low)}-{re.escape(high)}" if low <= high else ""
        else:
            items += re.escape(low)
    if at >= len(glob):
        return None
    if not items:
        return at + 1, "[^/]" if is_negated else "(?!)"
    return at + 1, f"(?!/)[{'^' if is_negated else ''}{items}]"


def _class_char(glob: str, at: int) -> tuple[str, int]:
    if glob[at] == "\\" and at + 1 < len(glob):
        at += 1
    return glob[at], at + 1


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
    """Rules for a folder and all below it: a path counts from `cut` on, after `prefix`."""

    rules: IgnoreRules
    cut: int
    prefix: str = ""


class Unreadable(Exception):
    """A folder, or the rules in it, cannot be read."""


def is_ignored(levels: tuple[Level, ...], folder: str, name: str, *, is_folder: bool) -> bool:
    """True if a file or folder is ignored.

    Args:
        levels: The rules that hold in its folder, the innermost first.
        folder: Its folder, relative to the top of the tree, with a slash at the end; empty for the top.
        name: Its name.
        is_folder: True for a folder.
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
        names: Names in it; only those of `RULES_NAMES` count.
        way: The folder relative to the top of the tree, with a slash at the end.

    Raises:
        Unreadable: It has rules that cannot be read.
    """
    for name, path in RULES_NAMES.items():
        if name in names and (text := _text_of(folder + path)) is not None:
            levels = (Level(rules=read_rules(text), cut=len(way)), *levels)
    return levels


def rules_above(top: str) -> Iterator[Level]:
    """Rules of the repository around a folder, the innermost first, without those in the folder itself."""
    at, prefix = top, ""
    levels: list[Level] = []
    while not os.path.lexists(os.path.join(at, ".git")):
        above, name = os.path.split(at)
        if above == at:
            return
        at, prefix = above, f"{name}/{prefix}"
        text = _text_of(os.path.join(at, ".gitignore"))
        if text is not None:
            levels.append(Level(rules=read_rules(text), cut=0, prefix=prefix))
    yield from levels
    if at != top and (text := _text_of(os.path.join(at, ".git", "info", "exclude"))) is not None:
        yield Level(rules=read_rules(text), cut=0, prefix=prefix)


def _text_of(path: str) -> str | None:
    """The rules in a file; None if there is none that git would read."""
    try:
        if not S_ISREG(os.lstat(path).st_mode):
            return None
        with open(path, "rb") as stream:
            raw = stream.read(_LARGEST_RULES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise Unreadable(f"its {os.path.basename(path)} {unreadable_reason(error).removeprefix('it ')}") from None
    if len(raw) > _LARGEST_RULES:
        raise Unreadable(f"its {os.path.basename(path)} has more than {_LARGEST_RULES:,} bytes; shorten it")
    return os.fsdecode(raw)


def unreadable_reason(error: OSError) -> str:
    """Why a folder or file cannot be read, as the system says, and what to do."""
    return f"it cannot be read ({error.strerror}); {_REMEDIES.get(error.errno or 0, 'check its permissions')}"
