"""The parts of a prompt's tokens add up to the total, whatever the counts rest on."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as examples
from hypothesis import strategies as st

from memory_service.errors import Incompressible
from memory_service.messages.sizes import Usage, message_tokens
from memory_service.prompts.build import BuiltContext
from memory_service.schemas.compaction import OverflowRequest
from tests.memory_service.rooms import Room, S, calls, image, result, says, system, user, words

TEXTS = st.sampled_from(["", "ok", "部署之前先备份数据库。", '{"a": [1, 2, 3]}', "The backup runs. " * 40, "字" * 300])
LINES = st.one_of(
    TEXTS.map(user),
    TEXTS.map(says),
    TEXTS.map(system),
    TEXTS.map(image),
    st.just(calls("c1")),
    TEXTS.map(lambda text: result("c1", text)),
)


def adds_up(made: BuiltContext) -> None:
    tokens = made.prompt.tokens
    parts = (tokens.system, tokens.memory, tokens.summary, tokens.tail)
    assert min(parts) >= 0
    assert sum(parts) == tokens.total <= tokens.window
    assert made.prompt.estimated.total == sum(map(message_tokens, made.prompt.messages))


@pytest.mark.parametrize("model", [None, pytest.param("gpt-4o", marks=pytest.mark.litellm)])
@examples(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    lines=st.lists(LINES, min_size=1, max_size=14),
    prompt=TEXTS,
    counts=st.lists(st.floats(0.3, 3.5), max_size=2),
    compacts=st.booleans(),
    pinned=st.booleans(),
)
def test_the_parts_add_up_whatever_the_counts_rest_on(
    model: str | None, lines: list[dict[str, Any]], prompt: str, counts: list[float], compacts: bool, pinned: bool
) -> None:
    """By estimate, by an exact tokenizer where one is there, and corrected by what a provider counted."""
    with tempfile.TemporaryDirectory() as home, Room(Path(home), context_window=8_000, flush={"mode": "off"}) as room:
        room.sessions.store.create(S, model=model)
        room.say(*lines)
        if pinned:
            room.sessions.store.pin(S, text="周五绝不部署")
        try:
            for factor in counts:
                estimated = room.context(system_prompt=prompt).prompt.estimated.total
                usage = Usage(input_tokens=int(estimated * factor), output_tokens=7)
                room.sessions.append(S, [says("好的。")], usage=usage)
            if compacts:
                room.compact(force=True)
            adds_up(room.context(system_prompt=prompt))
            adds_up(room.context(system_prompt=prompt, recall="always", query="部署 backup"))
        except Incompressible as error:
            assert "fit" in str(error)


def test_a_prompt_of_a_recovery_counts_its_note(room: Room) -> None:
    room.sessions.store.create(S, settings={"compaction": {"preset": "opencode", "fallback": "extractive"}})
    room.talk(24, 100)
    made = room.sessions.recover(S, OverflowRequest(error="prompt is too long: 9000 tokens > 7000 maximum"))
    assert made.context is not None and made.messages[-1] != room.view()[-1]
    adds_up(made.context)


@pytest.mark.litellm
def test_an_exact_tokenizer_is_told_by_part(room: Room) -> None:
    room.sessions.store.create(S, model="gpt-4o", context_window=32_000)
    for number in range(6):
        room.say(user(f"{number} " + words(300)), says(words(200, chinese=True)))
    made = room.context(system_prompt="You are 助手. " + words(100))
    adds_up(made)
    assert made.prompt.tokens.total != made.prompt.estimated.total
