"""A sync that goes on: after every change of the folder, and every few seconds for what changes on the server."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from indexer import Watch, Watched
from memory_service.errors import MemoryServiceError, NotFound
from memory_service.sync.workspace_sync import SyncReport, WorkspaceSync


def keep_in_sync(
    sync: WorkspaceSync,
    folder: Path,
    *,
    poll_seconds: float,
    on_report: Callable[[SyncReport], object],
    on_failure: Callable[[MemoryServiceError], object],
    stop: threading.Event,
) -> None:
    """Sync again and again, until stopped or interrupted.

    Args:
        sync: The sync of the folder.
        folder: The folder.
        poll_seconds: Longest time between two looks at the server.
        on_report: Told of each sync.
        on_failure: Told of each sync that failed, which is tried again.
        stop: Ends it, at the next look at the latest.

    Raises:
        NotFound: The folder is gone.
    """
    event = threading.Event()

    def note(_: object, __: object) -> float:
        event.set()
        return 0.0

    watch = Watch(lambda: [Watched(root=folder)], note, stop)
    thread = threading.Thread(target=watch.run, name="memory-sync-watch", daemon=True)
    thread.start()
    try:
        while not stop.is_set():
            event.wait(poll_seconds)
            event.clear()
            if not folder.is_dir():
                raise NotFound(f"The folder {folder} is gone. Nothing was removed on the server.")
            try:
                on_report(sync.run())
            except MemoryServiceError as error:
                on_failure(error)
    finally:
        stop.set()
        thread.join()
