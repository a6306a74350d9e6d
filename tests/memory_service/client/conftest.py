from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from indexer.testing import HashEmbedder
from memory_service.service import MemoryService
from tests.memory_service.client.colours import COLOURS
from tests.serving import RunningServer, serving, settings

_NUMBERS = itertools.count()


@pytest.fixture(scope="package")
def session_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server without a model, not even to judge what lasts, for all tests of sessions."""
    made = settings(tmp_path_factory.mktemp("sessions"), embedding_model="none")
    service = MemoryService(made, embedder=HashEmbedder())
    with serving(service) as server:
        yield server


@pytest.fixture(params=COLOURS, ids=["sync", "async"])
def colour(request: pytest.FixtureRequest) -> Callable[..., Any]:
    made: Callable[..., Any] = request.param
    return made


@pytest.fixture
def memory(colour: Callable[..., Any], session_server: RunningServer) -> Iterator[Any]:
    """A client of either colour, in a workspace of its own."""
    with colour(session_server.url, workspace=f"talk-{next(_NUMBERS)}") as made:
        yield made
