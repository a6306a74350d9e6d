"""Projects: which memory the work in a folder belongs to, and the rules that lie in it.

A project is a Git repository with all of its worktrees and subfolders; else the folder itself. Its workspace is named
after its folder, with the beginning of a digest of the whole path behind. Which project a workspace is of stands in its
file `.project`, so that two projects never share one: where the short name is another's, the name has more digits.

Invariants: no program is started; a broken `.git` counts as none; a submodule is a project of its own.

Source: gitrepository-layout(5) for `gitdir:` files and `commondir`.
"""

from __future__ import annotations

import hashlib
import os
import unicodedata
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING

from indexer.common import lazy_regex
from memory_service.errors import InvalidRequest, MemoryServiceError
from memory_service.home import PROJECT_FILE, project_of_workspace
from memory_service.storage.files.disk import replace_durably

if TYPE_CHECKING:
    from memory_service.config import Settings

RULE_FILES = ("AGENTS.md", "CLAUDE.md", "CLAUDE.local.md")
_MOST_RULE_BYTES = 64 * 1024
_MOST_POINTER_BYTES = 4096
_NOT_IN_NAME = lazy_regex(r"[^a-z0-9]+")
_MOST_NAME_CHARS = 40
_DIGEST_CHARS = 4
# So many digits had the names that earlier versions gave, and have those of projects whose short name is taken.
_LONG_DIGEST_CHARS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A project.

    Attributes:
        identity: The folder that all of its worktrees share: a repository's Git folder, else the folder itself.
        root: The top folder of the worktree that the work is in.
    """

    identity: Path
    root: Path

    def workspace_in(self, home: Path) -> str:
        """The name of its workspace in a home, there or not: readable, such as `shop-1f3a`, and its own."""
        if (home / self.workspace_elsewhere).is_dir():
            return self.workspace_elsewhere
        short = self._make_name(_DIGEST_CHARS)
        return short if project_of_workspace(home / short) in ("", self._place) else self.workspace_elsewhere

    def workspace_for(self, settings: Settings) -> str:
        """The name of its workspace where the memories of a service are, there or not.

        In a database it is the short one only if the home folder says that it is this project's.
        """
        name = self.workspace_in(settings.home)
        is_short = not settings.database_url or project_of_workspace(settings.home / name) == self._place
        return name if is_short else self.workspace_elsewhere

    @property
    def workspace_elsewhere(self) -> str:
        """The name of its workspace where nobody can look whose a short name is: in a database, on another machine."""
        return self._make_name(_LONG_DIGEST_CHARS)

    def mark(self, folder: Path) -> None:
        """Note in the folder of its workspace, if that is there, which project it is of."""
        if folder.is_dir() and not project_of_workspace(folder):
            with suppress(MemoryServiceError):
                # Who recovers the workspace beside it sweeps the drafts in its folder.
                name = f"{self._place}\n".encode()
                replace_durably(folder / PROJECT_FILE, name, expected=None, drafts=folder.parent)

    @property
    def _place(self) -> str:
        return _as_text(self._path)

    @property
    def _path(self) -> str:
        return unicodedata.normalize("NFC", os.fspath(self.identity))

    def _make_name(self, digits: int) -> str:
        path = self.identity.parent if self.identity.name == ".git" else self.identity
        plain = unicodedata.normalize("NFKD", path.name.removesuffix(".git")).lower()
        name = _NOT_IN_NAME.sub("-", plain).strip("-")[:_MOST_NAME_CHARS].strip("-")
        digest = hashlib.sha256(self._path.encode("utf-8", "surrogateescape")).hexdigest()[:digits]
        return f"{name or 'project'}-{digest}"

    def rules(self) -> dict[str, str]:
        """Texts of the files of rules at its top, by name; one that says the same as another stands once."""
        fields = dict[str, str]()
        for name in RULE_FILES:
            with suppress(OSError):
                text = _read(self.root / name, _MOST_RULE_BYTES).strip()
                if text and text not in fields.values():
                    fields[name] = text
        return fields


def _is_name(text: str) -> bool:
    """True if a file system can be asked for a path; half a surrogate pair cannot be encoded."""
    try:
        return b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        return False


def project_of(folder: str) -> Project:
    """The project of a folder.

    Raises:
        InvalidRequest: The path is relative, or there is no such folder.
    """
    given_path = Path(folder)
    if not given_path.is_absolute() or not _is_name(folder):
        raise InvalidRequest(f"The folder {folder[:200]!r} is no absolute path. Send that of the project as `cwd`.")
    place = Path(os.path.realpath(given_path))
    if not os.path.isdir(place):
        raise InvalidRequest(f"There is no folder {folder[:200]!r} on this machine. Send that of the project as `cwd`.")
    for at in (place, *place.parents):
        if git := _git_folder(at):
            common = _common_folder(git)
            return Project(identity=common, root=at)
    return Project(identity=place, root=place)


def project_elsewhere(folder: str) -> Project:
    """The project of a folder on another machine, where nobody can look: the folder itself.

    Raises:
        InvalidRequest: The path is relative.
    """
    windows = PureWindowsPath(folder)
    if not _is_name(folder) or not (PurePosixPath(folder).is_absolute() or windows.is_absolute()):
        raise InvalidRequest(f"The folder {folder[:200]!r} is no absolute path. Send that of the project as `cwd`.")
    place = Path(windows.as_posix() if windows.drive else folder.rstrip("/") or "/")
    return Project(identity=place, root=place)


def _as_text(path: str) -> str:
    """A path as it can be written down, whatever bytes are in it."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _git_folder(folder: Path) -> Path | None:
    """The Git folder of a worktree, or of a bare repository; None if a folder is neither."""
    dot = folder / ".git"
    if _is_git(dot):
        return dot
    with suppress(OSError, ValueError):
        if dot.is_file():
            pointer = _read(dot, _MOST_POINTER_BYTES)
            target = Path(os.path.realpath(folder / pointer.removeprefix("gitdir:").strip()))
            return target if pointer.startswith("gitdir:") and (target / "HEAD").is_file() else None
    return folder if _is_git(folder) else None


def _is_git(folder: Path) -> bool:
    with suppress(OSError):
        return (folder / "HEAD").is_file() and (folder / "objects").is_dir() and (folder / "refs").is_dir()
    return False


def _common_folder(git: Path) -> Path:
    """The Git folder that worktrees share."""
    with suppress(OSError, ValueError):
        return Path(os.path.realpath(git / _read(git / "commondir", _MOST_POINTER_BYTES).strip()))
    return Path(os.path.realpath(git))


def _read(file: Path, most_bytes: int) -> str:
    """The beginning of a file; of a pipe nothing, as opening it would wait for somebody to write into it."""
    if not file.is_file():
        return ""
    with file.open("rb") as reader:
        return reader.read(most_bytes).decode("utf-8", "replace")
