"""Healing of one index: the vectors that passages were stored without, and the whole of one that an older version made.

Invariants: one thread embeds what lacks a vector, the others answer without; a model that does not answer is not asked
by every search; an index that cannot be read is made anew once, however many wait for it, and what was made of it stays
when the process ends; one of a newer version is left alone.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from indexer import IndexerError, StoreBusy, SyncCancelled, SyncProgress
from memory_service.memories import indexing
from memory_service.memories.indexing import DeferredRefresh

if TYPE_CHECKING:
    from indexer import Index

_log = logging.getLogger("memory_service.memories.healing")

# A model that does not answer is asked again after this, or after ten times as long as it took to hear that; one that
# refuses some texts, later.
_AWAY_SECONDS = 2.0
_AWAY_SHARE = 10
_REFUSED_SECONDS = 60.0
# A renewal that failed is tried again after this.
_AGAIN_SECONDS = 10.0
_OLD = "index: an older version made it, and it is being made anew"


class MissingVectorHealing:
    """Embedding of what was stored without a vector.

    Args:
        index: The index.
        is_closed: Tells whether the workspace is being closed.
        go_on: Has the rest embedded in the background.
    """

    def __init__(self, index: Index, is_closed: Callable[[], bool], go_on: Callable[[], None]) -> None:
        self._index = index
        self._is_closed = is_closed
        self._go_on = go_on
        self._healing = threading.Lock()
        self._again = 0.0
        self._left: tuple[str, ...] = ()

    def hasten(self) -> None:
        """Have the next call try, as the model answers."""
        self._again = 0.0

    def heal(self, most: int | None, cancelled: Callable[[], bool] = lambda: False) -> tuple[str, ...]:
        """Embed what was stored without a vector, if the model answers now; why some passages are still without."""
        if time.monotonic() < self._again or not self._healing.acquire(blocking=False):
            return self._left
        started_time, pause = time.monotonic(), 0.0
        try:
            done_vectors = self._index.embed_missing(most=most, cancelled=lambda: cancelled() or self._is_closed())
            self._left = done_vectors.problems or ((indexing.BEING_EMBEDDED,) if done_vectors.left else ())
            if done_vectors.away:
                pause = max(_AWAY_SECONDS, _AWAY_SHARE * (time.monotonic() - started_time))
            elif done_vectors.problems:
                pause = _REFUSED_SECONDS
            elif done_vectors.left and most is not None:
                self._go_on()
        except IndexerError as error:
            self._left, pause = (f"vector: {error}",), _AWAY_SECONDS
        finally:
            self._healing.release()
        self._again = time.monotonic() + pause
        return self._left


class IndexRenewal:
    """Renewal of an index that an older version made, of which nothing can be read until then.

    Args:
        index: The index.
        rests: See `DeferredRefresh`.
    """

    def __init__(self, index: Index, *, rests: bool = False) -> None:
        self._index = index
        self._background = DeferredRefresh(self._in_background, 0.0, rests=rests)
        self._turn = threading.Lock()
        self._begins = True
        self._progress: SyncProgress | None = None
        self._problem = ""
        self._again = 0.0

    def is_due(self) -> bool:
        """True if an older version made the index; one that is damaged says so where it is used."""
        with suppress(IndexerError):
            return self._index.is_unread()
        return False

    @property
    def pending(self) -> bool:
        """True if it is left for another process."""
        return bool(self._background.pending)

    def wait_until_readable(self, seconds: float = 0.0) -> str:
        """Why the index cannot be read yet, after a wait of so many seconds at most; empty if an older one is not it.

        It is made anew in the background meanwhile.
        """
        if not self.is_due():
            return ""
        if self._begins and not self._background.pending and time.monotonic() >= self._again:
            self._background.note("index")
        if self._background.drain(seconds) is None or not self.is_due():
            return self._underway() if self.is_due() else ""
        return self._problem or self._underway()

    def renew(
        self,
        *,
        on_progress: Callable[[SyncProgress], None] | None = None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> tuple[str, ...]:
        """Make the index anew, here and now, if an older version made it; why that could not be done."""
        if not self.is_due():
            return ()

        def show(progress: SyncProgress) -> None:
            self._progress = progress
            if on_progress is not None:
                on_progress(progress)

        with self._turn:
            try:
                if self.is_due():
                    _log.warning(
                        "The index of %s was made by an older version; it is made anew.", self._index.source.name
                    )
                    self._index.sync(words_only=True, on_progress=show, cancelled=cancelled)
                self._problem = ""
            except (StoreBusy, SyncCancelled):
                self._problem = ""  # another process does it, or the next one goes on with it
            except IndexerError as error:
                self._problem = f"index: an older version made it, and it could not be made anew yet. {error}"
                _log.warning("The index of %s could not be made anew: %s", self._index.source.name, error)
            finally:
                self._progress = None
                self._again = time.monotonic() + _AGAIN_SECONDS if self.is_due() else 0.0
        return (self._problem,) if self._problem else ()

    def leave(self) -> None:
        """Begin none from now on."""
        self._begins = False

    def close(self) -> None:
        """End the background; the next process goes on with a renewal that runs."""
        self._background.close()

    def _in_background(self, _: object) -> str:
        return "; ".join(self.renew(cancelled=lambda: self._background.is_closed))

    def _underway(self) -> str:
        if not self._begins:
            return "index: an older version made it, and it is not read. Run `memory-service reindex`."
        progress = self._progress
        share = f": {progress.done:,} of {progress.total:,} files are read" if progress and progress.total else ""
        return f"{_OLD}{share}. Ask again in a moment."
