"""Owns what the routes of one app share: service, numbers and threads, what was asked before, how warm it is."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated

from fastapi import Depends, Request

from indexer import IndexerError
from memory_service.api.metrics import Metrics
from memory_service.api.pools import Pools
from memory_service.api.replays import Replays
from memory_service.errors import MemoryServiceError
from memory_service.service import MemoryService

_log = logging.getLogger("memory_service.api")


class WarmUp:
    """Loads the model in the background, so that the first search does not wait for it."""

    def __init__(self) -> None:
        self.loading = False
        self.failure = ""

    def start(self, load: Callable[[], None]) -> None:
        """Begin; returns at once."""
        self.loading = True
        threading.Thread(target=self._run, args=(load,), name="warm-up", daemon=True).start()

    def _run(self, load: Callable[[], None]) -> None:
        try:
            load()
        except (IndexerError, MemoryServiceError) as error:
            self.failure = f"vector: {error}"
            _log.warning("%s", self.failure)
        finally:
            self.loading = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AppState:
    """What the routes of one app share."""

    service: MemoryService
    metrics: Metrics
    pools: Pools
    watches: bool = False
    replays: Replays = field(default_factory=Replays)
    warm_up: WarmUp = field(default_factory=WarmUp)

    def end(self) -> None:
        """End what has no end of its own: streams of events, and calls of models; returns at once."""
        self.pools.close()
        self.service.events.close()


async def _state(request: Request) -> AppState:
    state: AppState = request.app.state.shared
    return state


Shared = Annotated[AppState, Depends(_state)]
