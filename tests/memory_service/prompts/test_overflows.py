from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from memory_service.errors import NotFound, UpstreamFailed
from memory_service.messages.shapes import text_of
from memory_service.prompts.overflows import RecoveryStep
from memory_service.schemas.compaction import OverflowRequest
from memory_service.schemas.messages import UsageReport
from memory_service.testing import ScriptedModel
from tests.memory_service.rooms import (
    Room,
    S,
    calls,
    image,
    refused_by_providers,
    result,
    texts,
    user,
    words,
)

Rooms = Callable[..., Room]
TOO_LONG = "This model's maximum context length is 6000 tokens. However, your messages resulted in 7000 tokens."
ZH = "输入的 token 数量超过了模型的最大上下文长度 6000，请缩短输入。"


def recover(room: Room, error: str = TOO_LONG, **given: Any) -> RecoveryStep:
    return room.sessions.recover(S, OverflowRequest(error=error, **given))


@pytest.mark.parametrize("chinese", [False, True])
def test_too_long_a_prompt_is_compacted_and_made_anew(room: Room, chinese: bool) -> None:
    room.talk(24, 100, chinese=chinese)
    room.say(user("最后的问题：备份在哪里？"))
    room.context(system_prompt="You are 助手.")
    made = recover(room)
    assert (made.action, made.remedy, made.kind) == ("retry", "compact", "token_overflow")
    assert made.messages[0] == {"role": "system", "content": "You are 助手."}, "made as the last one was"
    assert "最后的问题：备份在哪里？" in texts(made.messages) and refused_by_providers(made.messages) == []
    assert made.compaction is not None and made.compaction.trigger == "overflow"
    assert made.context is not None and made.context.prompt.messages == made.messages
    assert "overflow" in room.events()


def test_the_window_that_the_error_tells_is_learned(rooms: Rooms) -> None:
    room = rooms(context_window=8_000)
    room.talk(24, 100)
    made = recover(room)
    assert made.learned_window == 6_000
    snapshot = room.sessions.snapshot(S)
    assert (snapshot.options.window.tokens, snapshot.options.window.source) == (6_000, "learned")
    assert recover(room).learned_window is None, "once"
    other = rooms(context_window=4_000)
    assert other.sessions.snapshot(S).options.window.tokens == 4_000


def test_how_it_was_made_may_be_told(room: Room) -> None:
    room.talk(24, 100)
    made = recover(room, system_prompt="Told.", recall="never")
    assert text_of(made.messages[0]) == "Told."


def test_who_is_not_there(room: Room) -> None:
    with pytest.raises(NotFound):
        recover(room)


@pytest.mark.parametrize(
    ("error", "status", "kind", "remedy"),
    [
        ("Incorrect API key provided.", 401, "auth", "give_up"),
        ("Rate limit reached. Please try again in 2s.", 429, "rate_limit", "wait"),
        (
            "max_tokens is too large: 99999. This model supports at most 4096 completion tokens.",
            400,
            "output_overflow",
            "give_up",
        ),
        (
            "An assistant message with 'tool_calls' must be followed by tool messages",
            400,
            "malformed_history",
            "drop_thinking",
        ),
        ("Summarization failed: prompt is too long", None, "other", "give_up"),
        ("", None, "other", "give_up"),
    ],
)
def test_what_is_no_overflow_changes_nothing(
    room: Room, error: str, status: int | None, kind: str, remedy: str
) -> None:
    room.talk(24, 100)
    before = room.bytes()
    made = recover(room, error, status=status)
    assert (made.kind, made.remedy) == (kind, remedy) and room.bytes() == before
    assert (made.action == "retry") is bool(made.messages) is (remedy != "give_up")
    if remedy == "wait":
        assert made.retry_after_seconds == 2


def test_a_request_larger_than_a_minute_s_allowance_is_told_what_helps(room: Room) -> None:
    room.talk(24, 100)
    error = (
        "Request too large for model `any-8b` in organization `org` on tokens per minute (TPM): Limit 6000, "
        "Requested 12450, please reduce your message size and try again."
    )
    made = recover(room, error, status=413)
    assert (made.kind, made.remedy) == ("rate_limit", "give_up")
    assert "waiting does not help" in made.reason and "context_window" in made.reason


def test_a_prompt_that_was_cut_silently_is_an_overflow_too(room: Room) -> None:
    room.talk(24, 100)
    made = recover(room, "", usage=UsageReport(input_tokens=5_000, cache_read_tokens=3_500))
    assert (made.kind, made.remedy) == ("token_overflow", "compact")
    assert recover(room, "", usage=UsageReport(input_tokens=100)).action == "give_up"


def test_too_many_bytes_strip_media_and_compact_nothing(room: Room) -> None:
    for number in range(4):
        room.say(image(f"图 {number}", payload="QUJD" * 3_000), calls(f"c{number}"), result(f"c{number}", "ok"))
    room.say(user("这些图里有什么？"))
    made = recover(room, "Request exceeds the maximum size", status=413)
    assert (made.remedy, made.compaction) == ("strip_media", None)
    first = str(made.messages).count("QUJDQUJD") and [i for i in range(4) if f"图 {i}" in texts(made.messages)]
    assert first == [0, 1, 2, 3] and 0 < str(made.messages).count("base64,") <= 2
    again = recover(room, "Request exceeds the maximum size", status=413)
    assert again.remedy == "strip_media" and "base64," not in str(again.messages)
    assert "这些图里有什么？" in texts(again.messages) and room.raw_log()[0]["content"][1]["type"] == "image_url"


def test_thinking_is_left_out_where_the_provider_refuses_it(room: Room) -> None:
    room.say(user("x"))
    room.say(
        {
            "role": "assistant",
            "content": "y",
            "thinking_blocks": [{"type": "thinking", "thinking": "hm", "signature": "s"}],
        }
    )
    room.say(user("z"))
    assert "thinking_blocks" in str(room.context().prompt.messages)
    error = "messages.1.content.0: Invalid `signature` in `thinking` block"
    made = recover(room, error, status=400)
    assert made.remedy == "drop_thinking" and "thinking_blocks" not in str(made.messages)
    assert recover(room, error, status=400).action == "give_up"


@pytest.mark.parametrize("preset", ["default", "openclaw", "turns", "ponybunny", "opencode"])
def test_it_ends_whatever_the_provider_says(rooms: Rooms, preset: str) -> None:
    room = rooms(context_window=20_000, compaction={"preset": preset}, flush={"mode": "off"})
    for number in range(6):
        room.say(user(f"问题 {number}"), calls(f"c{number}"), result(f"c{number}", words(2_500)))
    steps = list[str]()
    while not steps or steps[-1] != "give_up":
        made = recover(room, f"prompt is too long: {20_000 + len(steps)} tokens > 19999 maximum")
        steps.append(made.remedy)
        assert len(steps) < 12 and refused_by_providers(made.messages) == []
    assert len(room.raw_log()) == 18


def test_a_recovery_that_fails_gives_up_with_the_reason(rooms: Rooms) -> None:
    model = ScriptedModel(*[UpstreamFailed("The model is gone.", kind="timeout")] * 4)
    room = rooms(context_window=8_000, model=model, compaction={"fallback": "none"})
    room.talk(24, 100)
    made = recover(room)
    assert made.action == "give_up" and "The recovery failed: The model is gone." in made.reason


def test_a_new_message_begins_a_new_ladder(room: Room) -> None:
    room.talk(24, 100)
    for _ in range(3):
        recover(room)
    room.talk(6, 300, first=24)
    assert "1 of 3" in recover(room).reason


def test_what_is_pinned_is_not_cut(room: Room) -> None:
    room.talk(2)
    room.say(user("看"), calls("a"), result("a", "钉住 " + words(500)), calls("b"), result("b", words(2_000)))
    room.sessions.store.pin(S, seq=8)
    steps = [recover(room) for _ in range(3)]
    assert any(step.remedy == "truncate" for step in steps)
    assert "钉住 " + words(500) in texts([m for step in steps for m in step.messages if step.remedy == "truncate"])


TOLD = "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens."


@pytest.mark.parametrize("preset", ["openclaw", "ponybunny"])
def test_a_learned_window_never_bricks_a_session(rooms: Rooms, preset: str) -> None:
    room = rooms(compaction={"preset": preset})
    room.talk(24, 100)
    assert room.sessions.recover(S, OverflowRequest(error=TOLD)).learned_window == 8_192
    made = room.context(memory_budget_tokens=0)
    assert made.prompt.tokens.total <= made.prompt.tokens.window == 8_192
    assert any("context window of 8,192 tokens" in line for line in made.degraded)


def test_a_window_that_is_set_after_it_was_learned_counts(rooms: Rooms) -> None:
    room = rooms()
    room.talk(24, 100)
    room.sessions.recover(S, OverflowRequest(error=TOLD))
    changed = room.sessions.store.update(S, {"context_window": 64_000})
    assert (changed.context_window.tokens, changed.context_window.source) == (64_000, "session")
    room.sessions.recover(S, OverflowRequest(error=TOLD))
    again = rooms().sessions.store.summary(S).context_window
    assert (again.tokens, again.source) == (8_192, "learned"), "the provider's next word counts again"


def test_a_learned_window_belongs_to_its_model(rooms: Rooms) -> None:
    room = rooms()
    room.talk(24, 100)
    room.sessions.recover(S, OverflowRequest(error=TOLD))
    other = room.sessions.store.update(S, {"model": "openai/gpt-4.1"}).context_window
    assert other.source == "model" and other.tokens > 1_000_000
    back = room.sessions.store.update(S, {"model": None}).context_window
    assert (back.tokens, back.source) == (8_192, "learned")
