"""The prompt of a session: its view, a system prompt and blocks of memories, put together and measured.

Invariants: the parts of `PromptTokens` add up to its total, whatever the counts rest on, and none is negative; the list
is valid on the wire; what changes least stands first, and a block stands where it stood before, so that a provider's
cache holds; nothing of the view is changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

from memory_service.llm.token_anchor import scale_tokens
from memory_service.memories.standing import InjectedBlock
from memory_service.messages.shapes import Message, is_tool_result, user_message
from memory_service.messages.sizes import message_tokens
from memory_service.schemas.compaction import PromptTokens

if TYPE_CHECKING:
    from memory_service.compaction.view import View


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """A list of messages for a model, and what it takes.

    Attributes:
        tokens: As the model would count them.
        estimated: The same by estimate alone, which is what a provider's count is learned from.
        scale: Tokens of the model for each one estimated.
        blocks: Where the blocks of memories stand among the messages.
    """

    messages: tuple[Message, ...]
    tokens: PromptTokens
    estimated: PromptTokens
    scale: float = 1.0
    blocks: tuple[int, ...] = ()

    def beginning_tokens(self, count: int) -> int:
        """Tokens of the first messages, as the model counts them."""
        return scale_tokens(sum(map(message_tokens, self.messages[:count])), self.scale)

    def with_messages(self, messages: Sequence[Message]) -> Prompt:
        """Copy of the prompt with other messages in its tail."""
        more = sum(map(message_tokens, messages)) - self.estimated.total
        grown_fields = {"tail": self.estimated.tail + more, "total": self.estimated.total + more}
        tokens = self.estimated.model_copy(update=grown_fields)
        return replace(self, messages=tuple(messages), estimated=tokens, tokens=_as_counted(tokens, self.scale))


def prompt_of(
    view: View,
    *,
    system_prompt: str = "",
    blocks: Iterable[InjectedBlock] = (),
    window_tokens: int,
    scale: float = 1.0,
) -> Prompt:
    """Put a view, a system prompt and blocks of memories together.

    Args:
        view: The session.
        system_prompt: Stands before everything; empty for none.
        blocks: Those that `placeable` gives, each of which stands before the message of its turn.
        window_tokens: What the model takes.
        scale: Tokens of the model for each one estimated.
    """
    opening: list[Message] = [{"role": "system", "content": system_prompt}] if system_prompt else []
    places = _places(view)
    placed_parts = sorted(
        ((_place(view, places, block.seq), block.seq, block.text) for block in blocks if block.text),
        key=lambda parts: parts[:2],
    )
    messages, at, numbers = list(opening), 0, list[int]()
    for place, _, text in placed_parts:
        messages += view.messages[at:place]
        numbers.append(len(messages))
        messages.append(user_message(text))
        at = place
    messages += view.messages[at:]
    system = sum(map(message_tokens, opening)) + view.system_tokens
    memory = sum(message_tokens(messages[index]) for index in numbers)
    tokens = PromptTokens(
        system=system,
        memory=memory,
        summary=view.summary_tokens,
        tail=view.tail_tokens,
        total=system + memory + view.summary_tokens + view.tail_tokens,
        window=window_tokens,
    )
    return Prompt(
        messages=tuple(messages),
        tokens=_as_counted(tokens, scale),
        estimated=tokens,
        scale=scale,
        blocks=tuple(numbers),
    )


def placeable(view: View, blocks: Sequence[InjectedBlock], turn: int) -> tuple[InjectedBlock, ...]:
    """The blocks whose place is in a view; in one of somebody else's engine, that of the turn alone."""
    places = _places(view)
    return tuple(
        block
        for block in blocks
        if block.seq in places or (block.seq == turn if _is_foreign(view) else block.seq < view.first_seq)
    )


def _places(view: View) -> dict[int, int]:
    """Where each message of the user stands in a view, by its number in the log."""
    if _is_foreign(view):
        return {}
    at_of = {id(message): at for at, message in enumerate(view.messages)}
    messages = [
        each_message
        for each_message in view.tail
        if each_message.message["role"] == "user" and id(each_message.message) in at_of
    ]
    return {each_message.seq: at_of[id(each_message.message)] for each_message in reversed(messages)}


def _place(view: View, places: dict[int, int], seq: int) -> int:
    if seq in places:
        return places[seq]
    # The view of an engine does not tell; and the message of a turn may be covered while the turn goes on.
    return _turn(view) if _is_foreign(view) else _begin_of_tail(view)


def _is_foreign(view: View) -> bool:
    """True if a view is that of a context engine, whose messages have no numbers."""
    return bool(view.tail) and not view.seqs


def _as_counted(tokens: PromptTokens, scale: float) -> PromptTokens:
    """Each part as the model counts it. What is rounded is their running sum, so that they add up to the total."""
    parts = (tokens.system, tokens.memory, tokens.summary, tokens.tail)
    sums = [scale_tokens(upto, scale) for upto in accumulate(parts, initial=0)]
    system, memory, summary, tail = (after - before for before, after in pairwise(sums))
    return PromptTokens(system=system, memory=memory, summary=summary, tail=tail, total=sums[-1], window=tokens.window)


def _turn(view: View) -> int:
    """Start of the last turn: the user's last message, unless that would part a result from its call."""
    messages = view.messages
    ats = (at for at in range(len(messages) - 1, view.lead - 1, -1) if messages[at]["role"] == "user")
    return next(ats, _begin_of_tail(view))


def _begin_of_tail(view: View) -> int:
    at = view.lead
    while at < len(view.messages) and is_tool_result(view.messages[at]):
        at += 1
    return at
