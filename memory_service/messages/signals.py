"""What a message tells the service itself: the command `/compact`, and that an answer was cut at its end. Pure.

Invariants: a command is the whole message, with nothing but text in it; what merely quotes or names one is none.
"""

from __future__ import annotations

import re

from memory_service.messages.shapes import Message, parts_of, text_of

# What stands right behind a path or a longer name is another word; Chinese may follow without a blank.
_COMPACT = re.compile(r"\s*/compact(?![A-Za-z0-9_/.-])[\s:：,，]*(.*)", re.DOTALL)
# How providers say that an answer was cut at its end.
_CUT = frozenset({"length", "max_tokens", "model_context_window_exceeded", "MAX_TOKENS"})


def compact_command(message: Message) -> str | None:
    """What a summary should look at, if a message is the user's command `/compact`; None if it is none."""
    if message["role"] != "user" or any(part["type"] != "text" for part in parts_of(message)):
        return None
    found = _COMPACT.fullmatch(text_of(message))
    return found[1].strip() if found else None


def was_cut(finish_reason: object) -> bool:
    """Whether a provider's word for why an answer ended says that it was cut at its end."""
    return isinstance(finish_reason, str) and finish_reason in _CUT
