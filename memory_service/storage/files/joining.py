"""Two homes that became one: what another home has and this one lacks is copied here, as a plan first.

Invariants: nothing of the other home is changed, and nothing here is replaced: a file that differs from the one here of
the same name is copied under a name with the beginning of its digest, so that to join again copies nothing; what is
derived (indexes, receipts, prompts) is left; links are not followed.
"""

from __future__ import annotations

import filecmp
import hashlib
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Literal

from indexer import is_session_path, scan_workspace
from memory_service.errors import InvalidRequest
from memory_service.home import DEFAULT_HOME, PREFIX, PROJECT_FILE, WORKSPACE_NAME, check_format, make_home
from memory_service.storage.files.disk import make_folder, replace_durably, storage_errors
from memory_service.storage.home_join import HomeJoin, JoinedFile

_DIGEST_CHARS = 6
# Where commands of the first versions kept their memories, below the folder that they were called in.
_FORMER_HOME = "data"
_SAMPLE_MARK = b"# data\n\nA sample home"
_BLOBS = "sessions/blobs"


def plan_join(home: Path, path: Path) -> HomeJoin:
    """Plan of what another home would bring.

    Raises:
        InvalidRequest: It is no home, the same one, or one of a newer version.
        StorageFailed: It cannot be read.
    """
    if not path.is_dir() or not any(_workspaces(path)):
        raise InvalidRequest(f"{path} is no home: there is no workspace in it. Name the folder of the workspaces.")
    if os.path.realpath(home) == os.path.realpath(path):
        raise InvalidRequest(f"{path} is this home itself. Name the other one.")
    check_format(path)
    with storage_errors(f"the home {path}"):
        files = tuple(file for folder in _workspaces(path) for file in _plan_files(home / folder.name, folder))
    return HomeJoin(home=str(home), other=str(path), files=files)


def join(home: Path, other_path: Path) -> HomeJoin:
    """Copy what another home has and this one lacks; see `plan_join`.

    Raises:
        InvalidRequest: See `plan_join`.
        StorageFailed: Something cannot be read or written; what was copied stays.
    """
    plan = plan_join(home, other_path)
    with storage_errors(f"the home {home}"):
        make_home(home)
    for file in plan.missing:
        source, target = other_path / file.workspace / file.path, home / file.workspace / file.target
        with storage_errors(f"{file.workspace}/{file.target}"):
            make_folder(home / file.workspace)
            make_folder(target.parent)
            status = source.stat()
            replace_durably(target, source.read_bytes(), expected=None)
            os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))
    return plan


def other_homes(home: Path) -> list[HomeJoin]:
    """Homes beside one that somebody may have written to by mistake, and that have what it lacks.

    The default one, that of the environment, and the one that the first versions made in the folder at hand.
    """
    places = [DEFAULT_HOME.expanduser(), Path(_FORMER_HOME)]
    if named_text := os.environ.get(f"{PREFIX}HOME"):
        places.append(Path(named_text).expanduser())
    joins = dict[str, HomeJoin]()
    for place in places:
        key = os.path.realpath(place)
        if key not in joins and not _is_sample(place):
            with suppress(InvalidRequest, OSError):
                plan = plan_join(home, place.absolute())
                if plan.missing:
                    joins[key] = plan
    return list(joins.values())


def _is_sample(home: Path) -> bool:
    """True for the sample of a checkout, which is nobody's notes."""
    with suppress(OSError), (home / "README.md").open("rb") as reader:
        return reader.read(len(_SAMPLE_MARK)) == _SAMPLE_MARK
    return False


def _workspaces(home: Path) -> Iterator[Path]:
    for folder in sorted(home.iterdir()):
        is_named = WORKSPACE_NAME.fullmatch(folder.name) and folder.is_dir() and not folder.is_symlink()
        if is_named and any((folder / name).exists() for name in ("MEMORY.md", "memory", "sessions")):
            yield folder


def _plan_files(here: Path, there: Path) -> Iterator[JoinedFile]:
    for path in _paths(there):
        target = path
        if (here / path).exists() and not _is_same(here / path, there / path):
            target = _second_name(path, there / path)
        state: Literal["copied", "renamed", "same"] = "copied" if target == path else "renamed"
        state = "same" if (here / target).exists() else state
        yield JoinedFile(workspace=there.name, path=path, target=target, state=state)


def _paths(folder: Path) -> Iterator[str]:
    yield from sorted(scan_workspace(folder).files)
    for blob in sorted((folder / _BLOBS).glob("[0-9a-f][0-9a-f]/*")):
        if blob.is_file() and not blob.is_symlink() and blob.name.isalnum():
            yield blob.relative_to(folder).as_posix()
    if (folder / PROJECT_FILE).is_file():
        yield PROJECT_FILE


def _is_same(here: Path, there: Path) -> bool:
    """True if a file says the same as another one, or is the beginning of it: a log that has gone on here."""
    if here.name == PROJECT_FILE or filecmp.cmp(here, there):
        return True
    size = there.stat().st_size
    if not is_session_path(f"sessions/{here.name}") or here.stat().st_size < size:
        return False
    with here.open("rb") as ours:
        return ours.read(size) == there.read_bytes()


def _second_name(path: str, file: Path) -> str:
    digest = hashlib.sha256(file.read_bytes()).hexdigest()[:_DIGEST_CHARS]
    folder, _, name = path.rpartition("/")
    stem, dot, suffix = name.rpartition(".")
    return f"{folder or 'memory'}/{stem}-{digest}{dot}{suffix}"
