"""Owns which views of an index a search uses while another generation takes its place.

Invariants: a search is given the views of the generation that its read sees; those of the next one are
made ready before the switch, and those before it are kept until nobody reads it any more.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from indexer.engine.views import Views
from indexer.stores.base import IndexStore

# Longer than a search goes on reading the generation before the switch.
_KEPT_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class _Spare:
    """Views of another generation than the one that most searches see."""

    generation: str
    views: Views


class Shelf:
    """The views of an index, whichever generation of it is in use.

    Args:
        store: The index.
        pack_passages: Larger indexes are packed.
    """

    def __init__(self, store: IndexStore, *, pack_passages: int) -> None:
        self._store = store
        self._pack_passages = pack_passages
        self._views = Views(store, pack_passages=pack_passages)
        self._next: _Spare | None = None
        self._former: _Spare | None = None
        self._former_until = 0.0

    def views(self) -> Views:
        """Those for the read at hand; to be called within it, by one thread at a time."""
        if self._next is None and self._former is None:
            return self._views
        generation = self._store.generation()
        if self._next is not None and generation == self._next.generation:
            self._former_until = time.monotonic() + _KEPT_SECONDS
            self._former, self._views = _Spare(self._views.generation, self._views), self._next.views
            self._next = None
        elif self._former is not None and generation == self._former.generation:
            return self._former.views
        elif time.monotonic() > self._former_until:
            self._former = None
        return self._views

    def make_ready(self, store: IndexStore, dimensions: int | None) -> None:
        """Load the generation that is about to take the index's place, from its own store."""
        loaded = Views(store, pack_passages=self._pack_passages)
        with store.reading():
            due = loaded.is_due()
        if due:
            loaded.pack()
        with store.reading():
            loaded.view(dimensions, loaded=True)
            generation = store.generation()
        views = Views(self._store, pack_passages=self._pack_passages)
        views.take_over(loaded)
        self._next = _Spare(generation, views)

    def close(self) -> None:
        """Give back memory."""
        self._views.close()
        self._next = self._former = None
