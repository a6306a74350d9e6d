"""Opening of the service in a process that has not loaded it yet: beside its imports, and without the collector."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from memory_service._version import require_server

if TYPE_CHECKING:
    from pathlib import Path

    from memory_service.service.facade import MemoryService


def open_at_once(home: Path | str | None, *, embeds: bool, rests: bool = False) -> MemoryService:
    """Open a home folder in a process that is there for one call, and has not loaded the service yet.

    Half of such a call is imports. The embedding model is loaded beside them, by a thread that hardly needs Python.

    Args:
        home: The folder.
        embeds: Whether the call will ask the embedding model.
        rests: Whether what takes long to index is left to another process.
    """
    if "memory_service.service.facade" in sys.modules:
        return _open_service(home, embeds, rests)
    with without_collector():
        return _open_service(home, embeds, rests)


@contextmanager
def without_collector() -> Iterator[None]:
    """A block that imports much: the garbage collector finds nothing in it, and would look through all time and again.

    What was made in it is never looked at.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.freeze()


def _open_service(home: Path | str | None, embeds: bool, rests: bool) -> MemoryService:
    require_server("MemoryService")
    from indexer import LanguageChoice
    from memory_service.config import load_settings
    from memory_service.runtime.models import make_embedder

    settings = load_settings(home=home)
    embedder = make_embedder(settings)
    if embeds and embedder is not None and not isinstance(embedder, LanguageChoice):
        # To ask about no text loads a model of this machine, and of others nothing. Of two, the workspace tells.
        threading.Thread(target=embedder.reads, args=("",), daemon=True).start()
    from memory_service.service.facade import MemoryService

    return MemoryService(settings, embedder=embedder, rests=rests)
