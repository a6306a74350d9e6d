"""Owns what the routes of one app share: the service, its numbers, what was asked before, how warm it is."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Annotated

from fastapi import Depends, Request

from indexer import IndexerError
from memory_service.api.metrics import Metrics
from memory_service.errors import Conflict, MemoryServiceError
from memory_service.service import MemoryService

_log = logging.getLogger("memory_service.api")
_KEPT_KEYS = 10_000


class Replays:
    """Answers to requests with an idempotency key, so that asking again does nothing again."""

    def __init__(self) -> None:
        self._changing = threading.Lock()
        self._answers: OrderedDict[tuple[str, str], tuple[Hashable, str]] = OrderedDict()

    def once(self, workspace: str, key: str | None, asked: Hashable, act: Callable[[], str]) -> tuple[str, bool]:
        """Act, unless the same was asked with the same key before.

        Returns:
            The answer, and whether it is that of an earlier request.

        Raises:
            Conflict: Something else was asked with this key before.
        """
        if key is None:
            return act(), False
        with self._changing:
            known = self._answers.get((workspace, key))
            if known is None:
                self._answers[workspace, key] = known = (asked, act())
                if len(self._answers) > _KEPT_KEYS:
                    self._answers.popitem(last=False)
                return known[1], False
        if known[0] != asked:
            raise Conflict("The idempotency key was used for another request. Use a new key for a new request.")
        return known[1], True


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
    replays: Replays = field(default_factory=Replays)
    warm_up: WarmUp = field(default_factory=WarmUp)


async def _state(request: Request) -> AppState:
    state: AppState = request.app.state.shared
    return state


Shared = Annotated[AppState, Depends(_state)]
