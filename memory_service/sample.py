"""Owns the way to the bundled sample workspace: inside the package when installed, in `data/` in a checkout."""

from __future__ import annotations

import shutil
from pathlib import Path

from memory_service.errors import Conflict, NotFound, StorageFailed

_INSTALLED = Path(__file__).parent / "_sample"
_CHECKOUT = Path(__file__).parent.parent / "data" / "default"


def copy_sample(home: Path) -> Path:
    """Copy the sample's Markdown to `<home>/default` and return that folder.

    Raises:
        NotFound: The installation lacks the sample.
        Conflict: There is a workspace already, whose files it would replace.
        StorageFailed: It cannot be written there.
    """
    source = _INSTALLED if _INSTALLED.is_dir() else _CHECKOUT
    if not source.is_dir():
        raise NotFound(f"The sample workspace is not at {source}. Reinstall memory-service.")
    target = home / "default"
    try:
        if target.is_dir() and any(target.iterdir()):
            raise Conflict(f"There is a workspace at {target} already. Choose an empty folder; nothing was changed.")
        for path in sorted(source.rglob("*.md")):
            copied = target / path.relative_to(source)
            copied.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copied)
    except OSError as error:
        raise StorageFailed(
            f"The sample cannot be written to {target} ({error.strerror or error}). Choose another folder."
        ) from error
    return target
