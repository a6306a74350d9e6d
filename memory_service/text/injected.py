"""Words that the memory itself put into a conversation, taken out of what is kept of it. Pure.

Without this a memory would store its own notes as something that was said, and find them again beside the notes.

Invariants: what people, agents and other tools said stays word for word; a call of a tool keeps its result, which says
no more than that it was recalled; messages of no known shape stay as they are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from indexer.common import lazy_regex
from indexer.language import is_own_tool, is_recalled
from memory_service.text.texts import TEXTS

RECALLED = "[recalled]"
# A shell may call the command itself.
_OWN_COMMAND = lazy_regex(r"\bmemory-service['\"]? +(?:context|get|search)\b")
# How each thing that the memory gives begins and ends. What is inside is escaped, so the first end is its own.
_FRAMES = (
    *((f"<relevant_context>\n{texts.block_note}\n", "</relevant_context>") for texts in TEXTS.values()),
    *((texts.checkpoint_begin, texts.checkpoint_end) for texts in TEXTS.values()),
    *((texts.pins_begin, "</pinned>") for texts in TEXTS.values()),
)
# Hosts put a tag around it, and words before it: "SessionStart hook additional context: …".
_WRAPPER = lazy_regex(
    r"<(?P<tag>[\w-]{1,40})>\s*(?:\w{1,40} hook additional context:\s*)?</(?P=tag)>"
    r"|^\w{1,40} hook additional context:[ \t]*$",
    re.MULTILINE,
)


def _said_text(text: str) -> str:
    """A text without blocks of memories, checkpoints and pins; empty if it was nothing else."""
    left = text
    for opening, closing in _FRAMES:
        left = _without(left, opening, closing)
    return text if left == text else _WRAPPER.sub("", left).strip()


def _without(text: str, opening: str, closing: str) -> str:
    """A text without what stands between two marks, and without the marks."""
    kept_texts, at = list[str](), 0
    while (start := text.find(opening, at)) >= 0 and (end := text.find(closing, start)) >= 0:
        kept_texts.append(text[at:start])
        at = end + len(closing)
    return "".join((*kept_texts, text[at:])) if at else text


def said_messages(messages: Iterable[Mapping[str, Any]], asked_keys: set[str]) -> list[Mapping[str, Any]]:
    """Messages without what the memory put there, in the shapes of OpenAI and Anthropic.

    Args:
        messages: What is to be kept.
        asked_keys: Ids of calls that asked the memory. Those found here are added, as a result may come later.
    """
    return [kept_fields for message in messages if (kept_fields := _own_message(message, asked_keys)) is not None]


def _own_message(message: Mapping[str, Any], asked_keys: set[str]) -> Mapping[str, Any] | None:
    """A message as it was said; None if nobody said it."""
    content, calls = message.get("content"), message.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, Mapping) else None
        if isinstance(function, Mapping) and _asks(function.get("name"), function.get("arguments")):
            asked_keys.add(str(call.get("id")))
    if message.get("role") == "tool":
        return {**message, "content": _result(content, str(message.get("tool_call_id")) in asked_keys)}
    if isinstance(content, str):
        text = _said_text(content)
        return message if text == content else {**message, "content": text} if text or calls else None
    if not isinstance(content, list):
        return message
    parts = [kept_part for part in content if (kept_part := _said_part(part, asked_keys)) is not None]
    return message if parts == content else {**message, "content": parts} if parts or calls else None


def _said_part(part: Any, asked_keys: set[str]) -> Any:
    match part:
        case {"type": "text", "text": str(text)} if text:
            left = _said_text(text)
            return part if left == text else {**part, "text": left} if left else None
        case {"type": "tool_use", "id": str(call_id), "name": name, "input": given_value}:
            if _asks(name, given_value):
                asked_keys.add(call_id)
        case {"type": "tool_result", "tool_use_id": str(call_id), "content": content}:
            return {**part, "content": _result(content, call_id in asked_keys)}
    return part


def _result(content: Any, recalled: bool) -> Any:
    """The result of a tool, without what the memory gave it."""
    if recalled:
        return RECALLED
    if not isinstance(content, str):
        return content
    left = "" if is_recalled(content) else _said_text(content)
    return left or (RECALLED if content else content)


def _asks(name: object, arguments: object) -> bool:
    """True if a call asks the memory: a tool of ours, or our command in a shell."""
    if isinstance(name, str) and is_own_tool(name):
        return True
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False, default=str)
    return bool(_OWN_COMMAND.search(text))
