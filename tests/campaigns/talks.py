"""Recorded conversations of agents at work, as steps: what is sent to the model, and what it answers.

The sample's recorded session; made-up ones with tools called in parallel, long output, images and Chinese; and LoCoMo's
talks, from a file that the caller has.
"""

from __future__ import annotations

import base64
import json
import random
import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memory_service.testing import Reply
from tests.evals.locomo import load

Message = dict[str, Any]
_SAMPLE = Path(__file__).resolve().parents[2] / "data/default/sessions/desk-2026-47.jsonl"
_ENGLISH = "the courier brings {n} parcels to gate {m}; the release {n}.{m} waits for /srv/app{m}/main.py of host{n}"
_CHINESE = "第{n}天决定把服务器 host{m} 的部署改到周二，预算 {n}{m} 元，负责人是王芳，请不要动 /srv/app{m}/main.py"


@dataclass(frozen=True, slots=True)
class Step:
    """What a client says next, in OpenAI's shape, and the answer of the model."""

    said: tuple[Message, ...]
    answer: Reply


@dataclass(frozen=True, slots=True)
class Talk:
    """A conversation."""

    name: str
    steps: tuple[Step, ...]


def steps_of(messages: Sequence[Message]) -> tuple[Step, ...]:
    """The steps of a conversation in OpenAI's shape; calls of a tool with the same arguments are told apart."""
    steps, said, seen = list[Step](), list[Message](), dict[tuple[str, str], int]()
    for message in messages:
        if message["role"] != "assistant":
            said.append(message)
            continue
        calls = [_apart(call["function"], seen) for call in message.get("tool_calls") or []]
        first, more = (calls[0], tuple(calls[1:])) if calls else ((None, "{}"), ())
        text = message.get("content") or ("" if calls else "Well.")
        answer = Reply(text=text, tool_call=first[0], arguments=first[1], more_calls=more)
        steps.append(Step(tuple(said) or ({"role": "user", "content": "Go on."},), answer))
        said = []
    return tuple(steps)


def _apart(function: dict[str, str], seen: dict[tuple[str, str], int]) -> tuple[str, str]:
    name, written = function["name"], function["arguments"]
    again = seen[name, written] = seen.get((name, written), -1) + 1
    return (name, json.dumps({**json.loads(written), "again": again})) if again else (name, written)


def recorded() -> Talk:
    """The sample's session."""
    lines = [json.loads(line) for line in _SAMPLE.read_text("utf-8").splitlines()]
    return Talk("sample", steps_of([line["message"] for line in lines if "message" in line]))


def made_up(seed: int, rounds: int) -> Talk:
    """An agent's tool loops: requests, one to four calls at once, short and long output, a picture now and then."""
    chance = random.Random(seed)
    messages = [message for number in range(rounds) for message in _round(chance, seed, number)]
    return Talk(f"made-up-{seed}", steps_of(messages))


def _round(chance: random.Random, seed: int, number: int) -> Iterator[Message]:
    request: Any = f"{seed}.{number}: please see to it that {_words(chance, 2)}"
    if chance.random() < 0.15:
        picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{_png(chance)}"}}
        request = [{"type": "text", "text": request}, picture]
    yield {"role": "user", "content": request}
    for loop in range(chance.randint(0, 4)):
        ids = [f"c{seed}x{number}x{loop}x{at}" for at in range(chance.choice((1, 1, 2, 4)))]
        calls = [{"id": each, "type": "function", "function": _function(chance, each)} for each in ids]
        yield {"role": "assistant", "content": chance.choice((None, _words(chance, 1))), "tool_calls": calls}
        for each in ids:
            yield {"role": "tool", "tool_call_id": each, "content": _words(chance, chance.choice((1, 40, 40, 150)))}
    yield {"role": "assistant", "content": _words(chance, chance.choice((1, 3, 8)))}


def _function(chance: random.Random, call_id: str) -> dict[str, str]:
    arguments = {"path": f"/srv/{call_id}.py", "note": _words(chance, 1)}
    return {"name": chance.choice(("read_file", "run_shell")), "arguments": json.dumps(arguments, ensure_ascii=False)}


def _words(chance: random.Random, count: int) -> str:
    form = chance.choice((_ENGLISH, _ENGLISH, _CHINESE))
    return "\n".join(form.format(n=chance.randrange(1000), m=chance.randrange(100)) for _ in range(count))


def _png(chance: random.Random) -> str:
    """A picture of one pixel of some colour."""
    pixel = zlib.compress(b"\0" + chance.randbytes(3))
    chunks = ((b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)), (b"IDAT", pixel), (b"IEND", b""))
    made = b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body)) for kind, body in chunks
    )
    return base64.b64encode(b"\x89PNG\r\n\x1a\n" + made).decode()


def locomo(path: Path) -> Iterator[Talk]:
    """LoCoMo's conversations: the first speaker is the user, the other one the model."""
    for conversation in load(path):
        messages = list[Message]()
        first = conversation.days[0].turns[0][0]
        for speaker, text in (turn for day in conversation.days for turn in day.turns):
            role = "user" if speaker == first else "assistant"
            if messages and messages[-1]["role"] == role:
                messages[-1]["content"] += f"\n{text}"
            else:
                messages.append({"role": role, "content": text})
        yield Talk(conversation.name, steps_of(messages))
