from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from indexer.testing import HashEmbedder
from memory_service.service import MemoryService
from tests.memory_service.rooms import Room
from tests.serving import RunningServer, serving, settings


@pytest.fixture
def running_server(tmp_path: Path) -> Iterator[RunningServer]:
    """A server without keys on an empty home, with an embedder that is instant."""
    with serving(MemoryService(settings(tmp_path / "home"), embedder=HashEmbedder())) as server:
        yield server


@pytest.fixture
def rooms(tmp_path: Path) -> Iterator[Callable[..., Room]]:
    """Opens rooms on one home, and closes them; by rules alone, which take no model to start, unless told otherwise."""
    made = list[Room]()

    def opened(**given: Any) -> Room:
        made.append(Room(tmp_path / "home", **{"embedding_model": "none", **given}))
        return made[-1]

    yield opened
    for room in made:
        room.service.close()


@pytest.fixture
def room(rooms: Callable[..., Room]) -> Room:
    """A room with a window of 8,000 tokens and no language model."""
    return rooms(context_window=8_000)
