"""Messages as they are sent to be appended: what can be, and what the service itself put into a prompt. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from memory_service.compaction.checkpoint import is_checkpoint
from memory_service.errors import InvalidRequest
from memory_service.memories.block_text import is_block
from memory_service.messages.reading import read_sent
from memory_service.schemas.messages import MAX_BATCH

if TYPE_CHECKING:
    pass


def check_messages(messages: Sequence[object], *, verbatim: bool = False) -> Sequence[object]:
    """Make sure that messages can be appended; gives those that the service itself did not put into a prompt.

    Args:
        messages: In OpenAI's or Anthropic's shape.
        verbatim: Whether the service put none of them there, whatever they look like.

    Raises:
        InvalidRequest: There are none or too many, or one is in neither OpenAI's nor Anthropic's shape.
    """
    if not 0 < len(messages) <= MAX_BATCH:
        raise InvalidRequest(f"{len(messages)} messages cannot be appended. Send 1 to {MAX_BATCH:,}.")
    items = [message for message in messages if verbatim or not _is_ours(message)]
    read_sent(items, strict=not verbatim)
    return items


def _is_ours(message: object) -> bool:
    """True if the service put a message into a prompt: a client may send back the whole list that it got."""
    if not isinstance(message, Mapping) or message.get("role") not in ("user", "assistant"):
        return False
    content = message.get("content")
    return isinstance(content, str) and (is_checkpoint(content) or is_block(content))
