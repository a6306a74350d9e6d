"""The way to the bundled sample workspace: inside the package when installed, in `data/` in a checkout.

Invariants: what is bundled is only read; a workspace that is there is never replaced; what the service made beside the
sample at run time is no part of it.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from memory_service.errors import Conflict, NotFound, StorageFailed

SESSION_ID = "desk-2026-47"
_INSTALLED = Path(__file__).parent / "_sample"
_CHECKOUT = Path(__file__).parent.parent / "data" / "default"


def recorded_session() -> Path:
    """The log of the recorded session, where it is bundled.

    Raises:
        NotFound: The installation lacks the sample.
    """
    path = _bundled() / "sessions" / f"{SESSION_ID}.jsonl"
    if not path.is_file():
        raise NotFound(f"The recorded session is not at {path}. Reinstall memory-service.")
    return path


def copy_sample(home: Path, *, with_session: bool = True) -> Path:
    """Copy the sample's Markdown, and its recorded session, to `<home>/default` and return that folder.

    Args:
        home: Where to; it is made if it is not there.
        with_session: Whether the recorded session is copied too.

    Raises:
        NotFound: The installation lacks the sample.
        Conflict: There is a workspace already, whose files it would replace.
        StorageFailed: It cannot be written there.
    """
    source = _bundled()
    target = home / "default"
    try:
        if target.is_dir() and any(target.iterdir()):
            raise Conflict(f"There is a workspace at {target} already. Choose an empty folder; nothing was changed.")
        for path in _files(source, with_session=with_session):
            copied = target / path.relative_to(source)
            copied.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copied)
    except OSError as error:
        raise StorageFailed(
            f"The sample cannot be written to {target} ({error.strerror or error}). Choose another folder."
        ) from error
    return target


def _bundled() -> Path:
    source = _INSTALLED if _INSTALLED.is_dir() else _CHECKOUT
    if not source.is_dir():
        raise NotFound(f"The sample workspace is not at {source}. Reinstall memory-service.")
    return source


def _files(source: Path, *, with_session: bool) -> Iterator[Path]:
    yield from sorted(source.rglob("*.md"))
    if with_session:
        yield recorded_session()
