"""Move of a workspace's index to the model that fits what is written there, and to the rules of this version.

Invariants: the index in use answers until the next one is whole, and stays as it is where that cannot be made; an
interrupted move goes on where it was; a process makes one move at a time, and people who wait go before it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from indexer import EmbeddingError, IndexerError, StoreBusy, SyncCancelled, SyncProgress
from memory_service.memories.indexing import DeferredRefresh

if TYPE_CHECKING:
    from indexer import Index

_log = logging.getLogger("memory_service.memories.moving")

# So long after something was written it is looked at, with all that came meanwhile: 40 ms of a processor at most.
_SETTLE_SECONDS = 15.0
# A move that failed is tried again after this.
_AGAIN_SECONDS = 60.0
_TURN_SECONDS = 0.2
_TURN = threading.Lock()


class IndexMoves:
    """Moves of one index.

    Args:
        index: The index.
        after_seconds: See `DeferredRefresh`.
        rests: Likewise.
    """

    def __init__(self, index: Index, *, after_seconds: float = _SETTLE_SECONDS, rests: bool = False) -> None:
        self._index = index
        self._background = DeferredRefresh(self._in_background, after_seconds, rests=rests)
        self._problems: tuple[str, ...] = ()
        self._again = 0.0

    @property
    def problems(self) -> tuple[str, ...]:
        """Why the last move failed, as `degraded` says it; it is tried again now and then."""
        if self._problems and time.monotonic() >= self._again:
            self._again = time.monotonic() + _AGAIN_SECONDS
            self.note()
        return self._problems

    def note(self) -> None:
        """Have it found out in the background whether another model or version of it is due, and move if so."""
        if self._index.is_chosen_for or self._index.lags():
            self._background.note("")

    def move(
        self,
        *,
        cancelled: Callable[[], bool] = lambda: False,
        on_progress: Callable[[SyncProgress], None] | None = None,
    ) -> tuple[str, ...]:
        """Make the index anew, if another model fits what is written now or other rules made it; why that failed.

        One that another process makes anew is left to that.
        """
        index, self._problems = self._index, ()
        try:
            if not self._is_due() or not _has_turn(cancelled):
                return ()
            try:
                if self._is_due() and not index.beside.running:
                    _log.info(
                        "The index of %s is made anew, as another model fits it or an older version made it.",
                        index.source.name,
                    )
                    self._problems = index.sync(full=True, on_progress=on_progress, cancelled=cancelled).degraded
            finally:
                _TURN.release()
        except (StoreBusy, SyncCancelled):
            pass
        except IndexerError as error:
            part = "vector" if isinstance(error, EmbeddingError) else "index"
            self._problems = (f"{part}: the index goes on as it was made, as it could not be made anew. {error}",)
            self._again = time.monotonic() + _AGAIN_SECONDS
            _log.warning("The index of %s stays with its model: %s", index.source.name, error)
        return self._problems

    def close(self) -> None:
        """End the background; a move that runs is left to the next one."""
        self._background.close()

    def _is_due(self) -> bool:
        return self._index.moves() or self._index.lags()

    def _in_background(self, _: object) -> str:
        return "; ".join(self.move(cancelled=lambda: self._background.is_closed))


def _has_turn(cancelled: Callable[[], bool]) -> bool:
    """Wait until no other index of this process is moving; True once it is this one's turn, False if cancelled."""
    while not _TURN.acquire(timeout=_TURN_SECONDS):
        if cancelled():
            return False
    return True
