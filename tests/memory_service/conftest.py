from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from indexer.testing import HashEmbedder
from memory_service.service import MemoryService
from tests.serving import RunningServer, serving, settings


@pytest.fixture
def running_server(tmp_path: Path) -> Iterator[RunningServer]:
    """A server without keys on an empty home, with an embedder that is instant."""
    with serving(MemoryService(settings(tmp_path / "home"), embedder=HashEmbedder())) as server:
        yield server
