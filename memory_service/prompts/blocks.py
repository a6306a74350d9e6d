"""Blocks of memories in a session's prompts: those of earlier turns, and that of the turn.

Invariants: the same turn gets the same block; what an earlier block shows is not written again; blocks of earlier turns
stand where they stood, or go all at once.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from indexer import Hit
from memory_service.errors import MemoryServiceError, NotFound
from memory_service.memories.receipts import Receipts
from memory_service.memories.standing import InjectedBlock, PromptRecord, block_tokens, digest_of
from memory_service.messages.sizes import MESSAGE_TOKENS, Numbered
from memory_service.prompts.assemble import placeable
from memory_service.prompts.session_recall import Question, SearchedPassages, SessionRecall, passages_in
from memory_service.schemas.memories import Context, Receipt

if TYPE_CHECKING:
    from memory_service.compaction.view import View
    from memory_service.runtime.session import SessionState
    from memory_service.runtime.session_services import SessionSnapshot

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
        standing = placeable(view, _valid_blocks(record, snapshot.state), seq)
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
