"""The home folder: where it is, how a workspace and a place in it are named, and the server that runs on it.

A server writes its address into `<home>/.server.json`, and takes it away when it ends. Invariants: the file is its
owner's alone, and is believed only then, and only in the folder that it was written for: a copy of a home has another
server, or none; a file that a killed server left behind does no harm, as its address answers with another instance, or
not at all. This module loads next to nothing: a command that goes through a server is done
in the time that others take to import.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from memory_service._version import __version__
from memory_service.errors import InvalidName, InvalidRequest

PREFIX = "MEMORY_SERVICE_"
DEFAULT_HOME = Path("~/.memory-service")
WORKSPACE_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
# With this header a request is for the server of that instance alone.
INSTANCE_HEADER = "X-Memory-Instance"
CONNECT_SECONDS = 5.0
# In the folder of a workspace: which project of a coding agent it is of.
PROJECT_FILE = ".project"
_MOST_PATH_BYTES = 4096
_FILE_NAME = ".server.json"


class ServerAddress(NamedTuple):
    """A server that runs on a home.

    Attributes:
        url: Its address, as this machine reaches it.
        instance: Its name for this run.
        folder: What tells the home from a copy of it; empty from versions that did not say.
    """

    url: str
    instance: str
    pid: int
    started_at: float
    version: str
    folder: str = ""


def home_of(given: Path | str | None) -> Path:
    """The home folder: the given one, else that of the environment, else the default.

    Raises:
        InvalidRequest: It lies in the folder of a user who has none here.
    """
    home = Path(given or os.environ.get(f"{PREFIX}HOME") or DEFAULT_HOME)
    try:
        return home.expanduser()
    except RuntimeError:
        raise InvalidRequest(
            f"The home {home} lies in a user's own folder, and there is none here. Name another one: --home FOLDER, or "
            f"{PREFIX}HOME."
        ) from None


def project_of_workspace(folder: Path) -> str:
    """The folder of the coding agent's project that a workspace is of, as it was noted there; empty for none."""
    with suppress(OSError), (folder / PROJECT_FILE).open("rb") as opened:
        return opened.read(_MOST_PATH_BYTES).decode("utf-8", "replace").strip()
    return ""


def check_workspace(name: str) -> None:
    """Make sure that a name can be one of a workspace.

    Raises:
        InvalidName: It cannot.
    """
    if WORKSPACE_NAME.fullmatch(name) is None:
        raise InvalidName(
            f"{shown_name(name)} is no name of a workspace. "
            "Use 1 to 64 of a-z, 0-9, '.', '_' and '-', and begin with a letter or digit."
        )


def shown_name(given: str) -> str:
    """A name from outside, short and on one line."""
    text = ascii(given) if not given.isprintable() else repr(given)
    return text if len(text) <= 100 else f"{text[:97]}...'"


def nearest(given: str, known: Iterable[str]) -> str:
    """The question whether a known name was meant, behind a sentence about a wrong one; empty if none is like it."""
    from difflib import get_close_matches

    return "".join(f" Did you mean {name!r}?" for name in get_close_matches(given, known, n=1))


def citation(path: str, start_line: int, end_line: int) -> str:
    """Path and lines in one word, as code hosts write them."""
    return f"{path}#L{start_line}" if start_line == end_line else f"{path}#L{start_line}-L{end_line}"


def new_instance() -> str:
    """A name for one run of a server."""
    import secrets

    return secrets.token_hex(8)


@contextmanager
def announced(home: Path, url: str, instance: str) -> Iterator[None]:
    """Let commands find a server until the block ends; without a word where the home cannot be written.

    Then the server that was there before is found again, if it still answers.
    """
    before = server_of(home)
    with suppress(OSError):
        home.mkdir(parents=True, exist_ok=True)
        _write(home, ServerAddress(url, instance, os.getpid(), time.time(), __version__, _folder_id(home)))
    try:
        yield
    finally:
        now = server_of(home)
        if now is not None and now.instance == instance:
            (home / _FILE_NAME).unlink(missing_ok=True)
            if before is not None and answers(before.url):
                with suppress(OSError):
                    _write(home, before)


def _write(home: Path, address: ServerAddress) -> None:
    draft = home / f"{_FILE_NAME}.{address.instance}.tmp"
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as opened:
        json.dump(address._asdict(), opened)
    os.replace(draft, home / _FILE_NAME)


def answers(url: str) -> bool:
    """True if somebody listens at an address."""
    import socket
    from urllib.parse import urlsplit

    parts = urlsplit(url)
    try:
        with socket.create_connection((parts.hostname or "", parts.port or 0), CONNECT_SECONDS):
            return True
    except (OSError, ValueError):
        return False


def server_of(home: Path) -> ServerAddress | None:
    """The server that says that it runs on a home; None if none does, or the file is not its owner's alone."""
    try:
        with (home / _FILE_NAME).open("rb") as opened:
            status = os.fstat(opened.fileno())
            if not _is_owners_alone(status):
                return None
            address = ServerAddress(**json.load(opened))
        if address.folder not in ("", _folder_id(home)):
            return None
    except (OSError, ValueError, TypeError):
        return None
    texts: tuple[object, ...] = (address.url, address.instance, address.version)
    return address if all(isinstance(text, str) and text.isprintable() for text in texts) else None


def _folder_id(home: Path) -> str:
    """Device and inode of a folder: those it has under every name, and no copy of it has."""
    status = home.stat()
    return f"{status.st_dev}-{status.st_ino}"


def _is_owners_alone(status: os.stat_result) -> bool:
    """True if nobody else could have written a file or can read it; Windows keeps homes apart by itself."""
    own_id = getattr(os, "getuid", None)
    return own_id is None or (status.st_uid == own_id() and not status.st_mode & 0o077)
