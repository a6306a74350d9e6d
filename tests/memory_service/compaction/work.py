"""Messages of an agent at work, for tests."""

from __future__ import annotations

import json
from typing import Literal

from memory_service.messages.shapes import Message


def said(role: Literal["user", "assistant"], text: str) -> Message:
    """A message in words."""
    return {"role": role, "content": text}


def called(name: str, arguments: object, result: str, call_id: str, *, failed: bool = False) -> list[Message]:
    """A call of a tool and what it gave back."""
    call: Message = {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": call_id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        ],
    }
    answer: Message = {"role": "tool", "tool_call_id": call_id, "content": result}
    return [call, {**answer, "is_error": True} if failed else answer]


def looks(count: int, first: int = 0) -> list[Message]:
    """Rounds in which the agent looks at a file of forty lines."""
    return [
        message
        for at in range(first, first + count)
        for message in called(
            "Bash",
            {"command": f"cat part{at}.py"},
            "\n".join(f"def f_{at}_{line}(x): return x + {line} * {at}  # value of the thing" for line in range(40)),
            f"look-{at}",
        )
    ]
