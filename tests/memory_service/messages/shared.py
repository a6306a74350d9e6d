"""Parts of either shape that the tests of messages share."""

from __future__ import annotations

from memory_service.messages.reading import read_messages
from memory_service.messages.shapes import Message

PNG = {"type": "base64", "media_type": "image/png", "data": "AAAA"}
PDF = {"type": "base64", "media_type": "application/pdf", "data": "JVBERg=="}
IMAGE_URL = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
THINKING = {"type": "thinking", "thinking": "Zwölf – \\u00e4 \u2028 😀", "signature": "EqoB/+=="}
REDACTED = {"type": "redacted_thinking", "data": "Emw=="}
USE = {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"path": "ä.md", "n": 1.0, "deep": {"x": [None]}}}


def read(*raw: object) -> list[Message]:
    return read_messages(raw)


def text(value: str) -> dict[str, str]:
    return {"type": "text", "text": value}


def tool_call(**function: object) -> dict[str, object]:
    return {"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{}", **function}}
