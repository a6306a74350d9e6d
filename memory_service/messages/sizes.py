"""Size of texts and messages, in tokens. Pure.

```
count_tokens    a budget that somebody was given: blocks of memories, summaries, ledgers
message_tokens  what goes into a window: by `estimate`, near to what a tokenizer counts
```
Invariants: of a budget, characters / 4, CJK characters one token each, so that anybody can count it; quarters add up
exactly over pieces of a text, tokens only round them up at the end; both are the same for every provider, since the
real count corrects the estimate where a provider reports one.

Source: providers frame a message in 3 to 4 tokens and a tool call in about 50 with its schema's names; an image is
1,105 tokens at OpenAI (1024 x 1024, high detail) and up to 1,600 at Anthropic, whose number stands here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from memory_service.messages.estimate import estimate_tokens, milli_tokens
from memory_service.messages.opaque import unwrap_part
from memory_service.messages.shapes import MEDIA, Message, is_known, parts_of, text_of, tool_calls_of

# Han, kana, Hangul, their punctuation and full-width forms: tokenizers spend about one token on each.
_CJK = re.compile(
    "[\u1100-\u11ff\u2e80-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef\U00020000-\U0003ffff]"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Token usage of one call as the provider counted it; `input_tokens` excludes cached ones.

    Attributes:
        estimated_tokens: What the prompt was taken for before the call; None if that is not known.
        finish_reason: The provider's word for why the answer ended; None if that is not known.
    """

    input_tokens: int
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    model: str | None = None
    estimated_tokens: int | None = None
    finish_reason: str | None = None


def quarters(text: str) -> int:
    """Size of a text in quarters of a token."""
    return len(text) if text.isascii() else len(text) + 3 * len(_CJK.findall(text))


def count_tokens(text: str) -> int:
    """Size of a text in tokens, rounded up."""
    return -(-quarters(text) // 4)


MESSAGE_TOKENS = 4
CALL_TOKENS = 50
MEDIA_TOKENS = 1_600


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbered:
    """A message with its number in the log.

    Attributes:
        seq: Its number; in a list that has no log, its place from 1.
        tokens: See `message_tokens`.
        at: When it was appended: UTC, ISO 8601; empty if that is not known.
        redacted: Whether it went through `without_secrets`.
    """

    seq: int
    message: Message
    tokens: int
    at: str = ""
    redacted: bool = field(default=False, compare=False, repr=False)


def number_message(message: Message, seq: int, at: str = "") -> Numbered:
    """A message with its number and size."""
    return Numbered(seq=seq, message=message, tokens=message_tokens(message), at=at)


def message_tokens(message: Message) -> int:
    """Size of a message in tokens: text, thinking, calls with their arguments, media and the frame around it."""
    calls = tool_calls_of(message)
    size = milli_tokens(text_of(message)) + sum(
        milli_tokens(call["function"]["name"]) + milli_tokens(call["function"]["arguments"]) for call in calls
    )
    if "thinking_blocks" in message:
        size += sum(
            milli_tokens(str(block.get("thinking") or block.get("data") or "")) for block in message["thinking_blocks"]
        )
    if "reasoning_content" in message:
        size += milli_tokens(message["reasoning_content"] or "")
    parts = [] if isinstance(message.get("content"), str) else parts_of(message)
    media = sum(part["type"] in MEDIA for part in parts)
    opaque = sum(_unknown_tokens(part) for part in parts if not is_known(part["type"]))
    return -(-size // 1000) + opaque + MESSAGE_TOKENS + CALL_TOKENS * len(calls) + MEDIA_TOKENS * media


def _unknown_tokens(part: Mapping[str, Any]) -> int:
    """Size of a part of an unknown type in tokens; none counts for more than a picture."""
    try:
        return min(estimate_tokens(json.dumps(unwrap_part(part), ensure_ascii=False)), MEDIA_TOKENS)
    except (RecursionError, TypeError, ValueError):
        return MEDIA_TOKENS


def tools_tokens(tools: Sequence[object]) -> int:
    """Size of the schemas of tools, as they go over the wire, in tokens."""
    return sum(estimate_tokens(json.dumps(tool, ensure_ascii=False)) for tool in tools)
