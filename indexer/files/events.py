"""Owns the events of the file system: which paths it says have changed. Imports watchfiles.

Invariants: a failure is a state with its reason, never an exception; what is lost is for others to find.
"""

from __future__ import annotations

import threading
from collections.abc import Generator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from watchfiles.main import FileChange

# The library looks so often whether there are events, or whether it has to stop: 0.1 % of a core.
_STEP_MS = 50
_TICK_SECONDS = 0.2


class FileEvents:
    """What the file system tells of some folders; nothing after a failure, until it is asked again.

    Args:
        stop: Ends a wait.

    Attributes:
        failure: Why nothing is told; empty while nothing is wrong.
    """

    def __init__(self, stop: threading.Event) -> None:
        self.failure = ""
        self._stop = stop
        self._changes: Generator[set[FileChange], None, None] | None = None

    def follow(self, folders: Sequence[str]) -> list[str]:
        """From now on tell of these folders, though not of those below; gives the last paths of those before."""
        before, self._changes, self.failure = self._changes, None, ""
        paths = self._first(folders) if folders else []
        # Those of the new ones come already, so nothing is lost between the two.
        if before is not None:
            with suppress(OSError, RuntimeError):
                paths += [path for _, path in next(before, ())]
            before.close()
        return paths

    def wait(self) -> list[str]:
        """The next paths; none after a fraction of a second."""
        if self._changes is None:
            self._stop.wait(_TICK_SECONDS)
        return self._next()

    def close(self) -> None:
        """Tell no more."""
        self.failure = ""
        if self._changes is not None:
            self._changes.close()
            self._changes = None

    def _first(self, folders: Sequence[str]) -> list[str]:
        try:
            self._changes = _changes(folders, self._stop)
        except ImportError as error:
            # There are systems without a wheel of it.
            self.failure = f"the package watchfiles cannot be loaded ({error})"
        return self._next()

    def _next(self) -> list[str]:
        if self._changes is None:
            return []
        try:
            told = next(self._changes, None)
        except (OSError, RuntimeError) as error:
            # Such as: no more watches for this user, or a name that is not Unicode.
            told, self.failure = None, f"the system tells of no changes ({error})"
        if told is None:
            self._changes = None
        return [path for _, path in told or ()]


def _changes(folders: Sequence[str], stop: threading.Event) -> Generator[set[FileChange], None, None]:
    from watchfiles import watch

    return watch(
        *folders,
        watch_filter=None,
        debounce=round(_TICK_SECONDS * 1000),
        step=_STEP_MS,
        rust_timeout=round(_TICK_SECONDS * 1000),
        yield_on_timeout=True,
        stop_event=stop,
        recursive=False,
        ignore_permission_denied=True,
    )
