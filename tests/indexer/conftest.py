from __future__ import annotations

from pathlib import Path

import pytest

from indexer.testing import HashEmbedder
from tests.indexer.workspace import Workspace


@pytest.fixture
def workspace(tmp_path: Path, request: pytest.FixtureRequest) -> Workspace:
    return Workspace(tmp_path / "workspace", store=getattr(request, "param", "sqlite"))


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
