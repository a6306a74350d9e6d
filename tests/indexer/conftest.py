from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from indexer.testing import HashEmbedder
from tests.indexer.workspace import NamedStores, Workspace


@pytest.fixture
def stores(request: pytest.FixtureRequest) -> Iterator[NamedStores]:
    opener = NamedStores(lambda: str(request.getfixturevalue("shared_database")))
    yield opener
    opener.close()


@pytest.fixture
def workspace(tmp_path: Path, request: pytest.FixtureRequest, stores: NamedStores) -> Workspace:
    return Workspace(tmp_path / "workspace", store=getattr(request, "param", "sqlite"), stores=stores)


@pytest.fixture
def filled(workspace: Workspace) -> Workspace:
    for number in range(5):
        workspace.write_items(f"memory/{number}.md", [f"quokka q{number}x{n}" for n in range(4)])
    workspace.synced(HashEmbedder()).close()
    return workspace


@pytest.fixture
def without_links(monkeypatch: pytest.MonkeyPatch) -> None:
    """A system that makes no symbolic links, as Windows does for most users."""

    def refused(self: Path, target: object, target_is_directory: bool = False) -> None:
        raise OSError(22, "A required privilege is not held by the client")

    monkeypatch.setattr(Path, "symlink_to", refused)
