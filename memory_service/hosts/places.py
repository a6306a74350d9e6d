"""Places whose files are read for a hook call that names them: a transcript, or the rules of a project.

Rules: the command `hook` is run by the host as the user, and reads what the user can. A call over HTTP may come from
anybody who has a key, so it has the folders that hosts keep their own things in, the home, and those that the setting
`host_folders` adds; one that came through a proxy, or with a key of one workspace, has none.

The folder of a project is looked for whoever names it, as its name is that of a workspace; nothing in it is read for
that but what `.git` says.

Invariants: links are resolved before a path is compared, and what was compared is what is read; a path that cannot be
resolved is refused, without an error; nothing is listed or made.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

# Whose files a call may name: the user's, those of hosts, or none, with the word that came through a proxy for it.
FileAccess: TypeAlias = Literal["all", "hosts", "proxied", "none"]

# Where hosts keep their own things: the variable that names the folder, the usual one, and the part of it.
# Source: the pages that `memory_service.hosts.connect` names; XDG Base Directory Specification.
_HOST_FOLDERS = (
    ("CLAUDE_CONFIG_DIR", ".claude", ""),
    ("XDG_CONFIG_HOME", ".config", "claude"),
    ("CODEX_HOME", ".codex", ""),
    ("", ".cursor", ""),
    ("XDG_CONFIG_HOME", ".config", "opencode"),
    ("XDG_DATA_HOME", ".local/share", "opencode"),
    ("OPENCLAW_STATE_DIR", ".openclaw", ""),
)
_SHOWN_CHARS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadablePlaces:
    """Places that one call may name.

    Attributes:
        access: Whose files it may name.
        folders: Folders beside those of hosts: the home, and the setting `host_folders`.
    """

    access: FileAccess
    folders: tuple[Path, ...] = ()

    @property
    def is_local(self) -> bool:
        """True if the host works on this machine, so that the folder of its project may be looked for."""
        return self.access in ("all", "hosts")

    def place(self, text: str) -> Path | None:
        """The place of a path, as it may be read; None if it may not be."""
        if self.access == "all":
            return Path(text)
        if self.access == "hosts":
            with suppress(OSError, ValueError):
                place = os.path.realpath(text)
                if os.path.isabs(text) and any(_is_below(place, folder) for folder in self._allowed_folders()):
                    return Path(place)
        return None

    def refusal(self, text: str) -> str:
        """The reason why a path is not read, and what to do; empty where nobody has to be told."""
        if self.access == "proxied":
            return (
                f"The file {text[:_SHOWN_CHARS]!r} is not read, as the call came through a proxy. Let the host run "
                "`memory-service hook`, or call the server itself."
            )
        if self.access == "none":
            return ""
        return (
            f"The file {text[:_SHOWN_CHARS]!r} is not read for a call over HTTP, as it lies outside of the folders of "
            "hosts. Let the host run `memory-service hook`, or add its folder to the setting host_folders."
        )

    def _allowed_folders(self) -> Iterable[str]:
        return {os.path.realpath(folder) for folder in (*_host_folders(), *self.folders)}


def user_folder(variable: str, *names: str) -> Path:
    """A folder of a host in the user's own, or where a variable of the host says."""
    given_text = os.environ.get(variable, "")
    return Path(given_text).expanduser() if given_text else Path.home().joinpath(*names)


def _host_folders() -> Iterator[Path]:
    """The folders of hosts, where the variables say and where they lie without them."""
    for variable, usual, part in _HOST_FOLDERS:
        with suppress(RuntimeError):  # a user without a home
            for folder in (user_folder(variable, usual), Path.home() / usual):
                if folder.is_absolute():
                    yield folder / part


def _is_below(place: str, folder: str) -> bool:
    return os.path.dirname(folder) != folder and Path(folder) in (Path(place), *Path(place).parents)
