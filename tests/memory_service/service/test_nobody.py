"""A workspace that nobody wrote to is an empty memory at every door, and nothing of it is made on disk."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from memory_service.errors import NotFound
from memory_service.hosts.hooks.hook_calls import handle_hook
from memory_service.service import MemoryService


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def service(home: Path) -> MemoryService:
    return MemoryService.open(home, embedding_model="none")


def test_reading_finds_nothing_and_makes_nothing(service: MemoryService, home: Path) -> None:
    with service:
        assert service.search("nobody", "when do we deploy?").results == []
        made = service.context("nobody", "when do we deploy?", system_prompt="You are kind.")
        assert (made.system_prompt, made.block, made.tokens) == ("You are kind.", "", 0)
        assert "nothing found" in made.receipt.reason
        assert service.files("nobody") == []
        assert service.list_sessions("nobody").sessions == []
        status = service.status("nobody")
        assert (status.files, status.passages, status.dirty, status.degraded) == (0, 0, 0, [])
        assert service.plan("nobody").added == 0
        assert service.reindex("nobody", full=True).added == 0
    assert not home.exists()


def test_a_thing_that_is_not_there_is_missed_by_its_name_and_makes_nothing(service: MemoryService, home: Path) -> None:
    with service:
        with pytest.raises(NotFound, match=r"There is no file memory/a\.md"):
            service.get("nobody", "memory/a.md")
        with pytest.raises(NotFound, match="There is no session s"):
            service.session_status("nobody", "s")
        with pytest.raises(NotFound, match="There is no session s"):
            service.delete_session("nobody", "s")
        with pytest.raises(NotFound, match="There is no receipt"):
            service.receipt("nobody", "r20261125-45c20781e1b91c7f")
        for erase in (
            lambda: service.forget("nobody", "m000000000000"),
            lambda: service.delete("nobody", "memory/a.md"),
        ):
            with pytest.raises(NotFound, match=f"no workspace nobody in the home {re.escape(service.storage.place)}"):
                erase()
        assert service.workspaces() == []
    assert not home.exists()


def test_the_first_memory_is_found_by_the_next_search(service: MemoryService) -> None:
    with service:
        assert service.search("new", "deploys").results == []
        service.remember("new", "Deploys go out on Tuesdays.")
        assert [hit.text for hit in service.search("new", "deploys").results] == ["Deploys go out on Tuesdays."]
        assert service.status("new").files == 1


def test_a_hook_of_a_project_without_memories_gives_none(service: MemoryService, home: Path, tmp_path: Path) -> None:
    event = {"session_id": "a", "hook_event_name": "UserPromptSubmit", "cwd": str(tmp_path), "prompt": "Who deploys?"}
    with service:
        answer = handle_hook(service, "claude-code", event, workspace="nobody")
    assert "Notes from memory" not in json.dumps(answer.answer)
