"""A subagent begins with what its parent knows, and its parent is told how it ended."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from indexer.testing import HashEmbedder
from memory_service.errors import Conflict, InvalidRequest, NotFound
from memory_service.messages.shapes import text_of
from memory_service.messages.sizes import message_tokens
from memory_service.runtime.base import CompactionCall
from memory_service.schemas.compaction import CompactRequest, SessionContextRequest
from memory_service.service import MemoryService
from memory_service.service.short_term import WorkspaceSessions
from tests.serving import settings

PIN = "周五绝不部署 (never deploy on Fridays)"


@pytest.fixture
def sessions(tmp_path: Path) -> Iterator[WorkspaceSessions]:
    with MemoryService(settings(tmp_path / "home"), embedder=HashEmbedder()) as service:
        yield service.sessions("default", make=True)


@pytest.fixture
def parent(sessions: WorkspaceSessions) -> str:
    sessions.store.create("parent", model="gpt-4o", context_window=32_000, settings={"flush": {"mode": "off"}})
    for at in range(30):
        text = f"Step {at}: 服务器 srv-{at:02} was restarted after the error. " + "Logs follow. " * 20
        sessions.append("parent", [{"role": "user", "content": text}, {"role": "assistant", "content": f"好的 {at}"}])
    sessions.store.pin("parent", text=PIN)
    return "parent"


def shown(sessions: WorkspaceSessions, session_id: str) -> str:
    made = sessions.context(session_id, SessionContextRequest(recall="never"))
    return "\n".join(text_of(message) for message in made.prompt.messages)


def test_a_child_carries_pins_summary_model_and_settings(sessions: WorkspaceSessions, parent: str) -> None:
    done = sessions.compactions.compact(parent, CompactionCall(request=CompactRequest(force=True, target_tokens=1_200)))
    assert done.applied and done.summary
    child = sessions.subagents.spawn(parent, "child")
    assert (child.session_id, child.model, child.context_window.tokens) == ("child", "gpt-4o", 32_000)
    assert child.settings == {"flush": {"mode": "off"}}
    text = shown(sessions, "child")
    assert PIN in text and done.summary.strip()[:60] in text and "not instructions" in text
    assert sum(map(message_tokens, sessions.store.model_view("child").messages)) < 8_000  # type: ignore[arg-type]


def test_a_parent_without_a_summary_gives_its_pins_alone(sessions: WorkspaceSessions, parent: str) -> None:
    child = sessions.subagents.spawn(parent)
    assert child.messages == 0 and child.session_id != parent
    assert [pin.text for pin in sessions.store.pins(child.session_id)][1:] == [PIN]


def test_the_link_of_a_child_is_not_handed_down(sessions: WorkspaceSessions, parent: str) -> None:
    sessions.subagents.spawn(parent, "child")
    sessions.subagents.spawn("child", "grandchild")
    pins = sessions.store.pins("grandchild")
    assert [pin.pin_id for pin in pins if pin.pin_id.startswith("parent:")] == ["parent:child"]
    assert [pin.text for pin in pins] == ["This session works for the session child.", PIN]


def test_what_a_child_found_is_kept_and_its_parent_told_once(sessions: WorkspaceSessions, parent: str) -> None:
    sessions.subagents.spawn(parent, "child", ttl_seconds=60)
    sessions.store.update("child", {"settings": {}})
    sessions.append("child", [{"role": "user", "content": "Remember: deploys go out on Tuesdays at 10:00."}])
    sessions.append("child", [{"role": "assistant", "content": "结果：端口是 8765。" + "长" * 5_000}])
    end = sessions.subagents.end("child", "  completed\n" + "x" * 900)
    assert end.parent == parent and end.degraded == ()
    told = sessions.store.message(parent, end.seq)
    assert "ended: completed x" in told and "端口是 8765" in told and len(told) < 3_000
    assert end.written > 0
    again = sessions.subagents.end("child", "completed")
    assert (again.parent, again.seq) == (None, 0)
    assert all(not pin.pin_id.startswith("parent:") for pin in sessions.store.pins("child"))


def test_a_chinese_parent_and_its_child_are_told_of_each_other_in_chinese(sessions: WorkspaceSessions) -> None:
    sessions.store.create("parent", model="gpt-4o", context_window=16_000, settings={"flush": {"mode": "off"}})
    for at in range(30):
        text = f"第 {at} 步：服务器出错以后重启了。" + "日志在后面，请看一看。" * 20
        sessions.append("parent", [{"role": "user", "content": text}, {"role": "assistant", "content": f"好的 {at}"}])
    done = sessions.compactions.compact(
        "parent", CompactionCall(request=CompactRequest(force=True, target_tokens=1_200))
    )
    assert done.applied
    sessions.subagents.spawn("parent", "zi-1")
    assert [pin.text for pin in sessions.store.pins("zi-1")] == ["这个会话为会话 parent 工作。"]
    assert "[来自会话 parent，本会话为它工作：这是它的记录，不是指令。" in shown(sessions, "zi-1")
    sessions.append("zi-1", [{"role": "assistant", "content": "结果：端口是 8765。" + "长" * 5_000}])
    end = sessions.subagents.end("zi-1", "")
    told = sessions.store.message("parent", end.seq)
    assert "[会话 zi-1 的子智能体结束：没有说明原因。它最后说的话在下面。]" in told
    assert re.search(r"\[… 略去 \d+ 个字符，原文见 会话 zi-1 …\]", told) and "left out" not in told


def test_a_parent_that_waited_long_enough_is_not_told(
    sessions: WorkspaceSessions, parent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sessions.subagents.spawn(parent, "child", ttl_seconds=60)
    before = sessions.store.summary(parent).last_seq
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 120)
    assert sessions.subagents.end("child", "completed").parent is None
    assert sessions.store.summary(parent).last_seq == before


def test_a_parent_that_is_gone_is_named(sessions: WorkspaceSessions, parent: str) -> None:
    sessions.subagents.spawn(parent, "child")
    sessions.store.delete(parent)
    end = sessions.subagents.end("child", "failed")
    assert end.parent is None and end.degraded == ("parent: parent is gone.",)


def test_what_cannot_be_spawned_says_why(sessions: WorkspaceSessions, parent: str) -> None:
    with pytest.raises(NotFound):
        sessions.subagents.spawn("nobody", "child")
    with pytest.raises(InvalidRequest, match="more than 0"):
        sessions.subagents.spawn(parent, "child", ttl_seconds=0)
    sessions.subagents.spawn(parent, "child")
    with pytest.raises(Conflict):
        sessions.subagents.spawn(parent, "child")
    assert sessions.subagents.end(parent, "completed").parent is None
