"""Owns the limit on one tool result: what is over its share of the window is cut, or gives way to a placeholder.

Invariants: pure; the same messages give the same bytes, and what was guarded is not touched again; a result within
its share is the same object. Sizes are those of tokens, so that a Chinese result has no larger share than another.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from memory_service.compaction.bounds import Chars, Share
from memory_service.compaction.stubs import COMPACTED, guarded, placeholder_text
from memory_service.messages import Numbered, is_tool_result, numbered, with_text
from memory_service.messages.sizes import MESSAGE_TOKENS

CHARS_PER_TOKEN = 4
SHARE = 0.30  # of the window. Source: OpenClaw's live cap on tool results
MAX_CHARS = 50_000  # whatever the window is. Source: OpenClaw's cap on every result


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardRules:
    """How large one result may be.

    Attributes:
        share: Of the window; what is larger is cut.
        max_chars: Whatever the window is, what is larger is cut; a CJK character counts for four.
        clear_share: Of the window; what is larger gives way to the placeholder. None: never, since the cut already
            bounds it and says more. Seed 002, 13.4 has both; it names no number.
        notice: Words put where something was cut out.
        placeholder: What stands for a result that was taken out whole; the handle is put behind it.
    """

    share: Share = SHARE
    max_chars: Chars = MAX_CHARS
    clear_share: Share | None = None
    notice: str = ""
    placeholder: str = COMPACTED


def guard_limit_chars(window_tokens: int, share: float = SHARE, max_chars: int = MAX_CHARS) -> int:
    """The largest text that one result may be, in characters; a CJK one counts for four."""
    return max(0, min(int(window_tokens * CHARS_PER_TOKEN * share), max_chars))


def guarded_view(
    messages: Sequence[Numbered], rules: GuardRules, window_tokens: int, *, protected: Collection[int] = ()
) -> list[Numbered]:
    """The messages with every result cut that is over its share.

    Args:
        messages: In order.
        rules: See there.
        window_tokens: The model's whole context window.
        protected: Numbers of messages that stay whatever their size, such as pins.

    Returns:
        As many messages as there were.
    """
    limit_chars = guard_limit_chars(window_tokens, rules.share, rules.max_chars)
    limit_tokens = limit_chars // CHARS_PER_TOKEN + MESSAGE_TOKENS
    return [
        each
        if each.tokens <= limit_tokens or not is_tool_result(each.message) or each.seq in protected
        else _within(each, rules, limit_chars, window_tokens)
        for each in messages
    ]


def _within(each: Numbered, rules: GuardRules, limit_chars: int, window_tokens: int) -> Numbered:
    message = guarded(each.message, limit_chars, each.seq, notice=rules.notice)
    if message is each.message:
        return each
    if rules.clear_share is not None and each.tokens > rules.clear_share * window_tokens:
        message = with_text(message, placeholder_text(rules.placeholder, each.seq))
    return numbered(message, each.seq, each.at)
