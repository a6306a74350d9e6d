"""Owns the prompt that an agent sends: system prompt, checkpoint, tail and memories in one list of messages. Pure.

Invariants: the list is valid on the wire; what changes least stands first, so that a provider's cache holds: system
prompt, checkpoint, older messages, then the memories, then the turn that they are for; nothing of the view is changed.
"""

from __future__ import annotations

from dataclasses import dataclass

from memory_service.messages import Message, is_tool_result, message_tokens, user_message
from memory_service.sessions.view import View


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptTokens:
    """What each part of a prompt takes, in tokens.

    Attributes:
        total: All of it, and what the estimate is known to miss.
        window: What the model takes.
    """

    system: int
    memory: int
    summary: int
    tail: int
    total: int
    window: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """A list of messages for a model, and what it takes."""

    messages: tuple[Message, ...]
    tokens: PromptTokens


def prompt_of(
    view: View, *, system_prompt: str = "", memory: str = "", window_tokens: int, scale: float = 1.0
) -> Prompt:
    """Put a view, a system prompt and a block of memories together.

    Args:
        view: The session.
        system_prompt: Stands before everything; empty for none.
        memory: A block as `build_context` makes it; empty for none.
        window_tokens: What the model takes.
        scale: By how much the estimate is known to be off.
    """
    opening: list[Message] = [{"role": "system", "content": system_prompt}] if system_prompt else []
    recalled = [user_message(memory)] if memory else []
    at = _turn(view)
    messages = (*opening, *view.messages[:at], *recalled, *view.messages[at:])
    system = sum(map(message_tokens, opening)) + view.system_tokens
    block = sum(map(message_tokens, recalled))
    return Prompt(
        messages=messages,
        tokens=PromptTokens(
            system=system,
            memory=block,
            summary=view.summary_tokens,
            tail=view.tail_tokens,
            total=-(-int((system + block + view.summary_tokens + view.tail_tokens) * scale * 100) // 100),
            window=window_tokens,
        ),
    )


def _turn(view: View) -> int:
    """Where the last turn begins: at the last message of the user, unless a result would be parted from its call."""
    messages = view.messages
    for at in range(len(messages) - 1, view.lead - 1, -1):
        if messages[at]["role"] == "user":
            return at
    at = view.lead
    while at < len(messages) and is_tool_result(messages[at]):
        at += 1
    return at
