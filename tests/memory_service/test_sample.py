from __future__ import annotations

from pathlib import Path

import pytest

from indexer.testing import HashEmbedder
from memory_service.errors import Conflict, StorageFailed
from memory_service.sample import copy_sample
from memory_service.service import MemoryService
from tests.serving import settings

BUNDLED = Path(__file__).parents[2] / "data/default"


def memories(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_sample_is_copied_file_by_file(tmp_path: Path) -> None:
    folder = copy_sample(tmp_path / "deep/home")
    assert folder == tmp_path / "deep/home/default"
    assert memories(folder) == {name: raw for name, raw in memories(BUNDLED).items() if name.endswith(".md")}
    assert {"MEMORY.md", "USER.md"} < memories(folder).keys()


def test_the_sample_can_be_indexed_whole(tmp_path: Path) -> None:
    copied = memories(copy_sample(tmp_path))
    with MemoryService(settings(tmp_path), embedder=HashEmbedder()) as service:
        report = service.reindex("default")
        assert (report.added, report.failed, report.degraded) == (len(copied), (), ())
        assert service.context("default", "why did the release day change?").block


def test_a_workspace_that_is_there_is_not_replaced(tmp_path: Path) -> None:
    folder = copy_sample(tmp_path)
    (folder / "MEMORY.md").write_text("- mine\n")
    before = memories(folder)
    with pytest.raises(Conflict, match="nothing was changed"):
        copy_sample(tmp_path)
    assert memories(folder) == before


def test_a_home_that_cannot_hold_it_is_told(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file")
    with pytest.raises(StorageFailed, match="Choose another folder"):
        copy_sample(tmp_path / "home")
