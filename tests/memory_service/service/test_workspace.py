"""Few workspaces are open at a time, whatever their number."""

from __future__ import annotations

from pathlib import Path

import pytest

from memory_service.service import MemoryService, workspace
from tests.serving import settings


def test_the_one_that_was_used_longest_ago_gives_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workspace, "_MOST_OPEN", 3)
    with MemoryService(settings(tmp_path, embedding_model="none")) as service:
        workspaces = service._workspaces
        opened = {name: workspaces.memory(name, make=True) for name in ("a", "b", "c")}
        assert workspaces.memory("a") is opened["a"]
        workspaces.memory("d", make=True)
        assert [workspaces.memory(name) is opened[name] for name in ("a", "c")] == [True, True]
        again = workspaces.memory("b")
        assert again is not opened["b"]
        for name in "abcdabcd":
            service.remember(name, f"The quokka of {name} sleeps.")
            assert service.search(name, "quokka").results[0].text == f"The quokka of {name} sleeps."


def test_sessions_go_with_their_workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workspace, "_MOST_OPEN", 1)
    with MemoryService(settings(tmp_path, embedding_model="none")) as service:
        first = service.sessions("a", make=True)
        assert service.sessions("a") is first
        service.sessions("b", make=True)
        assert service.sessions("a") is not first
        assert service.sessions("c").store.list_sessions() == []
        assert not (tmp_path / "c").exists()
