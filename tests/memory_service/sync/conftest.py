from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memory_service.client import MemoryClient
from memory_service.service import MemoryService
from memory_service.sync import WorkspaceSync
from tests.memory_service.sync.editor import Editor
from tests.serving import RunningServer, serving, settings

_NUMBERS = itertools.count()


@pytest.fixture(scope="package")
def sync_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server without a model."""
    made = settings(tmp_path_factory.mktemp("sync"), embedding_model="none")
    with MemoryService(made) as service, serving(service) as server:
        yield server


@pytest.fixture
def there(sync_server: RunningServer) -> Iterator[MemoryClient]:
    """A client of the server, in a workspace of its own."""
    with MemoryClient(sync_server.url, workspace=f"team-{next(_NUMBERS)}") as client:
        yield client


@pytest.fixture
def editors(there: MemoryClient, tmp_path: Path) -> Iterator[Callable[..., Editor]]:
    """Makes people with folders of their own, who sync them with that workspace."""
    syncs = list[WorkspaceSync]()

    def make(name: str = "ana", *, deletes: bool = False) -> Editor:
        folder = tmp_path / name
        made = WorkspaceSync(folder, url=there.base_url, workspace=there.workspace, deletes=deletes)
        syncs.append(made)
        return Editor(folder=folder, sync=made)

    yield make
    for each in syncs:
        each.close()


@pytest.fixture
def ana(editors: Callable[..., Editor]) -> Editor:
    return editors("ana")
