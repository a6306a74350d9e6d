"""Outcomes of tools as lines of a memory: the id or address of what a call made. Pure.

Invariants: linear; one line at most for each result; what was only looked at leaves none, and neither does a failure,
which is worth nothing without its remedy.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from indexer.common import lazy_regex
from memory_service.messages.shapes import tool_calls_of
from memory_service.messages.sizes import Numbered
from memory_service.text.texts import ENGLISH, Texts

_MAKING = lazy_regex(
    r"(?:^|[_\W])(?:create|post|publish|deploy|upload|open|book|reserve|order|submit|register|schedule|send|commit"
    r"|push|merge|release|provision|issue|new|add)(?![a-z])",
    re.IGNORECASE,
)
_SENDING = lazy_regex(r"(?:^|[_\W])(?:send|sent|mail|chat|notify|reply)(?![a-z])", re.IGNORECASE)
_MADE_KEYS = ("id", "key", "number", "url", "html_url", "web_url", "link", "path", "file", "version", "sha", "status")
_MADE_URL = lazy_regex(r"https?://[^\s\"'<>)\]]{4,160}")
_LOOKED_AT_CHARS = 4_000
_VALUE_CHARS = 160


def tool_names(messages: Sequence[Numbered]) -> dict[str, str]:
    """The names of the tools that were called, by the id of the call."""
    return {call["id"]: call["function"]["name"] for item in messages for call in tool_calls_of(item.message)}


def outcome_line(tool: str, text: str, *, has_failed: bool, texts: Texts = ENGLISH) -> str:
    """Outcome of a tool result as one line; empty for most.

    Args:
        tool: The name of the tool; empty if its call is not known.
        text: What it gave back.
        has_failed: Whether it said that it failed.
        texts: The words for that.
    """
    named_text = f"`{tool[:64]}`" if tool else texts.tool
    if has_failed:
        # What went wrong is worth knowing with its remedy, and that somebody tells in words.
        return ""
    if tool and _MAKING.search(tool):
        # The id of a message that went out is of no use to anybody.
        new_text = ", ".join(_outcomes_in(text)) if not _SENDING.search(tool) else ""
        return f"{named_text}{texts.tool_made}{new_text}" if new_text else ""
    return ""


def _outcomes_in(text: str) -> list[str]:
    if len(text) <= _LOOKED_AT_CHARS:
        try:
            fields = json.loads(text)
        except (ValueError, RecursionError):
            fields = None
        if isinstance(fields, dict):
            return [
                f"{key} {fields[key]}"
                for key in _MADE_KEYS
                if isinstance(fields.get(key), str | int) and 0 < len(str(fields[key])) <= _VALUE_CHARS
            ][:4]
    match = _MADE_URL.search(text[:_LOOKED_AT_CHARS])
    return [match[0]] if match else []
