"""Compaction of a bare list of messages, as somebody uses it who has no home, log or server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from memory_service.compaction import CompactedMessages, compact
from memory_service.compaction.presets import PRESETS
from memory_service.errors import Incompressible, InvalidRequest, UpstreamFailed
from memory_service.messages.reading import read_messages
from memory_service.messages.sizes import message_tokens
from memory_service.testing import ScriptedModel
from tests.memory_service.compaction.talk import calls, result, says, sectioned, user

ROOT = Path(__file__).resolve().parents[3]
WINDOW = 16_000
LANGUAGES = pytest.mark.parametrize("chinese", [False, True])


def talk(turns: int, *, chinese: bool = False) -> list[Any]:
    """Turns of a question, a call, its result and an answer."""
    text = ("部署在周二进行。" * 25) if chinese else ("The deploy runs on Tuesday, after the backup. " * 12)
    return [
        message
        for turn in range(turns)
        for message in (user(f"{turn}: {text}"), calls(f"c{turn}"), result(f"c{turn}", text), says(text))
    ]


def blocks(turns: int, *, chinese: bool = False) -> list[Any]:
    """The same in Anthropic's shape."""
    text = ("部署在周二进行。" * 25) if chinese else ("The deploy runs on Tuesday, after the backup. " * 12)
    said = list[Any]()
    for turn in range(turns):
        use = {"type": "tool_use", "id": f"t{turn}", "name": "bash", "input": {"command": "make"}}
        told = {"type": "tool_result", "tool_use_id": f"t{turn}", "content": text}
        said += [
            {"role": "user", "content": [{"type": "text", "text": f"{turn}: {text}"}]},
            {"role": "assistant", "content": [{"type": "text", "text": text}, use]},
            {"role": "user", "content": [told]},
            {"role": "assistant", "content": [{"type": "text", "text": text}]},
        ]
    return said


def unanswered(made: CompactedMessages) -> list[str]:
    """What a provider would refuse in the messages: a call without its result, or a result without its call."""
    read = read_messages(made.messages)
    called = [call["id"] for each in read for call in each.get("tool_calls", [])]
    told = [each["tool_call_id"] for each in read if each["role"] == "tool"]
    return sorted({*called} ^ {*told})


@LANGUAGES
@pytest.mark.parametrize("preset", sorted(PRESETS))
def test_what_does_not_fit_is_compacted_with_every_preset(preset: str, chinese: bool) -> None:
    said = [*talk(64, chinese=chinese), user("最后的问题？")]
    before = json.dumps(said)
    made = compact(said, context_window=WINDOW, preset=preset, pins=["周五绝不部署"])
    receipt = made.receipt
    assert receipt.applied and receipt.preset == preset and receipt.method == "extractive"
    assert sum(map(message_tokens, read_messages(made.messages))) == receipt.tokens_after < WINDOW
    assert receipt.tokens_before > receipt.tokens_after and receipt.covered_messages > 0 and receipt.steps
    assert unanswered(made) == [] and made.messages[-1] == said[-1]
    assert "周五绝不部署" in json.dumps(made.messages, ensure_ascii=False)
    assert json.dumps(said) == before, "the caller's list is its own"


@LANGUAGES
def test_messages_come_back_in_the_shape_they_came_in(chinese: bool) -> None:
    made = compact(blocks(64, chinese=chinese), context_window=WINDOW)
    assert made.receipt.applied and unanswered(made) == []
    assert {each["role"] for each in made.messages} == {"user", "assistant"}
    kinds = {part["type"] for each in made.messages for part in each["content"]}
    assert kinds == {"text", "tool_use", "tool_result"}
    asked = compact(blocks(64, chinese=chinese), context_window=WINDOW, format="openai")
    assert any(each["role"] == "tool" for each in asked.messages)


@pytest.mark.parametrize("said", [talk(3), blocks(3), [{"role": "system", "content": "S"}, *talk(1)]])
def test_what_fits_comes_back_as_it_was(said: list[Any]) -> None:
    made = compact(said, context_window=WINDOW)
    assert made.messages == said and made.system is None
    assert not made.receipt.applied and "compaction begins" in made.receipt.reason


def test_a_result_without_its_call_does_not_stay_one() -> None:
    made = compact([result("lost", "It says 4711."), user("x")], context_window=WINDOW)
    assert unanswered(made) == [] and "4711" in str(made.messages)


def test_a_model_writes_the_summary() -> None:
    model = ScriptedModel(*[sectioned(fill="The deploy runs on Tuesday, after the backup.")] * 20)
    made = compact(talk(64), context_window=WINDOW, model=model)
    assert (made.receipt.method, made.receipt.model) == ("model", model.name)
    assert made.receipt.calls == len(model.requests) >= 1 and made.receipt.summary in str(made.messages[0]["content"])


def test_rules_stand_in_for_a_model_that_fails() -> None:
    made = compact(talk(64), context_window=WINDOW, model=ScriptedModel(*[UpstreamFailed("down")] * 20))
    assert made.receipt.applied and made.receipt.method == "extractive"
    assert any("The model failed" in note for note in made.receipt.notes)
    with pytest.raises(UpstreamFailed):
        compact(talk(64), context_window=WINDOW, fallback="none", model=ScriptedModel(*[UpstreamFailed("down")] * 20))


def test_it_takes_what_the_route_takes() -> None:
    said = talk(20)
    assert compact(said, context_window=WINDOW, force=True).receipt.applied
    assert compact(said, context_window=WINDOW, force=True, target_tokens=1_500).receipt.tokens_after <= 1_500
    assert compact(said, context_window=WINDOW, system_prompt="word " * 6_500).receipt.applied
    tools = [{"name": "run", "description": "word " * 6_500}]
    assert compact(said, context_window=WINDOW, tools=tools).receipt.applied
    forced = compact(said, context_window=WINDOW, force=True, preset="turns", overrides={"keep_turns": 2})
    assert forced.receipt.overrides == {"keep_turns": 2}
    assert compact(said, model_name="gpt-4", force=True).receipt.window_tokens == 8_192


@pytest.mark.parametrize(
    ("messages", "given", "told"),
    [
        ([], {}, "messages"),
        ([3], {}, "messages.0"),
        ([{"role": "", "content": ""}], {}, "role"),
        ([user("a")], {"preset": "best"}, "There is no preset 'best'"),
        ([user("a")], {"overrides": {"keep_turms": 3}}, "keep_turms"),
        ([user("a")], {"context_window": 0}, "context_window"),
        ([user("a")], {"context_window": "16k"}, "context_window"),
        ([user("a")], {"trigger": "now"}, "trigger"),
        ([user("a")], {"pins": [""]}, "pins.0"),
    ],
)
def test_what_cannot_be_used_is_refused_by_its_name(messages: list[Any], given: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidRequest, match=told):
        compact(messages, **{"context_window": WINDOW, **given})


def test_what_cannot_be_made_to_fit_is_an_error() -> None:
    with pytest.raises(Incompressible):
        compact([user("x"), says("word " * 60_000)], context_window=8_000)


PROGRAM = """
import sys
import memory_service.compaction
assert not {"pydantic", "numpy", "indexer", "apsw", "litellm", "onnxruntime"} & {*sys.modules}, "importing is light"
from memory_service.compaction import compact
text = "部署在周二进行。" * 60
said = [{"role": role, "content": f"{turn} {text}"} for turn in range(60) for role in ("user", "assistant")]
result = compact(said, context_window=16_000)
assert result.receipt.applied and len(result.messages) < len(said)
forbidden = {"apsw", "onnxruntime", "fastapi", "memory_service.service", "memory_service.config"}
assert not forbidden & {*sys.modules}, "it stands alone"
print(result.receipt.tokens_before, result.receipt.tokens_after)
"""


def test_it_works_where_nothing_is_set_up(tmp_path: Path) -> None:
    bare = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT") if name in os.environ}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM],
        cwd=tmp_path, env={**bare, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    before, after = map(int, done.stdout.split())
    assert after < before and list(tmp_path.iterdir()) == []
