"""The messages of a session log that OpenClaw wrote. Pure.

Such a log is JSON Lines too: `{"type":"session",…}` first, then `{"type":"message","timestamp":"…","message":{…}}` and
lines of other types. A message has the number of its line; its content is text or a list of parts (`text`,
`thinking`, `toolCall`), and what a tool answers has the role `toolResult`.

Source: pi-mono:packages/coding-agent/docs/session.md, which OpenClaw's logs follow.
"""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

_FIRST = re.compile(rb'\s*\{\s*"type"\s*:\s*"session"')


class Told(NamedTuple):
    """A message: the number of its line, when it was written (ISO, or empty), and the message as it was given."""

    line: int
    ts: str
    message: dict[str, Any]


def is_openclaw(raw: bytes) -> bool:
    """Whether a log begins as OpenClaw's do."""
    return _FIRST.match(raw) is not None


def openclaw_messages(raw: bytes) -> Iterator[Told]:
    """The messages of a log, in order; lines that are not whole, or cannot be read, are passed over."""
    for number, line in enumerate(raw.split(b"\n")[:-1], 1):
        fields = _parsed(line) if b'"message"' in line else None
        if fields is None or fields.get("type") != "message" or not isinstance(fields.get("message"), dict):
            continue
        ts = fields.get("timestamp")
        yield Told(line=number, ts=ts if isinstance(ts, str) else _moment(ts), message=fields["message"])


def usual_shape(message: dict[str, Any]) -> dict[str, Any]:
    """A message of OpenClaw's with the roles and parts that other providers have."""
    role = "tool" if message.get("role") == "toolResult" else message.get("role")
    content = message.get("content")
    return {**message, "role": role, "content": [*map(_part, content)] if isinstance(content, list) else content}


def _part(part: object) -> object:
    if isinstance(part, dict) and part.get("type") == "toolCall":
        return {"type": "tool_use", "id": part.get("id"), "name": part.get("name"), "input": part.get("arguments")}
    return part


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return fields if isinstance(fields, dict) else None


def _moment(milliseconds: object) -> str:
    if not isinstance(milliseconds, int | float):
        return ""
    try:
        return dt.datetime.fromtimestamp(milliseconds / 1000, dt.UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        return ""
