from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from indexer.testing import HashEmbedder
from indexer.types import Vectors
from memory_service.hosts.hooks.hook_calls import handle_hook
from memory_service.hosts.projects import project_of
from memory_service.messages.shapes import text_of
from memory_service.prompts.session_recall import Question, Recalled, recall_decision
from memory_service.runtime import search_answers
from memory_service.schemas.compaction import SessionContextRequest
from memory_service.service import MemoryService
from tests.memory_service.rooms import Room, S, W, calls, result, says, user
from tests.serving import settings

Rooms = Callable[..., Room]


def recalled(room: Room, query: str, budget: int = 1_000, **given: Any) -> Recalled:
    question = Question(query=query, budget_tokens=budget, **given)
    return room.sessions.recalls.recall(room.sessions.snapshot(S), question, at=room.service.settings.now())


def block(room: Room, query: str, **given: Any) -> str:
    made = recalled(room, query, **given)
    assert made.context is not None
    return made.context.block


@pytest.mark.parametrize(
    ("fact", "query"),
    [("The vault code is 7443.", "What is the vault code?"), ("保险箱密码在枇杷树下。", "保险箱密码在哪里？")],
)
def test_what_is_in_view_is_not_recalled_and_what_was_covered_is(room: Room, fact: str, query: str) -> None:
    room.say(user(fact), says("ok"))
    assert fact not in block(room, query)
    room.talk(40, 100)
    room.compact(force=True)
    assert room.sessions.snapshot(S).view().first_seq > 3
    assert fact in block(room, query)


def test_what_the_view_shows_takes_no_place_from_what_was_covered(room: Room) -> None:
    room.say(user("保险箱密码 vault code: 7443 在枇杷树下。"), says("ok"))
    room.talk(40, 100)
    room.compact(force=True)
    for number in range(120):
        room.say(user(f"vault code 保险箱密码 {number}?"))
    assert room.sessions.snapshot(S).view().last_seq > 120
    assert "7443" in block(room, "vault code 保险箱密码", budget=200)


def test_memories_of_other_places_are_recalled(room: Room) -> None:
    room.service.remember(W, "部署在周二上午 10 点。")
    room.sessions.append("other", [user("The rollback takes 15 minutes."), says("ok")])
    room.say(user("hi"))
    room.service.reindex(W)
    assert "部署在周二上午 10 点。" in block(room, "部署在什么时候？")
    assert "15 minutes" in block(room, "how long does the rollback take?")
    only = block(room, "how long does the rollback take?", sources=("memory",))
    assert "15 minutes" not in only


def test_a_memory_that_the_view_says_is_no_news(room: Room) -> None:
    room.service.remember(W, "Deploys go out on Tuesdays after the 10:00 stand-up.")
    room.say(user("What did we say about deploys?"))
    assert "Tuesdays" in block(room, "when do deploys go out?")
    room.say(says("Deploys go out on Tuesdays after the 10:00 stand-up."))
    assert "Tuesdays" not in block(room, "when do deploys go out?")


@pytest.mark.parametrize(
    ("fact", "picture", "query"),
    [
        ("My husky learned to swim at the lake last week.", "[shares an image: a photo of a wet dog]", "husky swim"),
        ("我的哈士奇上周在湖边学会了游泳。", "[分享了一张照片：一只湿漉漉的狗]", "哈士奇游泳"),
    ],
)
def test_what_was_flushed_and_what_was_said_with_a_picture_stand_there_once(
    room: Room, fact: str, picture: str, query: str
) -> None:
    room.say(user(f"{fact} {picture}"), says("ok"))
    room.sessions.flushes.flush(S)
    assert fact in room.days and "[image: " in room.days
    room.talk(40, 100)
    room.compact(force=True)
    assert block(room, query).count(fact.rstrip(".。")) == 1


def test_a_receipt_is_kept(room: Room) -> None:
    room.service.remember(W, "部署在周二。")
    room.say(user("x"))
    made = recalled(room, "部署")
    assert made.context is not None
    kept = room.service.receipt(W, made.context.receipt.receipt_id)
    answered = search_answers.receipt(made.context.receipt, fusion=room.service.settings.ranking.fusion)
    assert kept == answered.model_copy(update={"session_id": S}) and kept.included


@pytest.mark.parametrize(
    ("query", "said", "wanted", "budget", "searched", "asked"),
    [
        (None, "我们之前怎么定的端口？", "auto", 100, True, None),
        ("端口", "谢谢", "auto", 100, True, "端口"),
        ("  ", "谢谢", "auto", 100, False, ""),
        (None, "谢谢", "always", 100, True, "谢谢"),
        ("端口", "x", "never", 100, False, ""),
        ("端口", "x", "always", 0, False, ""),
    ],
)
def test_what_is_searched_for(
    room: Room, query: str | None, said: str, wanted: Any, budget: int, searched: bool, asked: str | None
) -> None:
    room.say(user(said))
    made = recall_decision(room.sessions.snapshot(S), query, wanted, budget).decision
    assert made.searched is searched and made.reason
    if asked is not None:
        assert made.query == asked


def test_nobody_has_said_anything(room: Room) -> None:
    room.say(says("Welcome."))
    assert recall_decision(room.sessions.snapshot(S), None, "always", 100).decision.searched is False


def test_a_session_is_searched_by_words_in_view_or_not(room: Room) -> None:
    room.say(
        user("退款流程看 refunds.md 第三节。"),
        calls("a"),
        result("a", "x " * 900 + "needle-4711 " + "y " * 900),
        says("ok"),
    )
    room.talk(30, 100)
    room.compact(force=True)
    hit = room.sessions.search(S, "退款流程").results[0]
    assert (hit.seq, hit.role) == (2, "user") and "refunds.md" in hit.text
    assert "needle-4711" in room.sessions.search(S, "needle-4711", limit=1).results[0].text
    room.say(user("The newest word is 青花瓷."))
    assert room.sessions.search(S, "青花瓷").results[0].text == "The newest word is 青花瓷."
    assert not room.sessions.search(S, "nothing-like-that").results


def test_memories_stand_before_the_turn_they_are_for(room: Room) -> None:
    room.service.remember(W, "The vault code is 7443.")
    room.talk(2)
    room.say(user("What is the vault code?"), calls("a"), result("a", "…"))
    messages = room.context(recall="always").prompt.messages
    at = next(place for place, message in enumerate(messages) if "7443" in text_of(message))
    assert text_of(messages[at + 1]) == "What is the vault code?"


class Stopped(HashEmbedder):
    """Embeds nothing in the background until it may."""

    def __init__(self) -> None:
        super().__init__()
        self.may = threading.Event()

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        if threading.current_thread().name == "index-sessions":
            assert self.may.wait(60)
        return super().embed_documents(texts)


def test_a_prompt_does_not_wait_until_a_long_session_is_embedded(tmp_path: Path) -> None:
    model = Stopped()
    with Room(tmp_path, embedder=model) as room:
        room.say(user("The kettle is behind 枇杷树."), says("ok"))
        room.talk(40, 100)
        room.compact(force=True)
        found = recalled(room, "Where is the kettle?")
        assert found.context is not None
        assert "枇杷树" in found.context.block, "it is found by its words"
        assert [told for told in found.degraded if "found by its words alone" in told]
        model.may.set()
        for _ in range(200):
            if not (found := recalled(room, "Where is the kettle?")).degraded:
                break
        assert found.degraded == () and found.context is not None and "枇杷树" in found.context.block


def test_a_session_and_a_hook_go_on_with_a_damaged_index(tmp_path: Path) -> None:
    workspace = project_of(str(tmp_path)).workspace_in(tmp_path / "home")
    with MemoryService(settings(tmp_path / "home"), embedder=HashEmbedder()) as service:
        service.remember(workspace, "Deploys go out on Tuesdays.")
        service.append(workspace, S, [user("When do deploys go out? 什么时候部署？")])
    (tmp_path / "home" / workspace / "index.sqlite").write_bytes(b"garbage" * 1_000)
    with MemoryService(settings(tmp_path / "home"), embedder=HashEmbedder()) as service:
        made = service.session_context(workspace, S, SessionContextRequest())
        assert made.messages and "is damaged" in str(made.degraded)
        call = {"hook_event_name": "UserPromptSubmit", "cwd": str(tmp_path), "prompt": "When do deploys go out?"}
        answered = handle_hook(service, "claude-code", {**call, "session_id": "s"})
        assert answered.answer == {} and "is damaged" in answered.faults[0]
