"""Conversations and models that the tests of summaries share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

from memory_service.compaction.prompts import ANCHORED_HEADINGS
from memory_service.llm.base import ChatMessage
from memory_service.messages.shapes import Message
from memory_service.messages.sizes import Numbered, number_message


def user(text: str) -> Message:
    return {"role": "user", "content": text}


def says(text: str, **keys: object) -> Message:
    return cast(Message, {"role": "assistant", "content": text, **keys})


def calls(call_id: str, name: str = "bash", arguments: str = '{"command": "make"}', text: str = "") -> Message:
    function = {"name": name, "arguments": arguments}
    return says(text, tool_calls=[{"id": call_id, "type": "function", "function": function}])


def result(call_id: str, text: str, **keys: object) -> Message:
    return cast(Message, {"role": "tool", "tool_call_id": call_id, "content": text, **keys})


def log(*messages: Message, first: int = 1, at: str = "") -> tuple[Numbered, ...]:
    return tuple(number_message(message, seq, at) for seq, message in enumerate(messages, first))


def chat(turns: int, chars: int = 400, chinese: bool = False) -> tuple[Numbered, ...]:
    """Turns of a question, a call, its result and an answer."""
    said: list[Message] = []
    fill = "部署在周二进行。" if chinese else "The deploy runs on Tuesday. "
    for turn in range(turns):
        text = (fill * (chars // len(fill) + 1))[:chars]
        said += [user(f"{turn}: {text}"), calls(f"c{turn}"), result(f"c{turn}", text), says(text)]
    return log(*said)


def sectioned(headings: Sequence[str] = ANCHORED_HEADINGS, fill: str = "something") -> str:
    """An answer that has every heading."""
    lines = []
    for heading in headings:
        lines += [heading if heading.startswith("###") else f"## {heading}", f"- {fill}"]
    return "\n".join(lines)


def answer(text: str) -> Callable[[Sequence[ChatMessage]], str]:
    return lambda messages: text


def asked(prompt: Sequence[ChatMessage]) -> str:
    return "\n".join(message["content"] for message in prompt)
