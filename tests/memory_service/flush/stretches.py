"""How the tests of the flush write down a stretch of conversation."""

from __future__ import annotations

from memory_service.flush.candidates import find_candidates
from memory_service.flush.notes import Candidate
from memory_service.messages.shapes import Message, Role
from memory_service.messages.sizes import Numbered, number_message

AT = "2026-11-20T09:00:00+00:00"


def stretch(*lines: str | Message) -> list[Numbered]:
    """Messages: "u text" of a user, "a text" of an assistant, "s text" of the system, or a message."""
    roles: dict[str, Role] = {"u": "user", "a": "assistant", "s": "system"}
    messages: list[Message] = []
    for line in lines:
        if isinstance(line, str):
            messages.append({"role": roles[line[0]], "content": line[2:]})
        else:
            messages.append(line)
    return [number_message(message, seq, AT) for seq, message in enumerate(messages, 1)]


def found(*lines: str | Message) -> list[Candidate]:
    return find_candidates(stretch(*lines))


def texts(*lines: str | Message) -> list[str]:
    return [candidate.text for candidate in found(*lines)]


def call(tool: str, call_id: str = "c1") -> Message:
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": call_id, "type": "function", "function": {"name": tool, "arguments": "{}"}}],
    }


def result(text: str, call_id: str = "c1", *, failed: bool = False) -> Message:
    message: Message = {"role": "tool", "tool_call_id": call_id, "content": text}
    if failed:
        message["is_error"] = True
    return message
