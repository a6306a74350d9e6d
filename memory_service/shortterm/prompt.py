"""Owns the prompt that an agent sends: system prompt, checkpoint, tail and memories in one list of messages. Pure.

Invariants: the parts of `PromptTokens` add up to its total, whatever the counts rest on, and none is negative; the list
is valid on the wire; what changes least stands first, so that a provider's cache holds: system
prompt, checkpoint, older messages, then the memories, then the turn that they are for; nothing of the view is changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

from memory_service.messages import Message, is_tool_result, message_tokens, user_message
from memory_service.meter import scaled
from memory_service.sessions.view import View


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptTokens:
    """What each part of a prompt takes, in tokens; the four parts add up to `total`.

    Attributes:
        system: The system prompt, and the system messages of the session.
        memory: The block of memories.
        summary: The checkpoint: summary, ledger, pins, request.
        tail: All other messages.
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
    """A list of messages for a model, and what it takes.

    Attributes:
        tokens: As the model would count them.
        estimated: The same by estimate alone, which is what a provider's count is learned from.
        scale: Tokens of the model for each one estimated.
    """

    messages: tuple[Message, ...]
    tokens: PromptTokens
    estimated: PromptTokens
    scale: float = 1.0

    def with_messages(self, messages: Sequence[Message]) -> Prompt:
        """The same prompt with other messages in its tail."""
        more = sum(map(message_tokens, messages)) - self.estimated.total
        estimated = replace(self.estimated, tail=self.estimated.tail + more, total=self.estimated.total + more)
        return replace(self, messages=tuple(messages), estimated=estimated, tokens=_as_counted(estimated, self.scale))


def prompt_of(
    view: View, *, system_prompt: str = "", memory: str = "", window_tokens: int, scale: float = 1.0
) -> Prompt:
    """Put a view, a system prompt and a block of memories together.

    Args:
        view: The session.
        system_prompt: Stands before everything; empty for none.
        memory: A block as `build_context` makes it; empty for none.
        window_tokens: What the model takes.
        scale: Tokens of the model for each one estimated.
    """
    opening: list[Message] = [{"role": "system", "content": system_prompt}] if system_prompt else []
    recalled = [user_message(memory)] if memory else []
    at = _turn(view)
    messages = (*opening, *view.messages[:at], *recalled, *view.messages[at:])
    system = sum(map(message_tokens, opening)) + view.system_tokens
    block = sum(map(message_tokens, recalled))
    estimated = PromptTokens(
        system=system,
        memory=block,
        summary=view.summary_tokens,
        tail=view.tail_tokens,
        total=system + block + view.summary_tokens + view.tail_tokens,
        window=window_tokens,
    )
    return Prompt(messages=messages, tokens=_as_counted(estimated, scale), estimated=estimated, scale=scale)


def _as_counted(estimated: PromptTokens, scale: float) -> PromptTokens:
    """Each part as the model counts it. What is rounded is their running sum, so that they add up to the total."""
    parts = (estimated.system, estimated.memory, estimated.summary, estimated.tail)
    sums = [scaled(upto, scale) for upto in accumulate(parts, initial=0)]
    system, memory, summary, tail = (after - before for before, after in pairwise(sums))
    return replace(estimated, system=system, memory=memory, summary=summary, tail=tail, total=sums[-1])


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
