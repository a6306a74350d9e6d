from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from memory_service.service import MemoryService
from tests.integrations.places import Place
from tests.serving import serving, settings

_NUMBERS = itertools.count()


@pytest.fixture(scope="package")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[MemoryService, str]]:
    """A service with the bundled model, and its server."""
    with MemoryService(settings(tmp_path_factory.mktemp("adapters"))) as service, serving(service) as server:
        yield service, server.url


@pytest.fixture(params=["process", "server"])
def place(request: pytest.FixtureRequest, served: tuple[MemoryService, str]) -> Place:
    """A workspace of its own, in this process or on a server."""
    service, url = served
    source = service if request.param == "process" else url
    return Place(source=source, workspace=f"adapter-{next(_NUMBERS)}", service=service, url=url)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
