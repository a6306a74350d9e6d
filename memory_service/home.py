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
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from memory_service._version import __version__
from memory_service.errors import InvalidName, InvalidRequest, MemoryServiceError, NotFound

PREFIX = "MEMORY_SERVICE_"
DEFAULT_HOME = Path("~/.memory-service")
WORKSPACE_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
MAX_SESSION_ID_CHARS = 128
SESSION_NAME = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._-]{{0,{MAX_SESSION_ID_CHARS - 1}}}")
_MOST_SLUG_CHARS = 40
# With this header a request is for the server of that instance alone.
INSTANCE_HEADER = "X-Memory-Instance"
CONNECT_SECONDS = 5.0
# Behind it a message about something that is missing has the place.
LOOKED_FOR = "It was looked for in"
# How the files of a home are laid out. A version that changes it writes its number into `<home>/.format`, which keeps
# versions before it out; without the file it is 1.
FORMAT = 1
_FORMAT_FILE = ".format"
# In the folder of a workspace: which project of a coding agent it is of.
PROJECT_FILE = ".project"
_MOST_PATH_BYTES = 4096
_FILE_NAME = ".server.json"
SETTINGS_FILE = "memory-service.toml"
# What the service makes in a home, and in a workspace.
_HOME_NAMES = frozenset({
    _FILE_NAME, "sealing.key", "signing.key", "hooks.log", "hooks.log.1", "gateway.log", "gateway.log.1",
    SETTINGS_FILE, ".hosts", ".hooks", ".keys", ".shared", _FORMAT_FILE,
})  # fmt: skip
_WORKSPACE_NAMES = frozenset({
    "MEMORY.md", "USER.md", "memory", "sessions", "receipts", "prompts", "engines", "index.sqlite", ".locks", ".hosts",
    PROJECT_FILE,
    ".rebuild.lock",
})  # fmt: skip
_WORKSPACE_BEGINNINGS = ("index", ".index")


class ServerAddress(NamedTuple):
    """A server that runs on a home.

    Attributes:
        url: Its address, as this machine reaches it.
        instance: Its name for this run.
        folder: What tells the home from a copy of it; empty from versions that did not say.
        storage: What tells its database from another one; empty for files.
    """

    url: str
    instance: str
    pid: int
    started_at: float
    version: str
    folder: str = ""
    storage: str = ""

    def works_for(self, home: Path) -> bool:
        """True unless the settings of a home name another database; where they name none, the server's is meant."""
        address = database_of(home)
        return not address or _database_mark(self.instance, address) == self.storage


def home_of(given_value: Path | str | None) -> Path:
    """The home folder: the given one, else that of the environment, else the default.

    Raises:
        InvalidRequest: It lies in the folder of a user who has none here.
    """
    home = Path(given_value or os.environ.get(f"{PREFIX}HOME") or DEFAULT_HOME)
    try:
        return home.expanduser()
    except RuntimeError:
        raise InvalidRequest(
            f"The home {home} lies in a user's own folder, and there is none here. Name another one: --home FOLDER, or "
            f"{PREFIX}HOME."
        ) from None


def database_of(home: Path) -> str:
    """The address of the database in the place of a home's files, by environment and settings file; empty for none."""
    if (address := os.environ.get(f"{PREFIX}DATABASE_URL")) is not None:
        return address
    with suppress(OSError, ValueError):
        text = (home / SETTINGS_FILE).read_text("utf-8")
        if "database_url" in text:
            import tomllib

            return str(tomllib.loads(text).get("database_url", ""))
    return ""


def _database_mark(instance: str, address: str) -> str:
    """The mark of a database for one run of a server, which tells nothing of its address."""
    import hashlib

    return hashlib.sha256(f"{instance} {address}".encode()).hexdigest()[:16] if address else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchedPlace:
    """Where a request was answered from, for the messages of what went wrong.

    Attributes:
        home: The home.
        place: Where its storage is, as the storage names it: the folder of the home, or a database.
        workspace: The workspace that the request names; empty for none.
        shows_home: Whether who asks may know where the home lies: not with a key for one workspace.
    """

    home: Path
    place: str
    workspace: str
    shows_home: bool

    def error_message(self, error: MemoryServiceError) -> str:
        """The message of an error, in which what is missing comes with the place where it was looked for."""
        message = self.hide_home(str(error))
        if not isinstance(error, NotFound) or not self.workspace or (self.shows_home and self.place in message):
            return message
        place = self.place if self.shows_home else "this server"
        return f"{message} {LOOKED_FOR} the workspace {self.workspace} of {place}."

    def hide_home(self, message: str) -> str:
        """A message without the path of the home and the address of its database, unless who asks may know them."""
        return message if self.shows_home else _without_place(message, self.home, self.place)


def _without_place(message: str, home: Path, place: str) -> str:
    """A message in which what lies in a home is named from there, and the home itself by that word."""
    for path in {str(home), str(home.absolute()), os.path.realpath(home), place} - {os.sep, os.curdir}:
        whole = rf"(?<![\w./\\-]){re.escape(path)}"
        message = re.sub(rf"{whole}{re.escape(os.sep)}(?=\S)", "", message)
        named = rf"([Tt]he (?:home|database) )?{whole}(?![\w-])"
        message = re.sub(named, lambda match: f"{match[1] or 'the home '}of this server", message)
    return message


def check_format(home: Path) -> None:
    """Make sure that no newer version has made a home in a way that this one does not know.

    Raises:
        InvalidRequest: One has.
    """
    try:
        with (home / _FORMAT_FILE).open("rb") as reader:
            text = reader.read(100).decode("utf-8", "replace").strip()
    except OSError:
        return
    if not (text.isascii() and text.isdigit() and int(text) <= FORMAT):
        raise InvalidRequest(
            f"The home {home} was made by a newer version: its format is {shown_name(text)}, and memory-service "
            f"{__version__} knows {FORMAT}. Nothing was read or changed. Upgrade memory-service, or name another home."
        )


def project_of_workspace(folder: Path) -> str:
    """The folder of the coding agent's project that a workspace is of, as it was noted there; empty for none."""
    with suppress(OSError), (folder / PROJECT_FILE).open("rb") as reader:
        return reader.read(_MOST_PATH_BYTES).decode("utf-8", "replace").strip()
    return ""


def make_home(home: Path) -> None:
    """Make a home that only its owner can enter; one that is there becomes so."""
    missing = [folder for folder in (home, *home.absolute().parents) if not folder.exists()]
    for folder in reversed(missing):
        with suppress(FileExistsError):
            folder.mkdir(mode=0o700 if folder == home else 0o777)
        _sync_names(folder.parent)
    tighten(home, is_home=True)


def _sync_names(folder: Path) -> None:
    """Make the names in a folder outlive a power cut, where the system knows such a thing."""
    if os.name != "nt":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def tighten(home: Path, *, is_home: bool = False) -> None:
    """Take from others what they may do with a home that an earlier version made.

    Looks at one folder where there is nothing to do: the home is the last thing that is tightened, so this goes on
    where it was interrupted. Links are not followed; files of other owners, and what is not the service's, stay.

    Args:
        home: The home; it need not be there.
        is_home: Whether it is one though nothing in it shows that.
    """
    with suppress(OSError):
        status = home.stat()
        if not open_to_others(status) or is_shared(home, status):
            return
        places = list(own_places(home))
        if not places and not is_home:
            return
        for place in places:
            _narrow(place, status.st_uid)
        _narrow(home.resolve(), status.st_uid)


def tighten_workspace(folder: Path) -> None:
    """The same for a workspace, which may have come into a home later; looks at a few names where nothing is to do."""
    with suppress(OSError):
        owner = folder.parent.stat().st_uid
        for name in _HOME_NAMES:
            place = folder.parent / name
            with suppress(FileNotFoundError):
                if stat.S_ISDIR((status := os.lstat(place)).st_mode) and open_to_others(status):
                    for path in _below(place):
                        _narrow(path, owner)
                _narrow(place, owner)
        looked_at = (folder, *(folder / name for name in _WORKSPACE_NAMES))
        lstats = (os.lstat(place) for place in looked_at if os.path.lexists(place) and not place.is_symlink())
        if any(map(open_to_others, lstats)):
            for place in (*_places_of_workspace(folder), folder):
                _narrow(place, owner)


def open_to_others(status: os.stat_result) -> bool:
    """True if others than the owner may do something with a file or folder; Windows keeps homes apart by itself."""
    return os.name != "nt" and bool(status.st_mode & 0o077)


def is_shared(home: Path, status: os.stat_result) -> bool:
    """True if a folder is for more than a home, so that it keeps its mode: /tmp, the root, the folder of a user."""
    place = os.path.realpath(home)
    of_user = os.path.realpath(os.path.expanduser("~"))
    return bool(status.st_mode & stat.S_ISVTX) or place in (os.path.dirname(place), of_user)


def own_places(home: Path) -> Iterator[Path]:
    """Files and folders of a home that the service made, the inner ones first."""
    with os.scandir(home) as entries:
        ours = [dir_entry for dir_entry in entries if _is_ours(dir_entry)]
    for our in ours:
        place = Path(our.path)
        if WORKSPACE_NAME.fullmatch(our.name) and our.is_dir(follow_symlinks=False):
            yield from _places_of_workspace(place)
        elif our.is_dir(follow_symlinks=False):
            yield from _below(place)
        yield place


def _is_ours(entry: os.DirEntry[str]) -> bool:
    if entry.name in _HOME_NAMES:
        return True
    if not WORKSPACE_NAME.fullmatch(entry.name) or not entry.is_dir(follow_symlinks=False):
        return False
    return any(os.path.lexists(os.path.join(entry.path, name)) for name in _WORKSPACE_NAMES)


def _places_of_workspace(folder: Path) -> Iterator[Path]:
    for place in folder.iterdir():
        if place.name in _WORKSPACE_NAMES or place.name.startswith(_WORKSPACE_BEGINNINGS):
            if place.is_dir() and not place.is_symlink():
                yield from _below(place)
            yield place


def _below(folder: Path) -> Iterator[Path]:
    for at, folders, files in os.walk(folder, topdown=False):
        yield from (Path(at, name) for name in (*files, *folders))


def _narrow(place: Path, owner: int) -> None:
    """Leave a file or folder to its owner; a file that has a second name, which may stand elsewhere, stays."""
    with suppress(OSError):
        status = os.lstat(place)
        is_file, is_folder = stat.S_ISREG(status.st_mode), stat.S_ISDIR(status.st_mode)
        alone = is_folder or status.st_nlink == 1 or place.name.startswith(_WORKSPACE_BEGINNINGS)
        if (is_file or is_folder) and alone and status.st_uid == owner and open_to_others(status):
            os.chmod(place, stat.S_IMODE(status.st_mode) & 0o700)


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


def check_session_id(session_id: str) -> None:
    """Make sure that a name is the id of a session.

    Raises:
        InvalidName: It is none.
    """
    if SESSION_NAME.fullmatch(session_id) is None:
        raise InvalidName(
            f"{session_id[:100]!r} is no id of a session. "
            "Use 1 to 128 of A-Z, a-z, 0-9, '.', '_' and '-', and begin with a letter or digit."
        )


def is_title(name: str) -> bool:
    """True for a name that is no id of a session and may be the title of one: words, in whatever script."""
    if SESSION_NAME.fullmatch(name) or not name.strip() or not name.isprintable() or "/" in name or "\\" in name:
        return False
    return not name.isascii() or " " in name


def id_of_title(title: str) -> str:
    """The id that a session of this title has: what of the title may be in an id, and a digest of all of it."""
    import hashlib
    import unicodedata

    whole = unicodedata.normalize("NFC", title.strip())
    words = re.findall(r"[A-Za-z0-9]+", unicodedata.normalize("NFKD", whole))
    slug = "-".join(words).lower()[:_MOST_SLUG_CHARS].strip("-")
    return f"{slug or 'session'}-{hashlib.sha256(whole.encode('utf-8', 'replace')).hexdigest()[:8]}"


def shown_name(given_text: str) -> str:
    """A name from outside, short and on one line."""
    text = repr(given_text)
    return text if len(text) <= 100 else f"{text[:97]}...'"


def nearest(given_text: str, known_texts: Iterable[str]) -> str:
    """The question whether a known name was meant, behind a sentence about a wrong one; empty if none is like it."""
    from difflib import get_close_matches

    return "".join(f" Did you mean {name!r}?" for name in get_close_matches(given_text, known_texts, n=1))


def citation(path: str, start_line: int, end_line: int) -> str:
    """Path and lines in one word, as code hosts write them."""
    return f"{path}#L{start_line}" if start_line == end_line else f"{path}#L{start_line}-L{end_line}"


def new_instance() -> str:
    """A name for one run of a server."""
    import secrets

    return secrets.token_hex(8)


@contextmanager
def announce_server(home: Path, url: str, instance: str, *, database: str = "") -> Iterator[None]:
    """Let commands find a server until the block ends; without a word where the home cannot be written.

    Then the server that was there before is found again, if it still answers.

    Args:
        home: The home.
        url: The address of the server.
        instance: Its name for this run.
        database: The address of its database; empty for files.
    """
    before, mark = server_of(home), _database_mark(instance, database)
    with suppress(OSError):
        make_home(home)
        _write(home, ServerAddress(url, instance, os.getpid(), time.time(), __version__, _folder_id(home), mark))
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
    draft = home / f"{_FILE_NAME}.{address.instance}.tmp"  # as `memory_service.storage.files.disk` names drafts
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as wrapper:
        json.dump(address._asdict(), wrapper)
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
        with (home / _FILE_NAME).open("rb") as reader:
            status = os.fstat(reader.fileno())
            if not _is_owners_alone(status):
                return None
            address = ServerAddress(**json.load(reader))
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
