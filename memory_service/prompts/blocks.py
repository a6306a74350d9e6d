"""Blocks of memories in a session's prompts, and the prompt: its view, a system prompt and the blocks, put together.

Invariants: the same turn gets the same block; what an earlier block shows is not written again; blocks of earlier turns
stand where they stood, or go all at once. The parts of `PromptTokens` add up to its total, whatever the counts rest on,
and none is negative; the list is valid on the wire; what changes least stands first, so that a provider's cache holds;
nothing of the view is changed.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

from indexer import Hit
from memory_service.errors import MemoryServiceError, NotFound
from memory_service.llm.token_anchor import scale_tokens
from memory_service.messages.shapes import Message, is_tool_result, user_message
from memory_service.messages.sizes import MESSAGE_TOKENS, Numbered, message_tokens
from memory_service.prompts.prompt_records import InjectedBlock, PromptRecord, block_tokens, digest_of
from memory_service.prompts.receipt_records import Receipts
from memory_service.prompts.session_recall import Question, SearchedPassages, SessionRecall, passages_in
from memory_service.schemas.compaction import PromptTokens
from memory_service.schemas.memories import Context, Receipt

if TYPE_CHECKING:
    from memory_service.compaction.view import View
    from memory_service.runtime.session import SessionState
    from memory_service.runtime.session_services import SessionSnapshot


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


def _placeable(view: View, blocks: Sequence[InjectedBlock], turn: int) -> tuple[InjectedBlock, ...]:
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


# Each time, the budget comes down by what the block was too large.
_MOST_TRIES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRoom:
    """Room for blocks in a prompt, in estimated tokens.

    Attributes:
        own_tokens: For that of the turn.
        beside_tokens: For all, if those of earlier turns are to stand beside it.
        earlier_tokens: For those of earlier turns.
    """

    own_tokens: int
    beside_tokens: int
    earlier_tokens: int

    def fitting_blocks(
        self, earlier: tuple[InjectedBlock, ...], own: InjectedBlock | None = None
    ) -> tuple[InjectedBlock, ...]:
        """The blocks of earlier turns if they fit beside that of this one, else none of them."""
        tokens = block_tokens(earlier)
        fits = tokens <= self.earlier_tokens and tokens + (own.tokens if own else 0) <= self.beside_tokens
        return earlier if fits else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptMemory:
    """Blocks of a prompt.

    Attributes:
        blocks: Those of earlier turns, and that of this one.
        turn: That of this one; None if nothing was searched or could be.
        receipt: Its receipt.
        is_new: Whether it was not recalled before, so that the receipt is to be stored.
    """

    blocks: tuple[InjectedBlock, ...] = ()
    turn: InjectedBlock | None = None
    receipt: Receipt | None = None
    is_new: bool = False
    degraded: tuple[str, ...] = ()


class SessionBlocks:
    """Blocks for the prompts of the sessions of one workspace.

    Args:
        recalls: Finds the memories.
        receipts: Where receipts are kept.
    """

    def __init__(self, recalls: SessionRecall, receipts: Receipts) -> None:
        self._recalls = recalls
        self._receipts = receipts

    def memory(
        self,
        snapshot: SessionSnapshot,
        view: View,
        record: PromptRecord,
        question: Question | None,
        room: MemoryRoom,
        *,
        at: dt.datetime,
    ) -> PromptMemory:
        """The blocks of a prompt: those that stand, and that of its turn, whose receipt is not stored.

        Args:
            snapshot: The session.
            view: Its messages.
            record: Its last prompt.
            question: What the turn asks; None if nothing is searched.
            room: What the blocks may take.
            at: The present moment.
        """
        turn = snapshot.state.turn
        seq = turn.seq if turn else 0
        standing = _placeable(view, _valid_blocks(record, snapshot.state), seq)
        if question is None:
            return PromptMemory(blocks=room.fitting_blocks(standing))
        earlier = tuple(block for block in standing if block.seq != seq)
        own = turn_block(snapshot, record, question)
        if own is not None and own.tokens <= room.own_tokens:
            receipt = self._receipt(own.receipt_id)
            degraded = tuple(receipt.degraded) if receipt else ()
            return PromptMemory(
                blocks=(*room.fitting_blocks(earlier, own), own), turn=own, receipt=receipt, degraded=degraded
            )
        digest = question.digest
        question = replace(question, budget_tokens=min(question.budget_tokens, room.own_tokens - MESSAGE_TOKENS))
        if question.budget_tokens < 1:
            return PromptMemory(blocks=room.fitting_blocks(earlier))
        try:
            passages = self._recalls.find_passages(snapshot, question)
        except MemoryServiceError as error:
            return PromptMemory(blocks=room.fitting_blocks(earlier), degraded=(f"recall: {error}",))
        fitting_block = partial(
            self._fitting_block, snapshot, passages, question, asked_text=digest, most_tokens=room.own_tokens, at=at
        )
        context, own = fitting_block(beside=earlier)
        if room.fitting_blocks(earlier, own) != earlier:
            earlier = ()
            context, own = fitting_block(beside=earlier)
        receipt = context.receipt.model_copy(update={"session_id": snapshot.session_id})
        return PromptMemory(blocks=(*earlier, own), turn=own, receipt=receipt, is_new=True, degraded=passages.degraded)

    def _fitting_block(
        self,
        snapshot: SessionSnapshot,
        passages: SearchedPassages,
        question: Question,
        *,
        asked_text: str,
        most_tokens: int,
        at: dt.datetime,
        beside: Sequence[InjectedBlock],
    ) -> tuple[Context, InjectedBlock]:
        """The block of what was found, smaller than its budget where it takes more than these tokens.

        A block is packed by characters, and a window holds tokens: digits and identifiers take more of them.
        """
        tries = 0
        while True:
            context = self._recalls.pack_block(snapshot, passages, question, at, beside=beside)
            own, tries = _block(context, passages.hits, asked_text, snapshot.state.turn), tries + 1
            if own.tokens <= most_tokens or tries == _MOST_TRIES:
                return context, own
            budget = max(1, question.budget_tokens * most_tokens // own.tokens - 1)
            question = replace(question, budget_tokens=budget)

    def _receipt(self, receipt_id: str) -> Receipt | None:
        try:
            return self._receipts.get(receipt_id)
        except NotFound:
            return None


def turn_block(snapshot: SessionSnapshot, record: PromptRecord, question: Question) -> InjectedBlock | None:
    """The block that this question got in this turn; None if it is to be searched for.

    Where nothing was found, it is asked again until the turn goes on: there is nothing that would move.
    """
    turn = snapshot.state.turn
    seq = turn.seq if turn else 0
    own = next((block for block in _valid_blocks(record, snapshot.state) if block.seq == seq), None)
    if own is None or own.asked != question.digest:
        return None
    goes_on = turn is not None and snapshot.state.messages[-1] is not turn
    return own if own.text or goes_on else None


def _said_digest(message: Numbered | None) -> str:
    return digest_of(message.message) if message else ""


def _block(context: Context, hits: Sequence[Hit], asked_text: str, message: Numbered | None) -> InjectedBlock:
    """The block of a turn."""
    return InjectedBlock(
        seq=message.seq if message else 0,
        said=_said_digest(message),
        asked=asked_text,
        text=context.block,
        receipt_id=context.receipt.receipt_id,
        passages=passages_in(context, hits),
    )


def _valid_blocks(record: PromptRecord, state: SessionState) -> tuple[InjectedBlock, ...]:
    """The blocks of a prompt whose view still counts, and whose messages are what they were."""
    if record.view != state.changed_seq:
        return ()
    return tuple(block for block in record.blocks if _is_said(block, state))


def _is_said(block: InjectedBlock, state: SessionState) -> bool:
    messages = [message for message in state.between(block.seq, block.seq) if message.message["role"] == "user"]
    return block.said == _said_digest(messages[-1] if messages else None)
